"""Variants of the first write into an object: a source that changes the planner's requests."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from math import lcm
from typing import Any

import numpy as np

from stripesim.sim.ceph import roles
from stripesim.sim.ceph.clients.workload import Requests, Workload
from stripesim.sim.ceph.paths import after_object_map, write_path
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.ceph.planner import Planned, RequestPlanner
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import ACQUIRE, DELAY, IntArray, Template
from stripesim.sim.engine.program import RequestChunk


class CreationSource:
    """Plan writes on a pristine image with a different creation of objects.

    The first write into an object holds its placement group's lock for `pause_ns` before it is dispatched.
    With `fill` = ``gap`` a write past the object's end fills the gap, as in the planner. With ``object`` the
    first write fills the whole object. With ``nothing`` writes fill and read nothing.
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        workload: Workload,
        *,
        pause_ns: int = 0,
        fill: str = "gap",
    ) -> None:
        if fill not in ("gap", "object", "nothing"):
            raise ValueError(
                f"creation: fill: got {fill!r}, wanted gap, object or nothing"
            )
        self._requests = _Tee(workload)
        # After a first write that fills the object, every later one finds it full.
        self._planner = RequestPlanner(
            pool, book, self._requests, prefilled=fill == "object"
        )
        self.queue_depth = self._planner.queue_depth
        self._pool = pool
        self._book = book
        self._pause_ns = pause_ns
        self._fill = fill
        self._created: set[int] = set()
        self._templates: dict[tuple[object, ...], int] = {}

    @property
    def planned(self) -> Planned:
        """Return all planned requests."""
        return self._planner.planned

    def take(self, count: int) -> RequestChunk:
        """Plan the next requests."""
        chunk = self._planner.take(count)
        requests = self._requests.last
        assert requests is not None
        assert len(chunk) == len(requests), "a write crosses objects"
        assert requests.is_write.all(), "only writes create"
        objects = requests.offsets_bytes // self._pool.object_bytes
        offsets = requests.offsets_bytes - objects * self._pool.object_bytes
        lengths = requests.lengths_bytes.tolist()
        views = self._pool.views[chunk.groups].tolist()
        templates = chunk.templates.copy()
        if self._fill == "nothing":
            for index, offset_bytes in enumerate(offsets.tolist()):
                templates[index] = self._append(
                    views[index], offset_bytes, lengths[index]
                )
        update = self._pool.object_map_update
        for index in self._first_writes(objects).tolist():
            if self._fill == "object":
                templates[index] = self._whole(views[index], lengths[index])
            if self._fill != "gap" and update is not None:
                templates[index] = self._updating(int(templates[index]), update)
            if self._pause_ns:
                templates[index] = self._paused(int(templates[index]))
        return replace(chunk, templates=templates)

    def _first_writes(self, objects: IntArray) -> IntArray:
        """Return which of the writes are the first ones into their objects, ascending."""
        unique, first = np.unique(objects, return_index=True)
        is_new = [number not in self._created for number in unique.tolist()]
        self._created.update(unique.tolist())
        return np.sort(first[is_new])

    def _append(self, view: int, offset_bytes: int, length_bytes: int) -> int:
        """Compile a write into a hole: it starts where its own first stripe starts, and reads nothing."""
        geometry = self._pool.geometry
        alloc_bytes = self._pool.cluster.models.store.min_alloc_bytes
        granule_bytes, period_bytes = alloc_bytes, alloc_bytes
        if self._pool.scheme.kind == "erasure":
            # Stripes whose chunks begin at the same offset in an allocation unit are equivalent.
            unit_bytes = geometry.stripe_unit_bytes
            granule_bytes = geometry.stripe_bytes
            period_bytes = granule_bytes * (lcm(unit_bytes, alloc_bytes) // unit_bytes)
        offset_bytes %= period_bytes
        return self._made(
            ("append", view, offset_bytes, length_bytes),
            partial(
                write_path,
                self._pool.contexts[view],
                offset_bytes=offset_bytes,
                length_bytes=length_bytes,
                object_size_bytes=offset_bytes // granule_bytes * granule_bytes,
            ),
        )

    def _whole(self, view: int, length_bytes: int) -> int:
        """Compile a write that creates its whole object: one at the end fills everything before it."""
        return self._made(
            ("whole", view, length_bytes),
            partial(
                write_path,
                self._pool.contexts[view],
                offset_bytes=self._pool.object_bytes - length_bytes,
                length_bytes=length_bytes,
                object_size_bytes=0,
            ),
        )

    def _updating(self, template: int, update: Template) -> int:
        """Compile a write that waits for an update of the object map, as the planner's first writes do."""
        return self._made(
            ("updating", template),
            partial(after_object_map, update, self._book.templates[template]),
        )

    def _paused(self, template: int) -> int:
        """Compile a write with the pause."""
        return self._made(
            ("paused", template),
            partial(with_pause, self._book.templates[template], self._pause_ns),
        )

    def _made(self, key: tuple[object, ...], compile_it: Callable[[], Template]) -> int:
        if key not in self._templates:
            self._templates[key] = self._book.add(compile_it())
        return self._templates[key]


def with_pause(template: Template, pause_ns: int) -> Template:
    """Return a write that pauses after it takes the lock of its placement group.

    Parameters
    ----------
    template
        A write that takes the lock once.
    pause_ns
        Time that the lock is held before anything else [ns].
    """
    takes_lock = (template.words == ACQUIRE) & (template.roles == roles.PG_LOCK)
    (lock,) = np.flatnonzero(takes_lock).tolist()
    pause = lock + 1

    def moved(steps: IntArray) -> IntArray:
        """Return the new numbers of steps."""
        return steps + (steps >= pause)

    def inserted(column: Any) -> Any:
        """Insert a row for the pause, a copy of step 0, which does nothing."""
        if isinstance(column, tuple):
            return (*column[:pause], column[0], *column[pause:])
        return np.insert(column, pause, column[0], axis=0)

    starts = template.successor_starts
    of_pause = int(starts[lock])
    columns = {
        name: inserted(getattr(template, name))
        for name in ("words", "roles", "spreads", "demands_ns", "predecessors")
    }
    columns["words"][pause] = DELAY
    columns["demands_ns"][pause] = pause_ns
    columns["predecessors"][pause] = 1
    phases = list(inserted(template.phases))
    phases[pause] = Phase.PAUSE
    labels = list(inserted(template.labels))
    labels[pause] = "pause at creation"
    dynamics = template.dynamics
    if dynamics is not None:
        more = {
            column.name: inserted(getattr(dynamics, column.name))
            for column in fields(dynamics)
            if column.name != "spawned"
        }
        more["tickets"] = moved(more["tickets"])
        more["threads"] = moved(more["threads"])
        dynamics = replace(dynamics, **more)
    return replace(
        template,
        name=f"{template.name} after a pause",
        **columns,
        # The pause follows the lock, and the lock's successors follow the pause.
        successors=np.insert(moved(template.successors), of_pause, pause),
        successor_starts=np.insert(
            starts + (np.arange(len(starts)) > lock), pause, of_pause + 1
        ),
        reply=int(moved(np.array(template.reply))),
        amounts=inserted(template.amounts),
        labels=tuple(labels),
        phases=tuple(phases),
        shards=inserted(template.shards),
        dynamics=dynamics,
    )


class _Tee:
    """A workload that remembers its last requests."""

    def __init__(self, workload: Workload) -> None:
        self.queue_depth = workload.queue_depth
        self._workload = workload
        self.last: Requests | None = None

    def take(self, count: int) -> Requests:
        self.last = self._workload.take(count)
        return self.last
