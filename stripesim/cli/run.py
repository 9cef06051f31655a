"""`stripesim run` simulates a scenario, and `stripesim cite` cites what a run used."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stripesim.cli import options, output

if TYPE_CHECKING:
    from stripesim.scenarios.answers.load.results import LoadCurve
    from stripesim.scenarios.answers.run.answer import ScenarioResult
    from stripesim.scenarios.answers.run.report.contents import RunReport
    from stripesim.scenarios.schema.scenario import Scenario


def run(
    scenario: options.ScenarioArgument,
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    engine: options.EngineOption = "compiled",
    seed: options.SeedOption = None,
    costs: Annotated[
        bool | None,
        typer.Option(
            "--costs/--no-costs",
            help="Print the latency by step. --no-costs also omits it from files. Default: in files only.",
        ),
    ] = None,
    advise: Annotated[
        bool,
        typer.Option(
            "--advise",
            help="Simulate doubling each resource, alone and in pairs.",
        ),
    ] = False,
    cores: Annotated[
        float | None,
        typer.Option(
            "--cores-at",
            metavar="IOPS",
            help="Print processor time per thread class and host, and the cores busy at this rate.",
        ),
    ] = None,
    unchecked: options.UncheckedOption = False,
    load: Annotated[
        bool,
        typer.Option(
            "--load",
            help="Also simulate the load curve for the report, as `stripesim load` does. Needs --report.",
        ),
    ] = False,
    out: options.OutOption = None,
    report: options.ReportOption = False,
    width: options.WidthOption = None,
    metric: options.MetricOption = "throughput_bytes_per_s",
    json_to: options.JsonOption = None,
) -> None:
    """Simulate a scenario: each scheme under each workload pattern."""
    to = output.destination(out, json_to, report=report, width=width)
    options.check_metric(metric)
    if cores is not None and not 0 < cores < inf:
        raise ValueError(f"--cores-at: got {cores:g}, wanted a rate above 0")
    from stripesim.scenarios.answers.run.advise import check_advice
    from stripesim.scenarios.answers.run.execute import run_scenario
    from stripesim.scenarios.schema.keys import cells
    from stripesim.scenarios.schema.scenario import load_scenario

    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    if load:
        _check_load(loaded, has_report=report)
    if advise:
        check_advice(loaded)
    # The breakdown by step takes a second run, so compute it only if it will be shown or saved.
    wanted = costs
    if wanted is None:
        wanted = out is not None or json_to is not None
    with output.progress(loaded.name, len(cells(loaded))) as step:
        result = run_scenario(
            loaded,
            engine=engine,
            progress=step,
            costs=wanted,
            first_full=wanted or cores is not None,
            unchecked=unchecked,
        )
    if advise:
        result = _advised(result, loaded, engine)
    curves = []
    if load and not result.stopped:
        curves = _load_curves(loaded, engine)
    answer = replace(
        result, shows_costs=bool(costs), cores_at_iops=cores, metric=metric
    )
    if report:
        from stripesim.scenarios.answers.run.report.page import page_of_run

        contents = _report(loaded, result, engine)
        answer = replace(answer, page=partial(page_of_run, contents, curves))
    output.deliver(answer, to, unchecked=unchecked)


def cite(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN_DIR]",
            help="Folder that --out of a command wrote. Default: the tool alone.",
            show_default=False,
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Compute RUN_DIR of run, sweep, load, plan, rehearse or durability again, and compare the "
            "rows or values by a hash. Status 1 if they differ.",
        ),
    ] = False,
    json_to: options.JsonOption = None,
) -> None:
    """Print BibTeX of the tool, and of the parameter sets, codes and sources that a run used."""
    to = output.destination(None, json_to)
    if verify:
        if folder is None:
            raise ValueError(
                "--verify: got no RUN_DIR, wanted the --out of stripesim run, sweep, load, plan, rehearse or "
                "durability"
            )
        from stripesim.scenarios.answers.reproduce import answer_of_verification

        output.deliver(answer_of_verification(folder), to)
        return
    from stripesim.scenarios.answers.cite import answer_of_citation

    output.deliver(answer_of_citation(folder), to)


def _check_load(scenario: Scenario, *, has_report: bool) -> None:
    """Reject a load curve that no report shows, or that the scenario cannot have, before the run."""
    from stripesim.scenarios.answers.load.curves import check_load

    if not has_report:
        raise ValueError("--load: got no --report, wanted a report to show the curve")
    check_load(scenario)


def _advised(result: ScenarioResult, scenario: Scenario, engine: str) -> ScenarioResult:
    """Simulate the gains of purchases."""
    from stripesim.scenarios.answers.run.execute import (
        advice_simulations,
        advised,
    )

    title = f"{scenario.name}: purchases"
    with output.progress(title, advice_simulations(scenario)) as step:
        return advised(result, scenario, engine=engine, progress=step)


def _report(scenario: Scenario, result: ScenarioResult, engine: str) -> RunReport:
    """Simulate a rebuild for each scheme, which the report shows next to the result."""
    from stripesim.scenarios.answers.run.report.contents import gather

    with output.progress(f"{scenario.name}: report", len(scenario.schemes)) as step:
        return gather(scenario, result, engine=engine, progress=step)


def _load_curves(scenario: Scenario, engine: str) -> list[LoadCurve]:
    from stripesim.scenarios.answers.load.curve_builder import CurveSettings
    from stripesim.scenarios.answers.load.curves import STEPS, load_curves
    from stripesim.scenarios.schema.keys import cells

    total = STEPS * len(cells(scenario))
    with output.progress(f"{scenario.name}: load", total) as step:
        return load_curves(scenario, CurveSettings(engine=engine), progress=step)
