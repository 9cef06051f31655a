"""Which parameters the duration of each step comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stripesim.models.provenance import Provenance
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.engine.graph import COUNTER_INDEX, Template

_CODING = COUNTER_INDEX["coding_ns"]
_KERNEL = "kernel"


@dataclass(frozen=True)
class Share:
    """What one parameter has to do with the duration of one step."""

    # Such as cpu.op_prepare_ns; kernel stands for the kernel table.
    parameter: str
    # How much longer the step takes if it is doubled: for a term of a sum the term, for a rate negative.
    change_ns: int


def shares_of(
    plan: Callable[[Models], Sequence[Template]], models: Models
) -> tuple[list[list[list[Share]]], dict[str, dict[str, Any]]]:
    """Attribute the demands of a path's steps to the parameters of the models, the greatest share first.

    `plan` makes the templates of the one request, its own and those it may start, from models. The second
    result describes each parameter named: value, unit, provenance, source, confidence interval.

    Notes
    -----
    Coding is accounted by the steps themselves; what of it is not the model of buffers is the kernel's. Any
    other cost is a sum of terms, each proportional to one parameter, so doubling one parameter adds exactly
    its term (to the rounding of 1 ns). A rate, or a factor over a whole sum, changes the whole sum and is
    listed beside its terms. Nothing here knows a formula: a new term in a path appears by itself.
    Not seen: numbers that are zero, distributions (a timeline is drawn with mean service times), and those
    whose doubling gives a path with other steps, such as the allocation unit of a store.
    """
    bases = plan(models)
    shares: list[list[list[Share]]] = [[[] for _ in range(base.steps)] for base in bases]
    parameters: dict[str, dict[str, Any]] = {}
    for parameter, changed in _doubled(models):
        try:
            others = plan(changed)
        except ValueError:
            # The models reject the doubled number, so its share stays unknown.
            continue
        for base, other, found in zip(bases, others, shares, strict=True):
            if not _same_steps(base, other):
                continue
            change = other.demands_ns - base.demands_ns
            for step in np.flatnonzero(change).tolist():
                found[step].append(Share(parameter["name"], int(change[step])))
                parameters[parameter["name"]] = parameter
    for base, of_template in zip(bases, shares, strict=True):
        for step, of_step in enumerate(of_template):
            buffers_ns = sum(
                each.change_ns for each in of_step if each.parameter.startswith("encode_buffers.")
            )
            kernel_ns = int(base.amounts[step, _CODING]) - buffers_ns
            # One nanosecond is what rounding leaves.
            if kernel_ns > 1:
                of_step.append(Share(_KERNEL, kernel_ns))
                parameters[_KERNEL] = _kernel(models)
            of_step.sort(key=lambda share: -abs(share.change_ns))
    return shares, parameters


def _same_steps(one: Template, other: Template) -> bool:
    return (
        np.array_equal(one.words, other.words)
        and np.array_equal(one.roles, other.roles)
        and np.array_equal(one.successors, other.successors)
    )


def _doubled(models: Models) -> Iterator[tuple[dict[str, Any], Models]]:
    """Yield each number with its provenance, and the models in which it is twice as large."""
    for name, model in models.described().items():
        for parameter in model.parameters(f"{name}."):
            field, value = parameter["name"].removeprefix(f"{name}."), parameter["value"]
            if isinstance(value, list) or not value:
                continue
            try:
                changed: Any = replace(model, **{field: 2 * value})
            except ValueError:
                continue
            yield parameter, replace(models, **{name: changed})


def _kernel(models: Models) -> dict[str, Any]:
    """Describe the kernel table as a parameter."""
    origin = models.kernel.provenance
    cpu = origin["cpu"]
    cpu_name = cpu.get("name", cpu) if hasattr(cpu, "get") else cpu
    return {
        "name": _KERNEL,
        "value": None,
        "unit": "ns",
        "provenance": Provenance("measured", str(origin["basis"])).kind,
        "source": f"kernel table {models.kernel.name}: {cpu_name}",
        "confidence_interval": None,
    }
