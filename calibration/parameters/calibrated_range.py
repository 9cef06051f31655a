"""What a parameter set was calibrated or checked on, and which questions lie outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stripesim.calibration.parameters.sets import ParameterSet, ParameterSetError

__all__ = ["CalibratedRange", "calibrated_range"]


@dataclass(frozen=True)
class Span:
    """All numbers from `low` to `high`, both included."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    def __str__(self) -> str:
        ends = [f"{end:,.10g}" for end in (self.low, self.high)]
        return ends[0] if self.low == self.high else " to ".join(ends)


@dataclass(frozen=True)
class Listed:
    """A few values; none at all where the thing was never measured."""

    values: tuple[Any, ...]

    def __contains__(self, value: object) -> bool:
        return value in self.values

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))


@dataclass(frozen=True)
class CalibratedRange:
    """What a parameter set was calibrated or checked on, by dotted key of a scenario.

    `source` names the measurements; `notes` are what no scenario can be inside of, such as durations that
    were never calibrated.
    """

    name: str
    source: str
    keys: Mapping[str, Span | Listed] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def warnings(self, asked: Mapping[str, Any]) -> list[str]:
        """A line for each key of a scenario (nested mappings) that lies outside, then the notes.

        A key that is missing or None is not asked about.
        """
        lines = []
        for key, covered in self.keys.items():
            value = _at(asked, key)
            values = value if isinstance(value, list | tuple) else [value]
            outside = [one for one in values if one is not None and one not in covered]
            if outside:
                lines.append(f"{key}: {_outside(outside, covered, self.name)} ({self.source})")
        return lines + [f"{self.name}: {note}" for note in self.notes]


def _outside(values: list[Any], covered: Span | Listed, name: str) -> str:
    if isinstance(covered, Listed) and not covered.values:
        return f"{name} was neither calibrated nor checked on anything of this kind"
    got = ", ".join(f"{one:,.10g}" if isinstance(one, float | int) else str(one) for one in values)
    return f"got {got}; {name} was calibrated or checked on {covered}"


def _at(asked: Mapping[str, Any], key: str) -> Any:
    value: Any = asked
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def calibrated_range(chosen: ParameterSet) -> CalibratedRange:
    """Read a parameter set's range from its table ``[calibrated]``.

    It has ``source``, perhaps ``notes``, and under ``keys`` for each dotted key of a scenario a list of
    values or ``{min, max}``. A set without one gets a range that says so to every question.
    """
    table = chosen.table("calibrated")
    if table is None:
        return CalibratedRange(chosen.name, "", notes=("it does not say what it was calibrated on",))
    where = f"{chosen.name}.toml: [calibrated]"
    unknown = sorted(table.keys() - {"source", "notes", "keys"})
    if unknown or not isinstance(table.get("source"), str):
        raise ParameterSetError(f"{where}: got {', '.join(table)}, wanted source, keys and perhaps notes")
    keys = {key: _covered(value, f"{where}: {key}") for key, value in table.get("keys", {}).items()}
    return CalibratedRange(chosen.name, table["source"], keys, tuple(table.get("notes", ())))


def _covered(span: Any, where: str) -> Span | Listed:
    if isinstance(span, list):
        return Listed(tuple(span))
    if isinstance(span, Mapping) and span.keys() == {"min", "max"} and span["min"] <= span["max"]:
        return Span(span["min"], span["max"])
    raise ParameterSetError(f"{where}: got {span!r}, wanted a list or {{ min, max }}")
