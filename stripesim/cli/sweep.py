"""The logic behind ``stripesim sweep``: options checked, rows kept, what to say on standard error."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stripesim.cli.output import NO_FOLDER_FOR_REPORT
from stripesim.scenarios.sweep.plan import SweepError, SweepPlan, plan_sweep
from stripesim.scenarios.sweep.run import SweepResult, run_sweep

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from stripesim.scenarios.sweep.task import Outcome

__all__ = ["SweepOptions", "print_aggregated", "sweep"]

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130

Progress = Callable[[str, int], AbstractContextManager[Callable[[str], None]]]


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """The options of the command, as typed."""

    scenario: str
    over: Sequence[str] = ()
    zipped: Sequence[str] = ()
    list_file: Path | None = None
    sets: Sequence[str] = ()
    seed: int | None = None
    engine: str = "compiled"
    replications: int = 1
    jobs: int | None = None
    dask: str | None = None
    dask_timeout_s: float = 300.0
    out: Path | None = None
    resume: bool = False
    report: bool = False


def sweep(options: SweepOptions, progress: Progress) -> tuple[SweepResult, SweepPlan, list[Path], int]:
    """Plan, run and keep a sweep.

    Parameters
    ----------
    options : SweepOptions
    progress : callable
        Title and number of steps → a context manager whose value is called after each step.

    Returns
    -------
    tuple
        Result, plan, files written, exit status: 0, 1 if tasks failed or the cluster went away, 130 if it was
        interrupted.

    Raises
    ------
    ValueError
        If the options or the scenario are faulty; all faults at once, one line each.
    """
    faults = list(_option_faults(options))
    plan = _plan(options, faults)
    if plan is None or faults:
        raise SweepError("\n".join(faults))
    with ExitStack() as stack:
        store = None
        if options.out is not None:
            from stripesim.scenarios.sweep.store import PartStore

            store = stack.enter_context(PartStore(options.out, resume=options.resume))
        missing = sum(store is None or task.task_id not in store.rows for task in plan.tasks)
        title = (
            plan.name if missing == len(plan.tasks) else f"{plan.name} (+{len(plan.tasks) - missing} kept)"
        )
        with _sigterm_as_interrupt(), progress(title, missing) as step:
            result = run_sweep(
                plan,
                jobs=options.jobs,
                dask=options.dask,
                dask_timeout_s=options.dask_timeout_s,
                store=store,
                progress=lambda outcome: step(_words(outcome)),
            )
        # From here on a second Ctrl-C could only spoil what the first one is to leave behind.
        with _interrupts_held():
            written = [] if options.out is None else _write(options.out, plan, result, report=options.report)
    _warn(plan, result, options)
    if result.stopped == "interrupted":
        return result, plan, written, EXIT_INTERRUPTED
    return result, plan, written, EXIT_FAILED if result.failed or result.stopped else 0


def _option_faults(options: SweepOptions) -> Iterator[str]:
    if options.jobs is not None and options.jobs < 1:
        yield f"--jobs: got {options.jobs}, wanted a number of at least 1"
    if options.jobs is not None and options.dask is not None:
        yield "--dask: got --jobs too, wanted one of them: a Dask cluster has its own workers"
    if options.resume and options.out is None:
        yield "--resume: got no --out, wanted the folder of the sweep to go on with"
    if options.report and options.out is None:
        yield NO_FOLDER_FOR_REPORT


def _plan(options: SweepOptions, faults: list[str]) -> SweepPlan | None:
    try:
        return plan_sweep(
            options.scenario,
            over=options.over,
            zipped=options.zipped,
            list_file=options.list_file,
            sets=options.sets,
            seed=options.seed,
            replications=options.replications,
            engine=options.engine,
        )
    except ValueError as error:
        faults += str(error).splitlines()
        return None


def _words(outcome: Outcome) -> str:
    return outcome.task.label if outcome.reason is None else f"failed: {outcome.task.label}"


def _write(out: Path, plan: SweepPlan, result: SweepResult, *, report: bool) -> list[Path]:
    """Write tables, provenance, figures and, where asked, the report; also when the sweep ended early."""
    from stripesim.scenarios.run.results import write_results

    written = write_results(
        out,
        result.rows,
        result.provenance,
        {
            "aggregated.csv": result.aggregated.write_csv(),
            "failed.json": json.dumps(result.failed, indent=1) + "\n",
        },
    )
    from stripesim.scenarios.figures.results import save_figures
    from stripesim.scenarios.sweep.figures import draw_sweep

    figure = draw_sweep(result.aggregated, plan.keys)
    if figure is not None:
        written += save_figures({"sweep": figure}, out)
    if report:
        from stripesim.scenarios.run.results import write_files
        from stripesim.scenarios.sweep.report import report_of_sweep

        written += write_files(out, {"report.html": report_of_sweep(plan, result, figure).encode()})
    return written


def _warn(plan: SweepPlan, result: SweepResult, options: SweepOptions) -> None:
    """Say on standard error what a reader of the table must know."""
    if result.damaged:
        _say(f"warning: {result.damaged} damaged rows in {options.out} were not used; their cells ran again")
    unsteady = [] if result.rows.is_empty() else result.rows.filter(~result.rows["steady"]).to_dicts()
    if unsteady:
        first = unsteady[0]
        where = [str(first[key]) for key in ("scheme", "op", "pattern", "block_size_bytes") if first[key]]
        where += [f"{key}={first[key]}" for key in plan.keys]
        _say(
            f"warning: {len(unsteady)} of {result.rows.height} rows did not reach a steady state; the first: "
            f"{' '.join(where)}: {first['unsteady_reason']}"
        )
    for failed in result.failed:
        where = [f"{key}={value}" for key, value in failed.items() if key not in ("task", "reason")]
        _say(f"failed: {' '.join(where)}: {failed['reason']}")
    if result.stopped:
        _say(f"stopped: {result.stopped}; {result.rows.height} of {len(plan.tasks)} rows are done")
        if options.out is not None:
            _say(f"the same command with --resume goes on from {options.out}")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Batch systems say stop with SIGTERM; treat it as Ctrl-C, so that it leaves a valid result too."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def print_aggregated(aggregated: pl.DataFrame, keys: Sequence[str], console: Console) -> None:
    """Print a sweep's means for people.

    Parameters
    ----------
    aggregated : polars.DataFrame
        From `stripesim.scenarios.sweep.run.aggregate`.
    keys : sequence of str
        Swept keys, the first columns.
    console : rich.console.Console
    """
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from stripesim.scenarios.sweep.table import NOTE, aggregated_table

    columns, rows = aggregated_table(aggregated, keys)
    table = Table(box=SIMPLE_HEAD, caption=NOTE, caption_justify="left", pad_edge=False)
    for name in columns[:-1]:
        # A unit stands below its name; what has one is a number.
        number = " [" in name
        header = escape(name.replace(" [", "\n["))
        table.add_column(header, justify="right" if number else "left", no_wrap=True)
    table.add_column(columns[-1])
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
