"""The commands of `stripesim trace`: summarise, fit and convert traces."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from stripesim.cli import output
from stripesim.cli.options import JsonOption, OutOption, WidthOption

trace_app = typer.Typer(
    help="Summarise, fit or convert block and failure traces.", no_args_is_help=True
)

FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="Format of the trace. Default: detect it."),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="time_us=NAME,offset=NAME,size=NAME,op=NAME",
        help="Columns of a CSV file in any other layout, by name or, without a header, by number from 1. "
        "Required: one of time_s, time_ms, time_us, time_ns; offset and size in bytes (or offset_sectors and "
        "size_sectors); one of op (R, Read, W, Write), is_write, is_read. Optional: device, response_s to "
        "response_ns.",
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Reject a trace that has any faulty line.")
]


@trace_app.command()
def info(
    file: Annotated[
        Path, typer.Argument(help="Block or failure trace, plain or compressed.")
    ],
    form: FormatOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    out: OutOption = None,
    width: WidthOption = None,
    json_to: JsonOption = None,
) -> None:
    """Summarise a trace, and with --out also draw it."""
    to = output.destination(out, json_to, width=width)
    from stripesim.scenarios.answers.trace import answer_of_trace

    trace = _load(file, form, columns, strict)
    output.deliver(answer_of_trace(trace), to)


@trace_app.command()
def fit(
    file: Annotated[Path, typer.Argument(help="Block or failure trace.")],
    form: FormatOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the bootstraps and the synthetic trace.")
    ] = 1,
    like: Annotated[
        str,
        typer.Option(
            help="Drive preset for numbers that the trace does not show, for drive.toml in --out."
        ),
    ] = "nvme-tlc",
    out: OutOption = None,
    width: WidthOption = None,
    json_to: JsonOption = None,
) -> None:
    """Fit service times and workload to a block trace, or lifetimes to a failure trace.

    The fit of a block trace is scored on the half that it has not seen. With --out, also write figures and,
    for service times, drive.toml. A scenario uses it with
    cluster.drive = "./drive.toml".
    """
    to = output.destination(out, json_to, width=width)
    from stripesim.calibration.trace_fit import fit_trace
    from stripesim.scenarios.answers.trace import answer_of_fit

    trace = _load(file, form, columns, strict)
    fitted = fit_trace(trace, seed=seed)
    output.deliver(answer_of_fit(fitted, trace, like=like), to)


@trace_app.command()
def convert(
    file: Annotated[Path, typer.Argument(help="Block or failure trace.")],
    form: FormatOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    to: Annotated[
        str, typer.Option("--to", help="parquet, csv, or txt (as blkparse prints).")
    ] = "parquet",
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Convert a trace to columns (Parquet or CSV) or to blkparse text, in --out or the current folder."""
    folder = Path() if out is None else out
    output.check_out(folder)
    # The conversion writes its files. What is left goes to the terminal or to --json.
    delivered_to = output.destination(None, json_to)
    from stripesim.scenarios.answers.trace import answer_of_conversion

    trace = _load(file, form, columns, strict)
    folder.mkdir(parents=True, exist_ok=True)
    answer = answer_of_conversion(trace, folder / f"{file.name.split('.')[0]}.{to}")
    output.deliver(answer, delivered_to)


def _load(file: Path, form: str | None, columns: str | None, strict: bool) -> Any:
    """Read a trace and report its unreadable lines on standard error."""
    from stripesim.traces import load

    roles = None if columns is None else _roles(columns)
    trace = load(file, format=form, columns=roles, strict=strict)
    for line in trace.faults.lines():
        print(line, file=sys.stderr)
    return trace


def _roles(text: str) -> dict[str, str]:
    """Parse ``role=column,...``."""
    roles: dict[str, str] = {}
    for part in text.split(","):
        role, equals, column = (piece.strip() for piece in part.partition("="))
        if not (role and equals and column) or role in roles:
            raise ValueError(
                f"--columns: got {part!r}, wanted time_us=NAME,offset=NAME,size=NAME,op=NAME, each role once"
            )
        roles[role] = column
    return roles
