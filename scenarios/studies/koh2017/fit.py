"""Fit the set `kraken` to the study's calibration rows in the stages of ``fit.toml``.

``python -m stripesim.scenarios.studies.koh2017.fit`` prints the numbers in ``kraken.toml``. A row is computed
by the claim's own expression from the cells that it needs.
"""

from collections.abc import Callable, Mapping

import polars as pl

from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.scenarios.studies.ceph16.fit import in_whole_numbers
from stripesim.scenarios.studies.claim_rules import evaluate
from stripesim.scenarios.studies.koh2017.cells import KEYS, CellNumbers
from stripesim.scenarios.studies.koh2017.claims import STUDY, cells_of, vocabulary
from stripesim.scenarios.studies.lookup import claims_of, published
from stripesim.scenarios.studies.parameters import with_values
from stripesim.scenarios.studies.staged_fit import (
    FitStage,
    RowValues,
    fit_stages,
    run_stages,
)

SETS = {"cluster.parameters": "kraken", "workload.requests": 1500}
CLAIMS = {claim.id: claim for claim in claims_of(STUDY)}


def simulator(
    stage: FitStage, known: Mapping[str, float]
) -> Callable[[Mapping[str, float]], RowValues]:
    """Return the function that simulates a stage's rows."""
    scenario = load_scenario("koh2017", sets=SETS)
    base = with_values(build_models(scenario), _spread(known))

    def simulate(values: Mapping[str, float]) -> RowValues:
        models = with_values(base, _spread(values))
        rows = {}
        for claim in stage.rows:
            for keys in cells_of(claim):
                if keys not in rows:
                    scheme, op, pattern, _, size_bytes = keys
                    cell = Cell(scheme, op, pattern, size_bytes)  # type: ignore[arg-type]
                    # The numbers of a fit's steps are not shown.
                    result = run_cell(
                        scenario, cell, "compiled", models, unchecked=True
                    )
                    rows[keys] = {
                        **result.row.as_dict(),
                        **dict(zip(KEYS, keys, strict=True)),
                    }
        numbers = CellNumbers(pl.DataFrame(list(rows.values())))
        return {claim: _value(claim, numbers) for claim in stage.rows}

    return simulate


def _value(claim_id: str, numbers: CellNumbers) -> float:
    """Compute a claim. A value below an upper bound counts as the bound."""
    value = evaluate(STUDY, CLAIMS[claim_id], vocabulary(numbers))
    assert isinstance(value, float)
    if CLAIMS[claim_id].compare == "at-most":
        return max(value, published(STUDY)[claim_id])
    return value


def _spread(values: Mapping[str, float]) -> dict[str, float]:
    return {**in_whole_numbers(values), **values}


def main() -> None:
    """Fit and print."""
    run_stages(
        fit_stages(STUDY),
        simulator=simulator,
        published=lambda stage: {row: published(STUDY)[row] for row in stage.rows},
        tolerance=lambda stage: {row: CLAIMS[row].tolerance or 0 for row in stage.rows},
    )


if __name__ == "__main__":
    main()
