"""Gateways that fail with the hosts of OSDs, and the clients that then use others."""

import numpy as np

from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.plan import Failure
from stripesim.sim.ceph.failures.timeline import GatewayStall
from stripesim.sim.ceph.gateway.layout import ObjectLayouts


class LostGateways:
    """Sends the requests of clients to other gateways, some time after a gateway's host has failed.

    The load balancer notices a gateway that does not answer, breaks the connections to it, and connects
    clients to the next one. Their requests begin again. Until then they wait. A gateway that is back serves
    the requests that follow. If none is left, requests wait for the first that is back.
    """

    def __init__(self, state: ClusterState, layouts: ObjectLayouts) -> None:
        cluster = state.pool.cluster
        assert cluster.gateways is not None
        assert cluster.models.gateway is not None
        self._state = state
        self._layouts = layouts
        self._hosts = cluster.gateways.hosts
        self._down_hosts: set[int] = set()
        if not cluster.gateways.fails_over:
            return
        for failure in state.plan.failures:
            if not np.isin(self._hosts, failure.hosts).any():
                continue
            noticed_ns = failure.time_ns + cluster.models.gateway.failover_ns
            if failure.back_ns is None or failure.back_ns > noticed_ns:
                state.clock.at(noticed_ns, self._leave, failure)
            if failure.back_ns is not None:
                state.clock.at(failure.back_ns, self._return, failure)

    def _leave(self, failure: Failure) -> None:
        """Send the requests of the gateways on failed hosts to others."""
        self._down_hosts |= set(failure.hosts)
        self._send(failure, failure.time_ns)

    def _return(self, failure: Failure) -> None:
        """Use the gateways of hosts that are back. They have lost the requests they had."""
        was_noticed = not self._down_hosts.isdisjoint(failure.hosts)
        self._down_hosts -= set(failure.hosts)
        self._send(failure, self._state.now_ns if was_noticed else failure.time_ns)

    def _send(self, failure: Failure, since_ns: int) -> None:
        """Issue requests of failed gateways, which have waited since some time [ns], once more."""
        used = self._layouts.substitutes
        hit = np.flatnonzero(np.isin(self._hosts[used], failure.hosts)).tolist()
        self._layouts.substitute(self._substitutes())
        for gateway in hit:
            groups = self._layouts.engine_groups.of_gateway(gateway)
            self._state.actions.send_groups_again(groups)
            stall = GatewayStall(groups, since_ns, self._state.now_ns)
            self._state.timeline.gateway_stalls.append(stall)
        if hit:
            left = len(self._hosts) - int(self._is_down().sum())
            text = f"clients use {left} of {len(self._hosts)} gateways"
            self._state.note("gateways", text)

    def _substitutes(self) -> np.ndarray:
        """Return for each gateway the next one that is there, itself if none is."""
        is_down = self._is_down()
        up = np.flatnonzero(~is_down)
        numbers = np.arange(len(is_down), dtype=np.int64)
        if not len(up):
            return numbers
        after = up[np.searchsorted(up, numbers) % len(up)]
        return np.where(is_down, after, numbers)

    def _is_down(self) -> np.ndarray:
        return np.isin(self._hosts, list(self._down_hosts))
