"""The results of a run under faults, from which all descriptions are made."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.failures.background.recovery import RecoveryRound, WaitReason
from stripesim.sim.ceph.failures.fullness import Fullness
from stripesim.sim.ceph.failures.plan import FaultPlan
from stripesim.sim.ceph.failures.planned_changes import AppliedChange
from stripesim.sim.ceph.failures.timeline import FaultTimeline
from stripesim.sim.ceph.pool import Book
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import EngineRun, StreamRun
from stripesim.sim.observe.client_requests import ClientRequests

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class FaultRun:
    """A finished run under faults, as the engine and the director saw it."""

    plan: FaultPlan
    is_replicated: bool  #: True if all shards of an object are replicas
    book: Book
    engine_run: EngineRun
    #: Number of the stream of recovery, after those of clients and before notes and scrubs
    feed_stream: int
    requested: ClientRequests
    wake_ns: IntArray  #: Time to wake each resource [ns]
    timeline: FaultTimeline
    objects_counts: Sequence[int]  #: Objects of each PG
    fullness: Fullness  #: Bytes that OSDs held over time
    changes: Sequence[AppliedChange]  #: Planned changes that have begun, in order
    rounds: Sequence[RecoveryRound]  #: Rounds of recovery issued
    #: Total waits of PGs in need of recovery, by reason [ns]
    waited_ns: Mapping[WaitReason, int]
    #: PG → groups of the engine of the requests that need it, as `requested` has them
    groups_of_pg: Callable[[int], Sequence[int]]
    data_groups: int  #: PGs of the pool. Those of the pool of bucket indexes follow
    shard_bytes: int  #: Size of one shard of an object [B]
    shard_bytes_of: Callable[[int], int]  #: PG → size of one shard of its objects [B]
    lost_shards: int  #: Shards on failed OSDs, and bad shards found by scrubs
    lost_bytes: int  #: Size of these shards [B]
    lost_objects_at_start: int  #: Objects with a shard lost before the run
    lost_groups_at_start: Set[int]  #: PGs with a shard lost before the run
    lost_bytes_at_start: int  #: Shards lost before the run [B]
    #: Shards that get another OSD by that: those lost, and those that CRUSH moves [B]
    joining_bytes_at_start: int
    deep_scrubs: int  #: Deep scrubs completed
    #: Cut-off writes that only some members had: ``recovered`` or ``rolled back``
    interrupted_writes: Mapping[str, int]

    @property
    def end_ns(self) -> int:
        """End of the run [ns]."""
        return self.engine_run.end_ns

    @property
    def recovery(self) -> StreamRun:
        """Rounds of recovery."""
        return self.engine_run.streams[self.feed_stream]

    @property
    def notes(self) -> StreamRun:
        """Notes of members about their intervals."""
        return self.engine_run.streams[self.feed_stream + 1]

    @property
    def scrubs(self) -> StreamRun:
        """Steps of scrubs."""
        return self.engine_run.streams[self.feed_stream + 2]

    @cached_property
    def rounds_done(self) -> BoolArray:
        """True for rounds of recovery that completed, shape (rounds,)."""
        done: BoolArray = self.recovery.completed_ns >= 0
        return done

    @cached_property
    def operations_done(self) -> BoolArray:
        """True for rounds of recovery that completed their operation, shape (rounds,)."""
        last = np.array([is_last for _, is_last in self._rounds], dtype=np.bool_)
        return self.rounds_done & last

    @cached_property
    def shards_done(self) -> IntArray:
        """Shards that each round of recovery completed, all in an operation's last, shape (rounds,)."""
        shards = [
            0 if operation.kind == "delete" else len(operation.shards)
            for operation, _ in self._rounds
        ]
        return np.array(shards, dtype=np.int64) * self.operations_done

    @cached_property
    def bytes_done(self) -> IntArray:
        """Bytes of the shards that each round of recovery completed, shape (rounds,)."""
        sizes = [self.shard_bytes_of(operation.group) for operation, _ in self._rounds]
        return np.array(sizes, dtype=np.int64) * self.shards_done

    @cached_property
    def is_index(self) -> BoolArray:
        """True for rounds of recovery of a bucket index, shape (rounds,)."""
        groups = [operation.group for operation, _ in self._rounds]
        return np.array(groups, dtype=np.int64) >= self.data_groups

    @cached_property
    def is_rebuild(self) -> BoolArray:
        """True for rounds of recovery that rebuild or copy a lost shard, shape (rounds,)."""
        kinds = [operation.kind for operation, _ in self._rounds]
        return np.isin(kinds, ("rebuild", "pull"))

    @cached_property
    def is_repair(self) -> BoolArray:
        """True for those of `is_rebuild` in PGs that lost a shard before the run, shape (rounds,).

        In a pool of replicas, the copies of PGs that CRUSH only moves are rebuilt in the same way.
        """
        lost = [
            operation.group in self.lost_groups_at_start
            for operation, _ in self._rounds
        ]
        return self.is_rebuild & np.array(lost, dtype=np.bool_)

    @property
    def _rounds(self) -> Sequence[RecoveryRound]:
        """Rounds that started before the end of the run."""
        return self.rounds[: len(self.recovery.completed_ns)]
