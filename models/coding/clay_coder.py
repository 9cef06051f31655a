"""Coupled-layer (Clay) codes in NumPy: encode, decode, and repair from parts of the helpers' chunks.

Products are table look-ups, so this is a reference and a kernel whose cost can be measured, not a fast one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.models.coding.errors import DataLossError, SchemeError, require
from stripesim.models.coding.galois import (
    INVERSES,
    PRODUCTS,
    Bytes,
    cauchy_matrix,
    invert,
    matrix_product,
)

Indices = npt.NDArray[np.int64]

#: The coefficient of the pairwise coupling: neither 0 nor 1, so that the coupling can be undone.
GAMMA: Final = 2
#: The inverse of 1 + gamma^2, the determinant of the coupling, and that of gamma.
_UNCOUPLE: Final = int(INVERSES[1 ^ PRODUCTS[GAMMA, GAMMA]])
_GAMMA_INVERSE: Final = int(INVERSES[GAMMA])


@dataclass(frozen=True)
class ClayShape:
    """The grid of nodes and the planes of a Clay code of k data and m parity shards, repaired by d helpers.

    q = d - k + 1. Virtual shards of zeros, which make k + m a multiple of q, are between data and
    parity. Node i is at x = i mod q, y = i div q, y < t. A chunk is q^t sub-chunks, one per plane z;
    the digits z_0 ... z_{t-1} of z are to base q, z_0 the most significant, as in Ceph.
    """

    k: int
    m: int
    d: int

    @property
    def q(self) -> int:
        """Nodes in a column, and the part of a chunk that a repair saves: 1 / q of it is read."""
        return self.d - self.k + 1

    @property
    def virtual(self) -> int:
        """Shards of zeros that fill the grid."""
        return -(self.k + self.m) % self.q

    @property
    def t(self) -> int:
        """Columns of nodes, digits of a plane's number."""
        return (self.k + self.m + self.virtual) // self.q

    @property
    def nodes(self) -> int:
        """Nodes of the grid, virtual ones included."""
        return self.q * self.t

    @property
    def sub_chunks(self) -> int:
        """Sub-chunks of a chunk, q^t."""
        return int(self.q**self.t)

    def node(self, shard: int) -> int:
        """Return the node of a shard: parity follows the virtual nodes."""
        if shard < self.k:
            return shard
        return shard + self.virtual

    def column(self, shard: int) -> list[int]:
        """Return the other shards in the same column, ascending, without virtual ones."""
        y = self.node(shard) // self.q
        return [
            s
            for s in range(self.k + self.m)
            if s != shard and self.node(s) // self.q == y
        ]

    def repair_runs(self, shard: int) -> list[tuple[int, int]]:
        """Return the runs (first, count) helpers read: planes whose digit at the lost column is its x."""
        y, x = divmod(self.node(shard), self.q)
        count = self.q ** (self.t - 1 - y)
        return [((run * self.q + x) * count, count) for run in range(self.q**y)]


class _Step(NamedTuple):
    """Planes of one intersection score, and where their uncoupled symbols come from.

    `own`, `both` and `mixed` are flat indices (node * planes + plane) of unpaired symbols,
    whose partner's coupled symbol is known, and whose partner's uncoupled symbol is known.
    """

    planes: Indices
    own: Indices
    both: Indices
    mixed: Indices


class ClayCoder:
    r"""Encodes and decodes one Clay code for real.

    Notes
    -----
    With U the uncoupled and C the stored symbols, in every plane z the U form a codeword of a scalar
    maximum-distance-separable code, and the symbols of node (x, y) in plane z and of (z_y, y) in the
    plane with z_y replaced by x are a pair if x differs from z_y:

    .. math:: C = U + \gamma U^*, \quad C^* = U^* + \gamma U

    otherwise C = U. Erased nodes are solved plane by plane in the order of the intersection score, the
    number of erased nodes (x, y) with z_y = x: the partner of a known symbol that is itself erased has
    been solved in a plane of smaller score. Encoding is decoding with all parity erased.

    Deviation: the scalar code is Cauchy Reed-Solomon and the coupling is symmetric with gamma = 2; Ceph takes
    both from its jerasure plugin. Bytes of parity differ from Ceph's, amounts and places of reads do not.

    References
    ----------
    M. Vajha et al., "Clay Codes: Moulding MDS Codes to Yield an MSR Code", FAST 2018, sections 3 and 4;
    Ceph 16.2, ``src/erasure-code/clay/ErasureCodeClay.cc``.

    Examples
    --------
    >>> coder = ClayCoder(ClayShape(4, 2, 5))
    >>> data = np.arange(4 * 16, dtype=np.uint8).reshape(4, 16)
    >>> shards = coder.encode(data)
    >>> helpers = {s: coder.helper_part(shards[s], lost=1) for s in range(6) if s != 1}
    >>> helpers[0].size, bool((coder.repair(1, helpers) == shards[1]).all())
    (8, True)
    """

    def __init__(self, shape: ClayShape) -> None:
        self.shape = shape
        self._generator = cauchy_matrix(shape.k + shape.virtual, shape.m)
        planes: Indices = np.arange(shape.sub_chunks)
        weights: Indices = shape.q ** np.arange(shape.t - 1, -1, -1)
        nodes = np.arange(shape.nodes)
        x = nodes % shape.q
        y = nodes // shape.q
        digit: Indices = planes // weights[y][:, None] % shape.q
        self._alone = digit == x[:, None]
        self._partner_node: Indices = y[:, None] * shape.q + digit
        moved: Indices = planes + (x[:, None] - digit) * weights[y][:, None]
        self._partner: Indices = self._partner_node * shape.sub_chunks + moved
        # An erasure pattern's schedule does not depend on the data.
        self._schedule = lru_cache(maxsize=256)(self._make_schedule)
        self._solver = lru_cache(maxsize=256)(self._make_solver)

    def encode(self, data: Bytes) -> Bytes:
        """Return all shards, shape (k + m, chunk), of data chunks (k, chunk) of a multiple of q^t bytes."""
        wanted = f"({self.shape.k}, chunk)"
        require(
            data.ndim == 2 and data.shape[0] == self.shape.k,
            "clay encode: shape",
            data.shape,
            wanted,
        )
        return self.decode(dict(enumerate(data)))

    def decode(self, shards: Mapping[int, Bytes]) -> Bytes:
        """Return all shards, shape (k + m, chunk), from any k of them by number, data first.

        Chunks are uint8, all of one length, a multiple of `ClayShape.sub_chunks` bytes, or a `SchemeError`;
        fewer than k are a `DataLossError`.
        """
        shape = self.shape
        if len(shards) < shape.k:
            raise DataLossError(
                f"clay decode: got {len(shards)} shards, wanted at least {shape.k}"
            )
        coupled = self._grid(shards, np.arange(shape.sub_chunks))
        gone = tuple(shape.node(s) for s in range(shape.k + shape.m) if s not in shards)
        if gone:
            uncoupled = np.zeros_like(coupled)
            self._solve(coupled, uncoupled, gone, tuple(range(shape.sub_chunks)))
            for node in gone:
                # Unpaired symbols are their own partners; gamma must not touch them.
                coupled[node] = uncoupled[node]
                pair = ~self._alone[node]
                coupled[node, pair] ^= _times(
                    GAMMA, _flat(uncoupled)[self._partner[node, pair]]
                )
        rows = [shape.node(shard) for shard in range(shape.k + shape.m)]
        return coupled[rows].reshape(len(rows), -1)

    def helper_part(self, chunk: Bytes, *, lost: int) -> Bytes:
        """Return the sub-chunks (`ClayShape.repair_runs`) that a helper reads to repair a shard."""
        parts = chunk.reshape(self.shape.sub_chunks, -1)
        return np.concatenate(
            [
                parts[first : first + count]
                for first, count in self.shape.repair_runs(lost)
            ]
        )

    def repair(self, lost: int, helpers: Mapping[int, Bytes]) -> Bytes:
        """Return one chunk from the `helper_part` of d shards, which include the lost shard's column."""
        shape = self.shape
        if len(helpers) < shape.d or not set(shape.column(lost)) <= set(helpers):
            raise DataLossError(
                f"clay repair of {lost}: got helpers {sorted(helpers)}, "
                f"wanted {shape.d}, {shape.column(lost)} among them"
            )
        planes = np.concatenate(
            [np.arange(first, first + n) for first, n in shape.repair_runs(lost)]
        )
        coupled = self._grid(helpers, planes)
        mine = shape.node(lost)
        first = mine - mine % shape.q
        column = range(first, first + shape.q)
        aloof = [
            shape.node(s)
            for s in range(shape.k + shape.m)
            if s != lost and s not in helpers
        ]
        uncoupled = np.zeros_like(coupled)
        # The lost node's partners lie outside these planes, so its whole column is unknown.
        self._solve(
            coupled, uncoupled, tuple(sorted([*column, *aloof])), tuple(planes.tolist())
        )
        coupled[mine, planes] = uncoupled[mine, planes]
        for node in set(column) - {mine}:
            # C = U + gamma U* gives the lost node's U*, and from it C* = U* + gamma U.
            known = uncoupled[node, planes]
            other = _times(_GAMMA_INVERSE, coupled[node, planes] ^ known)
            _flat(coupled)[self._partner[node, planes]] = other ^ _times(GAMMA, known)
        rebuilt: Bytes = coupled[mine].reshape(-1)
        return rebuilt

    def _grid(self, shards: Mapping[int, Bytes], planes: Indices) -> Bytes:
        """Return the chunks as symbols of these planes, shape (nodes, all planes, bytes); zeros elsewhere."""
        sizes = {chunk.size for chunk in shards.values()}
        if len(sizes) != 1 or min(sizes) % len(planes):
            wanted = f"one multiple of {len(planes)} sub-chunks"
            raise SchemeError(
                f"clay: chunk sizes: got {sorted(sizes)} bytes, wanted {wanted}"
            )
        shape = (self.shape.nodes, self.shape.sub_chunks, min(sizes) // len(planes))
        grid = np.zeros(shape, dtype=np.uint8)
        for shard, chunk in shards.items():
            grid[self.shape.node(shard), planes] = chunk.reshape(len(planes), -1)
        return grid

    def _solve(
        self,
        coupled: Bytes,
        uncoupled: Bytes,
        gone: tuple[int, ...],
        planes: tuple[int, ...],
    ) -> None:
        """Fill in the uncoupled symbols of all nodes in these planes."""
        stored = _flat(coupled)
        free = _flat(uncoupled)
        partner = self._partner.reshape(-1)
        sources, weights = self._solver(gone)
        for step in self._schedule(gone, planes):
            free[step.own] = stored[step.own]
            pair = stored[step.both] ^ _times(GAMMA, stored[partner[step.both]])
            free[step.both] = _times(_UNCOUPLE, pair)
            free[step.mixed] = stored[step.mixed] ^ _times(
                GAMMA, free[partner[step.mixed]]
            )
            known = uncoupled[np.ix_(sources, step.planes)]
            for node, row in zip(gone, weights, strict=True):
                total = np.zeros_like(known[0])
                for weight, symbols in zip(row.tolist(), known, strict=True):
                    total ^= _times(weight, symbols)
                uncoupled[node, step.planes] = total

    def _make_solver(self, gone: tuple[int, ...]) -> tuple[Indices, Bytes]:
        """Return the nodes to solve from, and the coefficients of each, shape (gone, nodes to solve from)."""
        width = self._generator.shape[1]
        left = [node for node in range(self.shape.nodes) if node not in gone]
        sources = np.array(left[:width], dtype=np.int64)
        return sources, matrix_product(
            self._generator[list(gone)], invert(self._generator[sources])
        )

    def _make_schedule(
        self, gone: tuple[int, ...], planes: tuple[int, ...]
    ) -> list[_Step]:
        """Group planes by intersection score, and sort each group's symbols by how they are uncoupled."""
        inside = np.zeros(self.shape.sub_chunks, dtype=bool)
        inside[list(planes)] = True
        is_gone = np.zeros(self.shape.nodes, dtype=bool)
        is_gone[list(gone)] = True
        score = self._alone[list(gone)].sum(axis=0)
        partner_gone = is_gone[self._partner_node]
        steps = []
        for value in np.unique(score[inside]).tolist():
            here = inside & (score == value)
            wanted = ~is_gone[:, None] & here[None, :]
            pair = wanted & ~self._alone
            steps.append(
                _Step(
                    planes=np.flatnonzero(here),
                    own=np.flatnonzero(wanted & self._alone),
                    both=np.flatnonzero(pair & ~partner_gone),
                    mixed=np.flatnonzero(pair & partner_gone),
                )
            )
        return steps


def _times(weight: int, symbols: Bytes) -> Bytes:
    product: Bytes = PRODUCTS[weight].take(symbols)
    return product


def _flat(grid: Bytes) -> Bytes:
    """Return a view of shape (nodes * planes, bytes)."""
    return grid.reshape(-1, grid.shape[2])


@lru_cache(maxsize=64)
def coder_of(shape: ClayShape) -> ClayCoder:
    """Return the coder of a shape, made once."""
    return ClayCoder(shape)
