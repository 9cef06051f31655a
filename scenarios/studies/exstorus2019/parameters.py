"""The study's parameter set: read from ``parameters.toml``, every number with its provenance."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from stripesim.models.provenance import MeasuredModel, Provenance
from stripesim.sim.systems.striped_fs.costs import HddModel, StripedWriteModel

FILE = "parameters.toml"
Model = TypeVar("Model", bound=MeasuredModel)


class ParametersError(ValueError):
    """The parameter file is wrong; the message says which key."""


@cache
def write_model() -> StripedWriteModel:
    """The fitted and assumed numbers of a write."""
    return _model(StripedWriteModel, "write")


@cache
def hdd_model() -> HddModel:
    """The disks under the slaves."""
    return _model(HddModel, "hdd")


def _model(kind: type[Model], table: str) -> Model:
    text = (files("stripesim.scenarios.studies.exstorus2019") / FILE).read_text("utf-8")
    return model_from(kind, tomllib.loads(text)[table], f"{FILE}: [{table}]")


def model_from(kind: type[Model], told: Mapping[str, Any], where: str) -> Model:
    """Build a model from a table with ``value``, ``provenance``, ``source`` and, where fitted, an interval.

    Raises
    ------
    ParametersError
        If a key is missing or a number is refused.
    """
    values, provenance = {}, {}
    try:
        for name, row in told.items():
            values[name] = float(row["value"])
            interval = row.get("confidence_interval")
            provenance[name] = Provenance(
                row["provenance"], row["source"], tuple(interval) if interval else None
            )
        return kind(provenance=provenance, **values)
    except (KeyError, TypeError, ValueError) as error:
        raise ParametersError(f"{where}: {error}") from None
