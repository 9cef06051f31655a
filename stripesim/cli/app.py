"""The command line: what to run and where to put it. Heavy modules load inside the commands."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from stripesim._version import __version__
from stripesim.cli.crush import CrushCommand, crush
from stripesim.cli.durability import durability
from stripesim.cli.importing import import_app
from stripesim.cli.options import Engine, EngineOption, JsonOption, OutOption, ReportOption
from stripesim.cli.output import (
    console,
    list_written,
    progress,
    warn_outside,
    write_json,
)
from stripesim.cli.plan import plan
from stripesim.cli.serve import serve
from stripesim.cli.study import study_app
from stripesim.cli.trace import trace_app

app = typer.Typer(
    name="stripesim",
    help="Simulate a replicated or erasure-coded storage cluster, calibrated against measurements.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(trace_app, name="trace")
app.add_typer(study_app, name="study")
app.add_typer(import_app, name="import")


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
        bool, typer.Option("--costs/--no-costs", help="Show what the mean latency consists of, step by step.")
    ] = True,
    advise: Annotated[
        bool,
        typer.Option("--advise", help="Simulate what doubling each resource brings, alone and in pairs."),
    ] = False,
    out: OutOption = None,
    report: ReportOption = False,
    json_to: JsonOption = None,
) -> None:
    """Run a scenario: each scheme under each kind of request."""
    from stripesim.cli import run as cli_run

    options = cli_run.RunOptions(
        scenario=scenario, sets=sets or (), engine=engine.value, seed=seed, costs=costs, out=out,
        report=report, advise=advise,
    )  # fmt: skip
    raise typer.Exit(cli_run.run(options, json_to))


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
    dask_timeout_s: Annotated[
        float,
        typer.Option("--dask-timeout", help="Seconds to wait once all Dask workers have gone.", min=1.0),
    ] = 300.0,
    engine: EngineOption = Engine.COMPILED,
    seed: Annotated[int | None, typer.Option(help="Seed of offsets and service times.")] = None,
    out: OutOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the sweep in --out; rows there are kept.")
    ] = False,
    report: ReportOption = False,
    json_to: JsonOption = None,
) -> None:
    """Run a scenario at each point of a grid or list, on all cores; each row is kept as it comes."""
    from stripesim.cli import sweep as cli_sweep

    options = cli_sweep.SweepOptions(
        scenario=scenario, over=over or (), zipped=zipped or (), list_file=points, sets=sets or (),
        seed=seed, engine=engine.value, replications=replications, jobs=jobs, dask=dask,
        dask_timeout_s=dask_timeout_s, out=out,
        resume=resume, report=report,
    )  # fmt: skip
    result, plan, written, status = cli_sweep.sweep(options, progress)
    if not write_json(json_to, result.to_json()):
        warn_outside(result.warnings, report=out if report else None)
        cli_sweep.print_aggregated(result.aggregated, plan.keys, console())
        list_written(written)
    raise typer.Exit(status)


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
    generation: Annotated[
        list[str] | None,
        typer.Option(help="Ceph release, such as squid or tentacle; several on one time axis."),
    ] = None,
    stripe_unit: Annotated[str | None, typer.Option(help="Of a stripe, on one shard, such as 16k.")] = None,
    direct_reads: Annotated[
        bool, typer.Option("--direct-reads", help="The client reads shards itself (generation umbrella).")
    ] = False,
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
    from stripesim.cli import explain as cli_explain
    from stripesim.scenarios.explain.request import explain as timelines_of

    size_bytes, offset_bytes = cli_explain.extent(size, offset)
    timelines = timelines_of(
        op.value, schemes or ["rep:3", "rs:6,3"], size_bytes, offset_bytes=offset_bytes,
        generation=generation or None, state=state, image=image, lost_shard=lost_shard, scenario=scenario,
        sets=sets or (), stripe_unit_bytes=cli_explain.size("--stripe-unit", stripe_unit),
        direct_reads=direct_reads,
    )  # fmt: skip
    written = [] if out is None else cli_explain.write_timelines(timelines, out)
    if write_json(json_to, cli_explain.document(timelines)):
        return
    cli_explain.print_timelines(timelines, console(), steps=steps)
    list_written(written)


class Columns(enum.StrEnum):
    """How kernel timings are shown."""

    FULL = "full"
    SOURCE = "source"


@app.command()
def kernel(
    schemes: Annotated[
        list[str] | None,
        typer.Option(
            "--scheme",
            help="Code to time; may be repeated. Such as rs:6,3, lrc:8,4,4, lrc-ceph:8,4,3, shec:8,4,3, "
            "clay:8,4,11.",
        ),
    ] = None,
    sizes: Annotated[
        list[str] | None, typer.Option("--size", help="Data size, such as 24k; may be repeated.")
    ] = None,
    backends: Annotated[
        list[str] | None, typer.Option("--backend", help="pyeclib backend; left out: all that load here.")
    ] = None,
    cold: Annotated[bool, typer.Option("--cold", help="Add buffers that lie in no cache.")] = False,
    all_cores: Annotated[
        bool, typer.Option("--all-cores", help="Add as many processes at once as there are cores.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Both of these, and 4 KiB times k to 64 MiB; takes minutes.")
    ] = False,
    rounds: Annotated[int, typer.Option(help="Samples of each case.")] = 9,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against-ceph",
            help="Ceph's benchmark, or a recorded output of it; left out: what was measured on Ceph 16.2.15.",
        ),
    ] = None,
    columns: Annotated[
        Columns, typer.Option(help="source: seconds, KB, plugin, k, m … as Ceph's benchmark is published.")
    ] = Columns.FULL,
    save: Annotated[
        bool, typer.Option("--save", help="Keep the cost table for `cluster.kernel_table`.")
    ] = False,
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Time encode, decode and reconstruct on this machine, beside its memory's speed and beside Ceph."""
    from stripesim.cli import kernel as cli_kernel

    options = cli_kernel.KernelOptions(
        schemes=schemes or (), sizes=sizes or (), backends=backends, cold=cold or full,
        all_cores=all_cores or full, sweep=full, rounds=rounds, against=against,
        source_columns=columns is Columns.SOURCE, save=save, out=out,
    )  # fmt: skip
    cli_kernel.kernel(options, json_to)


app.command(cls=CrushCommand)(crush)
app.command()(durability)
app.command()(plan)
app.command()(serve)
