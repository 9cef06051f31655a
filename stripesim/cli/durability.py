"""`stripesim durability`."""

from __future__ import annotations

import enum
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stripesim.cli.options import DaskOption, JsonOption, OutOption, SeedOption, SetOption
from stripesim.cli.output import console, list_written, progress, table, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping


class Method(enum.StrEnum):
    """How durability is computed."""

    MARKOV = "markov"
    SPLITTING = "splitting"
    BURST = "burst"
    ALL = "all"


def durability(
    scenario: Annotated[str, typer.Argument(help="A TOML file with a table [durability].")],
    method: Annotated[
        Method,
        typer.Option(help="markov: exact chain; splitting: simulation of rare events; burst: combinatorics."),
    ] = Method.ALL,
    sets: SetOption = None,
    seed: SeedOption = None,
    walks: Annotated[
        int, typer.Option(min=10, help="Walks that each of 20 batches begins at every level.")
    ] = 1000,
    dask: DaskOption = None,
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """How many nines: the probability that any data is lost within a horizon, and how."""
    from stripesim.scenarios.planning.durability import answer
    from stripesim.scenarios.schema.loader import load_scenario

    loaded = load_scenario(scenario, sets=sets or (), seed=seed)
    spread: Any = None
    if dask is not None:
        from stripesim.scenarios.sweep.dask import map_dask

        spread = partial(map_dask, dask)
    with progress(loaded.name, None) as step:
        document = answer(loaded, method.value, walks=walks, spread=spread, progress=step)
    written = [] if out is None else _write(out, document)
    if write_json(json_to, document):
        return
    columns = ("scheme", "method", "nines", "95 % interval", "P(any loss)", "MTTDL [h]", "lost [B/year]",
               "unavailable", "walks", "time [s]")  # fmt: skip
    rows = document["rows"]
    console().print(table(columns, map(_cells, rows), numbers=range(2, len(columns))))
    for line in (line for row in rows for line in _lines(row)):
        print(line)
    for line in document["skipped"]:
        print(f"left out: {line}")
    list_written(written)


def _write(out: Path, document: Mapping[str, Any]) -> list[Path]:
    from stripesim.scenarios.figures.durability import draw_nines
    from stripesim.scenarios.figures.results import save_figures
    from stripesim.scenarios.run.results import rows_frame, write_results

    flat = [
        {key: value for key, value in row.items() if not isinstance(value, list)} for row in document["rows"]
    ]
    extra = {"durability.json": json.dumps(document, indent=1)}
    written = write_results(out, rows_frame(flat), document["provenance"], extra)
    return written + save_figures({"nines": draw_nines(document["rows"])}, out)


def _cells(row: Mapping[str, Any]) -> list[str]:
    def number(value: float | None, form: str = ".3g") -> str:
        return "–" if value is None else f"{value:{form}}"

    exact = row["nines_low"] == row["nines_high"]
    interval = "exact" if row["exact"] else "approximation" if exact else (
        f"{number(row['nines_low'], '.3f')} … {number(row['nines_high'], '.3f')}"
    )  # fmt: skip
    return [
        row["scheme"], row["method"], number(row["nines"], ".3f"), interval, number(row["loss_probability"]),
        number(row["mttdl_hours"]), number(row["bytes_lost_per_year"]), number(row["unavailability"]),
        f"{row['trajectories']:,}", f"{row['wall_s']:.2f}",
    ]  # fmt: skip


def _lines(row: Mapping[str, Any]) -> list[str]:
    """Say how data is lost and what the numbers rest on."""
    where = f"{row['scheme']} {row['method']}"
    path = [] if row["dominant_path"] is None else [f"{where}: {row['dominant_path']}"]
    bursts = [
        f"{where}: burst {one['name']} ({one['units']} {one['unit']}s, {one['per_year']:g} a year) loses "
        f"data with probability {one['loss_probability']:.4g}"
        for one in row["bursts"]
    ]
    return [*path, *bursts, f"{where}: assumes: {' '.join(row['assumptions'])}"]
