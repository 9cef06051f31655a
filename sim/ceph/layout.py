"""The current state of each placement group: primary, missing shards, bindings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.paths import PathContext
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import IntArray

# In place of the binding row of a group that no request has needed.
_NOT_BOUND = -1


class EngineGroups(Protocol):
    """Groups of an engine in a run with a director, each of which it holds, releases and interrupts apart."""

    @property
    def count(self) -> int:
        """Number of groups of the engine."""

    def background(self, pg: int) -> int:
        """Return the group of a placement group's background work."""

    def of_pg(self, pg: int) -> Sequence[int]:
        """Return the groups of the requests of clients that need a placement group."""

    @property
    def of_writes(self) -> Sequence[int]:
        """Groups of the writes of clients."""


@dataclass(frozen=True)
class ImageGroups:
    """Groups of an engine for requests to images: three for each placement group.

    They are the reads of clients, their writes, and background work.
    """

    pg_count: int  #: Number of placement groups

    @property
    def count(self) -> int:
        """Number of groups of the engine."""
        return 3 * self.pg_count

    def background(self, pg: int) -> int:
        """Return the group of a placement group's background work."""
        return self.pg_count + pg

    def writes(self, pg: int) -> int:
        """Return the group of the writes of clients to a placement group."""
        return 2 * self.pg_count + pg

    def of_clients(self, pgs: IntArray, is_write: npt.NDArray[np.bool_]) -> IntArray:
        """Return the group of each request of clients. Reads have the number of their placement group.

        Parameters
        ----------
        pgs
            Placement group of each request, shape (requests,).
        is_write
            True for each write, shape (requests,).
        """
        groups: IntArray = np.where(is_write, self.writes(0) + pgs, pgs)
        return groups

    def of_pg(self, pg: int) -> Sequence[int]:
        """Return the groups of the requests of clients that need a placement group."""
        return pg, self.writes(pg)

    @property
    def of_writes(self) -> Sequence[int]:
        """Groups of the writes of clients."""
        return range(self.writes(0), self.writes(self.pg_count))


class AnyLayout(Protocol):
    """Routes of client requests, by the state of placement groups, which may change during a run."""

    @property
    def engine_groups(self) -> EngineGroups:
        """Groups of the engine, which a director holds, releases and interrupts."""

    def set(
        self,
        book: Book,
        group: int,
        members: Sequence[int],
        missing: frozenset[int],
        primary: int,
        item: int | None = None,
    ) -> None:
        """Change the state of a placement group, or of one of its objects, see `Layout.set`."""


class Layout:
    """Views and bindings of a pool's placement groups, which may change during a run.

    A group is bound to resources when the first request needs it. A sample of requests touches few of the
    groups of a large pool.

    `contexts` are the distinct states of placement groups until now. Shards that are catching up count as
    missing, but receive writes. `changes_count` counts the changes of the state: plans before the last one
    are out of date.
    """

    def __init__(self, pool: Pool) -> None:
        self.changes_count = 0
        self._pool = pool
        self.engine_groups = ImageGroups(pool.cluster.groups)
        self.contexts: list[PathContext] = list(pool.contexts)
        # Index in `contexts`, and binding row, of each placement group, shape (groups, 2).
        rows = np.full(pool.cluster.groups, _NOT_BOUND, dtype=np.int64)
        self._states = np.stack([np.array(pool.views, dtype=np.int64), rows], axis=1)
        self._view_numbers = {
            (context.primary, context.missing, context.catching_up): index
            for index, context in enumerate(self.contexts)
        }
        # View and binding row of objects that differ from their PG, by PG and object.
        self._exceptions: dict[int, dict[int, tuple[int, int]]] = {}
        self._rows: dict[tuple[int, ...], int] = {}

    def context(
        self,
        primary: int,
        missing: frozenset[int],
        catching_up: frozenset[int] = frozenset(),
    ) -> PathContext:
        """Return the context of one state of a placement group."""
        return self.contexts[self._view(primary, missing, catching_up)]

    def row(self, book: Book, acting: Sequence[int], primary: int, group: int) -> int:
        """Return the binding row of these OSDs, added to the book if it is new."""
        key = (group, primary, *acting)
        if key not in self._rows:
            rows = self._pool.cluster.bind(
                np.array([acting], dtype=np.int64),
                np.array([primary], dtype=np.int64),
                np.array([group], dtype=np.int64),
            )
            self._rows[key] = int(book.add_bindings(rows)[0])
        return self._rows[key]

    def states_of(
        self, book: Book, groups: IntArray, objects: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return the index in `contexts` and the binding row of objects, by their placement groups."""
        self._bind(book, groups)
        states = self._states[groups]
        if self._exceptions:
            has_exceptions = np.isin(groups, list(self._exceptions))
            for index in np.flatnonzero(has_exceptions).tolist():
                of_group = self._exceptions[int(groups[index])]
                states[index] = of_group.get(int(objects[index]), states[index])
        return states[:, 0], states[:, 1]

    def set(
        self,
        book: Book,
        group: int,
        members: Sequence[int],
        missing: frozenset[int],
        primary: int,
        item: int | None = None,
    ) -> None:
        """Change the state of a placement group, or of one object (`item`) until the state of its PG changes.

        `members` are the OSDs that receive the writes of each shard, or `NO_OSD`. Of the `missing` ones these
        catch up. `primary` is the shard whose OSD leads.
        """
        catching_up = frozenset(shard for shard in missing if members[shard] != NO_OSD)
        view = self._view(primary, missing, catching_up)
        row = self.row(book, members, primary, group)
        self.changes_count += 1
        if item is None:
            self._states[group] = view, row
            self._exceptions.pop(group, None)
        else:
            self._exceptions.setdefault(group, {})[item] = (view, row)

    def _bind(self, book: Book, groups: IntArray) -> None:
        """Add rows for those groups that are not bound yet."""
        new = np.unique(groups[self._states[groups, 1] == _NOT_BOUND])
        if len(new):
            self._states[new, 1] = book.add_bindings(self._pool.group_bindings(new))

    def _view(
        self, primary: int, missing: frozenset[int], catching_up: frozenset[int]
    ) -> int:
        key = (primary, missing, catching_up)
        if key not in self._view_numbers:
            self._view_numbers[key] = len(self.contexts)
            self.contexts.append(self._pool.context(primary, missing, catching_up))
        return self._view_numbers[key]
