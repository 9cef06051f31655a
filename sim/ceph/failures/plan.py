"""The plan of a run under faults: failures, slow drives, corruption, and changes that operators make."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from stripesim.models.placement import OsdWeights
from stripesim.models.problems import Problem, ProblemsError
from stripesim.models.recovery import RecoveryModel
from stripesim.sim.ceph.failures.cluster_map import MapChange
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import SLOWDOWN_MAX, SLOWDOWN_UNIT

FailureKind = Literal["process", "power", "hang"]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """OSDs that stop together, and perhaps come back."""

    osds: tuple[int, ...]  #: Numbers of the OSDs
    time_ns: int  #: When they stop [ns]
    back_ns: int | None = None  #: When they come back [ns], None for never
    #: ``process``: the daemon dies, connections are refused, and peers report it immediately. ``power``:
    #: silence, which only heartbeats reveal. ``hang``: silence too, but the daemon continues afterwards.
    kind: FailureKind = "process"
    #: Hosts whose processors and network stop as well: those that lose power entirely
    hosts: tuple[int, ...] = ()
    keeps_data: bool = True  #: True if OSDs come back with their data

    @property
    def loses_data(self) -> bool:
        """True if the data of the OSDs is gone for good."""
        return self.back_ns is None or not self.keeps_data

    def lasts_at(self, time_ns: int) -> bool:
        """Return True if the OSDs are still to come back at a time [ns]."""
        return self.back_ns is not None and time_ns < self.back_ns


@dataclass(frozen=True, kw_only=True)
class SlowDrives:
    """OSDs whose drives become slow together, and perhaps recover."""

    osds: tuple[int, ...]  #: Numbers of the OSDs
    time_ns: int  #: When [ns]
    #: Service times of the drives, in 1/`SLOWDOWN_UNIT` of the normal ones
    slowdown: int
    end_ns: int | None = None  #: When they are back at their speed [ns], None for never


@dataclass(frozen=True, kw_only=True)
class Corruption:
    """Shards that silently go bad, until the next scrub of their PG finds them."""

    osd: int
    time_ns: int  #: When [ns]
    shards_count: int = 1  #: Shards that go bad, drawn by seed from those the OSD holds


@dataclass(frozen=True, kw_only=True)
class PlannedChange:
    """Changes of the map that the commands of an operator make."""

    kind: str  #: Kind, as the scenario names it
    changes: tuple[MapChange, ...]
    #: Time [ns]; None: once the cluster is clean after the previous changes
    time_ns: int | None = None
    #: Time of the command that makes each change, from the start [ns]; empty: one command makes all at once
    delays_ns: tuple[int, ...] = ()
    #: Time from the start until the flag ``norebalance`` ends [ns], under which PGs that are not degraded
    #: backfill nothing; 0: without the flag
    norebalance_ns: int = 0

    @property
    def commands_ns(self) -> int:
        """Time from the start until the last command has been given [ns]."""
        return max((self.norebalance_ns, *self.delays_ns))


@dataclass(frozen=True, kw_only=True)
class FillPlan:
    """Initial fill of the OSDs, and the ratios at which Ceph reacts."""

    capacity_bytes: npt.NDArray[np.float64]  #: Capacity of each OSD [B], shape (osds,)
    #: Bytes that each OSD holds at the start, of all pools [B], shape (osds,)
    used_bytes: npt.NDArray[np.float64]
    #: Bytes that one simulated shard represents: more than its size if only some objects are simulated [B]
    shard_bytes: int
    nearfull_ratio: float  #: Share at which Ceph warns (``mon_osd_nearfull_ratio``)
    #: Share above which no backfill to an OSD begins (``mon_osd_backfillfull_ratio``)
    backfillfull_ratio: float
    full_ratio: float  #: Share at which writes stop (``mon_osd_full_ratio``)
    #: True if clients write, so that a full OSD stops their writes
    clients_write: bool = False

    def described(self, ratios: npt.NDArray[np.float64]) -> dict[str, Any]:
        """Return the fullest OSD, its used share, and the highest ratio that it reaches.

        Parameters
        ----------
        ratios
            Used share of each OSD, shape (osds,).
        """
        fullest = int(ratios.argmax())
        peak = float(ratios[fullest])
        limits = {
            "nearfull": self.nearfull_ratio,
            "backfillfull": self.backfillfull_ratio,
            "full": self.full_ratio,
        }
        reached = [state for state, limit in limits.items() if peak >= limit]
        return {
            "peak_used_ratio": peak,
            "full_ratio_reached": reached[-1] if reached else None,
            "fullest_osd": fullest,
        }


@dataclass(frozen=True)
class FaultProblem:
    """Problem of an event of a plan."""

    event: int  #: Number of the event, from 0
    got: str
    wanted: str
    key: str = ""  #: Key of the event, empty if it is the event as a whole


@dataclass(frozen=True, kw_only=True)
class FaultPlan:
    """All failures, slow drives, corruption and changes of a run, and the cluster's reaction."""

    failures: Sequence[Failure] = ()
    slow_drives: Sequence[SlowDrives] = ()
    corruptions: Sequence[Corruption] = ()
    changes: Sequence[PlannedChange] = ()
    #: Weights of OSDs → OSD of each shard of each PG as CRUSH has it, shape (groups, width), `NO_OSD`
    #: where it finds none
    up_sets: Callable[[OsdWeights], IntArray]
    image_objects: int  #: Objects of the image
    model: RecoveryModel
    #: As `up_sets`, of the pool that holds the indexes of buckets; None: there are no buckets
    index_up_sets: Callable[[OsdWeights], IntArray] | None = None
    #: Pause before each change without a time, after the cluster has become clean [ns]
    change_pause_ns: int = 0
    #: Time from the moment when the cluster is clean after the last change, or without changes after the last
    #: return of OSDs, until the run ends [ns]. None: neither ends it
    end_pause_ns: int | None = None
    fill: FillPlan | None = None  #: Fill of the OSDs; None: they never fill up
    #: OSDs that were lost before the run: down and out, without their data
    lost_osds: tuple[int, ...] = ()
    #: OSDs that are down from the beginning and stay in: their shards are missing and not rebuilt
    missing_osds: tuple[int, ...] = ()
    #: Rack of each OSD, or its site without racks: while a whole one is down, none of its OSDs is marked out
    #: (``mon_osd_down_out_subtree_limit``). None: no racks, shape (osds,)
    osd_racks: IntArray | None = None
    #: Site of each OSD of a cluster in stretch mode, None in other modes, shape (osds,)
    stretch_sites: IntArray | None = None
    prefilled: bool = True  #: True if all objects of the image exist beforehand
    images_count: int = 1  #: Images of that size [count]
    #: Objects that exist beforehand and that no client requests [count]
    other_objects_count: int = 0
    #: Objects of the pool per simulated one [1]
    objects_ratio: float = 1.0
    #: Objects that each PG holds beforehand, instead of those of the image; None: those of the image [count]
    group_objects_count: int | None = None
    #: Objects of each PG, where a measurement states them; None: those of the image, shape (groups,)
    group_objects: Sequence[int] | None = None
    #: Of the objects that clients store, one in this many is recovered, and represents the others
    recovered_one_in: int = 1
    #: Writes that each object of a prefilled image has had since the pool was made: entries in the logs of
    #: PGs. None: more than any log holds
    object_writes_count: int | None = None
    #: Objects that each PG's log lists as deleted before the run
    log_deletions_count: int = 0
    scrubs: bool = False  #: True if scrubs read; otherwise they take no time
    seed: int = 0  #: Of the phases of heartbeats and scrubs, and of corruption
    series_ns: int = (
        1_000_000_000  #: Width of the bins of the series in the result [ns]
    )

    def check(self, osd_hosts: IntArray) -> None:
        """Check the plan against a cluster.

        Parameters
        ----------
        osd_hosts
            Host of each OSD, shape (osds,).

        Raises
        ------
        ProblemsError
            If the plan has problems.
        """
        for problem in self.problems(osd_hosts):
            raise ProblemsError(
                Problem(
                    place=f"fault {problem.event}",
                    got=problem.got,
                    wanted=problem.wanted,
                )
            )

    def problems(self, osd_hosts: IntArray) -> Iterator[FaultProblem]:
        """Yield the problems of the plan on a cluster.

        It may name an OSD or a host that does not exist, go back in time, let an OSD fail that is already
        down, or slow a drive down that is already slow. Events are numbered in the order of failures, slow
        drives, corruptions, changes.
        """
        osds = len(osd_hosts)
        yield from problems_of_failures(self.failures, osds, int(osd_hosts.max()) + 1)
        first_slow = len(self.failures)
        yield from problems_of_slow_drives(
            self.slow_drives, osds, first_event=first_slow
        )
        first_corruption = first_slow + len(self.slow_drives)
        for event, corruption in enumerate(self.corruptions, start=first_corruption):
            yield from _wrong_numbers(event, "OSD", [corruption.osd], osds)
            yield from _wrong_time(event, corruption.time_ns)
        first_change = first_corruption + len(self.corruptions)
        for event, change in enumerate(self.changes, start=first_change):
            subjects = [map_change.subject for map_change in change.changes]
            yield from _wrong_numbers(event, "OSD", subjects, osds)
            yield from _wrong_time(event, change.time_ns or 0)


def problems_of_failures(
    failures: Sequence[Failure], osds: int, hosts: int
) -> Iterator[FaultProblem]:
    """Yield the problems of failures, of each alone and then after an earlier one of its OSDs."""
    for event, failure in enumerate(failures):
        yield from _problems_of_failure(event, failure, osds, hosts)
    last: dict[int, tuple[int, Failure]] = {}
    by_time = sorted(enumerate(failures), key=lambda entry: entry[1].time_ns)
    for event, failure in by_time:
        for osd in failure.osds:
            if osd in last:
                yield from _not_back(event, failure, osd, *last[osd])
            last[osd] = (event, failure)


def problems_of_slow_drives(
    slow_drives: Sequence[SlowDrives], osds: int, *, first_event: int = 0
) -> Iterator[FaultProblem]:
    """Yield the problems of slow drives, of each alone and after an earlier one of its OSDs."""
    latest: dict[int, SlowDrives] = {}
    by_time = sorted(enumerate(slow_drives), key=lambda entry: entry[1].time_ns)
    for index, slow in by_time:
        event = first_event + index
        yield from _problems_of_slow_drive(event, slow, osds)
        for osd in slow.osds:
            earlier = latest.get(osd)
            if earlier and (earlier.end_ns is None or slow.time_ns <= earlier.end_ns):
                yield FaultProblem(
                    event,
                    f"a slowdown of OSD {osd} at {slow.time_ns / 1e9:g} s",
                    f"one after that from {earlier.time_ns / 1e9:g} s has ended",
                    key="at_s",
                )
            latest[osd] = slow


def _problems_of_slow_drive(
    event: int, slow: SlowDrives, osds: int
) -> Iterator[FaultProblem]:
    if not slow.osds:
        yield FaultProblem(event, "no OSD", "at least one")
    yield from _wrong_numbers(event, "OSD", slow.osds, osds)
    yield from _wrong_time(event, slow.time_ns)
    if not SLOWDOWN_UNIT <= slow.slowdown <= SLOWDOWN_MAX:
        factor = slow.slowdown / SLOWDOWN_UNIT
        wanted = f"1 to {SLOWDOWN_MAX // SLOWDOWN_UNIT}"
        yield FaultProblem(event, f"factor {factor:g}", wanted)
    if slow.end_ns is not None and slow.end_ns <= slow.time_ns:
        yield FaultProblem(
            event,
            f"an end at {slow.end_ns / 1e9:g} s",
            f"one after the start at {slow.time_ns / 1e9:g} s",
        )


def _problems_of_failure(
    event: int, failure: Failure, osds: int, hosts: int
) -> Iterator[FaultProblem]:
    kinds = get_args(FailureKind)
    if failure.kind not in kinds:
        yield FaultProblem(
            event, f"kind {failure.kind!r}", f"one of {', '.join(kinds)}"
        )
    yield from _wrong_numbers(event, "host", failure.hosts, hosts)
    if not failure.osds:
        yield FaultProblem(event, "no OSD", "at least one")
    yield from _wrong_time(event, failure.time_ns)
    if failure.back_ns is not None and failure.back_ns <= failure.time_ns:
        yield FaultProblem(
            event,
            f"a return at {failure.back_ns / 1e9} s",
            f"one after the failure at {failure.time_ns / 1e9} s",
        )
    yield from _wrong_numbers(event, "OSD", failure.osds, osds)


def _not_back(
    event: int, failure: Failure, osd: int, earlier_event: int, earlier: Failure
) -> Iterator[FaultProblem]:
    if earlier.back_ns is None or failure.time_ns <= earlier.back_ns:
        yield FaultProblem(
            event,
            f"a failure of OSD {osd} at {failure.time_ns / 1e9} s",
            f"one after it is back from fault {earlier_event}",
            key="at_s",
        )


def _wrong_numbers(
    event: int, noun: str, numbers: Iterable[int], count: int
) -> Iterator[FaultProblem]:
    for number in numbers:
        if not 0 <= number < count:
            yield FaultProblem(
                event,
                f"{noun} {number}",
                f"one from 0 to {count - 1}",
                key=f"{noun.lower()}s",
            )


def _wrong_time(event: int, time_ns: int) -> Iterator[FaultProblem]:
    if time_ns < 0:
        yield FaultProblem(event, f"time {time_ns / 1e9} s", "0 or later")
