"""One walk over a declustered pool: stripes are on any drives, and the worst are rebuilt first.

If every combination of drives has stripes, only the bytes by number of missing shards matter. With
progress, rebuilding the worst level fills the one below it, and the next failure exposes only the
remainder. Without progress, each failed drive adds its stripes that miss 1, 2, … shards, whatever had
been rebuilt before, and the worst of them are rebuilt first. Markov chain calculators and Wang et al.
(mlec-sim, SC'23) make the latter assumption.
"""

from typing import NamedTuple

import numpy as np

from stripesim.sim.durability import draws
from stripesim.sim.durability.draws import State, compiled, inner, uniform, wide
from stripesim.sim.durability.system import Floats, Ints


class PoolConstants(NamedTuple):
    """The constants of a walk.

    Attributes
    ----------
    threats
        Causes of failures.
    drives, width
        Number of drives, and of shards per stripe.
    shard_bytes
        One shard of each stripe: the bytes of all drives over the width [B].
    drive_bytes
        Bytes stored on a drive [B].
    stripes
        Number of stripes, infinite if every combination of drives has some.
    pace_bytes_per_s
        Bytes rebuilt per surviving drive [B/s].
    progress
        True if rebuilt stripes are safe from the next failure.
    """

    threats: draws.Threats
    drives: int
    width: int
    shard_bytes: float
    drive_bytes: float
    stripes: float
    pace_bytes_per_s: float
    progress: bool


class PoolStates(NamedTuple):
    """Recorded states, one per element of the first axis.

    Attributes not listed are those of `stripesim.sim.durability.walks.groups.States`.

    Attributes
    ----------
    failed
        Failed drives since the pool was last complete.
    drive
        Numbers of the failed drives, shape (states, room). Used only if drives age.
    exposed_bytes
        One shard of the stripes with each number of missing shards [B], shape (states,
        tolerated + 1). Element 0 is unused.
    detected_s
        Time at which each failure is detected [s], shape (states, room).
    lost
        One shard of the lost stripes at the end [B].
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


@inner
def _worst(exposed: Floats, level: int) -> int:
    """Return the highest level, at most `level`, with exposed bytes."""
    while level > 0 and exposed[level] <= 0:
        level -= 1
    return level


@inner
def _some(expected: float, stripe: float, rng: State) -> float:
    """Return bytes of an expected size. Below one stripe, draw one stripe or none."""
    if expected >= stripe:
        return expected
    if uniform(rng) < -np.expm1(-expected / stripe):
        return stripe
    return 0.0


@inner
def _if_any(expected: float, stripe: float) -> float:
    """Return the mean of bytes of an expected size, given that they include a stripe."""
    if expected >= stripe:
        return expected
    return float(expected / -np.expm1(-expected / stripe))


@inner
def _shift(
    pool: PoolConstants,
    exposed: Floats,
    lost_before: float,
    good: float,
    stripe: float,
    rng: State,
) -> float:
    """Move stripes with a shard on the failed drive one level up, and return the lost bytes."""
    tolerated = pool.threats.tolerated
    unexposed = pool.shard_bytes - exposed.sum() - lost_before
    lost = 0.0
    for level in range(tolerated, -1, -1):
        have = unexposed if level == 0 else exposed[level]
        moved = 0.0
        if have > 0:
            expected = have * (pool.width - level) / good
            moved = min(have, _some(expected, stripe, rng))
            if level == tolerated and moved > 0:
                moved = min(have, _if_any(expected, stripe))
        if level > 0:
            exposed[level] -= moved
        if level == tolerated:
            lost = moved
        else:
            exposed[level + 1] += moved
    return lost


@inner
def _expose(
    pool: PoolConstants,
    exposed: Floats,
    before: int,
    failed: int,
    together: bool,
    stripe: float,
    rng: State,
) -> float:
    """Expose the failed drive's stripes as if no stripe had been rebuilt, and return the lost bytes.

    Of drives that a burst takes `together`, any set may share stripes. Otherwise those count that the worst
    stripes miss.
    """
    tolerated = pool.threats.tolerated
    earlier = failed - 1
    top = min(before, tolerated) + 1
    shared = 0.0
    while top > 0:
        others = earlier if together else top - 1
        shared = pool.drive_bytes * _share_with(pool, others, top - 1)
        if top == 1 or _some(shared, stripe, rng) > 0:
            break
        top -= 1
    if top > tolerated:
        return _if_any(shared, stripe)
    # Stripes of the new drive that have 0, 1, … of the drives failed before.
    for level in range(1, top + 1):
        exposed[level] += pool.drive_bytes * _share_with(pool, earlier, level - 1)
    return 0.0


@inner
def _share_with(pool: PoolConstants, others: int, missing: int) -> float:
    """Return the part of a drive's stripes with exactly so many shards on other drives (hypergeometric)."""
    if missing > others:
        return 0.0
    good = pool.drives - 1 - others
    share = 1.0
    for i in range(missing):
        share *= (others - i) / (i + 1) * (pool.width - 1 - i) / (pool.drives - 1 - i)
    for i in range(pool.width - 1 - missing):
        share *= (good - i) / (pool.drives - 1 - missing - i)
    return max(0.0, share)


@inner
def _strike(
    pool: PoolConstants, st: PoolStates, at: int, drive: int, why: int, rng: State
) -> float:
    """Fail a drive: stripes move one level up. Return the likelihood ratio, or −1 without room."""
    count = st.failed[at]
    if count >= st.detected_s.shape[1]:
        return -1.0
    threats = pool.threats
    tolerated = threats.tolerated
    st.detected_s[at, count] = st.time_s[at] + threats.detection_s
    st.drive[at, count] = drive
    st.failed[at] = count + 1
    exposed = st.exposed_bytes[at]
    stripe = pool.shard_bytes / pool.stripes
    before = _worst(exposed, tolerated)
    if pool.progress:
        good = float(pool.drives - count)
        st.lost[at] += _shift(pool, exposed, st.lost[at], good, stripe, rng)
    else:
        together = why >= draws.AS_ONE
        st.lost[at] += _expose(pool, exposed, before, count + 1, together, stripe, rng)
    top = _worst(exposed, tolerated)
    cause = why
    ratio = 1.0
    has_errors = threats.sector_errors > 0
    if has_errors and before < top == tolerated and st.lost[at] == 0:
        read_bytes = exposed[tolerated] * (pool.width - tolerated)
        errors = threats.sector_errors * read_bytes / pool.drive_bytes
        lost, ratio = draws.sector_lost(threats, -np.expm1(-errors), wide(1), rng)
        if lost:
            cause = draws.SECTOR
            # Of stripes without size, too, the lost one counts.
            st.lost[at] = max(1.0, min(stripe, exposed[tolerated]))
    if st.lost[at] > 0:
        top = tolerated + 1
    for level in range(before + 1, top + 1):
        st.cause[at, level] = cause
    return ratio


@inner
def _release(pool: PoolConstants, st: PoolStates, at: int) -> None:
    """Remove drives from the list, the oldest first, once the exposed bytes fill fewer drives."""
    missing = 0.0
    level = 0
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
    i = 0
    while i < st.failed[at] and st.drive[at, i] != drive:
        i += 1
    return bool(i < st.failed[at])


@inner
def _any_good(pool: PoolConstants, st: PoolStates, at: int, rng: State) -> int:
    """Draw a drive that has not failed. Without ageing, any number will do."""
    if not st.born_s.shape[1]:
        return 0
    drive = int(uniform(rng) * pool.drives)
    while _is_failed(st, at, drive):
        drive = int(uniform(rng) * pool.drives)
    return drive


@inner
def _level(pool: PoolConstants, st: PoolStates, at: int) -> int:
    """Return the most shards that a stripe misses: above `tolerated` once stripes are lost."""
    if st.lost[at] > 0:
        return pool.threats.tolerated + 1
    return _worst(st.exposed_bytes[at], pool.threats.tolerated)


@inner
def _strike_of_burst(
    pool: PoolConstants, st: PoolStates, at: int, weight: float, rng: State
) -> tuple[float, int]:
    """Strike the next drive of a burst, and return the weight (−1 without room) and the events."""
    which = st.burst[at]
    st.struck_left[at] -= 1
    loses, ratio = draws.loses_data(pool.threats, which, rng)
    weight *= ratio
    if not loses:
        return weight, 0
    drive = _any_good(pool, st, at, rng)
    ratio = _strike(pool, st, at, drive, draws.AS_ONE + which, rng)
    if ratio < 0:
        return ratio, 1
    return weight * ratio, 1


@inner
def _next_end(
    pool: PoolConstants, st: PoolStates, at: int, level: int, pace_bytes_per_s: float
) -> tuple[float, int, bool]:
    """Return the next end without a failure [s], the level that is rebuilt, and True if its rebuild ends.

    Otherwise a failure is detected then, or the horizon is reached. Nothing is rebuilt at level 0.
    """
    now = st.time_s[at]
    exposed = st.exposed_bytes[at]
    undetected = 0
    next_s = pool.threats.horizon_s
    for i in range(st.failed[at]):
        if st.detected_s[at, i] > now:
            undetected += 1
            next_s = min(next_s, st.detected_s[at, i])
    # Data exposed only by an undetected failure cannot be rebuilt yet.
    working = _worst(exposed, max(0, level - undetected))
    if working > 0 and pace_bytes_per_s > 0:
        rebuilt_s = now + exposed[working] / pace_bytes_per_s
        if rebuilt_s <= next_s:
            return rebuilt_s, working, True
    return next_s, working, False


@inner
def _rebuild(
    pool: PoolConstants, exposed: Floats, working: int, most_bytes: float
) -> None:
    """Rebuild at most so many bytes of a level, which then miss one shard less, or none."""
    if working <= 0:
        return
    moved = min(most_bytes, exposed[working])
    exposed[working] -= moved
    if pool.progress and working > 1:
        exposed[working - 1] += moved


@inner
def _natural_per_s(pool: PoolConstants, st: PoolStates, at: int) -> float:
    """Return the rate of failures before those are left out that do not happen (thinning) [1/s]."""
    ageing = st.born_s.shape[1] > 0
    drives = pool.drives if ageing else pool.drives - st.failed[at]
    return float(drives * draws.largest(pool.threats.hazards))


@inner
def _bias_per_s(pool: PoolConstants, level: int, good: int, natural: float) -> float:
    """Return the rate of failures that splitting adds to the natural one [1/s]."""
    threats = pool.threats
    if threats.bias_s[level] <= 0 or good <= 0:
        return 0.0
    wanted = 1.0 / threats.horizon_s
    if level > 0:
        wanted = 0.7 / threats.bias_s[level]
    return max(0.0, wanted - natural)


@inner
def _candidate(
    pool: PoolConstants, st: PoolStates, at: int, is_forced: bool, rng: State
) -> tuple[int, float]:
    """Draw the drive that fails, and return it and its hazard [1/s], which is −1 if none fails."""
    fastest = draws.largest(pool.threats.hazards)
    if not st.born_s.shape[1]:
        return 0, fastest
    drive = int(uniform(rng) * pool.drives)
    if is_forced:
        drive = _any_good(pool, st, at, rng)
    elif _is_failed(st, at, drive):
        return drive, -1.0
    hazard = draws.hazard(pool.threats, st.time_s[at] - st.born_s[at, drive])
    if not is_forced and uniform(rng) * fastest >= hazard:
        return drive, -1.0
    return drive, hazard


@inner
def _walk(
    pool: PoolConstants, st: PoolStates, at: int, target: int, rng: State
) -> tuple[float, int]:
    """Advance one walk, and return its weight (0 at the horizon, −1 without room) and its events."""
    threats = pool.threats
    bursts = draws.total(threats.drawn_rates)
    extra = bursts - draws.total(threats.burst_rates)
    weight = 1.0
    events = 0
    while True:
        level = _level(pool, st, at)
        # A burst that destroys stripes goes on to strike its other drives, and may destroy more.
        destroys = level > threats.tolerated and st.struck_left[at] > 0
        if level >= target and not destroys:
            return weight, events
        if st.struck_left[at] > 0:
            weight, struck = _strike_of_burst(pool, st, at, weight, rng)
            events += struck
            if weight < 0:
                return weight, events
            continue
        now = st.time_s[at]
        good = pool.drives - st.failed[at]
        pace = pool.pace_bytes_per_s * good
        next_s, working, is_rebuilt = _next_end(pool, st, at, level, pace)
        natural = _natural_per_s(pool, st, at)
        bias = _bias_per_s(pool, level, good, natural)
        rate = natural + bias + bursts
        step = draws.next_event_s(rate, rng)
        span = min(step, next_s - now)
        weight *= np.exp((bias + extra) * span)
        st.time_s[at] = now + span
        due = step >= next_s - now
        # The pace times the span would leave a rest by rounding.
        most_bytes = np.inf if is_rebuilt and due else pace * span
        _rebuild(pool, st.exposed_bytes[at], working, most_bytes)
        if due:
            if next_s >= threats.horizon_s:
                return 0.0, events
            events += 1
            st.time_s[at] = next_s
            _release(pool, st, at)
            continue
        draw = uniform(rng) * rate
        if draw < bursts:
            weight *= draws.begin_burst(threats, st, at, draw)
            continue
        drive, hazard = _candidate(pool, st, at, draw < bursts + bias, rng)
        if hazard < 0:
            continue
        if bias > 0:
            weight *= hazard / (hazard + bias / good)
        _release(pool, st, at)
        ratio = _strike(pool, st, at, drive, draws.ELSEWHERE, rng)
        events += 1
        if ratio < 0:
            return ratio, events
        weight *= ratio


def stage(
    pool: PoolConstants, st: PoolStates, target: int, seed: int, weights: Floats
) -> int:
    """Walk from states until the target level or the horizon.

    See `stripesim.sim.durability.walks.groups.stage`.
    """
    rng = np.zeros(1, dtype=np.uint64)
    return _stage(pool, st, target, seed, rng, weights)


@compiled
def _stage(
    pool: PoolConstants,
    st: PoolStates,
    target: int,
    seed: int,
    rng: State,
    weights: Floats,
) -> int:
    """Walk with the state of a random stream."""
    total = 0
    for walk in range(len(weights)):
        draws.seeded(rng, seed, walk)
        weights[walk], events = _walk(pool, st, walk, target, rng)
        if weights[walk] < 0:
            return -1
        total += events
    return total
