"""Fit the byte counts of the set `pacific`: what both schemes share on replication, the rest on three runs.

Run as ``python -m stripesim.scenarios.studies.ceph16.fit``; it prints the values that `pacific.toml`
holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot

from stripesim.calibration.fitting import Fit, fit_parameters
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.studies.ceph16.claims import ERASURE_CALIBRATION, SHARED_CALIBRATION
from stripesim.scenarios.studies.ceph16.cluster import models_for
from stripesim.scenarios.studies.ceph16.measured import load
from stripesim.scenarios.studies.ceph16.runs import COLUMNS, metrics_of, predict_run
from stripesim.scenarios.studies.parameters import with_values
from stripesim.sim.ceph.cluster import Models

# Durations of a flush that are tried [ns]. How many transactions share a sync depends on it; beyond some
# milliseconds the rows no longer tell, so the shortest that explains them nearly as well as the best wins.
FLUSH = "ssd.flush_base_ns"
FLUSHES_NS = (1.5e6, 3e6, 5e6, 8e6, 12e6)
NEARLY = 1.05
# Weight of a row, the same for all: counts repeat within a few per cent.
TOLERANCE = 0.02


@dataclass(frozen=True)
class Stage:
    """A step of the calibration.

    Parameters
    ----------
    metric : str
        Count that is fitted.
    parameters : tuple of str
        Model and field, such as ``messages.roll_forward_bytes``.
    runs : tuple of str
        Rows that it sees.
    """

    metric: str
    parameters: tuple[str, ...]
    runs: tuple[str, ...]


STAGES = (
    Stage("private_net", ("messages.sub_write_header_bytes",), SHARED_CALIBRATION),
    Stage("device_write", ("store.metadata_bytes",), SHARED_CALIBRATION),
    Stage(
        "private_net",
        (
            "messages.ec_sub_write_extra_bytes",
            "messages.sub_read_reply_header_bytes",
            "messages.roll_forward_bytes",
        ),
        ERASURE_CALIBRATION,
    ),
    Stage(
        "device_write",
        ("store.ec_metadata_extra_bytes", "store.roll_forward_log_bytes"),
        ERASURE_CALIBRATION[:2],
    ),
)


def fit_all() -> tuple[float, list[tuple[Stage, Fit]]]:
    """Run all stages, one after another; each starts from what those before it found.

    Returns
    -------
    flush_ns : float
        The duration of a flush that was chosen [ns].
    fits : list of (Stage, Fit)
    """
    tried = {flush_ns: _fit_stages(STAGES[1:2], {FLUSH: flush_ns}) for flush_ns in FLUSHES_NS}
    misfit = {flush_ns: hypot(*fits[0][1].errors.values()) for flush_ns, fits in tried.items()}
    chosen = min(flush_ns for flush_ns, size in misfit.items() if size <= NEARLY * min(misfit.values()))
    return chosen, _fit_stages(STAGES, {FLUSH: chosen})


def _fit_stages(stages: Sequence[Stage], given: Mapping[str, float]) -> list[tuple[Stage, Fit]]:
    runs = {run.run_id: run for run in load().runs}
    models = {name: models_for(parse_scheme(name)) for name in ("rep:3", "rs:6,3")}
    found = dict(given)
    fits = []
    for stage in stages:

        def simulate(
            values: Mapping[str, float], stage: Stage = stage, given: Mapping[str, float] = dict(found)
        ) -> dict[str, float]:
            told = {}
            for run_id in stage.runs:
                run = runs[run_id]
                row = predict_run(
                    run, models=with_values(models[run.coded.name], in_bytes({**given, **values}))
                )
                told[run_id] = metrics_of(row, COLUMNS)[stage.metric]
            return told

        fit = fit_parameters(
            simulate,
            start={name: value_of(models["rs:6,3"], name) for name in stage.parameters},
            published={run_id: runs[run_id].measured[stage.metric] for run_id in stage.runs},
            tolerance=dict.fromkeys(stage.runs, TOLERANCE),
        )
        found |= {one.name: one.value for one in fit.parameters}
        fits.append((stage, fit))
    return fits


def value_of(models: Models, name: str) -> float:
    """Return a parameter by its model's and its own name."""
    table, field = name.split(".")
    return float(getattr(getattr(models, table), field))


def in_bytes(values: Mapping[str, float]) -> dict[str, float]:
    """Round what a fit tries to whole bytes and nanoseconds."""
    return {name: round(value) for name, value in values.items()}


def main() -> None:
    """Print what the fits find, and how well each row is met."""
    flush_ns, fits = fit_all()
    print(f"{FLUSH:42s} {flush_ns:8.0f}   shortest of {FLUSHES_NS} that explains device_write")
    for stage, fit in fits:
        for one in fit.parameters:
            low, high = one.confidence_interval
            print(f"{one.name:42s} {one.value:8.0f}   [{low:.0f}, {high:.0f}]   from {stage.metric}")
        for run_id, error in fit.errors.items():
            print(f"    {run_id:38s} {error:+.1%}")


if __name__ == "__main__":
    main()
