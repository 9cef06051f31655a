"""`stripesim plan`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stripesim.cli.options import (
    Engine,
    EngineOption,
    JsonOption,
    OutOption,
    ReportOption,
    SeedOption,
    SetOption,
)
from stripesim.cli.output import check_out, console, list_written, table, warn_outside, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping


def plan(
    scenario: Annotated[str, typer.Argument(help="A TOML file with a table [plan].")],
    sets: SetOption = None,
    seed: SeedOption = None,
    engine: EngineOption = Engine.COMPILED,
    out: OutOption = None,
    report: ReportOption = False,
    json_to: JsonOption = None,
) -> None:
    """Which cluster to buy: candidates, what each fails, and one recommendation with its reasons."""
    check_out(out, report=report)
    from stripesim.scenarios.planning.plan import make_plan
    from stripesim.scenarios.report.plan import rows_of
    from stripesim.scenarios.schema.loader import load_scenario

    loaded = load_scenario(scenario, sets=sets or (), seed=seed)
    document = make_plan(loaded, engine=engine.value, progress=lambda words: print(words, file=sys.stderr))
    written = [] if out is None else _write(out, loaded.name, loaded.description, document, report)
    if write_json(json_to, document):
        return
    warn_outside(document["warnings"], report=out if report else None)
    columns, rows = rows_of(document)
    console().print(table(columns, rows))
    best = document["recommended"]
    print("recommended:" if best else "no recommendation:")
    for line in document["reasons"]:
        print(f"  {line}")
    for one in document["candidates"]:
        if one is not best and not one["meets"]:
            named = f"{one['scheme']} {one['hosts']} × {one['osds_per_host']} {one['ssd']}"
            print(f"{named}: {'; '.join(one['fails'])}")
    for line in document["assumptions"]:
        print(f"assumes: {line}")
    list_written(written)


def _write(out: Path, name: str, description: str, document: Mapping[str, Any], report: bool) -> list[Path]:
    from stripesim.scenarios.report.plan import csv_of, report_of_plan
    from stripesim.scenarios.run.results import write_files

    files = {
        "plan.json": json.dumps(document, indent=1, default=str).encode(),
        "plan.csv": csv_of(document).encode(),
    }
    if report:
        files["report.html"] = report_of_plan(name, description, document).encode()
    return write_files(out, files)
