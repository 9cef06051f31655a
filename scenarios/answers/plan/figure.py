"""Draw the candidates of a plan: cost over capacity, growth until full, latency and rebuild time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any, Final, NamedTuple

from stripesim.scenarios.answers.plan.candidates import with_unit
from stripesim.scenarios.forms.prices import COST_UNIT
from stripesim.scenarios.schema.tables import PlanSpec
from stripesim.scenarios.schema.units import (
    bytes_text,
    duration_text,
    duration_unit,
    number_text,
)
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn_all
from stripesim.scenarios.show.figures.specification import (
    BESIDE,
    LINES,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    line_at,
    series_style,
)

#: Narrow enough to be legible on a phone.
_SIZE_INCHES: Final = (5.6, 4.1)
#: Height of a bar, and of a line of its name above it.
_BAR_INCHES: Final = 0.3
_LINE_INCHES: Final = 0.22
#: Letters of a name that fit on a line.
_NAME_LETTERS: Final = 58
#: Length of axes of points, over the last point.
_MARGIN: Final = 1.06
#: Length of the axis of bars, over the longest bar: room for its value.
_ROOM: Final = 1.3
_DAYS_PER_YEAR: Final = 365.25
_TERA: Final = 1e12
#: Most candidates in the figure of growth, cheapest first.
_GROWING_MAX: Final = 5
# Keys that are part of a candidate's short name.
_NAMED: Final = ("hosts", "osds_per_host")

#: A candidate as the plan's document describes it.
CandidateRow = Mapping[str, Any]


def draw_plan(
    plan: PlanSpec, document: Mapping[str, Any]
) -> dict[str, CaptionedFigure]:
    """Draw the pictures of a plan.

    Parameters
    ----------
    plan
        The table ``[plan]``, with the requirements.
    document
        That of `stripesim.scenarios.answers.plan.plan.make_plan`.

    Returns
    -------
    dict
        File stem → figure: ``plan-cost``, ``plan-growth`` (if the plan has a growth), ``plan-pgs``,
        ``plan-p99`` and ``plan-rebuild``. Figures without any value are left out.
    """
    return drawn_all(plan_figures(plan, document))


def plan_figures(plan: PlanSpec, document: Mapping[str, Any]) -> dict[str, FigureSpec]:
    """Specify the pictures of `draw_plan`."""
    figures = {}
    sized = [one for one in document["candidates"] if _safe_bytes(one)]
    if sized:
        figures["plan-cost"] = _cost_figure(plan, document, sized)
    growing = _growing(document, sized)
    if plan.growth_bytes_per_day and growing:
        figures["plan-growth"] = _growth_figure(plan, document, growing)
    if document.get("placement") is not None:
        figures["plan-pgs"] = placement_figure([document["placement"]])
    for stem, specify in (("plan-p99", _p99_figure), ("plan-rebuild", _rebuild_figure)):
        figure = specify(plan, document)
        if figure is not None:
            figures[stem] = figure
    return figures


def candidate_name(one: CandidateRow, varied: Sequence[str] = ()) -> str:
    """Name a candidate by scheme, hosts and OSDs, and by the other keys that the plan varies.

    >>> one = {"scheme": "rs:4,2", "hosts": 6, "osds_per_host": 8, "pg_num": 512}
    >>> candidate_name(one, ["hosts", "pg_num"])
    'RS(4,2), 6 × 8, 512 PGs'
    """
    short = f"{scheme_label(one['scheme'])}, {one['hosts']} × {one['osds_per_host']}"
    further = [with_unit(key, one[key]) for key in varied if key not in _NAMED]
    return ", ".join([short, *further])


def _cost_figure(
    plan: PlanSpec, document: Mapping[str, Any], sized: Sequence[CandidateRow]
) -> FigureSpec:
    """Specify cost over safe capacity, with the front of candidates that may meet the requirements."""
    is_priced = all(one["cost"] is not None for one in sized)
    height = _cost if is_priced else _raw_tb
    quantity = "Cost" if is_priced else "Raw capacity"
    cost_max = plan.cost_max if is_priced else None
    layers = [
        *_front(sized, height),
        *_marks(sized, height, schemes_of(document)),
        *_ring(document["recommended"], height),
        *_limits(plan.held_bytes, cost_max),
    ]
    widths = [_safe_tb(one) for one in sized]
    heights = [height(one) for one in sized]
    if plan.held_bytes is not None:
        widths.append(plan.held_bytes / _TERA)
    if cost_max is not None:
        heights.append(cost_max)
    panel = PanelSpec(
        title=f"{quantity} over usable capacity",
        layers=layers,
        x=AxisSpec(label="usable, safe [TB]", low=0, high=_MARGIN * max(widths)),
        y=AxisSpec(
            label=f"cost [{COST_UNIT}]" if is_priced else "raw capacity [TB]",
            low=0,
            high=_MARGIN * max(heights),
        ),
    )
    caption = (
        f"{quantity} over the capacity that is safe with a failure domain gone. Ring: recommended. Open: "
        "fails a requirement. Grey steps: candidates that may meet all requirements, and that no other such "
        "candidate beats in both. Dotted: required."
    )
    return FigureSpec(size=_SIZE_INCHES, panels=[panel], caption=caption)


def _cost(one: CandidateRow) -> float:
    cost: float = one["cost"]
    return cost


def _raw_tb(one: CandidateRow) -> float:
    raw: float = one["capacity"]["raw_bytes"] / _TERA
    return raw


def _front(
    sized: Sequence[CandidateRow], height: Callable[[CandidateRow], float]
) -> Iterator[LayerSpec]:
    """Yield the front of the candidates that may meet the requirements, if it is a line."""
    front = front_of([one for one in sized if not _is_out(one)], height)
    if len(front) < 2:
        return
    style: dict[str, Any] = {
        "color": "#888888",
        "linewidth": 1.2,
        "drawstyle": "steps-pre",
    }
    yield LayerSpec(
        mark="line",
        x=[_safe_tb(one) for one in front],
        y=[height(one) for one in front],
        label="Pareto front",
        style={**style, "zorder": 1.5},
    )


def _marks(
    sized: Sequence[CandidateRow],
    height: Callable[[CandidateRow], float],
    schemes: Sequence[str],
) -> Iterator[LayerSpec]:
    """Yield a mark for each candidate, open if it fails a requirement, and the legend's filled ones."""
    for number, scheme in enumerate(schemes):
        style: dict[str, Any] = {**series_style(number), "markersize": 8}
        yield LayerSpec(
            mark="points", label=scheme_label(scheme), style=_unlined(style)
        )
    for one in sized:
        style = dict(series_style(schemes.index(one["scheme"])))
        fill_colour = "white" if _is_out(one) else style["color"]
        look: dict[str, Any] = {"markersize": 8, "markeredgewidth": 1.4, "zorder": 3}
        look |= {"markerfacecolor": fill_colour, "clip_on": False}
        yield LayerSpec(
            mark="points",
            x=[_safe_tb(one)],
            y=[height(one)],
            style=_unlined({**style, **look}),
        )


def _unlined(style: Mapping[str, Any]) -> dict[str, Any]:
    return {**style, "linestyle": "none"}


def _ring(
    best: CandidateRow | None, height: Callable[[CandidateRow], float]
) -> Iterator[LayerSpec]:
    """Yield a ring around the recommended candidate."""
    if best is None:
        return
    look: dict[str, Any] = {
        "marker": "o",
        "markersize": 17,
        "fillstyle": "none",
        "color": "#222222",
    }
    yield LayerSpec(
        mark="points",
        x=[_safe_tb(best)],
        y=[height(best)],
        style={**look, "markeredgewidth": 1.8, "zorder": 4, "clip_on": False},
    )


def _limits(usable_bytes: float | None, cost_max: float | None) -> Iterator[LayerSpec]:
    """Yield the required capacity and the largest cost."""
    if usable_bytes is not None:
        yield _required(usable_bytes / _TERA)
    if cost_max is not None:
        yield _required(cost_max, sideways=True)


def _required(value: float, *, sideways: bool = False) -> LayerSpec:
    look: dict[str, Any] = {"color": "#666666", "linewidth": 1.2, "linestyle": ":"}
    return line_at(value, sideways=sideways, zorder=1.4, **look)


def front_of(
    candidates: Sequence[CandidateRow], height: Callable[[CandidateRow], float]
) -> list[CandidateRow]:
    """Return the candidates that no other one beats in capacity and height, by capacity."""
    front: list[CandidateRow] = []
    # From the largest capacity down, each step must be cheaper.
    for one in sorted(candidates, key=lambda each: (-_safe_tb(each), height(each))):
        if not front or height(one) < height(front[-1]):
            front.append(one)
    return front[::-1]


def _growing(
    document: Mapping[str, Any], sized: Sequence[CandidateRow]
) -> list[CandidateRow]:
    """Return the recommended candidate and the next cheapest ones that meet all requirements."""
    best = document["recommended"]
    meeting = [one for one in sized if one["meets"] and one is not best]
    meeting.sort(key=lambda one: one["cost"] or 0.0)
    first = [] if best is None else [best]
    return [*first, *meeting][:_GROWING_MAX]


def _growth_figure(
    plan: PlanSpec, document: Mapping[str, Any], growing: Sequence[CandidateRow]
) -> FigureSpec:
    """Specify the filled part of each candidate over years, until it is full."""
    per_year = (plan.growth_bytes_per_day or 0.0) * _DAYS_PER_YEAR
    stored = plan.stored_bytes or 0.0
    full, nearfull = _fill_ratios(growing[0])
    schemes = schemes_of(document)
    layers: list[LayerSpec] = []
    ends = []
    years_most = 0.0
    for place, one in enumerate(growing):
        name = candidate_name(one, document["varied"])
        capacity = one["capacity"]
        # Of raw capacity, for each byte of clients.
        per_byte = full / capacity["usable_bytes_full"]
        years_full = (full / per_byte - stored) / per_year
        years_safe = (capacity["usable_bytes_safe"] - stored) / per_year
        ends.append(f"{name} {number_text(max(0.0, years_safe))}")
        if years_full <= 0:
            continue
        years_most = max(years_most, years_full)
        # The scheme's colour, and a line of its own.
        before = [each["scheme"] for each in growing[:place]]
        colour = series_style(schemes.index(one["scheme"]))["color"]
        line = LINES[before.count(one["scheme"]) % len(LINES)]
        width = 2.4 if one is document["recommended"] else 1.5
        layers.append(
            LayerSpec(
                mark="line",
                x=[0, years_full],
                y=[100 * stored * per_byte, 100 * full],
                label=fill(name, _NAME_LETTERS),
                style={"color": colour, "linestyle": line, "linewidth": width},
            )
        )
        if years_safe > 0:
            safe = 100 * capacity["usable_bytes_safe"] * per_byte
            dot = {"marker": "o", "markersize": 8, "color": colour}
            layers.append(LayerSpec(mark="points", x=[years_safe], y=[safe], style=dot))
    for ratio, words in ((nearfull, "nearfull"), (full, "full")):
        layers += _threshold(100 * ratio, f"{words}, {100 * ratio:.0f} %")
    panel = PanelSpec(
        title="Growth until full",
        layers=layers,
        x=AxisSpec(label="time [years]", low=0, high=1.05 * years_most or None),
        y=AxisSpec(label="fill of the fullest OSD [%]", low=0, high=104),
    )
    growth = bytes_text(plan.growth_bytes_per_day)
    caption = (
        f"Fill of the fullest OSD with {bytes_text(stored)} at first and {growth} more each day. Dot: "
        "beyond it, losing the largest failure domain makes other OSDs nearfull. Years until there: "
        f"{'; '.join(ends)}."
    )
    return FigureSpec(size=_SIZE_INCHES, panels=[panel], caption=caption)


def _fill_ratios(one: CandidateRow) -> tuple[float, float]:
    """Return the ratios at which OSDs are full and nearfull."""
    left = {step["name"]: step["left_bytes"] for step in one["capacity"]["waterfall"]}
    return left["full"] / left["raw"], left["nearfull"] / left["largest domain gone"]


def _threshold(percent: float, words: str) -> Iterator[LayerSpec]:
    """Yield a line at a fill, with its name at its right end."""
    yield line_at(percent, sideways=True, color="#666666", linestyle=":")
    look = {"lift": (-3, 3), "ha": "right", "xycoords": BESIDE, "color": "#444444"}
    style = {**look, "fontsize": 10.5, "halo": True}
    yield LayerSpec(mark="text", x=[1], y=[percent], texts=[words], style=style)


def _p99_figure(plan: PlanSpec, document: Mapping[str, Any]) -> FigureSpec | None:
    simulated = [
        one
        for one in document["candidates"]
        if one["latency_p99_ns"] is not None and one["iops"] is not None
    ]
    if not simulated:
        return None
    ends = [_p99_ends(one) for one in simulated]
    intervals = LayerSpec(
        mark="whiskers",
        y=range(len(ends)),
        low=[low_ns / 1e6 for low_ns, _ in ends],
        high=[high_ns / 1e6 for _, high_ns in ends],
        sideways=True,
        style={"color": "#222222"},
    )
    rate = "as the workload states"
    if plan.rate_per_s is not None:
        rate = f"at {number_text(plan.rate_per_s)} requests/s"
    required = ""
    if plan.p99_ms is not None:
        required = f" Required: at most {number_text(plan.p99_ms)} ms."
    return _bars_figure(
        document,
        [
            _CandidateBar(
                one,
                one["latency_p99_ns"] / 1e6,
                f"{number_text(one['latency_p99_ns'], 1e-6)} ms",
            )
            for one in simulated
        ],
        title="99th percentile of latency",
        label="p99 [ms]",
        required=plan.p99_ms,
        intervals=intervals,
        caption=f"99th percentile of latency {rate}, with its 95 % interval.{required}",
    )


def _p99_ends(one: Mapping[str, Any]) -> tuple[float, float]:
    """Return the interval of a candidate's p99 from 0 on [ns], or the value twice if it has none."""
    if one["latency_p99_low_ns"] is None or one["latency_p99_high_ns"] is None:
        return one["latency_p99_ns"], one["latency_p99_ns"]
    return max(0.0, one["latency_p99_low_ns"]), one["latency_p99_high_ns"]


def _rebuild_figure(plan: PlanSpec, document: Mapping[str, Any]) -> FigureSpec | None:
    known = [one for one in document["candidates"] if one["rebuild_s"] is not None]
    if not known:
        return None
    size_s, unit = duration_unit(max(one["rebuild_s"] for one in known))
    most = None
    required = ""
    if plan.rebuild_s is not None:
        most = plan.rebuild_s / size_s
        required = f" Required: at most {duration_text(plan.rebuild_s)}."
    return _bars_figure(
        document,
        [
            _CandidateBar(
                one,
                one["rebuild_s"] / size_s,
                f"{number_text(one['rebuild_s'] / size_s)} {unit}",
            )
            for one in known
        ],
        title="Rebuild of a lost OSD",
        label=f"time [{unit}]",
        required=most,
        caption="Time that an otherwise idle cluster takes to rebuild an OSD at the nearfull ratio, "
        f"detection not included.{required}",
    )


def placement_figure(choices: Sequence[Mapping[str, Any]]) -> FigureSpec:
    """Specify a bar for the usable bytes of each setting of placement groups and balancer."""
    names, values, colours = [], [], []
    for choice in choices:
        for index, option in enumerate(choice["options"]):
            deviation = option["max_deviation"]
            balancer = (
                "no balancer" if deviation is None else f"balanced to ±{deviation}"
            )
            if option["is_present"]:
                balancer += ", now"
            star = " ★" if index == choice["recommended"] else ""
            pool = f"{choice['pool']}: " if len(choices) > 1 else ""
            names.append(f"{pool}{option['pg_num']:,} PGs, {balancer}{star}")
            usable_bytes = option["usable_bytes_safe"] or option["usable_bytes_full"]
            values.append((usable_bytes or 0.0) / _TERA)
            style = 1 if option["is_present"] else 0
            colours.append(series_style(style)["color"])
    positions = list(range(len(names)))
    panel = PanelSpec(
        title="Usable bytes by placement",
        layers=[
            LayerSpec(
                mark="bars",
                x=positions,
                y=values,
                sideways=True,
                style={"color": colours},
            )
        ],
        x=AxisSpec(label="usable [TB]", low=0, high=_MARGIN * max(*values, 1e-12)),
        y=AxisSpec(
            ticks=positions, names=names, low=len(names) - 0.5, high=-0.5, size=9
        ),
        grid=False,
    )
    return FigureSpec(
        size=(_SIZE_INCHES[0], 1.4 + _BAR_INCHES * len(names)),
        panels=[panel],
        caption=(
            "Usable client data with a failure domain gone, or at the full ratio where a pool cannot heal, "
            "for numbers of placement groups, with no balancer or with one that leaves so many groups more "
            "or fewer on an OSD. Orange: as now. ★: recommended."
        ),
    )


class _CandidateBar(NamedTuple):
    """A candidate, the length of its bar, and the text at the end of the bar."""

    candidate: CandidateRow
    length: float
    text: str


def _bars_figure(
    document: Mapping[str, Any],
    bars: Sequence[_CandidateBar],
    *,
    title: str,
    label: str,
    required: float | None,
    caption: str,
    intervals: LayerSpec | None = None,
) -> FigureSpec:
    """Specify a bar with its value for each candidate below its name, from top to bottom."""
    schemes = schemes_of(document)
    best = document["recommended"]
    names = [
        fill(
            candidate_name(one, document["varied"]) + (" ★" if one is best else ""),
            _NAME_LETTERS,
        )
        for one, _, _ in bars
    ]
    lines = max(name.count("\n") for name in names) + 1
    row_inches = _BAR_INCHES + lines * _LINE_INCHES
    thick = _BAR_INCHES / row_inches
    positions = range(len(bars))
    colours = [
        series_style(schemes.index(one["scheme"]))["color"] for one, _, _ in bars
    ]
    ends = [bar.length for bar in bars]
    layers = [
        LayerSpec(
            mark="bars",
            x=positions,
            y=ends,
            sideways=True,
            style={"color": colours, "thick": thick, "zorder": 2},
        )
    ]
    if intervals is not None:
        ends = [max(pair) for pair in zip(ends, intervals.high, strict=True)]
        layers.append(intervals)
    beside = {
        "lift": (5, 0),
        "ha": "left",
        "va": "center",
        "fontsize": 12,
        "halo": True,
    }
    above = {"lift": (2, 2), "ha": "left", "va": "bottom", "fontsize": 11, "halo": True}
    tops = [place - thick / 2 for place in positions]
    zeros = [0.0] * len(names)
    layers += [
        LayerSpec(
            mark="text",
            x=ends,
            y=positions,
            texts=[bar.text for bar in bars],
            style=beside,
        ),
        LayerSpec(mark="text", x=zeros, y=tops, texts=names, style=above),
    ]
    high = _ROOM * max(ends)
    # A requirement far off would leave the bars too short to compare.
    if required is not None and required <= 3 * max(ends):
        layers.append(_required(required))
        high = max(high, 1.05 * required)
    panel = PanelSpec(
        title=title,
        layers=layers,
        x=AxisSpec(label=label, low=0, high=high),
        y=AxisSpec(ticks=(), low=len(names) - 1 + thick, high=-1 + thick / 2),
        grid=False,
    )
    size = (_SIZE_INCHES[0], 1.3 + row_inches * len(names))
    return FigureSpec(size=size, panels=[panel], caption=caption)


def _is_out(one: CandidateRow) -> bool:
    """Return True if a candidate is known to fail a requirement."""
    return any(verdict["state"] == "failed" for verdict in one["verdicts"])


def schemes_of(document: Mapping[str, Any]) -> list[str]:
    """Return the schemes of a plan in the order of their marks."""
    return list(dict.fromkeys(one["scheme"] for one in document["candidates"]))


def _safe_bytes(one: CandidateRow) -> float | None:
    safe: float | None = one["capacity"]["usable_bytes_safe"]
    return safe


def _safe_tb(one: CandidateRow) -> float:
    return (_safe_bytes(one) or 0.0) / _TERA
