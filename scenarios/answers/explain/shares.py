"""Attribute the duration of each step to the parameters of the models."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from stripesim.models.provenance import Provenance
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.engine.graph import COUNTER_INDEX, Template

_CODING = COUNTER_INDEX["coding_ns"]
_KERNEL = "kernel"
#: Parameters of the time around encode calls, which a step's coding time includes.
_AROUND_KERNEL = ("encode_buffers.", "cpu.ec_copy_ns_per_byte")


class ParameterShare(NamedTuple):
    """The contribution of one parameter to the duration of one step."""

    parameter: str  # Such as cpu.op_prepare_ns, or "kernel" for the kernel table.
    # Change of the duration if the parameter doubles: its term of a sum, or negative for a rate.
    change_ns: int


def shares_of(
    plan: Callable[[Models], Sequence[Template]], models: Models
) -> tuple[list[list[list[ParameterShare]]], dict[str, dict[str, Any]]]:
    """Attribute the demands of a path's steps to the parameters of the models.

    Apart from coding, every cost is a sum of terms that are proportional to one parameter each, so doubling
    a parameter adds exactly its term. A rate, or a factor of a sum, changes the whole sum and is listed in
    addition to its terms.

    Parameters
    ----------
    plan
        Compiles the request under given models.
    models
        The models.

    Returns
    -------
    shares
        By template and step, the largest share first.
    parameters
        Description of each parameter that a share names.

    Notes
    -----
    A time whose doubling changes the steps of the path, such as one that exceeds a scheduler's slice then, is
    halved instead. Three kinds of parameters are missed: those that are zero, distributions, and others whose
    doubling changes the steps, such as the allocation unit of a store.
    """
    bases = plan(models)
    shares: list[list[list[ParameterShare]]] = [
        [[] for _ in range(base.steps)] for base in bases
    ]
    parameters: dict[str, dict[str, Any]] = {}
    for parameter, doubled in _doubled(models):
        name = parameter["name"]
        changes_ns = _changes_ns(plan, bases, doubled)
        if _are_unknown(changes_ns) and _is_time(name):
            halved_ns = _changes_ns(plan, bases, _with(models, parameter, 0.5))
            changes_ns = [
                -2 * half if known is None and half is not None else known
                for known, half in zip(changes_ns, halved_ns, strict=True)
            ]
        for change_ns, of_template in zip(changes_ns, shares, strict=True):
            if change_ns is None:
                continue
            for step in np.flatnonzero(change_ns).tolist():
                of_template[step].append(ParameterShare(name, int(change_ns[step])))
                parameters[name] = parameter
    for base, of_template in zip(bases, shares, strict=True):
        for coding_ns, of_step in zip(
            base.amounts[:, _CODING].tolist(), of_template, strict=True
        ):
            kernel_ns = coding_ns - _around_kernel_ns(of_step)
            # Rounding accounts for one nanosecond.
            if kernel_ns > 1:
                of_step.append(ParameterShare(_KERNEL, kernel_ns))
                parameters[_KERNEL] = _kernel(models)
            of_step.sort(key=lambda share: -abs(share.change_ns))
    return shares, parameters


def _changes_ns(
    plan: Callable[[Models], Sequence[Template]],
    bases: Sequence[Template],
    models: Models,
) -> list[np.ndarray | None]:
    """Return by how much steps take longer under other models, None for a template whose steps change."""
    try:
        changed = plan(models)
    except ValueError:
        # The models reject the changed value, so its share is unknown.
        return [None] * len(bases)
    return [
        other.demands_ns - base.demands_ns if _same_steps(base, other) else None
        for base, other in zip(bases, changed, strict=True)
    ]


def _are_unknown(changes_ns: Sequence[np.ndarray | None]) -> bool:
    return any(change_ns is None for change_ns in changes_ns)


def _is_time(name: str) -> bool:
    return name.endswith(("_ns", "_ns_per_byte"))


def _around_kernel_ns(shares: Sequence[ParameterShare]) -> int:
    """Return the time of copies and buffers around encode calls [ns]."""
    return sum(s.change_ns for s in shares if s.parameter.startswith(_AROUND_KERNEL))


def _same_steps(one: Template, other: Template) -> bool:
    parts = ("words", "roles", "successors")
    return all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in parts
    )


def _doubled(models: Models) -> Iterator[tuple[dict[str, Any], Models]]:
    """Yield each parameter and the models with its value doubled."""
    for name, model in models.described().items():
        for parameter in model.parameters(f"{name}."):
            value = parameter["value"]
            if isinstance(value, list) or not value:
                continue
            try:
                yield parameter, _with(models, parameter, 2)
            except ValueError:
                continue


def _with(models: Models, parameter: Mapping[str, Any], factor: float) -> Models:
    """Return the models with one parameter multiplied by a factor."""
    name, _, field = parameter["name"].partition(".")
    changed = replace(
        vars(models)[name],
        **{field: type(parameter["value"])(factor * parameter["value"])},
    )
    return replace(models, **{name: changed})


def _kernel(models: Models) -> dict[str, Any]:
    """Describe the kernel table as a parameter."""
    origin = models.kernel.provenance
    source = f"kernel table {models.kernel.name}: {_cpu_name(origin['cpu'])}"
    for measured in origin.get("measured_here", ()):
        cpu = _cpu_name(measured["cpu"])
        source += f"; {measured['scheme']}: measured here on {cpu}"
    return {
        "name": _KERNEL,
        "value": None,
        "unit": "ns",
        "provenance": Provenance("measured", str(origin["basis"])).kind,
        "source": source,
        "confidence_interval": None,
    }


def _cpu_name(cpu: Any) -> str:
    if isinstance(cpu, Mapping):
        cpu = cpu.get("name", cpu)
    return str(cpu)
