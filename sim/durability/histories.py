"""Expected losses of large systems: histories, and side walks from the moments that could lead to loss.

`stripesim.sim.durability.splitting` starts thousands of walks, each of which follows the whole system. That
is too slow for a million drives, some of which always fail. Here few histories suffice, because each has
thousands of exposures, and side walks judge each exposure.
"""

import os
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import ceil, exp, expm1, log, log10
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import scipy

from stripesim.sim.durability.aims import aims_of, surely_lost
from stripesim.sim.durability.chain import levels_of
from stripesim.sim.durability.splitting import (
    BATCHES,
    WALKS,
    WIDTH_NINES,
    Estimate,
    Prepared,
    Spread,
    counted_losses,
    events_of_history,
    initial_state,
    prepare,
    wait_for_spare_s,
)
from stripesim.sim.durability.system import Floats, System
from stripesim.sim.durability.turns import Levels
from stripesim.sim.durability.walks import history
from stripesim.sim.observe.progress import OnStep, silent

#: Parts of the horizon, whose sums give the interval.
PARTS: Final = 20
#: Side walks from each exposure that no burst caused.
SIDES: Final = 8
#: Times in a history at which each burst strikes.
STRIKES: Final = 40
#: Side walks before the interval may end the estimate, per `walks`.
SIDE_WALKS: Final = 20
#: Events and side walks of all histories, after which no further ones begin, for 1,000 walks [count].
EFFORT_MAX: Final = 12_000_000

#: Probability of loss in an exposure above which whole histories are counted instead. Side walks miss further
#: losses of the same exposure.
LOSS_OF_EXPOSURE_MAX: Final = 0.1

#: Expected losses in a history above which whole histories of small systems are counted instead, and the
#: fewest of a batch that say more than side walks [count]. Few exposures may bring most of these losses.
LOSSES_OF_HISTORY_MAX: Final = 0.1
_COUNTED_WALKS: Final = 50

#: Exposures without a burst below which the interval says too little of them [count].
FEW_EXPOSURES: Final = 20

#: Most failures that may expose groups at the floor at the same time, on average [count].
_FLOOR_PRESENT: Final = 1.0
#: Exposures that decide the bias of side walks, most histories to find them in, and strikes in each.
_PILOT_EXPOSURES: Final = 100
_PILOT_HISTORIES: Final = 4096
_PILOT_STRIKES: Final = 4
_PILOT_SEED: Final = 1 << 32
_COUNTED_SEED: Final = 1 << 34
#: Side walks with loss that each block records for their paths.
_RECORDED: Final = 2000
#: Blocks of histories that run at the same time. Fixed, because sums depend on it in their last digits.
_BLOCKS: Final = 4


class _Study(NamedTuple):
    """A system in the form that compiled histories use: the system, its side walks, and where they begin."""

    prepared: Prepared
    side: Any
    plan: history.Plan
    seed: int


def exposure_losses(
    system: System,
    *,
    seed: int = 1,
    walks: int = WALKS,
    spread: Spread | None = None,
    progress: OnStep = silent,
) -> Estimate:
    r"""Estimate the probability of loss from histories with side walks.

    Parameters
    ----------
    system
        The system, with placement groups or pools.
    seed
        Seed of the random streams.
    walks
        At least 20 times as many side walks run.
    spread
        Maps a function over the numbers of blocks of histories. By default it uses threads on all cores.
    progress
        Called with the effort so far, after each round of histories.

    Returns
    -------
    Estimate
        The probability, its interval, and the paths to loss.

    Raises
    ------
    ValueError
        If the system is a declustered pool, which has no groups.

    Notes
    -----
    The floor is the lowest level at which less than one failure exposes groups at a time, on average. A
    higher one may be so rare that a few histories do not see it. Each loss belongs to an exposure, which
    begins when some group reaches the floor and ends when none is there, and within it to the last burst, or
    to no burst. The expected number of losses is therefore

    .. math::

        \Lambda = E\Bigl[\sum_{e} w_e\Bigr] + \sum_b r_b \int_0^H E[w_b(t)] dt

    where :math:`w_e` is the probability of loss in exposure e before the next burst, :math:`r_b` the rate of
    burst b, and :math:`w_b(t)` the probability that a strike at t loses data before the exposure ends and
    before the next burst. Side walks estimate both without bias, and a burst is struck once in each of equal
    parts of the horizon H. Exposures with loss are taken as independent, so the probability of any is
    :math:`1 - e^{-\Lambda}`. Where an exposure loses data with more than 0.1, they are not independent: whole
    histories are then followed to their first loss and counted (`counted_losses`), with a binomial interval.
    So are those of a small system with more than 0.1 expected losses: an exposure that goes on because spares
    have run out may bring nearly all of them.

    The interval is Student's, on the logarithm, from the sums of 20 parts of the horizon. A hazard that
    changes with age makes the parts differ, and the interval wider.

    On a million drives, one strike in millions destroys a group at once. Strikes are therefore aimed at
    groups. See `stripesim.sim.durability.aimed_strikes`.

    References
    ----------
    Villén-Altamirano and Villén-Altamirano: RESTART: a method for accelerating rare event simulations, 1991.
    Wolff: Poisson arrivals see time averages, Operations Research 30(2), 1982.
    """
    if system.placement == "declustered":
        raise ValueError("placement: got declustered, wanted placement groups or pools")
    study = _study_of(system, seed)
    rates = [burst.rate_per_s for burst in system.bursts]
    # A strike stands for the bursts in its part of the horizon.
    per_strike = np.array(rates) * system.horizon_s / study.plan.strikes
    scales = np.concatenate([[1.0], per_strike])
    total = _nothing_seen(study, recorded=0)
    # Whole histories with as many events as the side walks may have.
    affordable = EFFORT_MAX * walks / WALKS / events_of_history(system) / BATCHES
    is_small = affordable >= _COUNTED_WALKS
    histories = 0
    rounds = 0
    while True:
        more = max(1, histories // 2)
        seen = _histories(study, histories, more, spread)
        histories += more
        total = _added(total, seen)
        result = _estimate(study, total, scales / histories)
        rounds += 1
        effort = _Effort(total, walks)
        progress(f"{histories:,} histories with {effort}", rounds + effort.rounds_left)
        is_last = effort.is_spent or (effort.has_enough_walks and _is_narrow(result))
        often = result.loss_of_exposure > LOSS_OF_EXPOSURE_MAX
        of_history = (result.losses or 0.0) / study.prepared.copies
        frequent = of_history > LOSSES_OF_HISTORY_MAX and is_small
        if (often or frequent) and (is_last or _has_exposures(total)):
            counted = counted_losses(
                system,
                # Other walks than those of method splitting.
                seed=seed + _COUNTED_SEED,
                walks=walks if often else min(walks, int(affordable)),
                spread=spread,
                progress=progress,
            )
            return replace(counted, loss_of_exposure=result.loss_of_exposure)
        if is_last:
            return result


class _Effort:
    """The events and side walks so far, next to those that `walks` allow."""

    def __init__(self, total: history.Watched, walks: int) -> None:
        self.events, self.side_walks, _ = total.counts.tolist()
        self._walks_needed = SIDE_WALKS * walks
        self._most = EFFORT_MAX * walks / WALKS

    def __str__(self) -> str:
        return f"{self.events:,.0f} of at most {self._most:,.0f} events, {self.side_walks:,.0f} side walks"

    @property
    def has_enough_walks(self) -> bool:
        """True if the side walks suffice for an interval."""
        return bool(self.side_walks >= self._walks_needed)

    @property
    def is_spent(self) -> bool:
        """True if no further round may begin."""
        return bool(self.events + self.side_walks >= self._most)

    @property
    def rounds_left(self) -> int:
        """Further rounds after which the effort is the largest. Each adds half of what was done."""
        done = max(1.0, self.events + self.side_walks)
        return max(0, ceil(log(self._most / done, 1.5)))


def _has_exposures(total: history.Watched) -> bool:
    """Return True if enough exposures began to tell how often they lose data."""
    return bool(total.begun[0] >= _PILOT_EXPOSURES)


def _study_of(system: System, seed: int) -> _Study:
    """Choose the floor, and the bias of side walks from the lengths of exposures in a few histories."""
    levels = levels_of(system)
    prepared = prepare(system, biased=False)
    lay = prepared.layout
    threats = lay.threats
    side = lay._replace(threats=threats._replace(bias_s=np.zeros_like(threats.bias_s)))
    # Side walks draw latent errors at the moment that exposes them. A history draws none, and goes on after
    # a loss.
    unbiased = np.zeros(system.code.tolerated + 2)
    lay = lay._replace(threats=threats._replace(sector_errors=0.0, bias_s=unbiased))
    floor = _floor(system, levels)
    # An exposure lasts for as long as its drives wait for spares.
    stays_s = np.array([0.0, *levels.times_s]) + wait_for_spare_s(system)
    stays_s[:floor] = 0.0
    bias_s = np.tile(stays_s, (len(system.bursts) + 1, 1))
    aims = aims_of(lay, floor, surely_lost(system.code))
    plan = history.Plan(floor, SIDES, STRIKES, bias_s, aims)
    study = _Study(prepared._replace(layout=lay), side, plan, seed)
    if floor <= system.code.tolerated:
        bias_s[:, floor] = _exposure_lengths(study)
    return study


def _floor(system: System, levels: Levels) -> int:
    """Return the lowest level that is not always present, so that exposures begin and end."""
    rate = system.lifetime.rate_per_s
    present = system.drives * rate
    for level, time_s in enumerate(levels.times_s, start=1):
        present *= time_s
        if present < _FLOOR_PRESENT:
            return level
        present *= rate * levels.reach[level]
    return max(1, system.code.tolerated)


def _exposure_lengths(study: _Study) -> Floats:
    """Measure the mean length of exposures after independent failures and after each burst [s].

    They are at least as long as a stay at the floor, which also stands for exposures that are not seen.
    """
    plan = study.plan
    least_s = plan.bias_s[:, plan.floor]
    natural = np.zeros_like(plan.bias_s)
    pilot = study._replace(
        plan=plan._replace(sides=1, strikes=_PILOT_STRIKES, bias_s=natural),
        # Its histories are others than those of the estimate.
        seed=study.seed + _PILOT_SEED,
    )
    total = _nothing_seen(pilot, recorded=0)
    histories = 0
    while total.begun[0] < _PILOT_EXPOSURES and histories < _PILOT_HISTORIES:
        seen = _histories(pilot, histories, max(1, histories), None)
        histories += max(1, histories)
        total = _added(total, seen)
        if total.counts[0] >= EFFORT_MAX / 10:
            break
    lengths_s = total.length_s / np.maximum(total.begun, 1.0)
    return np.maximum(lengths_s, least_s)


def _histories(
    study: _Study, first: int, count: int, spread: Spread | None
) -> history.Watched:
    """Follow some histories, in blocks."""
    edges = np.unique(np.linspace(first, first + count, _BLOCKS + 1).astype(int))
    ranges = list(pairwise(edges.tolist()))

    run = partial(_block_of, study, ranges)
    numbers = range(len(ranges))
    if spread is not None:
        blocks = list(spread(run, numbers))
    else:
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            blocks = list(pool.map(run, numbers))
    total: history.Watched = blocks[0]
    for block in blocks[1:]:
        total = _added(total, block)
    return total


def _block_of(
    study: _Study, ranges: list[tuple[int, int]], block: int
) -> history.Watched:
    """Follow the histories of one block."""
    start, stop = ranges[block]
    prepared = study.prepared
    while True:
        seen = _nothing_seen(study, recorded=_RECORDED)
        state = initial_state(prepared)
        states = type(state)(*(np.repeat(part, 3, axis=0) for part in state))
        # Threads must not share the bias, which changes from walk to walk.
        threats = study.side.threats
        own = threats._replace(bias_s=threats.bias_s.copy())
        side = study.side._replace(threats=own)
        has_room = history.watch(
            prepared.layout, side, states, study.plan,
            start, stop - start, study.seed, seen,
        )  # fmt: skip
        if has_room:
            used = int(seen.counts[2])
            return seen._replace(losses=seen.losses[:used].copy())
        prepared = prepared._replace(room=2 * prepared.room)


def _nothing_seen(study: _Study, recorded: int) -> history.Watched:
    rows, levels = study.plan.bias_s.shape
    return history.Watched(
        losses_sum=np.zeros((rows, PARTS)),
        lost_sum=np.zeros((rows, PARTS)),
        begun=np.zeros(rows),
        length_s=np.zeros(rows),
        losses=np.zeros((recorded, history.LOSS_COLUMNS + levels)),
        counts=np.zeros(3),
    )


def _added(total: history.Watched, more: history.Watched) -> history.Watched:
    return history.Watched(
        losses_sum=total.losses_sum + more.losses_sum,
        lost_sum=total.lost_sum + more.lost_sum,
        begun=total.begun + more.begun,
        length_s=total.length_s + more.length_s,
        losses=np.concatenate([total.losses, more.losses]),
        counts=total.counts + more.counts,
    )


def _estimate(study: _Study, total: history.Watched, scales: Floats) -> Estimate:
    """Estimate the probability of loss. A side walk with loss counts by the scale of its row."""
    copies = study.prepared.copies
    walks = int(total.counts[1])
    events = int(total.counts[0])
    by_part = PARTS * copies * (scales @ total.losses_sum)
    expected = float(by_part.mean())
    if expected == 0:
        # Three losses more would be an unlucky draw.
        begun = np.maximum(total.begun, 1.0)
        weights = scales * begun / np.maximum(SIDES * begun, 1.0)
        high = 3 * copies * float(weights.max())
        return Estimate(
            0.0,
            0.0,
            -expm1(-high),
            walks,
            events,
            0.0,
            (),
            0.0,
            exposures=round(total.begun[0]),
        )
    error = float(by_part.std(ddof=1)) / PARTS**0.5 / expected
    half = float(scipy.special.stdtrit(PARTS - 1, 0.975)) * error
    lost = float(scales @ total.lost_sum.sum(axis=1)) * copies / expected
    return Estimate(
        -expm1(-expected),
        -expm1(-expected * exp(-half)),
        -expm1(-expected * exp(half)),
        walks,
        events,
        lost * study.prepared.loss_bytes,
        _paths(total.losses, scales),
        expected,
        float(total.losses_sum[0].sum() / max(1.0, total.begun[0])),
        round(total.begun[0]),
    )


def _is_narrow(result: Estimate) -> bool:
    return result.low > 0 and log10(result.high / result.low) <= WIDTH_NINES


def _paths(losses: Floats, scales: Floats) -> tuple[tuple[tuple[int, ...], float], ...]:
    """Return the part of each path in the recorded losses, the most frequent first."""
    weights = scales[losses[:, 0].astype(int)] * losses[:, 1]
    causes = losses[:, history.LOSS_COLUMNS :].astype(int).tolist()
    total = float(weights.sum())
    shares: dict[tuple[int, ...], float] = defaultdict(float)
    for path, weight in zip(causes, weights.tolist(), strict=True):
        shares[tuple(path)] += weight / total
    return tuple(sorted(shares.items(), key=itemgetter(1), reverse=True))
