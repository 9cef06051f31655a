"""Simulate a stored run or sweep again from its provenance, and compare the rows by a hash."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from stripesim._version import __version__
from stripesim.models.documents import canonical_json
from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.schema.loader import scenario_from, validated
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import csv_text

PROVENANCE: Final = "provenance.json"
ROWS: Final = "results.csv"
#: Columns that differ between runs: wall-clock time.
_NOT_REPRODUCED: Final = frozenset({"engine_wall_s"})
#: Most differing values that are listed.
_LISTED_MAX: Final = 10

Lines = list[dict[str, str]]


def answer_of_verification(folder: str | Path) -> Answer:
    """Simulate a run or sweep again and compare its rows with the stored ones.

    Parameters
    ----------
    folder
        Folder that ``--out`` of `run` or `sweep` wrote. Files that its scenario names must be where they
        were, relative to the working directory.

    Returns
    -------
    Answer
        Its exit status is 1 if the rows differ.

    Raises
    ------
    AnswerError
        If the folder does not hold a run or a sweep.
    """
    folder = Path(folder)
    provenance = _provenance(folder)
    stored = _lines((folder / ROWS).read_text(encoding="utf-8"))
    again = _lines(csv_text(_simulated(provenance, stored)))
    hashes = {"stored": _sha256(stored), "again": _sha256(again)}
    is_equal = hashes["stored"] == hashes["again"]
    versions = {"stored": str(provenance["stripesim"]), "again": __version__}
    differing = list(_differences(stored, again))
    document = {
        "run": str(folder),
        "equal": is_equal,
        "rows": len(stored),
        "sha256": hashes,
        "stripesim": versions,
        "differing": differing,
    }
    return Answer(
        document=document,
        shown=list(_sentences(document)),
        status=0 if is_equal else 1,
    )


def _sentences(document: Mapping[str, Any]) -> list[str]:
    hashes = document["sha256"]
    versions = document["stripesim"]
    lines = [
        f"rows sha256 {hashes['stored']} (stored, stripesim {versions['stored']})",
        f"rows sha256 {hashes['again']} (again, stripesim {versions['again']})",
    ]
    if document["equal"]:
        return [f"reproduced: all {document['rows']} rows are equal", *lines]
    return ["not reproduced: the rows differ", *lines, *document["differing"]]


def _provenance(folder: Path) -> dict[str, Any]:
    wanted = "the --out of stripesim run or sweep"
    for name in (PROVENANCE, ROWS):
        if not (folder / name).is_file():
            raise AnswerError(
                Problem(place=str(folder), got=f"no {name}", wanted=wanted)
            )
    try:
        document = json.loads((folder / PROVENANCE).read_text("utf-8"))
    except ValueError as error:
        place = str(folder / PROVENANCE)
        raise AnswerError(Problem(place=place, got=str(error), wanted="JSON")) from None
    has_run = isinstance(document, dict) and {
        "stripesim",
        "configuration",
        "engine",
    } <= (document.keys())
    if not has_run:
        got = "the provenance of another command"
        raise AnswerError(Problem(place=str(folder), got=got, wanted=wanted))
    return dict(document)


def _simulated(provenance: Mapping[str, Any], stored: Lines) -> pl.DataFrame:
    """Simulate what the provenance states."""
    from stripesim.scenarios.answers.run.execute import run_scenario
    from stripesim.scenarios.answers.sweep.plan import plan_sweep
    from stripesim.scenarios.answers.sweep.run import run_sweep

    # Rules refuse some keys that a run does not use, so keys with their defaults are left out.
    try:
        known = validated(provenance["configuration"])
    except ValueError:
        got = f"a configuration of stripesim {provenance['stripesim']} that cannot be read"
        wanted = f"that of stripesim {__version__}"
        raise AnswerError(Problem(place=PROVENANCE, got=got, wanted=wanted)) from None
    scenario = scenario_from(known.model_dump(mode="json", exclude_defaults=True))
    engine = str(provenance["engine"])
    is_unchecked = any(row.get("refused") and row.get("iops") for row in stored)
    asked = provenance.get("sweep")
    if asked is None:
        costs = any(row.get("cost_latency_mean_ns") for row in stored)
        result = run_scenario(
            scenario, engine=engine, costs=costs, unchecked=is_unchecked
        )
        return result.rows
    listed = asked.get("list")
    is_file = isinstance(listed, str)
    plan = plan_sweep(
        scenario,
        over=asked["over"],
        zipped=asked["zip"],
        list_file=listed if is_file else None,
        points=() if is_file or listed is None else listed,
        replications=int(provenance["replications"]),
        engine=engine,
    )
    return run_sweep(plan, unchecked=is_unchecked).rows


def _lines(text: str) -> Lines:
    """Return the rows of a table without columns that are not reproduced."""
    return [
        {key: value for key, value in row.items() if key not in _NOT_REPRODUCED}
        for row in csv.DictReader(io.StringIO(text))
    ]


def _sha256(rows: Lines) -> str:
    text = canonical_json(rows, is_sorted=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _differences(stored: Lines, again: Lines) -> list[str]:
    """List the first differences of two tables."""
    if len(stored) != len(again):
        return [f"{len(stored)} rows are stored, {len(again)} were simulated"]
    found = [
        f"row {number}: {key}: stored {before.get(key, 'no column')}, again {after.get(key, 'no column')}"
        for number, (before, after) in enumerate(zip(stored, again, strict=True))
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key)
    ]
    more = len(found) - _LISTED_MAX
    return found[:_LISTED_MAX] + ([f"and {more} more values"] if more > 0 else [])
