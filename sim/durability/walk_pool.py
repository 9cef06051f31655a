"""One walk over a declustered pool, compiled: stripes lie on any drives, the worst are rebuilt first.

With so many stripes that every combination of drives has some, only bytes by number of missing shards matter.
Where progress counts they flow: rebuilding the worst level fills the one below it, and the next failure finds
only what is left. Where it does not, each failed drive brings the shares of its stripes that miss 1, 2, …
shards, the worst of which are rebuilt first, whatever had been rebuilt before: so calculators by Markov chain
have it, and Wang et al. (mlec-sim, SC'23).
"""

from typing import NamedTuple

import numpy as np

from stripesim.sim.durability import draws
from stripesim.sim.durability.draws import State, compiled, inner, uniform
from stripesim.sim.durability.system import Floats, Ints


class Pool(NamedTuple):
    """What stays the same during a walk."""

    threats: draws.Threats
    drives: int
    width: int
    shard_bytes: float  # Bytes of all stripes' single shards: those of all drives over the width [B]
    drive_bytes: float
    stripes: float  # Stripes [count]; infinite: every combination of drives has some
    pace_bytes_per_s: float  # Rebuilt by each surviving drive's bandwidth [B/s]
    progress: bool  # Whether what has been rebuilt is safe from the next failure


class PoolStates(NamedTuple):
    """Recorded states, one in each element of the first axis; the rest is as in `walk_groups.States`."""

    time_s: Floats
    failed: Ints  # Failed drives since the pool was last whole
    drive: Ints  # Shape (states, room): which; only where drives age
    exposed_bytes: Floats
    """Shape (states, tolerated + 1): by shards missing, one shard's bytes of the stripes that miss so many;
    element 0 is unused."""
    detected_s: Floats  # Shape (states, room): when each failure is detected
    burst: Ints
    struck_left: Ints
    born_s: Floats
    cause: Ints
    lost: Floats  # Bytes of one shard of the stripes lost, at the end


@inner
def _worst(exposed: Floats, level: int) -> int:
    """The highest level, from one on down, at which anything is exposed."""
    while level > 0 and exposed[level] <= 0:
        level -= 1
    return level


@inner
def _some(expected: float, one: float, rng: State) -> float:
    """Bytes of an expected size, or where that is less than one stripe: one stripe, or none."""
    if expected >= one:
        return expected
    return one if uniform(rng) < -np.expm1(-expected / one) else 0.0


@inner
def _shift(pool: Pool, exposed: Floats, good: float, one: float, rng: State) -> float:
    """Move stripes with a shard on the failed drive one level up; return what is lost."""
    whole, lost, tolerated = (
        pool.shard_bytes - exposed.sum(),
        0.0,
        pool.threats.tolerated,
    )
    for level in range(tolerated, -1, -1):
        have = whole if level == 0 else exposed[level]
        moved = (
            min(have, _some(have * (pool.width - level) / good, one, rng))
            if have > 0
            else 0.0
        )
        if level > 0:
            exposed[level] -= moved
        if level == tolerated:
            lost = moved
        else:
            exposed[level + 1] += moved
    return lost


@inner
def _expose(
    pool: Pool, exposed: Floats, before: int, failed: int, one: float, rng: State
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
    if top > pool.threats.tolerated:
        return max(one, shared)
    # Of the new drive's stripes, those with 0, 1, … of the others that have failed: hypergeometric.
    others, good = failed - 1, pool.drives - failed
    for level in range(1, top + 1):
        share = 1.0
        if level - 1 > others:
            continue
        for i in range(level - 1):
            share *= (
                (others - i) / (i + 1) * (pool.width - 1 - i) / (pool.drives - 1 - i)
            )
        for i in range(pool.width - level):
            share *= (good - i) / (pool.drives - level - i)
        exposed[level] += max(0.0, share) * pool.drive_bytes
    return 0.0


@inner
def _strike(
    pool: Pool, st: PoolStates, at: int, drive: int, why: int, rng: State
) -> float:
    """Fail a drive: stripes move one level up. Return the likelihood ratio, -1 without room for it."""
    count, m = st.failed[at], pool.threats.tolerated
    if count >= st.detected_s.shape[1]:
        return -1.0
    st.detected_s[at, count] = st.time_s[at] + pool.threats.detection_s
    st.drive[at, count] = drive
    st.failed[at] = count + 1
    exposed = st.exposed_bytes[at]
    one = pool.shard_bytes / pool.stripes
    before, ratio = _worst(exposed, m), 1.0
    if pool.progress:
        st.lost[at] += _shift(pool, exposed, float(pool.drives - count), one, rng)
    else:
        st.lost[at] += _expose(pool, exposed, before, count + 1, one, rng)
    after = _worst(exposed, m)
    cause = why
    if (
        after == m
        and after > before
        and pool.threats.sector_errors > 0
        and st.lost[at] == 0
    ):
        read = (
            pool.threats.sector_errors
            * exposed[m]
            * (pool.width - m)
            / pool.drive_bytes
        )
        lost, ratio = draws.sector_lost(pool.threats, -np.expm1(-read), rng)
        if lost:
            cause = draws.SECTOR
            st.lost[at] = min(one, exposed[m])
    top = m + 1 if st.lost[at] > 0 else after
    for level in range(before + 1, top + 1):
        st.cause[at, level] = cause
    return ratio


@inner
def _release(pool: Pool, st: PoolStates, at: int) -> None:
    """Take drives off the list, oldest first, as far as what is still exposed fills fewer of them."""
    missing, level = 0.0, 0
    for i in range(1, pool.threats.tolerated + 1):
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


@inner
def _is_failed(st: PoolStates, at: int, drive: int) -> bool:
    return bool((st.drive[at, : st.failed[at]] == drive).any())


@inner
def _any_good(pool: Pool, st: PoolStates, at: int, rng: State) -> int:
    """A drive that has not failed; any number will do where drives do not age."""
    if not st.born_s.shape[1]:
        return 0
    drive = int(uniform(rng) * pool.drives)
    while _is_failed(st, at, drive):
        drive = int(uniform(rng) * pool.drives)
    return drive


@inner
def _walk(
    pool: Pool, st: PoolStates, at: int, target: int, rng: State
) -> tuple[float, int]:
    """Walk one state on; return the walk's weight (0: the horizon came first; -1: no room) and its events."""
    threats, ageing = pool.threats, st.born_s.shape[1] > 0
    fastest = threats.hazards.max()
    bursts = threats.drawn_rates.sum()
    extra = bursts - threats.burst_rates.sum()
    weight, events, exposed = 1.0, 0, st.exposed_bytes[at]
    while True:
        level = (
            threats.tolerated + 1
            if st.lost[at] > 0
            else _worst(exposed, threats.tolerated)
        )
        if level >= target:
            return weight, events
        now, count = st.time_s[at], st.failed[at]
        good = pool.drives - count
        if st.struck_left[at] > 0:
            which = st.burst[at]
            st.struck_left[at] -= 1
            lost, ratio = draws.loses_data(threats, which, rng)
            weight *= ratio
            if lost:
                ratio = _strike(
                    pool,
                    st,
                    at,
                    _any_good(pool, st, at, rng),
                    draws.AS_ONE + which,
                    rng,
                )
                events += 1
                if ratio < 0:
                    return ratio, events
                weight *= ratio
            continue
        undetected, next_s = 0, threats.horizon_s
        for i in range(count):
            if st.detected_s[at, i] > now:
                undetected += 1
                next_s = min(next_s, st.detected_s[at, i])
        # What only an undetected failure exposes cannot be rebuilt yet.
        working = _worst(exposed, max(0, level - undetected))
        pace = pool.pace_bytes_per_s * good
        finishing = False
        if working > 0 and pace > 0 and now + exposed[working] / pace <= next_s:
            next_s, finishing = now + exposed[working] / pace, True
        natural = (pool.drives if ageing else good) * fastest
        bias = 0.0
        if threats.bias_s[level] > 0 and good > 0:
            hoped = (
                1.0 / threats.horizon_s if level == 0 else 0.7 / threats.bias_s[level]
            )
            bias = max(0.0, hoped - natural)
        rate = natural + bias + bursts
        step = draws.exponential(rng) / rate if rate > 0 else np.inf
        span = min(step, next_s - now)
        weight *= np.exp((bias + extra) * span)
        st.time_s[at] = now + span
        if working > 0:
            moved = (
                exposed[working] if finishing and step >= next_s - now else pace * span
            )
            moved = min(moved, exposed[working])
            exposed[working] -= moved
            if pool.progress and working > 1:
                exposed[working - 1] += moved
        if step >= next_s - now:
            if next_s >= threats.horizon_s:
                return 0.0, events
            events += 1
            st.time_s[at] = next_s
            _release(pool, st, at)
            continue
        draw = uniform(rng) * rate
        if draw < bursts:
            which = draws.burst_at(threats, draw)
            weight *= threats.burst_rates[which] / threats.drawn_rates[which]
            st.burst[at] = which
            st.struck_left[at] = threats.burst_units[which]
            continue
        own, drive = fastest, 0
        if ageing:
            forced = draw < bursts + bias
            drive = int(uniform(rng) * pool.drives)
            if forced:
                drive = _any_good(pool, st, at, rng)
            elif _is_failed(st, at, drive):
                continue
            own = draws.hazard(threats, st.time_s[at] - st.born_s[at, drive])
            if not forced and uniform(rng) * fastest >= own:
                continue
        weight *= own / (own + bias / good) if bias > 0 else 1.0
        _release(pool, st, at)
        ratio = _strike(pool, st, at, drive, draws.ELSEWHERE, rng)
        events += 1
        if ratio < 0:
            return ratio, events
        weight *= ratio


@compiled
def stage(pool: Pool, st: PoolStates, target: int, seed: int, weights: Floats) -> int:
    """Walk from states until the target level or the horizon; as `walk_groups.stage`."""
    events = 0
    rng = np.zeros(1, dtype=np.uint64)
    for walk in range(len(weights)):
        draws.seeded(rng, seed, walk)
        weights[walk], found = _walk(pool, st, walk, target, rng)
        if weights[walk] < 0:
            return -1
        events += found
    return events
