"""What-ifs about the first write into an object: a source that changes what the planner hands out."""

from collections.abc import Callable
from dataclasses import replace
from math import lcm

import numpy as np

from stripesim.models.clock import round_ns
from stripesim.sim.ceph.clients.workload import Requests, Workload
from stripesim.sim.ceph.paths import write_path
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.ceph.planner import Planned, RequestPlanner
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.ceph.roles import PG_LOCK
from stripesim.sim.engine.conditions import NO_TEST
from stripesim.sim.engine.graph import ACQUIRE, DELAY, NO_ROLE, NO_SHARD, RELEASE, IntArray, Template
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

    The first write into an object holds its placement group's lock for `pause_ns` before it is dispatched;
    later writes into the object queue behind it. `fill`: ``gap``: a write past the object's end fills what
    lies between, as the planner has it; ``object``: the first write fills the whole object; ``nothing``: no
    write fills anything, and no stripe is ever read.

    These are questions, not mechanisms of the modelled system: what would have to be true for a
    published figure to come about. Under ``nothing`` a second write to a stripe counts as a first one, which
    for random writes over an image much larger than the run is rare.
    """

    def __init__(
        self, pool: Pool, book: Book, workload: Workload, *, pause_ns: int = 0, fill: str = "gap"
    ) -> None:
        if fill not in ("gap", "object", "nothing"):
            raise ValueError(f"creation: fill: got {fill!r}, wanted gap, object or nothing")
        self._requests = _Tee(workload)
        # After a first write that fills the object, every later one finds it full.
        self._planner = RequestPlanner(pool, book, self._requests, prefilled=fill == "object")
        self.depth = self._planner.depth
        self._pool, self._book = pool, book
        self._pause_ns, self._fill = pause_ns, fill
        self._known: set[int] = set()
        self._changed: dict[tuple[int, ...], int] = {}

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
                    int(self._pool.views[group]), int(offsets[index]), int(requests.lengths_bytes[index])
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
        new = [at for key, at in zip(found.tolist(), first.tolist(), strict=True) if key not in self._known]
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
            lambda: write_path(
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
            lambda: write_path(
                self._pool.contexts[view],
                offset_bytes=self._pool.object_bytes - length_bytes,
                length_bytes=length_bytes,
                object_size_bytes=0,
            ),
        )

    def _paused(self, template: int) -> int:
        return self._made((3, template), lambda: with_pause(self._book.templates[template], self._pause_ns))

    def _made(self, key: tuple[int, ...], compile_it: Callable[[], Template]) -> int:
        if key not in self._changed:
            self._changed[key] = self._book.add(compile_it())
        return self._changed[key]


def with_pause(template: Template, pause_ns: float) -> Template:
    """Return a template that waits once it holds its placement group's lock.

    The template has plain words only and one lock.
    """
    locks = np.flatnonzero((template.words == ACQUIRE) & (template.roles == PG_LOCK))
    if len(locks) != 1 or (template.words > RELEASE).any():
        raise ValueError(f"{template.name}: got {len(locks)} locks, wanted one, and plain words only")
    at = int(locks[0])
    new = at + 1
    starts = template.successor_starts
    first, stop = int(starts[at]), int(starts[at + 1])
    moved = template.successors + (template.successors >= new)
    # The pause is the lock's only successor and takes over those that the lock had.
    successors = np.concatenate([moved[:first], [new], moved[first:]])
    moved_starts = np.concatenate([starts[: at + 1], [first + 1, stop + 1], starts[at + 2 :] + 1])

    def inserted(values: IntArray, value: int) -> IntArray:
        return np.insert(values, new, value)

    dynamics = template.dynamics
    if dynamics is not None:
        # The threads of its steps; that nothing else goes beyond plain words has been checked.
        threads = dynamics.threads + (dynamics.threads >= new)
        dynamics = replace(
            dynamics,
            keys=inserted(dynamics.keys, -1),
            tickets=inserted(dynamics.tickets, -1),
            yes_counts=inserted(dynamics.yes_counts, -1),
            spawns=inserted(dynamics.spawns, -1),
            merges=np.insert(dynamics.merges, new, False),
            tests=inserted(dynamics.tests, NO_TEST),
            once=np.insert(dynamics.once, new, 0, axis=0),
            threads=inserted(threads, -1),
            classes=inserted(dynamics.classes, 0),
            costs=inserted(dynamics.costs, 1),
        )
    return replace(
        template,
        dynamics=dynamics,
        name=f"{template.name} after a pause",
        words=inserted(template.words, DELAY),
        roles=inserted(template.roles, NO_ROLE),
        spreads=inserted(template.spreads, 0),
        demands_ns=inserted(template.demands_ns, round_ns(pause_ns)),
        predecessors=inserted(template.predecessors, 1),
        successor_starts=moved_starts.astype(np.int64),
        successors=successors.astype(np.int64),
        reply=template.reply + int(template.reply >= new),
        amounts=np.insert(template.amounts, new, 0, axis=0),
        labels=(*template.labels[:new], "pause at creation", *template.labels[new:]),
        phases=(*template.phases[:new], Phase.PAUSE, *template.phases[new:]),
        shards=(*template.shards[:new], NO_SHARD, *template.shards[new:]),
    )
