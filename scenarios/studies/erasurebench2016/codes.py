"""The three codes of the source, the losses that each decoder survives, and readable files (Figure 4)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.models.coding import LRC, ReedSolomon
from stripesim.models.coding.galois import columns_independent
from stripesim.models.problems import UnavailableError
from stripesim.sim.systems.kv_proxy.plan import draw_slots, even_owners

LossTable = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
K = 10


@dataclass(frozen=True)
class StripeCode:
    """A code with its decoder, as a table of the losses that it survives.

    ``survives`` has shape (2**width,), indexed by the set of lost positions with position i as bit i. The
    scheme has stripesim's notation, and ``none:10`` has no parity.
    """

    name: str
    scheme: str
    width: int
    survives: LossTable

    @property
    def decodable(self) -> tuple[int, ...]:
        """Return the number of survived sets of 0, 1, … lost positions."""
        sizes = np.bitwise_count(_sets(self.width))
        return tuple(
            np.bincount(sizes[self.survives], minlength=self.width + 1).tolist()
        )


@cache
def codes() -> Mapping[str, StripeCode]:
    """Return NC, RS and LRC, each with the best possible decoder."""
    lrc = LRC(k=K, m=6, locality=5)
    rs = ReedSolomon(k=K, m=4)
    return {
        "NC": StripeCode("NC", "none:10", K, _by_size(K, 0)),
        "RS": StripeCode("RS", rs.name, rs.width, _by_size(rs.width, rs.m)),
        "LRC": StripeCode("LRC", lrc.name, lrc.width, _by_rank(lrc)),
    }


@cache
def explanations() -> Mapping[str, StripeCode]:
    """Return weaker decoders, for comparison with the published LRC series.

    The source's program (github.com/sebva/ErasureBench at fa49148, SimpleRegeneratingCode.java) decodes in
    this order. Without losses it reads the data. It mends losses in different groups from their groups. With
    two losses in a group it needs ten positions of the Reed-Solomon part. Its published configuration says
    six parities and *five* local ones, which leaves one Reed-Solomon parity and groups of two.
    """
    tables = {
        "local groups only": _group_by_group(2, 4),
        "no more than n - k lost": _by_size(16, 6),
        "no more than 4 lost": _by_size(16, 4),
        "no more than 3 lost": _by_size(16, 3),
        "groups, else 10 of 14": local_first(2, 4),
        "groups of two, else 10 of 11": local_first(5, 1),
    }
    return {
        name: StripeCode(name, "lrc:10,6,5", 16, survives)
        for name, survives in tables.items()
    }


def _sets(width: int) -> npt.NDArray[np.uint32]:
    """Return all sets of positions, as bits."""
    return np.arange(1 << width, dtype=np.uint32)


def _by_size(width: int, most: int) -> LossTable:
    survives: LossTable = np.bitwise_count(_sets(width)) <= most
    return survives


def _by_rank(code: LRC) -> LossTable:
    """Survive sets whose columns of the parity check are independent."""
    survives = np.zeros(1 << code.width, dtype=np.bool_)
    survives[0] = True
    for size in range(1, code.m + 1):
        lost = np.array(list(combinations(range(code.width), size)))
        columns = code.parity_check[:, lost].transpose(1, 0, 2)
        survives[(1 << lost).sum(axis=1)] = columns_independent(columns)
    return survives


def _mask(positions: Iterable[int]) -> int:
    return sum(1 << position for position in positions)


def _groups(local_parities: int, global_parities: int) -> list[int]:
    """Return repair groups as masks: local parities first, then the Reed-Solomon part in equal runs."""
    width = K + global_parities
    each = -(-width // (local_parities + 1))
    begins = [local_parities + group * each for group in range(local_parities + 1)]
    stored = [
        _mask([group, *range(begins[group], begins[group + 1])])
        for group in range(local_parities)
    ]
    implied = _mask(
        [*range(local_parities), *range(begins[-1], width + local_parities)]
    )
    return [*stored, implied]


@cache
def local_first(local_parities: int, global_parities: int) -> LossTable:
    """Survive losses in different groups, and others if ten of the Reed-Solomon part are left.

    Positions are numbered local parities, Reed-Solomon (global) parities, data. The table is read-only.
    """
    lost = _sets(K + local_parities + global_parities)
    *stored, implied = (
        np.uint32(group) for group in _groups(local_parities, global_parities)
    )
    local = np.uint32(_mask(range(local_parities)))
    apart = np.bitwise_count(lost & implied & ~local) <= 1
    for group in stored:
        apart &= np.bitwise_count(lost & group) <= 1
    # Lost local parities keep the implied group from mending, not each other.
    apart &= ((lost & local) == 0) | ((lost & implied & ~local) == 0)
    alone = np.bitwise_count(lost) <= 1
    rest = np.bitwise_count(lost >> np.uint32(local_parities)) <= global_parities
    survives: LossTable = alone | apart | rest
    # Each repair looks into the same one.
    survives.flags.writeable = False
    return survives


def _group_by_group(local_parities: int, global_parities: int) -> LossTable:
    """Survive losses that can be mended group after group, one at a time."""
    width = K + local_parities + global_parities
    mended = _sets(width)
    for _ in range(width):
        for group in _groups(local_parities, global_parities):
            lost = mended & np.uint32(group)
            mended = np.where(np.bitwise_count(lost) == 1, mended & ~lost, mended)
    data = np.uint32(_mask(range(local_parities + global_parities, width)))
    survives: LossTable = (mended & data) == 0
    return survives


def survival(code: StripeCode, nodes: int, killed: int) -> float:
    """Return the exact probability that a stripe is readable after random nodes of a store were killed.

    Its positions are on distinct nodes, and all sets of nodes are equally likely. The sum over the number j
    of lost positions multiplies the decodable share of sets of size j by the hypergeometric probability of j.
    """
    ways = comb(nodes, code.width)
    return sum(
        count
        / comb(code.width, lost)
        * comb(killed, lost)
        * comb(nodes - killed, code.width - lost)
        / ways
        for lost, count in enumerate(code.decodable)
        if count
    )


def local_first_sources(
    local_parities: int, global_parities: int, lost: frozenset[int]
) -> tuple[int, ...]:
    """Return the positions that `local_first` reads to restore lost ones, or none if it fails."""
    width = K + local_parities + global_parities
    if not local_first(local_parities, global_parities)[_mask(lost)]:
        return ()
    *stored, implied = (
        {p for p in range(width) if mask >> p & 1}
        for mask in _groups(local_parities, global_parities)
    )
    groups = [
        next((group for group in stored if position in group), implied)
        for position in sorted(lost)
    ]
    if all(len(group & lost) == 1 for group in groups):
        return tuple(sorted(set().union(*groups) - lost))
    left = [
        position for position in range(local_parities, width) if position not in lost
    ]
    return tuple(left[:K])


def expected(
    code: StripeCode, keys_of_files: Ints, *, nodes: int, killed: Sequence[int]
) -> Floats:
    """Return the exact expectation of the share of readable files, at each number of nodes killed.

    A file is readable if all of its rows of keys are decodable. Rows are placed independently, so a file of g
    rows is readable with the g-th power of `survival`. This assumes that all sets of distinct nodes are
    equally likely, which nearly holds for the store's slots.
    """
    return np.array(
        [(survival(code, nodes, count) ** keys_of_files).mean() for count in killed]
    )


def deaths(code: StripeCode, nodes_of_keys: Ints, order: Ints) -> Ints:
    """Return the number of kills that makes each row of keys unreadable, from each node's kill number."""
    when = order[nodes_of_keys]
    by_time = np.argsort(when, axis=1, kind="stable")
    lost = np.bitwise_or.accumulate(1 << by_time, axis=1)
    fatal = ~code.survives[lost]
    # Keys that share a node die together, so the first fatal set has their common time.
    first = fatal.argmax(axis=1)
    return np.take_along_axis(
        np.take_along_axis(when, by_time, axis=1), first[:, None], axis=1
    )[:, 0]


def simulated(
    code: StripeCode,
    files_of_keys: Ints,
    *,
    nodes: int,
    killed: Sequence[int],
    repeats: int,
    seed: int,
) -> Floats:
    """Return shares of readable files in seeded repetitions, shape (repeats, len(killed)).

    ``files_of_keys`` is the file of each row of keys, ascending from 0 without gaps. Each position of the
    stripe has its own run of the store's hash slots, from which a key's slot is drawn. Slots are dealt evenly
    to the nodes. Kills are uniform and cumulative.
    """
    first = np.flatnonzero(np.diff(files_of_keys, prepend=-1))
    owners = even_owners(nodes)
    shares = np.empty((repeats, len(killed)))
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        slots = draw_slots(len(files_of_keys), code.width, rng)
        order = 1 + rng.permutation(nodes)
        files = np.minimum.reduceat(deaths(code, owners[slots], order), first)
        shares[repeat] = [(files > count).mean() for count in killed]
    return shares


def positions_read(plan: Callable[[], Any]) -> tuple[int, ...]:
    """Return the positions that a read or repair plan reads, or none if the data is lost."""
    try:
        return tuple(sorted({extent.shard for extent in plan().reads}))
    except UnavailableError:
        return ()
