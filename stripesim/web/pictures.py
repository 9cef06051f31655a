"""Draw the answers to both options: one function for each picture.

Each picture says its answer in a sentence, has a table with the same numbers, and says where they come from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from stripesim.scenarios.cells.bound import resource_words
from stripesim.scenarios.schema.units import bytes_text, duration_text, number_text
from stripesim.web.jobs import Job
from stripesim.web.options import ClosedForms, PlanOption
from stripesim.web.svg import (
    LINE,
    WIDTH,
    Scale,
    SvgAxes,
    bar,
    drawing,
    element,
    mark,
    round_up,
    short,
    text,
)

#: Phases of a request in the order of the stack, with the meaning of each.
_PHASES: Final[Mapping[str, str]] = {
    "client": "client",
    "network": "network",
    "cpu": "processors",
    "coding": "coding",
    "ssd": "drives",
    "pause": "pauses",
    "wait": "waits",
}
#: Events of a failure that the timeline marks, with their labels.
_EVENTS: Final[Mapping[str, str]] = {"failed": "fails", "out": "out"}
_LEFT: Final = 40.0
_RIGHT: Final = WIDTH - 8.0

#: Latencies of a load curve, with the style of the line of each.
_LATENCIES: Final[Mapping[str, str]] = {"p50_ns": "median", "p99_ns": "tail"}

Rows = Sequence[Sequence[str]]
Points = Sequence[Mapping[str, Any]]


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


def closed_form_pictures(options: Mapping[str, PlanOption]) -> list[Picture]:
    """Draw everything that needs no simulation."""
    answers = {
        side: option.answers for side, option in options.items() if option.answers
    }
    if not answers:
        return []
    names = names_of(options)
    drawn = [
        time_by_phase(names, answers),
        limits(names, answers, options),
        capacity(names, answers),
        nines(names, answers),
    ]
    return [picture for picture in drawn if picture is not None]


def simulated_pictures(job: Job) -> list[Picture]:
    """Draw the simulations of a job, except for its load curve."""
    return [failure_timeline(job), added_hosts(job)]


def names_of(options: Mapping[str, PlanOption]) -> dict[str, str]:
    """Return a short name of each valid option: its side and scheme."""
    return {
        side: f"{side.upper()} {option.values['scheme']}"
        for side, option in options.items()
        if option.scenario is not None
    }


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
        _curve_words(names[side], points[side], problems[side], pending)
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
        "busiest resource. Open marks: the latency still rises through the run. Rates past "
        "saturation are in the table only: their latency grows with the length of the run. `stripesim load` "
        "simulates more runs and gives intervals.",
    )


def _without_sketch(points: Points) -> Points:
    """Return the points of a curve, or those of its sketch until the curve has as many."""
    curve = [one for one in points if one["saturation_iops"] is not None]
    sketch = [one for one in points if one["saturation_iops"] is None]
    return curve if len(curve) >= len(sketch) else sketch


def _curve_words(name: str, points: Points, problem: str, pending: str) -> str:
    """Describe saturation and knee of a curve, or why it has no points or not all."""
    if not points:
        return f"{name}: {problem or pending}"
    last = points[-1]
    if last["saturation_iops"] is None:
        return f"{name}: a sketch, one run for each rate ({problem or 'the curve follows'})"
    sentence = f"{name} saturates at {short(last['saturation_iops'])} requests/s"
    limit = resource_words(last["limited_by"] or "")
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
    shown = [one for of_side in below.values() for one in of_side]
    latencies_ms = [one[key] / 1e6 for one in shown for key in _LATENCIES]
    reach = max([*bounds.values(), *(one["iops"] for one in shown)], default=1000.0)
    panel = SvgAxes(
        Scale(0, reach * 1.04, _LEFT, _RIGHT),
        _log_scale(latencies_ms or [0.1, 10.0], 190.0, 24.0),
    )
    parts = [panel.frame("requests/s", "latency [ms]")]
    for row, (side, bound) in enumerate(bounds.items()):
        label = f"{side.upper()} at most {short(bound)}"
        parts.append(panel.vertical(bound, side, label, row))
    for side, of_side in below.items():
        for key, style in _LATENCIES.items():
            ends = [(one["iops"], one[key] / 1e6) for one in of_side]
            if len(ends) > 1:
                parts.append(panel.line(ends, f"{side} {style}"))
            parts += [
                mark(
                    panel.x(one["iops"]),
                    panel.y(one[key] / 1e6),
                    side,
                    _point_title(names[side], one),
                    "" if one["is_steady"] else "open",
                )
                for one in of_side
            ]
    if not shown:
        middle = (panel.x.start + panel.x.end) / 2
        parts.append(text(middle, 120, pending, "note middle"))
    parts.append(_legend(names, 220.0))
    parts.append(_line_legend(WIDTH - 150, 14.0))
    return drawing("curve", "Latency over throughput of both options", 226, *parts)


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


def time_by_phase(
    names: Mapping[str, str], answers: Mapping[str, ClosedForms]
) -> Picture | None:
    """Draw where the time of a lone read and write goes."""
    times_ns = {
        (op, side): answers[side].times_ns[op]
        for op in ("read", "write")
        for side in answers
        if op in answers[side].times_ns
    }
    if not times_ns:
        return None
    totals_ns = {key: sum(phases.values()) for key, phases in times_ns.items()}
    across = Scale(0, max(totals_ns.values()), 0, WIDTH)
    parts = []
    y = 12.0
    for (op, side), phases in times_ns.items():
        total_text = duration_text(totals_ns[op, side] / 1e9)
        label = f"{names[side]}, {op}"
        parts.append(text(0, y, label))
        parts.append(text(WIDTH, y, total_text, "end"))
        x = 0.0
        for phase, meaning in _PHASES.items():
            width = across(phases[phase])
            title = f"{label}: {meaning} {duration_text(phases[phase] / 1e9)}"
            if width:
                parts.append(bar(x, y + 4, width, f"phase-{phase}", title))
            x += width
        y += 30
    shown = [
        phase for phase in _PHASES if any(phases[phase] for phases in times_ns.values())
    ]
    for index, phase in enumerate(shown):
        x = 92.0 * (index % 4)
        line = y + LINE * (index // 4)
        parts.append(bar(x, line - 8, 9, f"phase-{phase}", _PHASES[phase]))
        parts.append(text(x + 13, line, _PHASES[phase], "note"))
    height = y + LINE * ((len(shown) - 1) // 4) + 6
    slowest = [_largest_phase(names, key, times_ns[key]) for key in times_ns]
    answer = ". ".join(slowest) + "."
    return Picture(
        key="time",
        title="Where the time goes",
        answer=answer,
        svg=drawing("time", "Time of one request by phase", height, *parts),
        columns=("phase", *(f"{names[side]}, {op}" for op, side in times_ns)),
        rows=[
            (
                _PHASES[phase],
                *(duration_text(phases[phase] / 1e9) for phases in times_ns.values()),
            )
            for phase in shown
        ],
        source="One request alone on the cluster, whose size does not matter to it, along its critical path. "
        "`stripesim explain` lists every step and the parameters behind it.",
    )


def _largest_phase(
    names: Mapping[str, str], key: tuple[str, str], phases: Mapping[str, int]
) -> str:
    op, side = key
    phase = max(phases, key=lambda name: phases[name])
    share = phases[phase] / max(1, sum(phases.values()))
    return f"{names[side]} {op}: {share:.0%} {_PHASES[phase]}".replace("%", " %")


def limits(
    names: Mapping[str, str],
    answers: Mapping[str, ClosedForms],
    options: Mapping[str, PlanOption],
) -> Picture | None:
    """Draw the rate that each resource sustains."""
    rates: dict[str, dict[str, float]] = {}
    for side, forms in answers.items():
        for bound in forms.bounds:
            rates.setdefault(bound.resource, {})[side] = bound.iops
    if not rates:
        return None
    ordered = sorted(rates.items(), key=lambda item: min(item[1].values()))
    values = [rate for of_sides in rates.values() for rate in of_sides.values()]
    scenarios = [option.scenario for option in options.values() if option.scenario]
    required = scenarios[0].workload.rate_per_s if scenarios else None
    bottom = 30.0 * len(ordered) + 8
    rates_shown = values + ([required] if required else [])
    across = _log_scale(rates_shown, 8.0, WIDTH - 16)
    panel = SvgAxes(across, Scale(0, 1, bottom, 4.0))
    parts = []
    for index, (resource, of_sides) in enumerate(ordered):
        y = 14 + 30.0 * index
        parts.append(text(0, y, resource))
        both = " · ".join(
            f"{side.upper()} {short(rate)}" for side, rate in of_sides.items()
        )
        parts.append(text(WIDTH, y, both, "end"))
        parts.append(
            element(
                "line",
                x1=across.start,
                x2=across.end,
                y1=y + 9,
                y2=y + 9,
                class_="grid",
            )
        )
        parts += [
            mark(
                across(rate),
                y + (7.0 if side == "a" else 11.0),
                side,
                f"{names[side]}, {resource}: {number_text(rate)} requests/s",
            )
            for side, rate in of_sides.items()
        ]
    for tick in across.ticks():
        parts.append(text(across(tick), bottom + LINE, short(tick), "tick middle"))
    parts.append(text(WIDTH, bottom + 2 * LINE, "requests/s", "tick end"))
    if required:
        parts.insert(0, panel.vertical(required, "required", ""))
        parts.append(
            text(0, bottom + 2 * LINE, f"line: required {short(required)}", "tick")
        )
    lowest = [
        f"{names[side]}: {forms.bounds[0].resource} limit it to {short(forms.bounds[0].iops)} requests/s"
        for side, forms in answers.items()
        if forms.bounds
    ]
    answer = ". ".join(lowest) + "."
    return Picture(
        key="limits",
        title="Limits by resource",
        answer=answer,
        svg=drawing(
            "limits",
            "Highest rate of each resource",
            bottom + 2 * LINE + 6,
            *parts,
        ),
        columns=("option", "resource", "requests/s", "why"),
        rows=[
            (names[side], bound.resource, number_text(bound.iops), bound.why)
            for side, forms in answers.items()
            for bound in forms.bounds
        ],
        source="Service times per request and resource, from the parameter sets. Upper bounds: queueing, "
        "wake-ups and syncs lower the served rate.",
    )


def capacity(
    names: Mapping[str, str], answers: Mapping[str, ClosedForms]
) -> Picture | None:
    """Draw the steps from raw to usable capacity."""
    steps = {
        side: {step.name: step for step in forms.capacity.steps}
        for side, forms in answers.items()
        if forms.capacity.steps
    }
    if not steps:
        return None
    rows = [
        BarRow(
            name,
            {
                side: (by_name[name].left_bytes, bytes_text(by_name[name].left_bytes))
                for side, by_name in steps.items()
            },
        )
        for name in next(iter(steps.values()))
    ]
    usable = [
        f"{names[side]}: {bytes_text(by_name['padding'].left_bytes)} of "
        f"{bytes_text(by_name['raw'].left_bytes)}"
        for side, by_name in steps.items()
    ]
    answer = "Usable with room to heal: " + ". ".join(usable) + "."
    return _paired_bars(
        names,
        rows,
        key="capacity",
        title="From raw to usable capacity",
        answer=answer,
        source="; ".join(
            dict.fromkeys(
                f"{names[side]} {step.name}: {step.why}"
                for side, by_name in steps.items()
                for step in by_name.values()
            )
        ),
    )


def nines(
    names: Mapping[str, str], answers: Mapping[str, ClosedForms]
) -> Picture | None:
    """Draw the nines of durability."""
    known = {
        side: forms.nines["nines"]
        for side, forms in answers.items()
        if forms.nines["nines"] is not None
    }
    if not known:
        return None
    rows = [
        BarRow(
            "nines per year",
            {side: (value, number_text(value)) for side, value in known.items()},
        )
    ]
    losses = [
        f"{names[side]} loses data in one of {short(10**value)} years"
        for side, value in known.items()
    ]
    assumptions = dict.fromkeys(
        line for forms in answers.values() for line in forms.nines["assumptions"]
    )
    return _paired_bars(
        names,
        rows,
        key="nines",
        title="Nines of durability",
        answer=". ".join(losses) + ".",
        source="; ".join(assumptions),
    )


def failure_timeline(job: Job) -> Picture:
    """Draw what clients and placement groups see when a host or an OSD fails."""
    names = names_of(job.options)
    lines = {
        side: job.of("failure", side)[-1] for side in names if job.of("failure", side)
    }
    what = "a host fails" if job.settings.failure == "host" else "an OSD fails"
    problems = _problems(names, job, "failure")
    if not lines:
        return _without_drawing("failure", f"When {what}", problems)
    end_s = max(line["end_s"] for line in lines.values())
    latencies_ms = [
        value / 1e6 for line in lines.values() for value in line["p99_ns"] if value
    ]
    x = Scale(0, end_s, _LEFT, _RIGHT)
    latency = SvgAxes(x, _log_scale(latencies_ms or [1.0, 10.0], 118.0, 24.0))
    most = max(share for line in lines.values() for share in line["not_clean"])
    top = round_up(max(1.0, 100 * most))
    groups = SvgAxes(x, Scale(0, top, 226.0, 168.0))
    parts = [
        latency.frame("", "p99 of clients [ms]"),
        groups.frame("time [s]", "placement groups not clean [%]"),
    ]
    events: dict[str, float] = {}
    for time_s, event in next(iter(lines.values()))["events"]:
        events.setdefault(event, time_s)
    for row, (event, label) in enumerate(_EVENTS.items()):
        if event in events:
            parts.append(latency.vertical(events[event], "event", label, row))
            parts.append(groups.vertical(events[event], "event", ""))
    for side, line in lines.items():
        ends = [
            (time_s, value / 1e6)
            for time_s, value in zip(line["time_s"], line["p99_ns"], strict=True)
            if value
        ]
        parts.append(latency.line(_steps(ends, end_s), side))
        shares = [
            (time_s, 100 * share)
            for time_s, share in zip(line["state_s"], line["not_clean"], strict=True)
        ]
        parts.append(groups.line(_steps(shares, end_s), side))
    parts.append(_legend(names, 256.0))
    answer = ". ".join(
        _failure_words(names[side], line) for side, line in lines.items()
    )
    answer = ". ".join([answer, *problems]) + "."
    rate = short(next(iter(lines.values()))["rate_per_s"])
    return Picture(
        key="failure",
        title=f"When {what}",
        answer=answer,
        svg=drawing("failure", f"Timeline when {what}", 262, *parts),
        columns=("option", "time [s]", "p99 of clients [ms]"),
        rows=[
            (names[side], number_text(time_s), number_text(value, 1e-6))
            for side, line in lines.items()
            for time_s, value in zip(line["time_s"], line["p99_ns"], strict=True)
        ],
        source=f"Simulated at {rate} requests/s on 16 GiB of images, marked out 3 s after it is down (600 s "
        "by default), so that one picture shows everything. More data takes longer to recover.",
    )


def _failure_words(name: str, line: Mapping[str, Any]) -> str:
    words = f"{name}: {line['blocked']:,} requests blocked"
    if line["clean_after_s"] is None:
        return f"{words}, not clean at the end"
    return f"{words}, clean after {duration_text(line['clean_after_s'])}"


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
    phases = {
        side: {
            "before": change["profiles"][0]["before"],
            "during": change["profiles"][0],
            "after": change["profiles"][0]["after"],
        }
        for side, change in changes.items()
    }
    latencies = [
        BarRow(
            f"p99 {phase}",
            {
                side: (
                    of_phases[phase]["latency_p99_ns"] or 0.0,
                    _milliseconds(of_phases[phase]["latency_p99_ns"]),
                )
                for side, of_phases in phases.items()
            },
            "latency",
        )
        for phase in ("before", "during", "after")
    ]
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
        *latencies,
    ]
    words = [
        f"{names[side]} moves {bytes_text(change['bytes_moved'])} in {duration_text(change['duration_s'])}"
        for side, change in changes.items()
    ]
    rate = short(next(iter(changes.values()))["rate_per_s"])
    warnings = dict.fromkeys(
        line for change in changes.values() for line in change["warnings"]
    )
    return _paired_bars(
        names,
        rows,
        key="added",
        title=title,
        answer=". ".join([*words, *problems]) + ".",
        source=f"Movement is exact, from CRUSH; time and latency are simulated on a sample at {rate} "
        f"requests/s. `stripesim rehearse` plays all mClock profiles. {'; '.join(warnings)}",
    )


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


def _paired_bars(
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


def _log_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a logarithmic scale around values."""
    low = min(values)
    high = max(values)
    return Scale(low / 1.3, max(high * 1.3, low * 4), start, end, is_log=True)


def _steps(
    points: Sequence[tuple[float, float]], end: float
) -> list[tuple[float, float]]:
    """Return the corners of a line that keeps each value until the next one."""
    corners: list[tuple[float, float]] = []
    for (start, value), (until, _) in pairwise([*points, (end, 0.0)]):
        corners += [(start, value), (until, value)]
    return corners


def _legend(names: Mapping[str, str], y: float) -> Markup:
    parts = []
    x = 4.0
    for side, name in names.items():
        parts.append(mark(x, y - 4, side, name))
        parts.append(text(x + 8, y, name, f"note {side}"))
        x += 16 + 6.4 * len(name)
    return Markup("").join(parts)


def _line_legend(x: float, y: float) -> Markup:
    """Explain solid and dashed lines."""
    parts = []
    for label, style, offset in (("median", "median", 0.0), ("p99", "tail", 84.0)):
        at = x + offset
        parts.append(
            element(
                "line",
                x1=at,
                x2=at + 22,
                y1=y - 4,
                y2=y - 4,
                class_=f"line key {style}",
            )
        )
        parts.append(text(at + 27, y, label, "note"))
    return Markup("").join(parts)
