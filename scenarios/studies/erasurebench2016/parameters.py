"""The study's parameter set: read from ``parameters.toml``, every number with its provenance."""

from functools import cache

from stripesim.models.nic import NicModel
from stripesim.scenarios.studies.parameters import ParameterFile
from stripesim.sim.systems.kv_proxy.costs import AggregationModel, ProxyModel
from stripesim.sim.systems.kv_proxy.proxy import StoreSystem

_FILE = ParameterFile("erasurebench2016")


@cache
def aggregation() -> AggregationModel:
    """How blocks are gathered under keys."""
    return _FILE.model(AggregationModel, "aggregation")


@cache
def proxy() -> ProxyModel:
    """Times of the proxy and of a request."""
    return _FILE.model(ProxyModel, "proxy")


@cache
def network() -> NicModel:
    """The interfaces."""
    return _FILE.model(NicModel, "network")


def number(table: str, name: str) -> float:
    """One number that belongs to no model."""
    return _FILE.number(table, name)


def system(nodes: int, model: ProxyModel | None = None) -> StoreSystem:
    """The source's proxy over so many nodes."""
    return StoreSystem(
        model=model or proxy(),
        aggregation=aggregation(),
        nic=network(),
        nodes=nodes,
        command_bytes=int(number("protocol", "command_bytes")),
        reply_bytes=int(number("protocol", "reply_bytes")),
    )
