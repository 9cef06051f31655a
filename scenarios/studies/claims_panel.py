"""A panel of claims: published and simulated values, tolerance bands, and verdicts as marks."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from stripesim.calibration.ledger.claims import COUNTED_ROLES
from stripesim.calibration.ledger.verdicts import Entry
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.panels import note

# Blue and vermilion of Okabe and Ito, safe for colour-blind readers; the mark's shape repeats the verdict.
RIGHT: Final = ("#0072B2", "o", "right")
WRONG: Final = ("#D55E00", "X", "wrong")
UNCOUNTED: Final = "#777777"
BAND: Final = "#56B4E9"

#: Ends of the axis, simulated over published. A mark beyond them is an arrow at the edge.
LOW: Final = 0.2
HIGH: Final = 5.0
STATEMENT_WIDTH: Final = 62
LINE_HEIGHT_INCH: Final = 0.56
CLAIMS_WIDTH_INCH: Final = 6.8


def draw_claims(axes: Axes, entries: Sequence[Entry]) -> None:
    """Draw a line per claim: its statement, then simulated over published on a logarithmic axis."""
    if all(ratio_of(entry) is None for entry in entries):
        axes.set_axis_off()
    else:
        axes.axvline(1.0, color="#444444", linewidth=1)
    axes.set(xscale="log", xlim=(LOW, HIGH), ylim=(len(entries) - 0.5, -0.5))
    axes.grid(visible=False)
    for line, entry in enumerate(entries):
        _draw_ratio(axes, entry, line)
        _write_claim(axes, entry, line)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"], fontsize=10)
    axes.minorticks_off()
    axes.set_xlabel("simulated / published", fontsize=10)


def claims_caption(entries: Sequence[Entry]) -> str:
    """Return a sentence on the figure's right and wrong held-out claims."""
    held_out = [entry for entry in entries if entry.claim.role == "held-out"]
    if not held_out:
        return "No held-out claim belongs to this figure."
    wrong = [entry for entry in held_out if entry.verdict == "wrong"]
    right = sum(entry.verdict == "right" for entry in held_out)
    text = f"{right} of {len(held_out)} held-out claims right."
    if not wrong:
        return text
    return f"{text} Wrong: {', '.join(map(_short_error, wrong))}."


def ratio_of(entry: Entry) -> float | None:
    """Return simulated over published, or None if it is not a number."""
    if entry.error is None or entry.error_kind != "relative":
        return None
    return 1 + entry.error


def numbers_text(entry: Entry) -> str:
    """Write a claim's numbers: published, an arrow, simulated, the unit."""
    published = entry.claim.published_text
    if entry.simulated_text is not None:
        return f"“{published}” → “{entry.simulated_text}”"
    unit = f" {entry.claim.unit}" if entry.claim.unit else ""
    if entry.simulated is None:
        return f"{published} → –{unit}"
    numbers = entry.simulated
    ends = numbers if isinstance(numbers, tuple) else (numbers,)
    return f"{published} → {'–'.join(map(number_text, ends))}{unit}"


def _short_error(entry: Entry) -> str:
    number = entry.claim.id[-3:]
    if entry.error is None or not math.isfinite(entry.error):
        return number
    return f"{number} ({entry.error:+.0%})"


def _colour(entry: Entry) -> str:
    if entry.claim.role not in COUNTED_ROLES:
        return UNCOUNTED
    return (RIGHT if entry.verdict == "right" else WRONG)[0]


def _draw_ratio(axes: Axes, entry: Entry, line: int) -> None:
    """Draw simulated over published as a mark on the tolerance band."""
    ratio = ratio_of(entry)
    if ratio is None:
        return
    if entry.tolerance is not None:
        low = LOW if entry.claim.compare == "at-most" else max(LOW, 1 - entry.tolerance)
        width = min(HIGH, 1 + entry.tolerance) - low
        band = Rectangle((low, line - 0.32), width, 0.64, color=BAND, alpha=0.3)
        band.set_zorder(1)
        axes.add_patch(band)
    _, marker, _ = RIGHT if entry.verdict == "right" else WRONG
    if ratio > HIGH:
        marker = ">"
    if ratio < LOW:
        marker = "<"
    axes.plot(
        [min(max(ratio, LOW), HIGH)],
        [line],
        marker=marker,
        color=_colour(entry),
        markersize=9,
        clip_on=False,
        zorder=4,
        fillstyle="full" if entry.claim.role == "held-out" else "none",
        markeredgewidth=1.6,
    )


def _write_claim(axes: Axes, entry: Entry, line: int) -> None:
    """Write statement and numbers to the left of a line, the verdict to its right."""
    claim = entry.claim
    role = "" if claim.role == "held-out" else f" · {claim.role}"
    statement = textwrap.wrap(claim.statement, STATEMENT_WIDTH)[:2]
    numbers = f"{claim.id[-3:]}:  {numbers_text(entry)}{role}"
    if entry.verdict == "right" and entry.reason is not None:
        numbers += " · above the bound"
    beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
    letters: dict[str, Any] = {"ha": "right", "fontsize": 8.5, "linespacing": 1.1}
    text = "\n".join([*statement, numbers])
    note(axes, text, (0, line), (-8, 0), **letters, **beside)
    look: dict[str, Any] = {"fontsize": 9.5, "color": _colour(entry), "ha": "left"}
    if claim.role in COUNTED_ROLES:
        look["weight"] = "bold"
    note(axes, entry.verdict, (1, line), (10, 0), **look, **beside)
