"""The parameters of a study, from its ``parameters.toml`` and with the changes of ``--set``."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from stripesim.models.problems import ParameterSetError, problems_at
from stripesim.models.provenance import MeasuredModel, Provenance, unit_of
from stripesim.scenarios.studies.description import shipped_toml

if TYPE_CHECKING:
    from stripesim.sim.ceph.cluster import Models

FILE = "parameters.toml"
_CHANGED = Provenance("given", "changed for this run by --set")

Model = TypeVar("Model", bound=MeasuredModel)


@dataclass(frozen=True)
class Changes:
    """Values changed for one run: parameters by the ledger's names, and keys of the scenario."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    scenario: Mapping[str, Any] = field(default_factory=dict)


_CHANGES: ContextVar[Changes] = ContextVar("_CHANGES", default=Changes())  # noqa: B039 - immutable in use


def apply_changes(changes: Changes) -> None:
    """Build all models with these changes from the next call on."""
    if _CHANGES.get() == changes:
        return
    _CHANGES.set(changes)
    # Studies cache models and runs, which depend on the parameters.
    for name, module in list(sys.modules.items()):
        if name.startswith(__package__):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


@contextmanager
def changes_applied(changes: Changes) -> Iterator[None]:
    """Apply changes for the length of a block."""
    before = _CHANGES.get()
    apply_changes(changes)
    try:
        yield
    finally:
        apply_changes(before)


def scenario_changes() -> Mapping[str, Any]:
    """Return the changed keys of the study's scenario, with their values."""
    return _CHANGES.get().scenario


def changed_number(name: str, value: float) -> float:
    """Return a parameter's value or its replacement. An integer stays one if possible."""
    changed = _CHANGES.get().numbers.get(name, value)
    if isinstance(value, int) and changed == round(changed):
        return round(changed)
    return changed


def changed_model(model: Model, prefix: str) -> Model:
    """Return a model with the changes of parameters named ``PREFIX.NAME``."""
    numbers = _CHANGES.get().numbers
    names = [name for name in model.number_names() if f"{prefix}.{name}" in numbers]
    if not names:
        return model
    values = {
        name: changed_number(f"{prefix}.{name}", getattr(model, name)) for name in names
    }
    return model.with_numbers(values, _CHANGED)


def changed_models(models: Models) -> Models:
    """Return the models of a cluster with all changes applied."""
    changed: dict[str, Any] = {}
    for prefix in {name.partition(".")[0] for name in _CHANGES.get().numbers}:
        model = getattr(models, prefix, None)
        if isinstance(model, MeasuredModel):
            changed[prefix] = changed_model(model, prefix)
    return replace(models, **changed)


def with_values(models: Models, values: Mapping[str, float]) -> Models:
    """Return the models with some numbers replaced, named ``MODEL.NUMBER``, as a fit tries them."""
    for name, value in values.items():
        prefix, _, number = name.partition(".")
        models = replace(
            models, **{prefix: replace(getattr(models, prefix), **{number: value})}
        )
    return models


def model_from(
    kind: type[Model],
    table: Mapping[str, Any],
    where: str,
    further: Mapping[str, Any] | None = None,
) -> Model:
    """Build a model from a table of ``parameters.toml``.

    Parameters
    ----------
    kind
        Class of the model.
    table
        Rows by number: ``value``, ``provenance``, ``source`` and perhaps ``confidence_interval``.
    where
        File and table, for messages.
    further
        Arguments of the model other than measured numbers.

    Raises
    ------
    ParameterSetError
        If a number is missing or refused.
    """
    values = {}
    provenance = {}
    try:
        for name, row in table.items():
            interval = row.get("confidence_interval")
            values[name] = row["value"]
            provenance[name] = Provenance(
                row["provenance"], row["source"], tuple(interval) if interval else None
            )
        return kind(provenance=provenance, **values, **(further or {}))
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterSetError(*problems_at(where, error)) from None


@dataclass(frozen=True)
class ParameterFile:
    """The file ``parameters.toml`` of a study: tables of numbers, each with its provenance."""

    study: str
    package: str = ""  #: Package that holds the file, if not the study's folder
    name: str = FILE

    def table(self, name: str) -> dict[str, dict[str, Any]]:
        """Return a table of the file with all changes applied."""
        return {
            key: _changed_row(f"{name}.{key}", row)
            for key, row in self._content()[name].items()
        }

    def tables(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return all tables of the file with all changes applied."""
        return {name: self.table(name) for name in self._content()}

    def number(self, table: str, name: str) -> float:
        """Return one number that belongs to no model."""
        return float(self.table(table)[name]["value"])

    def model(self, kind: type[Model], table: str) -> Model:
        """Build a model from a table, as `model_from`."""
        return model_from(kind, self.table(table), f"{self.study}/{FILE}: [{table}]")

    def listed(self) -> list[dict[str, Any]]:
        """List every number of the file as a ledger does."""
        return [
            {
                "name": f"{table}.{name}",
                "value": row["value"],
                "unit": row.get("unit") or unit_of(name),
                "provenance": row["provenance"],
                "source": row["source"],
                "confidence_interval": row.get("confidence_interval"),
            }
            for table in self._content()
            for name, row in self.table(table).items()
        ]

    def _content(self) -> dict[str, Any]:
        if not self.package:
            return shipped_toml(self.study, self.name)
        return _packaged_toml(self.package, self.name)


@cache
def _packaged_toml(package: str, name: str) -> dict[str, Any]:
    return tomllib.loads((files(package) / name).read_text("utf-8"))


def _changed_row(name: str, row: dict[str, Any]) -> dict[str, Any]:
    if name not in _CHANGES.get().numbers:
        return row
    value = changed_number(name, row["value"])
    return {"value": value, "provenance": _CHANGED.kind, "source": _CHANGED.source}
