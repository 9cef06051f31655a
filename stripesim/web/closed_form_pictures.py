"""Draw the answers to both options that need no simulation: one function for each picture."""

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from stripesim.scenarios.schema.units import bytes_text, duration_text, number_text
from stripesim.web.options import ClosedForms, PlanOption
from stripesim.web.picture_parts import (
    BarRow,
    Picture,
    log_axis,
    names_of,
    paired_bars,
)
from stripesim.web.svg import (
    LINE,
    WIDTH,
    Scale,
    SvgAxes,
    bar,
    drawing,
    element,
    mark,
    scale_of,
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
#: Height of a resource among the limits.
_LIMIT_ROW: Final = 30.0


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


def time_by_phase(
    names: Mapping[str, str], answers: Mapping[str, ClosedForms]
) -> Picture | None:
    """Draw where the time of a lone request of each operation goes."""
    times_ns = {
        (op, side): answers[side].times_ns[op]
        for op in dict.fromkeys(
            op for forms in answers.values() for op in forms.times_ns
        )
        for side in answers
        if op in answers[side].times_ns
    }
    if not times_ns:
        return None
    longest_ns = max(sum(phases.values()) for phases in times_ns.values())
    across = Scale(0, longest_ns, 0, WIDTH)
    parts = []
    y = 12.0
    for (op, side), phases in times_ns.items():
        parts += _phase_bars(f"{names[side]}, {op}", phases, across, y)
        y += 30
    shown = [
        phase for phase in _PHASES if any(phases[phase] for phases in times_ns.values())
    ]
    parts += _phase_legend(shown, y)
    height = y + LINE * ((len(shown) - 1) // 4) + 6
    slowest = [
        f"{names[side]}: {_largest_phases(forms.times_ns)}"
        for side, forms in answers.items()
        if forms.times_ns
    ]
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
        "If one shard has all its data, the mean over the k data shards. `stripesim explain` lists "
        "every step and the parameters behind it.",
    )


def _phase_legend(phases: Sequence[str], y: float) -> list[Markup]:
    """Draw the colour and the name of each phase, four to a line."""
    parts = []
    for index, phase in enumerate(phases):
        x = 92.0 * (index % 4)
        line = y + LINE * (index // 4)
        parts.append(bar(x, line - 8, 9, f"phase-{phase}", _PHASES[phase]))
        parts.append(text(x + 13, line, _PHASES[phase], "note"))
    return parts


def _phase_bars(
    label: str, phases: Mapping[str, int], across: Scale, y: float
) -> list[Markup]:
    """Draw the phases of one request after each other, below its name and total time."""
    total_text = duration_text(sum(phases.values()) / 1e9)
    parts = [text(0, y, label), text(WIDTH, y, total_text, "end")]
    x = 0.0
    for phase, meaning in _PHASES.items():
        width = across(phases[phase])
        title = f"{label}: {meaning} {duration_text(phases[phase] / 1e9)}"
        if width:
            parts.append(bar(x, y + 4, width, f"phase-{phase}", title))
        x += width
    return parts


def _largest_phases(times_ns: Mapping[str, Mapping[str, int]]) -> str:
    """Return the largest phase of each operation, with its share of the time."""
    shares = []
    for op, phases in times_ns.items():
        phase = max(phases, key=lambda name: phases[name])
        share = phases[phase] / max(1, sum(phases.values()))
        shares.append(f"{op} {100 * share:.0f} % {_PHASES[phase]}")
    return ", ".join(shares)


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
    scenarios = [option.scenario for option in options.values() if option.scenario]
    required = scenarios[0].workload.rate_per_s if scenarios else None
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
        svg=_limits_drawing(names, rates, required),
        columns=("option", "resource", "requests/s", "why"),
        rows=[
            (names[side], bound.resource, number_text(bound.iops), bound.why)
            for side, forms in answers.items()
            for bound in forms.bounds
        ],
        source="Service times per request and resource, from the parameter sets. Upper bounds: queueing, "
        "wake-ups and syncs lower the served rate.",
    )


def _limits_drawing(
    names: Mapping[str, str],
    rates: Mapping[str, Mapping[str, float]],
    required: float | None,
) -> Markup:
    """Draw a row for each resource, the scarcest first, and the required rate across them."""
    ordered = sorted(rates.items(), key=lambda item: min(item[1].values()))
    bottom = _LIMIT_ROW * len(ordered) + 8
    values = [rate for of_sides in rates.values() for rate in of_sides.values()]
    across = scale_of(
        log_axis("", values + ([required] if required else [])), 8.0, WIDTH - 16
    )
    parts = []
    if required:
        rows = SvgAxes(across, Scale(0, 1, bottom, 4.0))
        parts.append(rows.vertical(required, "required", ""))
        legend = f"line: required {short(required)}"
        parts.append(text(0, bottom + 2 * LINE, legend, "tick"))
    for index, (resource, of_sides) in enumerate(ordered):
        y = 14 + _LIMIT_ROW * index
        parts.append(_limit_row(names, resource, of_sides, across, y))
    for tick in across.ticks():
        parts.append(text(across(tick), bottom + LINE, short(tick), "tick middle"))
    parts.append(text(WIDTH, bottom + 2 * LINE, "requests/s", "tick end"))
    height = bottom + 2 * LINE + 6
    return drawing("limits", "Highest rate of each resource", height, *parts)


def _limit_row(
    names: Mapping[str, str],
    resource: str,
    rates: Mapping[str, float],
    across: Scale,
    y: float,
) -> Markup:
    """Draw the rates of both sides for one resource, below its name."""
    both = " · ".join(f"{side.upper()} {short(rate)}" for side, rate in rates.items())
    ends = {"x1": across.start, "x2": across.end, "y1": y + 9, "y2": y + 9}
    marks = [
        mark(
            across(rate),
            y + (7.0 if side == "a" else 11.0),
            side,
            f"{names[side]}, {resource}: {number_text(rate)} requests/s",
        )
        for side, rate in rates.items()
    ]
    line = element("line", class_="grid", **ends)
    return Markup("").join(
        [text(0, y, resource), text(WIDTH, y, both, "end"), line, *marks]
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
    return paired_bars(
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


_LARGE: Final = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def _years_text(years: float) -> str:
    """Write a number of years, large ones in words.

    >>> _years_text(1585.0), _years_text(3.27e11)
    ('1,585', '327 billion')
    """
    for size, word in _LARGE:
        if years >= size:
            return f"{number_text(years / size)} {word}"
    return number_text(years)


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
        f"{names[side]} loses data in one of {_years_text(10**value)} years"
        for side, value in known.items()
    ]
    assumptions = dict.fromkeys(
        line for forms in answers.values() for line in forms.nines["assumptions"]
    )
    return paired_bars(
        names,
        rows,
        key="nines",
        title="Nines of durability",
        answer=". ".join(losses) + ".",
        source="; ".join(assumptions),
    )
