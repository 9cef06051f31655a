"""Compiled CRUSH rules: firstn and indep over flat tables.

References
----------
S. Weil, S. Brandt, E. Miller, C. Maltzahn, "CRUSH: Controlled, Scalable, Decentralized Placement of
Replicated Data", SC 2006, algorithm 1. Ceph v16.2.15, src/crush/mapper.c, for later additions: indep, and
chooseleaf with vary_r and stable.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush import draw
from stripesim.models.placement.crush.draw import (
    Attempt,
    Mapper,
    Whole,
    compiled,
    descend,
    inlined,
    is_out,
    outlined,
)
from stripesim.models.placement.crush.elements import NONE, StepOp

_UNDECIDED = 0x7FFFFFFE
# Typed, because Numba treats a literal as a separate type and would compile all callees again.
_ZERO = np.int64(0)
_ONE = np.int64(1)
_NO_SEARCH = np.int64(-1)
#: Length of a result that exceeded the budget of hashes.
OUT_OF_BUDGET = -1

# Codes of rule steps as plain integers.
OP_TAKE = int(StepOp.TAKE)
OP_EMIT = int(StepOp.EMIT)
OP_CHOOSE_FIRSTN = int(StepOp.CHOOSE_FIRSTN)
OP_CHOOSELEAF_FIRSTN = int(StepOp.CHOOSELEAF_FIRSTN)
OP_CHOOSELEAF_INDEP = int(StepOp.CHOOSELEAF_INDEP)
# Operations that set a tunable start here, in the order of the Q_ indices.
OP_SET_CHOOSE_TRIES = int(StepOp.SET_CHOOSE_TRIES)
OP_SET_CHOOSELEAF_TRIES = int(StepOp.SET_CHOOSELEAF_TRIES)


class Wanted(NamedTuple):
    """Target of a choose step: items of a type, perhaps a device below each, with an indep stride or 0."""

    kind: Whole
    to_leaf: bool
    stride: Whole


class Slots(NamedTuple):
    """The range of a step's items, and the leaf of each, that one bucket fills."""

    items: npt.NDArray[np.int64]
    leaves: npt.NDArray[np.int64]
    start: Whole


class RuleSteps(NamedTuple):
    """A rule and the tunables of its map.

    `steps` has one row per step: an operation code and its two arguments. `tunables` are at their ``Q_``
    indices, where 0 leaf descents mean unset.
    """

    steps: npt.NDArray[np.int64]
    tunables: npt.NDArray[np.int64]
    descend_once: bool


@inlined
def _try_here_again(q, collided, local, size):
    """Return True if the legacy tunables retry in the same bucket instead of descending again."""
    return (collided and local <= q[draw.Q_LOCAL]) or (
        q[draw.Q_LOCAL_FALLBACK] > 0 and local <= size + q[draw.Q_LOCAL_FALLBACK]
    )


@inlined
def _firstn_descend(m, bucket, kind, r, position, local):
    return descend(m, bucket, kind, Attempt(r, _ZERO, _ZERO, position, local))


@inlined
def _indep_descend(m, top, kind, r, failures, stride, position):
    attempt = Attempt(r, failures, stride, position, _NO_SEARCH)
    item, _ = descend(m, top, kind, attempt)
    return item


@outlined
def _firstn_leaf(m, top, r0, slots, stop):
    """Find a device under `top` that is in and not a leaf before `stop`, or NONE after too many failures."""
    bucket = top
    failures = local = _ZERO
    position = stop - slots.start
    while True:
        item, bucket = _firstn_descend(m, bucket, _ZERO, r0 + failures, position, local)
        if item == NONE:
            return item
        empty = item == draw.EMPTY
        collided = not empty and draw.is_in(slots.leaves, slots.start, stop, item)
        if not empty and not collided and not is_out(m.reweights, item, m.x):
            return item
        failures += 1
        local += 1
        if not _try_here_again(m.q, collided, local, m.tables.size[bucket]):
            if failures >= m.q[draw.Q_LEAF_DESCENTS]:
                return np.int64(NONE)
            bucket = top
            local = _ZERO


@inlined
def _firstn_leaf_of(m, item, r, wanted, slots, stop):
    """Return the leaf of a drawn item, the item itself if no leaf is wanted, or NONE if it is rejected."""
    if wanted.to_leaf and item < 0:
        r0 = r >> (m.q[draw.Q_VARY_R] - 1) if m.q[draw.Q_VARY_R] > 0 else 0
        if not m.q[draw.Q_STABLE]:
            r0 += stop - slots.start
        return _firstn_leaf(m, -1 - item, r0, slots, stop)
    if wanted.kind == 0 and is_out(m.reweights, item, m.x):
        return np.int64(NONE)
    return item


@outlined
def _firstn_one(m, top, rep, wanted, slots, stop):
    """Place replica `rep` at position `stop`, given those before. Return False on failure."""
    bucket = top
    failures = local = _ZERO
    position = stop - slots.start
    while True:
        r = rep + failures
        item, bucket = _firstn_descend(m, bucket, wanted.kind, r, position, local)
        if item == NONE:
            return False
        empty = item == draw.EMPTY
        collided = not empty and draw.is_in(slots.items, slots.start, stop, item)
        if not empty and not collided:
            leaf = _firstn_leaf_of(m, item, r, wanted, slots, stop)
            if leaf != NONE:
                slots.items[stop] = item
                slots.leaves[stop] = leaf
                return True
        failures += 1
        local += 1
        if not _try_here_again(m.q, collided, local, m.tables.size[bucket]):
            if failures >= m.q[draw.Q_DESCENTS]:
                return False
            bucket = top
            local = _ZERO


@outlined
def _indep_leaf(m, top, r0, stride, position):
    """Find a device under `top` that is in, or NONE if all descents fail."""
    for failures in range(m.q[draw.Q_LEAF_DESCENTS]):
        r = r0 + stride * failures
        item = _indep_descend(m, top, _ZERO, r, failures, stride, position)
        if item == NONE:
            return item
        if item != draw.EMPTY and not is_out(m.reweights, item, m.x):
            return item
    return np.int64(NONE)


@inlined
def _indep_one(m, top, failures, wanted, slots, stop, slot):
    """Draw once for an undecided slot. Return True if that decides it."""
    position = slot - slots.start
    r = position + wanted.stride * failures
    item = _indep_descend(m, top, wanted.kind, r, failures, wanted.stride, _ZERO)
    if item == NONE:
        slots.items[slot] = NONE
        slots.leaves[slot] = NONE
        return True
    if item == draw.EMPTY or draw.is_in(slots.items, slots.start, stop, item):
        return False
    if wanted.to_leaf:
        # A leaf stays recorded even if its own reweight rejects it below, and the slot ends with it
        # if all tries fail. The released algorithm does the same for chooseleaf of type 0.
        leaf = item
        if item < 0:
            # The position enters twice, so that a bucket drawn again for another slot gives another leaf.
            leaf = _indep_leaf(m, -1 - item, r + position, wanted.stride, position)
        slots.leaves[slot] = leaf
        if leaf == NONE:
            return False
    if wanted.kind == 0 and is_out(m.reweights, item, m.x):
        return False
    slots.items[slot] = item
    return True


@outlined
def choose_indep(m, top, wanted, slots, width):
    """Fill `width` slots, each by its own sequence of draws, with NONE in empty slots."""
    stop = slots.start + width
    for slot in range(slots.start, stop):
        slots.items[slot] = _UNDECIDED
        slots.leaves[slot] = _UNDECIDED
    left = width
    for failures in range(m.q[draw.Q_DESCENTS]):
        if left == 0:
            break
        for slot in range(slots.start, stop):
            if slots.items[slot] == _UNDECIDED:
                left -= _indep_one(m, top, failures, wanted, slots, stop, slot)
    for slot in range(slots.start, stop):
        if slots.items[slot] == _UNDECIDED:
            slots.items[slot] = NONE
        if slots.leaves[slot] == _UNDECIDED:
            slots.leaves[slot] = NONE


@outlined
def _choose(m, step, taken, n_taken, drawn, leaves):
    """Execute a choose step from each bucket in taken[:n_taken], and return the number of items `drawn`."""
    op = step[0]
    asked = step[1]
    limit = drawn.size
    to_leaf = op in (OP_CHOOSELEAF_FIRSTN, OP_CHOOSELEAF_INDEP)
    firstn = op in (OP_CHOOSE_FIRSTN, OP_CHOOSELEAF_FIRSTN)
    count = asked if asked > 0 else asked + limit
    filled = _ZERO
    if count <= 0:
        return filled
    wanted = Wanted(step[2], to_leaf, _ZERO if firstn else count)
    for i in range(n_taken):
        bucket = -1 - taken[i]
        # A device, or the NONE of an earlier indep step, has no items to choose from.
        if bucket < 0:
            continue
        slots = Slots(drawn, leaves, filled)
        if firstn:
            # Results have no gaps: a failed replica is skipped. Each bucket starts a new range.
            for rep in range(count):
                if filled < limit:
                    filled += _firstn_one(m, bucket, rep, wanted, slots, filled)
        else:
            width = min(count, limit - filled)
            choose_indep(m, bucket, wanted, slots, width)
            filled += width
    if to_leaf:
        for i in range(filled):
            drawn[i] = leaves[i]
    return filled


@inlined
def _leaf_descents(q, op, descend_once):
    """Return the descents to a leaf. Unless the rule sets them, it is one (indep, or firstn by tunable)."""
    if q[draw.Q_LEAF_DESCENTS] > 0:
        return q[draw.Q_LEAF_DESCENTS]
    if op in (OP_CHOOSE_FIRSTN, OP_CHOOSELEAF_FIRSTN) and not descend_once:
        return q[draw.Q_DESCENTS]
    return _ONE


@inlined
def _map_one(m, rule, result, taken, drawn, leaves):
    """Run a rule for one input, and return the number of items."""
    width = result.size
    n_taken = length = _ZERO
    for s in range(rule.steps.shape[0]):
        step = rule.steps[s]
        op = step[0]
        argument = step[1]
        if op == OP_TAKE:
            taken[0] = argument
            n_taken = _ONE
        elif op == OP_EMIT:
            for i in range(min(n_taken, width - length)):
                result[length] = taken[i]
                length += 1
            n_taken = _ZERO
        elif op >= OP_SET_CHOOSE_TRIES:
            # Ceph ignores a number of descents below 1.
            if argument > 0 or op > OP_SET_CHOOSELEAF_TRIES:
                m.q[op - OP_SET_CHOOSE_TRIES] = argument
        elif n_taken > 0:
            set_tries = m.q[draw.Q_LEAF_DESCENTS]
            m.q[draw.Q_LEAF_DESCENTS] = _leaf_descents(m.q, op, rule.descend_once)
            n_taken = _choose(m, step, taken, n_taken, drawn, leaves)
            m.q[draw.Q_LEAF_DESCENTS] = set_tries
            for i in range(n_taken):
                taken[i] = drawn[i]
    return length


@compiled
def map_rows(t, rule, xs, reweights, out, lengths, work, scratch):
    """Run a rule for every input of `xs` (uint32), into `out` (n, width), padding short rows with NONE.

    `lengths` receives the number of items in each row. `work` is space for the previous step's items, the
    current step's items, their leaves (width each) and the changed tunables. See `draw.Mapper` for
    `reweights` and `scratch`.
    """
    width = out.shape[1]
    taken = work[:width]
    drawn = work[width : 2 * width]
    leaves = work[2 * width : 3 * width]
    q = work[3 * width :]
    q[draw.Q_BUDGET] = rule.tunables[draw.Q_BUDGET]
    for row in range(xs.size):
        for i in range(draw.Q_BUDGET):
            q[i] = rule.tunables[i]
        m = Mapper(t, reweights, xs[row], q, scratch)
        length = _map_one(m, rule, out[row], taken, drawn, leaves)
        for i in range(length, width):
            out[row, i] = NONE
        lengths[row] = length
        if q[draw.Q_BUDGET] < 0:
            lengths[row] = OUT_OF_BUDGET
            break
