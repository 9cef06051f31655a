"""The phases of repairs, measured and simulated: from an OSD's death to a clean cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.models.recovery import SECOND_NS
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.studies.ceph16 import cluster
from stripesim.scenarios.studies.ceph16.measured import MeasuredRepair
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.failures import Failure, FaultPlan
from stripesim.sim.run import Run, simulate

# Phase → its first and last moment, by the names of `MeasuredRepair.times_s`.
PHASES = {
    "failure to down": ("failed", "down"),
    "down to out": ("down", "out"),
    "out to clean": ("out", "clean"),
    "restart to up": ("restarted", "up"),
    "up to clean again": ("up", "clean_again"),
}
_HEADING = "Phases of the repairs, measured and simulated (no claims: the machine was small and shared)"
# Processor time per byte of a message, on each side. The two replicated repairs took 2.41 s for 442 MB and
# 4.47 s for 820 MB (cpu_s and rec_net_cl_bytes of repair.csv), of which 0.39 s and 0.72 s is other work. It
# includes copies and checksums of messenger and store, and the work of the loopback and the loop devices. The
# erasure-coded repair is predicted.
MESSAGE_NS_PER_BYTE = 2.36
# A sync of the key-value log, with the wake-ups of its thread, while one OSD recovers. 5,759 syncs took
# 2.19 ms each (bluestore.kv_sync_lat of the coded repair). The 67 of each OSD without incoming data took
# 8.3 ms: all OSDs peer at the same moments and flush one disk. This leaves 0.89 ms.
SYNC_NS = 890_000
_SCHEMA = {
    "scheme": pl.String,
    "how": pl.String,
    "phase": pl.String,
    "measured_s": pl.Float64,
    "simulated_s": pl.Float64,
}


def simulate_repair(
    repair: MeasuredRepair, *, engine: str = "compiled", returns: bool = True
) -> Run:
    """Simulate a measured repair: the OSD dies, is rebuilt elsewhere, and may return at its measured time."""
    if returns and not timed(repair):
        raise ValueError(
            f"{repair.where}: got no times, wanted down_out_interval_s and t_restarted"
        )
    scheme = parse_scheme(repair.coded.name)
    pool_id = cluster.POOL_IDS.get(scheme.name, cluster.OTHER_POOL_ID)
    plan = FaultPlan(
        failures=[
            Failure(
                osds=(repair.dead_osd,),
                time_ns=0,
                kind="process" if repair.how == "kill" else "hang",
                back_ns=round(repair.times_s["restarted"] * SECOND_NS)
                if returns
                else None,
            )
        ],
        up_sets=lambda weights: cluster.acting_sets(
            scheme, pool_id=pool_id, pg_num=cluster.PG_NUM, weights=weights
        ),
        # The image was fresh, and its groups were seen in recovery_wait, never in backfill_wait.
        object_writes_count=1,
        log_deletions_count=repair.log_deletions_count,
        image_objects=-(-repair.image_bytes // cluster.OBJECT_BYTES),
        model=recovery_model("pacific").given(
            down_out_interval_ns=round((repair.down_out_interval_s or 0.0) * SECOND_NS)
        ),
    )
    # The cluster was otherwise idle, but a run needs a client, which reads once.
    once = Synthetic(
        pattern="rand",
        block_bytes=repair.coded.stripe_unit_bytes,
        image_bytes=repair.image_bytes,
        read_fraction=1.0,
        requests=1,
        queue_depth=1,
    )
    models = cluster.models_for(scheme)
    wakes_ns = models.threads.wake_ns + models.threads.sync_ns
    flush_ns = (
        models.ssd.flush_base_ns
        + SYNC_NS
        - models.ssd.sync_ns(models.store.metadata_bytes)
        - wakes_ns
    )
    models = replace(
        models,
        cpu=replace(models.cpu, message_ns_per_byte=MESSAGE_NS_PER_BYTE),
        ssd=replace(models.ssd, flush_base_ns=flush_ns),
    )
    pool = cluster.build_pool(
        repair.coded.name, repair.coded.stripe_unit_bytes, models=models
    )
    return simulate(pool, once.start(), faults=plan, engine=engine).accepted()


def simulated_times_s(result: Run) -> dict[str, float]:
    """Return the moments of `PHASES` in a run of `simulate_repair` [s after the failure]."""
    assert result.timeline is not None
    times_s: dict[str, float] = {}
    names = {
        "failed": "failed",
        "down": "down",
        "out": "out",
        "returned": "restarted",
        "up": "up",
    }
    for event in result.timeline["events"]:
        kind = event["what"]
        if kind == "seen clean":
            moment = "clean_again" if "restarted" in times_s else "clean"
            times_s[moment] = event["time_s"]
        elif kind in names:
            times_s.setdefault(names[kind], event["time_s"])
    return times_s


def phases_of(
    repair: MeasuredRepair, result: Run
) -> list[dict[str, str | float | None]]:
    """Return a row for each phase, with None for the duration if one of its moments is unknown."""
    measured_s = {"failed": 0.0, **repair.times_s}
    simulated_s = simulated_times_s(result)

    def lasted(times_s: dict[str, float], first: str, last: str) -> float | None:
        return (
            times_s[last] - times_s[first]
            if first in times_s and last in times_s
            else None
        )

    return [
        {
            "scheme": repair.coded.name,
            "how": "killed" if repair.how == "kill" else "hung",
            "phase": phase,
            "measured_s": lasted(measured_s, *moments),
            "simulated_s": lasted(simulated_s, *moments),
        }
        for phase, moments in PHASES.items()
    ]


def timed(repair: MeasuredRepair) -> bool:
    """Return True if the moments of a repair were measured."""
    return repair.down_out_interval_s is not None and "restarted" in repair.times_s


def frame_of_phases(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Return phases as a table with columns scheme, how, phase, measured_s and simulated_s."""
    return pl.DataFrame(
        [{name: row[name] for name in _SCHEMA} for row in rows], schema=_SCHEMA
    )


def phase_table(phases: pl.DataFrame) -> Table:
    """Return the phases as a table for the study's page."""

    def text(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f} s"

    columns = (
        "scheme",
        "the OSD was",
        "phase of the repair (no claim)",
        "measured",
        "simulated",
    )
    rows = [
        (scheme, how, phase, text(measured), text(simulated))
        for scheme, how, phase, measured, simulated in phases.iter_rows()
    ]
    return Table(_HEADING, columns, rows, form="stack", numeric=False)
