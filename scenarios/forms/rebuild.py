"""Estimate the time to rebuild one lost OSD, by simulating a sample of its objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.models.placement import Movement
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.failures import limits_of, recovery_sync_words
from stripesim.scenarios.cells.files import content_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import up_sets, up_sets_without_each
from stripesim.scenarios.schema.keys import Cell, WorkloadSpec
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.cluster import NO_OSD, Models
from stripesim.sim.ceph.failures.background.reservations import (
    backfills_of,
    schedule_s,
)
from stripesim.sim.observe.audit import refuse
from stripesim.sim.observe.intervals import student_interval
from stripesim.sim.run import simulate

#: Objects in the sample with a shard on the lost OSD [count]: a few for each of its placement groups.
SAMPLE_OBJECTS: Final = 4000

#: Objects in the sample of the rate that durability assumes [count]: a second of processor time. Small
#: samples end before the rebuild is steady: with 96 OSDs, this one gives a rate up to 8 % below that of a
#: sample four times as large, and one of 400 objects up to 30 %.
RATE_OBJECTS: Final = 1600

#: OSDs of which the groups rebuilt at a time are counted, at most [count].
_SAMPLE_OSDS: Final = 8

# Samples of increasing size. Their differences give the steady rebuild rate.
_SAMPLES: Final = 4
# Even an idle cluster needs a workload: it reads one block of this size.
_BLOCK_BYTES: Final = 4096


@dataclass(frozen=True)
class Rebuild:
    """A simulated repair of `objects` that had `lost_bytes` on the lost OSDs.

    Attributes
    ----------
    seconds
        Duration [s], or None if unfinished.
    half_bytes_per_s
        Rate of a sample half as large [B/s], to show the dependence on the size of the sample.
    pace_bytes_per_s, pace_low, pace_high
        Steady rate without start and stragglers [B/s], with its 95 % interval.
    limited_by
        Resources near their limit. None if throttles limit the rate.
    reason
        Why the simulation was not possible.
    refused
        Check of the audit that a simulation fails. None if all pass.
    """

    scheme: str
    objects: int = 0
    lost_bytes: float = 0.0
    seconds: float | None = None
    half_bytes_per_s: float | None = None
    pace_bytes_per_s: float | None = None
    pace_low: float | None = None
    pace_high: float | None = None
    limited_by: str | None = None
    network_bytes_per_lost_byte: float | None = None
    lost_osds: tuple[int, ...] = ()
    reason: str | None = None
    refused: str | None = None

    def accepted(self) -> Rebuild:
        """Return this rebuild if it passes the audit.

        Raises
        ------
        RefusedError
            If the audit refuses one of its simulations.
        """
        if self.refused is not None:
            refuse(f"rebuild of {self.scheme}: {self.refused}")
        return self

    def withheld(self) -> Rebuild:
        """Return this rebuild, or one without numbers if the audit refuses it."""
        if self.refused is None:
            return self
        return Rebuild(self.scheme, reason=self.refused, refused=self.refused)

    @property
    def bytes_per_s(self) -> float | None:
        """Rebuild rate of the lost OSDs' data [B/s]."""
        return self.lost_bytes / self.seconds if self.seconds else None

    def seconds_for(self, lost_bytes: float) -> float | None:
        """Return the time to rebuild this much data [s]: the sample's, plus the rest at the steady rate.

        Less data than the sample's take at least their part of its time.
        """
        rate = self.bytes_per_s
        if rate is None or self.seconds is None:
            return None
        share_s = lost_bytes / rate
        if self.pace_bytes_per_s is None:
            return share_s
        left_bytes = lost_bytes - self.lost_bytes
        whole_s = self.seconds + left_bytes / self.pace_bytes_per_s
        return max(whole_s, share_s) if left_bytes < 0 else whole_s

    def seconds_interval(self, lost_bytes: float) -> tuple[float, float] | None:
        """Return the 95 % interval of `seconds_for` [s], or None if the sample has none."""
        if self.seconds is None or self.pace_low is None or self.pace_high is None:
            return None
        left_bytes = max(0.0, lost_bytes - self.lost_bytes)
        return (
            self.seconds + left_bytes / self.pace_high,
            self.seconds + left_bytes / self.pace_low,
        )


def idle_rebuild(
    scenario: Scenario,
    scheme: str,
    *,
    engine: str = "compiled",
    sample_objects: int = SAMPLE_OBJECTS,
) -> Rebuild:
    """Lose one OSD of an idle cluster and rebuild a sample of its objects."""
    scenario = scenario.with_recovered_objects()
    code = parse_scheme(scheme)
    if code.failures_tolerated == 0:
        return Rebuild(scheme, reason="nothing to rebuild from: no redundancy")
    try:
        models = build_models(scenario)
        lost, shares = _first_holder(scenario, scheme, models)
        if not shares:
            return Rebuild(scheme, reason="no OSD holds anything")
        runs = []
        for quarter in range(1, _SAMPLES + 1):
            wanted = sample_objects * quarter // _SAMPLES
            bytes_in_all = (
                max(1, round(wanted / shares)) * scenario.cluster.object_bytes
            )
            load = WorkloadSpec(requests=1, image_bytes=max(bytes_in_all, _BLOCK_BYTES))
            small = scenario.without_osd(lost, load)
            runs.append(
                _rebuild(
                    small, Cell(scheme, "read", "rand", _BLOCK_BYTES), models, engine
                )
            )
    except ValueError as error:
        return Rebuild(scheme, reason=str(error))
    half = runs[_SAMPLES // 2 - 1]
    full_sample = runs[-1]
    refusals = [run.refused for run in runs if run.refused is not None]
    return replace(
        full_sample,
        half_bytes_per_s=half.bytes_per_s,
        refused=next(iter(refusals), None),
        **_pace(runs),
    )


class RebuildRate(NamedTuple):
    """The rate at which a lost OSD's bytes are restored, and where it comes from."""

    bytes_per_s: float
    words: str


def simulated_rate(
    scenario: Scenario, scheme: str, drive_bytes: float, rebuild: Rebuild | None = None
) -> RebuildRate:
    """Return the rate at which the recovery model rebuilds an OSD of an idle cluster.

    Parameters
    ----------
    scenario, scheme
        The cluster, its recovery settings and the scheme.
    drive_bytes
        Bytes that the OSD holds [B].
    rebuild
        A simulated rebuild of this cluster, if there is one.

    Raises
    ------
    ValueError
        If the OSD cannot be rebuilt.
    """
    if rebuild is None:
        rebuild = _idle_rebuild(_SameRecovery(scenario), scheme)
    rebuild.accepted()
    seconds = rebuild.seconds_for(drive_bytes)
    if not seconds:
        reason = rebuild.reason or "the rebuild does not finish"
        got = f"no rebuild rate for {scheme} ({reason})"
        raise scenario.problem(
            "durability.repair", got, "durability.repair_bytes_per_s"
        )
    rate = drive_bytes / seconds
    return RebuildRate(
        rate,
        f"{rate / 1e6:,.4g} MB/s for each lost OSD: the recovery model simulates a rebuild of "
        f"{rebuild.objects:,} objects on the idle cluster, where {recovery_sync_words(scenario)}",
    )


def groups_at_once(scenario: Scenario, scheme: str) -> int:
    """Return how many placement groups of a lost OSD are rebuilt at a time, on average.

    Parameters
    ----------
    scenario, scheme
        The cluster, its recovery settings and the scheme.

    Returns
    -------
    int
        The mean of a few OSDs [count], at least 1.

    Notes
    -----
    A group takes a slot of its primary and one of the OSD that replaces the lost one. Where CRUSH finds no
    replacement, the new drive takes all groups and has `max_backfills` slots.
    """
    slots = limits_of(scenario).max_backfills_count
    code = parse_scheme(scheme)
    missing = {NO_OSD, *scenario.missing_osds}
    holders = [
        osd for osd in np.unique(up_sets(scenario, code)).tolist() if osd not in missing
    ]
    sample = holders[:: -(-len(holders) // _SAMPLE_OSDS)]
    counts = []
    for osd, (before, after) in zip(
        sample, up_sets_without_each(scenario, code, sample), strict=True
    ):
        lost = [osd, *missing]
        left = np.where(np.isin(before, lost), NO_OSD, before)
        up = np.where(np.isin(after, lost), NO_OSD, after)
        whole = (left != NO_OSD).any(axis=1)
        movement = Movement.between(
            left[whole], up[whole], is_replicated=code.kind == "replicated"
        )
        backfills = backfills_of(movement, left[whole].tolist())
        turns = schedule_s(backfills, group_s=1.0, slots=slots)
        counts.append(len(backfills) / turns if turns else slots)
    return max(1, round(float(np.mean(counts)))) if counts else 1


class _SameRecovery:
    """A scenario that equals all others with the same cluster, recovery and content of files."""

    def __init__(self, scenario: Scenario) -> None:
        scenario = scenario.with_recovered_objects()
        self.scenario = scenario
        bare = {
            "workload": WorkloadSpec(),
            "workloads": (),
            "repair": scenario.repair_of(0),
            "faults": None,
            "changes": (),
            "durability": None,
            "plan": None,
            "schemes": (),
            "name": "",
            "description": "",
        }
        self._key = content_of(scenario.replaced(**bare))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameRecovery) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=64)
def _idle_rebuild(same: _SameRecovery, scheme: str) -> Rebuild:
    """Rebuild an OSD once for all scenarios with the same cluster and recovery."""
    return idle_rebuild(same.scenario, scheme, sample_objects=RATE_OBJECTS)


def _pace(runs: Sequence[Rebuild]) -> dict[str, Any]:
    """Return the rate at which larger samples take longer, with its interval."""
    if any(run.seconds is None for run in runs):
        return {}
    steps = np.diff([[run.lost_bytes, run.seconds or 0.0] for run in runs], axis=0)
    interval = student_interval(
        [taken / rebuilt for rebuilt, taken in steps.tolist() if rebuilt > 0], least=3
    )
    if interval.mean <= 0:
        return {}
    # An interval of seconds per byte. If it includes zero, the rate has no interval.
    known = interval.low is not None and interval.high is not None and interval.low > 0
    return {
        "pace_bytes_per_s": 1 / interval.mean,
        "pace_low": 1 / interval.high if known and interval.high else None,
        "pace_high": 1 / interval.low if known and interval.low else None,
    }


def _first_holder(scenario: Scenario, scheme: str, models: Models) -> tuple[int, float]:
    """Return the first OSD that holds shards, and the fraction of placement groups that it belongs to."""
    from stripesim.scenarios.cells.build import build_pool

    cluster = build_pool(scenario, parse_scheme(scheme), models).cluster
    missing = scenario.missing_osds
    for osd in range(cluster.osds):
        share = float((cluster.acting == osd).any(axis=1).mean())
        if share and osd not in missing:
            return osd, share
    return 0, 0.0


def _rebuild(scenario: Scenario, cell: Cell, models: Models, engine: str) -> Rebuild:
    inputs = build_cell(scenario, cell, models)
    result = simulate(
        inputs.pool,
        inputs.workload,
        faults=inputs.faults,
        seed=scenario.seed,
        engine=engine,
    )
    return measured_rebuild(scenario, {"scheme": cell.scheme, **result.row.as_dict()})


def measured_rebuild(scenario: Scenario, row: Mapping[str, Any]) -> Rebuild:
    """Extract the repair of a scenario from one of its rows."""
    assert scenario.repair is not None
    return Rebuild(
        scheme=row["scheme"],
        objects=row["repair_objects"],
        lost_bytes=row["repair_lost_bytes"],
        seconds=row["repair_s"],
        network_bytes_per_lost_byte=row.get("repair_private_net_bytes_per_lost_byte"),
        lost_osds=scenario.repair.lost_osds,
        limited_by=row.get("limits"),
        refused=row.get("refused"),
    )
