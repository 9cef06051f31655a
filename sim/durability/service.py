"""Placement groups without service, for codes of which some patterns of missing shards cannot be decoded."""

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.sim.durability.system import Burst, Floats, Ints, System

Bools = npt.NDArray[np.bool_]
Longs = npt.NDArray[np.int64]


class _Spread(NamedTuple):
    """Groups whose shards share units in the same way.

    Attributes
    ----------
    share
        Part of all groups.
    holes
        Shards that no drive has, as bits.
    of_units
        Shards on each unit, as bits.
    """

    share: float
    holes: int
    of_units: list[int]


def struck_share(system: System, burst: Burst, units: Ints) -> float:
    """Return the mean part of groups without service while the units of a burst are down, 0 to 1.

    Parameters
    ----------
    system
        A system whose code has `Code.distances`. All its other shards are there.
    burst
        The burst.
    units
        Number of the unit of each drive, shape (drives,).
    """
    is_out = _is_out(system)
    total = int(units.max()) + 1
    sets = comb(total, burst.units)
    share = 0.0
    for spread in _spreads(system, units):
        masks = np.array([spread.holes])
        hits = np.array([0])
        for of_unit in spread.of_units:
            masks = np.concatenate([masks, masks | of_unit])
            hits = np.concatenate([hits, hits + 1])
        count = len(spread.of_units)
        # Ways to strike exactly these units of a group, and others besides.
        ways = [
            comb(total - count, burst.units - hit) if hit <= burst.units else 0
            for hit in range(count + 1)
        ]
        chances = np.array([float(way / sets) for way in ways])
        share += spread.share * float((chances[hits] * is_out[masks]).sum())
    return share


def struck_share_beside_failures(system: System, units: Ints, away: float) -> float:
    """Return what one struck unit adds to the part of groups without service, 0 to 1.

    Parameters
    ----------
    system
        A system whose code has `Code.distances`.
    units
        Number of the unit of each drive, shape (drives,).
    away
        Part of time for which a shard is away by itself.
    """
    is_out = _is_out(system)
    total = int(units.max()) + 1
    share = 0.0
    for spread in _spreads(system, units):
        alone = _out_by_chance(is_out, spread.holes, away)
        for of_unit in spread.of_units:
            struck = _out_by_chance(is_out, spread.holes | of_unit, away)
            share += spread.share * (struck - alone) / total
    return share


def _is_out(system: System) -> Bools:
    """Tabulate the patterns of missing shards without service, shape (2**width,)."""
    distances = system.code.distances
    assert distances is not None
    missing = np.bitwise_count(np.arange(len(distances)))
    is_out: Bools = (missing > system.missing_allowed) | (distances == 0)
    return is_out


def _out_by_chance(is_out: Bools, struck: int, away: float) -> float:
    """Return the probability of no service if some shards are missing and others are away by themselves."""
    masks = np.arange(len(is_out))
    beside = masks[is_out & (masks & struck == struck)]
    width = len(is_out).bit_length() - 1
    others = np.bitwise_count(beside ^ struck).astype(float)
    there = width - struck.bit_count() - others
    chances: Floats = away**others * (1 - away) ** there
    return float(chances.sum())


def _spreads(system: System, units: Ints) -> Iterator[_Spread]:
    """Yield the ways in which groups spread over units."""
    members = system.layout
    is_placed = members >= 0
    of_shards = np.where(is_placed, units[np.where(is_placed, members, 0)], -1)
    # The first shard of a group on the same unit stands for that unit.
    first = (of_shards[:, :, None] == of_shards[:, None, :]).argmax(axis=2)
    first[~is_placed] = -1
    rows, counts = np.unique(first, axis=0, return_counts=True)
    for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
        bits: dict[int, int] = {}
        for shard, unit in enumerate(row):
            bits[unit] = bits.get(unit, 0) | 1 << shard
        holes = bits.pop(-1, 0)
        yield _Spread(count / len(members), holes, list(bits.values()))
