"""The gateways of a cluster, their bucket indexes, and the roles of a request that passes through one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np

from stripesim.models.coding import RedundancyScheme
from stripesim.sim.ceph import roles
from stripesim.sim.engine.graph import NO_ROLE, IntArray

#: Roles of the gateway, which follow those of all RADOS objects of a request.
_GATEWAY_PARTS = ("thread", "messenger", "serial", "budget", "cpu", "tx", "rx")
THREAD, MESSENGER, SERIAL, BUDGET, CPU, TX, RX = range(7)


@dataclass(frozen=True)
class RequestRoles:
    """Roles of an S3 request: head object, shards of the bucket index, tail objects, and gateway.

    Each RADOS object has the roles of a request to its pool. The client roles of the head are those of the S3
    client. To the OSDs, the gateway is the client of all of them.
    """

    width: int  #: Shards of the data pool
    index_width: int  #: Replicas of the index pool
    index_shards: int  #: Index objects that a request names: all of a bucket if requests list it, else one
    tails: int  #: Tail objects of the largest object

    @property
    def head(self) -> int:
        """First role of the head object."""
        return 0

    def index(self, shard: int) -> int:
        """Return the first role of an object of the index."""
        size = roles.role_count(self.index_width)
        return roles.role_count(self.width) + shard * size

    def tail(self, number: int) -> int:
        """Return the first role of a tail object."""
        return self.index(self.index_shards) + number * roles.role_count(self.width)

    def gateway(self, part: int) -> int:
        """Return a role of the gateway."""
        return self.tail(self.tails) + part

    @property
    def count(self) -> int:
        """Number of roles."""
        return self.gateway(len(_GATEWAY_PARTS))

    def of_object(self, first: int, width: int) -> list[int]:
        """Return the role in the request of each role of a path to one of its RADOS objects.

        The gateway replaces the client. Its costs include librados, so the threads of a client stay unbound.
        """
        renamed = list(range(first, first + roles.role_count(width)))
        idle = self.index(0) + roles.CLIENT_THREAD
        renamed[roles.CLIENT_SUBMIT] = idle
        renamed[roles.CLIENT_THREAD] = idle
        renamed[roles.CLIENT_CPU] = idle
        renamed[roles.CLIENT_TX] = self.gateway(TX)
        renamed[roles.CLIENT_RX] = self.gateway(RX)
        return renamed

    def name(self, role: int) -> str:
        """Return the name of a role for figures and messages."""
        if role == NO_ROLE:
            return ""
        if role >= self.gateway(0):
            return f"gateway.{_GATEWAY_PARTS[role - self.gateway(0)]}"
        if role >= self.tail(0):
            number, own = divmod(role - self.tail(0), roles.role_count(self.width))
            return f"tail[{number}].{roles.role_name(own)}"
        if role >= self.index(0):
            number, own = divmod(
                role - self.index(0), roles.role_count(self.index_width)
            )
            return f"index[{number}].{roles.role_name(own)}"
        name = roles.role_name(role)
        return name if role in roles.CLIENT_ROLES else f"head.{name}"


@dataclass(frozen=True, kw_only=True)
class Gateways:
    """The gateways, and the index of the buckets that they serve."""

    #: Storage host of each gateway, or its own machine, shape (gateways,)
    hosts: IntArray
    on_osd_hosts: bool  #: False if each gateway has a machine of its own
    cores_count: int  #: Cores of a gateway's machine, or those that a gateway uses at most [count]
    threads_count: int  #: Threads that process requests [count]. A request that waits for OSDs holds none
    index_scheme: RedundancyScheme  #: Scheme of the pool that holds the indexes
    #: OSD of each replica of each placement group of that pool, the primary first, shape (groups, replicas)
    index_sets: IntArray
    index_groups: (
        IntArray  #: Placement group of each index shard of all buckets, shape (shards,)
    )
    index_shards: int  #: Index shards of one bucket [count]
    #: True if gateways fail with their hosts during the run, and clients then use others
    fails_over: bool = False
    #: Keys that an index shard holds [B]. Recovery of the shard moves them
    index_shard_bytes: int = 0
    #: True if an update locks its index shard until it is complete on all replicas
    exclusive: bool
    lists: bool  #: True if requests list buckets, and so name all shards of one
    tails: int  #: Tail objects of the largest object [count]
    width: int  #: Shards of the data pool
    #: Data of the largest RADOS operation of the load, for which a unit of the budget stands [B]
    unit_bytes: int

    @property
    def count(self) -> int:
        """Number of gateways."""
        return len(self.hosts)

    @cached_property
    def index_acting(self) -> IntArray:
        """OSD of each replica of each index shard, the primary first, shape (shards, replicas)."""
        acting: IntArray = self.index_sets[self.index_groups]
        return acting

    @property
    def shards_of_groups(self) -> list[list[int]]:
        """Index shards of each placement group of the index."""
        return [
            np.flatnonzero(self.index_groups == group).tolist()
            for group in range(len(self.index_sets))
        ]

    @property
    def workers_count(self) -> int:
        """Requests that a gateway works on at the same time [count]."""
        return min(self.threads_count, self.cores_count)

    @cached_property
    def roles(self) -> RequestRoles:
        """Roles of a request."""
        return RequestRoles(
            width=self.width,
            index_width=self.index_scheme.width,
            index_shards=self.index_shards if self.lists else 1,
            tails=self.tails,
        )

    def spread_of(self, clients: int) -> int:
        """Return the number of gateways that each client uses in turn.

        These are as few as load all gateways equally: eight clients use three of six each, or all of nine.
        """
        return self.count // gcd(self.count, clients)

    def bound_of(self, clients: int) -> int:
        """Return the number of gateways for which each client has a row: all if one may replace another."""
        return self.count if self.fails_over else self.spread_of(clients)
