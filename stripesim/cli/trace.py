"""The commands of `stripesim trace`: what a trace holds, what can be fitted to it, other formats."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from stripesim.cli.options import JsonOption, OutOption
from stripesim.cli.output import console, list_written, write_json

trace_app = typer.Typer(
    help="Read block traces: statistics, fits, other formats.", no_args_is_help=True
)

FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="Format of the trace; left out: recognised."),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="time_us=NAME,offset=NAME,size=NAME,op=NAME",
        help="Columns of any other CSV, by name or, without a heading, by number from 1: "
        "time_s, time_ms, time_us or time_ns; offset and size in bytes (or offset_sectors, "
        "size_sectors); op (R, Read, W, Write), is_write or is_read; "
        "where present device and response_s to response_ns.",
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Refuse a trace with any faulty line.")
]


@trace_app.command()
def info(
    file: Annotated[
        Path, typer.Argument(help="A block or failure trace, plain or compressed.")
    ],
    form: FormatOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Say what a trace holds; with --out, draw it."""
    from stripesim.traces import BlockTrace, describe

    trace = _load(file, form, columns, strict)
    summary = describe(trace)
    written: list[Path] = []
    if out is not None:
        from stripesim.scenarios.run.results import write_files

        written += write_files(
            out, {"trace-info.json": json.dumps(summary, indent=1).encode()}
        )
        if isinstance(trace, BlockTrace):
            from stripesim.traces.figure import figure_sheet

            written += figure_sheet(trace, out / "trace-info")
    if write_json(json_to, summary):
        return
    from stripesim.cli.tables import summary_tables

    terminal = console()
    for table in summary_tables(summary):
        terminal.print(table)
    list_written(written)


@trace_app.command()
def fit(
    file: Annotated[Path, typer.Argument(help="A block or failure trace.")],
    form: FormatOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of bootstraps and of the synthetic trace.")
    ] = 1,
    like: Annotated[
        str,
        typer.Option(
            help="Drive preset that stands in --out's drive.toml for what the trace does not show."
        ),
    ] = "nvme-tlc",
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Fit what a trace allows: service times and workload (scored on the unseen half), or lifetimes.

    With --out, also write figures and, for service times, drive.toml. A scenario uses it as cluster.drive =
    "./drive.toml".
    """
    from stripesim.calibration.trace_fit import fit_trace, write_fit

    trace = _load(file, form, columns, strict)
    found = fit_trace(trace, seed=seed)
    written = [] if out is None else write_fit(found, trace, out, like=like)
    if write_json(json_to, found.to_dict()):
        return
    print(found.summary())
    list_written(written)


@trace_app.command()
def convert(
    file: Annotated[Path, typer.Argument(help="A block or failure trace.")],
    form: FormatOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    to: Annotated[
        str, typer.Option("--to", help="parquet, csv, or txt (as blkparse prints).")
    ] = "parquet",
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Write a trace as columns (Parquet or CSV) or as blkparse text, into --out or the current folder."""
    from stripesim.traces import convert as write

    trace = _load(file, form, columns, strict)
    folder = Path() if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    written = write(trace, folder / f"{file.name.split('.')[0]}.{to}")
    counts = {"format": trace.format, "rows": len(trace), "faults": trace.faults.count}
    if not write_json(json_to, {**counts, "written": [str(path) for path in written]}):
        list_written(written)


def _load(file: Path, form: str | None, columns: str | None, strict: bool) -> Any:
    """Read a trace and say on standard error which of its lines could not be read."""
    from stripesim.traces import load

    roles = None if columns is None else _roles(columns)
    trace = load(file, format=form, columns=roles, strict=strict)
    for line in trace.faults.lines():
        print(line, file=sys.stderr)
    return trace


def _roles(text: str) -> dict[str, str]:
    """Parse `role=column,…`."""
    roles: dict[str, str] = {}
    for part in text.split(","):
        role, equals, column = (piece.strip() for piece in part.partition("="))
        if not (role and equals and column) or role in roles:
            raise ValueError(
                f"--columns: got {part!r}, wanted time_us=NAME,offset=NAME,size=NAME,op=NAME, each once"
            )
        roles[role] = column
    return roles
