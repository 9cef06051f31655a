"""The answer of `stripesim load --vms`: a sentence, a table, a figure and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from stripesim.scenarios.answers.load.vms import (
    VmPoint,
    VmsWithin,
    describes_machines,
    with_machines,
)
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import (
    made_from,
    outside_of,
)
from stripesim.scenarios.forms.capacity import images_that_fit, warnings_of
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import (
    bytes_text,
    counted_text,
    duration_text,
    interval_half_text,
    number_text,
    rate_text,
    size_text,
)
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn_all
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    line_at,
    series_style,
)
from stripesim.scenarios.show.files import csv_files, frame_of
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.show.words import cell_words
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.observe.intervals import Interval
from stripesim.sim.observe.resource_words import limit_words, stated_words

#: Machines up to which a figure counts each [count].
_COUNTED_MAX: Final = 10
_SIZE_INCHES: Final = (6.4, 4.3)
_MS: Final = 1e6


def answer_of_vms(
    scenario: Scenario, results: Sequence[VmsWithin], *, engine: str, replications: int
) -> Answer:
    """Return the answer for each cell: sentences first, then the simulated numbers of machines."""
    refusals = [line for result in results for line in result.refusals]
    machines = with_machines(scenario)
    outside = outside_of(machines)
    models = build_models(machines)
    warnings = warnings_of(machines, models) + _room_warnings(machines, models, results)
    assumptions = list(_assumptions(scenario))
    notes = notes_of_vms(machines, results, replications)
    if any(result.bound_iops is not None for result in results):
        notes.append(
            "just below the bound, latencies grow further than these runs show"
        )
    document: dict[str, Any] = {
        "vms": [result.to_json() for result in results],
        "sentences": [vm_sentence(result) for result in results],
        "assumptions": assumptions,
        "notes": notes,
        "warnings": [*map(str, outside), *warnings, *refusals],
        "refusals": refusals,
        "provenance": made_from(
            scenario,
            generation=scenario.generation,
            engine=engine,
            parameters=scenario.cluster.parameters,
            replications=replications,
        ),
    }
    points = list(_points(results))
    return Answer(
        document=document,
        frame=partial(frame_of, points),
        shown=[
            *document["sentences"],
            *(f"assumed: {line}" for line in assumptions),
            *map(_table, results),
            *(f"note: {line}" for line in document["notes"]),
        ],
        outside=outside,
        warnings=warnings,
        refusals=refusals,
        saved_as="vms.json",
        files=partial(csv_files, "vms.csv", points),
        figures=partial(draw_vms, results),
    )


def vm_sentence(result: VmsWithin) -> str:
    """Return a sentence on how many machines keep the bound, and what limits more of them."""
    bound = duration_text(result.p99_bound_ns * 1e-9)
    title = cell_words(result.cell)
    if result.is_most:
        return f"{title}: p99 ≤ {bound} with up to {result.vms:,} virtual machines, the most that were tried"
    resource = stated_words(result.limited_by or "")
    if not result.points:
        assert result.bound_iops is not None
        return (
            f"{title}: not even 1 virtual machine: it issues more than {rate_text(result.bound_iops)} "
            f"requests/s, the bound of {resource}"
        )
    if not result.vms:
        (first, *_) = result.points
        p99 = duration_text(first.latency_p99_ns.mean * 1e-9)
        return f"{title}: not even 1 virtual machine keeps p99 ≤ {bound}: {p99}"
    machines = counted_text(result.vms, "virtual machine")
    if result.low is not None and result.high is not None and result.low < result.high:
        machines += f" (95 %: {result.low:,} to {result.high:,})"
    if result.bound_iops is not None:
        return (
            f"{title}: {machines} within p99 ≤ {bound}, and hardly more: the bound of {resource} is "
            f"{rate_text(result.bound_iops)} requests/s"
        )
    above = min(
        (point for point in result.points if point.vms > result.vms),
        key=lambda point: point.vms,
    )
    p99 = duration_text(above.latency_p99_ns.mean * 1e-9)
    return f"{title}: {machines} within p99 ≤ {bound}; {above.vms:,} have {p99}, {_limit_words(result)}"


def _limit_words(result: VmsWithin) -> str:
    resource = limit_words(result.limited_by or "")
    if resource is None:
        return "and no resource is near its limit"
    return f"limited by {resource}"


def _room_warnings(
    scenario: Scenario, models: Models, results: Sequence[VmsWithin]
) -> list[str]:
    """Warn of machines that keep the bound while their images do not fit."""
    fitting = images_that_fit(scenario, models)
    image = bytes_text(scenario.workload.image_bytes)
    return [
        f"{cell_words(result.cell)}: the images of only {counted_text(fit, 'virtual machine')} fit at the "
        f"full ratio, with {image} each ([workload] image_bytes)"
        for result in results
        if (fit := fitting.get(result.cell.scheme, result.vms)) < result.vms
    ]


def _assumptions(scenario: Scenario) -> Iterator[str]:
    """Yield the profile of the machines if the scenario describes none."""
    if describes_machines(scenario):
        return
    load = with_machines(scenario).workload
    reads = load.read_fraction or 0.0
    size = size_text(load.block_sizes_bytes[0])
    limit = number_text(load.vm_iops_limit or 0.0)
    yield (
        f"the scenario describes no virtual machine, so each issues at most {limit} random requests/s of "
        f"{size}, {100 * reads:.0f} % of them reads. State your own: workload.vms = 1, vm_iops_limit or "
        "vm_queue_depth, read_fraction, block_sizes_bytes"
    )


def notes_of_vms(
    scenario: Scenario, results: Sequence[VmsWithin], replications: int
) -> list[str]:
    """Describe the load of a virtual machine of the scenario, and how its numbers were found."""
    load = scenario.workload
    if load.vm_iops_limit is None:
        profile = f"keeps {load.queue_depth} requests in flight"
    else:
        profile = (
            f"issues {number_text(load.vm_iops_limit)} requests/s at random moments"
        )
    notes = [
        f"each virtual machine {profile} and has an image of its own",
        f"values are means over {replications} seeds ± half of the 95 % interval",
    ]
    if any(0 < one.vms < max(point.vms for point in one.points) for one in results):
        notes.append(
            "the number of machines at the bound is between two that were simulated"
        )
    return notes


def _table(result: VmsWithin) -> Table:
    rows = [
        {
            "virtual machines": number_text(point.vms),
            "rate [1/s]": number_text(point.iops.mean),
            "p50 [ms]": _milliseconds(point.latency_p50_ns),
            "p99 [ms]": _milliseconds(point.latency_p99_ns),
            "limited by": limit_words(point.bottleneck or "") or "–",
        }
        for point in result.points
    ]
    return Table.of(cell_words(result.cell), rows, words=(4,), caption_shown=True)


def _milliseconds(latency_ns: Interval) -> str:
    text = number_text(latency_ns.mean, 1e-6, padded=True)
    half = interval_half_text(latency_ns.low, latency_ns.mean, latency_ns.high, 1e-6)
    return f"{text} {half}".rstrip()


def _points(results: Sequence[VmsWithin]) -> Iterator[Mapping[str, Any]]:
    for result in results:
        for point in result.points:
            yield {**result.cell._asdict(), **point.to_json()}


def draw_vms(results: Sequence[VmsWithin]) -> dict[str, CaptionedFigure]:
    """Draw the 99th percentile over the number of machines, a line for each scheme and kind of request.

    There is no figure if no number of machines was simulated.
    """
    layers = [
        layer
        for number, result in enumerate(results)
        if result.points
        for layer in _line(result, series_style(number))
    ]
    if not layers:
        return {}
    bound_ms = results[0].p99_bound_ns / _MS
    layers.append(line_at(bound_ms, sideways=True, color="#666666", linestyle=":"))
    panel = PanelSpec(
        layers=layers,
        x=axis_of_machines(max(point.vms for one in results for point in one.points)),
        y=AxisSpec(label="p99 [ms]", scale="log"),
        legend="best",
    )
    bound = duration_text(results[0].p99_bound_ns * 1e-9)
    caption = (
        "99th percentile of latency over the number of virtual machines, with 95 % intervals over seeds. "
        f"Dotted: the bound of {bound}."
    )
    return drawn_all(
        {"vms": FigureSpec(size=_SIZE_INCHES, panels=[panel], caption=caption)}
    )


def axis_of_machines(most: int) -> AxisSpec:
    """Return an axis up to a number of machines, with each of a few."""
    label = "virtual machines"
    if most > _COUNTED_MAX:
        return AxisSpec(label=label, scale="log")
    return AxisSpec(label=label, ticks=range(1, most + 1))


def _line(result: VmsWithin, style: Mapping[str, str]) -> Iterator[LayerSpec]:
    points: list[VmPoint] = list(result.points)
    yield LayerSpec(
        mark="marked line",
        x=[point.vms for point in points],
        y=[point.latency_p99_ns.mean / _MS for point in points],
        label=cell_words(result.cell),
        style=dict(style),
    )
    known = [
        (point.vms, point.latency_p99_ns.low, point.latency_p99_ns.high)
        for point in points
        if point.latency_p99_ns.low is not None
        and point.latency_p99_ns.high is not None
    ]
    yield LayerSpec(
        mark="whiskers",
        x=[vms for vms, _, _ in known],
        low=[max(1e-3, low / _MS) for _, low, _ in known],
        high=[high / _MS for _, _, high in known],
        style={"color": style["color"], "linewidth": 1.2},
    )
