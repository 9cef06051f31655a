"""The study's parameter set: read from ``parameters.toml``, every number with its provenance."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from stripesim.models.nic import NicModel
from stripesim.models.provenance import unit_of
from stripesim.scenarios.studies.exstorus2019.parameters import ParametersError, model_from
from stripesim.sim.systems.kv_proxy.costs import AggregationModel, ProxyModel
from stripesim.sim.systems.kv_proxy.proxy import StoreSystem

FILE = "parameters.toml"
__all__ = ["ParametersError", "aggregation", "listed", "network", "number", "proxy", "system"]


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    text = (files("stripesim.scenarios.studies.erasurebench2016") / FILE).read_text("utf-8")
    return tomllib.loads(text)


@cache
def aggregation() -> AggregationModel:
    """How blocks are gathered under keys."""
    return model_from(AggregationModel, _tables()["aggregation"], f"{FILE}: [aggregation]")


@cache
def proxy() -> ProxyModel:
    """Times of the proxy and of a request."""
    return model_from(ProxyModel, _tables()["proxy"], f"{FILE}: [proxy]")


@cache
def network() -> NicModel:
    """The interfaces."""
    return model_from(NicModel, _tables()["network"], f"{FILE}: [network]")


def number(table: str, name: str) -> float:
    """One number that belongs to no model."""
    return float(_tables()[table][name]["value"])


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


def listed() -> list[dict[str, Any]]:
    """Every number of the parameter file with its provenance."""
    return [
        {
            "name": f"{table}.{name}",
            "value": row["value"],
            "unit": unit_of(name),
            "provenance": row["provenance"],
            "source": row["source"],
            "confidence_interval": row.get("confidence_interval"),
        }
        for table, rows in _tables().items()
        for name, row in rows.items()
    ]
