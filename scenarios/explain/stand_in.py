"""Kernel costs of a code that was never timed: those of the most similar one that was."""

from __future__ import annotations

from dataclasses import replace

from stripesim.models.coding import parse_scheme
from stripesim.sim.ceph.cluster import Models


def with_stand_in(models: Models, scheme_name: str) -> tuple[Models, str]:
    """Return models whose kernel table has a Reed-Solomon code, and the code that its costs are taken from.

    The models stay, and the name is empty, where the table has the code or it is no Reed-Solomon code.

    Notes
    -----
    Taken is the timed code with the closest number of parities, then of data shards: a parity costs the
    same whatever code it belongs to. Only durations depend on it, never which bytes move.
    """
    table, named = models.kernel, models.kernel_backend
    timed = table.schemes(named) if named in table.backends else table.schemes()
    if scheme_name in timed or not scheme_name.startswith("rs:"):
        return models, ""
    code = parse_scheme(scheme_name)
    candidates = [parse_scheme(name) for name in timed if name.startswith("rs:")]
    if not candidates:
        return models, ""
    nearest = min(candidates, key=lambda other: (abs(other.m - code.m), abs(other.k - code.k), other.k))
    borrowed = tuple(replace(cost, scheme=scheme_name) for cost in table.costs if cost.scheme == nearest.name)
    return replace(models, kernel=replace(table, costs=table.costs + borrowed)), nearest.name
