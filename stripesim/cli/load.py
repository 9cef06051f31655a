"""`stripesim load`: draw latency over throughput for each scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stripesim.cli import options, output

if TYPE_CHECKING:
    from stripesim.scenarios.schema.scenario import Scenario
    from stripesim.scenarios.show.answer import Answer

# Numbers of virtual machines that a search tries, about.
_VMS_TRIED = 12


def load(
    scenario: options.ScenarioArgument,
    p99: Annotated[
        list[str] | None,
        typer.Option(
            "--p99",
            metavar="TIME",
            help="Bound of the 99th percentile, such as 5ms, to find the highest rate within. Repeatable.",
        ),
    ] = None,
    vms: Annotated[
        bool,
        typer.Option(
            "--vms",
            help="Find how many virtual machines keep the bound of --p99 or plan.p99_ms.",
        ),
    ] = False,
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    seed: options.SeedOption = None,
    engine: options.EngineOption = "compiled",
    jobs: Annotated[
        int | None,
        typer.Option(help="Worker processes. Default: one for each core."),
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(
            help="Requests of each run, 5 for each point. Default: 6,000 to 20,000, by the OSDs; s3: 2,000.",
        ),
    ] = None,
    unchecked: options.UncheckedOption = False,
    out: options.OutOption = None,
    report: options.ReportOption = False,
    width: options.WidthOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Draw latency over throughput, from a tenth of saturation to past it, with the knee of each scheme."""
    to = output.destination(out, json_to, report=report, width=width)
    bounds_s = [_bound_s(text) for text in p99 or ()]
    from stripesim.scenarios.answers.load.answer import answer_of_load
    from stripesim.scenarios.answers.load.curve_builder import CurveSettings
    from stripesim.scenarios.answers.load.curves import STEPS, load_curves
    from stripesim.scenarios.schema.keys import cells
    from stripesim.scenarios.schema.scenario import load_scenario

    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    if vms:
        answer = _answer_of_vms(loaded, bounds_s, engine, jobs)
        output.deliver(answer, to, unchecked=unchecked)
        return
    settings = CurveSettings(
        engine=engine, p99_bounds_s=bounds_s, requests=requests, unchecked=unchecked
    )
    total = STEPS * len(cells(loaded))
    with output.progress(loaded.name, total) as step:
        curves = load_curves(loaded, settings, jobs=jobs, progress=step)
    answer = answer_of_load(loaded, curves, settings)
    output.deliver(answer, to, unchecked=unchecked)


def _answer_of_vms(
    scenario: Scenario, bounds_s: list[float], engine: str, jobs: int | None
) -> Answer:
    """Find how many virtual machines keep the only latency bound."""
    from stripesim.scenarios.answers.load.vm_answer import answer_of_vms
    from stripesim.scenarios.answers.load.vms import REPLICATIONS, vms_within
    from stripesim.scenarios.schema.keys import cells

    if not bounds_s and scenario.plan is not None and scenario.plan.p99_ms is not None:
        bounds_s = [scenario.plan.p99_ms / 1e3]
    if len(bounds_s) != 1:
        got = f"{len(bounds_s)} bounds"
        raise ValueError(f"--p99: got {got}, wanted one, such as 5ms, with --vms")
    with output.progress(scenario.name, _VMS_TRIED * len(cells(scenario))) as step:
        within = vms_within(
            scenario, p99_bound_s=bounds_s[0], engine=engine, jobs=jobs, progress=step
        )
    return answer_of_vms(scenario, within, engine=engine, replications=REPLICATIONS)


def _bound_s(text: str) -> float:
    from stripesim.scenarios.schema.units import parse_span_s

    try:
        return parse_span_s(text)
    except ValueError as error:
        raise ValueError(f"--p99: {error}") from None
