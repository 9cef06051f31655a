"""Draw what both kinds of walks need: random numbers, bursts and latent errors, with importance sampling."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from stripesim.models import jit
from stripesim.sim.durability.system import Floats, Ints

State = npt.NDArray[np.uint64]
_OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_30: Final = np.uint64(30)
_27: Final = np.uint64(27)
_31: Final = np.uint64(31)
_11: Final = np.uint64(11)

#: Causes of a step to a higher level; a burst b is `AS_ONE` + b.
ELSEWHERE: Final = 0
SAME_RACK: Final = 1
SAME_HOST: Final = 2
SECTOR: Final = 3
AS_ONE: Final = 8

_SECTOR_DRAWN: Final = 0.2

P = ParamSpec("P")
R = TypeVar("R")


class Threats(NamedTuple):
    """What makes drives fail during a walk."""

    tolerated: int  # Shards that any stripe may miss
    # The lifetime's pieces.
    edges_s: Floats
    hazards: Floats
    burst_rates: Floats
    burst_lost: Floats
    burst_units: Ints
    # The rates, and probabilities that a drive loses its data, with which bursts are drawn instead.
    drawn_rates: Floats
    drawn_lost: Floats
    bias_s: Floats
    """Shape (tolerated + 1,): time scale on which failures are drawn at each level; 0: their own rates."""
    detection_s: float
    horizon_s: float
    sector_errors: float


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba, cached on disk, and release Python's lock so that batches run in parallel."""
    return jit.compiled(function, **_OPTIONS)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled code calls: without wrappers, which take longest to compile."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}
    return cast("Callable[P, R]", numba.njit(**options)(function))


@inner
def _next(state: State) -> np.uint64:
    """Return the next number of SplitMix64."""
    state[0] += _GOLDEN
    value = state[0]
    value = (value ^ (value >> _30)) * _MIX_1
    value = (value ^ (value >> _27)) * _MIX_2
    return np.uint64(value ^ (value >> _31))


@inner
def seeded(state: State, seed: int, walk: int) -> None:
    """Seed the stream of one walk."""
    state[0] = np.uint64(seed)
    state[0] = _next(state) ^ (np.uint64(walk) * _MIX_2)
    _next(state)


@inner
def uniform(state: State) -> float:
    """Draw a number in [0, 1)."""
    return float(_next(state) >> _11) * (1.0 / 9007199254740992.0)


@inner
def exponential(state: State) -> float:
    """Draw a number of the exponential distribution of mean 1."""
    return float(-np.log1p(-uniform(state)))


@inner
def hazard(threats: Threats, age_s: float) -> float:
    """Return the failure rate of a drive of an age [1/s]."""
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
    """Begin the burst that a draw in [0, sum of drawn rates) picks; return the likelihood ratio."""
    which = 0
    while draw >= threats.drawn_rates[which] and which < len(threats.drawn_rates) - 1:
        draw -= threats.drawn_rates[which]
        which += 1
    states.burst[at] = which
    states.struck_left[at] = threats.burst_units[which]
    return float(threats.burst_rates[which] / threats.drawn_rates[which])


@inner
def loses_data(threats: Threats, which: int, rng: State) -> tuple[bool, float]:
    """Draw if a drive that a burst strikes loses its data; return that and the likelihood ratio."""
    chance = threats.burst_lost[which]
    drawn = threats.drawn_lost[which]
    if drawn < 1 and uniform(rng) >= drawn:
        return False, (1 - chance) / (1 - drawn)
    if drawn > 0:
        return True, chance / drawn
    return True, 1.0


@inner
def sector_lost(threats: Threats, chance: float, rng: State) -> tuple[bool, float]:
    """Draw if the last rebuild meets a latent error; return that and the likelihood ratio."""
    drawn = chance
    if threats.bias_s[threats.tolerated] > 0:
        drawn = max(chance, _SECTOR_DRAWN)
    if uniform(rng) < drawn:
        return True, chance / drawn
    return False, (1 - chance) / (1 - drawn)
