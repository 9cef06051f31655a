"""Convert CRUSH maps to flat tables and run the compiled kernels, which no other module calls.

Straw lengths and other tables of algorithms older than straw2 follow from weights, as in Ceph's builder.

References
----------
S. Weil, S. Brandt, E. Miller, C. Maltzahn, SC 2006, section 3.4. Ceph v16.2.15, src/crush/builder.c
(crush_make_tree_bucket, crush_calc_straw), for numbering and rounding.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush.draw import MapTables, padded_size
from stripesim.models.placement.crush.elements import (
    Alg,
    Bucket,
    BucketArgs,
    Rule,
    Step,
    StepOp,
    Tunables,
)
from stripesim.models.placement.crush.kernel import RuleSteps, map_rows
from stripesim.models.placement.crush.msr import MsrRoom, MsrRule, map_rows_msr
from stripesim.models.placement.crush.straw2_log import (
    RIVAL_WEIGHT_MAX,
    straw2_log_table,
    straw2_rivals,
)
from stripesim.models.problems import ProblemsError

# Budget of hashes per call: far above the need of any reasonable map, and below that of tries near 2**31
# (about 10 s at 5 ns each). It grows with the work that a map may require.
_BUDGET = 2_000_000_000
_BUDGET_TRIES = 1000
_MSR_KINDS = ("msr_firstn", "msr_indep")
_WORD = 1 << 32


def flatten(
    buckets: Sequence[Bucket],
    changes: Sequence[BucketArgs] = (),
    straw_calc_version: int = 1,
) -> MapTables:
    """Convert buckets to flat arrays, indexed by −1 − id.

    Parameters
    ----------
    buckets
        Buckets of a map, including shadows.
    changes
        choose_args to apply to them.
    straw_calc_version
        Tunable for the straw lengths of old buckets, 0 or 1.
    """
    count = max((-bucket.id for bucket in buckets), default=1)
    index = np.zeros((6, count), dtype=np.int64)
    first, size, kind, alg, weight_first, more_first = index
    kind[:] = -1
    alg[:] = Alg.STRAW2
    positions = np.ones(count, dtype=np.int64)
    even = np.zeros(count, dtype=bool)
    items: list[int] = []
    ids: list[int] = []
    weights: list[int] = []
    more: list[int] = []
    changed = {change.bucket_id: change for change in changes}
    for bucket in buckets:
        b = -1 - bucket.id
        first[b] = len(items)
        weight_first[b] = len(weights)
        more_first[b] = len(more)
        size[b] = len(bucket.items)
        kind[b] = bucket.type_id
        alg[b] = bucket.alg
        change = changed.get(bucket.id, BucketArgs(bucket.id))
        sets = change.weight_sets or (bucket.weights,)
        positions[b] = len(sets)
        distinct = {weight for weight_set in sets for weight in weight_set}
        even[b] = len(distinct) == 1 and 0 < max(distinct) <= RIVAL_WEIGHT_MAX
        padding = [0] * (padded_size(len(bucket.items)) - len(bucket.items))
        items.extend([*bucket.items, *padding])
        ids.extend([*(change.ids or bucket.items), *padding])
        for weight_set in sets:
            weights.extend([*weight_set, *padding])
        more.extend(_more(bucket, straw_calc_version))
    weight = np.array(weights, dtype=np.int64)
    return MapTables(
        first=first,
        size=size,
        kind=kind,
        alg=alg,
        items=np.array(items, dtype=np.int32),
        ids=np.array(ids, dtype=np.int32),
        weight_first=weight_first,
        positions=positions,
        weight=weight,
        inverse=np.divide(
            1.0, weight, out=np.full(weight.size, np.inf), where=weight > 0
        ),
        more_first=more_first,
        more=np.array(more or [0], dtype=np.int64),
        log=straw2_log_table(),
        even=even,
        rivals=straw2_rivals(),
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
    tables: MapTables,
    tunables: Tunables,
    rule: Rule,
    xs: npt.NDArray[np.uint32],
    num_rep: int,
    reweights: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Run a rule on checked arguments. The results are those of `CrushMap.map_with_lengths`.

    Raises
    ------
    ProblemsError
        If the steps do not fit an MSR rule, or the rule does not finish within its budget of hashes.
    """
    largest = int(tables.size.max())
    budget = _BUDGET + xs.size * _BUDGET_TRIES * num_rep * (largest + 4)
    out = np.empty((xs.size, num_rep), dtype=np.int32)
    lengths = np.zeros(xs.size, dtype=np.int32)
    scratch = np.empty(padded_size(largest), dtype=np.uint32)
    if rule.kind in _MSR_KINDS:
        msr_rule = _msr_rule(rule, tunables, budget)
        room = _msr_room(msr_rule.blocks.shape[1], num_rep)
        map_rows_msr(tables, msr_rule, xs, reweights, out, lengths, room, scratch)
    else:
        steps = _rule_steps(rule, tunables, budget)
        work = np.empty(3 * num_rep + steps.tunables.size, dtype=np.int64)
        map_rows(tables, steps, xs, reweights, out, lengths, work, scratch)
    if xs.size and lengths.min() < 0:
        x = int(xs[lengths.argmin()])
        raise ProblemsError(
            f"rule {rule.name!r}: got no result for x = {x} within {budget:.1e} hashes, wanted a rule and "
            "tunables that terminate (choose_total_tries, set_choose_tries and similar are too high)"
        )
    return out, lengths


def _rule_steps(rule: Rule, tunables: Tunables, budget: int) -> RuleSteps:
    # Steps of MSR rules have no effect in other rules.
    rows = [
        (step.op, step.count, step.type_id)
        for step in rule.steps
        if step.op < StepOp.CHOOSE_MSR
    ]
    changeable = [
        # The tunable counts the tries after the first one.
        tunables.choose_total_tries + 1,
        0,
        tunables.choose_local_tries,
        tunables.choose_local_fallback_tries,
        tunables.chooseleaf_vary_r,
        tunables.chooseleaf_stable,
        budget,
    ]
    return RuleSteps(
        np.array(rows, dtype=np.int64).reshape(-1, 3),
        np.array(changeable, dtype=np.int64),
        bool(tunables.chooseleaf_descend_once),
    )


def _msr_room(steps: int, width: int) -> MsrRoom:
    return MsrRoom(
        used=np.empty((steps, width), dtype=np.int64),
        dropped=np.empty((steps, width), dtype=np.int64),
        frames=np.empty((steps, 7), dtype=np.int64),
        filled=np.empty(2, dtype=np.int64),
        q=np.empty(7, dtype=np.int64),
    )


def _msr_rule(rule: Rule, tunables: Tunables, budget: int) -> MsrRule:
    """Return the blocks (``take, choosemsr …, emit``), descents and collision tries of an MSR rule."""
    settings = {
        StepOp.SET_MSR_DESCENTS: tunables.msr_descents,
        StepOp.SET_MSR_COLLISION_TRIES: tunables.msr_collision_tries,
    }
    steps = list(rule.steps)
    while steps and steps[0].op in settings:
        step = steps.pop(0)
        settings[step.op] = step.count
    blocks: list[list[Step]] = []
    block: list[Step] = []
    for step in steps:
        block.append(step)
        if step.op is StepOp.EMIT:
            blocks.append(block)
            block = []
    if block or not all(map(_is_block, blocks)):
        raise ProblemsError(
            f"rule {rule.name!r}: got steps that do not fit, wanted set_msr_… steps, then blocks of "
            "'take BUCKET', 'choosemsr N type T' (the last of type osd) and 'emit'"
        )
    laid = np.zeros(
        (len(blocks), max(map(len, blocks), default=2) - 1, 3), dtype=np.int64
    )
    for number, (take, *chooses, _) in enumerate(blocks):
        laid[number, 0] = len(chooses), 1, take.count
        laid[number, 1 : len(chooses) + 1] = [
            (step.op, step.count, step.type_id) for step in chooses
        ]
    return MsrRule(
        laid,
        rule.kind == "msr_firstn",
        np.array([*settings.values(), budget], dtype=np.int64),
    )


def _is_block(steps: list[Step]) -> bool:
    match steps:
        case [Step(op=StepOp.TAKE, count=item), *chooses, _] if chooses:
            only_msr = all(step.op is StepOp.CHOOSE_MSR for step in chooses)
            return only_msr and item < 0 and chooses[-1].type_id == 0
    return False


def tree_nodes(weights: Sequence[int]) -> list[int]:
    """Return the weights of a binary tree's nodes in order.

    Leaf i is node 2i + 1, and the root is a power of 2.

    Examples
    --------
    >>> tree_nodes([3, 4, 5])
    [0, 3, 7, 4, 12, 5, 5, 0]
    """
    if not weights:
        return []
    leaves = 1 << (len(weights) - 1).bit_length()
    nodes = [0] * (2 * leaves)
    nodes[1 : 2 * len(weights) : 2] = weights
    step = 1
    while step < leaves:
        for node in range(2 * step, 2 * leaves, 4 * step):
            nodes[node] = nodes[node - step] + nodes[node + step]
        step *= 2
    return nodes


def straw_lengths(weights: Sequence[int], version: int) -> list[int]:
    """Return the straw (v1) lengths of a bucket's items in 16.16 fixed point.

    Parameters
    ----------
    weights
        Weights of the items, 16.16 fixed point.
    version
        The tunable straw_calc_version, 0 or 1.

    Notes
    -----
    Maps in text or JSON contain only weights, not lengths. A bucket that was last changed under another
    version of the calculation keeps its old lengths, which are unknown.

    Examples
    --------
    >>> straw_lengths([65536, 131072, 0], 1)
    [65536, 98304, 0]
    """
    order = sorted(range(len(weights)), key=weights.__getitem__)
    lengths = [0] * len(weights)
    left = len(weights)
    straw = 1.0
    below = 0.0
    last = 0.0
    for place, item in enumerate(order):
        weight = weights[item]
        if weight == 0:
            if version >= 1:
                left -= 1
            continue
        lengths[item] = int(straw * 0x10000)
        if place + 1 == len(order):
            break
        following = weights[order[place + 1]]
        if version == 0 and following == weight:
            continue
        below += (weight - last) * left
        # Version 0 removes all items of the next weight together.
        left -= 1 if version >= 1 else sum(1 for other in weights if other == following)
        above = float(left * (following - weight) % _WORD)
        if left > 0:
            share_below = below / (below + above)
            straw *= (1.0 / share_below) ** (1.0 / left)
        last = weight
    return lengths
