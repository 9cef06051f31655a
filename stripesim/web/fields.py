"""Fields of the form: the values that each takes, and the field that a problem of a scenario belongs to."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

#: Characters that a field takes: longer values are not meant.
TEXT_MAX: Final = 40
#: Fields whose values are counts, and fields that may be empty.
_WHOLE: Final = frozenset(
    {"hosts", "osds_per_host", "racks", "cores_per_host", "pg_num"}
)
_OPTIONAL: Final = frozenset({"drive_tb", "racks"})

# Keys of a scenario that a field of another name sets; keys of [cluster] have fields of their own name.
_FIELDS_OF_KEYS: Final[Mapping[str, str]] = {
    "schemes": "scheme",
    "generation": "generation",
    "cluster.drive_bytes": "drive_tb",
    "cluster.failure_domain_replicated": "failure_domain",
    "cluster.failure_domain_erasure": "failure_domain",
    "workload.block_sizes_bytes": "block_kib",
    "workload.read_fraction": "read_percent",
    "workload.rate_per_s": "rate_per_s",
    "durability.afr": "afr_percent",
    "durability.repair_bytes_per_s": "repair_mb_per_s",
}
# A line of an error of a scenario: an optional place, a key, what is wrong.
_LINE: Final = re.compile(
    r"(?:.*?: )??(?P<key>[a-z0-9_]+(?:\.[a-z0-9_]+)*): (?P<text>got .*)"
)


@dataclass(frozen=True)
class Control:
    """One control of the form."""

    name: str  # in the address, behind a. or b. where each option has its own
    label: str
    kind: str = "number"  # or text, or select
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()
    both: bool = False  # whether it holds for both options
    placeholder: str = ""  # what an empty field means

    def key(self, side: str) -> str:
        """Return the name of the field in the form and in addresses."""
        return self.name if self.both else f"{side}.{self.name}"

    def field_id(self, side: str) -> str:
        """Return the name of the field on the page; that of its error begins with `error-` instead."""
        return "field-" + self.key(side).replace(".", "-")

    def problem(self, text: str) -> str:
        """Return what is wrong with a value; empty where nothing is."""
        if not text:
            return (
                "" if self.name in _OPTIONAL else f"got nothing, wanted {self._wanted}"
            )
        got = f'got "{text[:TEXT_MAX]}"'
        if len(text) > TEXT_MAX:
            return f"{got} and more, wanted at most {TEXT_MAX} characters"
        return "" if self._takes(text) else f"{got}, wanted {self._wanted}"

    def _takes(self, text: str) -> bool:
        if self.kind == "text":
            return True
        if self.kind == "select":
            return text in self.choices
        try:
            number = float(text)
        except ValueError:
            return False
        if not self.low <= number <= self.high:
            # NaN is in no range either.
            return False
        return self.name not in _WHOLE or number == math.floor(number)

    @property
    def _wanted(self) -> str:
        if self.kind == "text":
            return f"a {self.label.lower()}"
        if self.kind == "select":
            return f"one of {', '.join(self.choices)}"
        number = "a whole number" if self.name in _WHOLE else "a number"
        return f"{number} from {self.low:,.10g} to {self.high:,.10g}"


@dataclass(frozen=True)
class FormProblems:
    """Problems of an option: those of one field, by the name of its control, and others."""

    by_field: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.by_field or self.others)


NO_PROBLEMS: Final = FormProblems()


def problems_of_scenario(
    error: ValueError, controls: Iterable[Control]
) -> FormProblems:
    """Give each line of a scenario's error to the field whose value it is about."""
    names = {control.name for control in controls}
    by_field: dict[str, str] = {}
    others = []
    for line in str(error).splitlines():
        match = _LINE.fullmatch(line)
        name = _field_of(match["key"], names) if match else None
        if match is None or name is None:
            others.append(line)
            continue
        said = by_field.get(name)
        by_field[name] = f"{said}; {match['text']}" if said else match["text"]
    return FormProblems(by_field, tuple(others))


def _field_of(key: str, names: set[str]) -> str | None:
    """Return the name of the control that sets a key of a scenario; None where none does."""
    name = _FIELDS_OF_KEYS.get(key, key.removeprefix("cluster."))
    return name if name in names else None
