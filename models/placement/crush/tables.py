"""From a map's dataclasses to the compiled kernel and back: the only way to the kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush.elements import Bucket, Rule, Tunables
from stripesim.models.placement.crush.kernel import Tables, map_rows, padded_size
from stripesim.models.placement.crush.straw2_log import straw2_log_table


def flatten(buckets: Sequence[Bucket]) -> Tables:
    """Lay buckets out as flat arrays, indexed by −1 − id."""
    count = max((-bucket.id for bucket in buckets), default=1)
    first = np.zeros(count, dtype=np.int64)
    size = np.zeros(count, dtype=np.int64)
    kind = np.full(count, -1, dtype=np.int64)
    items: list[int] = []
    weights: list[int] = []
    for bucket in buckets:
        index = -1 - bucket.id
        first[index] = len(items)
        size[index] = len(bucket.items)
        kind[index] = bucket.type_id
        padding = [0] * (padded_size(len(bucket.items)) - len(bucket.items))
        items.extend([*bucket.items, *padding])
        weights.extend([*bucket.weights, *padding])
    weight = np.array(weights, dtype=np.int64)
    inverse = np.divide(1.0, weight, out=np.full(weight.size, np.inf), where=weight > 0)
    return Tables(first, size, kind, np.array(items, dtype=np.int32), weight, inverse, straw2_log_table())


def run_rule(
    tables: Tables,
    tunables: Tunables,
    rule: Rule,
    xs: npt.NDArray[np.uint32],
    num_rep: int,
    reweights: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Run a rule on checked arguments; the results are those of `CrushMap.map_with_lengths`."""
    rows = [(step.op, step.count, step.type_id) for step in rule.steps]
    steps = np.array(rows, dtype=np.int64).reshape(-1, 3)
    changeable = [
        tunables.choose_total_tries + 1,  # the tunable counts the tries after the first one
        0,
        tunables.choose_local_tries,
        tunables.choose_local_fallback_tries,
        tunables.chooseleaf_vary_r,
        tunables.chooseleaf_stable,
    ]
    out = np.empty((xs.size, num_rep), dtype=np.int32)
    lengths = np.empty(xs.size, dtype=np.int32)
    work = np.empty(3 * num_rep + len(changeable), dtype=np.int64)
    scratch = np.empty(padded_size(int(tables.size.max())), dtype=np.uint32)
    descend_once = bool(tunables.chooseleaf_descend_once)
    map_rows(tables, steps, np.array(changeable), descend_once, xs, reweights, out, lengths, work, scratch)
    return out, lengths
