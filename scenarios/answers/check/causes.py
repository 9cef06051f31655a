"""Causes of a number that is lower or higher than expected, each as a change of the simulated cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from stripesim.models.hdd import DeviceModel
from stripesim.models.provenance import Provenance
from stripesim.models.qos import mclock_defaults
from stripesim.scenarios.answers.calibrate.factors import starts, with_factors
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import number_text
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.qos import mclock

#: A cluster to simulate.
Changed = tuple[Scenario, Models]
_SOURCE: Final = "assumed by stripesim check"
_BLOCK_BYTES: Final = 4096


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A possible difference between the real cluster and the scenario.

    Attributes
    ----------
    name
        Key in JSON.
    words, faster_words
        Name for readers, also of a strength below 1. Where the latter is empty, both have the same.
    look
        How to look for it on the cluster.
    slower, faster
        Strengths to simulate for a number that is lower, or higher, than expected: factors from the weakest,
        where 1 changes nothing.
    applies
        Return True if the cause can act on a scenario.
    change
        Return the cluster under the cause of a strength.
    value
        Return the changed value of a strength in words.
    """

    name: str
    words: str
    faster_words: str = ""
    look: str
    slower: tuple[float, ...] = ()
    faster: tuple[float, ...] = ()
    applies: Callable[[Scenario], bool] = lambda scenario: True
    change: Callable[[Scenario, float], Changed]
    value: Callable[[Scenario, float], str]

    def words_of(self, strength: float) -> str:
        """Return the name of the cause of a strength."""
        return (strength < 1 and self.faster_words) or self.words


# --- the scheduler ----------------------------------------------------------------------------------------


def _scheduled(scenario: Scenario, factor: float) -> Changed:
    """Limit clients to a capacity below that of the drive, as mClock with a wrong measurement does."""
    models = build_models(scenario)
    queues = models.threads.op_shards_count
    queue = mclock(
        _WITH_MCLOCK[0], "balanced", queues=queues, measured_iops=_capacity(scenario, factor)
    )  # fmt: skip
    return scenario, replace(models, op_queue=queue)


#: Releases with mClock by default whose profile `balanced` limits clients to the capacity that was measured.
_WITH_MCLOCK: Final = ("quincy",)


def _capacity(scenario: Scenario, factor: float) -> float:
    """Return an OSD's capacity [1/s]: that of its drive, at most Ceph's default, divided by a factor."""
    drive = build_models(scenario).ssd
    return min(_DEFAULT_CAPACITY_IOPS, _drive_iops(drive)) / factor


#: osd_mclock_max_capacity_iops_ssd, v17 and later [1/s].
_DEFAULT_CAPACITY_IOPS: Final = 21_500.0


def _drive_iops(drive: DeviceModel) -> float:
    return drive.writers * 1e9 / drive.write_ns(_BLOCK_BYTES)


def limits_clients(scenario: Scenario) -> bool:
    """Return True if mClock of the release can limit clients that are alone on the cluster."""
    allocations = mclock_defaults(scenario.generation).profiles["balanced"]
    return scenario.generation in _WITH_MCLOCK and allocations.client.limit_fraction > 0


# --- processors -------------------------------------------------------------------------------------------


#: Key of the cores that OSDs have → its unit.
_CORES_UNITS: Final = {
    "cpu_limit_per_osd": "cores as the CPU limit of an OSD",
    "cores_per_osd": "cores per OSD",
    "cores_per_host": "cores per host",
}


def _fewer_cores(scenario: Scenario, factor: float) -> Changed:
    cores = {scenario.cluster.cores_key: _cores(scenario, factor)}
    changed = scenario.with_cluster(**cores)
    return changed, build_models(changed)


def _cores(scenario: Scenario, factor: float) -> float:
    key = scenario.cluster.cores_key
    stated: float = getattr(scenario.cluster, key)
    if key == "cores_per_host":
        return max(1, round(stated / factor))
    most = _most_per_osd(scenario)
    if key == "cores_per_osd":
        return min(max(1, round(stated / factor)), max(int(stated), int(most)))
    pinned = scenario.cluster.cores_per_osd or most
    return min(stated / factor, max(stated, min(most, pinned)))


def _most_per_osd(scenario: Scenario) -> float:
    """Return the cores that each OSD may have, with one of its host for other processes."""
    cluster = scenario.cluster
    return min(
        ((group.cores or cluster.cores_per_host) - 1) / group.osds
        for group in cluster.host_groups
        if group.osds
    )


def _cores_text(scenario: Scenario, factor: float) -> str:
    key = scenario.cluster.cores_key
    stated = getattr(scenario.cluster, key)
    return f"{_cores(scenario, factor):g} instead of {stated:g} {_CORES_UNITS[key]}"


def _factors(name: str) -> Callable[[Scenario, float], Changed]:
    """Return the change that multiplies one factor of a calibration."""

    def change(scenario: Scenario, factor: float) -> Changed:
        models = build_models(scenario)
        values = starts(models)
        values[name] *= factor
        return scenario, with_factors(models, values, _SOURCE)

    return change


def _times(what: str) -> Callable[[Scenario, float], str]:
    return lambda scenario, factor: f"{number_text(factor, digits=2)} times {what}"


# --- network ----------------------------------------------------------------------------------------------


def _slower_links(scenario: Scenario, factor: float) -> Changed:
    cluster = scenario.cluster
    changed = scenario.with_cluster(
        public_gbit_per_s=cluster.public_gbit_per_s / factor,
        private_gbit_per_s=cluster.private_gbit_per_s / factor,
    )
    return changed, build_models(changed)


def _gbit(scenario: Scenario, factor: float) -> str:
    rate = scenario.cluster.public_gbit_per_s / factor
    return f"{number_text(rate)} instead of {number_text(rate * factor)} Gb/s"


def _message_us(scenario: Scenario, factor: float) -> str:
    latency_us = build_models(scenario).public_nic.latency_ns / 1e3
    return f"{number_text(factor * latency_us)} instead of {number_text(latency_us)} µs for a message"


# --- drives -----------------------------------------------------------------------------------------------


def _slow_syncs(scenario: Scenario, factor: float) -> Changed:
    """Make each sync of the log flush the drive's cache, as on a drive without power-loss protection."""
    models = build_models(scenario)
    flush_ns = _flush_ns(models, factor)
    origin = Provenance("assumed", _SOURCE)
    drive = models.ssd.with_numbers({"flush_base_ns": flush_ns}, origin)
    return scenario, replace(models, ssd=drive)


def _flush_ns(models: Models, factor: float) -> float:
    """Return the duration of a flush: added to that of a write of 4 KiB, it multiplies it by the factor."""
    return (factor - 1) * models.ssd.write_ns(_BLOCK_BYTES)


def _flush_ms(scenario: Scenario, factor: float) -> str:
    flush_ns = _flush_ns(build_models(scenario), factor)
    return f"{number_text(flush_ns / 1e6)} ms more for each flush"


def _writes_to_ssds(scenario: Scenario) -> bool:
    is_disk = build_models(scenario).ssd.rotational
    return not is_disk and scenario.workload.ops == ("write",)


# --- clients ----------------------------------------------------------------------------------------------


def _fewer_in_flight(scenario: Scenario, factor: float) -> Changed:
    changed = scenario.with_workload(queue_depth=_depth(scenario, factor))
    return changed, build_models(changed)


def _depth(scenario: Scenario, factor: float) -> int:
    return max(1, round(scenario.workload.queue_depth / factor))


def _pristine(scenario: Scenario, factor: float) -> Changed:
    """Read objects that were never written. There is no strength: any factor but 1 means all objects."""
    changed = scenario if factor == 1 else scenario.with_workload(image="pristine")
    return changed, build_models(changed)


CAUSES: Final = (
    Cause(
        name="scheduler",
        words="mClock limits clients to a capacity that is too low",
        look="ceph config dump | grep osd_mclock_max_capacity_iops; compare with fio on the drive",
        slower=(1.0, 4.0, 16.0, 64.0),
        applies=limits_clients,
        change=_scheduled,
        value=lambda scenario, factor: (
            f"{number_text(_capacity(scenario, factor))} IOPS per OSD (profile balanced)"
        ),
    ),
    Cause(
        name="cores",
        words="OSDs get fewer cores (pinning, a cgroup limit, other processes)",
        faster_words="OSDs have more cores than stated",
        look="systemctl show ceph-osd@0 -p CPUQuota,AllowedCPUs; top while the test runs",
        slower=(2.0, 4.0, 8.0, 16.0),
        faster=(0.5,),
        change=_fewer_cores,
        value=_cores_text,
    ),
    Cause(
        name="processor",
        words="the processor is slower (clock, power saving) or does more work per request",
        faster_words="the processor is faster, or does less work per request",
        look="cpupower frequency-info; tuned-adm active; perf top on an OSD",
        slower=(1.4, 2.0, 4.0),
        faster=(0.7, 0.4),
        change=_factors("processor"),
        value=_times("the processor time"),
    ),
    Cause(
        name="network rate",
        words="the network is slower than stated",
        faster_words="the network is faster than stated",
        look="iperf3 between two hosts; ethtool INTERFACE | grep Speed; ceph osd dump | grep cluster_addr",
        slower=(2.5, 10.0, 25.0, 100.0),
        faster=(0.4,),
        change=_slower_links,
        value=_gbit,
    ),
    Cause(
        name="network latency",
        words="messages take longer (interrupt coalescing, deep sleep states, a detour)",
        faster_words="messages take less time than assumed",
        look="ping -i 0.2 -c 100 HOST; cpupower idle-info; ethtool -c INTERFACE",
        slower=(2.0, 5.0, 15.0),
        faster=(0.5,),
        change=_factors("network"),
        value=_message_us,
    ),
    Cause(
        name="drive",
        words="drives serve requests in another time than their data sheet says",
        look="fio --filename=/dev/DRIVE --direct=1 --rw=randread (or randwrite) --bs=4k --iodepth=1 on an "
        "unused drive",
        slower=(2.0, 5.0, 15.0, 50.0),
        faster=(0.5, 0.25),
        change=_factors("drive"),
        value=_times("the service time"),
    ),
    Cause(
        name="synchronous writes",
        words="drives have slow synchronous writes (no power-loss protection, or write cache on)",
        look="fio --filename=/dev/DRIVE --direct=1 --sync=1 --rw=write --bs=4k on an unused drive",
        slower=(5.0, 20.0, 100.0, 400.0),
        applies=_writes_to_ssds,
        change=_slow_syncs,
        value=_flush_ms,
    ),
    Cause(
        name="client",
        words="the client is the limit (one thread, one image, its processor)",
        faster_words="the client is faster than assumed",
        look="top -H on the client; run fio on two clients and add the rates",
        slower=(2.0, 4.0, 10.0),
        faster=(0.5,),
        change=_factors("client"),
        value=_times("the time at the client"),
    ),
    Cause(
        name="in flight",
        words="fewer requests are in flight than the test asks for (iodepth without an asynchronous engine)",
        faster_words="more requests are in flight than stated",
        look="fio's JSON: iodepth_level; --direct=1 with libaio, io_uring or rbd",
        slower=(2.0, 4.0, 16.0, 64.0),
        faster=(0.5,),
        applies=lambda scenario: scenario.workload.kind == "closed",
        change=_fewer_in_flight,
        value=lambda scenario, factor: (
            f"{_depth(scenario, factor)} instead of {scenario.workload.queue_depth} for each client"
        ),
    ),
    Cause(
        name="empty image",
        words="reads find objects that were never written",
        look="fill the image first: fio --rw=write --bs=4M over its whole size",
        faster=(0.5,),
        applies=lambda scenario: scenario.workload.ops == ("read",),
        change=_pristine,
        value=lambda scenario, factor: "no object of the image exists",
    ),
)
"""All causes. Which of them apply depends on the scenario and on the direction of the difference."""
