"""Values, reasons and figures of a study from rows that a test gives."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import judge
from stripesim.scenarios.show.figures.renderer import CaptionedFigure
from stripesim.scenarios.studies.base import Study, StudyResult
from stripesim.scenarios.studies.claim_rules import simulate_claims


def simulated_claims(study: Study, rows: pl.DataFrame) -> tuple[dict, dict]:
    """Return the values of a study's claims that rows give, and the reasons where there is none."""
    return simulate_claims(study.name, study.vocabulary(rows))


def computed(values: Mapping[str, Any]) -> set[str]:
    """Return the claims that have a value."""
    return {claim for claim, value in values.items() if value is not None}


def figures_of(study: Study, rows: pl.DataFrame) -> Mapping[str, CaptionedFigure]:
    """Draw what rows allow, with no claim judged."""
    ledger = judge(study.claims(), {})
    return study.figures(StudyResult(ledger=ledger, frame=lambda: rows, provenance={}))
