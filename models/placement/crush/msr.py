"""Compiled MSR (multi-step retry) rules of CRUSH, whose ``choosemsr`` steps retry a whole descent.

A block ``take, choosemsr …, emit`` fills a range of positions. Each step divides its range into as many
strides as it chooses items, one item per stride. An OSD that is out leaves its position open, and the next
pass through the block tries the position again from the top, in the same items or in items that no other
stride has.

References
----------
Ceph v19.2.0, doc/dev/crush-msr.rst and src/crush/mapper.c (crush_msr_do_rule).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush.draw import (
    EMPTY,
    Q_BUDGET,
    Attempt,
    Mapper,
    Whole,
    compiled,
    descend,
    inlined,
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


class MsrRule(NamedTuple):
    """An MSR rule and the tunables of its map.

    `blocks` (blocks, 1 + steps, 3) holds a header row (choosemsr steps, 1, item taken) for each block,
    followed by its steps (code, count, type). Results have no gaps if `firstn` (msr_firstn) and keep their
    positions otherwise (msr_indep). `tunables` are descents, tries after a collision, and the budget of
    hashes.
    """

    blocks: npt.NDArray[np.int64]
    firstn: bool
    tunables: npt.NDArray[np.int64]


class MsrRoom(NamedTuple):
    """Space to fill a block.

    `used[level]` holds the items chosen by the strides of a step, `dropped[level]` those that the current
    pass will free, shapes (steps, width). `frames` (steps, 7) is the stack of steps. `filled` is the number
    of filled positions and whether results have no gaps. `q` has the form that `descend` reads.
    """

    used: npt.NDArray[np.int64]
    dropped: npt.NDArray[np.int64]
    frames: npt.NDArray[np.int64]
    filled: npt.NDArray[np.int64]
    q: npt.NDArray[np.int64]


class Pass(NamedTuple):
    """One pass over the positions `out` of a block, with its number and the tries after a collision."""

    steps: npt.NDArray[np.int64]
    attempt: Whole
    tries: Whole
    out: npt.NDArray[np.int32]


@outlined
def _collides(used, frame, high, item):
    """Return True if another stride of the step has the item. The first stride that has it decides."""
    for i in range(frame[F_START], frame[F_END]):
        if used[i] == item:
            return i < frame[F_LOW] or i >= high
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


@inlined
def _is_open(used, start, end):
    """Return True if the stride has a position without a device."""
    open_places = False
    for i in range(start, end):
        open_places |= used[i] == _FREE
    return open_places


@inlined
def _strides(step, width):
    """Return the number of items that a step chooses."""
    if step[1] > 0:
        return step[1]
    return np.int64(width)


@outlined
def _choose(m, p, used, frame, kind, high):
    """Draw an item that no other stride of the step has, or NONE after too many collisions."""
    index = (frame[F_LOW] - frame[F_START]) // frame[F_STRIDE]
    # The upper half-word counts positions and passes, the lower one draws after a collision.
    first_r = (p.attempt * p.out.size + index) << 16
    for local in range(p.tries):
        r = (first_r + local) & 0xFFFFFFFF
        attempt = Attempt(r, 0, 0, index, -1)
        item, _ = descend(m, frame[F_BUCKET], kind, attempt)
        if item in (NONE, EMPTY) or (item < 0) != (kind > 0):
            break
        if not _collides(used, frame, high, item):
            return item
    return np.int64(NONE)


@outlined
def _enter(frame, bucket, stride, start, end):
    """Begin a step that fills a range of positions from a bucket."""
    frame[F_BUCKET] = bucket
    frame[F_STRIDE] = stride
    frame[F_START] = start
    frame[F_END] = end
    frame[F_LOW] = start
    frame[F_FOUND] = 0


@inlined
def _leave(room, level):
    """Return from a step to the stride of the one above, which notes its item. That is dropped if in vain."""
    frame = room.frames[level]
    below = room.frames[level + 1, F_FOUND]
    low = frame[F_LOW]
    high = min(low + frame[F_STRIDE], frame[F_END])
    if _note(room.used[level], low, high, frame[F_ITEM]) and below == 0:
        room.dropped[level, low] = 1
    frame[F_FOUND] += below
    frame[F_LOW] += frame[F_STRIDE]


@outlined
def _fill_stride(m, p, room, level, high):
    """Choose the item of a stride. Return True if the next step has to fill its positions from the item."""
    last = p.steps[0, 0] - 1
    frame = room.frames[level]
    kind = p.steps[level + 1, 2]
    low = frame[F_LOW]
    item = _choose(m, p, room.used[level], frame, kind, high)
    if item == NONE:
        return False
    if kind > 0 and level < last:
        frame[F_ITEM] = item
        stride = frame[F_STRIDE] // _strides(p.steps[level + 2], p.out.size)
        _enter(room.frames[level + 1], -1 - item, stride, low, high)
        return True
    is_leaf = kind == 0 and level == last and frame[F_STRIDE] == 1
    if is_leaf and not is_out(m.reweights, item, m.x):
        _note(room.used[level], low, high, item)
        filled = room.filled
        p.out[filled[0] if filled[1] else low] = item
        filled[0] += 1
        frame[F_FOUND] += 1
    return False


@inlined
def _fill_strides(m, p, room, level):
    """Go on with a step. Return True at a stride that the next step fills, and False at the end."""
    last = p.steps[0, 0] - 1
    frame = room.frames[level]
    while frame[F_LOW] < frame[F_END]:
        low = frame[F_LOW]
        high = min(low + frame[F_STRIDE], frame[F_END])
        room.dropped[level, low] = 0
        is_open = _is_open(room.used[last], low, high)
        if is_open and _fill_stride(m, p, room, level, high):
            return True
        frame[F_LOW] += frame[F_STRIDE]
    return False


@outlined
def _free_dropped(room, level):
    """Free the rejected choices of a step, which block the other strides until the end of the pass."""
    frame = room.frames[level]
    stride = frame[F_STRIDE]
    end = frame[F_END]
    for low in range(frame[F_START], end, stride):
        if room.dropped[level, low]:
            _forget_last(room.used[level], low, min(low + stride, end))


@outlined
def _pass(m, p, room):
    """Make one pass over the positions of a block, depth first. `frames[0]` holds the range to fill.

    Deviation: this uses a stack of frames where Ceph recurses, because Numba cannot cache recursive
    functions.
    """
    level = 0
    while True:
        if _fill_strides(m, p, room, level):
            level += 1
            continue
        _free_dropped(room, level)
        if level == 0:
            return
        level -= 1
        _leave(room, level)


@outlined
def _fill_block(m, rule, steps, out, room, start):
    """Fill the positions of a block from `start` on, and return their end."""
    width = out.size
    count = steps[0, 0]
    total = np.int64(1)
    for s in range(1, count + 1):
        total *= _strides(steps[s], width)
    end = min(start + total, width)
    for level in range(count):
        for i in range(width):
            room.used[level, i] = _FREE
    limit = room.filled[0] + end - start
    for attempt in range(rule.tunables[T_DESCENTS]):
        if room.filled[0] >= limit or m.q[Q_BUDGET] < 0:
            break
        stride = total // _strides(steps[1], width)
        _enter(room.frames[0], -1 - steps[0, 2], stride, start, end)
        _pass(m, Pass(steps, attempt, rule.tunables[T_COLLISION_TRIES], out), room)
    return end


@compiled
def map_rows_msr(t, rule, xs, reweights, out, lengths, room, scratch):
    """Run an MSR rule for every input. See `kernel.map_rows` for parameters not described here."""
    width = out.shape[1]
    for i in range(room.q.size):
        room.q[i] = 0
    room.q[Q_BUDGET] = rule.tunables[T_BUDGET]
    for row in range(xs.size):
        m = Mapper(t, reweights, xs[row], room.q, scratch)
        slots = out[row]
        for i in range(width):
            slots[i] = NONE
        room.filled[0] = 0
        room.filled[1] = rule.firstn
        start = 0
        for b in range(rule.blocks.shape[0]):
            end = _fill_block(m, rule, rule.blocks[b], slots, room, start)
            if end <= start:
                break
            start = end
        lengths[row] = room.filled[0] if rule.firstn else width
        if room.q[Q_BUDGET] < 0:
            lengths[row] = OUT_OF_BUDGET
            break
