"""`stripesim sweep`: run a scenario at many points."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stripesim.cli import options, output

if TYPE_CHECKING:
    from stripesim.models.problems import Problem
    from stripesim.scenarios.answers.sweep.answer import SweepResult
    from stripesim.scenarios.answers.sweep.plan import SweepPlan
    from stripesim.scenarios.work.store import PartStore


def sweep(
    scenario: options.ScenarioArgument,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            help="Key and its values, a.b=V,V,... Repeat to form a grid.",
        ),
    ] = None,
    zipped: Annotated[
        list[str] | None,
        typer.Option("--zip", help="Like --over, but all --zip keys change together."),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(
            "--list",
            help="CSV file of points: a header line of keys, then one line per point.",
        ),
    ] = None,
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    replications: Annotated[
        int, typer.Option(help="Runs per cell. Run r, from 0, uses seed + r.")
    ] = 1,
    jobs: Annotated[
        int | None,
        typer.Option(help="Worker processes. Default: all cores.", show_default=False),
    ] = None,
    dask: options.DaskOption = None,
    dask_timeout_s: Annotated[
        float,
        typer.Option(
            "--dask-timeout",
            help="Time limit without any Dask worker [s].",
            min=1.0,
        ),
    ] = 300.0,
    engine: options.EngineOption = "compiled",
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the sweep in --out, keeping its rows."),
    ] = False,
    unchecked: options.UncheckedOption = False,
    report: options.ReportOption = False,
    width: options.WidthOption = None,
    metric: options.MetricOption = "throughput_bytes_per_s",
    json_to: options.JsonOption = None,
) -> None:
    """Simulate a scenario at each point of a grid or list on all cores, saving each row as it finishes."""
    from stripesim.models.problems import AnswerError, noted, problems_of
    from stripesim.scenarios.answers.sweep.plan import check_options, plan_sweep

    problems: list[Problem] = []
    with noted(problems):
        check_options(out, resume=resume, jobs=jobs, dask=dask)
    with noted(problems):
        to = output.destination(out, json_to, report=report, width=width)
    with noted(problems):
        options.check_metric(metric)
    try:
        plan = plan_sweep(
            scenario,
            over=over or (),
            zipped=zipped or (),
            points=points or (),
            sets=options.with_codes(sets, code),
            seed=seed,
            replications=replications,
            engine=engine,
        )
    except ValueError as error:
        raise AnswerError(*problems, *problems_of(error)) from None
    if problems:
        raise AnswerError(*problems)
    with ExitStack() as stack:
        store = None
        if out is not None:
            from stripesim.scenarios.work.store import PartStore

            store = stack.enter_context(PartStore(out, resume=resume))
        result = _run(
            plan, store, jobs, dask, dask_timeout_s, unchecked=unchecked, metric=metric
        )
        # Ignore a second Ctrl-C while writing the results that the first one left.
        with _on_signal(signal.SIGINT, signal.SIG_IGN):
            output.deliver(result, to, unchecked=unchecked)


def _run(
    plan: SweepPlan,
    store: PartStore | None,
    jobs: int | None,
    dask: str | None,
    dask_timeout_s: float,
    *,
    unchecked: bool,
    metric: str,
) -> SweepResult:
    """Run the tasks without stored rows, and stop with what is done on a signal."""
    from stripesim.scenarios.answers.sweep.run import run_sweep

    missing = sum(
        store is None or task.task_id not in store.rows for task in plan.tasks
    )
    kept = len(plan.tasks) - missing
    title = f"{plan.name} (+{kept} kept)" if kept else plan.name
    with (
        _on_signal(signal.SIGTERM, _interrupt),
        _on_signal(signal.SIGINT, _interrupt),
        output.progress(title, missing) as step,
    ):
        return run_sweep(
            plan,
            jobs=jobs,
            dask=dask,
            dask_timeout_s=dask_timeout_s,
            store=store,
            unchecked=unchecked,
            metric=metric,
            progress=step,
        )


def _interrupt(*_: object) -> None:
    """Stop with a valid result on Ctrl-C (which Polars may swallow) or on the SIGTERM of a batch system."""
    raise KeyboardInterrupt


@contextmanager
def _on_signal(number: signal.Signals, handler: Any) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
