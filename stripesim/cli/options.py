"""Options that several commands have, written once."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Engine", "EngineOption", "JsonOption", "OutOption", "ReportOption", "SeedOption", "SetOption"]


class Engine(enum.StrEnum):
    """The two engines; they give the same answer."""

    COMPILED = "compiled"
    SIMPY = "simpy"


EngineOption = Annotated[Engine, typer.Option(help="compiled is fast; simpy is for reading and extending.")]
JsonOption = Annotated[
    str | None,
    typer.Option("--json", help="Write one JSON document to this file; - for stdout, and nothing else."),
]
OutOption = Annotated[Path | None, typer.Option("--out", help="Folder for tables, provenance and figures.")]
ReportOption = Annotated[
    bool, typer.Option("--report", help="Write report.html, one page to share, into --out.")
]
SeedOption = Annotated[int | None, typer.Option(help="Seed of offsets and service times.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Override a key or parameter: KEY=VALUE, VALUE as in TOML.")
]
