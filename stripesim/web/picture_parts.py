"""What the pictures of the page share: their parts, and bars for both options.

Each picture says its answer in a sentence, has a table with the same numbers, and says where they come from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from stripesim.scenarios.show.figures.specification import AxisSpec
from stripesim.web.options import PlanOption
from stripesim.web.svg import WIDTH, Scale, bar, drawing, text

Rows = Sequence[Sequence[str]]


class BarRow(NamedTuple):
    """A label with a value and its text for each side. Rows of one `scale` share it."""

    label: str
    pair: Mapping[str, tuple[float, str]]
    scale: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture with its answer, its numbers as a table, and their source."""

    key: str
    title: str
    answer: str
    svg: Markup
    columns: Sequence[str]
    rows: Rows
    source: str


def names_of(options: Mapping[str, PlanOption]) -> dict[str, str]:
    """Return a short name of each valid option: its side and scheme."""
    return {
        side: f"{side.upper()} {option.values['scheme']}"
        for side, option in options.items()
        if option.scenario is not None
    }


def paired_bars(
    names: Mapping[str, str],
    rows: Sequence[BarRow],
    *,
    key: str,
    title: str,
    answer: str,
    source: str,
) -> Picture:
    """Draw a bar of each side for each row."""
    largest: dict[str, float] = {}
    for row in rows:
        values = [value for value, _ in row.pair.values()]
        largest[row.scale] = max(largest.get(row.scale, 1e-12), *values)
    parts = []
    y = 12.0
    for label, pair, scale in rows:
        parts.append(text(0, y, label))
        both = " · ".join(
            f"{side.upper()} {words}" for side, (_, words) in pair.items()
        )
        parts.append(text(WIDTH, y, both, "end"))
        across = Scale(0, largest[scale], 0, WIDTH)
        for side, (value, words) in pair.items():
            y += 4 if side == next(iter(pair)) else 10
            title_of_bar = f"{names[side]}, {label}: {words}"
            parts.append(bar(0, y, across(value), f"fill {side}", title_of_bar))
        y += 26
    return Picture(
        key=key,
        title=title,
        answer=answer,
        svg=drawing(key, title, y - 10, *parts),
        columns=("", *(names[side] for side in names)),
        rows=[
            (label, *(pair[side][1] if side in pair else "–" for side in names))
            for label, pair, _ in rows
        ],
        source=source,
    )


def log_axis(label: str, values: Sequence[float]) -> AxisSpec:
    """Return a logarithmic axis around values."""
    low = min(values)
    high = max(max(values) * 1.3, low * 4)
    return AxisSpec(label=label, scale="log", low=low / 1.3, high=high)
