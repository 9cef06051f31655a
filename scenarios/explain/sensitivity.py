"""Where the duration of each step comes from: double one number after another and see which steps change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stripesim.models.kernel.cost import AffineKnee, KernelTable
from stripesim.models.provenance import Provenance
from stripesim.scenarios.run.execute import MODEL_NAMES, OPTIONAL_MODEL_NAMES
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.engine.graph import Template

__all__ = ["CODING_OPS", "Share", "shares_of", "slower"]

#: What a kernel does.
CODING_OPS = ("encode", "decode", "reconstruct")


@dataclass(frozen=True)
class Share:
    """What one parameter has to do with the duration of one step.

    Parameters
    ----------
    parameter : str
        Name, such as ``cpu.op_prepare_ns`` or ``kernel.encode``.
    change_ns : int
        How much longer the step takes if the parameter is doubled [ns]. For a term of a sum that is
        the term itself; for a rate it is negative.
    """

    parameter: str
    change_ns: int


def shares_of(
    plan: Callable[[Models], Sequence[Template]], models: Models
) -> tuple[list[list[list[Share]]], dict[str, dict[str, Any]]]:
    """Attribute the demands of a path's steps to the parameters of the models.

    Parameters
    ----------
    plan : callable
        From models to the templates of the one request: its own and those it may start.
    models : Models
        The models as they are.

    Returns
    -------
    shares : list of list of list of Share
        For each template and each of its steps the parameters, the greatest first.
    parameters : dict of str to dict
        Each parameter named in `shares`: value, unit, provenance, source, confidence interval.

    Notes
    -----
    A cost is a sum of terms, each proportional to one parameter, so doubling one parameter adds exactly its
    term (to the rounding of 1 ns). A rate, or a factor over a whole sum, changes the whole sum and is
    listed beside its terms. Nothing here knows a formula: a new term in a path appears by itself.
    Not seen: numbers that are zero, distributions (a timeline is drawn with mean service times), and those
    whose doubling gives a path with other steps, such as the allocation unit of a store.
    """
    bases = plan(models)
    shares: list[list[list[Share]]] = [[[] for _ in range(base.steps)] for base in bases]
    parameters: dict[str, dict[str, Any]] = {}
    for told, changed in _doubled(models):
        try:
            others = plan(changed)
        except ValueError:
            # The models refuse the doubled number, so it cannot be told apart this way.
            continue
        for base, other, found in zip(bases, others, shares, strict=True):
            if not _same_steps(base, other):
                continue
            change = other.demands_ns - base.demands_ns
            for step in np.flatnonzero(change).tolist():
                found[step].append(Share(told["name"], int(change[step])))
                parameters[told["name"]] = told
    for of_template in shares:
        for of_step in of_template:
            of_step.sort(key=lambda share: -abs(share.change_ns))
    return shares, parameters


def _same_steps(one: Template, other: Template) -> bool:
    return (
        one.labels == other.labels
        and np.array_equal(one.words, other.words)
        and np.array_equal(one.roles, other.roles)
        and np.array_equal(one.successors, other.successors)
    )


def _doubled(models: Models) -> Iterator[tuple[dict[str, Any], Models]]:
    """Yield each number with its provenance, and the models in which it is twice as large."""
    for name in (*MODEL_NAMES, *OPTIONAL_MODEL_NAMES):
        model = getattr(models, name)
        if model is None:
            continue
        for told in model.parameters(f"{name}."):
            field, value = told["name"].removeprefix(f"{name}."), told["value"]
            if isinstance(value, list) or not value:
                continue
            try:
                changed = replace(model, **{field: 2 * value})
            except ValueError:
                continue
            yield told, replace(models, **{name: changed})
    origin = models.kernel.provenance
    for op in CODING_OPS:
        told = {
            "name": f"kernel.{op}",
            "value": None,
            "unit": "ns",
            "provenance": Provenance("measured", str(origin["basis"])).kind,
            "source": f"kernel table {models.kernel.name}: {_cpu_name(origin['cpu'])}",
            "confidence_interval": None,
        }
        yield told, replace(models, kernel=slower(models.kernel, (op,)))


def _cpu_name(cpu: Any) -> str:
    return str(cpu.get("name", cpu)) if hasattr(cpu, "get") else str(cpu)


def slower(table: KernelTable, ops: Sequence[str]) -> KernelTable:
    """Return a table in which some operations take twice as long."""
    costs = tuple(
        replace(
            cost,
            total=_twice(cost.total),
            copy=None if cost.copy is None else _twice(cost.copy),
            net=None if cost.net is None else _twice(cost.net),
        )
        if cost.op in ops
        else cost
        for cost in table.costs
    )
    return replace(table, costs=costs)


def _twice(cost: AffineKnee) -> AffineKnee:
    return replace(
        cost,
        fixed_ns=2 * cost.fixed_ns,
        per_byte_ns=2 * cost.per_byte_ns,
        per_byte_beyond_ns=2 * cost.per_byte_beyond_ns,
    )
