"""A code that its author describes outside the package, checked by its generator matrix.

`CodeDescription` is what an author writes, `OwnCode` the scheme that the simulator makes of it.
`stripesim.models.coding.own_files` loads descriptions from files and packages.
"""

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeVar

import numpy as np

from stripesim.models.coding.galois import (
    Bytes,
    columns_independent,
    independent_rows,
    rank,
)
from stripesim.models.coding.geometry import StripeGeometry, padded_unit_bytes
from stripesim.models.coding.protocol import ObjectRepair, ShardExtent
from stripesim.models.coding.reed_solomon import ReedSolomon
from stripesim.models.problems import OwnCodeError, one_line

#: Largest number of rows of a generator matrix: shards times sub-chunks.
ROWS_MAX: Final = 1024
#: Table look-ups that the search for undecodable losses may take for one number of losses.
_SEARCH_MAX: Final = 1 << 31
#: Bytes of the matrices that the search eliminates together.
_BATCH_BYTES: Final = 1 << 24

Result = TypeVar("Result")


class CodeDescription(Protocol):
    """Interface of a code that an author writes: a class whose numbers are those of its form.

    Optional are ``sub_chunks``, ``repair``, ``costs_as`` and ``encode``.

    Attributes
    ----------
    form
        Notation, such as ``"halves:k"``. An object is made from the numbers that a scenario writes there.
    k, m
        Data and parity shards [count].
    sub_chunks
        Parts that a chunk has [count], 1 by default.
    costs_as
        Code such as ``"rs:6,3"`` whose measured encoding and decoding costs apply, until ``stripesim kernel
        --save`` has timed ``encode``.
    """

    form: ClassVar[str]
    k: int
    m: int

    def generator(self) -> Any:
        """Return the generator matrix over GF(2^8), an identity above the parities.

        Returns
        -------
        array
            Whole numbers 0 to 255, shape ((k + m) a, k a) with a = ``sub_chunks``. Rows s a to s a + a - 1
            are the sub-chunks of shard s.
        """
        ...

    # Optional:
    #   def repair(self, lost: frozenset[int], available: frozenset[int])
    #       -> Mapping[int, Iterable[int]] | None
    #   def encode(self, data: NDArray[uint8]) -> NDArray[uint8]


@dataclass(frozen=True)
class OwnCode(ReedSolomon):
    """A linear code described by its author.

    Objects are written and read in whole stripes, as in `ReedSolomon`. The generator matrix decides which
    losses can be decoded, and every repair is checked: the sub-chunks that it reads must determine those that
    it writes.
    """

    text: str  #: Name, such as ``halves:4``
    place: str  #: File, line and class of the description, for messages
    sha256: str  #: Of the file, or of its name for a code of a package
    described: Any = field(compare=False, repr=False)  #: The author's object

    not_optimised_because: ClassVar[str] = (
        "own codes are planned in whole stripes, since no plug-in of Ceph supports them"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_generator()
        if self.failures_tolerated < 1:
            raise OwnCodeError(
                f"{self.place}: generator(): got a code that loses data with one shard, wanted one that "
                "survives the loss of any shard"
            )
        everything = frozenset(range(self.width))
        for shard in range(self.width):
            self.repair_parts(frozenset({shard}), everything - {shard})

    @property
    def name(self) -> str:
        """Name as written in scenarios."""
        return self.text

    @cached_property
    def sub_chunks(self) -> int:
        """Parts of a chunk [count]."""
        return whole_number(self.described, "sub_chunks", self.place, default=1)

    @cached_property
    def costs_as(self) -> str | None:
        """Code whose measured costs apply, or None."""
        name = getattr(self.described, "costs_as", None)
        if name is None or isinstance(name, str):
            return name
        raise OwnCodeError(
            f"{self.place}: costs_as: got {name!r}, wanted a code such as rs:6,3"
        )

    @cached_property
    def generator(self) -> Bytes:
        """Generator matrix, uint8 of shape ((k + m) a, k a) with a sub-chunks per chunk."""
        answer = called(self.described.generator, f"{self.place}: generator()")
        try:
            matrix = np.asarray(answer)
        except ValueError:
            matrix = np.asarray(None)
        rows = self.width * self.sub_chunks
        columns = self.k * self.sub_chunks
        where = f"{self.place}: generator()"
        wanted = f"a matrix of whole numbers, shape ({rows}, {columns})"
        if matrix.dtype.kind not in "iu":
            raise OwnCodeError(
                f"{where}: got {matrix.dtype.name} values, wanted {wanted}"
            )
        if matrix.shape != (rows, columns):
            raise OwnCodeError(f"{where}: got shape {matrix.shape}, wanted {wanted}")
        if matrix.min() < 0 or matrix.max() > 255:
            raise OwnCodeError(
                f"{where}: got {matrix.min()} to {matrix.max()}, wanted 0 to 255"
            )
        return matrix.astype(np.uint8)

    @cached_property
    def parity_check(self) -> Bytes:
        """Parity-check matrix, uint8 of shape (m a, (k + m) a). Its product with the shards is zero."""
        parts = self.m * self.sub_chunks
        parities = self.generator[self.k * self.sub_chunks :]
        return np.concatenate([parities, np.eye(parts, dtype=np.uint8)], axis=1)

    @cached_property
    def failures_tolerated(self) -> int:
        """Number of arbitrary losses tolerated, a proven lower bound if the patterns are too many to try."""
        size = 1
        while size <= self.m and self._decodes_all(size):
            size += 1
        return size - 1

    def can_decode(self, missing: frozenset[int]) -> bool:
        """Return True if the remaining shards determine the data."""
        self._check_shards(missing)
        return _can_decode(self, frozenset(missing))

    def geometry(self, stripe_unit_bytes: int) -> StripeGeometry:
        """Return stripes of k chunks with the unit [B] padded to whole sub-chunks."""
        if self.sub_chunks > 1:
            stripe_unit_bytes = padded_unit_bytes(stripe_unit_bytes, self.sub_chunks)
        return StripeGeometry(k=self.k, stripe_unit_bytes=stripe_unit_bytes)

    def repair_parts(
        self, lost: frozenset[int], available: frozenset[int]
    ) -> Mapping[int, tuple[int, ...]] | None:
        """Return the sub-chunks that a repair reads, by shard, or None if it decodes whole stripes.

        Parameters
        ----------
        lost
            Shards to rebuild.
        available
            Shards that can be read.

        Raises
        ------
        OwnCodeError
            If the description's ``repair`` reads what does not exist, or what does not determine the lost
            shards.
        """
        return _repair_parts(self, lost, available)

    def _check_generator(self) -> None:
        where = f"{self.place}: sub_chunks"
        rows = self.width * self.sub_chunks
        if self.sub_chunks < 1:
            raise OwnCodeError(f"{where}: got {self.sub_chunks}, wanted 1 or more")
        if rows > ROWS_MAX:
            raise OwnCodeError(
                f"{where}: got {rows} sub-chunks in a stripe, wanted at most {ROWS_MAX}"
            )
        columns = self.k * self.sub_chunks
        if not (self.generator[:columns] == np.eye(columns, dtype=np.uint8)).all():
            raise OwnCodeError(
                f"{self.place}: generator(): got other first {columns} rows, wanted an identity "
                "(a systematic code, data shards first)"
            )

    def _decodes_all(self, size: int) -> bool:
        """Return True if every loss of `size` shards was tried and can be decoded."""
        columns = size * self.sub_chunks
        rows = self.m * self.sub_chunks
        if comb(self.width, size) * columns * columns * rows > _SEARCH_MAX:
            return False
        patterns = list(combinations(range(self.width), size))
        batch = max(1, _BATCH_BYTES // (rows * columns))
        return all(
            columns_independent(self._columns(patterns[first : first + batch])).all()
            for first in range(0, len(patterns), batch)
        )

    def _columns(self, patterns: list[tuple[int, ...]]) -> Bytes:
        """Return the columns of the parity-check matrix of each pattern of shards."""
        shards = np.array(patterns, dtype=np.int64)
        parts = shards[:, :, None] * self.sub_chunks + np.arange(self.sub_chunks)
        indices = parts.reshape(len(patterns), -1)
        return self.parity_check[:, indices].transpose(1, 0, 2)

    def _rows(self, parts: Mapping[int, Iterable[int]]) -> Bytes:
        """Return the rows of the generator matrix of some sub-chunks."""
        a = self.sub_chunks
        return self.generator[
            [shard * a + part for shard, every in parts.items() for part in every]
        ]

    def _sources(self, missing: frozenset[int]) -> list[int]:
        """Return the shards to read: data first, then parities that add information."""
        return list(_sources(self, frozenset(missing)))

    def _repair_reads(
        self, repair: ObjectRepair
    ) -> tuple[tuple[ShardExtent, ...], int]:
        """Return the sub-chunks that the description names, or whole sources to decode."""
        everything = frozenset(range(self.width))
        parts = self.repair_parts(
            repair.lost, everything - repair.lost - repair.unavailable
        )
        if parts is None:
            reads, _ = super()._repair_reads(repair)
            return reads, len(repair.lost | repair.unavailable)
        unit = repair.geometry.stripe_unit_bytes
        reads = tuple(
            ShardExtent(shard, offset, length)
            for shard in sorted(parts)
            for offset, length in self._runs(parts[shard], unit, repair.shard_bytes)
        )
        return reads, len(repair.lost)

    def _runs(
        self, parts: tuple[int, ...], unit_bytes: int, shard_bytes: int
    ) -> list[tuple[int, int]]:
        """Return the runs of bytes (offset, length) of some sub-chunks in every chunk of a shard."""
        if len(parts) == self.sub_chunks:
            return [(0, shard_bytes)]
        part_bytes = unit_bytes // self.sub_chunks
        runs: list[tuple[int, int]] = []
        for chunk in range(0, shard_bytes, unit_bytes):
            for part in parts:
                offset = chunk + part * part_bytes
                if runs and sum(runs[-1]) == offset:
                    runs[-1] = (runs[-1][0], runs[-1][1] + part_bytes)
                else:
                    runs.append((offset, part_bytes))
        return runs


def whole_number(
    described: object, key: str, place: str, default: int | None = None
) -> int:
    """Return a whole number that an author's object has."""
    value = called(getattr, f"{place}: {key}", described, key, default)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    shown = f"{value!r}" if hasattr(described, key) else "nothing"
    raise OwnCodeError(f"{place}: {key}: got {shown}, wanted a whole number")


def called(function: Callable[..., Result], where: str, *arguments: Any) -> Result:
    """Call an author's function, and report what it raises with its line."""
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Author's code that calls sys.exit() does not end the command.
        raise OwnCodeError(f"{where}: got {raised_at(error)}") from error


def raised_at(error: BaseException) -> str:
    """Describe an error by its class, message and line in the author's file."""
    message = one_line(error) if str(error) else "no message"
    package = str(Path(__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(package)
    ]
    # Libraries that the author calls come after the author's own file.
    lines = [frame.lineno for frame in frames if frame.filename == frames[0].filename]
    line = f" in line {lines[-1]}" if lines else ""
    return f"{type(error).__name__}{line} ({message})"


@lru_cache(maxsize=1 << 14)
def _can_decode(code: OwnCode, missing: frozenset[int]) -> bool:
    if not missing:
        return True
    if len(missing) > code.m:
        return False
    columns = code._columns([tuple(sorted(missing))])
    return bool(columns_independent(columns)[0])


@lru_cache(maxsize=1 << 14)
def _sources(code: OwnCode, missing: frozenset[int]) -> tuple[int, ...]:
    present = [shard for shard in range(code.width) if shard not in missing]
    if code.sub_chunks == 1:
        return tuple(sorted(independent_rows(code.generator, present, code.k)))
    sources: list[int] = []
    known = 0
    for shard in present:
        if known == code.k * code.sub_chunks:
            break
        every = range(code.sub_chunks)
        more = rank(code._rows(dict.fromkeys([*sources, shard], every)))
        if more > known:
            sources.append(shard)
            known = more
    return tuple(sources)


@lru_cache(maxsize=1 << 14)
def _repair_parts(
    code: OwnCode, lost: frozenset[int], available: frozenset[int]
) -> Mapping[int, tuple[int, ...]] | None:
    repair = getattr(code.described, "repair", None)
    if repair is None:
        return None
    where = f"{code.place}: repair({sorted(lost)})"
    answer = called(repair, where, lost, available)
    answer = called(_listed, where, answer)
    if answer is None:
        return None
    parts = _checked_parts(code, answer, available, where)
    rows = code._rows(parts)
    rebuilt = code._rows(dict.fromkeys(sorted(lost), range(code.sub_chunks)))
    known = rank(rows)
    lacking = rank(np.concatenate([rows, rebuilt])) - known
    if lacking:
        raise OwnCodeError(
            f"{where}: got reads that leave {lacking} of {len(rebuilt)} sub-chunks unknown, wanted reads "
            "that determine them"
        )
    return parts


def _listed(given: Any) -> Any:
    """List the sub-chunks of each shard, which may come from an author's generator."""
    if not isinstance(given, Mapping):
        return given
    return {
        shard: list(every) if isinstance(every, Iterable) else every
        for shard, every in given.items()
    }


def _checked_parts(
    code: OwnCode, given: Any, available: frozenset[int], where: str
) -> dict[int, tuple[int, ...]]:
    wanted = "sub-chunks by shard, such as {0: [0], 1: [0]}, or None"
    if not isinstance(given, Mapping) or not given:
        raise OwnCodeError(f"{where}: got {given!r}, wanted {wanted}")
    parts = {}
    for shard, every in given.items():
        if shard not in available:
            raise OwnCodeError(
                f"{where}: got a read of shard {shard!r}, wanted {sorted(available)} only"
            )
        if not isinstance(every, Iterable):
            raise OwnCodeError(f"{where}: got {given!r}, wanted {wanted}")
        listed = set(every)
        if not listed or not listed <= set(range(code.sub_chunks)):
            raise OwnCodeError(
                f"{where}: shard {shard}: got sub-chunks {sorted(listed, key=repr)}, wanted some of 0 to "
                f"{code.sub_chunks - 1}"
            )
        parts[int(shard)] = tuple(sorted(map(int, listed)))
    return parts
