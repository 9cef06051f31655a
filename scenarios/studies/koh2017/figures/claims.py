"""A panel of claims: published beside simulated, the tolerance as a band, the verdict as a mark."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from stripesim.calibration.ledger.verdicts import Entry
from stripesim.scenarios.figures.panels import note
from stripesim.scenarios.schema.units import number_text

# Blue and vermilion of Okabe and Ito, distinguishable by every kind of eye; the mark's shape says it again.
RIGHT: Final = ("#0072B2", "o", "right")
WRONG: Final = ("#D55E00", "X", "wrong")
UNCOUNTED: Final = "#777777"
BAND: Final = "#56B4E9"

#: Ends of the axis, simulated over published; beyond, a mark sits on the edge as an arrow.
LOW: Final = 0.2
HIGH: Final = 5.0
STATEMENT_WIDTH: Final = 62
LINE_HEIGHT_INCH: Final = 0.56


def numbers_text(entry: Entry) -> str:
    """Write a claim's numbers: published, an arrow, simulated, the unit."""
    if entry.simulated_text is not None:
        return f"“{entry.claim.published_text}” → “{entry.simulated_text}”"
    unit = f" {entry.claim.unit}" if entry.claim.unit else ""
    found = entry.simulated
    parts = () if found is None else found if isinstance(found, tuple) else (found,)
    return f"{entry.claim.published_text} → {'–'.join(map(number_text, parts)) or '–'}{unit}"


def ratio_of(entry: Entry) -> float | None:
    """Simulated over published where that is a number, else None."""
    return (
        None
        if entry.error is None or entry.error_kind != "relative"
        else 1 + entry.error
    )


def draw_claims(axes: Axes, entries: Sequence[Entry]) -> None:
    """Draw one line per claim, simulated over published on a logarithmic axis, whose left half has words."""
    if all(ratio_of(entry) is None for entry in entries):
        axes.set_axis_off()
    else:
        axes.axvline(1.0, color="#444444", linewidth=1)
    axes.set(xscale="log", xlim=(LOW, HIGH), ylim=(len(entries) - 0.5, -0.5))
    axes.grid(visible=False)
    for line, entry in enumerate(entries):
        _draw_claim(axes, entry, line)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"], fontsize=10)
    axes.minorticks_off()
    axes.set_xlabel("simulated / published", fontsize=10)


def _draw_claim(axes: Axes, entry: Entry, line: int) -> None:
    colour, marker, _ = RIGHT if entry.verdict == "right" else WRONG
    held_out = entry.claim.role == "held-out"
    counted = held_out or entry.claim.role == "calibration"
    colour = colour if counted else UNCOUNTED
    ratio, slack = ratio_of(entry), entry.tolerance
    if ratio is not None and slack is not None:
        low = LOW if entry.claim.compare == "at-most" else max(LOW, 1 - slack)
        width = min(HIGH, 1 + slack) - low
        axes.add_patch(
            Rectangle((low, line - 0.32), width, 0.64, color=BAND, alpha=0.3, zorder=1)
        )
    if ratio is not None:
        outside = ">" if ratio > HIGH else "<" if ratio < LOW else marker
        axes.plot(
            [min(max(ratio, LOW), HIGH)],
            [line],
            marker=outside,
            color=colour,
            markersize=9,
            clip_on=False,
            zorder=4,
            fillstyle="full" if held_out else "none",
            markeredgewidth=1.6,
        )
    role = "" if held_out else f" · {entry.claim.role}"
    statement = textwrap.wrap(entry.claim.statement, STATEMENT_WIDTH)
    words = "\n".join(
        [*statement[:2], f"{entry.claim.id[-3:]}:  {numbers_text(entry)}{role}"]
    )
    beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
    note(
        axes,
        words,
        (0, line),
        (-8, 0),
        ha="right",
        fontsize=8.5,
        linespacing=1.1,
        **beside,
    )
    look: dict[str, Any] = {
        "fontsize": 9.5,
        "color": colour,
        "weight": "bold" if counted else "normal",
    }
    note(axes, entry.verdict, (1, line), (10, 0), ha="left", **look, **beside)


def claims_caption(entries: Sequence[Entry]) -> str:
    """Say how many of the figure's held-out claims are right, and which are wrong."""
    held = [entry for entry in entries if entry.claim.role == "held-out"]
    if not held:
        return "No held-out claim belongs to this figure."
    right = sum(entry.verdict == "right" for entry in held)
    text = f"{right} of {len(held)} held-out claims right."
    wrong = [
        f"{entry.claim.id[-3:]} ({entry.error:+.0%})"
        if entry.error is not None and math.isfinite(entry.error)
        else entry.claim.id[-3:]
        for entry in held
        if entry.verdict == "wrong"
    ]
    return text + (f" Wrong: {', '.join(wrong)}." if wrong else "")
