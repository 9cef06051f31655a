"""Compiled CRUSH rules: firstn and indep over flat tables.

References
----------
S. Weil, S. Brandt, E. Miller, C. Maltzahn, "CRUSH: Controlled, Scalable, Decentralized Placement of
Replicated Data", SC 2006, algorithm 1. Ceph v16.2.15, src/crush/mapper.c, for later additions: indep, and
chooseleaf with vary_r and stable.
"""

import numpy as np

from stripesim.models.placement.crush import draw
from stripesim.models.placement.crush.draw import (
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


@inlined
def _try_here_again(q, collided, local, size):
    """Return True if the legacy tunables retry in the same bucket instead of descending again."""
    return (collided and local <= q[draw.Q_LOCAL]) or (
        q[draw.Q_LOCAL_FALLBACK] > 0 and local <= size + q[draw.Q_LOCAL_FALLBACK]
    )


@outlined
def _firstn_leaf(t, reweights, top, x, r0, taken, start, stop, q, scratch):
    """Find a device under `top` that is in and not in taken[start:stop], or NONE after too many failures."""
    bucket = top
    failures = local = _ZERO
    while True:
        item, bucket = descend(
            t,
            bucket,
            x,
            r0 + failures,
            _ZERO,
            _ZERO,
            _ZERO,
            stop - start,
            local,
            q,
            scratch,
        )
        if item == NONE:
            return item
        empty = item == draw.EMPTY
        collided = not empty and draw.is_in(taken, start, stop, item)
        if not empty and not collided and not is_out(reweights, item, x):
            return item
        failures += 1
        local += 1
        if not _try_here_again(q, collided, local, t.size[bucket]):
            if failures >= q[draw.Q_LEAF_DESCENTS]:
                return np.int64(NONE)
            bucket = top
            local = _ZERO


@outlined
def _firstn_one(
    t, reweights, top, x, rep, kind, to_leaf, out, leaves, start, stop, q, scratch
):
    """Place replica `rep` at position `stop`, given those in [start, stop). Return False on failure."""
    bucket = top
    failures = local = _ZERO
    while True:
        r = rep + failures
        item, bucket = descend(
            t, bucket, x, r, _ZERO, _ZERO, kind, stop - start, local, q, scratch
        )
        if item == NONE:
            return False
        rejected = item == draw.EMPTY
        collided = not rejected and draw.is_in(out, start, stop, item)
        leaf = item
        if to_leaf and item < 0 and not collided:
            r0 = r >> (q[draw.Q_VARY_R] - 1) if q[draw.Q_VARY_R] > 0 else 0
            if not q[draw.Q_STABLE]:
                r0 += stop - start
            leaf = _firstn_leaf(
                t, reweights, -1 - item, x, r0, leaves, start, stop, q, scratch
            )
            rejected = leaf == NONE
        if not rejected and not collided and kind == 0:
            rejected = is_out(reweights, item, x)
        if not rejected and not collided:
            out[stop] = item
            leaves[stop] = leaf
            return True
        failures += 1
        local += 1
        if not _try_here_again(q, collided, local, t.size[bucket]):
            if failures >= q[draw.Q_DESCENTS]:
                return False
            bucket = top
            local = _ZERO


@outlined
def _indep_leaf(t, reweights, top, x, r0, stride, position, q, scratch):
    """Find a device under `top` that is in, or NONE if all descents fail."""
    for failures in range(q[draw.Q_LEAF_DESCENTS]):
        r = r0 + stride * failures
        item, _ = descend(
            t, top, x, r, failures, stride, _ZERO, position, _NO_SEARCH, q, scratch
        )
        if item == NONE:
            return item
        if item != draw.EMPTY and not is_out(reweights, item, x):
            return item
    return np.int64(NONE)


@outlined
def choose_indep(
    t, reweights, top, x, width, stride, kind, to_leaf, out, leaves, start, q, scratch
):
    """Fill out[start:start+width], each slot by its own sequence of draws, with NONE in empty slots."""
    stop = start + width
    for slot in range(start, stop):
        out[slot] = _UNDECIDED
        leaves[slot] = _UNDECIDED
    left = width
    for failures in range(q[draw.Q_DESCENTS]):
        if left == 0:
            break
        for slot in range(start, stop):
            if out[slot] != _UNDECIDED:
                continue
            r = slot - start + stride * failures
            item, _ = descend(
                t, top, x, r, failures, stride, kind, _ZERO, _NO_SEARCH, q, scratch
            )
            if item == NONE:
                out[slot] = NONE
                leaves[slot] = NONE
                left -= 1
                continue
            if item == draw.EMPTY or draw.is_in(out, start, stop, item):
                continue
            if to_leaf:
                # A leaf stays recorded even if its own reweight rejects it below, and the slot ends with it
                # if all tries fail. The released algorithm does the same for chooseleaf of type 0.
                leaves[slot] = item
                if item < 0:
                    # The position enters twice, so that a bucket drawn again for another slot gives another
                    # leaf.
                    r0 = r + slot - start
                    leaves[slot] = _indep_leaf(
                        t, reweights, -1 - item, x, r0, stride, slot - start, q, scratch
                    )
                    if leaves[slot] == NONE:
                        continue
            if kind == 0 and is_out(reweights, item, x):
                continue
            out[slot] = item
            left -= 1
    for slot in range(start, stop):
        if out[slot] == _UNDECIDED:
            out[slot] = NONE
        if leaves[slot] == _UNDECIDED:
            leaves[slot] = NONE


@outlined
def _choose(
    t, reweights, x, op, asked, kind, q, tops, n_tops, out, leaves, limit, scratch
):
    """Execute a choose step from each bucket in tops[:n_tops] into out, and return the number of items."""
    to_leaf = op in (OP_CHOOSELEAF_FIRSTN, OP_CHOOSELEAF_INDEP)
    firstn = op in (OP_CHOOSE_FIRSTN, OP_CHOOSELEAF_FIRSTN)
    count = asked if asked > 0 else asked + limit
    filled = _ZERO
    if count <= 0:
        return filled
    for i in range(n_tops):
        bucket = -1 - tops[i]
        # A device, or the NONE of an earlier indep step, has no items to choose from.
        if bucket < 0:
            continue
        if firstn:
            # Results have no gaps: a failed replica is skipped. Each bucket starts a new range.
            start = filled
            for rep in range(count):
                if filled < limit:
                    filled += _firstn_one(
                        t,
                        reweights,
                        bucket,
                        x,
                        rep,
                        kind,
                        to_leaf,
                        out,
                        leaves,
                        start,
                        filled,
                        q,
                        scratch,
                    )
        else:
            width = min(count, limit - filled)
            choose_indep(
                t,
                reweights,
                bucket,
                x,
                width,
                count,
                kind,
                to_leaf,
                out,
                leaves,
                filled,
                q,
                scratch,
            )
            filled += width
    if to_leaf:
        for i in range(filled):
            out[i] = leaves[i]
    return filled


@compiled
def map_rows(
    t, steps, tunables, descend_once, xs, reweights, out, lengths, work, scratch
):
    """Run a rule for every input of `xs` (uint32), into `out` (n, width), padding short rows with NONE.

    `steps` has one row per step: an operation code and its two arguments. `tunables` holds those of the map
    at their ``Q_`` indices, where 0 leaf descents mean unset. `reweights` are 16.16 fixed point. `lengths`
    receives the number of items in each row. `work` is space for the previous step's items, the current
    step's items, their leaves (width each) and the changed tunables; `scratch` for the hashes of the largest
    bucket, padded.
    """
    width = out.shape[1]
    taken = work[:width]
    drawn = work[width : 2 * width]
    leaves = work[2 * width : 3 * width]
    q = work[3 * width :]
    q[draw.Q_BUDGET] = tunables[draw.Q_BUDGET]
    for row in range(xs.size):
        x = xs[row]
        for i in range(draw.Q_BUDGET):
            q[i] = tunables[i]
        n_taken = length = _ZERO
        for s in range(steps.shape[0]):
            op = steps[s, 0]
            argument = steps[s, 1]
            kind = steps[s, 2]
            if op == OP_TAKE:
                taken[0] = argument
                n_taken = _ONE
            elif op == OP_EMIT:
                for i in range(min(n_taken, width - length)):
                    out[row, length] = taken[i]
                    length += 1
                n_taken = _ZERO
            elif op >= OP_SET_CHOOSE_TRIES:
                # Ceph ignores a number of descents below 1.
                if argument > 0 or op > OP_SET_CHOOSELEAF_TRIES:
                    q[op - OP_SET_CHOOSE_TRIES] = argument
            elif n_taken > 0:
                set_tries = q[draw.Q_LEAF_DESCENTS]
                if set_tries <= 0:
                    # Unless the rule sets it, a leaf is tried once (indep, or firstn by tunable).
                    firstn = op in (OP_CHOOSE_FIRSTN, OP_CHOOSELEAF_FIRSTN)
                    q[draw.Q_LEAF_DESCENTS] = (
                        q[draw.Q_DESCENTS] if firstn and not descend_once else 1
                    )
                n_taken = _choose(
                    t,
                    reweights,
                    x,
                    op,
                    argument,
                    kind,
                    q,
                    taken,
                    n_taken,
                    drawn,
                    leaves,
                    width,
                    scratch,
                )
                q[draw.Q_LEAF_DESCENTS] = set_tries
                for i in range(n_taken):
                    taken[i] = drawn[i]
        for i in range(length, width):
            out[row, i] = NONE
        lengths[row] = length
        if q[draw.Q_BUDGET] < 0:
            lengths[row] = OUT_OF_BUDGET
            break
