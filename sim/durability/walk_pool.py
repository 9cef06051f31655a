"""One walk over a declustered pool, compiled: stripes lie on any drives, the worst are rebuilt first.

With so many stripes that every combination of drives has some, only bytes by number of missing shards matter.
Where progress counts they flow: rebuilding the worst level fills the one below it, and the next failure finds
only what is left. Where it does not, each failed drive brings the shares of its stripes that miss 1, 2, …
shards, the worst of which are rebuilt first, whatever had been rebuilt before: so calculators by Markov chain
have it, and Wang et al. (mlec-sim, SC'23).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.sim.durability.draws import compiled, exponential, seeded, uniform
from stripesim.sim.durability.system import Floats, Ints

__all__ = ["Pool", "PoolStates", "stage"]

#: As in `walk_groups`.
_SECTOR, _AS_ONE, _SECTOR_DRAWN = 3, 8, 0.2


class Pool(NamedTuple):
    """What stays the same during a walk; what is not named here is as in `walk_groups.Layout`.

    Parameters
    ----------
    drives, width, tolerated : int
    shard_bytes : float
        Bytes of all stripes' single shards: those of all drives over the width [B].
    drive_bytes : float
    stripes : float
        Stripes [count]; infinite: every combination of drives has some.
    pace_bytes_per_s : float
        Rebuilt by each surviving drive's bandwidth [B/s].
    progress : bool
        Whether what has been rebuilt is safe from the next failure.
    """

    drives: int
    width: int
    tolerated: int
    shard_bytes: float
    drive_bytes: float
    stripes: float
    pace_bytes_per_s: float
    edges_s: Floats
    hazards: Floats
    burst_rates: Floats
    burst_lost: Floats
    drawn_rates: Floats
    drawn_lost: Floats
    burst_units: Ints
    bias_s: Floats
    detection_s: float
    horizon_s: float
    sector_errors: float
    progress: bool


class PoolStates(NamedTuple):
    """Recorded states, one in each element of the first axis.

    Parameters
    ----------
    time_s : ndarray of float64
    failed : ndarray of int32
        Failed drives since the pool was last whole.
    drive : ndarray of int32, shape (states, room)
        Which; only where drives age.
    exposed_bytes : ndarray of float64, shape (states, tolerated + 1)
        By shards missing, one shard's bytes of the stripes that miss so many; element 0 is unused.
    detected_s : ndarray of float64, shape (states, room)
        When each failure is detected.
    burst, struck_left : ndarray of int32
    born_s : ndarray of float64, shape (states, drives or 0)
    cause : ndarray of int32, shape (states, tolerated + 2)
    lost : ndarray of float64
        Bytes of one shard of the stripes lost, at the end.
    """

    time_s: Floats
    failed: Ints
    drive: Ints
    exposed_bytes: Floats
    detected_s: Floats
    burst: Ints
    struck_left: Ints
    born_s: Floats
    cause: Ints
    lost: Floats


@compiled
def _hazard(pool: Pool, age_s: float) -> float:  # pragma: no cover - compiled
    piece = len(pool.edges_s) - 1
    while piece > 0 and pool.edges_s[piece] > age_s:
        piece -= 1
    return float(pool.hazards[piece])


@compiled
def _worst(pool: Pool, exposed: Floats) -> int:  # pragma: no cover - compiled
    level = pool.tolerated
    while level > 0 and exposed[level] <= 0:
        level -= 1
    return level


@compiled
def _some(expected: float, one: float, rng: npt.NDArray[np.uint64]) -> float:  # pragma: no cover - compiled
    """Bytes of an expected size, or where that is less than one stripe: one stripe, or none."""
    if expected >= one:
        return expected
    return one if uniform(rng) < -np.expm1(-expected / one) else 0.0


@compiled
def _shift(  # pragma: no cover - compiled
    pool: Pool, exposed: Floats, good: float, one: float, rng: npt.NDArray[np.uint64]
) -> float:
    """Move stripes with a shard on the failed drive one level up; return what is lost."""
    whole, lost = pool.shard_bytes - exposed.sum(), 0.0
    for level in range(pool.tolerated, -1, -1):
        have = whole if level == 0 else exposed[level]
        moved = min(have, _some(have * (pool.width - level) / good, one, rng)) if have > 0 else 0.0
        if level > 0:
            exposed[level] -= moved
        if level == pool.tolerated:
            lost = moved
        else:
            exposed[level + 1] += moved
    return lost


@compiled
def _expose(  # pragma: no cover - compiled
    pool: Pool, exposed: Floats, before: int, failed: int, one: float, rng: npt.NDArray[np.uint64]
) -> float:
    """Expose the failed drive's stripes as if nothing had been rebuilt yet; return what is lost."""
    top = before + 1
    while top > 1:
        # Stripes on all of so many given drives.
        shared = pool.drive_bytes
        for other in range(1, top):
            shared *= (pool.width - other) / (pool.drives - other)
        if _some(shared, one, rng) > 0:
            break
        top -= 1
    if top > pool.tolerated:
        return max(one, shared)
    # Of the new drive's stripes, those with 0, 1, … of the others that have failed: hypergeometric.
    others, good = failed - 1, pool.drives - failed
    for level in range(1, top + 1):
        share = 1.0
        if level - 1 > others:
            continue
        for i in range(level - 1):
            share *= (others - i) / (i + 1) * (pool.width - 1 - i) / (pool.drives - 1 - i)
        for i in range(pool.width - level):
            share *= (good - i) / (pool.drives - level - i)
        exposed[level] += max(0.0, share) * pool.drive_bytes
    return 0.0


@compiled
def _strike(  # pragma: no cover - compiled
    pool: Pool, st: PoolStates, at: int, drive: int, why: int, rng: npt.NDArray[np.uint64]
) -> float:
    """Fail a drive: stripes move one level up. Return the likelihood ratio, -1 without room for it."""
    count = st.failed[at]
    if count >= st.detected_s.shape[1]:
        return -1.0
    good = float(pool.drives - count)
    st.detected_s[at, count] = st.time_s[at] + pool.detection_s
    st.drive[at, count] = drive
    st.failed[at] = count + 1
    exposed, m = st.exposed_bytes[at], pool.tolerated
    one = pool.shard_bytes / pool.stripes
    before, ratio = _worst(pool, exposed), 1.0
    if pool.progress:
        st.lost[at] += _shift(pool, exposed, good, one, rng)
    else:
        st.lost[at] += _expose(pool, exposed, before, count + 1, one, rng)
    after = _worst(pool, exposed)
    cause = why
    if after == m and after > before and pool.sector_errors > 0 and st.lost[at] == 0:
        chance = -np.expm1(-pool.sector_errors * exposed[m] * (pool.width - m) / pool.drive_bytes)
        drawn = max(chance, _SECTOR_DRAWN) if pool.bias_s[m] > 0 else chance
        if uniform(rng) < drawn:
            ratio = chance / drawn
            cause = _SECTOR
            st.lost[at] = min(one, exposed[m])
        else:
            ratio = (1 - chance) / (1 - drawn)
    top = m + 1 if st.lost[at] > 0 else after
    for level in range(before + 1, top + 1):
        st.cause[at, level] = cause
    return ratio


@compiled
def _release(pool: Pool, st: PoolStates, at: int) -> None:  # pragma: no cover - compiled
    """Take drives off the list, oldest first, as far as what is still exposed fills fewer of them."""
    missing, level = 0.0, 0
    for i in range(1, pool.tolerated + 1):
        missing += st.exposed_bytes[at, i] * (i if pool.progress else 1)
        if st.exposed_bytes[at, i] > 0:
            level = i
    left = max(level, int(np.ceil(missing / pool.drive_bytes - 1e-9)))
    done = st.failed[at] - left
    for i in range(done):
        if st.detected_s[at, i] > st.time_s[at]:
            done = i
            break
        if st.born_s.shape[1]:
            st.born_s[at, st.drive[at, i]] = st.time_s[at]
    if done > 0:
        for i in range(st.failed[at] - done):
            st.drive[at, i] = st.drive[at, i + done]
            st.detected_s[at, i] = st.detected_s[at, i + done]
        st.failed[at] -= done


@compiled
def _copied(starts: PoolStates, pick: int, ends: PoolStates, at: int) -> None:  # pragma: no cover - compiled
    ends.time_s[at] = starts.time_s[pick]
    ends.failed[at] = starts.failed[pick]
    ends.drive[at] = starts.drive[pick]
    ends.exposed_bytes[at] = starts.exposed_bytes[pick]
    ends.detected_s[at] = starts.detected_s[pick]
    ends.burst[at] = starts.burst[pick]
    ends.struck_left[at] = starts.struck_left[pick]
    ends.born_s[at] = starts.born_s[pick]
    ends.cause[at] = starts.cause[pick]
    ends.lost[at] = starts.lost[pick]


@compiled
def stage(  # pragma: no cover - compiled
    pool: Pool,
    starts: PoolStates,
    picks: npt.NDArray[np.int64],
    target: int,
    seed: int,
    ends: PoolStates,
    weights: Floats,
) -> int:
    """Walk from picked states until the target level or the horizon; as `walk_groups.stage`."""
    fastest = pool.hazards.max()
    ageing = starts.born_s.shape[1] > 0
    bursts = pool.drawn_rates.sum()
    extra = bursts - pool.burst_rates.sum()
    events = 0
    rng = np.zeros(1, dtype=np.uint64)
    for walk in range(len(picks)):
        seeded(rng, seed, walk)
        at = walk
        _copied(starts, picks[walk], ends, at)
        weight = 1.0
        exposed = ends.exposed_bytes[at]
        while True:
            level = pool.tolerated + 1 if ends.lost[at] > 0 else pool.tolerated
            while level <= pool.tolerated and level > 0 and exposed[level] <= 0:
                level -= 1
            if level >= target:
                break
            now, count = ends.time_s[at], ends.failed[at]
            good = pool.drives - count
            if ends.struck_left[at] > 0:
                which = ends.burst[at]
                ends.struck_left[at] -= 1
                chance, drawn = pool.burst_lost[which], pool.drawn_lost[which]
                if drawn < 1 and uniform(rng) >= drawn:
                    weight *= (1 - chance) / (1 - drawn)
                else:
                    weight *= chance / drawn if drawn > 0 else 1.0
                    drive = _any_good(pool, ends, at, ageing, rng)
                    ratio = _strike(pool, ends, at, drive, _AS_ONE + which, rng)
                    events += 1
                    if ratio < 0:
                        return -1
                    weight *= ratio
                continue
            undetected, next_s = 0, pool.horizon_s
            for i in range(count):
                if ends.detected_s[at, i] > now:
                    undetected += 1
                    next_s = min(next_s, ends.detected_s[at, i])
            # What only an undetected failure exposes cannot be rebuilt yet.
            working = max(0, level - undetected)
            while working > 0 and exposed[working] <= 0:
                working -= 1
            pace = pool.pace_bytes_per_s * good
            finishing = False
            if working > 0 and pace > 0 and now + exposed[working] / pace <= next_s:
                next_s, finishing = now + exposed[working] / pace, True
            natural = (pool.drives if ageing else good) * fastest
            bias = 0.0
            if pool.bias_s[level] > 0:
                hoped = 1.0 / pool.horizon_s if level == 0 else 0.7 / pool.bias_s[level]
                bias = max(0.0, hoped - natural)
            bias = bias if good > 0 else 0.0
            rate = natural + bias + bursts
            step = exponential(rng) / rate if rate > 0 else np.inf
            span = min(step, next_s - now)
            weight *= np.exp((bias + extra) * span)
            ends.time_s[at] = now + span
            if working > 0:
                moved = exposed[working] if finishing and step >= next_s - now else pace * span
                moved = min(moved, exposed[working])
                exposed[working] -= moved
                if pool.progress and working > 1:
                    exposed[working - 1] += moved
            if step >= next_s - now:
                if next_s >= pool.horizon_s:
                    weight = 0.0
                    break
                events += 1
                ends.time_s[at] = next_s
                _release(pool, ends, at)
                continue
            draw = uniform(rng) * rate
            if draw < bursts:
                which = 0
                while draw >= pool.drawn_rates[which] and which < len(pool.drawn_rates) - 1:
                    draw -= pool.drawn_rates[which]
                    which += 1
                weight *= pool.burst_rates[which] / pool.drawn_rates[which]
                ends.burst[at] = which
                ends.struck_left[at] = pool.burst_units[which]
                continue
            hazard, drive = fastest, 0
            if ageing:
                forced = draw < bursts + bias
                drive = int(uniform(rng) * pool.drives)
                if forced:
                    drive = _any_good(pool, ends, at, ageing, rng)
                elif _is_failed(ends, at, drive):
                    continue
                hazard = _hazard(pool, ends.time_s[at] - ends.born_s[at, drive])
                if not forced and uniform(rng) * fastest >= hazard:
                    continue
            weight *= hazard / (hazard + bias / good) if bias > 0 else 1.0
            _release(pool, ends, at)
            ratio = _strike(pool, ends, at, drive, 0, rng)
            events += 1
            if ratio < 0:
                return -1
            weight *= ratio
        weights[walk] = weight
    return events


@compiled
def _is_failed(st: PoolStates, at: int, drive: int) -> bool:  # pragma: no cover - compiled
    return bool((st.drive[at, : st.failed[at]] == drive).any())


@compiled
def _any_good(  # pragma: no cover - compiled
    pool: Pool, st: PoolStates, at: int, ageing: bool, rng: npt.NDArray[np.uint64]
) -> int:
    if not ageing:
        return 0
    drive = int(uniform(rng) * pool.drives)
    while _is_failed(st, at, drive):
        drive = int(uniform(rng) * pool.drives)
    return drive
