"""Cost of encoding and decoding: fitted measurements as pure functions of the data size.

`stripesim.calibration.kernels.measure` produces tables, some tables ship with the package, and
`stripesim.models.kernel.documents` reads them. This module checks and evaluates them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from stripesim.models.problems import KernelError, Problem

Op = Literal["encode", "decode", "reconstruct"]
OPS: tuple[str, ...] = get_args(Op)


#: What every kernel table states about its measurements.
_PROVENANCE_KEYS = ("basis", "cpu", "versions", "date")


@dataclass(frozen=True, slots=True)
class AffineKnee:
    """A piecewise linear duration with a steeper or flatter slope beyond a knee.

    The knee represents the working set outgrowing a cache level.

    Notes
    -----
    t(x) = fixed + per_byte * min(x, knee) + per_byte_beyond * max(x - knee, 0), in ns and bytes. The knee is
    infinite if the measurements show none.

    Examples
    --------
    >>> AffineKnee(100.0, 0.5, 1000.0, 1.0).duration_ns(1500)
    1100.0
    """

    fixed_ns: float
    per_byte_ns: float
    knee_bytes: float = math.inf
    per_byte_beyond_ns: float = 0.0

    def __post_init__(self) -> None:
        for name in ("fixed_ns", "per_byte_ns", "knee_bytes", "per_byte_beyond_ns"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and value >= 0):
                raise KernelError(
                    f"kernel cost: {name}: got {value!r}, wanted a number of 0 or more"
                )

    def duration_ns(self, data_bytes: float) -> float:
        """Return the duration for `data_bytes` of data [ns]. See the class for the equation."""
        below = min(data_bytes, self.knee_bytes)
        return (
            self.fixed_ns
            + self.per_byte_ns * below
            + self.per_byte_beyond_ns * (data_bytes - below)
        )


@dataclass(frozen=True, slots=True)
class KernelCost:
    """Cost of one operation of one code on one CPU."""

    #: Library and technique, such as ``isa_l_rs_vand``, and code, such as ``rs:6,3``.
    backend: str
    scheme: str
    op: Op  #: ``decode`` returns all data, ``reconstruct`` one shard
    erasures: int  #: Missing shards: 0 for encode, 1 for reconstruct
    #: Fits to the whole call; to the same call with the null code, which copies but computes nothing; and to
    #: the difference of the two measurements, because subtracting two fits would magnify their residuals.
    #: `copy` and `net` are None if they were not measured.
    total: AffineKnee
    copy: AffineKnee | None
    net: AffineKnee | None
    #: Range of measured data sizes [B] and their number. Durations outside the range are extrapolated.
    size_min_bytes: int
    size_max_bytes: int
    points: int
    #: Median and largest relative residual of the `total` fit, |fit / measured - 1|.
    residual_median: float
    residual_max: float

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise KernelError(
                f"kernel cost: op: got {self.op!r}, wanted one of {', '.join(OPS)}"
            )
        least, most = {"encode": (0, 0), "reconstruct": (1, 1)}.get(
            self.op, (0, math.inf)
        )
        if not least <= self.erasures <= most:
            wanted = f"{least}" if least == most else f"{least} or more"
            raise KernelError(
                f"kernel cost: {self.op}: erasures: got {self.erasures}, wanted {wanted}"
            )

    def duration_ns(self, data_bytes: float) -> float:
        """Return the duration of one whole call on k chunks with `data_bytes` of data in total [ns].

        Raises
        ------
        KernelError
            If `data_bytes` is negative.
        """
        return self._duration_ns(self.total, data_bytes)

    def arithmetic_ns(self, data_bytes: float) -> float:
        """Return the duration of one call without the library's copies [ns].

        This is the duration of the whole call if the copies were not measured, as in Ceph's plugins.
        Parameters and errors are those of `duration_ns`.
        """
        return self._duration_ns(self.net or self.total, data_bytes)

    def _duration_ns(self, part: AffineKnee, data_bytes: float) -> float:
        if data_bytes < 0:
            raise KernelError(
                f"kernel cost: data_bytes: got {data_bytes}, wanted 0 or more"
            )
        return part.duration_ns(data_bytes)


@dataclass(frozen=True)
class KernelModel:
    """Kernel costs measured on one CPU, at most one per backend, scheme, operation and number of erasures.

    `name` equals the stem of the table's file. `provenance` has at least ``basis`` (such as ``measured``),
    ``cpu``, ``versions`` and ``date``.
    """

    name: str
    provenance: Mapping[str, Any]
    costs: tuple[KernelCost, ...]

    def __post_init__(self) -> None:
        missing = [key for key in _PROVENANCE_KEYS if key not in self.provenance]
        if missing:
            place = f"kernel table {self.name}"
            got = f"no {', '.join(missing)}"
            wanted = ", ".join(_PROVENANCE_KEYS)
            raise KernelError(
                Problem(place=place, key="provenance", got=got, wanted=wanted)
            )
        if len(self._index) != len(self.costs):
            raise KernelError(
                f"kernel table {self.name}: two costs for the same operation"
            )

    @cached_property
    def _index(self) -> dict[tuple[str, str, str, int], KernelCost]:
        return {
            (cost.backend, cost.scheme, cost.op, cost.erasures): cost
            for cost in self.costs
        }

    @cached_property
    def backends(self) -> tuple[str, ...]:
        """Backends in the order of the table. The first is the default."""
        return tuple(dict.fromkeys(cost.backend for cost in self.costs))

    @cached_property
    def _schemes(self) -> dict[str | None, tuple[str, ...]]:
        """Schemes by backend, and all of them under None, in the order of the table."""
        timed: dict[str | None, dict[str, None]] = {None: {}}
        for cost in self.costs:
            for backend in (None, cost.backend):
                timed.setdefault(backend, {})[cost.scheme] = None
        return {backend: tuple(schemes) for backend, schemes in timed.items()}

    def schemes(self, backend: str | None = None) -> tuple[str, ...]:
        """Return the schemes timed with one backend, or with any if it is None."""
        return self._schemes.get(backend, ())

    def cost(
        self, *, scheme: str, op: Op, erasures: int = 0, backend: str | None = None
    ) -> KernelCost:
        """Return the cost of one operation.

        Parameters
        ----------
        scheme
            Code such as ``rs:6,3``.
        op
            ``encode``, ``decode`` or ``reconstruct``.
        erasures
            Missing shards: 0 for encode, 1 for reconstruct, 1 or more for decode.
        backend
            Library and technique. None uses the first backend in the table that has the cost.

        Raises
        ------
        KernelError
            If there is no such cost. The message lists the available schemes or backends.
        """
        for candidate in (backend,) if backend else self.backends:
            cost = self._index.get((candidate, scheme, op, erasures))
            if cost is not None:
                return cost
        of_backend = f" by {backend}" if backend else ""
        have = "schemes " + ", ".join(self.schemes(backend))
        if backend is not None and backend not in self.backends:
            have = "backends " + ", ".join(self.backends)
        with_erasures = f" with {erasures} erasures" if erasures else ""
        raise KernelError(
            f"kernel table {self.name}: no {op} of {scheme}{with_erasures}{of_backend}; it has {have}; "
            f"`stripesim kernel --scheme {scheme} --save` measures it here"
        )

    def decode_ns(
        self,
        data_bytes: float,
        *,
        scheme: str,
        erasures: int,
        backend: str | None = None,
    ) -> float:
        """Return the duration of decoding all data (k chunks), without the library's copies if known [ns].

        Parameters
        ----------
        data_bytes
            Data of all k chunks [B], at least 0.
        scheme, erasures, backend
            As for `cost`.

        Raises
        ------
        KernelError
            As for `cost` and `KernelCost.arithmetic_ns`.

        Notes
        -----
        If the table lacks this number of erasures (Ceph's stops at 2), the last measured increment is
        repeated, because each further shard is one more row of products over the same data.
        """
        first = self.cost(
            scheme=scheme, op="decode", erasures=min(erasures, 1), backend=backend
        )
        counts = [
            e
            for b, s, op, e in self._index
            if (b, s, op) == (first.backend, scheme, "decode")
        ]

        def at(count: int) -> float:
            cost = self.cost(
                scheme=scheme, op="decode", erasures=count, backend=first.backend
            )
            return cost.arithmetic_ns(data_bytes)

        measured = max(counts)
        if erasures <= measured:
            return at(erasures)
        step_ns = at(measured) - at(measured - 1)
        return at(measured) + (erasures - measured) * max(0.0, step_ns)
