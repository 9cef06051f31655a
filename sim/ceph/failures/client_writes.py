"""Clients' writes, completed and in flight: the link between clients' streams and PGs."""

from collections.abc import Iterator, Sequence

import numpy as np

from stripesim.sim.ceph import roles
from stripesim.sim.ceph.failures.detection import Detection
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.ceph.planner import ObjectWrite, WritingClient
from stripesim.sim.ceph.pool import Book
from stripesim.sim.engine.graph import COUNTER_INDEX, NO_SHARD, IntArray
from stripesim.sim.engine.program import PENDING, Begun, RunView


class ClientWrites:
    """Records completed writes in PGs, and settles those that a new interval cuts off.

    `interrupted` counts cut-off writes that only some members had in their stores.
    """

    def __init__(
        self,
        clients: Sequence[WritingClient],
        book: Book,
        groups: Sequence[Group],
        detection: Detection,
    ) -> None:
        self.interrupted = {"recovered": 0, "rolled back": 0}
        self._groups = groups
        self._detection = detection
        self._book = book
        self._streams = [
            _ClientStream(client, stream) for stream, client in enumerate(clients)
        ]
        self._view: RunView | None = None
        self._is_noted = False
        # Writes in flight of each PG at this moment, None if unknown.
        self._in_flight: dict[int, list[tuple[ObjectWrite, Begun]]] | None = None
        self._stores: dict[tuple[int, range | None], dict[int, int]] = {}

    def begin(self, view: RunView) -> None:
        """Take the engine's view of the run."""
        self._view = view

    def begin_moment(self) -> None:
        """Forget the writes in flight, after time has passed."""
        self._is_noted = False
        self._in_flight = None

    def note_completed(self) -> None:
        """Mark non-member copies stale for writes since the last check.

        Call this before members change for the first time in a moment, so that a write counts for those who
        were members when it completed.
        """
        if self._is_noted:
            return
        self._is_noted = True
        assert self._view is not None
        written = [stream.written(self._view) for stream in self._streams]
        writes = np.concatenate(written, axis=1)
        if not writes.size:
            return
        rows, counts = np.unique(writes, axis=1, return_counts=True)
        numbers, items = rows
        # Rows are sorted by PG.
        present, firsts = np.unique(numbers, return_index=True)
        of_groups = zip(
            present.tolist(),
            np.split(items, firsts[1:]),
            np.split(counts, firsts[1:]),
            strict=True,
        )
        for number, own_items, own_counts in of_groups:
            by_item = dict(zip(own_items.tolist(), own_counts.tolist(), strict=True))
            self._groups[number].note_writes(by_item)

    def settle_cut_off(self, group: Group) -> None:
        """Settle the writes of a PG that a new interval cuts off.

        Deviation: in Ceph a client that sends a logged write again gets its answer without another write.
        """
        in_flight = self._take_in_flight(group.number)
        if not in_flight:
            return
        alive = self._detection.answering
        settled: set[int] = set()
        for write, begun in in_flight:
            item = write.item
            shard_of = self._store_steps(begun.template, write.roles)
            reached = {shard for step, shard in shard_of.items() if begun.steps[step]}
            if not reached or item in settled:
                continue
            touched = set(shard_of.values())
            stays = group.settle_cut_off_write(item, touched, reached, alive)
            if stays:
                settled.add(item)
            if touched != reached:
                self.interrupted["recovered" if stays else "rolled back"] += 1

    def _take_in_flight(self, number: int) -> list[tuple[ObjectWrite, Begun]]:
        """Return the writes in flight of a PG, once in a moment."""
        assert self._view is not None
        if self._in_flight is None:
            self._in_flight = {}
            for stream in self._streams:
                for write, begun in stream.writing(self._view):
                    of_group = self._in_flight.setdefault(write.group, [])
                    of_group.append((write, begun))
        return self._in_flight.pop(number, [])

    def _store_steps(self, number: int, own: range | None) -> dict[int, int]:
        """Return by step of a write's template the shard whose store has the write once it has begun.

        The template may write several objects, of which one has its `own` roles.
        """
        key = (number, own)
        if key not in self._stores:
            template = self._book.templates[number]
            stores = template.amounts[:, COUNTER_INDEX["device_write_bytes"]] > 0
            logs = np.array(template.phases) == Phase.LOG
            shards = np.array(template.shards)
            if own is not None:
                # A graph of several objects names no shards.
                shards = roles.shards_of(template.roles, own)
            steps = np.flatnonzero((stores | logs) & (shards != NO_SHARD))
            self._stores[key] = dict(
                zip(steps.tolist(), shards[steps].tolist(), strict=True)
            )
        return self._stores[key]


class _ClientStream:
    """Finds the completed writes of one stream since the last check, and those in flight."""

    def __init__(self, client: WritingClient, stream: int) -> None:
        self._client = client
        self._stream = stream
        # Requests before the oldest pending one are not checked again.
        self._ended_count = 0
        self._seen = np.zeros(0, dtype=bool)

    def written(self, view: RunView) -> IntArray:
        """Return PG and object of each write that completed since the last check, shape (2, writes)."""
        first = self._ended_count
        completed = view.completed_ns(self._stream)[first:]
        seen = np.zeros(len(completed), dtype=bool)
        seen[: len(self._seen)] = self._seen
        fresh = first + np.flatnonzero((completed >= 0) & ~seen)
        seen |= completed != PENDING
        ended_count = len(seen) if seen.all() else int(seen.argmin())
        self._ended_count += ended_count
        self._seen = seen[ended_count:]
        if not len(fresh):
            return np.zeros((2, 0), dtype=np.int64)
        return self._client.written(fresh)

    def writing(self, view: RunView) -> Iterator[tuple[ObjectWrite, Begun]]:
        """Yield each write in flight and its progress, the newest first."""
        newest_first = sorted(view.begun(self._stream), key=lambda begun: -begun.number)
        for begun in newest_first:
            for write in self._client.writes_of(begun.number):
                yield write, begun
