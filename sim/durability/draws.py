"""What walks of either kind draw: random numbers, bursts, latent errors, and what helps failures along."""

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
_30, _27, _31, _11 = (np.uint64(shift) for shift in (30, 27, 31, 11))

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
    """Shape (tolerated + 1,): within how long a failure is hoped for at each level; 0 leaves chance as it
    is."""
    detection_s: float
    horizon_s: float
    sector_errors: float


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba, kept on disk; without Python's lock, so that batches run side by side."""
    return jit.compiled(function, **_OPTIONS)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile what only compiled code calls, without a way in from Python, which is most of a compilation."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}
    return cast("Callable[P, R]", numba.njit(**options)(function))


@inner
def _next(state: State) -> np.uint64:
    """SplitMix64."""
    state[0] += _GOLDEN
    value = state[0]
    value = (value ^ (value >> _30)) * _MIX_1
    value = (value ^ (value >> _27)) * _MIX_2
    return np.uint64(value ^ (value >> _31))


@inner
def seeded(state: State, seed: int, walk: int) -> None:
    """Begin the stream of one walk."""
    state[0] = np.uint64(seed)
    state[0] = _next(state) ^ (np.uint64(walk) * _MIX_2)
    _next(state)


@inner
def uniform(state: State) -> float:
    """A number in [0, 1)."""
    return float(_next(state) >> _11) * (1.0 / 9007199254740992.0)


@inner
def exponential(state: State) -> float:
    """A number of the exponential distribution of mean 1."""
    return float(-np.log1p(-uniform(state)))


@inner
def hazard(threats: Threats, age_s: float) -> float:
    """Failure rate of a drive of an age [1/s]."""
    piece = len(threats.edges_s) - 1
    while piece > 0 and threats.edges_s[piece] > age_s:
        piece -= 1
    return float(threats.hazards[piece])


@inner
def burst_at(threats: Threats, draw: float) -> int:
    """The burst that a draw in [0, sum of drawn rates) picks."""
    which = 0
    while draw >= threats.drawn_rates[which] and which < len(threats.drawn_rates) - 1:
        draw -= threats.drawn_rates[which]
        which += 1
    return which


@inner
def loses_data(threats: Threats, which: int, rng: State) -> tuple[bool, float]:
    """Whether a drive that a burst strikes loses its data, and the likelihood ratio of that draw."""
    chance, drawn = threats.burst_lost[which], threats.drawn_lost[which]
    if drawn < 1 and uniform(rng) >= drawn:
        return False, (1 - chance) / (1 - drawn)
    return True, chance / drawn if drawn > 0 else 1.0


@inner
def sector_lost(threats: Threats, chance: float, rng: State) -> tuple[bool, float]:
    """Whether the last rebuild meets a latent error, and the likelihood ratio of that draw."""
    drawn = (
        max(chance, _SECTOR_DRAWN) if threats.bias_s[threats.tolerated] > 0 else chance
    )
    if uniform(rng) < drawn:
        return True, chance / drawn
    return False, (1 - chance) / (1 - drawn)
