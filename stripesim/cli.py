"""The command line: what to run and where to put it. Heavy modules load inside the commands."""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stripesim._version import __version__

if TYPE_CHECKING:
    from stripesim.scenarios.execute import ScenarioResult
    from stripesim.scenarios.schema import Scenario

app = typer.Typer(
    name="stripesim",
    help="Simulate a replicated or erasure-coded storage cluster, calibrated against measurements.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
trace_app = typer.Typer(help="Read block traces: statistics, fits, other formats.", no_args_is_help=True)
app.add_typer(trace_app, name="trace")


class Engine(enum.StrEnum):
    """The two engines; they give the same answer."""

    COMPILED = "compiled"
    SIMPY = "simpy"


class Study(enum.StrEnum):
    """The studies that ship."""

    KOH2017 = "koh2017"
    CEPH16 = "ceph16"
    EXSTORUS2019 = "exstorus2019"
    DACHARY2013 = "dachary2013"
    ERASUREBENCH2016 = "erasurebench2016"


OutOption = Annotated[Path | None, typer.Option("--out", help="Folder for tables, provenance and figures.")]
JsonOption = Annotated[
    str | None,
    typer.Option("--json", help="Write one JSON document to this file; - for stdout, and nothing else."),
]
EngineOption = Annotated[Engine, typer.Option(help="compiled is fast; simpy is for reading and extending.")]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="Format of the trace; left out: recognised.")
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Refuse a trace with any faulty line.")]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def run(
    scenario: Annotated[str, typer.Argument(help="A TOML file, or one that ships, such as quickstart.")],
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key: a.b=VALUE, VALUE as in TOML.")
    ] = None,
    engine: EngineOption = Engine.COMPILED,
    seed: Annotated[int | None, typer.Option(help="Seed of offsets and service times.")] = None,
    costs: Annotated[
        bool, typer.Option("--costs/--no-costs", help="Tell what the mean latency consists of, step by step.")
    ] = True,
    out: OutOption = None,
    report: Annotated[
        bool, typer.Option("--report", help="Write report.html into --out: one page to show around.")
    ] = False,
    json_to: JsonOption = None,
) -> None:
    """Run a scenario: each scheme under each kind of request."""
    if report and out is None:
        raise ValueError("--report: got no --out, wanted the folder to write report.html into")
    from stripesim.scenarios.execute import run_scenario
    from stripesim.scenarios.loader import load_scenario
    from stripesim.scenarios.schema import cells

    told = load_scenario(scenario, sets=sets or (), seed=seed)
    with _progress(f"{told.name}", len(cells(told))) as step:
        result = run_scenario(told, engine=engine.value, progress=step, costs=costs)
    written: list[Path] = []
    if out is not None:
        from stripesim.scenarios.costs_figure import draw_costs
        from stripesim.scenarios.figures import draw_all, save_figures
        from stripesim.scenarios.results import write_results

        written += write_results(
            out,
            result.rows,
            result.provenance,
            {"parameters.json": json.dumps(result.parameters, indent=1)}
            | ({"timeline.json": json.dumps(result.timelines)} if result.timelines else {}),
        )
        figures = {**draw_all(result.rows), **draw_costs(result.rows)}
        if result.timelines:
            from stripesim.scenarios.fault_figures import draw_timelines

            figures |= draw_timelines(result.timelines)
        written += save_figures(figures, out)
        if report:
            written += _write_report(out, told, result, engine.value)
    if _json(json_to, result.to_json()):
        return
    _warn_outside(result.warnings)
    for line in result.holes:
        print(f"warning: {line}", file=sys.stderr)
    from stripesim.cli_tables import fault_lines, recorded_lines, repair_lines, timeline_table
    from stripesim.scenarios.costs_table import print_costs
    from stripesim.scenarios.results import print_table

    print_table(result.rows, _console())
    told_rows = result.rows.to_dicts()
    print_costs(told_rows, _console())
    for timeline in result.timelines:
        _console().print(timeline_table(timeline))
    for row in told_rows:
        for line in fault_lines(row):
            print(line)
    for line in [*repair_lines(told_rows), *recorded_lines(told_rows)]:
        print(line)
    _list_written(written)


def _write_report(out: Path, told: Scenario, result: ScenarioResult, engine: str) -> list[Path]:
    from stripesim.scenarios.results import write_files
    from stripesim.scenarios.run_report import report_of_run

    with _progress(f"{told.name}: report", len(told.schemes)) as step:
        page = report_of_run(told, result, engine=engine, progress=step)
    return write_files(out, {"report.html": page.encode()})


def _warn_outside(warnings: Sequence[str]) -> None:
    for line in warnings:
        print(f"warning: outside the calibrated range: {line}", file=sys.stderr)


@app.command()
def sweep(
    scenario: Annotated[str, typer.Argument(help="A TOML file, or one that ships, such as quickstart.")],
    over: Annotated[
        list[str] | None,
        typer.Option("--over", help="Key and its values: a.b=V,V,...; several --over make a grid."),
    ] = None,
    zipped: Annotated[
        list[str] | None, typer.Option("--zip", help="As --over, but all --zip keys move together.")
    ] = None,
    points: Annotated[
        Path | None, typer.Option("--list", help="CSV file of points: a line of keys, then lines of values.")
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key at all points: a.b=VALUE.")
    ] = None,
    replications: Annotated[int, typer.Option(help="Runs of each cell; run r, from 0, has seed + r.")] = 1,
    jobs: Annotated[
        int | None, typer.Option(help="Worker processes; left out: all cores.", show_default=False)
    ] = None,
    dask: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler to run on, or its scheduler file.")
    ] = None,
    engine: EngineOption = Engine.COMPILED,
    seed: Annotated[int | None, typer.Option(help="Seed of offsets and service times.")] = None,
    out: OutOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the sweep in --out; rows there are kept.")
    ] = False,
    json_to: JsonOption = None,
) -> None:
    """Run a scenario at each point of a grid or list, on all cores; each row is kept as it comes."""
    from stripesim import cli_sweep

    options = cli_sweep.SweepOptions(
        scenario=scenario, over=over or (), zipped=zipped or (), list_file=points, sets=sets or (),
        seed=seed, engine=engine.value, replications=replications, jobs=jobs, dask=dask, out=out,
        resume=resume,
    )  # fmt: skip
    result, plan, written, status = cli_sweep.sweep(options, _progress)
    if not _json(json_to, result.to_json()):
        _warn_outside(result.warnings)
        cli_sweep.print_aggregated(result.aggregated, plan.keys, _console())
        _list_written(written)
    raise typer.Exit(status)


@app.command()
def study(
    name: Annotated[Study, typer.Argument(help="The source to reproduce.")],
    engine: EngineOption = Engine.COMPILED,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="ceph16: a folder of measurements; erasurebench2016: the folder with failure-traces/; "
            "left out: what ships.",
        ),
    ] = None,
    figures: Annotated[
        list[str] | None,
        typer.Option("--figure", help="koh2017: only this figure's runs; may be repeated, or all."),
    ] = None,
    ablations: Annotated[
        list[str] | None,
        typer.Option("--ablate", help="koh2017: compare with this changed; may be repeated, or all."),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="dachary2013, erasurebench2016: time the kernels here.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option("--against-ceph", help="dachary2013: Ceph's benchmark, or a recorded output of it."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="koh2017: worker processes; left out: all cores.", show_default=False),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show the claims that do not count, too.")
    ] = False,
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Reproduce a published study and judge each of its claims."""
    from stripesim.cli_study import run_study

    options = {
        "data": data,
        "figures": figures,
        "ablations": ablations,
        "measure": measure,
        "against": against,
        "jobs": jobs,
    }
    with _progress(f"study {name.value}", None) as step:
        studied = run_study(name.value, engine=engine.value, options=options, progress=step)
    written = studied.write(out) if out is not None else []
    if _json(json_to, studied.to_json()):
        return
    studied.show(_console(), everything=everything)
    _list_written(written)


class Request(enum.StrEnum):
    """What can be explained."""

    WRITE = "write"
    READ = "read"
    REPAIR = "repair"


@app.command()
def explain(
    op: Annotated[Request, typer.Argument(help="One request of this kind.")],
    schemes: Annotated[
        list[str] | None, typer.Option("--scheme", help="Such as rep:3 or rs:6,3; several on one time axis.")
    ] = None,
    size: Annotated[str, typer.Option(help="Of the request; of a repair, of the object. Such as 4k.")] = "4k",
    offset: Annotated[str, typer.Option(help="Where in the image the request begins.")] = "0",
    generation: Annotated[str | None, typer.Option(help="Ceph generation, such as kraken.")] = None,
    state: Annotated[str, typer.Option(help="healthy, or degraded: one shard is down.")] = "healthy",
    image: Annotated[str, typer.Option(help="prefilled or pristine: do the objects exist?")] = "prefilled",
    lost_shard: Annotated[int, typer.Option(help="Shard that is down, or is rebuilt; from 0.")] = 1,
    scenario: Annotated[
        str | None, typer.Option(help="Cluster of this scenario; left out: a host for each shard.")
    ] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="Override a key: a.b=VALUE.")] = None,
    steps: Annotated[bool, typer.Option(help="Print the table of steps.")] = True,
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Follow one request: each step, its time, its bytes, its locks, and where each number comes from."""
    from stripesim import cli_explain
    from stripesim.scenarios.explain import explain as timelines_of

    size_bytes, offset_bytes = cli_explain.extent(size, offset)
    timelines = timelines_of(
        op.value, schemes or ["rep:3", "rs:6,3"], size_bytes, offset_bytes=offset_bytes,
        generation=generation, state=state, image=image, lost_shard=lost_shard, scenario=scenario,
        sets=sets or (),
    )  # fmt: skip
    written = [] if out is None else cli_explain.write_timelines(timelines, out)
    if _json(json_to, cli_explain.document(timelines)):
        return
    cli_explain.print_timelines(timelines, _console(), steps=steps)
    _list_written(written)


@app.command()
def kernel(
    schemes: Annotated[
        list[str] | None, typer.Option("--scheme", help="Code to time, such as rs:6,3; may be repeated.")
    ] = None,
    sizes: Annotated[
        list[str] | None, typer.Option("--size", help="Data size, such as 24k; may be repeated.")
    ] = None,
    backends: Annotated[
        list[str] | None, typer.Option("--backend", help="pyeclib backend; left out: all that load here.")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Keep the cost table for `cluster.kernel_table`.")
    ] = False,
    json_to: JsonOption = None,
) -> None:
    """Time encode, decode and reconstruct through pyeclib on this machine."""
    from stripesim.calibration.kernel import measure
    from stripesim.calibration.kernel_store import save_table, table_of_this_machine
    from stripesim.scenarios.units import parse_size_bytes

    chosen = schemes or ["rs:6,3", "rs:10,4"]
    with _progress("kernel", len(chosen)) as step:
        rows = measure(
            chosen,
            [parse_size_bytes(size) for size in sizes] if sizes else None,
            backends,
            progress=step,
        )
    saved = None
    if save:
        saved = save_table(table_of_this_machine(rows))
    if _json(json_to, {"rows": rows, "saved": str(saved) if saved else None}):
        return
    from stripesim.cli_tables import kernel_table

    _console().print(kernel_table(rows))
    if saved is not None:
        print(f"saved {saved}; use it with --set cluster.kernel_table={saved.stem}", file=sys.stderr)


@trace_app.command()
def info(
    file: Annotated[Path, typer.Argument(help="A block or failure trace, plain or compressed.")],
    form: FormatOption = None,
    strict: StrictOption = False,
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Say what a trace holds; with --out, draw it."""
    from stripesim.traces import BlockTrace, describe, load

    trace = load(file, format=form, strict=strict)
    told = describe(trace)
    _warn_of_faults(trace.faults.lines())
    written: list[Path] = []
    if out is not None:
        from stripesim.scenarios.results import write_files

        written += write_files(out, {"trace-info.json": json.dumps(told, indent=1).encode()})
        if isinstance(trace, BlockTrace):
            from stripesim.traces.figure import figure_sheet

            written += figure_sheet(trace, out / "trace-info")
    if _json(json_to, told):
        return
    width = max(map(len, told))
    for key, value in told.items():
        print(f"{key:{width}}  {'–' if value is None else value}")
    _list_written(written)


@trace_app.command()
def fit(
    file: Annotated[Path, typer.Argument(help="A block or failure trace.")],
    form: FormatOption = None,
    strict: StrictOption = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of bootstraps and of the synthetic trace.")] = 1,
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Fit what a trace allows: service times and workload (scored on the unseen half), or lifetimes."""
    from stripesim.calibration.trace_fit import fit_trace, write_fit
    from stripesim.traces import load

    trace = load(file, format=form, strict=strict)
    _warn_of_faults(trace.faults.lines())
    found = fit_trace(trace, seed=seed)
    written = [] if out is None else write_fit(found, trace, out)
    if _json(json_to, found.to_dict()):
        return
    print(found.summary())
    _list_written(written)


@trace_app.command()
def convert(
    file: Annotated[Path, typer.Argument(help="A block or failure trace.")],
    form: FormatOption = None,
    strict: StrictOption = False,
    to: Annotated[str, typer.Option("--to", help="parquet, csv, or txt (as blkparse prints).")] = "parquet",
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Write a trace as columns (Parquet or CSV) or as blkparse text, into --out or the current folder."""
    from stripesim.traces import convert as write
    from stripesim.traces import load

    trace = load(file, format=form, strict=strict)
    _warn_of_faults(trace.faults.lines())
    folder = Path() if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    written = write(trace, folder / f"{file.name.split('.')[0]}.{to}")
    told = {"format": trace.format, "rows": len(trace), "faults": trace.faults.count}
    if not _json(json_to, {**told, "written": [str(path) for path in written]}):
        _list_written(written)


def _warn_of_faults(lines: list[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)


@app.command()
def crush(
    map_file: Annotated[Path, typer.Argument(help="A CRUSH map as text, as `crushtool -d` prints it.")],
    rule: Annotated[str, typer.Option("--rule", help="Id or name of a rule.")],
    num_rep: Annotated[int, typer.Option("--num-rep", help="OSDs wanted per input.")],
    min_x: Annotated[int, typer.Option("--min-x", help="First input.")] = 0,
    max_x: Annotated[int, typer.Option("--max-x", help="Last input.")] = 1023,
    weights: Annotated[
        list[str] | None,
        typer.Option("--weight", help="OSD=WEIGHT or 'OSD WEIGHT', 0 to 1; may be repeated."),
    ] = None,
    json_to: JsonOption = None,
) -> None:
    """Map inputs to OSDs as `crushtool --test --show-mappings` does."""
    from stripesim.cli_crush import mappings, print_mappings

    told = mappings(map_file, rule, num_rep, range(min_x, max_x + 1), weights or [])
    if _json(json_to, {"mappings": told}):
        return
    print_mappings(map_file, rule, told)


def _json(target: str | None, document: dict[str, Any]) -> bool:
    """Write a JSON document where asked; say whether it took standard output."""
    if target is None:
        return False
    text = json.dumps(document, indent=1, allow_nan=False, default=_plain)
    if target == "-":
        print(text)
        return True
    Path(target).write_text(text + "\n", encoding="utf-8")
    return False


def _plain(value: object) -> object:
    """Convert what the json module does not know: NumPy scalars and arrays, tuples of them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"no JSON form for {type(value).__name__}")


def _console() -> Any:
    from rich.console import Console

    # Into a pipe or a file a table needs a width of its own: rich would assume 80 columns.
    return Console(width=None if sys.stdout.isatty() else 160)


def _list_written(paths: list[Path]) -> None:
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)


class _progress:  # noqa: N801 - used as a function in `with`
    """A progress bar on a terminal's standard error; nothing anywhere else."""

    def __init__(self, title: str, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not sys.stderr.isatty(),
        )
        self._title = title
        # Until something is done it may be compiling, which takes a minute, once.
        self._task = self._bar.add_task(f"{title}: a first run compiles the engine", total=total)

    def __enter__(self) -> _progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, words: str, total: int | None = None) -> None:
        # The words are cut so that the time left stays on a narrow terminal.
        told = f"{self._title}: {words}"[:44]
        if total is None:
            self._bar.update(self._task, advance=1, description=told)
        else:
            self._bar.update(self._task, advance=1, description=told, total=total)
