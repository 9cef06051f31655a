"""`stripesim sweep`: run a scenario at many points."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stripesim.cli import options, output

if TYPE_CHECKING:
    from stripesim.scenarios.answers.sweep.plan import SweepPlan
    from stripesim.scenarios.answers.sweep.run import SweepResult


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
    json_to: options.JsonOption = None,
) -> None:
    """Simulate a scenario at each point of a grid or list on all cores, saving each row as it finishes."""
    from stripesim.scenarios.work.pool import cores_usable, prepare_workers

    problems = list(_problems(out, report=report, resume=resume, jobs=jobs, dask=dask))
    width_inch = None
    try:
        width_inch = options.width_inch(width, out)
    except ValueError as error:
        problems.append(str(error))
    if not problems and dask is None and (jobs or cores_usable()) > 1:
        # Workers load the engine while this process loads what it needs to plan.
        prepare_workers()
    from stripesim.models.problems import SweepError, problems_of
    from stripesim.scenarios.answers.sweep.plan import plan_sweep

    try:
        plan = plan_sweep(
            scenario,
            over=over or (),
            zipped=zipped or (),
            list_file=points,
            sets=options.with_codes(sets, code),
            seed=seed,
            replications=replications,
            engine=engine,
        )
    except ValueError as error:
        raise SweepError(*problems, *problems_of(error)) from None
    if problems:
        raise SweepError(*problems)
    from stripesim.scenarios.answers.sweep.run import run_sweep
    from stripesim.scenarios.work.store import PartStore

    with ExitStack() as stack:
        store = None
        if out is not None:
            store = stack.enter_context(PartStore(out, resume=resume))
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
            result = run_sweep(
                plan,
                jobs=jobs,
                dask=dask,
                dask_timeout_s=dask_timeout_s,
                store=store,
                unchecked=unchecked,
                progress=lambda done: step(
                    ("" if done.reason is None else "failed: ") + done.task.label
                ),
            )
        # Ignore a second Ctrl-C while writing the results that the first one left.
        with _on_signal(signal.SIGINT, signal.SIG_IGN):
            written = []
            if out is not None:
                written = _write(
                    out, plan, result, report=report, width_inch=width_inch
                )
    _warn(plan, result, out, unchecked=unchecked)
    if not output.write_json(json_to, result.to_json()):
        output.warn_outside(result.warnings, report=out if report else None)
        _print(plan, result)
        output.list_written(written)
    raise typer.Exit(_status(result, unchecked=unchecked))


def _status(result: SweepResult, *, unchecked: bool) -> int:
    if result.stopped == "interrupted":
        return 130
    if result.failed or result.stopped:
        return 1
    return output.audited_status(result.refusals, unchecked=unchecked)


def _problems(
    out: Path | None, *, report: bool, resume: bool, jobs: int | None, dask: str | None
) -> Iterator[str]:
    """Yield the problems with the options, which are reported together with those of the scenario."""
    if jobs is not None and jobs < 1:
        yield f"--jobs: got {jobs}, wanted at least 1"
    if jobs is not None and dask is not None:
        yield "--dask: got --jobs too, wanted only one of them: a Dask cluster has its own workers"
    if resume and out is None:
        yield "--resume: got no --out, wanted the folder of the sweep to continue"
    try:
        output.check_out(out, report=report)
    except ValueError as error:
        yield str(error)


def _write(
    out: Path,
    plan: SweepPlan,
    result: SweepResult,
    *,
    report: bool,
    width_inch: float | None,
) -> list[Path]:
    """Write tables, provenance, figures and optionally the report, even if the sweep ended early."""
    from stripesim.scenarios.answers.sweep.figures import draw_sweep
    from stripesim.scenarios.show.figures.results import save_figures
    from stripesim.scenarios.show.files import write_results

    extra = {
        "aggregated.csv": result.aggregated.write_csv(),
        "failed.json": json.dumps(result.failed, indent=1) + "\n",
    }
    written = write_results(out, result.rows, result.provenance, extra)
    figure = draw_sweep(result.aggregated, plan.keys)
    if report:
        from stripesim.scenarios.answers.sweep.report import report_of_sweep

        written += output.write_page(out, report_of_sweep(plan, result, figure))
    if figure is not None:
        # Fitting a width changes the figure, so the page comes first.
        written += save_figures({"sweep": figure}, out, width_inch=width_inch)
    return written


def _warn(
    plan: SweepPlan, result: SweepResult, out: Path | None, *, unchecked: bool
) -> None:
    """Warn on standard error about damaged, refused, unsteady, failed and missing rows."""
    output.warn_refused(result.refusals, unchecked=unchecked)
    lines = [f"warning: {line}" for line in result.falls]
    if result.refusals and not unchecked:
        lines.append(
            f"refused: {result.refused} of {result.rows.height} rows; --unchecked shows their numbers"
        )
    done = result.rows.height
    if result.damaged:
        lines.append(
            f"warning: skipped {result.damaged} damaged rows in {out} and simulated their cells again"
        )
    unsteady = []
    if not result.rows.is_empty():
        # The audit gives its own reason for the rows that it refuses.
        checked = result.rows.filter(result.rows["refused"].is_null())
        unsteady = checked.filter(~checked["steady"]).to_dicts()
    if unsteady:
        first = unsteady[0]
        where = [
            str(first[key])
            for key in ("scheme", "op", "pattern", "block_size_bytes")
            if first[key]
        ]
        where += [f"{key}={first[key]}" for key in plan.keys]
        lines.append(
            f"warning: {len(unsteady)} of {done} rows did not reach a steady state; the first: "
            f"{' '.join(where)}: {first['unsteady_reason']}"
        )
    for failed in result.failed:
        where = [
            f"{key}={value}"
            for key, value in failed.items()
            if key not in ("task", "reason")
        ]
        lines.append(f"failed: {' '.join(where)}: {failed['reason']}")
    if result.stopped:
        lines.append(
            f"stopped: {result.stopped}; {done} of {len(plan.tasks)} rows are done"
        )
        if out is not None:
            lines.append(f"repeat the command with --resume to continue from {out}")
    for line in lines:
        print(line, file=sys.stderr)


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


def _print(plan: SweepPlan, result: SweepResult) -> None:
    """Print the means at each point."""
    from stripesim.scenarios.answers.sweep.run import NOTE, aggregated_table

    columns, rows = aggregated_table(result.aggregated, plan.keys)
    # Put units below names. Every column with a unit holds numbers.
    numbers = [number for number, name in enumerate(columns) if " [" in name]
    output.console().print(
        output.table(
            [name.replace(" [", "\n[") for name in columns],
            rows,
            numbers=numbers,
            caption=NOTE,
        )
    )
