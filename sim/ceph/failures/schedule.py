"""What goes wrong when: a plan of failures, returns and silent corruption, checked against the cluster."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from stripesim.models.recovery import RecoveryModel
from stripesim.sim.engine.graph import IntArray

Kind = Literal["process", "power", "hang"]
KINDS: tuple[Kind, ...] = ("process", "power", "hang")


class FaultError(ValueError):
    """A plan that contradicts itself or the cluster; `event` is the number of the faulty one."""

    def __init__(self, event: int, got: str, wanted: str) -> None:
        super().__init__(event, got, wanted)
        self.event, self.got, self.wanted = event, got, wanted

    def __str__(self) -> str:
        return f"fault {self.event}: got {self.got}, wanted {self.wanted}"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """OSDs that stop together, and perhaps come back."""

    osds: tuple[int, ...]  #: Numbers of the OSDs
    time_ns: int  #: When they stop [ns]
    back_ns: int | None = None  #: When they come back [ns]; None: never
    #: ``process``: the daemon dies, connections are refused, and peers report it at once. ``power``: silence,
    #: which only heartbeats reveal. ``hang``: silence too, but the daemon goes on where it was.
    kind: Kind = "process"
    #: Hosts whose processors and network stop as well: those that lose power as a whole
    hosts: tuple[int, ...] = ()
    keeps_data: bool = True  #: Whether OSDs that come back still hold what they held


@dataclass(frozen=True, kw_only=True)
class Corruption:
    """Shards that silently go bad, found by the next scrub of their placement group."""

    osd: int
    time_ns: int  #: When [ns]
    shards_count: int = 1  #: How many of the shards that the OSD holds, drawn by seed


@dataclass(frozen=True, kw_only=True)
class FaultPlan:
    """All that goes wrong in a run, and how the cluster deals with it."""

    failures: Sequence[Failure] = ()
    corruptions: Sequence[Corruption] = ()
    #: Sorted tuple of the OSDs that are out → OSD of each shard of each placement group as CRUSH has it,
    #: shape (groups, width), `NO_OSD` where it finds none
    up_sets: Callable[[tuple[int, ...]], IntArray]
    image_objects: int  #: Objects of the image
    model: RecoveryModel
    #: OSDs that were lost before the run: down and out, and what they held is gone
    lost_osds: tuple[int, ...] = ()
    #: OSDs that are down from the beginning and stay in: what they held is missing and not rebuilt
    missing_osds: tuple[int, ...] = ()
    #: Rack of each OSD: where a whole rack is down, none of its OSDs is marked out
    #: (``mon_osd_down_out_subtree_limit``). None: no racks, shape (osds,)
    osd_racks: IntArray | None = None
    prefilled: bool = True  #: Whether all objects of the image exist beforehand
    #: Writes that each object of a prefilled image has had since the pool was made: entries in the logs of
    #: placement groups. None: so long ago that none of them is left in a log
    object_writes_count: int | None = None
    #: Objects that stood in each placement group's log as deleted before the run
    log_deletions_count: int = 0
    scrubs: bool = False  #: Whether scrubs read; else they find at once what is bad, and cost nothing
    seed: int = 0  #: Of the phases of heartbeats and scrubs, and of what goes bad
    series_ns: int = (
        1_000_000_000  #: Width of the bins of the series in the result [ns]
    )

    def check(self, osd_hosts: IntArray) -> None:
        """Check the plan against a cluster.

        Raises
        ------
        FaultError
            If it names what is not there, goes back in time, or one OSD fails while it is down.
        """
        check_failures(self.failures, len(osd_hosts), int(osd_hosts.max()) + 1)
        for index, corruption in enumerate(self.corruptions):
            event = len(self.failures) + index
            if not 0 <= corruption.osd < len(osd_hosts):
                raise FaultError(
                    event,
                    f"OSD {corruption.osd}",
                    f"one from 0 to {len(osd_hosts) - 1}",
                )
            if corruption.time_ns < 0:
                raise FaultError(
                    event, f"time {corruption.time_ns / 1e9} s", "0 or later"
                )


def check_failures(failures: Sequence[Failure], osds: int, hosts: int) -> None:
    """Check failures among themselves and against the numbers of OSDs and hosts; see `FaultPlan.check`."""
    spans: dict[int, list[tuple[int, int | None, int]]] = {}
    for event, failure in enumerate(failures):
        if failure.kind not in KINDS:
            raise FaultError(
                event, f"kind {failure.kind!r}", f"one of {', '.join(KINDS)}"
            )
        for host in failure.hosts:
            if not 0 <= host < hosts:
                raise FaultError(event, f"host {host}", f"one from 0 to {hosts - 1}")
        if not failure.osds:
            raise FaultError(event, "no OSD", "at least one")
        if failure.time_ns < 0:
            raise FaultError(event, f"time {failure.time_ns / 1e9} s", "0 or later")
        if failure.back_ns is not None and failure.back_ns <= failure.time_ns:
            raise FaultError(
                event,
                f"a return at {failure.back_ns / 1e9} s",
                f"one after the failure at {failure.time_ns / 1e9} s",
            )
        for osd in failure.osds:
            if not 0 <= osd < osds:
                raise FaultError(event, f"OSD {osd}", f"one from 0 to {osds - 1}")
            spans.setdefault(osd, []).append((failure.time_ns, failure.back_ns, event))
    for osd, listed in spans.items():
        listed.sort(key=lambda span: (span[0], span[2]))
        for (_, back_ns, earlier), (start_ns, _, later) in itertools.pairwise(listed):
            if back_ns is None or start_ns <= back_ns:
                raise FaultError(
                    later,
                    f"a failure of OSD {osd} at {start_ns / 1e9} s",
                    f"one after it is back from fault {earlier}",
                )
