"""Faults found while reading a trace: counted, located, and reported in one line each."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

KEPT_FAULTS = 20
"""How many faults are kept with their place; the rest are only counted."""

SHOWN_CHARACTERS = 80
"""How much of an offending line a message repeats."""


def shown(text: str) -> str:
    """Return `text` quoted, without control characters, cut to `SHOWN_CHARACTERS`.

    >>> shown("a" * 200).count("a")
    80
    """
    return repr(
        text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
    )


@dataclass(frozen=True)
class Fault:
    """One thing wrong in one place: a line of the text, or as `unit` says; 0: the whole file."""

    source: str
    line: int
    got: str
    wanted: str
    unit: str = "line"

    def __str__(self) -> str:
        counted = self.line if self.unit == "line" else f"{self.unit} {self.line}"
        place = f"{self.source}:{counted}" if self.line else self.source
        return f"{place}: got {self.got}, wanted {self.wanted}"


@dataclass(frozen=True)
class Faults:
    """How many faults one file has, and the first `KEPT_FAULTS` of them."""

    count: int = 0
    first: tuple[Fault, ...] = ()

    def lines(self) -> list[str]:
        """Return one message per kept fault and, if some were not kept, a last line that says how many."""
        listed = [str(fault) for fault in self.first]
        if self.count > len(self.first):
            listed.append(f"… and {self.count - len(self.first)} more faults")
        return listed


@dataclass
class FaultLog:
    """Collects faults, and counts of what was recognised but is no request, while a file is read."""

    source: str
    unit: str = "line"
    count: int = 0
    first: list[Fault] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, line: int, got: str, wanted: str) -> None:
        """Note one fault."""
        self.count += 1
        if self.has_room:
            self.first.append(Fault(self.source, line, got, wanted, self.unit))

    def add_lines(
        self,
        lines: Iterable[tuple[int, str]],
        explain: Callable[[str], tuple[str, str]],
    ) -> None:
        """Note one fault for each of many lines; only those that are kept are explained."""
        for number, text in lines:
            if self.has_room:
                self.add(number, *explain(text))
            else:
                self.count += 1

    @property
    def has_room(self) -> bool:
        """Whether a further fault would be kept with its place."""
        return len(self.first) < KEPT_FAULTS

    def tally(self, what: str, count: int = 1) -> None:
        """Count something that was recognised, is no fault, and yields no request of its own."""
        if count:
            self.counts[what] = self.counts.get(what, 0) + count

    def extend(self, other: "FaultLog") -> None:
        """Take over what was noted of a file that belongs to this one."""
        kept = other.first[: KEPT_FAULTS - len(self.first)]
        self.first += kept
        self.count += other.count
        for what, count in other.counts.items():
            self.tally(what, count)

    def close(self) -> Faults:
        """Return the frozen result, in the order of the file."""
        # What concerns the whole file stands last.
        return Faults(
            self.count,
            tuple(sorted(self.first, key=lambda fault: fault.line or math.inf)),
        )


class TraceError(ValueError):
    """A trace cannot be used; its text has one line per problem, at most `KEPT_FAULTS` and a closing one."""
