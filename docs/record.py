"""Record results that the documentation shows, because they take too long to compute in every build.

- ``python docs/record.py [STUDY...]`` runs the named studies, or all, and writes their verdicts to
  docs/ledgers/, with version and date.
- ``python docs/record.py readme`` rewrites the README's table of errors, which recording does as well.
- ``python docs/record.py calibration`` calibrates the example cluster that ships, for the trust page.
- ``python docs/record.py gallery`` sweeps the grid of the gallery's explorer (minutes).
- ``python docs/record.py pages [PAGE...]`` runs the commands whose output the pages and the README show.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from generate import gallery
from generate.ran import rewrite_pages
from generate.readme import README, rewritten
from generate.trust import CALIBRATION, FOLDER, scored_registers
from stripesim import __version__, studies, study, sweep
from stripesim.calibration.ledger import duration_errors, model_errors
from stripesim.calibration.ledger.duration_errors import (
    DurationError,
    coverage,
    duration_errors_text,
)
from stripesim.calibration.ledger.model_errors import (
    KIND_OF_METRIC,
    KINDS,
    OBJECTS_STUDY,
    STUDY,
    HeldOutError,
    errors_text,
)
from stripesim.scenarios.answers.calibrate import EXAMPLE
from stripesim.scenarios.answers.calibrate.answer import document_of
from stripesim.scenarios.answers.calibrate.calibrate import calibrate
from stripesim.scenarios.answers.calibrate.rows import table_runs
from stripesim.scenarios.answers.predict.register import rows_of
from stripesim.scenarios.answers.predict.score import score
from stripesim.scenarios.cells.measured import predict
from stripesim.scenarios.studies.base import StudyResult
from stripesim.scenarios.studies.nvme.measured import load
from stripesim.scenarios.studies.s3.measured import load as object_rows

# Fields of a claim that the page shows; the study's own ledger has the others.
KEPT = ("id", "metric", "role", "statement", "published_text", "unit", "simulated", "simulated_text", "error",
        "verdict", "reason")  # fmt: skip


def _short(value: Any) -> Any:
    """Round to six digits: further digits change with the order of additions."""
    if isinstance(value, list):
        return [_short(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def recorded(name: str) -> dict[str, Any]:
    """Run a study and return the recorded part of its ledger."""
    result = study(name)
    if name == STUDY:
        record_errors(result)
    if name == OBJECTS_STUDY:
        record_object_errors(result)
    intervals = {}
    if name == duration_errors.STUDY:
        intervals = {"intervals": record_duration_errors(result)}
    ledger = result.ledger.to_json()
    claims = [{key: _short(claim[key]) for key in KEPT} for claim in ledger["claims"]]
    return {
        "study": name,
        "version": __version__,
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "summary": ledger["summary"],
        **intervals,
        "not_right": [
            c for c in claims if c["role"] == "held-out" and c["verdict"] != "right"
        ],
    }


def record_duration_errors(result: StudyResult) -> dict[str, dict[str, int]]:
    """Write the errors of durations, which give rehearsals their intervals, and return what those hold."""
    errors = []
    for entry in result.ledger.entries:
        claim, simulated = entry.claim, entry.simulated
        if claim.op != "timed change" or not isinstance(simulated, float):
            continue
        assert isinstance(claim.published, float), claim.id
        ratio = claim.published / simulated
        errors.append(DurationError(claim.id, claim.role, ratio))
    path = Path(duration_errors.__file__).with_name(duration_errors.FILE)
    path.write_text(duration_errors_text(errors), encoding="utf-8")
    print(f"wrote {path}")
    return coverage(errors)


def record_errors(result: StudyResult) -> None:
    """Write the errors on held-out rows, from which predictions take the width of their intervals."""
    clusters = {row.id: row.cluster for row in load()[0]}
    errors = errors_of_study(result, clusters, KIND_OF_METRIC, calibrated=True)
    write_errors(model_errors.FILE, [*errors, *errors_on_new_clusters()])


def record_object_errors(result: StudyResult) -> None:
    """Write the errors of held-out rates of objects, on which the intervals of predictions are tested."""
    # The first row of a cluster names it.
    first_rows: dict[str, str] = {}
    clusters = {
        row.id: first_rows.setdefault(row.hardware, row.id) for row in object_rows()
    }
    kinds = {"rate": "rate", "throughput": "rate"}
    errors = errors_of_study(result, clusters, kinds, calibrated=False)
    write_errors(model_errors.OBJECTS_FILE, errors)


def errors_of_study(
    result: StudyResult,
    clusters: Mapping[str, str],
    kinds: Mapping[str, Any],
    *,
    calibrated: bool,
) -> Iterator[HeldOutError]:
    """Yield the errors of the held-out claims on rows, each `<row id>` or `<row id>:<metric>`.

    Parameters
    ----------
    result
        The study, whose rows have an id and a utilisation.
    clusters
        Cluster of each row, by id.
    kinds
        Kind of each metric. Claims of others are left out.
    calibrated
        True if a fit has seen other rows of the clusters.
    """
    utilisations = dict(result.rows.select("row_id", "utilisation").iter_rows())
    for entry in result.ledger.entries:
        claim, simulated = entry.claim, entry.simulated
        row_id = claim.id.partition(":")[0]
        if claim.role != "held-out" or not isinstance(simulated, float):
            continue
        if row_id not in clusters or claim.metric not in kinds:
            continue
        assert isinstance(claim.published, float), claim.id
        yield HeldOutError(
            id=claim.id,
            cluster=clusters[row_id],
            kind=kinds[claim.metric],
            calibrated=calibrated,
            utilisation=utilisations[row_id],
            measured_over_simulated=claim.published / simulated,
        )


def write_errors(file: str, errors: Iterable[HeldOutError]) -> None:
    """Write a file of errors of the package."""
    path = Path(model_errors.__file__).with_name(file)
    path.write_text(errors_text(errors), encoding="utf-8")
    print(f"wrote {path}")


def errors_on_new_clusters() -> Iterator[HeldOutError]:
    """Yield the errors on clusters that no fit has seen: the example of `calibrate`, and scored registers."""
    for run in table_runs(EXAMPLE):
        simulated = predict(run.measured, run.hardware)
        for row, numbers in zip(run.measured, simulated, strict=True):
            for metric, measured in row.measured.items():
                yield HeldOutError(
                    id=f"{row.id}:{metric}",
                    cluster=row.cluster,
                    kind=KIND_OF_METRIC[metric],
                    calibrated=False,
                    utilisation=numbers["utilisation"],
                    measured_over_simulated=measured / numbers[metric],
                )

    for folder in scored_registers():
        yield from errors_of_register(folder)


def errors_of_register(folder: Path) -> Iterator[HeldOutError]:
    """Yield the errors of a registered prediction of clusters that no fit had seen."""
    scored = score(folder / "register.json", folder / "measured.csv")
    utilisations = {row["id"]: row["utilisation"] for row in rows_of(scored.register)}
    for row in scored.rows:
        yield HeldOutError(
            id=f"{row.id}:{row.quantity}",
            # Ids of measured rows end in a number.
            cluster=row.id.rpartition("-")[0],
            kind=KINDS[row.quantity],
            calibrated=False,
            utilisation=utilisations[row.id],
            measured_over_simulated=row.measured / row.predicted,
        )


def record_calibration() -> None:
    """Calibrate the example cluster and write its rows before and after."""
    calibration = calibrate(EXAMPLE)
    document = document_of(calibration)
    for row in document["rows"]:
        row |= {key: _short(row[key]) for key in ("before", "after")}
    text = json.dumps({"cluster": EXAMPLE.name, **document}, indent=1)
    path = FOLDER / f"{CALIBRATION}.json"
    path.write_text(f"{text}\n", encoding="utf-8")
    print(f"wrote {path}")


def record_gallery() -> None:
    """Sweep the grid of the gallery's explorer and write its means."""
    result = sweep(gallery.SCENARIO, gallery.OVER, replications=gallery.REPLICATIONS)
    if result.failed or result.warnings:
        raise RuntimeError(f"docs: gallery: {result.failed or result.warnings}")
    gallery.kept(result.aggregated).write_csv(gallery.GRID)
    print(f"wrote {gallery.GRID}")


def main(names: list[str]) -> None:
    """Record the named studies, all studies, or the output that pages show."""
    if names[:1] == ["pages"]:
        for page in rewrite_pages(names[1:]):
            print(f"wrote {page}")
        return
    if names == ["gallery"]:
        record_gallery()
        return
    FOLDER.mkdir(exist_ok=True)
    for name in names or (*studies(), CALIBRATION):
        if name == "readme":
            continue
        if name == CALIBRATION:
            record_calibration()
            continue
        document = recorded(name)
        bad = ",\n".join(
            json.dumps(claim, ensure_ascii=False) for claim in document.pop("not_right")
        )
        head = json.dumps(document, indent=1, ensure_ascii=False).removesuffix("\n}")
        path = FOLDER / f"{name}.json"
        path.write_text(f'{head},\n "not_right": [\n{bad}\n]\n}}\n', encoding="utf-8")
        summary = document["summary"]
        print(
            f"wrote {path}: {summary['right']} of {summary['held_out']} held-out claims right"
        )
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {README}")


if __name__ == "__main__":
    main(sys.argv[1:])
