"""How each placement group looks to clients just now: who leads, what is missing, who is bound."""

from collections.abc import Sequence

import numpy as np

from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.paths import PathContext
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import IntArray


class Layout:
    """Views and bindings of a pool's placement groups, which may change during a run.

    `contexts` are the different ways a placement group has looked so far. What is catching up is missing to
    reads and writes alike; writes reach it as well.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.contexts: list[PathContext] = list(pool.contexts)
        # Place in `contexts`, and binding row, of each placement group, shape (groups, 2).
        rows = np.arange(pool.cluster.groups, dtype=np.int64)
        self._looks = np.stack([np.array(pool.views, dtype=np.int64), rows], axis=1)
        self._known = {
            (context.primary, context.missing, context.catching_up): index
            for index, context in enumerate(self.contexts)
        }
        # View and binding row of what is served otherwise, by placement group and object.
        self._apart: dict[int, dict[int, tuple[int, int]]] = {}
        self._rows: dict[tuple[int, ...], int] = {}

    def context(
        self,
        primary: int,
        missing: frozenset[int],
        catching_up: frozenset[int] = frozenset(),
    ) -> PathContext:
        """Return the context of one way to look."""
        return self.contexts[self._view(primary, missing, catching_up)]

    def row(self, book: Book, acting: Sequence[int], primary: int, group: int) -> int:
        """Return the binding row of these OSDs, made where it is new."""
        key = (group, primary, *acting)
        if key not in self._rows:
            rows = self._pool.cluster.bind(
                np.array([acting], dtype=np.int64),
                np.array([primary], dtype=np.int64),
                np.array([group], dtype=np.int64),
            )
            self._rows[key] = int(book.add_bindings(rows)[0])
        return self._rows[key]

    def look(self, groups: IntArray, objects: IntArray) -> tuple[IntArray, IntArray]:
        """Return the place in `contexts` and the binding row of objects, by their placement groups."""
        looks = self._looks[groups]
        if self._apart:
            for place in np.flatnonzero(np.isin(groups, list(self._apart))).tolist():
                apart = self._apart[int(groups[place])]
                looks[place] = apart.get(int(objects[place]), looks[place])
        return looks[:, 0], looks[:, 1]

    def set(
        self,
        book: Book,
        group: int,
        members: Sequence[int],
        missing: frozenset[int],
        primary: int,
        item: int | None = None,
    ) -> None:
        """Let a placement group look otherwise from now on, or one object (`item`) until the group does.

        `members` are the OSDs that writes of each shard reach, or `NO_OSD`: of `missing` shards those that
        are brought up to date. `primary` is the shard whose OSD leads.
        """
        catching_up = frozenset(shard for shard in missing if members[shard] != NO_OSD)
        look = (
            self._view(primary, missing, catching_up),
            self.row(book, members, primary, group),
        )
        if item is None:
            self._looks[group] = look
            self._apart.pop(group, None)
        else:
            self._apart.setdefault(group, {})[item] = look

    def _view(
        self, primary: int, missing: frozenset[int], catching_up: frozenset[int]
    ) -> int:
        key = (primary, missing, catching_up)
        if key not in self._known:
            self._known[key] = len(self.contexts)
            self.contexts.append(self._pool.context(primary, missing, catching_up))
        return self._known[key]
