"""Background heartbeats between OSDs over the private network."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from stripesim.sim.ceph.cluster import NO_OSD, Cluster
from stripesim.sim.ceph.paths import PathContext
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import IntArray, Template
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import ListedRequests


def heartbeat_peers(cluster: Cluster) -> IntArray:
    """List the pairs of OSDs that ping each other: members of the same PG, and neighbours by number.

    Memory grows with the number of pairs, not with the square of the number of OSDs.

    Returns
    -------
    OSD that pings and OSD that answers, shape (pairs, 2).

    References
    ----------
    Ceph v16.2.15, ``src/osd/OSD.cc`` (``maybe_update_heartbeat_peers``).
    """
    osds = cluster.osds
    numbers = np.arange(osds, dtype=np.int64)
    # Encode each pair as one number, so that sorting removes duplicates.
    listed = [numbers * osds + (numbers + 1) % osds]
    for left, right in combinations(range(cluster.width), 2):
        members = cluster.acting[:, [left, right]]
        members = members[(members != NO_OSD).all(axis=1)].astype(np.int64)
        listed.append(members[:, 0] * osds + members[:, 1])
    first, second = np.divmod(np.unique(np.concatenate(listed)), osds)
    pings = np.unique(np.concatenate([first * osds + second, second * osds + first]))
    watchers, watched = np.divmod(pings, osds)
    is_other = watchers != watched
    peers: IntArray = np.column_stack([watchers[is_other], watched[is_other]])
    return peers


class HeartbeatSource(ListedRequests):
    """A stream of pings from every OSD to its peers, once per interval, with their replies.

    Pings between OSDs on one host do not cross the wire. Transport acknowledgements are omitted, as is the
    equal number of pings over the public network.

    Parameters
    ----------
    pool, book
        The pool, and the templates and bindings of the run.
    interval_ns
        Time between two pings of a pair, greater than 0 [ns].
    size_bytes
        Size of a ping or a reply, including its envelope [B].
    until_ns
        End of the stream [ns].

    Raises
    ------
    ValueError
        If the interval is not positive, or every PG of the pool has only one OSD.
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        *,
        interval_ns: int,
        size_bytes: int,
        until_ns: int,
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
        zeros = np.zeros(len(self.pairs), dtype=np.int64)
        rows = book.add_bindings(cluster.bind(acting, zeros, zeros))
        context = replace(pool.contexts[0], primary=0, missing=frozenset())
        template = book.add(_ping(context, size_bytes))
        # Pings of an OSD begin anywhere within the interval.
        draw = np.random.default_rng([0, 5])
        phases_ns = draw.integers(0, interval_ns, cluster.osds)
        starts_ns = phases_ns[self.pairs[:, 0]]
        rounds_ns = np.arange(-(-until_ns // interval_ns), dtype=np.int64) * interval_ns
        times_ns = (rounds_ns[:, None] + starts_ns[None, :]).reshape(-1)
        by_time = np.argsort(times_ns, kind="stable")
        by_time = by_time[times_ns[by_time] < until_ns]
        super().__init__(
            np.full(len(by_time), template, dtype=np.int64),
            np.tile(rows, len(rounds_ns))[by_time],
            queue_depth=0,
            arrivals_ns=times_ns[by_time].astype(np.int64),
        )


def _ping(context: PathContext, size_bytes: int) -> Template:
    graph = GraphBuilder("heartbeat")
    stage = Stage(graph, context)
    pinged = stage.out(1, size_bytes, graph.issue, "ping", phase=Phase.DISTRIBUTION)
    answered = stage.back(1, size_bytes, pinged, "ping reply", phase=Phase.DISTRIBUTION)
    return graph.finish(reply=answered)
