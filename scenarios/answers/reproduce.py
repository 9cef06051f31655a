"""Compute a stored answer again from its provenance, and compare the rows or values by a hash."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from stripesim._version import __version__
from stripesim.models.coding import load_code_file
from stripesim.models.documents import canonical_json, json_text
from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.cells.files import file_sha256
from stripesim.scenarios.schema.loader import validated
from stripesim.scenarios.schema.scenario import Scenario, scenario_from
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import PROVENANCE, csv_text, stored_document

ROWS: Final = "results.csv"
#: Columns that differ between runs: wall-clock time.
_NOT_REPRODUCED: Final = frozenset({"engine_wall_s"})
#: Keys of an answer that differ: wall-clock time, and where and when it was computed.
_NOT_COMPARED: Final = frozenset({"wall_s", "provenance"})
#: Most differing values that are listed.
_LISTED_MAX: Final = 10

_WANTED: Final = "the --out of stripesim run, sweep, load, plan, rehearse or durability"

Lines = list[dict[str, str]]


def answer_of_verification(folder: str | Path) -> Answer:
    """Compute a stored answer again and compare its rows or values with the stored ones.

    Parameters
    ----------
    folder
        Folder that ``--out`` of `run`, `sweep`, `load`, `plan`, `rehearse` or `durability` wrote. Files that
        its scenario names must be where they were, relative to the working directory.

    Returns
    -------
    Answer
        Its exit status is 1 if the rows or values differ.

    Raises
    ------
    AnswerError
        If the folder does not hold such an answer.
    """
    folder = Path(folder)
    for name, computed in _COMPUTED.items():
        if (folder / name).is_file():
            stored = stored_document(folder / name, _WANTED)
            needed = {"configuration", *computed.of_provenance}
            provenance = _checked(folder, stored.get("provenance"), needed)
            missing = computed.of_document - stored.keys()
            if missing:
                got = f"a document without {', '.join(sorted(missing))}"
                place = str(folder / name)
                raise AnswerError(Problem(place=place, got=got, wanted=_WANTED))
            again = computed.again(_scenario(provenance), provenance, stored)
            lines = [_values(one) for one in (stored, json.loads(json_text(again)))]
            return _verified(folder, provenance, "values", *lines)
    provenance = _provenance(folder)
    # Spreadsheets put a byte order mark before what they save.
    rows = _lines((folder / ROWS).read_text(encoding="utf-8-sig"))
    simulated = _lines(csv_text(_simulated(provenance, rows)))
    return _verified(folder, provenance, "rows", rows, simulated)


def _verified(
    folder: Path, provenance: Mapping[str, Any], unit: str, stored: Lines, again: Lines
) -> Answer:
    hashes = {"stored": _sha256(stored), "again": _sha256(again)}
    is_equal = hashes["stored"] == hashes["again"]
    document = {
        "run": str(folder),
        "equal": is_equal,
        unit: len(stored) if unit == "rows" else len(stored[0]),
        "sha256": hashes,
        "stripesim": {"stored": str(provenance["stripesim"]), "again": __version__},
        "differing": _differences(stored, again, unit),
        "changed_codes": _changed_codes(provenance),
        "contradictions": list(_contradictions(provenance)),
    }
    return Answer(
        document=document,
        shown=list(_sentences(document, unit)),
        status=0 if is_equal else 1,
    )


def _load(
    scenario: Scenario, provenance: Mapping[str, Any], stored: Mapping[str, Any]
) -> Mapping[str, Any]:
    from stripesim.scenarios.answers.load.answer import answer_of_load
    from stripesim.scenarios.answers.load.curve_builder import CurveSettings
    from stripesim.scenarios.answers.load.curves import load_curves

    bounds_ns = {
        bound["latency_p99_ns"]
        for curve in stored["curves"]
        for bound in curve["p99_bounds"]
    }
    settings = CurveSettings(
        engine=str(provenance["engine"]),
        p99_bounds_s=[bound_ns / 1e9 for bound_ns in sorted(bounds_ns)],
        requests=provenance.get("requests"),
        unchecked=bool(provenance.get("unchecked")),
    )
    curves = load_curves(scenario, settings)
    return dict(answer_of_load(scenario, curves, settings).document)


def _vms(
    scenario: Scenario, provenance: Mapping[str, Any], stored: Mapping[str, Any]
) -> Mapping[str, Any]:
    from stripesim.scenarios.answers.load.vm_answer import answer_of_vms
    from stripesim.scenarios.answers.load.vms import vms_within

    engine = str(provenance["engine"])
    (bound_ns,) = {one["p99_bound_ns"] for one in stored["vms"]}
    within = vms_within(scenario, p99_bound_s=bound_ns / 1e9, engine=engine)
    replications = int(provenance["replications"])
    answer = answer_of_vms(scenario, within, engine=engine, replications=replications)
    return dict(answer.document)


def _plan(
    scenario: Scenario, provenance: Mapping[str, Any], stored: Mapping[str, Any]
) -> Mapping[str, Any]:
    from stripesim.scenarios.answers.plan.plan import make_plan

    engine = str(provenance["engine"])
    is_unchecked = bool(provenance.get("unchecked"))
    return make_plan(scenario, engine=engine, unchecked=is_unchecked).document


def _rehearsal(
    scenario: Scenario, provenance: Mapping[str, Any], stored: Mapping[str, Any]
) -> Mapping[str, Any]:
    from stripesim.scenarios.answers.rehearse.rehearse import rehearse

    # Both engines give the same nanoseconds.
    return rehearse(scenario, unchecked=bool(stored.get("refusals")))


def _durability(
    scenario: Scenario, provenance: Mapping[str, Any], stored: Mapping[str, Any]
) -> Mapping[str, Any]:
    from stripesim.scenarios.answers.durability.durability import estimate_durability

    is_unchecked = any(
        row.get("refused") and row["nines"] is not None for row in stored["rows"]
    )
    return estimate_durability(
        scenario,
        provenance["method"],
        walks=int(provenance["walks"]),
        unchecked=is_unchecked,
    )


class _Computed(NamedTuple):
    """A way to compute an answer again, and the keys of its provenance and document that this reads.

    Answers of versions before 0.4.0 state no refusals.
    """

    again: Callable[[Scenario, Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]
    of_provenance: frozenset[str] = frozenset()
    of_document: frozenset[str] = frozenset()


#: File of an answer that states all it was made from → how it is computed again.
_COMPUTED: Final[Mapping[str, _Computed]] = {
    "load.json": _Computed(_load, frozenset({"engine"}), frozenset({"curves"})),
    "vms.json": _Computed(
        _vms, frozenset({"engine", "replications"}), frozenset({"vms"})
    ),
    "plan.json": _Computed(_plan, frozenset({"engine"})),
    "rehearsal.json": _Computed(_rehearsal),
    "durability.json": _Computed(
        _durability, frozenset({"method", "walks"}), frozenset({"rows"})
    ),
}


def _values(document: Mapping[str, Any]) -> Lines:
    """Return the values of an answer by their places, as one row."""
    return [dict(_leaves(document))]


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in _NOT_COMPARED:
                yield from _leaves(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _leaves(one, f"{path}[{number}]")
    else:
        yield path, json.dumps(value, ensure_ascii=False)


def _sentences(document: Mapping[str, Any], unit: str) -> list[str]:
    hashes = document["sha256"]
    versions = document["stripesim"]
    lines = [
        f"{unit} sha256 {hashes['stored']} (stored, stripesim {versions['stored']})",
        f"{unit} sha256 {hashes['again']} (again, stripesim {versions['again']})",
    ]
    lines += [*document["changed_codes"], *document["contradictions"]]
    if document["equal"]:
        return [f"reproduced: the {unit} are equal ({document[unit]:,})", *lines]
    if versions["stored"] != versions["again"]:
        lines.append(
            "another version may give other numbers: compare with the one that stored them "
            f"(pip install stripesim=={versions['stored']})"
        )
    return [f"not reproduced: the {unit} differ", *lines, *document["differing"]]


def _provenance(folder: Path) -> dict[str, Any]:
    for name in (PROVENANCE, ROWS):
        if not (folder / name).is_file():
            raise AnswerError(
                Problem(place=str(folder), got=f"no {name}", wanted=_WANTED)
            )
    document = stored_document(folder / PROVENANCE, _WANTED)
    return _checked(folder, document, {"configuration", "engine"})


def _checked(folder: Path, document: object, needed: set[str]) -> dict[str, Any]:
    """Return a provenance, or raise an error if nothing can be computed from it."""
    if not isinstance(document, dict) or not {"stripesim", *needed} <= document.keys():
        got = "the provenance of another command"
        raise AnswerError(Problem(place=str(folder), got=got, wanted=_WANTED))
    return dict(document)


def _scenario(provenance: Mapping[str, Any]) -> Scenario:
    configuration = provenance["configuration"]
    # Its schemes may be codes of these files.
    codes = [Path(name) for name in configuration.get("codes", ())]
    for path in codes:
        if not path.is_file():
            wanted = "a file where it was, relative to the working directory"
            problem = Problem(
                place=PROVENANCE, key="codes", got=str(path), wanted=wanted
            )
            raise AnswerError(problem)
        load_code_file(path)
    # Rules refuse some keys that a run does not use, so keys with their defaults are left out.
    try:
        known = validated(configuration)
    except ValueError:
        got = f"a configuration of stripesim {provenance['stripesim']} that cannot be read"
        wanted = f"that of stripesim {__version__}"
        raise AnswerError(Problem(place=PROVENANCE, got=got, wanted=wanted)) from None
    return scenario_from(known.model_dump(mode="json", exclude_defaults=True))


def _changed_codes(provenance: Mapping[str, Any]) -> list[str]:
    """Name the files of codes whose content is no longer that of the stored answer."""
    recorded = [
        (code["file"], code["sha256"], file_sha256(Path(code["file"])))
        for code in provenance.get("codes", ())
    ]
    return [
        f"{file} has changed: sha256 {before} (stored), {now} (now)"
        for file, before, now in recorded
        if before != now
    ]


def _contradictions(provenance: Mapping[str, Any]) -> Iterator[str]:
    """Name what the provenance states otherwise than the configuration in it, which was simulated."""
    for key in ("seed", "generation"):
        simulated = provenance["configuration"].get(key)
        stated = provenance.get(key, simulated)
        if stated != simulated:
            yield f"{key}: the provenance states {stated}, its configuration {simulated} (simulated)"


def _simulated(provenance: Mapping[str, Any], stored: Lines) -> pl.DataFrame:
    """Simulate what the provenance states."""
    from stripesim.scenarios.answers.run.execute import run_scenario
    from stripesim.scenarios.answers.sweep.plan import plan_sweep
    from stripesim.scenarios.answers.sweep.run import run_sweep

    scenario = _scenario(provenance)
    engine = str(provenance["engine"])
    is_unchecked = any(row.get("refused") and row.get("iops") for row in stored)
    asked = provenance.get("sweep")
    if asked is None:
        costs = any(row.get("cost_latency_mean_ns") for row in stored)
        result = run_scenario(
            scenario, engine=engine, costs=costs, unchecked=is_unchecked
        )
        return result.rows
    plan = plan_sweep(
        scenario,
        over=asked["over"],
        zipped=asked["zip"],
        points=asked.get("list") or (),
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


def _differences(stored: Lines, again: Lines, unit: str) -> list[str]:
    """List the first differences of two tables, or of the values of two answers."""
    if len(stored) != len(again):
        return [f"{len(stored)} rows are stored, {len(again)} were simulated"]
    differences = [
        f"{f'row {number}: ' if unit == 'rows' else ''}{key}: "
        f"stored {before.get(key, 'none')}, again {after.get(key, 'none')}"
        for number, (before, after) in enumerate(zip(stored, again, strict=True))
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key)
    ]
    more = len(differences) - _LISTED_MAX
    return differences[:_LISTED_MAX] + ([f"and {more} more values"] if more > 0 else [])
