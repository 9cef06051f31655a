"""From a map's dataclasses to the compiled kernels and back: the only way to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush.draw import Tables, padded_size
from stripesim.models.placement.crush.elements import (
    Alg,
    Bucket,
    BucketArgs,
    PlacementError,
    Rule,
    Step,
    StepOp,
    Tunables,
)
from stripesim.models.placement.crush.kernel import map_rows
from stripesim.models.placement.crush.msr import map_rows_msr
from stripesim.models.placement.crush.older import straw_lengths, tree_nodes
from stripesim.models.placement.crush.straw2_log import straw2_log_table

# Hashes that one call may take: what a map takes by far, and less than tries near 2**31 would (about
# 10 s at 5 ns each), grown with the work that any map could ask for.
_BUDGET = 2_000_000_000
_BUDGET_TRIES = 1000
_MSR_KINDS = ("msr_firstn", "msr_indep")


def flatten(
    buckets: Sequence[Bucket], changes: Sequence[BucketArgs] = (), straw_calc_version: int = 1
) -> Tables:
    """Lay buckets out as flat arrays, indexed by −1 − id."""
    count = max((-bucket.id for bucket in buckets), default=1)
    index = np.zeros((6, count), dtype=np.int64)
    first, size, kind, alg, weight_first, more_first = index
    kind[:] = -1
    alg[:] = Alg.STRAW2
    positions = np.ones(count, dtype=np.int64)
    items: list[int] = []
    ids: list[int] = []
    weights: list[int] = []
    more: list[int] = []
    changed = {change.bucket_id: change for change in changes}
    for bucket in buckets:
        b = -1 - bucket.id
        first[b], weight_first[b], more_first[b] = len(items), len(weights), len(more)
        size[b], kind[b], alg[b] = len(bucket.items), bucket.type_id, bucket.alg
        change = changed.get(bucket.id, BucketArgs(bucket.id))
        sets = change.weight_sets or (bucket.weights,)
        positions[b] = len(sets)
        padding = [0] * (padded_size(len(bucket.items)) - len(bucket.items))
        items.extend([*bucket.items, *padding])
        ids.extend([*(change.ids or bucket.items), *padding])
        for weight_set in sets:
            weights.extend([*weight_set, *padding])
        more.extend(_more(bucket, straw_calc_version))
    weight = np.array(weights, dtype=np.int64)
    return Tables(
        first=first,
        size=size,
        kind=kind,
        alg=alg,
        items=np.array(items, dtype=np.int32),
        ids=np.array(ids, dtype=np.int32),
        weight_first=weight_first,
        positions=positions,
        weight=weight,
        inverse=np.divide(1.0, weight, out=np.full(weight.size, np.inf), where=weight > 0),
        more_first=more_first,
        more=np.array(more or [0], dtype=np.int64),
        log=straw2_log_table(),
    )


def _more(bucket: Bucket, straw_calc_version: int) -> list[int]:
    if bucket.alg is Alg.LIST:
        sums: list[int] = np.cumsum(bucket.weights, dtype=np.int64).tolist()
        return sums
    if bucket.alg is Alg.TREE:
        return tree_nodes(bucket.weights)
    if bucket.alg is Alg.STRAW:
        return straw_lengths(bucket.weights, straw_calc_version)
    return []


def run_rule(
    tables: Tables,
    tunables: Tunables,
    rule: Rule,
    xs: npt.NDArray[np.uint32],
    num_rep: int,
    reweights: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Run a rule on checked arguments; the results are those of `CrushMap.map_with_lengths`."""
    out = np.empty((xs.size, num_rep), dtype=np.int32)
    lengths = np.zeros(xs.size, dtype=np.int32)
    largest = int(tables.size.max())
    scratch = np.empty(padded_size(largest), dtype=np.uint32)
    budget = _BUDGET + xs.size * _BUDGET_TRIES * num_rep * (largest + 4)
    if rule.kind in _MSR_KINDS:
        _run_msr(tables, tunables, rule, xs, reweights, out, lengths, scratch, budget)
    else:
        _run_plain(tables, tunables, rule, xs, reweights, out, lengths, scratch, budget)
    if xs.size and lengths.min() < 0:
        x = int(xs[lengths.argmin()])
        raise PlacementError(
            f"rule {rule.name!r}: got no result for x = {x} within {budget:.1e} hashes, wanted a rule and "
            "tunables that end (choose_total_tries, set_choose_tries and their like are that high)"
        )
    return out, lengths


def _run_plain(
    tables: Tables,
    tunables: Tunables,
    rule: Rule,
    xs: npt.NDArray[np.uint32],
    reweights: npt.NDArray[np.int64],
    out: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int32],
    scratch: npt.NDArray[np.uint32],
    budget: int,
) -> None:
    # Steps of MSR rules mean nothing in another rule.
    rows = [(step.op, step.count, step.type_id) for step in rule.steps if step.op < StepOp.CHOOSE_MSR]
    steps = np.array(rows, dtype=np.int64).reshape(-1, 3)
    changeable = [
        tunables.choose_total_tries + 1,  # the tunable counts the tries after the first one
        0,
        tunables.choose_local_tries,
        tunables.choose_local_fallback_tries,
        tunables.chooseleaf_vary_r,
        tunables.chooseleaf_stable,
        budget,
    ]
    work = np.empty(3 * out.shape[1] + len(changeable), dtype=np.int64)
    descend_once = bool(tunables.chooseleaf_descend_once)
    settings = np.array(changeable, dtype=np.int64)
    map_rows(tables, steps, settings, descend_once, xs, reweights, out, lengths, work, scratch)


def _run_msr(
    tables: Tables,
    tunables: Tunables,
    rule: Rule,
    xs: npt.NDArray[np.uint32],
    reweights: npt.NDArray[np.int64],
    out: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int32],
    scratch: npt.NDArray[np.uint32],
    budget: int,
) -> None:
    settings = {
        StepOp.SET_MSR_DESCENTS: tunables.msr_descents,
        StepOp.SET_MSR_COLLISION_TRIES: tunables.msr_collision_tries,
    }
    blocks = msr_blocks(rule)
    for step in rule.steps:
        if step.op not in settings:
            break
        settings[step.op] = step.count
    longest = max((len(block) for block in blocks), default=1)
    laid = np.zeros((len(blocks), longest, 3), dtype=np.int64)
    for number, (take, *chooses) in enumerate(blocks):
        laid[number, 0] = len(chooses), 1, take.count
        for place, step in enumerate(chooses, start=1):
            laid[number, place] = step.op, step.count, step.type_id
    width = out.shape[1]
    map_rows_msr(
        tables,
        laid,
        rule.kind == "msr_firstn",
        np.array([*settings.values(), budget], dtype=np.int64),
        xs,
        reweights,
        out,
        lengths,
        np.empty((longest, width), dtype=np.int64),
        np.empty((longest, width), dtype=np.int64),
        np.empty((longest, 7), dtype=np.int64),
        np.empty(2, dtype=np.int64),
        np.empty(7, dtype=np.int64),
        scratch,
    )


def msr_blocks(rule: Rule) -> list[list[Step]]:
    """Split an MSR rule into its blocks, each a ``take`` and its ``choosemsr`` steps.

    Raises
    ------
    PlacementError
        If the rule is not: ``set_msr_…`` steps, then blocks ``take, choosemsr …, emit`` that end at OSDs.
    """
    blocks: list[list[Step]] = []
    block: list[Step] | None = None
    for step in rule.steps:
        if block is None and not blocks and step.op >= StepOp.SET_MSR_DESCENTS:
            continue
        if block is None and step.op is StepOp.TAKE and step.count < 0:
            block = [step]
        elif block is not None and step.op is StepOp.CHOOSE_MSR:
            block.append(step)
        elif block is not None and step.op is StepOp.EMIT and block[-1].type_id == 0 and len(block) > 1:
            blocks.append(block)
            block = None
        else:
            break
    else:
        if block is None:
            return blocks
    raise PlacementError(
        f"rule {rule.name!r}: got steps that do not fit, wanted set_msr_… steps, then blocks of "
        "'take BUCKET', 'choosemsr N type T' (the last of type osd) and 'emit'"
    )
