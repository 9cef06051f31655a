"""Simulate planned changes of a real cluster and judge the shards and bytes that move."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.calibration.ledger.model_errors import COVERAGE
from stripesim.calibration.ledger.verdicts import Claim, Ledger, judge
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.answers.run.execute import parameters_of
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.studies.base import Setting, Study, StudyResult
from stripesim.scenarios.studies.ceph16.cluster import PARAMETERS, models_for
from stripesim.scenarios.studies.changes.claims import (
    simulated_metric,
    simulated_of_timed,
)
from stripesim.scenarios.studies.changes.measured import (
    MeasuredChange,
    MeasuredPool,
    claims_of_changes,
    has_changes,
    load_changes,
)
from stripesim.scenarios.studies.changes.runs import POOLS, change_rows
from stripesim.scenarios.studies.changes.timed import (
    TimedChange,
    by_key,
    claim_id,
    claims_of_times,
    load_timed,
)
from stripesim.scenarios.studies.changes.timed_runs import time_row
from stripesim.scenarios.studies.claim_rules import claim_rules, simulate_claims
from stripesim.scenarios.studies.tasks import Call, Row, Task


class ChangesStudy(Study):
    """Shards and bytes that planned changes move, and their times. Nothing is fitted."""

    name = "changes"
    prints_tables = True

    def parameters(self) -> list[Row]:
        """List the numbers of the cluster's models."""
        return parameters_of(models_for(parse_scheme("rs:6,3")))

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each pool, which goes through all changes, and for each timed change."""
        pools: tuple[MeasuredPool, ...] = POOLS
        folder = setting.options.get("data")
        timed_changes = load_timed(folder)
        if folder is not None:
            counted = _counted(folder, timed_changes)
            pools = tuple(dict.fromkeys(each.pool for each in counted))
        tasks = [
            Call(pool.scheme, change_rows, (pool, setting.engine)) for pool in pools
        ]
        timed = [
            Call(claim_id(key), time_row, (tuple(repeats), setting.engine))
            for key, repeats in by_key(timed_changes).items()
        ]
        return [*tasks, *timed]

    def claims(self) -> tuple[Claim, ...]:
        """Return the claims of ``claims.csv``, and those of timed changes."""
        return (*super().claims(), *claims_of_times(load_timed()))

    def vocabulary(self, rows: pl.DataFrame) -> Mapping[str, Any]:
        """Return the names that expressions of ``claims.toml`` know."""
        return {"moved": lambda claim: simulated_metric(rows, claim)}

    def ledger(self, setting: Setting, rows: pl.DataFrame) -> Ledger:
        """Judge the shipped claims, or the rows of another folder."""
        folder = setting.options.get("data")
        if folder is None:
            values, reasons = simulate_claims(self.name, self.vocabulary(rows))
            timed = claims_of_times(load_timed())
            values |= {claim.id: simulated_of_timed(rows, claim) for claim in timed}
            return judge(
                self.claims(),
                values,
                reasons=reasons,
                parameters=self.parameters(),
                groups=claim_rules(self.name).groups,
            )
        timed_changes = load_timed(folder)
        counted = claims_of_changes(_counted(folder, timed_changes))
        timed_claims = claims_of_times(timed_changes, read=())
        values = {claim.id: simulated_metric(rows, claim) for claim in counted}
        values |= {claim.id: simulated_of_timed(rows, claim) for claim in timed_claims}
        claims = (*counted, *timed_claims)
        return judge(claims, values, parameters=self.parameters())

    def result(
        self, setting: Setting, tasks: Sequence[Task], rows: Sequence[list[Row]]
    ) -> StudyResult:
        """Judge the claims, and count by role the measured times that intervals hold."""
        result = super().result(setting, tasks, rows)
        return replace(result, fields={"intervals": interval_coverage(result)})

    def figure_stems(self, result: StudyResult) -> Collection[str]:
        """Return the figures that the rows allow: a folder may have bytes or times alone."""
        needed = {"bytes": "change", "times": "timed_id"}
        return [stem for stem, key in needed.items() if key in result.rows.columns]

    def tables(self, result: StudyResult) -> Sequence[Table]:
        """Return how many measured times are within their intervals, by role."""
        lines = [
            (role, str(count["rows"]), str(count["within"]))
            for role, count in interval_coverage(result).items()
        ]
        if not lines:
            return ()
        columns = ("role", "timed changes", "measured time within the interval")
        title = f"Intervals of times until clean, meant to hold {100 * COVERAGE:.0f} %"
        return (Table(title, columns, lines),)

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the generation and the parameter set."""
        return {"generation": "pacific", "parameters": PARAMETERS}


def interval_coverage(result: StudyResult) -> dict[str, dict[str, int]]:
    """Return for each role how many timed changes there are, and how many intervals hold the measured time.

    A calibration change is left out of its own interval.
    """
    if "timed_id" not in result.rows.columns:
        return {}
    columns = ("timed_id", "time_until_clean_low_s", "time_until_clean_high_s")
    timed = result.rows.filter(pl.col("timed_id").is_not_null()).select(columns)
    intervals_s = {name: (low_s, high_s) for name, low_s, high_s in timed.iter_rows()}
    counts: dict[str, dict[str, int]] = {}
    for entry in result.ledger.entries:
        claim = entry.claim
        if claim.id not in intervals_s:
            continue
        low_s, high_s = intervals_s[claim.id]
        assert isinstance(claim.published, float), claim.id
        count = counts.setdefault(claim.role, {"rows": 0, "within": 0})
        count["rows"] += 1
        count["within"] += low_s <= claim.published <= high_s
    return counts


def _counted(
    folder: Path, timed_changes: Sequence[TimedChange]
) -> tuple[MeasuredChange, ...]:
    """Return the changes of a folder whose bytes are known: none if it has times alone."""
    if timed_changes and not has_changes(folder):
        return ()
    return load_changes(folder)


STUDY = ChangesStudy()
