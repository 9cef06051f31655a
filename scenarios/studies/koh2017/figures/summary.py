"""The summary of the paper's first figure: RS(10,4) beside 3-replication in six quantities."""

from collections.abc import Sequence
from typing import Final

from stripesim.calibration.ledger.verdicts import Entry
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.studies.koh2017.figures.claims import BAND, RIGHT, WRONG

# Claim → what it compares, and how it becomes a factor of 3-replication.
SUMMARY: Final[dict[str, tuple[str, str]]] = {
    "koh2017-032": ("read bandwidth", "drop"),
    "koh2017-034": ("write bandwidth", "drop"),
    "koh2017-033": ("read latency", "rise"),
    "koh2017-035": ("write latency", "factor"),
    "koh2017-036": ("CPU time", "factor"),
    "koh2017-104": ("private network", "factor"),
    "koh2017-037": ("device reads", "factor"),
    "koh2017-038": ("device writes", "factor"),
}
#: Nothing on the logarithmic axis lies below.
FLOOR: Final = 1e-3


def as_factor(value: float, kind: str) -> float:
    """RS(10,4) over 3-replication, from a drop or a rise in percent or a factor.

    >>> as_factor(86.0, "drop"), as_factor(50.0, "rise"), as_factor(7.6, "factor")
    (0.14, 1.5, 7.6)
    """
    return {
        "drop": round(1 - value / 100, 12),
        "rise": 1 + value / 100,
        "factor": value,
    }[kind]


def draw_summary(entries: Sequence[Entry]) -> CaptionedFigure | None:
    """Draw the six-way summary; None if none of its claims was computed."""
    by_id = {entry.claim.id: entry for entry in entries}
    listed = []
    for claim, (words, kind) in SUMMARY.items():
        entry = by_id.get(claim)
        if entry is None or not isinstance(entry.simulated, float):
            continue
        stated, slack = entry.claim.published, entry.tolerance or 0.0
        assert isinstance(stated, float)
        # The tolerance belongs to the number as stated, and a drop of 86 % plus 20 % leaves nothing.
        band = [
            max(as_factor(stated * end, kind), FLOOR) for end in (1 - slack, 1 + slack)
        ]
        simulated = max(as_factor(entry.simulated, kind), FLOOR)
        listed.append((words, as_factor(stated, kind), simulated, band, entry))
    if not listed:
        return None
    with styled():
        figure = new_figure((11.5, 5.0))
        axes = figure.add_subplot()
        for place, (_, published, simulated, (low, high), entry) in enumerate(listed):
            colour, marker, word = RIGHT if entry.verdict == "right" else WRONG
            axes.fill_between(
                [place - 0.34, place + 0.34],
                low,
                high,
                color=BAND,
                alpha=0.3,
                linewidth=0,
                label="" if place else "tolerance",
            )
            axes.plot(
                [place - 0.3, place + 0.3],
                [published] * 2,
                color="#222222",
                linewidth=2.4,
                label="" if place else "published",
            )
            axes.plot(
                [place],
                [simulated],
                marker=marker,
                color=colour,
                markersize=11,
                linestyle="none",
            )
            axes.annotate(
                f"{word}\n{number_text(published)} → {number_text(simulated)}",
                (place, 0.02),
                xycoords=("data", "axes fraction"),
                ha="center",
                va="bottom",
                fontsize=10,
                color=colour,
            )
        axes.axhline(1.0, color="#444444", linewidth=1)
        axes.set_yscale("log")
        shown = [value for _, *pair, _, _ in listed for value in pair]
        axes.set_ylim(min(shown) / 4, max(shown) * 2.2)
        axes.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        axes.minorticks_off()
        axes.set_xticks(
            range(len(listed)), [words for words, *_ in listed], rotation=15
        )
        axes.set(
            ylabel="RS(10,4) / 3-replication",
            title="Fig 1  RS(10,4) as a factor of 3-replication",
        )
        for colour, marker, word in (RIGHT, WRONG):
            axes.plot(
                [],
                [],
                marker=marker,
                color=colour,
                linestyle="none",
                label=f"simulated, {word}",
            )
        axes.legend(loc="upper left", ncols=4, fontsize=10)
    words = "; ".join(
        f"{words} {number_text(p)}, simulated {number_text(s)} ({e.verdict}, {e.claim.role})"
        for words, p, s, _, e in listed
    )
    return CaptionedFigure(
        figure,
        f"Figure 1 of the paper, RS(10,4) over 3-replication as published: {words}.",
    )
