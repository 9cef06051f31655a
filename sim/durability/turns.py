"""Placement groups that are rebuilt in turn: what the failure of one drive leads to, level by level.

A failed drive's groups are rebuilt one after another, and each is exposed until its turn. A later failure
therefore meets only the groups that still wait, and a prioritised rebuild takes the groups that it hits next.
`turn_levels` counts how drives share groups, and computes how long each level lasts and how often it leads
on; `stripesim.sim.durability.chain` makes a Markov chain of both.

A level is the number of shards that the worst groups miss.
"""

from dataclasses import dataclass
from math import expm1, factorial, log1p
from typing import Final, NamedTuple

import numpy as np
import scipy

from stripesim.sim.durability.system import Code, Floats, Ints, System, group_bytes

#: Groups of one drive that are followed one by one [count]; more are rebuilt in bunches.
ITEMS_MAX: Final = 200

#: Sets of lost drives whose shared groups are counted at each level [count].
_SAMPLES: Final = 400

#: Largest share of time in which rebuilds wait for one another; beyond it the queue has no limit.
_BUSY_MAX: Final = 0.9

#: Points of an integral from 0 to 1, and their weights.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_POINTS: Final = (_NODES + 1) / 2
_SHARES: Final = _WEIGHTS / 2


class Levels(NamedTuple):
    """How long each level of exposure lasts, and how it leads on."""

    times_s: list[float]  # Mean duration of each level, from 1 [s]
    reach: list[float]  # Drives whose failure leads from each level to the next, from 0
    lethal: list[
        float
    ]  # Share of the steps from each level, from 0, that meet a latent sector error


class Sharing(NamedTuple):
    """How other drives share the groups that miss the same shards."""

    partners: (
        float  # Drives that hold a shard of such a group, if all were equally likely to
    )
    chance: float  # Probability that one of these drives holds a shard of a given group


@dataclass(frozen=True)
class _Level:
    """The groups at one level, as items that are rebuilt one after another."""

    sharing: Sharing
    size: float  # Groups in an item [count]
    group_s: float  # Time to rebuild one group [s]
    drive_s: float  # Time to rebuild a whole drive [s]
    carried: (
        float  # Remaining time of the group under way, over its time at the level below
    )
    waited: float  # Wait for the groups hit if none of them is under way, over the same

    def hits(self, counts: int, exposed: float) -> Floats:
        """Failures that hit exactly j of c items, over the failure rate of one drive; shape (c, j).

        Each item is still exposed with a probability.
        """
        number = np.arange(counts)
        chances = scipy.stats.binom.pmf(
            number[None, :], number[:, None], exposed * self.sharing.chance
        )
        chances[:, 0] = 0.0
        return np.asarray(self.sharing.partners * chances)


def turn_levels(system: System) -> Levels:
    """Compute the levels of placement groups that CRUSH has placed.

    Notes
    -----
    First order in the failure rate λ: only failures that take a group one level up count. Let c items be at
    level i, and let the one under way end after δ. A failure that hits j of them comes at the rate
    λ A Binomial(c, ρ)(j), with A and ρ as in `Sharing`. The mean number of later entries of a level is then a
    polynomial in δ, whose coefficients follow from those of level i + 1 (`_Recursion`). Rebuilds of unrelated
    drives slow one another only where they share a pace or take turns.
    """
    tolerated, rate = system.code.tolerated, system.lifetime.rate_per_s
    if tolerated == 0:
        return Levels([], [float(system.drives)], [0.0])
    levels = _levels_of(system)
    held = np.bincount(system.layout[system.layout >= 0], minlength=system.drives)
    items = held * _advancing(system.code)[0] / levels[0].size
    counts = int(np.ceil(items.max())) + 1
    recursion = _Recursion(system, counts)

    def mean_worth(target: int, worth: Floats, *, stay: bool = False) -> float:
        by_items = recursion.worth(levels[: target - 1], worth, stay=stay)
        return float(np.interp(items, np.arange(counts), by_items).mean())

    one = np.ones(counts)
    entries = [mean_worth(level, one) for level in range(1, tolerated + 2)]
    stays_s = [
        mean_worth(level + 1, one, stay=True) for level in range(1, tolerated + 1)
    ]
    # A level that is never entered may last any time.
    times_s, reach = [system.transfer_s] * tolerated, [0.0] * tolerated
    for index, stay_s in enumerate(stays_s):
        if stay_s:
            times_s[index] = stay_s / entries[index]
            reach[index] = entries[index + 1] / (rate * stay_s)
    lethal = [0.0] * (tolerated + 1)
    if system.sector_errors and entries[tolerated - 1]:
        lost = _sector_losses(system, levels[-1].size, counts)
        lethal[tolerated - 1] = mean_worth(tolerated, lost) / entries[tolerated - 1]
    return Levels(times_s, [float(system.drives), *reach], lethal)


def _sector_losses(system: System, size: float, counts: int) -> Floats:
    """Probability, by items that become critical, that a rebuild of one of them meets a latent error."""
    code = system.code
    read_drives = (
        (code.width - code.tolerated) * group_bytes(system) / system.drive_bytes
    )
    return np.asarray(
        -np.expm1(-system.sector_errors * read_drives * size * np.arange(counts))
    )


def _levels_of(system: System) -> list[_Level]:
    """Describe each level from 1 to the highest that is tolerated."""
    repair, advancing = system.repair, _advancing(system.code)
    slowed = 1.0
    if repair.policy != "parallel":
        # Rebuilds of unrelated drives take a part of the pace, or of the turns.
        busy = system.drives * system.lifetime.rate_per_s * system.transfer_s
        slowed = 1 / (1 - min(busy, _BUSY_MAX))
    most_held = np.bincount(system.layout[system.layout >= 0]).max()
    size = max(1.0, float(most_held) * advancing[0] / ITEMS_MAX)
    levels = []
    for level, sharing in enumerate(_count_sharing(system), start=1):
        chance = sharing.chance * advancing[level]
        chance_of_item = 1.0 if chance >= 1 else -expm1(size * log1p(-chance))
        group_s = slowed * group_bytes(system) / repair.bytes_per_s
        drive_s = slowed * system.transfer_s
        carried = 1.0
        if repair.policy == "shared":
            group_s *= level
            drive_s *= level
            carried = level / max(1, level - 1)
        elif repair.policy == "parallel" and not repair.fixed:
            detected = level if repair.detection_s < group_s else max(1, level - 1)
            group_s *= _first_of(detected)
        waited = carried
        if repair.policy != "serial":
            waited *= _first_of_two(repair.detection_s / group_s)
        of_items = Sharing(sharing.partners, chance_of_item)
        levels.append(_Level(of_items, size, group_s, drive_s, carried, waited))
        # Groups hit in an item that is hit.
        size *= chance / chance_of_item if chance else 1.0
    return levels


def _first_of(drives: int) -> float:
    """Mean time until the first of several drives has rebuilt a group, over the time that one drive takes.

    Each finishes a group and then takes the same next one. Times are exponential, so that the first drive has
    done both within ∫ ((1 + x) exp(-x))^n dx, where one takes 2.
    """
    points, weights = np.polynomial.laguerre.laggauss(drives + 1)
    return float(weights @ (1 + points / drives) ** drives) / drives / 2


def _first_of_two(detection: float) -> float:
    """Mean time until the group under way is done or the new failure is detected, over the former's mean.

    `detection` is in units of a group's time, of which any part may be over.
    """
    if detection >= 1:
        return 1.0
    return detection * (2 - detection)


def _count_sharing(system: System) -> list[Sharing]:
    """Count how drives share the groups of sampled sets of lost drives, for each level from 1."""
    groups = system.layout
    generator = np.random.default_rng(0)
    holders = _Holders(groups, system.drives)
    by_level = []
    for level in range(1, system.code.tolerated + 1):
        sampled = others = pairs = shared_pairs = 0.0
        for number in generator.integers(0, len(groups), size=_SAMPLES):
            members = groups[number][groups[number] >= 0]
            if len(members) <= level:
                continue
            lost = generator.choice(members, size=level, replace=False)
            hit = holders.groups_of_all(lost)
            _, counts = np.unique(hit[hit >= 0], return_counts=True)
            shared = float((counts * (counts - 1)).sum())
            sampled += 1
            others += len(members) - level
            pairs += len(hit) - 1
            # The lost drives are in every pair of groups.
            shared_pairs += shared / len(hit) - level * (len(hit) - 1)
        mean_others = others / sampled if sampled else 0.0
        by_level.append(
            _sharing(mean_others, pairs, shared_pairs, system.drives - level)
        )
    return by_level


def _sharing(others: float, pairs: float, shared_pairs: float, drives: int) -> Sharing:
    """Return the equally likely drives that give a group and a pair of groups as many shards as counted."""
    if not others:
        return Sharing(0.0, 0.0)
    partners = float(drives)
    if shared_pairs > 0:
        partners = max(others, others**2 * pairs / shared_pairs)
    return Sharing(partners, others / partners)


class _Holders:
    """Finds the groups of a drive."""

    def __init__(self, groups: Ints, drives: int) -> None:
        self._groups = groups
        flat = groups.ravel()
        held = np.flatnonzero(flat >= 0)
        by_drive = held[np.argsort(flat[held], kind="stable")]
        self._numbers = by_drive // groups.shape[1]
        self._ends = np.cumsum(np.bincount(flat[held], minlength=drives))

    def groups_of_all(self, drives: Ints) -> Ints:
        """Return the rows of the groups that all of some drives are in."""
        first = drives[0]
        start = self._ends[first - 1] if first else 0
        rows: Ints = self._groups[self._numbers[start : self._ends[first]]]
        for drive in drives[1:]:
            rows = rows[(rows == drive).any(axis=1)]
        return rows


def _advancing(code: Code) -> list[float]:
    """Probability, by level from 0, that a further lost shard takes a group one level up.

    It is below 1 where the pattern of losses decides. A group that stays at its level counts no further.
    """
    if code.distances is None:
        return [1.0] * (code.tolerated + 1)
    masks = np.arange(1 << code.width)
    missing = np.bitwise_count(masks)
    levels = code.tolerated + 1 - code.distances.astype(np.int64)
    chances = []
    for level in range(code.tolerated + 1):
        worst = masks[(missing == level) & (levels == level)]
        after = worst[:, None] | (1 << np.arange(code.width))[None, :]
        advanced = int((levels[after] == level + 1).sum())
        chances.append(advanced / (len(worst) * (code.width - level)))
    return chances


class _Recursion:
    """Follows exposed groups from the highest level down to the failure of the first drive.

    Rows of `waiting` and `working` are coefficients of δ⁰, δ¹, …, columns the numbers of items at a level:
    while none of the items is under way, and while one of them is. Once δ is over, row 0 is left.
    """

    def __init__(self, system: System, counts: int) -> None:
        self._repair = system.repair
        self._rate = system.lifetime.rate_per_s
        self._number = np.arange(counts)
        self._hits: dict[tuple[_Level, float], Floats] = {}
        self._orders = np.arange(system.code.tolerated + 2)[:, None]
        # Mean of the p-th power of a turn's time, over that of its mean.
        self._moments = np.ones(len(self._orders))
        if not system.repair.fixed:
            self._moments = np.array(
                [float(factorial(order)) for order in range(len(self._orders))]
            )

    def worth(self, levels: list[_Level], worth: Floats, *, stay: bool) -> Floats:
        """Mean worth of the entries of the level above the last, by items of the drive that failed first.

        An entry with j items has a worth `worth[j]`; with `stay` the time at the last level counts [s].
        """
        waiting = np.zeros((len(self._orders), len(worth)))
        waiting[0] = worth
        working = waiting
        # Probability that the item under way is one of j that are hit, of c.
        under_way = self._number[None, :] / np.maximum(self._number, 1)[:, None]
        for above, level in enumerate(reversed(levels)):
            stays = stay and above == 0
            hits = self._rates(level, 1.0, stays=stays)
            own = hits * under_way
            others = hits - own
            carried = level.carried**self._orders * working
            waited = level.waited**self._orders * waiting
            lower_waiting = self._integral(waiting @ hits.T)
            lower_working = self._integral(carried @ own.T + waited @ others.T)
            if self._repair.prioritised:
                lower_waiting[0] = self._in_turn(level, lower_working)
            else:
                lower_waiting[0] = self._in_any_order(
                    level, waiting[0], above, stays=stays
                )
            lower_working[0, 1:] = lower_waiting[0, :-1]
            waiting, working = lower_waiting, lower_working
        after_detection = self._repair.detection_s**self._orders * waiting
        return np.asarray(after_detection.sum(axis=0))

    def _rates(self, level: _Level, exposed: float, *, stays: bool) -> Floats:
        """Rates of failures that hit exactly j of c items [1/s]; with `stays` 1 while any is exposed."""
        if not stays:
            if (level, exposed) not in self._hits:
                self._hits[level, exposed] = self._rate * level.hits(
                    len(self._number), exposed
                )
            return self._hits[level, exposed]
        rates = np.zeros((len(self._number), len(self._number)))
        rates[:, 1] = 1 - (1 - exposed) ** self._number
        return rates

    def _integral(self, coefficients: Floats) -> Floats:
        """Integrate polynomials from 0 to δ."""
        integral = np.zeros_like(coefficients)
        integral[1:] = coefficients[:-1] / self._orders[1:]
        return integral

    def _in_turn(self, level: _Level, working: Floats) -> Floats:
        """Worth of items that are rebuilt one after another, before anything else."""
        turns = self._moments[:, None] * level.group_s**self._orders * working
        of_turns = level.size * turns[1:].sum(axis=0)
        of_turns[0] = 0.0
        return np.cumsum(of_turns)

    def _in_any_order(
        self, level: _Level, after: Floats, above: int, *, stays: bool
    ) -> Floats:
        """Worth of items at random places of the queue of a whole drive.

        `after` holds at the beginning of the queue and goes with the `above`-th power of what is left of it.
        """
        worth = np.zeros(len(self._number))
        for left, share in zip(_POINTS, _SHARES, strict=True):
            rates = self._rates(level, float(left), stays=stays)
            worth += share * level.drive_s * (rates @ after) * left**above
        return worth
