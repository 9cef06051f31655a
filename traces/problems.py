"""Collect faults found while reading a trace: counted, located, and reported in one line each."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

KEPT_FAULTS = 20
"""Number of faults kept with their location. Further faults are only counted."""

SHOWN_CHARACTERS = 80
"""Number of characters of an offending line that a message repeats."""


def columns_text(count: int) -> str:
    """Return a number of columns in words: ``1 column``."""
    return "1 column" if count == 1 else f"{count} columns"


def shown(text: str) -> str:
    """Return `text` quoted, without control characters, cut to `SHOWN_CHARACTERS`.

    Examples
    --------
    >>> shown("a" * 200).count("a")
    80
    """
    return repr(
        text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
    )


@dataclass(frozen=True)
class Fault:
    """A fault at one location: a line of the text, or another `unit`. Location 0 is the whole file."""

    source: str
    line: int
    got: str
    wanted: str
    unit: str = "line"

    def __str__(self) -> str:
        location = self.source
        if self.line:
            unit = "" if self.unit == "line" else f"{self.unit} "
            location += f":{unit}{self.line}"
        return f"{location}: got {self.got}, wanted {self.wanted}"


@dataclass(frozen=True)
class Faults:
    """The number of faults in a file, and the first `KEPT_FAULTS` of them."""

    count: int = 0
    first: tuple[Fault, ...] = ()

    def lines(self) -> list[str]:
        """Return one message per kept fault, and a last line with the number of other faults, if any."""
        listed = [str(fault) for fault in self.first]
        if self.count > len(self.first):
            listed.append(f"… and {self.count - len(self.first)} more faults")
        return listed


@dataclass
class FaultLog:
    """Collect faults, and counts of other recognised lines, while a file is read."""

    source: str
    unit: str = "line"
    count: int = 0
    first: list[Fault] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, line: int, got: str, wanted: str) -> None:
        """Record one fault."""
        self.count += 1
        if self.has_room:
            self.first.append(Fault(self.source, line, got, wanted, self.unit))

    def add_lines(
        self,
        lines: Iterable[tuple[int, str]],
        explain: Callable[[str], tuple[str, str]],
    ) -> None:
        """Record one fault per line, explaining only those that are kept."""
        for number, text in lines:
            if self.has_room:
                self.add(number, *explain(text))
            else:
                self.count += 1

    @property
    def has_room(self) -> bool:
        """True if another fault would be kept with its location."""
        return len(self.first) < KEPT_FAULTS

    def tally(self, what: str, count: int = 1) -> None:
        """Count recognised lines that are neither faults nor requests."""
        if count:
            self.counts[what] = self.counts.get(what, 0) + count

    def extend(self, other: "FaultLog") -> None:
        """Add the faults and counts of a companion file."""
        kept = other.first[: KEPT_FAULTS - len(self.first)]
        self.first += kept
        self.count += other.count
        for what, count in other.counts.items():
            self.tally(what, count)

    def close(self) -> Faults:
        """Return the frozen result, in file order."""
        # Faults of the whole file come last.
        return Faults(
            self.count,
            tuple(sorted(self.first, key=lambda fault: fault.line or math.inf)),
        )
