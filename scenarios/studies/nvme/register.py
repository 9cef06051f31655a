"""Register the numbers of measured rows before anything is compared with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stripesim.scenarios.answers.predict.register import (
    COORDINATES,
    PredictedRow,
    predicted_values,
    register_document,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.studies.base import StudyResult


def register_of(result: StudyResult) -> dict[str, Any]:
    """Return the document of a register that predicts each row of a folder of measurements.

    It has none of the measured values. Rows of a folder that does not ship are taken as those of a cluster
    that no fit has seen.
    """
    provenance = result.provenance
    calibrated = provenance["data"] == "shipped"
    return register_document(
        _rows(result, calibrated=calibrated),
        provenance,
        parameters=result.ledger.parameters,
        scenario=f"study {provenance['study']}",
        seed=Scenario.model_fields["seed"].default,
    )


def _rows(result: StudyResult, *, calibrated: bool) -> Iterator[PredictedRow]:
    for row in result.rows.iter_rows(named=True):
        utilisation = row["utilisation"]
        values = predicted_values(row, utilisation, calibrated=calibrated)
        yield PredictedRow(
            id=row["row_id"],
            coordinates={
                key: row[key] for key in COORDINATES if row.get(key) is not None
            },
            utilisation=utilisation,
            values=tuple(values),
        )
