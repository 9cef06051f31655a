"""Ceph's lrc plugin in its simple form: groups of data and Reed-Solomon parities, decoded by layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar

from stripesim.models.coding.errors import SchemeError, require
from stripesim.models.coding.galois import Bytes, cauchy_matrix
from stripesim.models.coding.grouped import Group, GroupedCode, append_locals
from stripesim.models.coding.protocol import SHARDS_MAX


@dataclass(frozen=True)
class CephLRC(GroupedCode):
    """The layered code of Ceph's lrc plugin in its simple form, written ``lrc-ceph:k,m,l``.

    Parameters
    ----------
    k : int
        Data shards.
    m : int
        Parity shards in all: Ceph's m Reed-Solomon parities and one local parity per group.
    locality : int
        Ceph's l: shards of a local group, data and Reed-Solomon parities together.

    Notes
    -----
    Use `ceph_lrc` to make one from Ceph's own three numbers. Each local parity is the exclusive-or of
    l shards, k / groups of them data; Reed-Solomon parities have local parities too, none is implied.

    Decoding goes by layers, as in the plugin: groups with one shard lost are mended first, then the
    Reed-Solomon layer if it has lost at most its number of parities. Some patterns that have full
    rank are lost to such a decoder: `can_decode` follows the decoder.

    Deviation: Ceph mixes data and parity in the order of shards; here data come first. Which shard
    belongs to which group is the same up to that renumbering.

    References
    ----------
    Ceph 16.2, ``src/erasure-code/lrc/ErasureCodeLrc.cc``, ``parse_kml`` and ``_minimum_to_decode``.

    Examples
    --------
    >>> code = ceph_lrc(4, 2, 3)
    >>> code.name, code.width, [sorted(group) for group in code.groups]
    ('lrc-ceph:4,2,3', 8, [[0, 1, 4, 6], [2, 3, 5, 7]])
    """

    locality: int
    not_optimised_because: ClassVar[str] = "Ceph's lrc plug-in does not support it"

    def __post_init__(self) -> None:
        """Nothing more to check: `ceph_lrc` has Ceph's numbers and checks them."""
        if self.width != (self.locality + 1) * self.local_parities or self.global_parities < 1:
            raise SchemeError(
                f"lrc-ceph: got {self.width} shards in groups of {self.locality} and a local parity, "
                "wanted equal groups and a Reed-Solomon parity (see ceph_lrc)"
            )

    @property
    def name(self) -> str:
        """``lrc-ceph:k,m,l`` with Ceph's m, the Reed-Solomon parities."""
        return f"lrc-ceph:{self.k},{self.global_parities},{self.locality}"

    @property
    def local_parities(self) -> int:
        """Local groups, each with one parity of its own."""
        return max(1, self.width // (self.locality + 1))

    @property
    def global_parities(self) -> int:
        """Reed-Solomon parities, Ceph's m."""
        return self.m - self.local_parities

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Sets of shards of which any one is the exclusive-or of the others."""
        count, coded_first, local_first = self.local_parities, self.k, self.k + self.global_parities
        data, coded = self.k // count, self.global_parities // count
        return tuple(
            frozenset(range(index * data, (index + 1) * data))
            | frozenset(range(coded_first + index * coded, coded_first + (index + 1) * coded))
            | {local_first + index}
            for index in range(count)
        )

    @cached_property
    def generator(self) -> Bytes:
        """The generator matrix, shape (k + m, k): the identity above the parity rows."""
        parity = cauchy_matrix(self.k, self.global_parities)[self.k :]
        return append_locals(parity, self.groups)

    @property
    def surely_tolerated(self) -> int:
        """The Reed-Solomon layer alone bears its number of parities."""
        return self.global_parities

    def _decodes(self, missing: frozenset[int]) -> bool:
        left = set(missing)
        for group in self.groups:
            if len(left & group) == 1:
                left -= group
        return sum(shard < self.k + self.global_parities for shard in left) <= self.global_parities

    def _count(self, size: int) -> int:
        return sum(self._decodes(frozenset(pattern)) for pattern in combinations(range(self.width), size))


def ceph_lrc(k: int, m: int, locality: int) -> CephLRC:
    """Ceph's lrc from its own k, m (Reed-Solomon parities) and l, the shards of a group without its parity.

    `locality` is at least 2 and divides k + m, and the number of groups that gives divides k and m.
    """
    name = f"lrc-ceph:{k},{m},{locality}"
    for key, value, least in (("k", k, 1), ("m", m, 1), ("l", locality, 2)):
        require(value >= least, f"{name}: {key}", value, f"at least {least}")
    require((k + m) % locality == 0, f"{name}: l", locality, f"a divisor of k + m = {k + m}")
    groups = (k + m) // locality
    for key, value in (("k", k), ("m", m)):
        require(value % groups == 0, f"{name}: {key}", value, f"a multiple of (k + m) / l = {groups}")
    require(k + m + groups <= SHARDS_MAX, f"{name}: shards", k + m + groups, f"at most {SHARDS_MAX}")
    return CephLRC(k=k, m=m + groups, locality=locality)
