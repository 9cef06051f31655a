"""Compiled MSR (multi-step retry) rules of CRUSH, whose ``choosemsr`` steps retry a whole descent.

A block ``take, choosemsr …, emit`` fills a range of positions. Each step divides its range into as many
strides as it chooses items, one item per stride. An OSD that is out leaves its position open, and the next
pass through the block tries the position again from the top, in the same items or in items that no other
stride has.

References
----------
Ceph v19.2.0, doc/dev/crush-msr.rst and src/crush/mapper.c (crush_msr_do_rule).
"""

import numpy as np

from stripesim.models.placement.crush.draw import (
    EMPTY,
    Q_BUDGET,
    compiled,
    descend,
    is_out,
    outlined,
)
from stripesim.models.placement.crush.elements import NONE
from stripesim.models.placement.crush.kernel import OUT_OF_BUDGET

_FREE = 0x7FFFFFFE
# Indices of the map's tunables in `tunables`, and of the remaining budget in `q` (which `descend` reads).
T_DESCENTS, T_COLLISION_TRIES, T_BUDGET = range(3)
# State of each step while a block is filled: the bucket to choose from, the stride length, the range of
# positions, the current stride, the number of filled positions, and the item that the next step fills.
F_BUCKET, F_STRIDE, F_START, F_END, F_LOW, F_FOUND, F_ITEM = range(7)


@outlined
def _collides(used, start, end, own_start, own_end, item):
    """Return True if another stride of used[start:end] has the item. The first stride that has it decides."""
    for i in range(start, end):
        if used[i] == item:
            return i < own_start or i >= own_end
    return False


@outlined
def _note(used, start, end, item):
    """Record the item in the first free entry of the stride, or return False if it is already there."""
    for i in range(start, end):
        if used[i] == item:
            return False
        if used[i] == _FREE:
            used[i] = item
            return True
    return False


@outlined
def _forget_last(used, start, end):
    """Free the last occupied entry of the stride."""
    for i in range(end - 1, start - 1, -1):
        if used[i] != _FREE:
            used[i] = _FREE
            return


@outlined
def _choose(t, x, step, used, bucket, frame, high, index, first_r, tries, q, scratch):
    """Draw an item that no other stride of the step has, or NONE after too many collisions."""
    kind = step[2]
    for local in range(tries):
        r = (first_r + local) & 0xFFFFFFFF
        item, _ = descend(t, bucket, x, r, 0, 0, kind, index, -1, q, scratch)
        if item in (NONE, EMPTY) or (item < 0) != (kind > 0):
            break
        if not _collides(used, frame[F_START], frame[F_END], frame[F_LOW], high, item):
            return item
    return np.int64(NONE)


@outlined
def _enter(frames, level, bucket, total, strides, start, end):
    frame = frames[level]
    frame[F_BUCKET] = bucket
    frame[F_STRIDE] = total // strides
    frame[F_START] = start
    frame[F_END] = end
    frame[F_LOW] = start
    frame[F_FOUND] = 0


@outlined
def _pass(
    t,
    reweights,
    x,
    steps,
    attempt,
    tries,
    out,
    filled,
    used,
    dropped,
    frames,
    q,
    scratch,
):
    """Make one pass over the positions of a block, depth first. `frames[0]` holds the range to fill.

    `used[level]` holds the items chosen by the strides of a step, `dropped[level]` those that this pass will
    free. Deviation: this uses a stack of frames where Ceph recurses, because Numba cannot cache recursive
    functions.
    """
    width = out.size
    last = steps[0, 0] - 1
    level = 0
    below = np.int64(-1)
    while True:
        frame = frames[level]
        step = steps[level + 1]
        stride = frame[F_STRIDE]
        end = frame[F_END]
        if below >= 0:
            low = frame[F_LOW]
            if (
                _note(used[level], low, min(low + stride, end), frame[F_ITEM])
                and below == 0
            ):
                dropped[level, low] = 1
            frame[F_FOUND] += below
            frame[F_LOW] += stride
        deeper = False
        while frame[F_LOW] < end:
            low = frame[F_LOW]
            high = min(low + stride, end)
            dropped[level, low] = 0
            open_places = False
            for i in range(low, high):
                open_places |= used[last, i] == _FREE
            if open_places:
                index = (low - frame[F_START]) // stride
                # The upper half-word counts positions and passes, the lower one draws after a collision.
                first_r = (attempt * width + index) << 16
                item = _choose(
                    t,
                    x,
                    step,
                    used[level],
                    frame[F_BUCKET],
                    frame,
                    high,
                    index,
                    first_r,
                    tries,
                    q,
                    scratch,
                )
                if item != NONE and step[2] > 0 and level < last:
                    frame[F_ITEM] = item
                    if steps[level + 2, 1] > 0:
                        strides = steps[level + 2, 1]
                    else:
                        strides = width
                    _enter(frames, level + 1, -1 - item, stride, strides, low, high)
                    deeper = True
                    break
                is_leaf = step[2] == 0 and level == last and stride == 1
                if item != NONE and is_leaf and not is_out(reweights, item, x):
                    _note(used[level], low, high, item)
                    out[filled[0] if filled[1] else low] = item
                    filled[0] += 1
                    frame[F_FOUND] += 1
            frame[F_LOW] += stride
        if deeper:
            level += 1
            below = np.int64(-1)
            continue
        # A rejected choice still blocks the other strides until the end of the pass.
        for low in range(frame[F_START], end, stride):
            if dropped[level, low]:
                _forget_last(used[level], low, min(low + stride, end))
        if level == 0:
            return
        below = frame[F_FOUND]
        level -= 1


@compiled
def map_rows_msr(
    t,
    blocks,
    firstn,
    tunables,
    xs,
    reweights,
    out,
    lengths,
    used,
    dropped,
    frames,
    filled,
    q,
    scratch,
):
    """Run an MSR rule for every input. See `kernel.map_rows` for parameters not described here.

    `blocks` (blocks, 1 + steps, 3) holds a header row (choosemsr steps, 1, item taken) for each block,
    followed by its steps (code, count, type). Results have no gaps if `firstn` (msr_firstn) and keep their
    positions otherwise (msr_indep). `tunables` are descents, tries after a collision, and the budget of
    hashes. The others are workspace: `used` and `dropped` (steps, width), `frames` (steps, 7), `filled` for
    the number of filled positions and whether results have no gaps, and `q` in the form that `descend` reads.
    """
    width = out.shape[1]
    for i in range(q.size):
        q[i] = 0
    q[Q_BUDGET] = tunables[T_BUDGET]
    tries = tunables[T_COLLISION_TRIES]
    for row in range(xs.size):
        x = xs[row]
        slots = out[row]
        for i in range(width):
            slots[i] = NONE
        filled[0] = 0
        filled[1] = firstn
        start = 0
        for b in range(blocks.shape[0]):
            steps = blocks[b]
            count = steps[0, 0]
            total = np.int64(1)
            for s in range(1, count + 1):
                total *= steps[s, 1] if steps[s, 1] > 0 else width
            end = min(start + total, width)
            if start >= end:
                break
            for level in range(count):
                for i in range(width):
                    used[level, i] = _FREE
            limit = filled[0] + end - start
            for attempt in range(tunables[T_DESCENTS]):
                if filled[0] >= limit or q[Q_BUDGET] < 0:
                    break
                strides = steps[1, 1] if steps[1, 1] > 0 else width
                _enter(frames, 0, -1 - steps[0, 2], total, strides, start, end)
                _pass(
                    t,
                    reweights,
                    x,
                    steps,
                    attempt,
                    tries,
                    slots,
                    filled,
                    used,
                    dropped,
                    frames,
                    q,
                    scratch,
                )
            start = end
        lengths[row] = filled[0] if firstn else width
        if q[Q_BUDGET] < 0:
            lengths[row] = OUT_OF_BUDGET
            break
