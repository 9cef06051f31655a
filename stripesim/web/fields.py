"""Define a field of the form: its valid values, and the scenario keys that it sets."""

import math
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from stripesim.models.problems import problems_of

#: Longest value of a field [characters].
TEXT_MAX: Final = 40
#: A key of a scenario in a message.
_KEY: Final = re.compile(r"\b(?:cluster|workload|durability)\.\w+")
# Scenario keys set by a field of a different name. Other keys of [cluster] have a field of the same name.
_FIELDS_OF_KEYS: Final[Mapping[str, str]] = {
    "schemes": "scheme",
    "generation": "generation",
    "cluster.drive_bytes": "drive_tb",
    "cluster.failure_domain_replicated": "failure_domain",
    "cluster.failure_domain_erasure": "failure_domain",
    "workload.block_sizes_bytes": "block_kib",
    "workload.object_sizes_bytes": "object_kib",
    "workload.read_fraction": "read_percent",
    # The first of the shares.
    "workload.ops": "put",
    "workload.op_shares": "put",
    "workload.rate_per_s": "rate_per_s",
    "workload.queue_depth": "queue_depth",
    "durability.afr": "afr_percent",
    "durability.drive_bytes": "drive_tb",
    "durability.repair_bytes_per_s": "repair_mb_per_s",
}


@dataclass(frozen=True)
class Control:
    """A control of the form."""

    name: str  # in the address, prefixed with a. or b. if each option has its own value
    label: str
    kind: str = "number"  # or text, or select
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()
    #: option: each option has its own value. cluster: the same, unless both have one cluster. both: one
    #: value.
    scope: Literal["option", "cluster", "both"] = "cluster"
    placeholder: str = ""  # meaning of an empty field; without one, a value is needed
    is_whole: bool = False  # takes whole numbers alone
    stops: tuple[float, ...] = ()  # values of its slider
    is_wide: bool = False  # takes the whole width of the form, for long names

    @property
    def both(self) -> bool:
        """True if both options always have the same value."""
        return self.scope == "both"

    @property
    def stops_text(self) -> str:
        """The values of its slider, for the script of the page."""
        return " ".join(f"{stop:g}" for stop in self.stops)

    def key(self, side: str) -> str:
        """Return the name of the field in the form and in addresses."""
        return self.name if self.both else f"{side}.{self.name}"

    def field_id(self, side: str) -> str:
        """Return the HTML id of the field. The id of its error message appends ``-error``."""
        return "field-" + self.key(side).replace(".", "-")

    def problem(self, text: str) -> str:
        """Return the problem with a value, or "" if it is valid."""
        if not text:
            return "" if self.placeholder else f"got nothing, wanted {self._wanted}"
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
            # NaN also fails this check.
            return False
        return not self.is_whole or number == math.floor(number)

    @property
    def _wanted(self) -> str:
        if self.kind == "text":
            return f"a {self.label.lower()}"
        if self.kind == "select":
            return f"one of {', '.join(self.choices)}"
        number = "a whole number" if self.is_whole else "a number"
        return f"{number} from {self.low:,.10g} to {self.high:,.10g}"


@dataclass(frozen=True)
class FormProblems:
    """Problems of an option: one text per control name, and those that belong to no control."""

    by_field: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.by_field or self.others)


NO_PROBLEMS: Final = FormProblems()


def problems_of_scenario(
    error: ValueError, controls: Iterable[Control]
) -> FormProblems:
    """Assign each problem of a scenario to the field that sets its key."""
    labels = {control.name: control.label for control in controls}
    by_field: dict[str, str] = {}
    without_field = []
    for problem in problems_of(error):
        name = _field_of(problem.key, labels)
        if name is None:
            without_field.append(str(problem))
            continue
        earlier = by_field.get(name)
        text = _with_labels(problem.said, labels)
        by_field[name] = f"{earlier}; {text}" if earlier else text
    return FormProblems(by_field, tuple(without_field))


def _with_labels(text: str, labels: Mapping[str, str]) -> str:
    """Replace scenario keys in a text by the labels of the fields that set them.

    >>> _with_labels("got no sites, wanted cluster.sites, too", {"sites": "Sites"})
    'got no sites, wanted "Sites", too'
    """

    def label(found: re.Match[str]) -> str:
        name = _field_of(found[0], labels)
        return found[0] if name is None else f'"{labels[name]}"'

    return _KEY.sub(label, text)


def _field_of(key: str, names: Container[str]) -> str | None:
    """Return the name of the control that sets a scenario key, or None."""
    name = _FIELDS_OF_KEYS.get(key, key.removeprefix("cluster."))
    return name if name in names else None
