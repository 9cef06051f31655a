"""Random numbers, bursts and latent errors for both kinds of walks, with importance sampling."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from stripesim.models import jit
from stripesim.sim.durability.system import Floats, Ints

State = npt.NDArray[np.uint64]
# Reference counting is off (`_nrt`), because counting the arrays passed to every call took nine tenths of the
# time of a walk. Compiled code therefore allocates no arrays.
_OPTIONS: Final[dict[str, Any]] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
}

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_30: Final = np.uint64(30)
_27: Final = np.uint64(27)
_31: Final = np.uint64(31)
_11: Final = np.uint64(11)

#: Causes of a step to a higher level. Burst number b has the cause `AS_ONE` + b.
ELSEWHERE: Final = 0
SAME_RACK: Final = 1
SAME_HOST: Final = 2
SECTOR: Final = 3
AS_ONE: Final = 8

#: Latent errors drawn at least after a failure that makes groups critical, on average [count].
_SECTOR_DRAWN: Final = 0.2

# Type of literals, and of values from narrower arrays, when they are passed on. Numba compiles a function and
# all its callees once per combination of argument types.
wide: Final[Any] = np.int64

P = ParamSpec("P")
R = TypeVar("R")


class Threats(NamedTuple):
    """The causes of failures during a walk.

    Attributes
    ----------
    tolerated
        Shards that any stripe may miss.
    edges_s, hazards
        Pieces of the lifetime, as in `Lifetime`.
    burst_rates, burst_lost, burst_units
        Rate of each burst [1/s], probability that a struck drive loses its data, and units struck.
    drawn_rates, drawn_lost
        The rates and probabilities used to draw bursts instead.
    bias_s
        Time scale for drawing failures at each level [s], shape (tolerated + 1,). 0 draws them at
        their own rates.
    detection_s
        Time from a failure to the start of its repair [s].
    horizon_s
        End of a walk [s].
    sector_errors
        Mean number of latent sector errors on a drive.
    """

    tolerated: int
    edges_s: Floats
    hazards: Floats
    burst_rates: Floats
    burst_lost: Floats
    burst_units: Ints
    drawn_rates: Floats
    drawn_lost: Floats
    bias_s: Floats
    detection_s: float
    horizon_s: float
    sector_errors: float


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba, cache on disk, and release Python's lock so that batches run in parallel."""
    return jit.compiled(function, program="random walks", **_OPTIONS)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled code calls."""
    return jit.inner(function, **_OPTIONS)


class HeldShards(NamedTuple):
    """The shards that each drive holds.

    Attributes
    ----------
    first
        Drive d holds the entries first[d] … first[d + 1] - 1 of `group` and `shard`, shape (drives + 1,).
    group, shard
        Placement group, and number of the shard in it, in ascending order for each drive.
    """

    first: Ints
    group: Ints
    shard: npt.NDArray[np.uint8]


def shards_of_drives(members: Ints, drives: int) -> HeldShards:
    """Return the shards that each drive holds.

    Parameters
    ----------
    members
        Drive of each shard, −1 for none, shape (groups, width).
    drives
        Number of drives.
    """
    held = np.bincount(members[members >= 0], minlength=drives)
    first = np.append(0, np.cumsum(held)).astype(np.int32)
    shards = HeldShards(
        first=first,
        group=np.empty(first[-1], dtype=np.int32),
        shard=np.empty(first[-1], dtype=np.uint8),
    )
    _enter(members, first[:-1].copy(), shards)
    return shards


@compiled
def _enter(members: Ints, following: Ints, shards: HeldShards) -> None:
    """Enter each shard at the following place of its drive."""
    groups, width = members.shape
    for number in range(groups):
        for place in range(width):
            drive = members[number, place]
            if drive >= 0:
                shards.group[following[drive]] = number
                shards.shard[following[drive]] = place
                following[drive] += 1


@inner
def _next(state: State) -> np.uint64:
    """Return the next output of SplitMix64."""
    state[0] += _GOLDEN
    value = state[0]
    value = (value ^ (value >> _30)) * _MIX_1
    value = (value ^ (value >> _27)) * _MIX_2
    return np.uint64(value ^ (value >> _31))


@inner
def seeded(state: State, seed: int, walk: int) -> None:
    """Seed the random stream of one walk."""
    state[0] = np.uint64(seed)
    state[0] = _next(state) ^ (np.uint64(walk) * _MIX_2)
    _next(state)


@inner
def uniform(state: State) -> float:
    """Draw a number in [0, 1)."""
    return float(_next(state) >> _11) * (1.0 / 9007199254740992.0)


@inner
def exponential(state: State) -> float:
    """Draw an exponential number of mean 1."""
    return float(-np.log1p(-uniform(state)))


@inner
def largest(values: Floats) -> float:
    """Return the largest of at least one number."""
    most = values[0]
    for value in values:
        most = max(most, value)
    return float(most)


@inner
def total(values: Floats) -> float:
    """Return the sum of numbers."""
    subtotal = 0.0
    for value in values:
        subtotal += value
    return subtotal


@inner
def hazard(threats: Threats, age_s: float) -> float:
    """Return the failure rate of a drive at an age [1/s]."""
    piece = len(threats.edges_s) - 1
    while piece > 0 and threats.edges_s[piece] > age_s:
        piece -= 1
    return float(threats.hazards[piece])


@inner
def next_event_s(rate: float, rng: State) -> float:
    """Draw the time to the next event [s], infinite at a rate of 0."""
    if rate <= 0:
        return float(np.inf)
    return exponential(rng) / rate


@inner
def begin_burst(threats: Threats, states: Any, at: int, draw: float) -> float:
    """Begin the burst selected by a draw in [0, sum of drawn rates), and return the likelihood ratio."""
    which = 0
    while draw >= threats.drawn_rates[which] and which < len(threats.drawn_rates) - 1:
        draw -= threats.drawn_rates[which]
        which += 1
    states.burst[at] = which
    states.struck_left[at] = threats.burst_units[which]
    return float(threats.burst_rates[which] / threats.drawn_rates[which])


@inner
def loses_data(threats: Threats, which: int, rng: State) -> tuple[bool, float]:
    """Draw whether a drive struck by a burst loses its data, and return that and the likelihood ratio."""
    chance = threats.burst_lost[which]
    drawn = threats.drawn_lost[which]
    if drawn < 1 and uniform(rng) >= drawn:
        return False, (1 - chance) / (1 - drawn)
    if drawn > 0:
        return True, chance / drawn
    return True, 1.0


@inner
def sector_lost(
    threats: Threats, chance: float, rebuilds: int, rng: State
) -> tuple[bool, float]:
    """Draw whether a last rebuild meets a latent error, and return that and the likelihood ratio.

    `rebuilds` is the number of such draws after one failure. Their ratios multiply, so each is drawn the less
    often, the more there are.
    """
    drawn = chance
    if threats.bias_s[threats.tolerated] > 0:
        drawn = max(chance, _SECTOR_DRAWN / rebuilds)
    if uniform(rng) < drawn:
        return True, chance / drawn
    return False, (1 - chance) / (1 - drawn)
