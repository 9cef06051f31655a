"""CRUSH's inner loops, compiled: straw2, firstn and indep over flat tables.

The functions follow the published algorithm step for step, since its results are defined by the order of
its tries; what differs is how: all hashes of a bucket are computed in one loop over plain 32-bit words
(which the compiler turns into vector instructions), the logarithm is one table, and a quotient is only
divided out when a floating-point estimate says it might win.

References
----------
S. Weil, S. Brandt, E. Miller, C. Maltzahn, "CRUSH: Controlled, Scalable, Decentralized Placement of
Replicated Data", SC 2006, algorithm 1. Ceph v16.2.15, src/crush/mapper.c, for what came after the paper:
indep, chooseleaf with vary_r and stable, straw2.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from stripesim.models.jit import compiled
from stripesim.models.placement.crush.rjenkins import HASH_SEED, PAD_X, PAD_Y

P = ParamSpec("P")
R = TypeVar("R")

NONE = 0x7FFFFFFF
_UNDECIDED = 0x7FFFFFFE
_EMPTY = 0x7FFFFFFD
OUT_SCALE = 0x10000

# Codes of a rule's steps, as the kernel reads them; those that set a tunable come in the order of the
# Q_ places.
OP_TAKE, OP_CHOOSE_FIRSTN, OP_CHOOSE_INDEP, OP_CHOOSELEAF_FIRSTN, OP_CHOOSELEAF_INDEP, OP_EMIT = range(6)
OP_SET_CHOOSE_TRIES, OP_SET_CHOOSELEAF_TRIES, OP_SET_LOCAL_TRIES, OP_SET_LOCAL_FALLBACK_TRIES = range(6, 10)
OP_SET_VARY_R, OP_SET_STABLE = range(10, 12)


class Tables(NamedTuple):
    """A CRUSH map laid flat. Bucket b has id -1 - b; a missing id has size 0 and type -1.

    Attributes
    ----------
    first, size, kind : ndarray of int64, shape (buckets,)
        Where the bucket's items start, how many they are, and the number of the bucket's type. Each bucket
        takes `padded_size` places in the arrays below; what fills it up is hashed and then ignored.
    items : ndarray of int32, shape (items,)
        Item ids: devices from 0, buckets below 0.
    weight : ndarray of int64, shape (items,)
        Weights, 16.16 fixed point.
    inverse : ndarray of float64, shape (items,)
        1 / weight; infinite where the weight is 0, so that such a draw is minus infinity.
    log : ndarray of float64, shape (65536,)
        `straw2_log_table`.
    """

    first: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    items: npt.NDArray[np.int32]
    weight: npt.NDArray[np.int64]
    inverse: npt.NDArray[np.float64]
    log: npt.NDArray[np.float64]


# Places of the tunables in the array the kernel keeps them in while a rule's steps may change them.
Q_DESCENTS, Q_LEAF_DESCENTS, Q_LOCAL, Q_LOCAL_FALLBACK, Q_VARY_R, Q_STABLE = range(6)


# Reference counting is off (`_nrt`): the kernel makes no arrays, and counting those it is handed at every
# call took half of its time. So whatever it writes to is made by the caller.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


def _compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba, keep the machine code on disk, and keep the type for the type checker."""
    return compiled(function, **_OPTIONS)


def _inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile into the caller: a call left in a loop keeps the compiler from vectorising it."""
    return cast("Callable[P, R]", numba.njit(inline="always", **_OPTIONS)(function))


@_inlined
def _hash2(a: Any, b: Any) -> Any:
    """`rjenkins.hash_pair` on 32-bit words."""
    h = np.uint32(np.uint32(HASH_SEED) ^ a ^ b)
    x = np.uint32(PAD_X)
    y = np.uint32(PAD_Y)
    a, b, h = _mix(a, b, h)
    x, a, h = _mix(x, a, h)
    b, y, h = _mix(b, y, h)
    return h


@_inlined
def _hash3(a: Any, b: Any, c: Any) -> Any:
    """`rjenkins.hash_triple` on 32-bit words."""
    h = np.uint32(np.uint32(HASH_SEED) ^ a ^ b ^ c)
    x = np.uint32(PAD_X)
    y = np.uint32(PAD_Y)
    a, b, h = _mix(a, b, h)
    c, x, h = _mix(c, x, h)
    y, a, h = _mix(y, a, h)
    b, x, h = _mix(b, x, h)
    y, c, h = _mix(y, c, h)
    return h


@_inlined
def _mix(a: Any, b: Any, c: Any) -> Any:
    """One round. Each line casts back, because Numba widens 32-bit results to 64 bits."""
    a = np.uint32(np.uint32(a - b - c) ^ (c >> np.uint32(13)))
    b = np.uint32(np.uint32(b - c - a) ^ np.uint32(a << np.uint32(8)))
    c = np.uint32(np.uint32(c - a - b) ^ (b >> np.uint32(13)))
    a = np.uint32(np.uint32(a - b - c) ^ (c >> np.uint32(12)))
    b = np.uint32(np.uint32(b - c - a) ^ np.uint32(a << np.uint32(16)))
    c = np.uint32(np.uint32(c - a - b) ^ (b >> np.uint32(5)))
    a = np.uint32(np.uint32(a - b - c) ^ (c >> np.uint32(3)))
    b = np.uint32(np.uint32(b - c - a) ^ np.uint32(a << np.uint32(10)))
    c = np.uint32(np.uint32(c - a - b) ^ (b >> np.uint32(15)))
    return a, b, c


@_inlined
def padded_size(size: int) -> int:
    """Room a bucket's items take in the tables: whole vectors of hashes beat the odd ones at the end."""
    return 4 if size <= 4 else (size + 15) & ~15


@_inlined
def _straw2(t: Any, bucket: Any, x: Any, r: Any, scratch: Any) -> Any:
    """The item whose log(hash) / weight is largest; the first of equals; the first item if none weighs."""
    # Unsigned, because an index that may be negative keeps the compiler from vectorising the hashes.
    first = np.uint64(t.first[bucket])
    size = np.uint64(t.size[bucket])
    r32 = np.uint32(r)
    for i in range(np.uint64(padded_size(t.size[bucket]))):
        scratch[i] = _hash3(x, np.uint32(t.items[first + i]), r32) & np.uint32(0xFFFF)
    # Draws are quotients cut to whole numbers. An estimate in floating point is less than 1/8 off, the cut
    # takes less than 1: only estimates within 2 of each other need the true quotients to be compared.
    best: Any = np.uint64(0)
    best_estimate = -np.inf
    for i in range(size):
        estimate = t.log[scratch[i]] * t.inverse[first + i]
        if estimate > best_estimate + 2.0:
            best = i
            best_estimate = estimate
        elif estimate > best_estimate - 2.0:
            draw = np.int64(-t.log[scratch[i]]) // t.weight[first + i]
            best_draw = np.int64(-t.log[scratch[best]]) // t.weight[first + best]
            if draw < best_draw:
                best = i
                best_estimate = estimate
    return np.int64(t.items[first + best])


@_compiled
def _permuted(t: Any, bucket: Any, x: Any, r: Any, scratch: Any) -> Any:
    """Item r (modulo size) of a pseudo-random permutation of the bucket: the legacy exhaustive search."""
    first = t.first[bucket]
    size = t.size[bucket]
    wanted = r % size
    for i in range(size):
        scratch[i] = i
    bucket_id = np.uint32(-1 - bucket)
    for p in range(min(wanted + 1, size - 1)):
        jump = np.int64(_hash3(x, bucket_id, np.uint32(p))) % (size - p)
        scratch[p], scratch[p + jump] = scratch[p + jump], scratch[p]
    return np.int64(t.items[first + np.int64(scratch[wanted])])


@_inlined
def _is_out(reweights: Any, device: Any, x: Any) -> Any:
    """Whether the device's 16.16 reweight rejects this input."""
    if device >= reweights.size:
        return True
    reweight = reweights[device]
    if reweight >= OUT_SCALE:
        return False
    return np.int64(_hash2(x, np.uint32(device)) & np.uint32(0xFFFF)) >= reweight


@_inlined
def _kind(t: Any, item: Any) -> Any:
    """Type number of an item; 0 is a device."""
    return 0 if item >= 0 else t.kind[-1 - item]


@_inlined
def _in(values: Any, start: Any, stop: Any, item: Any) -> Any:
    """Whether values[start:stop] holds the item."""
    found = False
    for i in range(start, stop):
        found |= values[i] == item
    return found


@_compiled
def _descend(
    t: Any, top: Any, x: Any, r: Any, kind: Any, local: Any, fallback: Any, scratch: Any
) -> Any:  # fmt: skip
    """Draw downwards until an item of the wanted type comes up.

    Returns the item and the bucket it was drawn from; _EMPTY for a bucket without items, NONE for a device
    where a bucket was wanted.
    """
    here = top
    while True:
        size = t.size[here]
        if size == 0:
            return np.int64(_EMPTY), here
        if fallback > 0 and local >= size >> 1 and local > fallback:
            item = _permuted(t, here, x, r, scratch)
        else:
            item = _straw2(t, here, x, r, scratch)
        if _kind(t, item) == kind:
            return item, here
        if item >= 0:
            return np.int64(NONE), here
        here = -1 - item


@_inlined
def _try_here_again(q: Any, collided: Any, local: Any, size: Any) -> Any:
    """Whether the legacy tunables ask for another draw in the same bucket, not for a new descent."""
    return (collided and local <= q[Q_LOCAL]) or (
        q[Q_LOCAL_FALLBACK] > 0 and local <= size + q[Q_LOCAL_FALLBACK]
    )


@_compiled
def _firstn_leaf(
    t: Any, reweights: Any, top: Any, x: Any, r0: Any, taken: Any, start: Any, stop: Any, q: Any, scratch: Any
) -> Any:  # fmt: skip
    """Find one device under `top` that is in and not in taken[start:stop]; NONE after too many failures."""
    here = top
    failures = 0
    local = 0
    while True:
        item, here = _descend(t, here, x, r0 + failures, 0, local, q[Q_LOCAL_FALLBACK], scratch)
        if item == NONE:
            return item
        empty = item == _EMPTY
        collided = not empty and _in(taken, start, stop, item)
        if not empty and not collided and not _is_out(reweights, item, x):
            return item
        failures += 1
        local += 1
        if not _try_here_again(q, collided, local, t.size[here]):
            if failures >= q[Q_LEAF_DESCENTS]:
                return np.int64(NONE)
            here = top
            local = 0


@_compiled
def _firstn_one(
    t: Any, reweights: Any, top: Any, x: Any, rep: Any, kind: Any, to_leaf: Any, out: Any, leaves: Any,
    start: Any, stop: Any, q: Any, scratch: Any,
) -> Any:  # fmt: skip
    """Place replica `rep` at position `stop`, given those in [start, stop); False after too many failures."""
    here = top
    failures = 0
    local = 0
    while True:
        r = rep + failures
        item, here = _descend(t, here, x, r, kind, local, q[Q_LOCAL_FALLBACK], scratch)
        if item == NONE:
            return False
        rejected = item == _EMPTY
        collided = not rejected and _in(out, start, stop, item)
        leaf = item
        if to_leaf and item < 0 and not collided:
            r0 = r >> (q[Q_VARY_R] - 1) if q[Q_VARY_R] > 0 else 0
            if not q[Q_STABLE]:
                r0 += stop - start
            leaf = _firstn_leaf(t, reweights, -1 - item, x, r0, leaves, start, stop, q, scratch)
            rejected = leaf == NONE
        if not rejected and not collided and kind == 0:
            rejected = _is_out(reweights, item, x)
        if not rejected and not collided:
            out[stop] = item
            leaves[stop] = leaf
            return True
        failures += 1
        local += 1
        if not _try_here_again(q, collided, local, t.size[here]):
            if failures >= q[Q_DESCENTS]:
                return False
            here = top
            local = 0


@_compiled
def _choose_firstn(
    t: Any, reweights: Any, top: Any, x: Any, count: Any, kind: Any, to_leaf: Any, out: Any, leaves: Any,
    start: Any, limit: Any, q: Any, scratch: Any,
) -> Any:  # fmt: skip
    """Fill out[start:] with up to `count` distinct items, closing gaps; return where it stopped."""
    stop = start
    for rep in range(count):
        if stop >= limit:
            break
        if _firstn_one(t, reweights, top, x, rep, kind, to_leaf, out, leaves, start, stop, q, scratch):
            stop += 1
    return stop


@_compiled
def _indep_leaf(
    t: Any, reweights: Any, top: Any, x: Any, r0: Any, stride: Any, tries: Any, scratch: Any
) -> Any:  # fmt: skip
    """Find one device under `top` that is in; NONE if `tries` descents fail."""
    for failures in range(tries):
        item, _ = _descend(t, top, x, r0 + stride * failures, 0, 0, 0, scratch)
        if item == NONE:
            return item
        if item != _EMPTY and not _is_out(reweights, item, x):
            return item
    return np.int64(NONE)


@_compiled
def _choose_indep(
    t: Any, reweights: Any, top: Any, x: Any, width: Any, stride: Any, kind: Any, to_leaf: Any, out: Any,
    leaves: Any, start: Any, q: Any, scratch: Any,
) -> Any:  # fmt: skip
    """Fill out[start:start+width], each slot by its own sequence of draws; a slot nobody fits is NONE."""
    stop = start + width
    for slot in range(start, stop):
        out[slot] = _UNDECIDED
        leaves[slot] = _UNDECIDED
    left = width
    for failures in range(q[Q_DESCENTS]):
        if left == 0:
            break
        for slot in range(start, stop):
            if out[slot] != _UNDECIDED:
                continue
            r = slot - start + stride * failures
            item, _ = _descend(t, top, x, r, kind, 0, 0, scratch)
            if item == NONE:
                out[slot] = NONE
                leaves[slot] = NONE
                left -= 1
                continue
            if item == _EMPTY or _in(out, start, stop, item):
                continue
            if to_leaf:
                # A leaf stays noted even where its own reweight rejects it below, and is what the slot ends
                # with if all tries fail: so the released algorithm does for chooseleaf of type 0.
                leaves[slot] = item
                if item < 0:
                    # The position counts twice: a bucket drawn again for another slot gives another leaf.
                    r0 = r + slot - start
                    leaves[slot] = _indep_leaf(
                        t, reweights, -1 - item, x, r0, stride, q[Q_LEAF_DESCENTS], scratch
                    )
                    if leaves[slot] == NONE:
                        continue
            if kind == 0 and _is_out(reweights, item, x):
                continue
            out[slot] = item
            left -= 1
    for slot in range(start, stop):
        if out[slot] == _UNDECIDED:
            out[slot] = NONE
        if leaves[slot] == _UNDECIDED:
            leaves[slot] = NONE


@_compiled
def _choose(
    t: Any, reweights: Any, x: Any, op: Any, asked: Any, kind: Any, q: Any, tops: Any, n_tops: Any, out: Any,
    leaves: Any, limit: Any, scratch: Any,
) -> Any:  # fmt: skip
    """One choose step: from each bucket in tops[:n_tops], into out; return how many came out."""
    to_leaf = op in (OP_CHOOSELEAF_FIRSTN, OP_CHOOSELEAF_INDEP)
    firstn = op in (OP_CHOOSE_FIRSTN, OP_CHOOSELEAF_FIRSTN)
    count = asked if asked > 0 else asked + limit
    filled = 0
    if count <= 0:
        return filled
    for i in range(n_tops):
        bucket = -1 - tops[i]
        # A device, or the NONE an earlier indep step left, has nothing below it to choose from.
        if bucket < 0:
            continue
        if firstn:
            filled = _choose_firstn(
                t, reweights, bucket, x, count, kind, to_leaf, out, leaves, filled, limit, q, scratch
            )
        else:
            width = min(count, limit - filled)
            _choose_indep(
                t, reweights, bucket, x, width, count, kind, to_leaf, out, leaves, filled, q, scratch
            )
            filled += width
    if to_leaf:
        for i in range(filled):
            out[i] = leaves[i]
    return filled


@_compiled
def _settle_leaf_tries(q: Any, op: Any, descend_once: Any) -> Any:
    """How often a leaf is looked for: as the rule says, else once (indep, or firstn by tunable)."""
    if q[Q_LEAF_DESCENTS] > 0:
        return q[Q_LEAF_DESCENTS]
    firstn = op in (OP_CHOOSE_FIRSTN, OP_CHOOSELEAF_FIRSTN)
    return q[Q_DESCENTS] if firstn and not descend_once else np.int64(1)


@_compiled
def map_rows(
    t: Any, steps: Any, tunables: Any, descend_once: Any, xs: Any, reweights: Any, out: Any, lengths: Any,
    work: Any, scratch: Any,
) -> None:  # fmt: skip
    """Run a rule for every input.

    Parameters
    ----------
    t : Tables
        The map.
    steps : ndarray of int64, shape (steps, 3)
        Operation code and its two arguments.
    tunables : ndarray of int64, shape (6,)
        The map's tunables at their ``Q_`` places; 0 leaf descents mean that nothing is set.
    descend_once : bool
        The tunable chooseleaf_descend_once.
    xs : ndarray of uint32, shape (n,)
        Inputs.
    reweights : ndarray of int64, shape (devices,)
        16.16 fixed point.
    out : ndarray of int32, shape (n, width)
        Result; written in full, NONE where a row is short.
    lengths : ndarray of int32, shape (n,)
        Result: items in each row.
    work : ndarray of int64, shape (width + width + width + 6,)
        Room: what the last step gave, what the present one gives, its leaves, tunables as changed so far.
    scratch : ndarray of uint32
        Room for the hashes of the largest bucket, padded.
    """
    width = out.shape[1]
    taken = work[:width]
    chosen = work[width : 2 * width]
    leaves = work[2 * width : 3 * width]
    q = work[3 * width :]
    for row in range(xs.size):
        x = xs[row]
        for i in range(q.size):
            q[i] = tunables[i]
        n_taken = 0
        length = 0
        for s in range(steps.shape[0]):
            op = steps[s, 0]
            argument = steps[s, 1]
            if op == OP_TAKE:
                taken[0] = argument
                n_taken = 1
            elif op == OP_EMIT:
                for i in range(min(n_taken, width - length)):
                    out[row, length] = taken[i]
                    length += 1
                n_taken = 0
            elif op >= OP_SET_CHOOSE_TRIES:
                # Ceph ignores a number of descents below 1.
                if argument > 0 or op > OP_SET_CHOOSELEAF_TRIES:
                    q[op - OP_SET_CHOOSE_TRIES] = argument
            elif n_taken > 0:
                set_tries = q[Q_LEAF_DESCENTS]
                q[Q_LEAF_DESCENTS] = _settle_leaf_tries(q, op, descend_once)
                n_taken = _choose(
                    t,
                    reweights,
                    x,
                    op,
                    argument,
                    steps[s, 2],
                    q,
                    taken,
                    n_taken,
                    chosen,
                    leaves,
                    width,
                    scratch,
                )
                q[Q_LEAF_DESCENTS] = set_tries
                for i in range(n_taken):
                    taken[i] = chosen[i]
        for i in range(length, width):
            out[row, i] = NONE
        lengths[row] = length
