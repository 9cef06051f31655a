"""Places of S3 objects: the placement groups of head and tails, and the shard of the bucket index."""

from __future__ import annotations

import numpy as np

from stripesim.sim.ceph import roles
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import UNBOUND, Bindings


class ObjectPlaces:
    """Places of objects: placement groups of head and tails, and shards of the bucket index.

    All placement groups hold equally many heads, and equally many of each tail, as with millions of objects.

    Parameters
    ----------
    pool, book
        The data pool, and the bindings of the run, to which those of a place are added when it is needed.
    slots
        Number of places.
    """

    def __init__(self, pool: Pool, book: Book, slots: int) -> None:
        cluster = pool.cluster
        assert cluster.gateways is not None
        self._pool = pool
        self._book = book
        self._gateways = cluster.gateways
        self.slots = slots
        draws = np.random.default_rng(cluster.groups)
        objects = 1 + self._gateways.tails
        #: Placement group of head and tails of each place, shape (slots, objects)
        self.groups = np.stack(
            [_evenly(draws, cluster.groups, slots) for _ in range(objects)], axis=1
        )
        self._shards = _evenly(draws, cluster.index_shards, slots)
        self._rows = np.full(slots, -1, dtype=np.int64)
        #: Number of each head and tail among those of its placement group, shape (slots, objects)
        self.ranks = _ranks(self.groups)

    @property
    def groups_count(self) -> int:
        """Placement groups of the data pool [count]."""
        return self._pool.cluster.groups

    @property
    def index_groups_count(self) -> int:
        """Placement groups of the pool of the bucket indexes [count]."""
        return len(self._gateways.index_sets)

    def index_shards(self, slots: IntArray) -> IntArray:
        """Return the index shard of each place, and the others of its bucket if requests list it.

        Returns
        -------
        Shape (n, index objects that a request names). The first is that of the object.
        """
        own = self._shards[slots, None]
        count = self._gateways.index_shards
        first = own // count * count
        shards: IntArray = (
            first + (own + np.arange(self._gateways.roles.index_shards)) % count
        )
        return shards

    def index_groups(self, slots: IntArray) -> IntArray:
        """Return the placement groups of `index_shards`."""
        groups: IntArray = self._gateways.index_groups[self.index_shards(slots)]
        return groups

    def rows_of(self, slots: IntArray) -> IntArray:
        """Return the binding row of each place, with all placement groups as the pool has them."""
        new = np.unique(slots[self._rows[slots] < 0])
        if len(new):
            cluster = self._pool.cluster
            data = [
                cluster.members_rows(
                    cluster.acting[groups], self._pool.primaries[groups], groups
                )
                for groups in self.groups[new].T
            ]
            index = [cluster.index_rows(shards) for shards in self.index_shards(new).T]
            self._rows[new] = self._book.add_bindings(self._joined(data, index))
        return self._rows[slots]

    def bound(self, slots: IntArray, bindings: Bindings, rows: IntArray) -> Bindings:
        """Bind the roles of places whose placement groups are bound as some rows of the run.

        Parameters
        ----------
        slots
            The places, shape (n,).
        bindings
            Binding rows of the run.
        rows
            Row of the placement group of each head, tail and index shard, shape (n, objects + index objects).
        """
        cluster = self._pool.cluster
        own = self._gateways.roles
        objects = self.groups.shape[1]
        data_roles = roles.role_count(own.width)
        index_roles = roles.role_count(own.index_width)
        data = [
            bindings[of_object, :data_roles].copy() for of_object in rows[:, :objects].T
        ]
        index = []
        for shards, of_shard in zip(
            self.index_shards(slots).T, rows[:, objects:].T, strict=True
        ):
            bound = bindings[of_shard, :index_roles].copy()
            cluster.bind_index_locks(bound, shards)
            index.append(bound)
        return self._joined(data, index)

    def _joined(self, data: list[Bindings], index: list[Bindings]) -> Bindings:
        """Join the bound roles of all RADOS objects of places to rows of requests, shape (n, roles)."""
        own = self._gateways.roles
        rows = self._pool.cluster.unbound_rows(len(data[0]))
        for number, bound in enumerate(data):
            first = own.tail(number - 1) if number else own.head
            rows[:, first : first + bound.shape[1]] = bound
            if number:
                _free_client(rows, first)
        for number, bound in enumerate(index):
            first = own.index(number)
            rows[:, first : first + bound.shape[1]] = bound
            _free_client(rows, first)
        return rows


def _evenly(draws: np.random.Generator, values: int, count: int) -> IntArray:
    """Return values from 0 in random order, each about equally often."""
    rounds = -(-count // values)
    drawn = [draws.permutation(values) for _ in range(rounds)]
    return np.concatenate(drawn)[:count].astype(np.int64)


def _ranks(groups: IntArray) -> IntArray:
    """Return how many entries with the same value precede each entry, of an array in order of its rows."""
    flat = groups.reshape(-1)
    by_group = np.argsort(flat, kind="stable")
    firsts = np.searchsorted(flat[by_group], flat[by_group])
    ranks = np.empty(len(flat), dtype=np.int64)
    ranks[by_group] = np.arange(len(flat)) - firsts
    return ranks.reshape(groups.shape)


def _free_client(rows: Bindings, first: int) -> None:
    """Unbind the client roles of a RADOS object, in whose place a request uses the gateway's."""
    for role in roles.CLIENT_ROLES:
        rows[:, first + role] = UNBOUND
