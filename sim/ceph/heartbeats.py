"""The background stream of pings with which OSDs watch each other over the private network."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from stripesim.sim.ceph.cluster import NO_OSD, Cluster
from stripesim.sim.ceph.paths import PathContext
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import GraphBuilder, IntArray, Template
from stripesim.sim.engine.program import ListedRequests


def heartbeat_peers(cluster: Cluster) -> IntArray:
    """List pairs of OSDs of which the first pings the second (``maybe_update_heartbeat_peers``).

    OSDs ping each other if they share a PG or are neighbours by number. Memory grows with the pairs, not with
    the square of the OSDs.
    """
    osds = cluster.osds
    numbers = np.arange(osds, dtype=np.int64)
    # A pair as one number, so that sorting finds those that occur again.
    pairs = np.unique(numbers * osds + (numbers + 1) % osds)
    for left, right in combinations(range(cluster.width), 2):
        both = cluster.acting[:, [left, right]]
        both = both[(both != NO_OSD).all(axis=1)].astype(np.int64)
        pairs = np.union1d(pairs, both[:, 0] * osds + both[:, 1])
    first, second = np.divmod(pairs, osds)
    ordered = np.unique(np.concatenate([first * osds + second, second * osds + first]))
    watchers, watched = np.divmod(ordered, osds)
    is_other = watchers != watched
    peers: IntArray = np.column_stack([watchers[is_other], watched[is_other]])
    return peers


class HeartbeatSource(ListedRequests):
    """Every OSD pings all of its peers once an interval until `until_ns`; each answers.

    `size_bytes` is a ping or an answer with the envelope. Pairs on one host do not cross the wire. The public
    side, which carries as much again, and acknowledgements of the transport are left out.
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        *,
        interval_ns: int,
        size_bytes: int,
        until_ns: int,
        seed: int = 0,
    ) -> None:
        if interval_ns <= 0:
            raise ValueError(
                f"heartbeats: interval_ns: got {interval_ns}, wanted above 0"
            )
        cluster = pool.cluster
        if cluster.width < 2:
            raise ValueError(
                f"heartbeats: got a pool of width {cluster.width}, wanted at least 2"
            )
        self.pairs: IntArray = heartbeat_peers(cluster)
        acting = np.full((len(self.pairs), cluster.width), NO_OSD, dtype=np.int64)
        acting[:, :2] = self.pairs
        nobody = np.zeros(len(self.pairs), dtype=np.int64)
        rows = book.add_bindings(cluster.bind(acting, nobody, nobody))
        template = book.add(
            _ping(replace(pool.contexts[0], primary=0, missing=frozenset()), size_bytes)
        )
        phases = np.random.default_rng([seed, 5]).integers(0, interval_ns, cluster.osds)
        starts = phases[self.pairs[:, 0]]
        rounds = np.arange(-(-until_ns // interval_ns), dtype=np.int64) * interval_ns
        times = (rounds[:, None] + starts[None, :]).reshape(-1)
        bindings = np.tile(rows, len(rounds))
        order = np.argsort(times, kind="stable")
        order = order[times[order] < until_ns]
        every = np.full(len(order), template, dtype=np.int64)
        super().__init__(
            every, bindings[order], depth=0, arrivals_ns=times[order].astype(np.int64)
        )


def _ping(context: PathContext, size_bytes: int) -> Template:
    graph = GraphBuilder("heartbeat")
    stage = Stage(graph, context)
    pinged = stage.out(1, size_bytes, graph.issue, "ping", phase=Phase.DISTRIBUTION)
    answered = stage.back(1, size_bytes, pinged, "ping reply", phase=Phase.DISTRIBUTION)
    return graph.finish(reply=answered)
