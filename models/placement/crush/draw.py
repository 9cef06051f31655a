"""Compiled draws in one bucket: straw2 and older algorithms over flat tables, and the descent.

The functions follow the published algorithms step by step, because the order of tries defines the results.
The execution differs: one loop over plain 32-bit words computes all hashes of a bucket (the compiler
vectorises it), the logarithm is one table, and an exact division happens only if a floating-point estimate
says that the item may win.

References
----------
S. Weil, S. Brandt, E. Miller, C. Maltzahn, "CRUSH: Controlled, Scalable, Decentralized Placement of
Replicated Data", SC 2006, section 3.4 (uniform, list, tree, straw). Ceph v16.2.15, src/crush/mapper.c, for
later additions: straw2 and choose_args.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from stripesim.models import jit
from stripesim.models.placement.crush.elements import NONE, Alg
from stripesim.models.placement.crush.rjenkins import HASH_SEED, PAD_X, PAD_Y

P = ParamSpec("P")
R = TypeVar("R")

#: A whole number in compiled code.
Whole = int | np.int64

EMPTY = 0x7FFFFFFD
OUT_SCALE = 0x10000
ALG_UNIFORM, ALG_LIST, ALG_TREE, ALG_STRAW = (
    int(alg) for alg in (Alg.UNIFORM, Alg.LIST, Alg.TREE, Alg.STRAW)
)


class MapTables(NamedTuple):
    """A flattened CRUSH map. Bucket b has id -1 - b. A missing id has size 0 and type -1.

    By bucket: the index of its first item and the number of items, its type and algorithm (`Alg`), the index
    of its first weight and the number of weight sets (one, or one per position in the result), and the index
    of its first entry in `more`, which older algorithms use. A bucket takes `padded_size` entries. Padding is
    hashed and ignored. Straw2 hashes `ids` in place of `items`. Weights are 16.16 fixed point. `inverse` is 1
    / weight, and infinite for a weight of 0. `even` marks buckets whose items have one weight that
    `straw2_rivals` covers. `rivals` is that table.
    """

    first: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    alg: npt.NDArray[np.int64]
    items: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int32]
    weight_first: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    weight: npt.NDArray[np.int64]
    inverse: npt.NDArray[np.float64]
    more_first: npt.NDArray[np.int64]
    more: npt.NDArray[np.int64]
    log: npt.NDArray[np.float64]
    even: npt.NDArray[np.bool_]
    rivals: npt.NDArray[np.uint32]


# Indices of the tunables in the array that holds them while the steps of a rule may change them. The last
# entry is the remaining budget of hashes.
Q_DESCENTS, Q_LEAF_DESCENTS, Q_LOCAL, Q_LOCAL_FALLBACK, Q_VARY_R, Q_STABLE, Q_BUDGET = (
    range(7)
)


class Mapper(NamedTuple):
    """All that the draws for one input share.

    `reweights` are 16.16 fixed point, by device. `q` holds tunables and the budget at their ``Q_`` indices.
    `scratch` is space for the hashes of the largest bucket, padded.
    """

    tables: MapTables
    reweights: npt.NDArray[np.int64]
    x: np.uint32
    q: npt.NDArray[np.int64]
    scratch: npt.NDArray[np.uint32]


class Attempt(NamedTuple):
    """One attempt to find an item for a position: what its draws depend on besides the buckets.

    `r` is the number that CRUSH hashes. `stride` is 0 for firstn and the number of slots for indep. A uniform
    bucket whose size is a multiple of the stride then advances the draw by one with each of the `failures`,
    because its permutation would repeat otherwise. `position` selects the weight set. `local` counts failures
    in one bucket, or is −1 to disable the exhaustive search.
    """

    r: Whole
    failures: Whole
    stride: Whole
    position: Whole
    local: Whole


# Reference counting is off (`_nrt`), because counting the arrays passed to every call took half of the
# kernel's time. The kernel therefore creates no arrays, and callers allocate all that it writes to.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba, cache the machine code on disk, and preserve the type for type checkers."""
    return jit.compiled(function, program="placement", **_OPTIONS)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile into the caller, because a call inside a loop prevents vectorisation."""
    return jit.inner(function, forceinline=True, **_OPTIONS)


def outlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile separately, for compiled callers only."""
    return jit.inner(function, **_OPTIONS)


@inlined
def _hash2(a, b):
    """Return `rjenkins.hash_pair` of two 32-bit words."""
    h = np.uint32(np.uint32(HASH_SEED) ^ a ^ b)
    x = np.uint32(PAD_X)
    y = np.uint32(PAD_Y)
    a, b, h = _mix(a, b, h)
    x, a, h = _mix(x, a, h)
    b, y, h = _mix(b, y, h)
    return h


@inlined
def _hash3(a, b, c):
    h = np.uint32(np.uint32(HASH_SEED) ^ a ^ b ^ c)
    x = np.uint32(PAD_X)
    y = np.uint32(PAD_Y)
    a, b, h = _mix(a, b, h)
    c, x, h = _mix(c, x, h)
    y, a, h = _mix(y, a, h)
    b, x, h = _mix(b, x, h)
    y, c, h = _mix(y, c, h)
    return h


@inlined
def _hash4(a, b, c, d):
    h = np.uint32(np.uint32(HASH_SEED) ^ a ^ b ^ c ^ d)
    x = np.uint32(PAD_X)
    y = np.uint32(PAD_Y)
    a, b, h = _mix(a, b, h)
    c, d, h = _mix(c, d, h)
    a, x, h = _mix(a, x, h)
    y, b, h = _mix(y, b, h)
    c, x, h = _mix(c, x, h)
    y, d, h = _mix(y, d, h)
    return h


@inlined
def _mix(a, b, c):
    """Mix one round. Each line casts back, because Numba widens 32-bit results to 64 bits."""
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


def padded_size(size: int) -> int:
    """Return the padded number of items of a bucket, because whole vectors hash faster than a remainder."""
    if size <= 4:
        return 4
    return (size + 15) & ~15


_padded_size = inlined(padded_size)


@inlined
def _straw2(t, bucket, x, r, position, scratch):
    """Return the first item with the largest log(hash) / weight, or the first item if all weigh 0."""
    # Unsigned, because a possibly negative index prevents vectorisation of the hashes.
    first = np.uint64(t.first[bucket])
    size = np.uint64(t.size[bucket])
    r32 = np.uint32(r)
    weight_set = min(position, t.positions[bucket] - 1)
    weights = np.uint64(
        t.weight_first[bucket] + weight_set * _padded_size(t.size[bucket])
    )
    for i in range(np.uint64(_padded_size(t.size[bucket]))):
        scratch[i] = _hash3(x, np.uint32(t.ids[first + i]), r32) & np.uint32(0xFFFF)
    if t.even[bucket]:
        return np.int64(t.items[first + _highest_draw(t, size, weights, scratch)])
    # Draws are truncated quotients. A floating-point estimate is off by less than 1/8, and truncation by less
    # than 1, so only estimates within 2 of each other require a comparison of exact quotients.
    best: Any = np.uint64(0)
    best_estimate = -np.inf
    for i in range(size):
        estimate = t.log[scratch[i]] * t.inverse[weights + i]
        if estimate > best_estimate + 2.0:
            best = i
            best_estimate = estimate
        elif estimate > best_estimate - 2.0:
            draw = np.int64(-t.log[scratch[i]]) // t.weight[weights + i]
            best_draw = np.int64(-t.log[scratch[best]]) // t.weight[weights + best]
            if draw < best_draw:
                best = i
                best_estimate = estimate
    return np.int64(t.items[first + best])


@inlined
def _highest_draw(t, size, weights, scratch):
    """Return the first item with the highest draw, for hashes of items of equal weight."""
    highest = np.uint32(0)
    for i in range(size):
        highest = max(highest, scratch[i])
    rival = t.rivals[highest]
    weight = t.weight[weights]
    best: Any = np.uint64(0)
    best_draw: Any = np.int64(1) << 62
    for i in range(size):
        if scratch[i] >= rival:
            draw = np.int64(-t.log[scratch[i]]) // weight
            if draw < best_draw:
                best = i
                best_draw = draw
    return best


@outlined
def _permuted(t, bucket, x, r, scratch):
    """Return item r (modulo size) of a pseudo-random permutation of the bucket.

    Uniform buckets and the legacy exhaustive search draw this way.
    """
    first = t.first[bucket]
    size = t.size[bucket]
    wanted = np.int64(np.uint32(r)) % size
    for i in range(size):
        scratch[i] = i
    bucket_id = np.uint32(-1 - bucket)
    for p in range(min(wanted + 1, size - 1)):
        jump = np.int64(_hash3(x, bucket_id, np.uint32(p))) % (size - p)
        scratch[p], scratch[p + jump] = scratch[p + jump], scratch[p]
    return np.int64(t.items[first + np.int64(scratch[wanted])])


@outlined
def _list(t, bucket, x, r):
    """Go from the last item to the first, taking each with its share of the weights so far."""
    first = t.first[bucket]
    weights = t.weight_first[bucket]
    sums = t.more_first[bucket]
    bucket_id = np.uint32(-1 - bucket)
    for i in range(t.size[bucket] - 1, -1, -1):
        low = _hash4(
            x, np.uint32(t.items[first + i]), np.uint32(r), bucket_id
        ) & np.uint32(0xFFFF)
        if (np.int64(low) * t.more[sums + i]) >> 16 < t.weight[weights + i]:
            return np.int64(t.items[first + i])
    return np.int64(t.items[first])


@outlined
def _tree(t, bucket, x, r):
    """Descend a binary tree with nodes numbered in order, going left or right by the weights below."""
    nodes = t.more_first[bucket]
    step = 1
    while step < t.size[bucket]:
        step *= 2
    node = step
    bucket_id = np.uint32(-1 - bucket)
    while step > 1:
        step //= 2
        drawn = np.uint64(_hash4(x, np.uint32(node), np.uint32(r), bucket_id))
        point = np.int64((drawn * np.uint64(t.more[nodes + node])) >> np.uint64(32))
        node += -step if point < t.more[nodes + node - step] else step
    return np.int64(t.items[t.first[bucket] + (node >> 1)])


@outlined
def _straw(t, bucket, x, r):
    """Return the item with the longest straw, its length times a hash; the first of equals."""
    first = t.first[bucket]
    straws = t.more_first[bucket]
    best = 0
    best_draw = np.int64(-1)
    for i in range(t.size[bucket]):
        drawn = _hash3(x, np.uint32(t.items[first + i]), np.uint32(r)) & np.uint32(
            0xFFFF
        )
        draw = np.int64(drawn) * t.more[straws + i]
        if draw > best_draw:
            best = i
            best_draw = draw
    return np.int64(t.items[first + best])


@outlined
def _draw_older(t, bucket, x, r, scratch):
    alg = t.alg[bucket]
    if alg == ALG_UNIFORM:
        return _permuted(t, bucket, x, r, scratch)
    if alg == ALG_LIST:
        return _list(t, bucket, x, r)
    if alg == ALG_TREE:
        return _tree(t, bucket, x, r)
    return _straw(t, bucket, x, r)


@inlined
def is_out(reweights, device, x):
    """Return True if the device's 16.16 reweight rejects this input."""
    if device >= reweights.size:
        return True
    reweight = reweights[device]
    if reweight >= OUT_SCALE:
        return False
    return np.int64(_hash2(x, np.uint32(device)) & np.uint32(0xFFFF)) >= reweight


@inlined
def kind_of(t, item):
    """Return the type number of an item; 0 is a device."""
    if item >= 0:
        return 0
    return t.kind[-1 - item]


@inlined
def is_in(values, start, stop, item):
    """Return True if values[start:stop] contains the item."""
    present = False
    for i in range(start, stop):
        present |= values[i] == item
    return present


@outlined
def descend(m, top, kind, attempt):
    """Draw downwards until an item of the wanted type is drawn.

    Returns the item and the bucket that it was drawn from. The item is EMPTY for an empty bucket, and NONE
    for a device where a bucket was wanted, or if the budget is exhausted.
    """
    t = m.tables
    x = m.x
    r = attempt.r
    stride = attempt.stride
    bucket = top
    fallback = m.q[Q_LOCAL_FALLBACK]
    while True:
        size = t.size[bucket]
        m.q[Q_BUDGET] -= size + 4
        if m.q[Q_BUDGET] < 0:
            return np.int64(NONE), bucket
        if size == 0:
            return np.int64(EMPTY), bucket
        if fallback > 0 and attempt.local >= size >> 1 and attempt.local > fallback:
            item = _permuted(t, bucket, x, r, m.scratch)
        elif t.alg[bucket] > ALG_STRAW:
            item = _straw2(t, bucket, x, r, attempt.position, m.scratch)
        elif t.alg[bucket] == ALG_UNIFORM and stride > 0 and size % stride == 0:
            item = _permuted(t, bucket, x, r + attempt.failures, m.scratch)
        else:
            item = _draw_older(t, bucket, x, r, m.scratch)
        if kind_of(t, item) == kind:
            return item, bucket
        if item >= 0:
            return np.int64(NONE), bucket
        bucket = -1 - item
