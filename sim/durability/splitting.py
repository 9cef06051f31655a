"""Rare losses by fixed-effort multilevel splitting, a product of less rare conditional probabilities."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf, log10
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from stripesim.sim.durability.chain import levels_of
from stripesim.sim.durability.draws import Threats, shards_of_drives
from stripesim.sim.durability.losses import losses_of
from stripesim.sim.durability.probability import any_of
from stripesim.sim.durability.system import Floats, System
from stripesim.sim.durability.walks.groups import GroupConstants, States
from stripesim.sim.durability.walks.groups import stage as stage_of_groups
from stripesim.sim.durability.walks.pool import PoolConstants, PoolStates
from stripesim.sim.durability.walks.pool import stage as stage_of_pool
from stripesim.sim.observe.progress import OnStep, silent

BATCHES: Final = 20
WALKS: Final = 1000

#: Widest final interval. A wider one triggers four times as many walks, within the limits
#: below [nines].
WIDTH_NINES: Final = 0.3
#: Most walks and events of a round that saw losses, and of one that saw none [count].
EFFORT_MAX: Final = 50_000_000
UNSEEN_EFFORT_MAX: Final = 5_000_000
#: Most events that the walks of a round, and of the pilot, may be expected to have at one level [count].
#: Fewer walks run if 20 batches of `walks` would have more.
ROUND_EVENTS_MAX: Final = 1_000_000_000
_PILOT_EVENTS_MAX: Final = 100_000_000
#: Most memory for the states of a batch and their copies [B]. Fixed, because results depend on
#: it.
STATES_BYTES_MAX: Final = 100_000_000
_WALKS_MIN: Final = 10
#: Most events of one walk, so that the fewest walks stay within `ROUND_EVENTS_MAX` [count].
WALK_EVENTS_MAX: Final = ROUND_EVENTS_MAX // (BATCHES * _WALKS_MIN)

#: Plain walks that decide if losses are frequent, the part of them that makes them so, and their seed.
_PILOT_WALKS: Final = 200
_FREQUENT: Final = 0.1
_PILOT_SEED: Final = 1 << 33

#: Above this number of concurrent failures, further ones are drawn at their own rate [count].
_PLENTY: Final = 3.0

_POLICY: Final = {"parallel": 0, "serial": 1, "shared": 2}
_UNITS: Final = ("drive", "host", "rack", "site")


class Prepared(NamedTuple):
    """A system in the form that compiled walks use.

    Attributes
    ----------
    layout
        Constants of a walk.
    ages
        Drives whose age is tracked, 0 if drives do not age.
    age_s
        Age of all drives at the start [s].
    room
        Concurrent failures that a state has room for.
    copies
        Independent pools, one of which is simulated.
    loss_bytes
        Client data per lost placement group, or per lost byte of a shard [B].
    """

    layout: Any
    ages: int
    age_s: float
    room: int
    copies: int
    loss_bytes: float


class WalkBatch(NamedTuple):
    """The result of one independent batch of walks.

    Attributes
    ----------
    probability
        Probability of loss within the horizon in the simulated part.
    steps
        Conditional probability of each level.
    walks, events
        Walks begun, and events in them.
    lost_bytes
        Client data lost, the mean of walks that lose any [B].
    paths
        Part of the walks that end in loss, by their causes of levels 1, 2, ….
    """

    probability: float
    steps: tuple[float, ...]
    walks: int
    events: int
    lost_bytes: float
    paths: dict[tuple[int, ...], float]


#: Maps a function over numbers, such as those of batches.
Spread = Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]]


@dataclass(frozen=True)
class Estimate:
    """The result of all batches.

    Attributes
    ----------
    probability, low, high
        Probability of any loss within the horizon, and its 95 % interval.
    walks, events
        Walks begun, and events in them.
    lost_bytes
        Client data lost, the mean of walks that lose any [B].
    paths
        Part of each path in the losses, the most frequent first.
    losses
        Expected losses within the horizon. None if only their probability is known, and rounds to 1.
    loss_of_exposure
        Probability that an exposure without a burst loses data. 0 if losses are not counted by exposure.
    exposures
        Exposures without a burst that were seen. None if losses are not counted by exposure.
    """

    probability: float
    low: float
    high: float
    walks: int
    events: int
    lost_bytes: float
    paths: tuple[tuple[tuple[int, ...], float], ...]
    losses: float | None
    loss_of_exposure: float = 0.0
    exposures: int | None = None

    @property
    def nines(self) -> tuple[float, float, float]:
        """Nines, and the bounds of their interval. Infinite if no walk ended in loss."""
        return _nines(self.probability), _nines(self.high), _nines(self.low)


def _nines(probability: float) -> float:
    return abs(-log10(probability)) if probability else inf


def prepare(system: System, *, biased: bool = True) -> Prepared:
    """Convert a system to the form that walks use.

    Parameters
    ----------
    system
        The system.
    biased
        True to draw failures in the most exposed groups more often than they happen.
    """
    code = system.code
    # Pools that share nothing are equal and independent, so one represents all.
    one_pool = (
        system.placement == "clustered" and not system.bursts and system.spares is None
    )
    drives = system.drives
    copies = 1
    if one_pool:
        drives = code.width
        copies = system.pools
    threats = _threats(system, drives, biased=biased)
    layout: PoolConstants | GroupConstants
    if system.placement == "declustered":
        layout = _pool(system, threats)
        loss_bytes = float(code.k)
    else:
        layout = _layout(system, drives, threats)
        loss_bytes = system.client_bytes_per_group
    return Prepared(
        layout,
        ages=0 if system.lifetime.constant else drives,
        age_s=system.age_s,
        room=_room(system, drives),
        copies=copies,
        loss_bytes=loss_bytes,
    )


def _room(system: System, drives: int) -> int:
    """Return the number of concurrent failures to make room for at first."""
    struck = sum(drives_of(system, burst.unit) * burst.units for burst in system.bursts)
    slowed = 1 if system.repair.policy == "parallel" else 4
    together = drives * system.lifetime.rate_per_s * system.rebuild_s * slowed
    return int(min(drives, 16 + struck + 4 * together))


def _threats(system: System, drives: int, *, biased: bool) -> Threats:
    code = system.code
    bursts = system.bursts
    rates = np.array([burst.rate_per_s for burst in bursts])
    lost = np.array([burst.lost_fraction for burst in bursts])
    drawn_rates = rates
    drawn_lost = lost
    bias_s = np.zeros(code.tolerated + 1)
    if biased:
        bias_s = np.array(_bias_s(system, drives))
    if biased and bursts:
        # Draw a burst in every third walk at least.
        drawn_rates = np.maximum(rates, 0.3 / system.horizon_s)
        drawn_lost = np.array(_drawn_lost_fractions(system))
    return Threats(
        tolerated=code.tolerated,
        edges_s=np.array(system.lifetime.edges_s),
        hazards=np.array(system.lifetime.hazards_per_s),
        burst_rates=rates,
        burst_lost=lost,
        burst_units=np.array([burst.units for burst in bursts], dtype=np.int32),
        drawn_rates=drawn_rates,
        drawn_lost=drawn_lost,
        bias_s=bias_s,
        detection_s=0.0 if _repairs_in_one(system) else system.repair.detection_s,
        horizon_s=system.horizon_s,
        sector_errors=system.sector_errors,
    )


def _drawn_lost_fractions(system: System) -> list[float]:
    """Return the probability with which a drive struck by each burst is drawn to lose its data.

    About half as many drives as a loss takes are then struck, if not more.
    """
    fractions = []
    for burst in system.bursts:
        struck = drives_of(system, burst.unit) * burst.units
        half_lethal = (system.code.tolerated + 1) / 2 / struck
        fractions.append(min(1.0, max(burst.lost_fraction, half_lethal)))
    return fractions


def _repairs_in_one(system: System) -> bool:
    """Return True if one exponential time covers detection and rebuild of a drive, as in the chain."""
    return system.placement == "clustered" and not system.repair.fixed


def _bias_s(system: System, drives: int) -> list[float]:
    """Return the time scale for drawing failures at each level: about the time that a walk stays there.

    It is one stay, at most the horizon, plus the part of the horizon spent at the level anyway.
    Weights then remain near 1. A walk that stayed n times longer would carry a weight of e to the n.
    """
    levels = levels_of(system)
    rate = system.lifetime.rate_per_s
    wait_s = wait_for_spare_s(system)
    times_s = [time_s + wait_s for time_s in levels.times_s]
    bias_s = [1.0]
    # Mean number of failures at a level at any moment.
    present = drives * rate
    if times_s and present * times_s[0] > _PLENTY:
        bias_s.append(0.0)
    for level, time_s in enumerate(times_s, start=1):
        present *= time_s
        if len(bias_s) == level:
            stay_s = min(time_s, system.horizon_s)
            bias_s.append(stay_s + system.horizon_s * min(1.0, present))
        present *= rate * levels.reach[level]
    return bias_s


def wait_for_spare_s(system: System) -> float:
    """Return about the longest time that a failed drive waits for a spare [s]."""
    if system.spares is None:
        return 0.0
    on_order = system.drives * system.lifetime.rate_per_s * system.replacement_s
    if on_order >= system.spares:
        # More drives fail than are replaced.
        return system.horizon_s
    return system.replacement_s


def drives_of(system: System, unit: str) -> int:
    """Return the largest number of drives in a unit."""
    if unit == "drive":
        return 1
    return int(np.bincount(system.units[unit]).max())


def _pool(system: System, threats: Threats) -> PoolConstants:
    width = system.code.width
    return PoolConstants(
        threats=threats,
        drives=system.drives,
        width=width,
        shard_bytes=system.drives * system.drive_bytes / width,
        drive_bytes=float(system.drive_bytes),
        stripes=inf if system.stripes is None else float(system.stripes),
        pace_bytes_per_s=system.repair.bytes_per_s / (system.code.repair_reads + 1),
        progress=system.repair.progress,
    )


def _layout(system: System, drives: int, threats: Threats) -> GroupConstants:
    code = system.code
    repair = system.repair
    groups = system.layout
    if system.placement == "clustered" and drives == code.width:
        groups = system.layout[:1]
    members = np.ascontiguousarray(groups)
    members = members.astype(np.int32, copy=False)
    held = shards_of_drives(members, drives)
    unit_of = np.zeros((len(_UNITS), drives), dtype=np.int32)
    unit_of[0] = np.arange(drives)
    counts = np.ones(len(_UNITS), dtype=np.int32)
    counts[0] = drives
    for index, unit in enumerate(_UNITS[1:], start=1):
        if unit in system.units and drives == system.drives:
            unit_of[index] = system.units[unit]
            counts[index] = int(system.units[unit].max()) + 1
    units_max = int(counts.max())
    unit_first = np.zeros((len(_UNITS), units_max + 1), dtype=np.int32)
    for kind in range(len(_UNITS)):
        sizes = np.bincount(unit_of[kind], minlength=units_max)
        unit_first[kind, 1:] = np.cumsum(sizes)
    burst_units = [_UNITS.index(burst.unit) for burst in system.bursts]
    distances = np.zeros(0, dtype=np.uint8)
    if code.distances is not None:
        distances = code.distances
    pool_of = np.zeros(drives, dtype=np.int32)
    if system.placement == "clustered":
        pool_of[members] = np.arange(len(members), dtype=np.int32)[:, None]
    shard_s = system.group_transfer_s
    if _repairs_in_one(system):
        shard_s += repair.detection_s
    return GroupConstants(
        threats=threats,
        members=members,
        first=held.first,
        group=held.group,
        shard=held.shard,
        unit_of=unit_of,
        unit_counts=counts,
        unit_drives=np.argsort(unit_of, axis=1, kind="stable").astype(np.int32),
        unit_first=unit_first,
        burst_unit=np.array(burst_units, dtype=np.int32),
        distances=distances,
        shard_s=shard_s,
        lanes=system.groups_at_once,
        # Prebuilt code takes a float alone.
        replacement_s=float(system.replacement_s),
        policy=_POLICY[repair.policy],
        pool_of=pool_of,
        fixed=repair.fixed,
        prioritised=repair.prioritised,
        spares=-1 if system.spares is None else system.spares,
    )


def initial_state(prepared: Prepared) -> Any:
    """Return the state of a system without failures, as the only one on the first axis.

    Parameters
    ----------
    prepared
        The system.
    """
    lay = prepared.layout
    room = prepared.room
    common: dict[str, Any] = {
        "time_s": np.zeros(1),
        "lost": np.zeros(1),
        "failed": np.zeros(1, dtype=np.int32),
        "burst": np.zeros(1, dtype=np.int32),
        "struck_left": np.zeros(1, dtype=np.int32),
        "drive": np.zeros((1, room), dtype=np.int32),
        "born_s": np.full((1, prepared.ages), -prepared.age_s),
        "cause": np.zeros((1, lay.threats.tolerated + 2), dtype=np.int32),
    }
    if isinstance(lay, PoolConstants):
        exposed = np.zeros((1, lay.threats.tolerated + 1))
        return PoolStates(
            **common, exposed_bytes=exposed, detected_s=np.zeros((1, room))
        )
    burst_units = max(lay.threats.burst_units, default=0)
    return States(
        **common,
        virtual_s=np.zeros(1),
        lane=np.zeros((1, room), dtype=np.int32),
        ready_s=np.zeros((1, room)),
        review=np.zeros((1, room), dtype=np.uint8),
        in_lane=np.zeros((1, room, lay.lanes), dtype=np.int32),
        end_s=np.zeros((1, room, lay.lanes)),
        status=np.zeros((1, room, int(np.diff(lay.first).max())), dtype=np.uint8),
        struck=np.zeros((1, int(burst_units)), dtype=np.int32),
        spares_due_s=np.zeros((1, max(0, lay.spares))),
    )


def run_batch(
    prepared: Prepared, seed: int, number: int, walks: int, *, levels: bool = True
) -> WalkBatch:
    """Run one batch of walks.

    Parameters
    ----------
    prepared
        The system.
    seed
        Seed of the random streams.
    number
        Number of the batch.
    walks
        Walks at each level.
    levels
        False to let each walk continue to loss or the horizon, without splitting.

    Returns
    -------
    WalkBatch
        The result.

    Notes
    -----
    States that reach a level are drawn for the next one in proportion to their weights (systematic
    resampling), and the level's probability is the mean weight, so the product is unbiased. It is also
    unbiased if states are drawn uniformly and keep their weights.

    References
    ----------
    Garvels: The splitting method in rare event simulation, 2000, chapter 2.
    Del Moral, Garnier: Genealogical particle analysis of rare events, Annals of Applied Probability 15(4),
    2005.
    """
    layout = prepared.layout
    tolerated = layout.threats.tolerated
    stage: Any = stage_of_groups
    if isinstance(layout, PoolConstants):
        stage = stage_of_pool
    targets = range(1, tolerated + 2) if levels else [tolerated + 1]
    generator = np.random.default_rng((seed, number))
    states = initial_state(prepared)
    picks = np.zeros(walks, dtype=np.int64)
    carried = np.ones(1)
    reached = 1.0
    before = 1.0
    steps: list[float] = []
    events = 0
    for target in targets:
        states = type(states)(*(part[picks] for part in states))
        weights = np.zeros(walks)
        stage_seed = int(generator.integers(1 << 62))
        stage_events = int(stage(layout, states, target, stage_seed, weights))
        if stage_events < 0:
            roomier = prepared._replace(room=2 * prepared.room)
            return run_batch(roomier, seed, number, walks, levels=levels)
        events += stage_events
        weights *= carried[picks]
        estimated = reached * float(weights.mean())
        steps.append(estimated / before)
        before = estimated
        if steps[-1] == 0:
            return WalkBatch(0.0, tuple(steps), walks * len(steps), events, 0.0, {})
        is_last = target > tolerated
        shares, carried = _shares_and_weights(weights, layout.threats, is_last=is_last)
        reached *= float(shares.mean())
        picks = _resampled(shares, generator)
    paths = Counter(tuple(row) for row in states.cause[picks, 1:].tolist())
    return WalkBatch(
        float(np.prod(steps)),
        tuple(steps),
        walks * len(steps),
        events,
        float(states.lost[picks].mean()) * prepared.loss_bytes,
        {path: count / walks for path, count in paths.items()},
    )


def _shares_and_weights(
    weights: Floats, threats: Threats, *, is_last: bool
) -> tuple[Floats, Floats]:
    """Return the shares in which states are drawn for the next level, and the weights that they then carry.

    Bursts and latent errors are drawn more often than they happen, so states after one have low weights and
    would hardly be drawn again in proportion to them. With either, states are drawn uniformly.
    """
    drawn_often = len(threats.burst_rates) > 0 or threats.sector_errors > 0
    if is_last or not drawn_often:
        return weights, np.ones(len(weights))
    return (weights > 0).astype(float), weights


def _resampled(shares: Floats, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw as many walks as there are, in proportion to their shares (systematic resampling)."""
    walks = len(shares)
    quantiles = (np.arange(walks) + generator.random()) / walks
    picks = np.searchsorted(np.cumsum(shares) / shares.sum(), quantiles)
    return picks.clip(max=walks - 1)


def estimate(batches: list[WalkBatch], copies: int, *, plain: bool = False) -> Estimate:
    """Combine batches.

    Parameters
    ----------
    batches
        Independent and unbiased results.
    copies
        Independent pools, one of which was simulated.
    plain
        True if all walks are independent and have the same weight.

    Returns
    -------
    Estimate
        The mean, with Student's interval on its logarithm.

    Notes
    -----
    The relative standard error of the mean is used as the standard error of its logarithm, which holds if
    it is small. If no batch saw a loss, the interval ends at the value that three lost walks would give.
    Plain walks are counted instead: the interval is that of a binomial distribution.

    References
    ----------
    Clopper and Pearson: The use of confidence or fiducial limits illustrated in the case of the binomial,
    Biometrika 26(4), 1934.
    """
    values = np.array([min(1.0, batch.probability) for batch in batches])
    walks = sum(batch.walks for batch in batches)
    events = sum(batch.events for batch in batches)
    mean = float(values.mean())
    if mean == 0:
        reached = max(float(np.prod(batch.steps[:-1])) for batch in batches)
        walks_per_level = walks / len(batches[0].steps)
        high = any_of(min(1.0, 3 * reached / walks_per_level), copies)
        return Estimate(0.0, 0.0, high, walks, events, 0.0, (), 0.0)
    if plain:
        low, high = _binomial_interval(mean, walks)
    else:
        error = float(values.std(ddof=1)) / len(values) ** 0.5 / mean
        half = float(scipy.special.stdtrit(len(values) - 1, 0.975)) * error
        low = mean * float(np.exp(-half))
        high = min(1.0, mean * float(np.exp(half)))
    paths: dict[tuple[int, ...], float] = defaultdict(float)
    for batch in batches:
        for path, share in batch.paths.items():
            paths[path] += float(share * batch.probability / values.sum())
    lost_bytes = sum(batch.lost_bytes * batch.probability for batch in batches)
    losses = losses_of(mean)
    return Estimate(
        any_of(mean, copies),
        any_of(low, copies),
        any_of(high, copies),
        walks,
        events,
        float(lost_bytes / values.sum()),
        tuple(sorted(paths.items(), key=itemgetter(1), reverse=True)),
        None if losses is None else copies * losses,
    )


def _binomial_interval(share: float, walks: int) -> tuple[float, float]:
    """Return the 95 % interval of a probability from the share of independent walks."""
    lost = round(share * walks)
    high = 1.0
    if lost < walks:
        high = float(scipy.special.betaincinv(lost + 1, walks - lost, 0.975))
    return float(scipy.special.betaincinv(lost, walks - lost + 1, 0.025)), high


def split(
    system: System,
    *,
    seed: int = 1,
    batches: int = BATCHES,
    walks: int = WALKS,
    spread: Spread | None = None,
    progress: OnStep = silent,
) -> Estimate:
    """Estimate the probability of loss by splitting.

    Parameters
    ----------
    system
        Scheme, drives, repair and bursts.
    seed
        Seed of the random streams.
    batches
        Number of independent batches.
    walks
        Walks per level and batch in the first round. See `WIDTH_NINES`.
    spread
        Maps a function over batch numbers. By default it uses threads on all cores.
    progress
        Called with the effort so far, after each batch.

    Returns
    -------
    Estimate
        The probability and the paths to loss.

    Raises
    ------
    ValueError
        If one walk is expected to have more than `WALK_EVENTS_MAX` events.

    Notes
    -----
    If a tenth of a few plain walks lose data, all walks are plain: neither split nor weighted. A weighted
    walk that stays long at a level has a large weight that few walks have, and the mean of all others is too
    low.
    """
    walk_events = events_of_history(system)
    if walk_events > WALK_EVENTS_MAX:
        raise ValueError(
            f"horizon_s: got {system.horizon_s:g}, with {walk_events:.2g} events in a walk, wanted at most "
            f"{WALK_EVENTS_MAX:.2g}"
        )
    prepared = prepare(system, biased=False)
    frequent = _is_frequent(prepared, seed, walk_events)
    if not frequent:
        prepared = prepare(system)
    walks_max = _walks_max(prepared, walk_events, batches, ROUND_EVENTS_MAX)
    walks = min(walks, walks_max)
    while True:
        run = partial(run_batch, prepared, seed, walks=walks, levels=not frequent)
        results = _run_batches(run, batches, spread, progress)
        result = estimate(results, prepared.copies, plain=frequent)
        if _is_final(result) or 4 * walks > walks_max:
            return result
        walks *= 4


def _run_batches(
    run: Callable[[int], WalkBatch],
    batches: int,
    spread: Spread | None,
    progress: OnStep,
) -> list[WalkBatch]:
    """Run the batches of one round, and tell the effort after each."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results: list[WalkBatch] = []
        events = 0
        for batch in (spread or pool.map)(run, range(batches)):
            results.append(batch)
            events += batch.events
            done = f"{len(results)} of {batches} batches, {events:,} events"
            progress(done, batches)
        return results


def counted_losses(
    system: System, *, seed: int, walks: int, spread: Spread | None, progress: OnStep
) -> Estimate:
    """Count the walks that lose data, neither split nor weighted, in a system where many do.

    Parameters
    ----------
    system, seed, walks, spread, progress
        As for `split`.
    """
    prepared = prepare(system, biased=False)
    walk_events = events_of_history(system)
    walks = min(walks, _walks_max(prepared, walk_events, BATCHES, ROUND_EVENTS_MAX))
    run = partial(run_batch, prepared, seed, walks=walks, levels=False)
    results = _run_batches(run, BATCHES, spread, progress)
    return estimate(results, prepared.copies, plain=True)


def events_of_history(system: System) -> float:
    """Estimate the events of one walk until the horizon: failures, rebuilt shards, and bursts.

    Parameters
    ----------
    system
        The system.

    Returns
    -------
    float
        Number of events until the horizon [count].
    """
    shards = 1.0
    if system.placement != "declustered":
        shards = system.layout.size / system.drives
    lost = system.failures
    bursts = 0.0
    for burst in system.bursts:
        struck = burst.units * drives_of(system, burst.unit)
        count = burst.rate_per_s * system.horizon_s
        bursts += count
        lost += count * struck * burst.lost_fraction
    # Each lost drive fails, is detected, and gets its shards back one by one.
    return bursts + lost * (2 + shards)


def _is_frequent(prepared: Prepared, seed: int, walk_events: float) -> bool:
    """Return True if plain walks often lose data."""
    walks_max = _walks_max(prepared, walk_events, 1, _PILOT_EVENTS_MAX)
    walks = min(_PILOT_WALKS, walks_max)
    # The walks are others than those of the estimate.
    pilot = run_batch(prepared, seed + _PILOT_SEED, 0, walks, levels=False)
    return pilot.probability >= _FREQUENT


def _is_final(result: Estimate) -> bool:
    """Return True if an estimate is precise enough, or a more precise one would take too long."""
    if result.low > 0 and log10(result.high / result.low) <= WIDTH_NINES:
        return True
    effort_max = EFFORT_MAX if result.probability else UNSEEN_EFFORT_MAX
    return 4 * (result.walks + result.events) > effort_max


def _walks_max(
    prepared: Prepared,
    walk_events: float,
    batches: int,
    events_max: int,
) -> int:
    """Return the walks of a batch, at most, so that states fit into memory and events into a budget."""
    state_bytes: int = sum(part.nbytes for part in initial_state(prepared))
    stored = STATES_BYTES_MAX // (2 * state_bytes)
    affordable = int(events_max / (batches * max(1.0, walk_events)))
    return max(_WALKS_MIN, min(stored, affordable))


def plain_monte_carlo(
    system: System, *, seed: int = 1, batches: int = BATCHES, walks: int = WALKS
) -> Estimate:
    """Estimate the probability of loss without splitting or importance sampling, as a check of `split`.

    Parameters
    ----------
    system
        The system.
    seed
        Seed of the random streams.
    batches
        Number of batches.
    walks
        Walks per batch.
    """
    prepared = prepare(system, biased=False)
    results = [
        run_batch(prepared, seed, number, walks, levels=False)
        for number in range(batches)
    ]
    return estimate(results, prepared.copies, plain=True)
