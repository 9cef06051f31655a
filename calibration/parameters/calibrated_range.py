"""Compare a scenario with the range that a parameter set was calibrated on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.problems import ParameterSetError, Problem

# A list of values (empty if nothing of the kind was measured), or all numbers from min to max.
Span = list[Any] | Mapping[str, float]


@dataclass(frozen=True)
class CalibratedRange:
    """Range that a parameter set was calibrated or checked on, by dotted scenario key.

    `source` names the measurements. `notes` apply to every scenario, for example that durations were never
    calibrated.
    """

    name: str
    source: str
    keys: Mapping[str, Span] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def problems(self, asked: Mapping[str, Any]) -> list[Problem]:
        """Return a problem per scenario key outside the range, then the notes.

        Parameters
        ----------
        asked
            Nested mappings of the scenario. A key that is missing or None is not checked.
        """
        problems = []
        for key, covered in self.keys.items():
            value = _at(asked, key)
            values = value if isinstance(value, list | tuple) else [value]
            outside = [
                one for one in values if one is not None and not _covers(covered, one)
            ]
            if not outside:
                continue
            got = ", ".join(map(_shown, outside))
            wanted = _words(covered)
            reason = f"got {got}; {self.name} was calibrated or checked on {wanted}"
            if covered == []:
                reason = f"{self.name} was not calibrated or checked on anything of this kind"
            problems.append(
                Problem(
                    key=key, got=got, wanted=wanted, detail=f"{reason} ({self.source})"
                )
            )
        notes = [Problem(place=self.name, detail=note) for note in self.notes]
        return problems + notes


def _covers(covered: Span, value: Any) -> bool:
    if isinstance(covered, list):
        return value in covered
    return isinstance(value, int | float) and covered["min"] <= value <= covered["max"]


def _words(covered: Span) -> str:
    if isinstance(covered, list):
        return ", ".join(map(str, covered))
    return " to ".join(dict.fromkeys(map(_shown, (covered["min"], covered["max"]))))


def _shown(value: Any) -> str:
    if isinstance(value, float | int):
        return f"{value:,.10g}"
    return str(value)


def _at(asked: Mapping[str, Any], key: str) -> Any:
    value: Any = asked
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def calibrated_range(chosen: ParameterSet) -> CalibratedRange:
    """Read the range of a parameter set from its ``[calibrated]`` table.

    The table has ``source``, optionally ``notes``, and under ``keys`` a list of values or ``{min, max}`` per
    dotted scenario key. A set without the table gets a range whose only note says so.

    Raises
    ------
    ParameterSetError
        If the table is invalid.
    """
    table = chosen.table("calibrated")
    if table is None:
        return CalibratedRange(
            chosen.name, "", notes=("it does not say what it was calibrated on",)
        )
    where = f"{chosen.name}.toml: [calibrated]"
    unknown = sorted(table.keys() - {"source", "notes", "keys"})
    if unknown or not isinstance(table.get("source"), str):
        raise ParameterSetError(
            f"{where}: got {', '.join(table)}, wanted source, keys and optionally notes"
        )
    for key, span in table.get("keys", {}).items():
        numbers = (
            isinstance(span, Mapping)
            and span.keys() == {"min", "max"}
            and span["min"] <= span["max"]
        )
        if not numbers and not isinstance(span, list):
            raise ParameterSetError(
                f"{where}: {key}: got {span!r}, wanted a list or {{ min, max }}"
            )
    return CalibratedRange(
        chosen.name,
        table["source"],
        table.get("keys", {}),
        tuple(table.get("notes", ())),
    )
