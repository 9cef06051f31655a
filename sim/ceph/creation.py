"""What-ifs about the first write into an object: a source that changes what the planner hands out."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import lcm

import numpy as np

from stripesim.sim.ceph.clients.workload import Requests, Workload
from stripesim.sim.ceph.paths import write_path
from stripesim.sim.ceph.planner import Planned, RequestPlanner
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import IntArray, Template
from stripesim.sim.engine.program import RequestChunk


class _Tee:
    """A workload that remembers what it last gave."""

    def __init__(self, workload: Workload) -> None:
        self.depth = workload.depth
        self._workload = workload
        self.last: Requests | None = None

    def take(self, count: int) -> Requests:
        self.last = self._workload.take(count)
        return self.last


class CreationSource:
    """Plans writes on a pristine image as if creating an object went differently.

    The first write into an object holds its placement group's lock for `pause_ns` before it is dispatched.
    `fill`: ``gap``: a write past the object's end fills what lies between, as the planner has it; ``object``:
    the first write fills the whole object; ``nothing``: no write fills anything, and no stripe is ever read.
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
        self.depth = self._planner.depth
        self._pool, self._book = pool, book
        self._pause_ns, self._fill = pause_ns, fill
        self._known: set[int] = set()
        self._changed: dict[tuple[int, ...], int] = {}
        # How each template is compiled.
        self._compile: dict[int, Callable[..., Template]] = {}

    @property
    def planned(self) -> Planned:
        """All that was planned so far."""
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
        templates = chunk.templates.copy()
        if self._fill == "nothing":
            for index, group in enumerate(chunk.groups.tolist()):
                templates[index] = self._append(
                    int(self._pool.views[group]),
                    int(offsets[index]),
                    int(requests.lengths_bytes[index]),
                )
        for index in self._first_writes(objects).tolist():
            view = int(self._pool.views[chunk.groups[index]])
            created = int(templates[index])
            if self._fill == "object":
                created = self._whole(view, int(requests.lengths_bytes[index]))
            templates[index] = self._paused(created) if self._pause_ns else created
        return replace(chunk, templates=templates)

    def _first_writes(self, objects: IntArray) -> IntArray:
        found, first = np.unique(objects, return_index=True)
        new = [
            at
            for key, at in zip(found.tolist(), first.tolist(), strict=True)
            if key not in self._known
        ]
        self._known.update(found.tolist())
        return np.sort(np.array(new, dtype=np.int64))

    def _append(self, view: int, offset_bytes: int, length_bytes: int) -> int:
        """Compile a write into a hole: it starts where its own first stripe starts, and reads nothing."""
        geometry, store = self._pool.geometry, self._pool.cluster.models.store
        erasure = self._pool.scheme.kind == "erasure"
        unit, granule = geometry.stripe_unit_bytes, store.min_alloc_bytes
        period = granule
        if erasure:
            # Stripes whose chunks begin at the same place of an allocation unit are alike.
            granule = geometry.stripe_bytes
            period = granule * (lcm(unit, store.min_alloc_bytes) // unit)
        offset_bytes %= period
        return self._made(
            (1, view, offset_bytes, length_bytes),
            partial(
                write_path,
                self._pool.contexts[view],
                offset_bytes=offset_bytes,
                length_bytes=length_bytes,
                object_size_bytes=offset_bytes // granule * granule,
            ),
        )

    def _whole(self, view: int, length_bytes: int) -> int:
        """Compile a write that creates its object in full: one at the end fills all before it."""
        return self._made(
            (2, view, length_bytes),
            partial(
                write_path,
                self._pool.contexts[view],
                offset_bytes=self._pool.object_bytes - length_bytes,
                length_bytes=length_bytes,
                object_size_bytes=0,
            ),
        )

    def _paused(self, template: int) -> int:
        if template not in self._compile:
            key = next(
                key for key, made in self._planner.templates.items() if made == template
            )
            self._compile[template] = partial(self._planner.compiled, key)
        return self._made(
            (3, template), partial(self._compile[template], pause_ns=self._pause_ns)
        )

    def _made(self, key: tuple[int, ...], compile_it: Callable[..., Template]) -> int:
        if key not in self._changed:
            self._changed[key] = self._book.add(compile_it())
            self._compile[self._changed[key]] = compile_it
        return self._changed[key]
