"""Options that several commands have, written once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Engine = Literal["compiled", "simpy"]


DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask", help="Address of a Dask scheduler to run on, or its scheduler file."
    ),
]
EngineOption = Annotated[
    Engine, typer.Option(help="compiled is fast; simpy is for reading and extending.")
]
JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        help="Write one JSON document to this file; - for stdout, and nothing else.",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for tables, provenance and figures."),
]
ReportOption = Annotated[
    bool,
    typer.Option("--report", help="Write report.html, one page to share, into --out."),
]
ScenarioArgument = Annotated[
    str,
    typer.Argument(
        help="A TOML file, or one that ships, such as quickstart.", show_default=False
    ),
]
SeedOption = Annotated[
    int | None, typer.Option(help="Seed of offsets and service times.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Override a key or parameter: KEY=VALUE, VALUE as in TOML."
    ),
]
