"""Implement coupled-layer (Clay) codes in NumPy: encode, decode, and repair from parts of chunks.

Products are table look-ups. This is a reference implementation whose cost can be measured, not a fast kernel.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.models.coding.errors import require
from stripesim.models.coding.galois import (
    INVERSES,
    PRODUCTS,
    Bytes,
    cauchy_matrix,
    invert,
    matrix_product,
)
from stripesim.models.problems import SchemeError, UnavailableError

Indices = npt.NDArray[np.int64]

#: Coefficient of the pairwise coupling. It is neither 0 nor 1, so that the coupling is invertible.
GAMMA: Final = 2
#: Inverses of 1 + gamma^2 (the determinant of the coupling) and of gamma.
_UNCOUPLE: Final = int(INVERSES[1 ^ PRODUCTS[GAMMA, GAMMA]])
_GAMMA_INVERSE: Final = int(INVERSES[GAMMA])


@dataclass(frozen=True)
class ClayShape:
    """The node grid and planes of a Clay code with k data and m parity shards, repaired by d helpers.

    With q = d - k + 1, virtual shards of zeros between data and parity make k + m a multiple of q. Node i is
    at x = i mod q and y = i div q, y < t. A chunk has q^t sub-chunks, one per plane z. The digits
    z_0 ... z_{t-1} of z are in base q, with z_0 the most significant, as in Ceph.
    """

    k: int
    m: int
    d: int

    @property
    def q(self) -> int:
        """Nodes per column. Repair reads 1 / q of each helper's chunk."""
        return self.d - self.k + 1

    @property
    def virtual(self) -> int:
        """Number of virtual shards of zeros that fill the grid."""
        return -(self.k + self.m) % self.q

    @property
    def t(self) -> int:
        """Number of columns, which is also the number of digits of a plane."""
        return (self.k + self.m + self.virtual) // self.q

    @property
    def nodes(self) -> int:
        """Number of nodes in the grid, including virtual ones."""
        return self.q * self.t

    @property
    def sub_chunks(self) -> int:
        """Number of sub-chunks per chunk, q^t."""
        return int(self.q**self.t)

    def node(self, shard: int) -> int:
        """Return the node of a shard. Parity follows the virtual nodes."""
        if shard < self.k:
            return shard
        return shard + self.virtual

    def column(self, shard: int) -> list[int]:
        """Return the other shards of the same column, ascending, without virtual ones."""
        y = self.node(shard) // self.q
        return [
            s
            for s in range(self.k + self.m)
            if s != shard and self.node(s) // self.q == y
        ]

    def repair_runs(self, shard: int) -> list[tuple[int, int]]:
        """Return the runs (first, count) of sub-chunks that each helper reads to repair a shard."""
        y, x = divmod(self.node(shard), self.q)
        count = self.q ** (self.t - 1 - y)
        return [((run * self.q + x) * count, count) for run in range(self.q**y)]


class _ScorePlanes(NamedTuple):
    """The planes of one intersection score, and the sources of their uncoupled symbols.

    `own`, `both` and `mixed` hold flat indices (node * planes + plane) of symbols that are unpaired, whose
    partner's coupled symbol is known, and whose partner's uncoupled symbol is known, respectively.
    """

    planes: Indices
    own: Indices
    both: Indices
    mixed: Indices


class ClayCoder:
    r"""Encode, decode and repair with one Clay code.

    Notes
    -----
    U denotes the uncoupled and C the stored symbols. In every plane z, the symbols U form a codeword of a
    scalar maximum-distance-separable code. Symbols of node (x, y) in plane z with x different from z_y are
    paired with those of node (z_y, y) in the plane where z_y is replaced by x:

    .. math:: C = U + \gamma U^*, \quad C^* = U^* + \gamma U

    All other symbols have C = U. Erased nodes are solved plane by plane, ordered by intersection score, the
    number of erased nodes (x, y) with z_y = x. An erased partner of a known symbol has then been solved
    already in a plane of smaller score. Encoding is decoding with all parity erased.

    Deviation: the scalar code is Cauchy Reed-Solomon, and the coupling is symmetric with gamma = 2. Ceph
    takes both from its jerasure plugin. Parity bytes differ from Ceph's, but the amounts and positions of
    reads do not.

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
        # The schedule of an erasure pattern does not depend on the data.
        self._schedule = lru_cache(maxsize=256)(self._make_schedule)
        self._solver = lru_cache(maxsize=256)(self._make_solver)

    def encode(self, data: Bytes) -> Bytes:
        """Encode data chunks.

        Parameters
        ----------
        data
            Data chunks, uint8 of shape (k, chunk). The chunk size is a multiple of `ClayShape.sub_chunks`
            bytes.

        Returns
        -------
        Bytes
            All shards, uint8 of shape (k + m, chunk), data first.

        Raises
        ------
        SchemeError
            If the shape or the chunk size is wrong.
        """
        wanted = f"({self.shape.k}, chunk)"
        require(
            data.ndim == 2 and data.shape[0] == self.shape.k,
            "clay encode: shape",
            data.shape,
            wanted,
        )
        return self.decode(dict(enumerate(data)))

    def decode(self, shards: Mapping[int, Bytes]) -> Bytes:
        """Decode all shards from any k of them.

        Parameters
        ----------
        shards
            Chunks by shard number, data first. All are uint8 and of the same size, a multiple of
            `ClayShape.sub_chunks` bytes.

        Returns
        -------
        Bytes
            All shards, uint8 of shape (k + m, chunk), data first.

        Raises
        ------
        UnavailableError
            If there are fewer than k shards.
        SchemeError
            If chunk sizes differ or are not a multiple of the number of sub-chunks.
        """
        shape = self.shape
        if len(shards) < shape.k:
            raise UnavailableError(
                f"clay decode: got {len(shards)} shards, wanted at least {shape.k}"
            )
        coupled = self._grid(shards, np.arange(shape.sub_chunks))
        gone = tuple(shape.node(s) for s in range(shape.k + shape.m) if s not in shards)
        if gone:
            uncoupled = np.zeros_like(coupled)
            self._solve(coupled, uncoupled, gone, tuple(range(shape.sub_chunks)))
            for node in gone:
                # An unpaired symbol is its own partner and must not be multiplied by gamma.
                coupled[node] = uncoupled[node]
                pair = ~self._alone[node]
                coupled[node, pair] ^= _times(
                    GAMMA, _flat(uncoupled)[self._partner[node, pair]]
                )
        rows = [shape.node(shard) for shard in range(shape.k + shape.m)]
        return coupled[rows].reshape(len(rows), -1)

    def helper_part(self, chunk: Bytes, *, lost: int) -> Bytes:
        """Return the sub-chunks of a helper's chunk (uint8) that repair of shard `lost` reads.

        `ClayShape.repair_runs` lists them. The result is uint8 of 1 / q of the chunk size.
        """
        parts = chunk.reshape(self.shape.sub_chunks, -1)
        return np.concatenate(
            [
                parts[first : first + count]
                for first, count in self.shape.repair_runs(lost)
            ]
        )

    def repair(self, lost: int, helpers: Mapping[int, Bytes]) -> Bytes:
        """Rebuild one chunk from parts of its helpers' chunks.

        Parameters
        ----------
        lost
            Shard to rebuild.
        helpers
            The `helper_part` of at least d shards, which include all others in the column of the lost shard.

        Returns
        -------
        Bytes
            The rebuilt chunk, uint8 of shape (chunk,).

        Raises
        ------
        UnavailableError
            If there are too few helpers, or a shard of the column is missing.
        SchemeError
            If the sizes of the parts differ or are not a multiple of the number of sub-chunks read.
        """
        shape = self.shape
        if len(helpers) < shape.d or not set(shape.column(lost)) <= set(helpers):
            raise UnavailableError(
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
        # The partners of the lost node are outside these planes, so its whole column is unknown.
        self._solve(
            coupled, uncoupled, tuple(sorted([*column, *aloof])), tuple(planes.tolist())
        )
        coupled[mine, planes] = uncoupled[mine, planes]
        for node in set(column) - {mine}:
            # C = U + gamma U* yields U* of the lost node, and then C* = U* + gamma U.
            known = uncoupled[node, planes]
            lost_free = _times(_GAMMA_INVERSE, coupled[node, planes] ^ known)
            _flat(coupled)[self._partner[node, planes]] = lost_free ^ _times(
                GAMMA, known
            )
        rebuilt: Bytes = coupled[mine].reshape(-1)
        return rebuilt

    def _grid(self, shards: Mapping[int, Bytes], planes: Indices) -> Bytes:
        """Return the chunks as symbols of these planes, shape (nodes, all planes, bytes), zero elsewhere."""
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
        """Compute the uncoupled symbols of all nodes in these planes."""
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
        """Return the nodes to solve from, and their coefficients, shape (gone nodes, source nodes)."""
        width = self._generator.shape[1]
        left = [node for node in range(self.shape.nodes) if node not in gone]
        sources = np.array(left[:width], dtype=np.int64)
        return sources, matrix_product(
            self._generator[list(gone)], invert(self._generator[sources])
        )

    def _make_schedule(
        self, gone: tuple[int, ...], planes: tuple[int, ...]
    ) -> list[_ScorePlanes]:
        """Group planes by intersection score, and the symbols of each group by how they are uncoupled."""
        inside = np.zeros(self.shape.sub_chunks, dtype=bool)
        inside[list(planes)] = True
        is_gone = np.zeros(self.shape.nodes, dtype=bool)
        is_gone[list(gone)] = True
        score = self._alone[list(gone)].sum(axis=0)
        partner_gone = is_gone[self._partner_node]
        steps = []
        for value in np.unique(score[inside]).tolist():
            scored = inside & (score == value)
            wanted = ~is_gone[:, None] & scored[None, :]
            pair = wanted & ~self._alone
            steps.append(
                _ScorePlanes(
                    planes=np.flatnonzero(scored),
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
    """Return the cached coder of a shape."""
    return ClayCoder(shape)
