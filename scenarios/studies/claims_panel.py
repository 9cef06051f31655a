"""A panel of claims: published and simulated values, tolerance bands, and verdicts as marks."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from stripesim.calibration.ledger.claims import COUNTED_ROLES
from stripesim.calibration.ledger.verdicts import Entry
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.specification import (
    BESIDE,
    CLAIMS_ROLE,
    AxisSpec,
    LayerSpec,
    PanelSpec,
    line_at,
)

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


def claims_panel(entries: Sequence[Entry]) -> PanelSpec:
    """Specify a line per claim: its statement, then simulated over published on a logarithmic axis."""
    layers = [_statements(entries), *_verdicts(entries)]
    has_ratio = any(ratio_of(entry) is not None for entry in entries)
    if has_ratio:
        layers = [line_at(1.0), *layers]
    for line, entry in enumerate(entries):
        layers += _ratio(entry, line)
    return PanelSpec(
        layers=layers,
        x=AxisSpec(
            label="simulated / published",
            scale="log",
            ticks=[0.25, 0.5, 1, 2, 4],
            names=["¼", "½", "1", "2", "4"],
            low=LOW,
            high=HIGH,
            size=10,
        ),
        y=AxisSpec(ticks=(), low=len(entries) - 0.5, high=-0.5),
        grid=False,
        frame="bottom" if has_ratio else "",
        role=CLAIMS_ROLE,
    )


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
    number = f"claim {entry.claim.id[-3:]}"
    if entry.error is None or not math.isfinite(entry.error):
        return number
    if entry.error_kind != "relative":
        return f"{number} ({entry.error:+.3g})"
    side = "high" if entry.error > 0 else "low"
    return f"{number} (simulated {100 * abs(entry.error):.0f} % too {side})"


def _colour(entry: Entry) -> str:
    if entry.claim.role not in COUNTED_ROLES:
        return UNCOUNTED
    return (RIGHT if entry.verdict == "right" else WRONG)[0]


def _ratio(entry: Entry, line: int) -> Iterator[LayerSpec]:
    """Yield simulated over published as a mark on the tolerance band."""
    ratio = ratio_of(entry)
    if ratio is None:
        return
    if entry.tolerance is not None:
        low = LOW if entry.claim.compare == "at-most" else max(LOW, 1 - entry.tolerance)
        yield LayerSpec(
            mark="boxes",
            y=[line],
            low=[low],
            high=[min(HIGH, 1 + entry.tolerance)],
            style={"facecolors": BAND, "alpha": 0.3, "thick": 0.64, "zorder": 1},
        )
    _, marker, _ = RIGHT if entry.verdict == "right" else WRONG
    if ratio > HIGH:
        marker = ">"
    if ratio < LOW:
        marker = "<"
    look = {"marker": marker, "color": _colour(entry), "markersize": 9, "zorder": 4}
    look["fillstyle"] = "full" if entry.claim.role == "held-out" else "none"
    yield LayerSpec(
        mark="points",
        x=[min(max(ratio, LOW), HIGH)],
        y=[line],
        style={**look, "clip_on": False, "markeredgewidth": 1.6},
    )


def _statements(entries: Sequence[Entry]) -> LayerSpec:
    """Write statement and numbers to the left of each line."""
    look = {"ha": "right", "va": "center", "fontsize": 8.5, "linespacing": 1.1}
    return LayerSpec(
        mark="text",
        x=[0] * len(entries),
        y=range(len(entries)),
        texts=[_statement(entry) for entry in entries],
        style={**look, "lift": (-8, 0), "xycoords": BESIDE},
    )


def _statement(entry: Entry) -> str:
    claim = entry.claim
    role = "" if claim.role == "held-out" else f" · {claim.role}"
    statement = textwrap.wrap(claim.statement, STATEMENT_WIDTH)[:2]
    numbers = f"{claim.id[-3:]}:  {numbers_text(entry)}{role}"
    if entry.verdict == "right" and entry.reason is not None:
        numbers += " · above the bound"
    return "\n".join([*statement, numbers])


def _verdicts(entries: Sequence[Entry]) -> Iterator[LayerSpec]:
    """Yield the verdict to the right of each line."""
    for line, entry in enumerate(entries):
        look = {"fontsize": 9.5, "color": _colour(entry), "ha": "left", "va": "center"}
        if entry.claim.role in COUNTED_ROLES:
            look["weight"] = "bold"
        yield LayerSpec(
            mark="text",
            x=[1],
            y=[line],
            texts=[entry.verdict],
            style={**look, "lift": (10, 0), "xycoords": BESIDE},
        )
