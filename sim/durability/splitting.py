"""Fixed-effort multilevel splitting: rare loss as a product of steps that are not rare."""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf, log10
from typing import Any, Final, NamedTuple

import numpy as np
import scipy

from stripesim.sim.durability import walk_groups, walk_pool
from stripesim.sim.durability.chain import any_of, levels_of
from stripesim.sim.durability.draws import Threats
from stripesim.sim.durability.system import System, group_bytes

BATCHES: Final = 20
WALKS: Final = 1000

#: An interval wider than this is narrowed by four times as many walks, within the limits below.
WIDTH_NINES: Final = 0.3
#: Walks begun and events in them, of a round that saw losses and of one that saw none.
EFFORT_MAX: Final = 50_000_000
UNSEEN_EFFORT_MAX: Final = 5_000_000
#: States of a batch with those it goes on from [B]. It does not depend on the machine, as results do not.
STATES_BYTES_MAX: Final = 100_000_000
_WALKS_MIN: Final = 10

#: Above so many concurrent failures a further one need not be helped along.
_PLENTY: Final = 3.0

_POLICY: Final = {"parallel": 0, "serial": 1, "shared": 2}
_UNITS: Final = ("drive", "host", "rack")


class Prepared(NamedTuple):
    """A system as the compiled walks take it."""

    layout: Any
    drives_born: int  # Drives whose age is kept; 0 where it does not matter
    age_s: float
    room: int  # Concurrent failures that a state has room for
    copies: int  # Independent pools, of which one is simulated
    loss_bytes: float
    """Client data that one lost placement group held, or one lost byte of a shard stands for [B]."""


class Batch(NamedTuple):
    """What one independent batch of walks gave."""

    probability: float  # Of loss within the horizon, of the part that is simulated
    steps: tuple[float, ...]  # Conditional probability of each level
    walks: int
    events: int
    lost_bytes: float  # Client data lost, the mean of walks that lose some [B]
    paths: dict[
        tuple[int, ...], float
    ]  # Causes of levels 1, 2, …, by share of the walks that end in loss


@dataclass(frozen=True)
class Estimate:
    """Batches put together."""

    # Of any loss within the horizon, with a 95 % interval.
    probability: float
    low: float
    high: float
    walks: int
    events: int
    lost_bytes: float
    paths: tuple[tuple[tuple[int, ...], float], ...]  # Most frequent first

    @property
    def nines(self) -> tuple[float, float, float]:
        """Nines, and the ends of their interval; infinite where no walk was lost."""
        values = [
            inf if p == 0 else abs(-log10(p))
            for p in (self.probability, self.high, self.low)
        ]
        return values[0], values[1], values[2]


def prepare(system: System, *, biased: bool = True) -> Prepared:
    """Bring a system into the form that walks take; `biased`: the most exposed fail more often."""
    code, repair = system.code, system.repair
    alone = (
        system.placement == "clustered" and not system.bursts and system.spares is None
    )
    drives = code.width if alone else system.drives
    threats = _threats(system, drives, biased=biased)
    struck = sum(
        _drives_of(system, burst.unit) * burst.units for burst in system.bursts
    )
    seconds = repair.detection_s + system.transfer_s
    together = (
        drives
        * system.lifetime.rate_per_s
        * seconds
        * (4 if repair.policy != "parallel" else 1)
    )
    room = int(min(drives, 16 + struck + 4 * together))
    born = 0 if system.lifetime.constant else drives
    if system.placement == "declustered":
        pool = walk_pool.Pool(
            threats=threats,
            drives=system.drives,
            width=code.width,
            shard_bytes=system.drives * system.drive_bytes / code.width,
            drive_bytes=float(system.drive_bytes),
            stripes=inf if system.stripes is None else float(system.stripes),
            pace_bytes_per_s=repair.bytes_per_s / (code.repair_reads + 1),
            progress=repair.progress,
        )
        return Prepared(pool, born, system.age_s, room, 1, float(code.k))
    layout = _layout(system, drives, threats)
    copies = system.pools if alone else 1
    return Prepared(
        layout, born, system.age_s, room, copies, code.k * group_bytes(system)
    )


def _threats(system: System, drives: int, *, biased: bool) -> Threats:
    code, bursts, repair = system.code, system.bursts, system.repair
    rates = np.array([burst.rate_per_s for burst in bursts])
    lost = np.array([burst.lost_fraction for burst in bursts])
    drawn_rates, drawn_lost = rates, lost
    if biased and bursts:
        # About half of what would lose data is struck; there is a burst in every third walk at least.
        struck_each = np.array(
            [_drives_of(system, burst.unit) * burst.units for burst in bursts]
        )
        drawn_lost = np.minimum(
            1.0, np.maximum(lost, (code.tolerated + 1) / 2 / struck_each)
        )
        drawn_rates = np.maximum(rates, 0.3 / system.horizon_s)
    return Threats(
        tolerated=code.tolerated,
        edges_s=np.array(system.lifetime.edges_s),
        hazards=np.array(system.lifetime.hazards_per_s),
        burst_rates=rates,
        burst_lost=lost,
        burst_units=np.array([burst.units for burst in bursts], dtype=np.int32),
        drawn_rates=drawn_rates,
        drawn_lost=drawn_lost,
        bias_s=np.array(_bias_s(system, drives))
        if biased
        else np.zeros(code.tolerated + 1),
        detection_s=0.0 if _repairs_in_one(system) else repair.detection_s,
        horizon_s=system.horizon_s,
        sector_errors=system.sector_errors,
    )


def _repairs_in_one(system: System) -> bool:
    """Return True where one exponential time covers detection and rebuild of a drive, as in the chain."""
    return system.placement == "clustered" and not system.repair.fixed


def _bias_s(system: System, drives: int) -> list[float]:
    """Within how long a failure is hoped for at each level: about as long as a walk is there.

    That is one stay, at most the horizon, and the share of the horizon that the level takes up anyway.
    Weights then stay near 1: a walk that spent many times as long would carry a weight of e to that number.
    """
    levels, rate = levels_of(system), system.lifetime.rate_per_s
    times_s = levels.times_s
    if system.spares is not None:
        times_s = [time_s + system.replacement_s for time_s in times_s]
    bias_s = [1.0]
    # Walks at a level at any moment, the mean.
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


def _drives_of(system: System, unit: str) -> int:
    return 1 if unit == "drive" else int(np.bincount(system.units[unit]).max())


def _layout(system: System, drives: int, threats: Threats) -> walk_groups.Layout:
    code, repair = system.code, system.repair
    members = np.ascontiguousarray(
        system.layout[:1] if drives == code.width else system.layout
    )
    flat = members.ravel()
    held = np.flatnonzero(flat >= 0)
    order = held[np.argsort(flat[held], kind="stable")]
    first = np.concatenate([[0], np.cumsum(np.bincount(flat[held], minlength=drives))])
    unit_of = np.zeros((3, drives), dtype=np.int32)
    unit_of[0] = np.arange(drives)
    counts = np.ones(3, dtype=np.int32)
    counts[0] = drives
    for index, unit in enumerate(_UNITS[1:], start=1):
        if unit in system.units and drives == system.drives:
            unit_of[index] = system.units[unit]
            counts[index] = int(system.units[unit].max()) + 1
    item_s = group_bytes(system) / repair.bytes_per_s
    if _repairs_in_one(system):
        item_s += repair.detection_s
    return walk_groups.Layout(
        threats=threats,
        members=members.astype(np.int32),
        first=first.astype(np.int32),
        group=(order // code.width).astype(np.int32),
        shard=(order % code.width).astype(np.int32),
        unit_of=unit_of,
        unit_counts=counts,
        burst_unit=np.array(
            [_UNITS.index(burst.unit) for burst in system.bursts], dtype=np.int32
        ),
        distances=np.zeros(0, dtype=np.uint8)
        if code.distances is None
        else code.distances,
        item_s=item_s,
        replacement_s=system.replacement_s,
        policy=_POLICY[repair.policy],
        fixed=repair.fixed,
        prioritised=repair.prioritised,
        spares=-1 if system.spares is None else system.spares,
    )


def _beginning(prepared: Prepared) -> Any:
    """The state of a whole system at its beginning, alone on the first axis."""
    lay, room = prepared.layout, prepared.room
    common: dict[str, Any] = {
        **{name: np.zeros(1) for name in ("time_s", "lost")},
        **{
            name: np.zeros(1, dtype=np.int32)
            for name in ("failed", "burst", "struck_left")
        },
        "drive": np.zeros((1, room), dtype=np.int32),
        "born_s": np.full((1, prepared.drives_born), -prepared.age_s),
        "cause": np.zeros((1, lay.threats.tolerated + 2), dtype=np.int32),
    }
    if isinstance(lay, walk_pool.Pool):
        exposed = np.zeros((1, lay.threats.tolerated + 1))
        return walk_pool.PoolStates(
            **common, exposed_bytes=exposed, detected_s=np.zeros((1, room))
        )
    units = lay.threats.burst_units
    return walk_groups.States(
        **common,
        virtual_s=np.zeros(1),
        item=np.zeros((1, room), dtype=np.int32),
        ready_s=np.zeros((1, room)),
        done=np.zeros((1, room, int(np.diff(lay.first).max())), dtype=np.uint8),
        struck=np.zeros((1, int(units.max()) if len(units) else 0), dtype=np.int32),
        spares_due_s=np.zeros((1, max(0, lay.spares))),
    )


def run_batch(
    prepared: Prepared, seed: int, number: int, walks: int, *, levels: bool = True
) -> Batch:
    """Run one batch of so many walks at each level; without `levels` each goes on to loss or the horizon.

    States that reach a level are drawn, for the next one, in proportion to their weights (systematic
    resampling), and the level's probability is the mean weight: the product is unbiased. So it is where they
    are drawn alike and carry their weights on.

    Garvels: The splitting method in rare event simulation, 2000, chapter 2. Del Moral, Garnier: Genealogical
    particle analysis of rare events, Annals of Applied Probability 15(4), 2005.
    """
    lay, tolerated = prepared.layout, prepared.layout.threats.tolerated
    step = walk_pool.stage if isinstance(lay, walk_pool.Pool) else walk_groups.stage
    generator = np.random.default_rng((seed, number))
    states, picks = _beginning(prepared), np.zeros(walks, dtype=np.int64)
    targets = range(1, tolerated + 2) if levels else [tolerated + 1]
    steps, events, begun = [], 0, 0
    # Where bursts are drawn more often than they strike, states that they led to would hardly be drawn
    # again in proportion to their weights: they are drawn alike, and keep their weights.
    alike = len(lay.threats.burst_rates) > 0
    carried, reached, before = np.ones(1), 1.0, 1.0
    for target in targets:
        states, weights = (
            type(states)(*(part[picks] for part in states)),
            np.zeros(walks),
        )
        done = step(lay, states, target, int(generator.integers(1 << 62)), weights)
        if done < 0:
            return run_batch(
                prepared._replace(room=2 * prepared.room),
                seed,
                number,
                walks,
                levels=levels,
            )
        events += int(done)
        begun += walks
        weights *= carried[picks]
        estimated = reached * float(weights.mean())
        steps.append(estimated / before)
        before = estimated
        if steps[-1] == 0:
            return Batch(0.0, tuple(steps), begun, events, 0.0, {})
        drawn_alike = alike and target <= tolerated
        shares = (weights > 0).astype(float) if drawn_alike else weights
        reached *= float(shares.mean())
        carried = weights if drawn_alike else np.ones(walks)
        places = (np.arange(walks) + generator.random()) / walks
        picks = np.searchsorted(np.cumsum(shares) / shares.sum(), places).clip(
            max=walks - 1
        )
    paths: Counter[tuple[int, ...]] = Counter(
        tuple(row) for row in states.cause[picks, 1:].tolist()
    )
    return Batch(
        float(np.prod(steps)),
        tuple(steps),
        begun,
        events,
        float(states.lost[picks].mean()) * prepared.loss_bytes,
        {path: count / walks for path, count in paths.items()},
    )


def estimate(batches: list[Batch], copies: int) -> Estimate:
    """Put batches together: Student's interval on the logarithm of their mean.

    The batches are independent and each is unbiased; the relative standard error of their mean is taken as
    that of its logarithm, which holds as long as it is small. Where no batch saw a loss, the interval ends
    at what three walks of all would have given.
    """
    values = np.array([min(1.0, batch.probability) for batch in batches])
    walks, events = sum(b.walks for b in batches), sum(b.events for b in batches)
    mean = float(values.mean())
    if mean == 0:
        reached = max(float(np.prod(batch.steps[:-1])) for batch in batches)
        high = any_of(min(1.0, 3 * reached / (walks / len(batches[0].steps))), copies)
        return Estimate(0.0, 0.0, high, walks, events, 0.0, ())
    error = float(values.std(ddof=1)) / len(values) ** 0.5 / mean
    half = float(scipy.special.stdtrit(len(values) - 1, 0.975)) * error
    paths: Counter[tuple[int, ...]] = Counter()
    for batch in batches:
        for path, share in batch.paths.items():
            paths[path] += float(share * batch.probability / values.sum())  # type: ignore[assignment]
    lost = float(sum(b.lost_bytes * b.probability for b in batches) / values.sum())
    low, high = (
        any_of(min(1.0, mean * float(np.exp(sign * half))), copies) for sign in (-1, 1)
    )
    return Estimate(
        any_of(mean, copies), low, high, walks, events, lost, tuple(paths.most_common())
    )


def split(
    system: System,
    *,
    seed: int = 1,
    batches: int = BATCHES,
    walks: int = WALKS,
    spread: Callable[[Callable[[int], Batch], Iterable[int]], Iterable[Batch]]
    | None = None,
) -> Estimate:
    """Estimate the probability of loss by splitting.

    So many independent batches of so many walks that each begin at every level, at first: see `WIDTH_NINES`.
    `spread` maps a function over batch numbers; left out: threads on all cores.
    """
    prepared = prepare(system)
    walks_max = _walks_max(prepared)
    walks = min(walks, walks_max)
    while True:
        work = partial(run_batch, prepared, seed, walks=walks)
        if spread is not None:
            found = estimate(list(spread(work, range(batches))), prepared.copies)
        else:
            with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
                found = estimate(list(pool.map(work, range(batches))), prepared.copies)
        if _is_final(found) or 4 * walks > walks_max:
            return found
        walks *= 4


def _is_final(found: Estimate) -> bool:
    """Return True where an estimate is narrow enough, or a narrower one would take too long."""
    if found.low > 0 and log10(found.high / found.low) <= WIDTH_NINES:
        return True
    most = EFFORT_MAX if found.probability else UNSEEN_EFFORT_MAX
    return 4 * (found.walks + found.events) > most


def _walks_max(prepared: Prepared) -> int:
    """Return the walks of a batch whose states fit into `STATES_BYTES_MAX`."""
    state_bytes: int = sum(part.nbytes for part in _beginning(prepared))
    return max(_WALKS_MIN, STATES_BYTES_MAX // (2 * state_bytes))


def plain_monte_carlo(
    system: System, *, seed: int = 1, batches: int = BATCHES, walks: int = WALKS
) -> Estimate:
    """Estimate the same without splitting and without helping failures along: the check on `split`."""
    prepared = prepare(system, biased=False)
    found = [
        run_batch(prepared, seed, number, walks, levels=False)
        for number in range(batches)
    ]
    return estimate(found, prepared.copies)
