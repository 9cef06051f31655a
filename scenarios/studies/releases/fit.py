"""Fit the numbers of each release in the stages of ``fit.toml``, and count those of its log.

``python -m stripesim.scenarios.studies.releases.fit [GROUP...]`` prints the values in ``parameters.toml``.
"""

import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.studies.description import shipped_toml
from stripesim.scenarios.studies.parameters import with_values
from stripesim.scenarios.studies.releases.machine import models_of, pool_of
from stripesim.scenarios.studies.releases.measured import ReleaseRun, load, rows_of
from stripesim.scenarios.studies.releases.runs import metrics_of, predict
from stripesim.scenarios.studies.staged_fit import (
    FitStage,
    RowValues,
    fit_stages,
    run_stages,
)

STUDY = "releases"
# What a sync adds to ``bluefs_bytes_written_wal`` beyond its transactions [B]: the last block, which is
# written again. The counter of 14.2.21 leaves out the part that was there before, half a block on average.
SYNC_BYTES = {"14": 2048, "18": 4096, "20": 4096}


def main(groups: list[str]) -> None:
    """Fit the groups, each release with what replication has fitted, and print."""
    known = {stage.group for stage in fit_stages(STUDY)}
    if unknown := sorted(set(groups) - known):
        sys.exit(f"got {unknown[0]}, wanted {', '.join(sorted(known))}")
    for release in shipped_toml(STUDY, "fit.toml")["releases"]:
        given: dict[str, float] = {}
        for group in (release, f"{release}-coded"):
            if groups and group not in groups:
                continue
            print(group)
            fits = run_stages(
                fit_stages(STUDY, group),
                simulator=simulator,
                published=measured,
                given=given,
            )
            for _, fit in fits:
                given |= {fitted.name: fitted.value for fitted in fit.parameters}
            for table in shipped_toml(STUDY, "fit.toml")["counted"]:
                if table["group"] == group:
                    given |= log_numbers(table["rows"], given)


def log_numbers(rows: Sequence[str], known: Mapping[str, float]) -> dict[str, float]:
    """Return the bytes of transactions in the log by the counters of some runs [B], and print them.

    With the log's bytes :math:`w`, syncs :math:`s` and transactions :math:`t` of a request, a width of
    :math:`n` shards and :math:`d` of them with data,

    .. math:: w - b s = n m + d x + (t - n) r

    where :math:`b` is what a sync adds, :math:`m` any member's transaction, :math:`x` what data add in
    erasure-coded pools, and :math:`r` a roll-forward. :math:`m` comes from replication.
    """
    by_id = {row.words("run_id"): row for row in rows_of()}
    runs = _runs()
    member = known.get("store.metadata_bytes")
    terms = []
    values = []
    for run_id in rows:
        row = by_id[run_id]
        ops = float(row.words("ops"))
        per_op = {
            name: float(row.words(name)) / ops
            for name in ("bluefs_bytes_written_wal", "bs_kv_sync_lat_n", "bs_txc")
        }
        sync_bytes = SYNC_BYTES[runs[run_id].pooled.major]
        value = (
            per_op["bluefs_bytes_written_wal"] - sync_bytes * per_op["bs_kv_sync_lat_n"]
        )
        width = parse_scheme(runs[run_id].run.coded.name).width
        if member is None:
            terms.append([per_op["bs_txc"]])
        else:
            value -= width * member
            terms.append([shards_with_data(runs[run_id]), per_op["bs_txc"] - width])
        values.append(value)
    names = ["store.metadata_bytes"]
    if member is not None:
        names = ["store.ec_metadata_extra_bytes", "store.roll_forward_log_bytes"]
    solution, *_ = np.linalg.lstsq(np.array(terms), np.array(values), rcond=None)
    numbers = dict(zip(names, solution.tolist(), strict=True))
    for name, number in numbers.items():
        print(f"{name:42s} {number:10.6g}")
    return numbers


def shards_with_data(one: ReleaseRun) -> float:
    """Return how many shards a request writes data to, on average."""
    pool = pool_of(one.pooled, one.run.coded)
    context = pool.contexts[0]
    counts = [
        len({extent.shard for extent in plan.writes})
        for plan in (
            context.plan_write(
                offset_bytes=offset % pool.object_bytes,
                length_bytes=length,
                object_size_bytes=pool.object_bytes,
            )
            for offset, length in zip(
                one.run.requests.offsets_bytes.tolist(),
                one.run.requests.lengths_bytes.tolist(),
                strict=True,
            )
        )
    ]
    return sum(counts) / len(counts)


def _runs() -> dict[str, ReleaseRun]:
    return {one.run.run_id: one for one in load().runs}


def measured(stage: FitStage) -> RowValues:
    """Return the measured values of a stage's rows."""
    runs = _runs()
    return {
        f"{run_id}:{metric}": runs[run_id].run.measured[metric]
        for run_id in stage.rows
        for metric in stage.metrics
    }


def simulator(
    stage: FitStage, known: Mapping[str, float]
) -> Callable[[Mapping[str, float]], RowValues]:
    """Return the function that simulates a stage's rows."""
    runs = _runs()

    def simulate(values: Mapping[str, float]) -> RowValues:
        tried = {name: round(value) for name, value in {**known, **values}.items()}
        simulated: dict[str, float] = {}
        for run_id in stage.rows:
            placed_run = runs[run_id]
            models = models_of(
                placed_run.pooled, parse_scheme(placed_run.run.coded.name)
            )
            metrics = metrics_of(predict(placed_run, models=with_values(models, tried)))
            simulated |= {
                f"{run_id}:{metric}": metrics[metric] for metric in stage.metrics
            }
        return simulated

    return simulate


if __name__ == "__main__":
    main(sys.argv[1:])
