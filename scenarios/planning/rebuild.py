"""How long a cluster takes to rebuild one lost OSD: a sample of its objects is simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.run.build import build_cell, build_models
from stripesim.scenarios.schema.keys import Cell, RepairSpec, Scenario, WorkloadSpec
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.run import simulate

__all__ = ["Rebuild", "idle_rebuild", "measured_rebuild"]

#: Objects of the sample that the lost OSD had a shard of [count]: a few for each of its placement groups.
SAMPLE_OBJECTS: Final = 4000

# The workload of an idle cluster still needs a form; one block of this size is read.
_BLOCK_BYTES: Final = 4096


@dataclass(frozen=True)
class Rebuild:
    """A repair that was simulated.

    Parameters
    ----------
    scheme : str
    objects : int
        Rebuilt in the simulation [count].
    lost_bytes : float
        What they had on the lost OSDs [B].
    seconds : float or None
        Simulated time until the last was whole again [s]; None where the run ended before.
    half_bytes_per_s : float or None
        The rate of a sample half as large [B/s]: how far the rate depends on the sample.
    network_bytes_per_lost_byte : float or None
    lost_osds : tuple of int
    reason : str or None
        Why nothing could be simulated.
    """

    scheme: str
    objects: int = 0
    lost_bytes: float = 0.0
    seconds: float | None = None
    half_bytes_per_s: float | None = None
    network_bytes_per_lost_byte: float | None = None
    lost_osds: tuple[int, ...] = ()
    reason: str | None = None

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes of the lost OSDs rebuilt a second [B/s]."""
        return self.lost_bytes / self.seconds if self.seconds else None

    def seconds_for(self, lost_bytes: float) -> float | None:
        """Time to rebuild so many bytes at the simulated rate [s]: an extrapolation."""
        rate = self.bytes_per_s
        return None if rate is None else lost_bytes / rate


def idle_rebuild(
    scenario: Scenario, scheme: str, *, engine: str = "compiled", sample_objects: int = SAMPLE_OBJECTS
) -> Rebuild:
    """Lose one OSD of a scenario's cluster under no load and rebuild a sample of its objects.

    Parameters
    ----------
    scenario : Scenario
        The throttles of its `[repair]` hold; OSDs that it misses stay missing.
    scheme : str
    engine : str
    sample_objects : int
        Objects to rebuild, about [count].

    Returns
    -------
    Rebuild
        With a reason and nothing else where the cluster cannot rebuild: no failure domain is spare, the
        scheme has no redundancy, or its decoding was never timed.

    Notes
    -----
    The first OSD is lost that the scenario does not miss already. Time runs from the first object to the
    last: the detection of the failure and the wait before the OSD counts as out come before.
    """
    code = parse_scheme(scheme)
    if code.failures_tolerated == 0:
        return Rebuild(scheme, reason="nothing to rebuild from: no redundancy")
    told = scenario.cluster
    missing = () if scenario.degraded is None else scenario.degraded.missing_osds
    lost = next(osd for osd in range(len(missing) + 1) if osd not in missing)
    throttles = {} if scenario.repair is None else scenario.repair.model_dump(exclude={"lost_osds"})
    try:
        models = build_models(scenario)
        shares = _share_of_objects(scenario, scheme, lost, models)
        if not shares:
            return Rebuild(scheme, reason=f"OSD {lost} holds nothing")
        runs = []
        for wanted in (sample_objects // 2, sample_objects):
            bytes_in_all = max(1, round(wanted / shares)) * told.object_bytes
            small = scenario.model_copy(
                update={
                    "faults": None,
                    "repair": RepairSpec(lost_osds=(lost,), **throttles),
                    "workload": WorkloadSpec(requests=1, image_bytes=max(bytes_in_all, _BLOCK_BYTES)),
                }
            )
            runs.append(_rebuild(small, Cell(scheme, "read", "rand", _BLOCK_BYTES), models, engine))
    except ValueError as error:
        return Rebuild(scheme, reason=str(error))
    half, whole = runs
    return Rebuild(**{**vars(whole), "half_bytes_per_s": half.bytes_per_s})


def _share_of_objects(scenario: Scenario, scheme: str, osd: int, models: Models) -> float:
    """Share of placement groups that an OSD is in, 0 to 1."""
    from stripesim.scenarios.run.build import build_pool

    acting = build_pool(scenario, parse_scheme(scheme), models).cluster.acting
    return float((acting == osd).any(axis=1).mean())


def _rebuild(scenario: Scenario, cell: Cell, models: Models, engine: str) -> Rebuild:
    setting = build_cell(scenario, cell, models)
    result = simulate(
        setting.pool,
        setting.workload,
        faults=setting.faults,
        seed=scenario.seed,
        engine=engine,
    )
    return measured_rebuild(scenario, {"scheme": cell.scheme, **result.row})


def measured_rebuild(scenario: Scenario, row: Mapping[str, Any]) -> Rebuild:
    """Read the repair that a scenario asked for off one of its rows.

    Parameters
    ----------
    scenario : Scenario
        With a `[repair]`.
    row : mapping
        Result row of one of its cells.
    """
    assert scenario.repair is not None
    return Rebuild(
        scheme=row["scheme"],
        objects=row["repair_objects"],
        lost_bytes=row["repair_lost_bytes"],
        seconds=row["repair_s"],
        network_bytes_per_lost_byte=row.get("repair_private_net_bytes_per_lost_byte"),
        lost_osds=scenario.repair.lost_osds,
    )
