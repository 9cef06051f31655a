"""Draw the candidates of a plan: cost over capacity, growth until full, latency and rebuild time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stripesim.scenarios.answers.plan.candidates import with_unit
from stripesim.scenarios.schema.tables import PlanSpec
from stripesim.scenarios.schema.units import (
    bytes_text,
    duration_text,
    number_text,
)
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.panels import (
    COLOURS,
    LINES,
    MARKERS,
    legend_above,
    legend_entries,
    note,
    plain_numbers,
)
from stripesim.scenarios.show.figures.results import (
    CaptionedFigure,
    new_figure,
    styled,
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

Candidate = Mapping[str, Any]


def draw_plan(
    plan: PlanSpec, document: Mapping[str, Any]
) -> dict[str, CaptionedFigure]:
    """Draw the pictures of a plan.

    Parameters
    ----------
    plan
        The table ``[plan]``, with the requirements.
    document
        What `stripesim.scenarios.answers.plan.plan.make_plan` returns.

    Returns
    -------
    dict
        File stem → figure: ``plan-cost``, ``plan-growth`` (if the plan has a growth), ``plan-p99`` and
        ``plan-rebuild``. Figures without any value are left out.
    """
    figures = {}
    sized = [one for one in document["candidates"] if _safe_bytes(one)]
    if sized:
        figures["plan-cost"] = _draw_cost(plan, document, sized)
    growing = _growing(document, sized)
    if plan.growth_bytes_per_day and growing:
        figures["plan-growth"] = _draw_growth(plan, document, growing)
    for stem, draw in (("plan-p99", _draw_p99), ("plan-rebuild", _draw_rebuild)):
        figure = draw(plan, document)
        if figure is not None:
            figures[stem] = figure
    return figures


def candidate_name(one: Candidate, varied: Sequence[str] = ()) -> str:
    """Name a candidate by scheme, hosts and OSDs, and by the other keys that the plan varies.

    >>> one = {"scheme": "rs:4,2", "hosts": 6, "osds_per_host": 8, "pg_num": 512}
    >>> candidate_name(one, ["hosts", "pg_num"])
    'RS(4,2), 6 × 8, 512 PGs'
    """
    short = f"{scheme_label(one['scheme'])}, {one['hosts']} × {one['osds_per_host']}"
    further = [with_unit(key, one[key]) for key in varied if key not in _NAMED]
    return ", ".join([short, *further])


def _draw_cost(
    plan: PlanSpec, document: Mapping[str, Any], sized: Sequence[Candidate]
) -> CaptionedFigure:
    """Draw cost over safe capacity, with the front of candidates that may meet the requirements."""
    is_priced = all(one["cost"] is not None for one in sized)

    def height(one: Candidate) -> float:
        cost: float = one["cost"] if is_priced else one["capacity"]["raw_bytes"] / _TERA
        return cost

    schemes = _schemes(document)
    front = front_of([one for one in sized if not _is_out(one)], height)
    with styled():
        figure = new_figure(_SIZE_INCHES)
        axes = figure.subplots()
        if len(front) > 1:
            axes.plot(
                [_safe_tb(one) for one in front],
                [height(one) for one in front],
                color="#888888",
                linewidth=1.2,
                drawstyle="steps-pre",
                zorder=1.5,
                label="Pareto front",
            )
        for one in sized:
            _mark(axes, one, (_safe_tb(one), height(one)), schemes)
        best = document["recommended"]
        if best is not None:
            _ring(axes, (_safe_tb(best), height(best)))
        if plan.usable_bytes is not None:
            _limit(axes.axvline, plan.usable_bytes / _TERA)
        if plan.cost_max is not None and is_priced:
            _limit(axes.axhline, plan.cost_max)
        wide = max([_safe_tb(one) for one in sized] + list(axes.get_xlim()))
        high = max([height(one) for one in sized] + list(axes.get_ylim()))
        axes.set_xlim(0, _MARGIN * wide)
        axes.set_ylim(0, _MARGIN * high)
        axes.set_title("Cost over capacity", fontsize=12.5)
        axes.set_xlabel("usable, safe [TB]")
        axes.set_ylabel("cost" if is_priced else "raw capacity [TB]")
        plain_numbers(axes.yaxis)
        _legend(figure)
    quantity = "Cost" if is_priced else "Raw capacity"
    caption = (
        f"{quantity} over the capacity that is safe with a failure domain gone. Ring: recommended. Open: "
        "fails a requirement. Grey steps: candidates that may meet all requirements, and that no other such "
        "candidate beats in both. Dotted: required."
    )
    return CaptionedFigure(figure, caption)


def front_of(
    candidates: Sequence[Candidate], height: Callable[[Candidate], float]
) -> list[Candidate]:
    """Return the candidates that no other one beats in capacity and height, by capacity."""
    front: list[Candidate] = []
    # From the largest capacity down, each step must be cheaper.
    for one in sorted(candidates, key=lambda each: (-_safe_tb(each), height(each))):
        if not front or height(one) < height(front[-1]):
            front.append(one)
    return front[::-1]


def _growing(
    document: Mapping[str, Any], sized: Sequence[Candidate]
) -> list[Candidate]:
    """Return the recommended candidate and the next cheapest ones that meet all requirements."""
    best = document["recommended"]
    meeting = [one for one in sized if one["meets"] and one is not best]
    meeting.sort(key=lambda one: one["cost"] or 0.0)
    first = [] if best is None else [best]
    return [*first, *meeting][:_GROWING_MAX]


def _draw_growth(
    plan: PlanSpec, document: Mapping[str, Any], growing: Sequence[Candidate]
) -> CaptionedFigure:
    """Draw the filled part of each candidate over years, until it is full."""
    per_year = (plan.growth_bytes_per_day or 0.0) * _DAYS_PER_YEAR
    stored = plan.stored_bytes or 0.0
    steps = {step["name"]: step for step in growing[0]["capacity"]["waterfall"]}
    full = steps["full"]["left_bytes"] / steps["raw"]["left_bytes"]
    nearfull = (
        steps["nearfull"]["left_bytes"] / steps["largest domain gone"]["left_bytes"]
    )
    schemes = _schemes(document)
    ends = []
    with styled():
        figure = new_figure(_SIZE_INCHES)
        axes = figure.subplots()
        for place, one in enumerate(growing):
            # The scheme's colour, and a line of its own.
            colour = COLOURS[schemes.index(one["scheme"]) % len(COLOURS)]
            before = [each["scheme"] for each in growing[:place]]
            line = LINES[before.count(one["scheme"]) % len(LINES)]
            capacity = one["capacity"]
            # Of raw capacity, for each byte of clients.
            per_byte = full / capacity["usable_bytes_full"]
            years_full = (full / per_byte - stored) / per_year
            years_safe = (capacity["usable_bytes_safe"] - stored) / per_year
            ends.append(
                f"{candidate_name(one, document['varied'])} {number_text(max(0.0, years_safe))}"
            )
            if years_full <= 0:
                continue
            axes.plot(
                [0, years_full],
                [100 * stored * per_byte, 100 * full],
                line,
                color=colour,
                linewidth=2.4 if one is document["recommended"] else 1.5,
                label=candidate_name(one, document["varied"]),
            )
            if years_safe > 0:
                axes.plot(
                    years_safe,
                    100 * capacity["usable_bytes_safe"] * per_byte,
                    marker="o",
                    markersize=8,
                    color=colour,
                    linestyle="none",
                )
        for ratio, words in ((nearfull, "nearfull"), (full, "full")):
            axes.axhline(100 * ratio, color="#666666", linewidth=1, linestyle=":")
            note(
                axes,
                f"{words}, {ratio:.0%}",
                (0, 100 * ratio),
                (3, 3),
                ha="left",
                xycoords=axes.get_yaxis_transform(),
                fontsize=10.5,
                color="#444444",
            )
        axes.set_xlim(0, axes.get_xlim()[1])
        axes.set_ylim(0, 104)
        axes.set_title("Growth until full", fontsize=12.5)
        axes.set_xlabel("years")
        axes.set_ylabel("fill of the fullest OSD [%]")
        _legend(figure)
    growth = bytes_text(plan.growth_bytes_per_day)
    caption = (
        f"Fill of the fullest OSD with {bytes_text(stored)} at first and {growth} more each day. Dot: "
        "beyond it, losing the largest failure domain makes other OSDs nearfull. Years until there: "
        f"{'; '.join(ends)}."
    )
    return CaptionedFigure(figure, caption)


def _draw_p99(plan: PlanSpec, document: Mapping[str, Any]) -> CaptionedFigure | None:
    simulated = [
        one
        for one in document["candidates"]
        if one["latency_p99_ns"] is not None and one["iops"] is not None
    ]
    if not simulated:
        return None
    bars = [
        (
            one,
            one["latency_p99_ns"] / 1e6,
            f"{number_text(one['latency_p99_ns'], 1e-6)} ms",
        )
        for one in simulated
    ]
    ends = [_p99_ends(one) for one in simulated]
    highs = [high_ns / 1e6 for _, high_ns in ends]
    figure, axes = _bars(
        document, bars, "99th percentile of latency", "p99 [ms]", highs
    )
    for place, (low_ns, high_ns) in enumerate(ends):
        axes.hlines(place, low_ns / 1e6, high_ns / 1e6, color="#222222", linewidth=1.6)
    _limit_if_near(axes, plan.p99_ms, max(highs))
    rate = "as the workload states"
    if plan.rate_per_s is not None:
        rate = f"at {number_text(plan.rate_per_s)} requests/s"
    required = ""
    if plan.p99_ms is not None:
        required = f" Required: at most {number_text(plan.p99_ms)} ms."
    caption = f"99th percentile of latency {rate}, with its 95 % interval.{required}"
    return CaptionedFigure(figure, caption)


def _p99_ends(one: Mapping[str, Any]) -> tuple[float, float]:
    """Return the interval of a candidate's p99 [ns], or the value twice if it has none."""
    if one["latency_p99_low_ns"] is None or one["latency_p99_high_ns"] is None:
        return one["latency_p99_ns"], one["latency_p99_ns"]
    return one["latency_p99_low_ns"], one["latency_p99_high_ns"]


def _draw_rebuild(
    plan: PlanSpec, document: Mapping[str, Any]
) -> CaptionedFigure | None:
    bars = [
        (one, one["rebuild_s"] / 3600, duration_text(one["rebuild_s"]))
        for one in document["candidates"]
        if one["rebuild_s"] is not None
    ]
    if not bars:
        return None
    figure, axes = _bars(document, bars, "Rebuild of a lost OSD", "hours")
    required = ""
    if plan.rebuild_s is not None:
        _limit_if_near(axes, plan.rebuild_s / 3600, max(bar[1] for bar in bars))
        required = f" Required: at most {duration_text(plan.rebuild_s)}."
    caption = (
        "Time that an otherwise idle cluster takes to rebuild an OSD at the nearfull ratio, detection not "
        f"included.{required}"
    )
    return CaptionedFigure(figure, caption)


def _bars(
    document: Mapping[str, Any],
    bars: Sequence[tuple[Candidate, float, str]],
    title: str,
    unit: str,
    ends: Sequence[float] = (),
) -> tuple[Figure, Axes]:
    """Draw a bar with its value for each candidate below its name, from top to bottom."""
    schemes = _schemes(document)
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
    highest = max([value for _, value, _ in bars] + list(ends))
    with styled():
        figure = new_figure((_SIZE_INCHES[0], 1.3 + row_inches * len(bars)))
        axes = figure.subplots()
        height = _BAR_INCHES / row_inches
        for place, (one, value, text) in enumerate(bars):
            colour = COLOURS[schemes.index(one["scheme"]) % len(COLOURS)]
            axes.barh(place, value, height=height, color=colour, zorder=2)
            end = max(value, ends[place]) if ends else value
            note(axes, text, (end, place), (5, 0), ha="left", va="center")
            above = (0, place - height / 2)
            note(axes, names[place], above, (2, 2), ha="left", va="bottom", fontsize=11)
        axes.set_yticks([])
        axes.set_ylim(len(bars) - 1 + height, -1 + height / 2)
        axes.grid(visible=False, axis="y")
        axes.set_xlim(0, _ROOM * highest)
        axes.set_title(title, fontsize=12.5)
        axes.set_xlabel(unit)
        plain_numbers(axes.xaxis)
    return figure, axes


def _legend(figure: Figure) -> None:
    """Put a narrow legend above a figure, each label once, in as many columns as fit."""
    by_label = legend_entries(figure)
    labels = [fill(label, _NAME_LETTERS) for label in by_label]
    look = {"fontsize": 11, "handlelength": 1.8, "columnspacing": 1.2}
    legend_above(figure, list(by_label.values()), labels, **look)


def _mark(
    axes: Axes, one: Candidate, point: tuple[float, float], schemes: Sequence[str]
) -> None:
    """Draw a candidate, open if it fails a requirement."""
    number = schemes.index(one["scheme"])
    colour = COLOURS[number % len(COLOURS)]
    axes.plot(
        *point,
        marker=MARKERS[number % len(MARKERS)],
        markersize=8,
        color=colour,
        markerfacecolor="white" if _is_out(one) else colour,
        markeredgewidth=1.4,
        linestyle="none",
        zorder=3,
        label=scheme_label(one["scheme"]),
    )


def _ring(axes: Axes, point: tuple[float, float]) -> None:
    """Mark the recommended candidate."""
    axes.plot(
        *point,
        marker="o",
        markersize=17,
        markerfacecolor="none",
        markeredgecolor="#222222",
        markeredgewidth=1.8,
        linestyle="none",
        zorder=4,
    )


def _limit(draw: Callable[..., Any], value: float) -> None:
    draw(value, color="#666666", linewidth=1.2, linestyle=":", zorder=1.4)


def _limit_if_near(axes: Axes, value: float | None, highest: float) -> None:
    """Draw a requirement, unless it is so far off that the bars would hardly show."""
    if value is None or value > 3 * highest:
        return
    _limit(axes.axvline, value)
    axes.set_xlim(0, max(_ROOM * highest, 1.05 * value))


def _is_out(one: Candidate) -> bool:
    """Return True if a candidate is known to fail a requirement."""
    return any(not line.startswith("uncertain") for line in one["fails"])


def _schemes(document: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(one["scheme"] for one in document["candidates"]))


def _safe_bytes(one: Candidate) -> float | None:
    safe: float | None = one["capacity"]["usable_bytes_safe"]
    return safe


def _safe_tb(one: Candidate) -> float:
    return (_safe_bytes(one) or 0.0) / _TERA
