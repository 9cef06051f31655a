"""Fit the set `pacific`: what both schemes share on replication, the rest on a few runs of RS(6,3).

Run as ``python -m stripesim.scenarios.studies.ceph16.fit``; it prints the values that `pacific.toml`
holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from operator import attrgetter

from stripesim.calibration.fitting import Fit, fit_parameters
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.studies.ceph16.claims import (
    ERASURE_CALIBRATION,
    ERASURE_CPU_CALIBRATION,
    SHARED_CALIBRATION,
    SHARED_CPU_CALIBRATION,
)
from stripesim.scenarios.studies.ceph16.cluster import models_for
from stripesim.scenarios.studies.ceph16.measured import load
from stripesim.scenarios.studies.ceph16.runs import metrics_of_row, predict_run
from stripesim.scenarios.studies.parameters import with_values

# What is tried value by value, not fitted: the duration of a flush [ns], and the wake-ups of a transaction of
# erasure coding, of which steps count whole ones.
TRIED = {"ssd.flush_base_ns": (2.5e5, 5e5), "threads.ec_wakes_count": (3, 4, 5, 6)}
# Weight of a row, the same for all: counts repeat within a few per cent.
TOLERANCE = 0.02

# Processor times of the stages relative to each other, as the set `kraken` assumes them [ns]: two factors
# are fitted, one on operations and messages, one on transactions of the store, each named by its first.
OPERATIONS_NS = {
    "cpu.op_prepare_ns": 40_000,
    "cpu.message_base_ns": 20_000,
    "cpu.sub_op_send_ns": 10_000,
    "cpu.sub_write_send_ns": 10_000,
    "cpu.sub_op_prepare_ns": 25_000,
    "cpu.sub_reply_ns": 20_000,
    "cpu.op_finish_ns": 30_000,
    "cpu.store_read_ns": 35_000,
}
TRANSACTIONS_NS = {
    "cpu.store_transaction_ns": 40_000,
    "cpu.kv_transaction_ns": 20_000,
    "cpu.kv_finish_ns": 20_000,
}


@dataclass(frozen=True)
class Stage:
    """A step of the calibration."""

    metrics: tuple[str, ...]  # Counts or times that are fitted.
    parameters: tuple[
        str, ...
    ]  # Model and field, such as ``messages.roll_forward_bytes``.
    runs: tuple[str, ...]  # Rows that it sees.


STAGES = (
    Stage(("private_net",), ("messages.sub_write_header_bytes",), SHARED_CALIBRATION),
    Stage(("device_write",), ("store.metadata_bytes",), SHARED_CALIBRATION),
    Stage(
        ("private_net",),
        (
            "messages.ec_sub_write_extra_bytes",
            "messages.sub_read_reply_header_bytes",
            "messages.roll_forward_bytes",
        ),
        ERASURE_CALIBRATION,
    ),
    Stage(
        ("device_write",),
        ("store.ec_metadata_extra_bytes", "store.roll_forward_log_bytes"),
        ERASURE_CALIBRATION[:2],
    ),
)
# Processors: switches depend on the time that work takes, which depends on them, so they are fitted together.
SHARED_CPU_STAGES = (
    Stage(
        ("context_switches_per_op", "cpu_us_per_op"),
        (
            "threads.queue_wakes_count",
            "threads.sync_ns",
            "threads.wake_ns",
            "cpu.op_prepare_ns",
            "cpu.store_transaction_ns",
            "cpu.message_ns_per_byte",
        ),
        SHARED_CPU_CALIBRATION,
    ),
)
ERASURE_CPU_STAGES = (
    Stage(
        ("context_switches_per_op", "cpu_us_per_op"),
        ("cpu.ec_copy_ns_per_byte",),
        ERASURE_CPU_CALIBRATION,
    ),
)


def fit_all() -> tuple[dict[str, float], list[tuple[Stage, Fit]]]:
    """Run all stages, one after another; each starts from what those before it found.

    Returns what was chosen of `TRIED`, and the fits.
    """
    chosen: dict[str, float] = {}
    found: dict[str, float] = {}
    fits: list[tuple[Stage, Fit]] = []
    for (name, values), stages in zip(
        TRIED.items(), ((*SHARED_CPU_STAGES, *STAGES), ERASURE_CPU_STAGES), strict=True
    ):
        tried = {value: _fit_stages(stages, {**found, name: value}) for value in values}
        misfit = {
            value: hypot(*(e for _, fit in of for e in fit.errors.values()))
            for value, of in tried.items()
        }
        print(name, {value: round(one, 3) for value, one in misfit.items()}, flush=True)
        chosen[name] = min(misfit, key=lambda value: misfit[value])
        fits += tried[chosen[name]]
        found |= chosen | {
            one.name: one.value for _, fit in fits for one in fit.parameters
        }
    return chosen, fits


def _fit_stages(
    stages: Sequence[Stage], given: Mapping[str, float]
) -> list[tuple[Stage, Fit]]:
    runs = {run.run_id: run for run in load().runs}
    models = {name: models_for(parse_scheme(name)) for name in ("rep:3", "rs:6,3")}
    found = dict(given)
    fits = []
    for stage in stages:

        def simulate(
            values: Mapping[str, float],
            stage: Stage = stage,
            given: Mapping[str, float] = dict(found),
        ) -> dict[str, float]:
            found: dict[str, float] = {}
            for run_id in stage.runs:
                run = runs[run_id]
                row = predict_run(
                    run,
                    models=with_values(
                        models[run.coded.name], whole({**given, **values})
                    ),
                )
                metrics = metrics_of_row({"op": run.op, **row})
                found |= {
                    f"{run_id}:{metric}": metrics[metric] for metric in stage.metrics
                }
            return found

        fit = fit_parameters(
            simulate,
            start={
                name: float(attrgetter(name)(models["rs:6,3"]))
                for name in stage.parameters
            },
            published={
                f"{run_id}:{metric}": runs[run_id].measured[metric]
                for run_id in stage.runs
                for metric in stage.metrics
            },
            tolerance={
                f"{run_id}:{metric}": TOLERANCE
                for run_id in stage.runs
                for metric in stage.metrics
            },
        )
        found |= {one.name: one.value for one in fit.parameters}
        fits.append((stage, fit))
    return fits


def whole(values: Mapping[str, float]) -> dict[str, float]:
    """Round what a fit tries to whole bytes and nanoseconds, and spread the factors of the stages."""
    found = {
        name: round(value) if name.endswith(("_bytes", "_ns")) else value
        for name, value in values.items()
    }
    for stages_ns in (OPERATIONS_NS, TRANSACTIONS_NS):
        first = next(iter(stages_ns))
        if first in values:
            factor = values[first] / stages_ns[first]
            found |= {name: round(factor * value) for name, value in stages_ns.items()}
    return found


def main() -> None:
    """Print what the fits find, and how well each row is met."""
    chosen, fits = fit_all()
    for name, value in chosen.items():
        print(f"{name:42s} {value:8.0f}   of {TRIED[name]}")
    for stage, fit in fits:
        for one in fit.parameters:
            low, high = one.confidence_interval
            print(
                f"{one.name:42s} {one.value:8.6g}   [{low:.5g}, {high:.5g}]   from {stage.metrics}"
            )
        for row, error in fit.errors.items():
            print(f"    {row:62s} {error:+.1%}")


if __name__ == "__main__":
    main()
