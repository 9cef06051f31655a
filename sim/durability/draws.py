"""Random numbers of a walk: SplitMix64, begun from the seed and the walk's number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from stripesim.models import jit

__all__ = ["compiled", "exponential", "seeded", "uniform"]

_State = npt.NDArray[np.uint64]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = (np.uint64(shift) for shift in (30, 27, 31, 11))


P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba, kept on disk; without Python's lock, so that batches run side by side."""
    return jit.compiled(function, nogil=True, error_model="numpy")


@compiled
def _next(state: _State) -> np.uint64:  # pragma: no cover - compiled
    state[0] += _GOLDEN
    value = state[0]
    value = (value ^ (value >> _30)) * _MIX_1
    value = (value ^ (value >> _27)) * _MIX_2
    return np.uint64(value ^ (value >> _31))


@compiled
def seeded(state: _State, seed: int, walk: int) -> None:  # pragma: no cover - compiled
    """Begin the stream of one walk."""
    state[0] = np.uint64(seed)
    state[0] = _next(state) ^ (np.uint64(walk) * _MIX_2)
    _next(state)


@compiled
def uniform(state: _State) -> float:  # pragma: no cover - compiled
    """A number in [0, 1)."""
    return float(_next(state) >> _11) * (1.0 / 9007199254740992.0)


@compiled
def exponential(state: _State) -> float:  # pragma: no cover - compiled
    """A number of the exponential distribution of mean 1."""
    return float(-np.log1p(-uniform(state)))
