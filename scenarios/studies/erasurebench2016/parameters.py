"""The study's models, from ``parameters.toml``."""

from functools import cache

from stripesim.models.nic import NicModel
from stripesim.scenarios.studies.parameters import ParameterFile
from stripesim.sim.systems.kv_proxy.costs import AggregationModel, ProxyModel
from stripesim.sim.systems.kv_proxy.proxy import StoreSystem

_FILE = ParameterFile("erasurebench2016")


@cache
def aggregation() -> AggregationModel:
    """Return the gathering of blocks under keys."""
    return _FILE.model(AggregationModel, "aggregation")


@cache
def proxy() -> ProxyModel:
    """Return the times of the proxy and of a request."""
    return _FILE.model(ProxyModel, "proxy")


@cache
def network() -> NicModel:
    """Return the network interfaces."""
    return _FILE.model(NicModel, "network")


def number(table: str, name: str) -> float:
    """Return a number that belongs to no model."""
    return _FILE.number(table, name)


def system(nodes: int, model: ProxyModel | None = None) -> StoreSystem:
    """Return the source's proxy over a number of nodes."""
    return StoreSystem(
        model=model or proxy(),
        aggregation=aggregation(),
        nic=network(),
        nodes=nodes,
        command_bytes=int(number("protocol", "command_bytes")),
        reply_bytes=int(number("protocol", "reply_bytes")),
    )
