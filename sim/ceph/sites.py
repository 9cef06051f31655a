"""Sites: delays of messages between hosts of different sites, as roles that binding rows enable.

A delay takes no time where its role is unbound (`GraphBuilder.delay`). So a path has one step for each
distance between sites, and the binding of a placement group enables the one between its own OSDs. All
placement groups and clients share the paths.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph import roles
from stripesim.sim.engine.graph import NO_SHARD, IntArray
from stripesim.sim.engine.program import BY_CLIENT, UNBOUND, Bindings


class SiteDelay(NamedTuple):
    """One step that a message may pass on its way to another site."""

    role: int
    delay_ns: int


@dataclass(frozen=True)
class SiteDelays:
    """The distances between sites, and the roles of their delays.

    The roles follow those of a pool with `width` shards: delays between the client and the primary, between
    the client and each shard, and between the primary and each shard.
    """

    one_way_ns: tuple[int, ...]  #: Distinct distances between sites, ascending [ns]
    #: Site of an OSD, and index in `one_way_ns` of its distance from the sites of clients
    to_clients: tuple[tuple[int, int], ...]

    def role_count(self, width: int) -> int:
        """Return the number of roles of delays."""
        return len(self.to_clients) * (1 + width) + len(self.one_way_ns) * width

    def of_client(self, width: int, shard: int) -> list[SiteDelay]:
        """Return the delays between the client and the primary (`NO_SHARD`) or a shard."""
        owner = 0 if shard == NO_SHARD else 1 + shard
        first = roles.role_count(width) + owner * len(self.to_clients)
        return [
            SiteDelay(first + number, self.one_way_ns[distance])
            for number, (_, distance) in enumerate(self.to_clients)
        ]

    def of_shard(self, width: int, shard: int) -> list[SiteDelay]:
        """Return the delays between the primary and a shard."""
        first = roles.role_count(width) + (1 + width) * len(self.to_clients)
        first += shard * len(self.one_way_ns)
        return [
            SiteDelay(first + number, delay_ns)
            for number, delay_ns in enumerate(self.one_way_ns)
        ]

    def role_name(self, role: int, width: int) -> str:
        """Return the name of a role of a delay, for figures and messages."""
        owner_index, number = divmod(
            role - roles.role_count(width), len(self.to_clients)
        )
        if owner_index <= width:
            site, distance = self.to_clients[number]
            owner = "primary" if owner_index == 0 else f"shard[{owner_index - 1}]"
            return f"{owner}.site{site}.{self.one_way_ns[distance]}ns.far"
        first = roles.role_count(width) + (1 + width) * len(self.to_clients)
        shard, distance = divmod(role - first, len(self.one_way_ns))
        return f"shard[{shard}].peer.{self.one_way_ns[distance]}ns.far"


@dataclass(frozen=True, kw_only=True, eq=False)
class Sites:
    """Sites of hosts and clients, and the distances between them."""

    host_sites: IntArray  #: Site of each host, shape (hosts,)
    client_sites: IntArray  #: Site of each client, shape (clients,)
    #: Time of a message from site to site [ns], symmetric with a diagonal of 0, shape (sites, sites)
    one_way_ns: IntArray

    @property
    def count(self) -> int:
        """Number of sites."""
        return len(self.one_way_ns)

    @cached_property
    def delays(self) -> SiteDelays:
        """The roles of delays between these sites."""
        distances = np.unique(self.one_way_ns[self.one_way_ns > 0]).tolist()
        numbers = self._distances(distances)
        client_sites = np.unique(self.client_sites)
        pairs = {
            (site, int(number))
            for site in range(self.count)
            for number in numbers[client_sites, site]
            if number >= 0
        }
        return SiteDelays(tuple(distances), tuple(sorted(pairs)))

    def client_rows(self) -> npt.NDArray[np.bool_]:
        """Return True where a client is so far from an OSD's site, shape (clients, `to_clients`)."""
        numbers = self._distances(list(self.delays.one_way_ns))[self.client_sites]
        far = [numbers[:, site] == number for site, number in self.delays.to_clients]
        return np.array(far, dtype=np.bool_).reshape(-1, len(self.client_sites)).T

    def delay_shares(self, rows: Bindings, width: int) -> npt.NDArray[np.float64]:
        """Return the mean share of requests that each delay takes part in, shape (roles of delays,).

        Parameters
        ----------
        rows
            Result of `member_rows` for each placement group.
        width
            Shards of the pool.
        """
        far_clients = np.tile(self.client_rows().mean(axis=0), 1 + width)
        asks = (rows == BY_CLIENT).mean(axis=0)
        shares: npt.NDArray[np.float64] = (rows == 0).mean(axis=0)
        shares[: len(far_clients)] += asks[: len(far_clients)] * far_clients
        return shares

    def far_members(
        self, rows: Bindings, clients: IntArray, width: int
    ) -> npt.NDArray[np.bool_]:
        """Return True where a request's client is at another site than the primary, and than each shard.

        Parameters
        ----------
        rows
            Binding row of each request, shape (requests, roles).
        clients
            Client of each request, shape (requests,).
        width
            Shards of the pool.
        """
        first = roles.role_count(width)
        ends = len(self.delays.to_clients)
        asks = rows[:, first : first + ends * (1 + width)] == BY_CLIENT
        asks = asks.reshape(len(rows), 1 + width, ends)
        enabled = asks & self.client_rows()[clients][:, None]
        far: npt.NDArray[np.bool_] = np.any(enabled, axis=2)
        return far

    def member_rows(
        self, home_hosts: IntArray, hosts: IntArray, present: npt.NDArray[np.bool_]
    ) -> Bindings:
        """Bind the roles of delays of placement groups, shape (groups, roles).

        Parameters
        ----------
        home_hosts
            Host of each primary, shape (groups,).
        hosts
            Host of each shard, shape (groups, width).
        present
            False for each shard without an OSD, shape (groups, width).

        Returns
        -------
        array of int32
            0 for an enabled delay (resource 0 stands for the wire between sites, which no server serves),
            `BY_CLIENT` for those that the client enables, else `UNBOUND`.
        """
        home = self.host_sites[home_hosts]
        sites = self.host_sites[hosts]
        delays = self.delays
        ends = np.array([site for site, _ in delays.to_clients], dtype=np.int64)
        asked = np.concatenate([home[:, None], sites], axis=1)
        there = np.concatenate([np.ones_like(present[:, :1]), present], axis=1)
        asks = (asked[:, :, None] == ends) & there[:, :, None]
        distances = self._distances(list(delays.one_way_ns))[home[:, None], sites]
        numbers = np.arange(len(delays.one_way_ns))
        far = (distances[:, :, None] == numbers) & present[:, :, None]
        parts = [
            np.where(asks, BY_CLIENT, UNBOUND).reshape(len(home), -1),
            np.where(far, 0, UNBOUND).reshape(len(home), -1),
        ]
        return np.concatenate(parts, axis=1).astype(np.int32)

    def _distances(self, distances_ns: list[int]) -> IntArray:
        """Return the index of the distance between two sites, −1 for none, shape (sites, sites)."""
        numbers = np.searchsorted(np.array(distances_ns), self.one_way_ns)
        indices: IntArray = np.where(self.one_way_ns > 0, numbers, -1)
        return indices
