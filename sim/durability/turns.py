"""Levels of exposure after the failure of one drive, if placement groups are rebuilt in turn.

A failed drive's groups are rebuilt in turn, several at a time, and each is exposed until it is done. So a
later failure hits only the groups that are not rebuilt yet, and a prioritised rebuild begins those at once.
`turn_levels` counts how drives share groups, and computes the duration of each level and the rate at
which it leads to the next. `stripesim.sim.durability.chain` builds a Markov chain from both.

A level is the number of shards that the worst groups miss.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import scipy

from stripesim.sim.durability.draws import shards_of_drives
from stripesim.sim.durability.probability import any_of
from stripesim.sim.durability.system import Code, Floats, Ints, System, group_bytes

#: Groups of one drive that are followed individually [count]. More are rebuilt in bunches.
ITEMS_MAX: Final = 200

#: Sampled sets of lost drives per level, for counting their shared groups [count].
_SAMPLES: Final = 400

#: Largest part of the time in which rebuilds wait for one another. Beyond it the queue has no
#: limit.
_BUSY_MAX: Final = 0.9

#: Points of an integral from 0 to 1, and their weights.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_POINTS: Final = (_NODES + 1) / 2
_SHARES: Final = _WEIGHTS / 2


class Levels(NamedTuple):
    """Duration of each level of exposure, and its transition to the next.

    Attributes
    ----------
    times_s
        Mean duration of each level, from 1 [s].
    reach
        Number of drives whose failure leads from each level to the next, from 0.
    lethal
        Part of the steps from each level, from 0, that expose a latent sector error.
    lost_groups
        Mean number of placement groups that a loss destroys.
    """

    times_s: list[float]
    reach: list[float]
    lethal: list[float]
    lost_groups: float = 1.0


class Sharing(NamedTuple):
    """Shares of other drives in the groups that miss the same shards.

    Attributes
    ----------
    partners
        Drives that may hold a shard of such a group, as if all were equally likely to.
    chance
        Probability that one of these drives holds a shard of a given group.
    """

    partners: float
    chance: float


@dataclass(frozen=True)
class _Level:
    """The groups at one level, as items that are rebuilt in turn.

    Attributes
    ----------
    sharing
        How other drives share the groups.
    size, groups_hit
        Number of groups in an item, and the mean number of them hit by a failure that hits any.
    group_s, drive_s
        Time to rebuild one group beside others, and a whole drive [s].
    at_once
        Number of groups rebuilt at the same time.
    carried
        Remaining time of a group that was being rebuilt when hit, relative to that at the level below.
    """

    sharing: Sharing
    size: float
    groups_hit: float
    group_s: float
    drive_s: float
    at_once: int
    carried: float

    @property
    def items_at_once(self) -> int:
        """Number of items rebuilt in a turn, at least one."""
        return max(1, round(self.at_once / self.size))

    @property
    def turns_of_item(self) -> float:
        """Number of turns that an item takes."""
        return max(1.0, self.size / self.at_once)

    def hits(self, counts: int, exposed: float) -> Floats:
        """Return the rate of failures that hit exactly j of c items, relative to one drive, shape (c, j).

        `exposed` is the probability that an item is still exposed.
        """
        number = np.arange(counts)
        hit, items = number[None, :], number[:, None]
        missed = np.maximum(items - hit, 0)
        chance = exposed * self.sharing.chance
        # The binomial distribution. That of scipy.stats takes a third of a second to load.
        ways = scipy.special.binom(items, hit)
        chances = ways * chance**hit * (1 - chance) ** missed
        chances[:, 0] = 0.0
        return np.asarray(self.sharing.partners * chances)


def turn_levels(system: System) -> Levels:
    """Compute the levels of placement groups that CRUSH has placed.

    Parameters
    ----------
    system
        The system.

    Returns
    -------
    Levels
        Durations and transitions.

    Notes
    -----
    First order in the failure rate λ: only failures that take a group one level up count. Let c items be at
    level i, and let the rebuild of one of them end after δ. Failures that hit j of them occur at the rate
    λ A Binomial(c, ρ)(j), with A and ρ as in `Sharing`. The mean number of later entries of a level is a
    polynomial in δ, whose coefficients follow from those of level i + 1 (`_Recursion`). Rebuilds of unrelated
    drives slow one another only if they share a pace or take turns.
    """
    tolerated = system.code.tolerated
    held = np.bincount(system.layout[system.layout >= 0], minlength=system.drives)
    if tolerated == 0:
        return Levels([], [float(system.drives)], [0.0], float(held.mean()))
    levels = _levels_of(system)
    items = held * _advancing(system.code)[0] / levels[0].size
    counts = int(np.ceil(items.max())) + 1
    recursion = _Recursion(system, counts)

    def mean_worth(target: int, worth: Floats, *, stay: bool = False) -> float:
        by_items = recursion.worth(levels[: target - 1], worth, stay=stay)
        return float(np.interp(items, np.arange(counts), by_items).mean())

    ones = np.ones(counts)
    entries = [mean_worth(level, ones) for level in range(1, tolerated + 2)]
    # A level that is never entered may have any duration.
    times_s = [system.transfer_s] * tolerated
    reach = [0.0] * tolerated
    for index in range(tolerated):
        stay_s = mean_worth(index + 2, ones, stay=True)
        if stay_s:
            times_s[index] = stay_s / entries[index]
            reach[index] = entries[index + 1] / (system.lifetime.rate_per_s * stay_s)
    lethal = [0.0] * (tolerated + 1)
    if system.sector_errors and entries[tolerated - 1]:
        lost = _sector_losses(system, levels[-1].size, counts)
        lethal[tolerated - 1] = mean_worth(tolerated, lost) / entries[tolerated - 1]
    lost_groups = 1.0
    if entries[tolerated]:
        # A loss destroys the groups hit in each item that the last failure hits.
        destroyed = np.asarray(levels[-1].groups_hit * np.arange(counts), float)
        lost_groups = mean_worth(tolerated + 1, destroyed) / entries[tolerated]
    return Levels(times_s, [float(system.drives), *reach], lethal, lost_groups)


def _sector_losses(system: System, size: float, counts: int) -> Floats:
    """Return the probability, by items that become critical, that their rebuild meets a latent error."""
    shards = system.code.width - system.code.tolerated
    read_drives = shards * group_bytes(system) / system.drive_bytes
    errors = system.sector_errors * read_drives * size * np.arange(counts)
    return np.asarray(-np.expm1(-errors))


def _levels_of(system: System) -> list[_Level]:
    """Describe each tolerated level, from 1."""
    repair = system.repair
    advancing = _advancing(system.code)
    slowed = 1.0
    if repair.policy != "parallel":
        # Rebuilds of unrelated drives share the pace, or take turns.
        busy = system.drives * system.lifetime.rate_per_s * system.transfer_s
        slowed = 1 / (1 - min(busy, _BUSY_MAX))
    most_held = np.bincount(system.layout[system.layout >= 0]).max()
    size = max(1.0, float(most_held) * advancing[0] / ITEMS_MAX)
    groups = system.layout.size / system.drives
    levels = []
    for level, sharing in enumerate(_count_sharing(system), start=1):
        chance = sharing.chance * advancing[level]
        chance_of_item = any_of(chance, size)
        group_s = slowed * system.group_transfer_s
        drive_s = slowed * system.transfer_s
        carried = 1.0
        # Drives that are rebuilt at this level. The last to fail is, once it is detected.
        all_s = group_s * max(1.0, groups / system.groups_at_once)
        detected = level if repair.detection_s < all_s else max(1, level - 1)
        if repair.policy == "shared":
            group_s *= detected
            drive_s *= level
            carried = detected / max(1, level - 1)
        if repair.policy != "serial" and not repair.fixed:
            group_s *= _first_of(detected, system.groups_at_once)
        of_items = Sharing(sharing.partners, chance_of_item)
        groups_hit = size
        if chance:
            groups_hit *= chance / chance_of_item
        levels.append(
            _Level(
                of_items,
                size,
                groups_hit,
                group_s,
                drive_s,
                system.groups_at_once,
                carried,
            )
        )
        size = groups_hit
        groups *= chance
    return levels


def _first_of(drives: int, at_once: int) -> float:
    """Return the mean time until the first of several drives has rebuilt a group, relative to one drive.

    Times are exponential. Drives that rebuild several groups at once begin at once. One at a time, each drive
    finishes a group and then takes the same next one: the first completes both within
    ∫ ((1 + x) exp(-x))^n dx, whereas one drive takes 2.
    """
    if at_once > 1:
        return 1 / drives
    points, weights = np.polynomial.laguerre.laggauss(drives + 1)
    return float(weights @ (1 + points / drives) ** drives) / drives / 2


def _count_sharing(system: System) -> list[Sharing]:
    """Count how drives share the groups of sampled sets of lost drives, for each level from 1."""
    groups = system.layout
    generator = np.random.default_rng(0)
    holders = _Holders(groups, system.drives)
    by_level = []
    for level in range(1, system.code.tolerated + 1):
        sampled = healthy = pairs = shared_pairs = 0.0
        for number in generator.integers(0, len(groups), size=_SAMPLES):
            members = groups[number][groups[number] >= 0]
            if len(members) <= level:
                continue
            lost = generator.choice(members, size=level, replace=False)
            hit = holders.groups_of_all(lost)
            shared = _pairs_of_equals(hit[hit >= 0])
            sampled += 1
            healthy += len(members) - level
            pairs += len(hit) - 1
            # The lost drives are in every pair of groups.
            shared_pairs += shared / len(hit) - level * (len(hit) - 1)
        if not healthy:
            by_level.append(Sharing(0.0, 0.0))
            continue
        # Equally likely drives, with the counted shards per group and per pair of groups.
        shards = healthy / sampled
        partners = float(system.drives - level)
        if shared_pairs > 0:
            partners = max(shards, shards**2 * pairs / shared_pairs)
        by_level.append(Sharing(partners, shards / partners))
    return by_level


def _pairs_of_equals(drives: Ints) -> float:
    """Return the ordered pairs of equal drives [count], without NumPy's slower `unique`."""
    ordered = np.sort(drives)
    ends = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    counts = np.diff(ends, prepend=0, append=len(ordered))
    return float(counts @ (counts - 1))


class _Holders:
    """Looks up the groups of drives."""

    def __init__(self, groups: Ints, drives: int) -> None:
        self._groups = groups
        held = shards_of_drives(np.ascontiguousarray(groups, dtype=np.int32), drives)
        self._numbers = held.group
        self._starts = held.first

    def groups_of_all(self, drives: Ints) -> Ints:
        """Return the rows of the groups that contain all of some drives."""
        first = drives[0]
        held = slice(self._starts[first], self._starts[first + 1])
        rows: Ints = self._groups[self._numbers[held]]
        for drive in drives[1:]:
            rows = rows[(rows == drive).any(axis=1)]
        return rows


def _advancing(code: Code) -> list[float]:
    """Return the probability, by level from 0, that one more lost shard takes a group one level up.

    It is below 1 if the pattern of losses decides. A group that stays at its level is not followed further.
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

    Rows of `waiting` and `working` are coefficients of δ⁰, δ¹, …. Columns are numbers of items at a level,
    while none of them is being rebuilt, and while a turn of them is. After δ only row 0 counts.
    """

    def __init__(self, system: System, counts: int) -> None:
        self._repair = system.repair
        self._rate = system.lifetime.rate_per_s
        self._number = np.arange(counts)
        self._hits: dict[tuple[_Level, float], Floats] = {}
        self._orders = np.arange(system.code.tolerated + 2)[:, None]

    def worth(self, levels: list[_Level], worth: Floats, *, stay: bool) -> Floats:
        """Return the mean worth of entries of the level above the last, by items of the first failed drive.

        An entry with j items has the worth `worth[j]`. With `stay`, the time at the last level counts [s].
        """
        waiting = np.zeros((len(self._orders), len(worth)))
        waiting[0] = worth
        working = waiting
        for above, level in enumerate(reversed(levels)):
            stays = stay and above == 0
            hits = self._rates(level, 1.0, stays=stays)
            own = hits * self._own_share(level)
            carried = level.carried**self._orders * working
            lower_waiting = self._integral(waiting @ hits.T)
            # The rebuild of all other groups that are hit begins.
            begun = waiting * (self._orders == 0)
            lower_working = self._integral(carried @ own.T + begun @ (hits - own).T)
            if self._repair.prioritised:
                lower_waiting[0] = self._in_turn(level, lower_working)
            else:
                lower_waiting[0] = self._in_any_order(
                    level, waiting[0], above, stays=stays
                )
            done = level.items_at_once
            lower_working[0, done:] = lower_waiting[0, :-done]
            waiting = lower_waiting
            working = lower_working
        after_detection = self._repair.detection_s**self._orders * waiting
        return np.asarray(after_detection.sum(axis=0))

    def _own_share(self, level: _Level) -> Floats:
        """Return the probability that j hit ones of c items go on with the turn's remainder, shape (c, j).

        Of n items rebuilt at once, j n / c are hit on average, and at most j or n go on together. An
        exponential time has no remainder: it is as good as new.
        """
        if not self._repair.fixed:
            return np.zeros((1, 1))
        together = np.maximum(self._number, level.items_at_once)
        return np.minimum(1.0, together / np.maximum(self._number, 1)[:, None])

    def _rates(self, level: _Level, exposed: float, *, stays: bool) -> Floats:
        """Return the rates of failures that hit exactly j of c items [1/s]. With `stays`, 1 while exposed."""
        counts = len(self._number)
        if stays:
            rates = np.zeros((counts, counts))
            rates[:, 1] = 1 - (1 - exposed) ** self._number
            return rates
        key = (level, exposed)
        if key not in self._hits:
            self._hits[key] = self._rate * level.hits(counts, exposed)
        return self._hits[key]

    def _integral(self, coefficients: Floats) -> Floats:
        """Integrate polynomials from 0 to δ."""
        integral = np.zeros_like(coefficients)
        integral[1:] = coefficients[:-1] / self._orders[1:]
        return integral

    def _in_turn(self, level: _Level, working: Floats) -> Floats:
        """Return the worth of items that are rebuilt in turn, before all others."""
        turns = level.group_s**self._orders * working
        worth = level.turns_of_item * turns[1:].sum(axis=0)
        worth[0] = 0.0
        done = level.items_at_once
        if not self._repair.fixed:
            # They end one by one, the first of them the sooner, the more there are.
            worth /= np.clip(self._number, 1, done)
            done = 1
        for items in range(done, len(worth)):
            worth[items] += worth[items - done]
        return np.asarray(worth)

    def _in_any_order(
        self, level: _Level, after: Floats, above: int, *, stays: bool
    ) -> Floats:
        """Return the worth of items at random positions in the queue of a whole drive.

        `after` is the worth at the start of the queue. It scales with the `above`-th power of the remainder.
        """
        worth = np.zeros(len(self._number))
        turns = max(1.0, level.drive_s / level.group_s)
        for left, share in zip(_POINTS, _SHARES, strict=True):
            # The groups of a turn are exposed until its end.
            exposed = min(1.0, float(np.ceil(left * turns)) / turns)
            rates = self._rates(level, exposed, stays=stays)
            worth += share * level.drive_s * (rates @ after) * left**above
        return worth
