"""Draw what both options show in simulations: load curve, failure, and added hosts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from markupsafe import Markup

from stripesim.scenarios.schema.units import bytes_text, duration_text, number_text
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    LayerSpec,
    PanelSpec,
)
from stripesim.sim.observe.resource_words import limit_words
from stripesim.web.jobs import Job
from stripesim.web.options import PlanOption
from stripesim.web.picture_parts import (
    BarRow,
    Picture,
    log_axis,
    names_of,
    paired_bars,
)
from stripesim.web.svg import (
    WIDTH,
    drawing,
    element,
    mark,
    panel_svg,
    round_up,
    short,
    text,
)

#: What fails, by the value of the form.
_FAILING: Final = {"host": "a host", "OSD": "an OSD", "site": "a site"}
#: Events of a failure that the timeline marks, with their labels.
_EVENTS: Final[Mapping[str, str]] = {"failed": "fails", "out": "out"}
_LEFT: Final = 40.0
_RIGHT: Final = WIDTH - 8.0
#: Left, right, bottom and top of panels.
_CURVE_BOX: Final = (_LEFT, _RIGHT, 190.0, 24.0)
_LATENCY_BOX: Final = (_LEFT, _RIGHT, 118.0, 24.0)
_GROUPS_BOX: Final = (_LEFT, _RIGHT, 226.0, 168.0)
#: Latencies of a load curve, with the style of the line of each.
_LATENCIES: Final[Mapping[str, str]] = {"p50_ns": "median", "p99_ns": "tail"}
#: Points of a load curve, each as `stripesim.web.experiments.CurvePoint` writes it.
Points = Sequence[Mapping[str, Any]]


def simulated_pictures(job: Job) -> list[Picture]:
    """Draw the simulations of a job, except for its load curve."""
    return [failure_timeline(job), added_hosts(job)]


def load_curve(options: Mapping[str, PlanOption], job: Job | None = None) -> Picture:
    """Draw median and 99th percentile of latency over throughput, as far as they are simulated."""
    names = names_of(options)
    points: dict[str, Points] = {side: [] for side in names}
    problems = dict.fromkeys(names, "")
    if job is not None:
        points = {side: job.of("curve", side) for side in names}
        problems = {side: job.problem("curve", side) for side in names}
    pending = "being simulated"
    if job is not None and job.over:
        pending = "not simulated"
    bounds = {
        side: option.answers.bounds[0].iops
        for side, option in options.items()
        if option.answers and option.answers.bounds
    }
    sentences = [
        _curve_words(
            names[side], points[side], problems[side], pending, bounds.get(side)
        )
        for side in names
    ]
    shown = {side: _without_sketch(of_side) for side, of_side in points.items()}
    return Picture(
        key="curve",
        title="Load curve",
        answer=". ".join(sentences) + ".",
        svg=_curve_drawing(names, shown, bounds, pending),
        columns=("option", "offered [1/s]", "served [1/s]", "p50 [ms]", "p99 [ms]"),
        rows=[
            (
                names[side] + _point_note(one),
                number_text(one["offered_iops"]),
                number_text(one["iops"]),
                number_text(one["p50_ns"], 1e-6),
                number_text(one["p99_ns"], 1e-6),
            )
            for side, of_side in shown.items()
            for one in sorted(of_side, key=lambda one: one["offered_iops"])
        ],
        source="Poisson arrivals, two runs for each rate. Vertical lines are upper bounds by the "
        "busiest resource. A saturated run may serve a little more, because requests pile up at the busiest "
        "OSD for long; the bound is stated then. Open marks: the latency still rises through the run. Rates "
        "past saturation are in the table only: their latency grows with the length of the run. "
        "`stripesim load` simulates more runs and gives intervals.",
    )


def _without_sketch(points: Points) -> Points:
    """Return the points of a curve, or those of its sketch until the curve has as many."""
    curve = [one for one in points if one["saturation_iops"] is not None]
    sketch = [one for one in points if one["saturation_iops"] is None]
    return curve if len(curve) >= len(sketch) else sketch


def _curve_words(
    name: str,
    points: Points,
    problem: str,
    pending: str,
    bound_per_s: float | None,
) -> str:
    """Describe saturation and knee of a curve, or why it has no points or not all.

    While requests pile up at the busiest OSD, which takes long, a run serves a little more than the bound.
    """
    if not points:
        return f"{name}: {problem or pending}"
    last = points[-1]
    if last["saturation_iops"] is None:
        return f"{name}: a sketch, one run for each rate ({problem or 'the curve follows'})"
    saturation_per_s = last["saturation_iops"]
    sentence = f"{name} saturates at {short(saturation_per_s)} requests/s"
    if bound_per_s is not None and saturation_per_s > bound_per_s:
        sentence = f"{name} saturates at its bound, {short(bound_per_s)} requests/s"
    limit = limit_words(last["limited_by"] or "")
    if limit:
        sentence += f" ({limit})"
    if last["knee_iops"]:
        sentence += f", knee at {short(last['knee_iops'])}"
    if problem:
        sentence += f" ({problem})"
    return sentence


def _curve_drawing(
    names: Mapping[str, str],
    points: Mapping[str, Points],
    bounds: Mapping[str, float],
    pending: str,
) -> Markup:
    """Draw the points below saturation, and the bounds."""
    below = {
        side: sorted(
            (one for one in of_side if not one["is_past_saturation"]),
            key=lambda one: one["iops"],
        )
        for side, of_side in points.items()
    }
    parts = [panel_svg(curve_panel(names, below, bounds), _CURVE_BOX)]
    if not any(below.values()):
        parts.append(text((_LEFT + _RIGHT) / 2, 120, pending, "note middle"))
    parts.append(_legend(names, 220.0))
    parts.append(_line_legend(WIDTH - 150, 14.0))
    return drawing("curve", "Latency over throughput of both options", 226, *parts)


def curve_panel(
    names: Mapping[str, str],
    points: Mapping[str, Points],
    bounds: Mapping[str, float],
) -> PanelSpec:
    """Specify median and 99th percentile of latency over throughput, with the bounds."""
    shown = [one for of_side in points.values() for one in of_side]
    latencies_ms = [one[key] / 1e6 for one in shown for key in _LATENCIES]
    reach = max([*bounds.values(), *(one["iops"] for one in shown)], default=1000.0)
    layers = [
        LayerSpec(
            mark="levels",
            x=[bound],
            label=f"{side.upper()} at most {short(bound)}",
            series=side,
        )
        for side, bound in bounds.items()
    ]
    for side, of_side in points.items():
        for key, style in _LATENCIES.items():
            layers += _latency_layers(names[side], side, of_side, key, style)
    return PanelSpec(
        layers=layers,
        x=AxisSpec(label="requests/s", low=0, high=reach * 1.04),
        y=_with_headroom(log_axis("latency [ms]", latencies_ms or [0.1, 10.0])),
    )


def _with_headroom(axis: AxisSpec) -> AxisSpec:
    """Return a logarithmic axis whose upper sixth stays free of lines, for the labels of both bounds."""
    assert axis.low is not None
    assert axis.high is not None
    return replace(axis, high=axis.high * (axis.high / axis.low) ** 0.2)


def _latency_layers(
    name: str, side: str, points: Points, key: str, style: str
) -> list[LayerSpec]:
    """Return a line and its points, open where the run is not steady."""
    x = [one["iops"] for one in points]
    y = [one[key] / 1e6 for one in points]
    layers = [LayerSpec(mark="line", x=x, y=y, series=f"{side} {style}")]
    for is_steady, fill in ((True, "full"), (False, "none")):
        own = [one for one in points if one["is_steady"] == is_steady]
        layers.append(
            LayerSpec(
                mark="points",
                x=[one["iops"] for one in own],
                y=[one[key] / 1e6 for one in own],
                texts=[_point_title(name, one) for one in own],
                series=side,
                style={"fillstyle": fill},
            )
        )
    return layers


def _point_title(name: str, point: Mapping[str, Any]) -> str:
    return (
        f"{name}: {number_text(point['iops'])} requests/s, p50 "
        f"{number_text(point['p50_ns'], 1e-6)} ms, p99 {number_text(point['p99_ns'], 1e-6)} ms"
    )


def _point_note(point: Mapping[str, Any]) -> str:
    if point["saturation_iops"] is None:
        return ", sketch"
    if point["is_past_saturation"]:
        return ", past saturation"
    return "" if point["is_steady"] else ", not steady"


def failure_timeline(job: Job) -> Picture:
    """Draw what clients and placement groups see when a host or an OSD fails."""
    names = names_of(job.options)
    lines = {
        side: job.of("failure", side)[-1] for side in names if job.of("failure", side)
    }
    failing = f"{_FAILING[job.settings.failure]} fails"
    problems = _problems(names, job, "failure")
    if not lines:
        return _without_drawing("failure", f"When {failing}", problems)
    latency, groups = failure_panels(lines)
    parts = [
        panel_svg(latency, _LATENCY_BOX),
        panel_svg(groups, _GROUPS_BOX),
        _step_legend(names, 256.0),
    ]
    answer = ". ".join(
        _failure_words(names[side], line) for side, line in lines.items()
    )
    answer = ". ".join([answer, *problems]) + "."
    rate = short(next(iter(lines.values()))["rate_per_s"])
    return Picture(
        key="failure",
        title=f"When {failing}",
        answer=answer,
        svg=drawing("failure", f"Timeline when {failing}", 262, *parts),
        columns=("option", "time [s]", "p99 of clients [ms]"),
        rows=[
            (names[side], number_text(time_s), number_text(value, 1e-6))
            for side, line in lines.items()
            for time_s, value in zip(line["time_s"], line["p99_ns"], strict=True)
        ],
        source=f"Simulated at {rate} requests/s on at most 16 GiB of data, marked out 3 s after it is down "
        "(600 s by default), so that one picture shows everything. More data takes longer to recover.",
    )


def failure_panels(
    lines: Mapping[str, Mapping[str, Any]],
) -> tuple[PanelSpec, PanelSpec]:
    """Specify p99 of clients, and the share of placement groups that are not clean, over time."""
    end_s = max(line["end_s"] for line in lines.values())
    latencies_ms = [
        value / 1e6 for line in lines.values() for value in line["p99_ns"] if value
    ]
    most = max(share for line in lines.values() for share in line["not_clean"])
    events: dict[str, float] = {}
    for time_s, event in next(iter(lines.values()))["events"]:
        events.setdefault(event, time_s)
    marked = {
        label: events[event] for event, label in _EVENTS.items() if event in events
    }
    latency = PanelSpec(
        x=AxisSpec(low=0, high=end_s),
        y=log_axis("p99 of clients [ms]", latencies_ms or [1.0, 10.0]),
        layers=[
            *(
                _steps(side, line["time_s"], _above_zero(line["p99_ns"]), 1e-6, end_s)
                for side, line in lines.items()
            ),
            # Labels stay above the lines.
            *(
                LayerSpec(mark="levels", x=[time_s], label=label, series="event")
                for label, time_s in marked.items()
            ),
        ],
    )
    groups = PanelSpec(
        x=AxisSpec(label="time [s]", low=0, high=end_s),
        y=AxisSpec(
            label="placement groups not clean [%]",
            low=0,
            high=round_up(max(1.0, 100 * most)),
        ),
        layers=[
            LayerSpec(mark="levels", x=list(marked.values()), series="event"),
            *(
                _steps(side, line["state_s"], line["not_clean"], 100.0, end_s)
                for side, line in lines.items()
            ),
        ],
    )
    return latency, groups


def _above_zero(values: Sequence[float | None]) -> list[float | None]:
    """Leave out what a logarithmic axis cannot show."""
    return [value or None for value in values]


def _steps(
    side: str,
    times_s: Sequence[float],
    values: Sequence[float | None],
    factor: float,
    end_s: float,
) -> LayerSpec:
    """Keep each value until the next one, and the last one until the end."""
    known = [
        (time_s, value * factor)
        for time_s, value in zip(times_s, values, strict=True)
        if value is not None
    ]
    if known:
        known.append((end_s, known[-1][1]))
    return LayerSpec(
        mark="steps",
        x=[time_s for time_s, _ in known],
        y=[value for _, value in known],
        series=f"{side} steps",
        style={"where": "post"},
    )


def _failure_words(name: str, line: Mapping[str, Any]) -> str:
    blocked = f"{name}: {line['blocked']:,} requests blocked"
    if line["clean_after_s"] is None:
        return f"{blocked}, not clean at the end"
    return f"{blocked}, clean after {duration_text(line['clean_after_s'])}"


def added_hosts(job: Job) -> Picture:
    """Draw what adding hosts does to clients, and how much moves for how long."""
    names = names_of(job.options)
    changes = {
        side: job.of("added", side)[-1] for side in names if job.of("added", side)
    }
    count = job.settings.added_hosts
    title = "Add a host" if count == 1 else f"Add {count} hosts"
    problems = _problems(names, job, "added")
    if not changes:
        return _without_drawing("added", title, problems)
    rows = [
        BarRow(
            "data moved",
            {
                side: (change["bytes_moved"], bytes_text(change["bytes_moved"]))
                for side, change in changes.items()
            },
            "bytes",
        ),
        BarRow(
            "time until clean",
            {
                side: (change["duration_s"] or 0.0, duration_text(change["duration_s"]))
                for side, change in changes.items()
            },
            "duration",
        ),
        *_latency_rows(changes),
    ]
    movements = [
        _movement_words(names[side], change) for side, change in changes.items()
    ]
    rate = short(next(iter(changes.values()))["rate_per_s"])
    warnings = dict.fromkeys(
        line for change in changes.values() for line in change["warnings"]
    )
    return paired_bars(
        names,
        rows,
        key="added",
        title=title,
        answer=". ".join([*movements, *problems]) + ".",
        source=f"Movement is exact, from CRUSH; time and latency are simulated on a sample at {rate} "
        f"requests/s. `stripesim rehearse` plays all mClock profiles. {'; '.join(warnings)}",
    )


def _movement_words(name: str, change: Mapping[str, Any]) -> str:
    moved = f"{name} moves {bytes_text(change['bytes_moved'])}"
    if change["duration_s"] is None:
        return f"{moved}, and its numbers below say why the time is not known"
    return f"{moved} in {duration_text(change['duration_s'])}"


def _latency_rows(changes: Mapping[str, Mapping[str, Any]]) -> list[BarRow]:
    """Return the bars of p99 before, during and after each option's change."""
    rows = []
    for phase in ("before", "during", "after"):
        values = {}
        for side, change in changes.items():
            profile = change["profiles"][0]
            clients = profile if phase == "during" else profile[phase]
            p99_ns = clients["latency_p99_ns"]
            values[side] = (p99_ns or 0.0, _milliseconds(p99_ns))
        rows.append(BarRow(f"p99 {phase}", values, "latency"))
    return rows


def _milliseconds(value_ns: float | None) -> str:
    return "–" if value_ns is None else f"{number_text(value_ns, 1e-6)} ms"


def _without_drawing(key: str, title: str, problems: Sequence[str]) -> Picture:
    """Return a picture of nothing, before the simulation has ended or after it has failed."""
    answer = ". ".join(problems) if problems else "To be simulated"
    return Picture(key, title, f"{answer}.", Markup(""), (), (), "")


def _problems(names: Mapping[str, str], job: Job, experiment: str) -> list[str]:
    return [
        f"{name}: {job.problem(experiment, side)}"
        for side, name in names.items()
        if job.problem(experiment, side)
    ]


def _legend(names: Mapping[str, str], y: float) -> Markup:
    """Explain the marks of both options."""
    parts = []
    for x, side, name in _legend_places(names):
        parts.append(mark(x, y - 4, side, name))
        parts.append(text(x + 8, y, name, f"note {side}"))
    return Markup("").join(parts)


def _step_legend(names: Mapping[str, str], y: float) -> Markup:
    """Explain the lines of timelines: that of A is wide, so that it shows where B's covers it."""
    parts = []
    for x, side, name in _legend_places(names):
        parts.append(_line_sample(x - 4, y - 4, 10, f"{side} steps"))
        parts.append(text(x + 8, y, name, f"note {side}"))
    return Markup("").join(parts)


def _legend_places(names: Mapping[str, str]) -> Iterator[tuple[float, str, str]]:
    """Yield the place of each option in a legend, its side and its name."""
    x = 4.0
    for side, name in names.items():
        yield x, side, name
        x += 16 + 6.4 * len(name)


def _line_sample(x: float, y: float, length: float, class_: str) -> Markup:
    return element("line", x1=x, x2=x + length, y1=y, y2=y, class_=f"line key {class_}")


def _line_legend(x: float, y: float) -> Markup:
    """Explain solid and dashed lines."""
    parts = []
    for label, style, offset in (("median", "median", 0.0), ("p99", "tail", 84.0)):
        at = x + offset
        parts.append(_line_sample(at, y - 4, 22, style))
        parts.append(text(at + 27, y, label, "note"))
    return Markup("").join(parts)
