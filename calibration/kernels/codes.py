"""Provide a common interface to kernels: pyeclib's (k, m) codes and LRC, Clay in NumPy, and own codes."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stripesim.calibration.kernels.codec import (
    BACKENDS,
    Codec,
    KernelCall,
    available_backends,
    pyeclib_driver,
)
from stripesim.models.coding import LRC, CephLRC, Clay, OwnCode, RedundancyScheme
from stripesim.models.coding.clay_coder import coder_of
from stripesim.models.coding.galois import matrix_product
from stripesim.models.coding.own_code import called
from stripesim.models.problems import KernelError

LRC_BACKEND: Final = "isa_l_rs_lrc"
CLAY_BACKEND: Final = "numpy_clay"
#: Functions `encode` and `decode` of an author.
OWN_BACKEND: Final = "own"


class LrcCodec(Codec):
    """The locally repairable code of liberasurecode over ISA-L: up to 32 fragments, groups of two or more.

    Its local parities are the two halves of another Reed-Solomon parity (a pyramid code), not XOR sums as in
    Xorbas or Ceph. Only the shape matches the scheme. All parities are rows of one matrix, so a local parity
    costs k products rather than the size of its group.
    """

    def __init__(self, scheme: LRC | CephLRC) -> None:
        refused = (
            f"got {scheme.name}, wanted at most 32 shards and groups of 2 or more data shards "
            "(liberasurecode's limits)"
        )
        driver = pyeclib_driver(
            LRC_BACKEND,
            refused,
            k=scheme.k,
            m=scheme.m,
            local_parity=scheme.local_parities,
        )
        super().__init__(LRC_BACKEND, k=scheme.k, m=scheme.m, driver=driver)
        self._erasures_max = scheme.global_parities

    @property
    def erasures_max(self) -> int:
        """Number of arbitrary losses tolerated. The library also decodes some larger sets."""
        return self._erasures_max


class ClayKernel:
    """A Clay code in NumPy. Data consists of k chunks of whole sub-chunks."""

    backend = CLAY_BACKEND

    def __init__(self, scheme: Clay) -> None:
        self.scheme = scheme
        self.coder = coder_of(scheme.shape)

    def encode(self, data: bytes) -> Any:
        """Return all shards."""
        return self.coder.encode(_rows(data, self.scheme.k))

    def holds(self, shards: Any, data: bytes) -> bool:
        """Return True if the data survives the number of losses that the code tolerates."""
        left = {
            shard: shards[shard] for shard in range(self.scheme.m, self.scheme.width)
        }
        return bool(
            (
                self.coder.decode(left)[: self.scheme.k] == _rows(data, self.scheme.k)
            ).all()
        )

    def calls(self, data: bytes) -> list[KernelCall]:
        """List the calls to time: encode, decode without 0 to m data shards, repair shard 0."""
        scheme = self.scheme
        coder = self.coder
        chunks = _rows(data, self.scheme.k)
        shards = coder.encode(chunks)
        parts = {
            s: coder.helper_part(shards[s], lost=0)
            for s in scheme.helpers(frozenset({0}))
        }

        def holds_data(rows: Any) -> bool:
            return bool((rows[: scheme.k] == chunks).all())

        def decode(erasures: int) -> Callable[[], Any]:
            left = {shard: shards[shard] for shard in range(erasures, scheme.width)}
            return lambda: coder.decode(left)

        return [
            KernelCall("encode", 0, lambda: coder.encode(chunks), holds_data),
            *(
                KernelCall("decode", lost, decode(lost), holds_data)
                for lost in range(scheme.m + 1)
            ),
            KernelCall(
                "reconstruct",
                1,
                lambda: coder.repair(0, parts),
                lambda c: bool((c == chunks[0]).all()),
            ),
        ]

    def copies(self, data: bytes) -> list[KernelCall]:
        """List the same calls on sub-chunks of one byte, which cost only the interpreter's share."""
        return self.calls(data[: self.scheme.k * self.scheme.shape.sub_chunks])


class OwnKernel:
    """The functions `encode` and `decode` of a code's author, checked against its generator matrix."""

    backend = OWN_BACKEND

    def __init__(self, scheme: OwnCode) -> None:
        for name in ("encode", "decode"):
            if not callable(getattr(scheme.described, name, None)):
                raise KernelError(
                    f"{scheme.place}: got no method {name}(), wanted encode() and decode() to time"
                )
        self.scheme = scheme

    def encode(self, data: bytes) -> Any:
        """Return the parity chunks, uint8 of shape (m, chunk)."""
        scheme = self.scheme
        where = f"{scheme.place}: encode()"
        return called(scheme.described.encode, where, _rows(data, self.scheme.k))

    def holds(self, shards: Any, data: bytes) -> bool:
        """Return True if the parities are those of the generator matrix."""
        return _alike(shards, self._parities(data))

    def calls(self, data: bytes) -> list[KernelCall]:
        """List the calls to time: encode, and decode without 1 to as many data shards as may be lost."""
        scheme = self.scheme
        chunks = _rows(data, self.scheme.k)
        parities = self._parities(data)
        shards = dict(enumerate([*chunks, *parities]))
        erasures_max = min(scheme.k, scheme.failures_tolerated)

        def decode(erasures: int) -> Callable[[], Any]:
            left = {shard: shards[shard] for shard in range(erasures, scheme.width)}
            where = f"{scheme.place}: decode()"
            return lambda: called(scheme.described.decode, where, left)

        return [
            KernelCall(
                "encode", 0, lambda: self.encode(data), lambda p: _alike(p, parities)
            ),
            *(
                KernelCall(
                    "decode", lost, decode(lost), lambda rows: _alike(rows, chunks)
                )
                for lost in range(1, erasures_max + 1)
            ),
        ]

    def copies(self, data: bytes) -> list[KernelCall]:
        """List the same calls on sub-chunks of one byte, which cost only the interpreter's share."""
        return self.calls(data[: self.scheme.k * self.scheme.sub_chunks])

    def _parities(self, data: bytes) -> Any:
        """Multiply the data by the generator matrix, whose columns are sub-chunks."""
        scheme = self.scheme
        columns = scheme.k * scheme.sub_chunks
        parts = _rows(data, columns)
        return matrix_product(scheme.generator[columns:], parts).reshape(scheme.m, -1)


def _rows(data: bytes, count: int) -> Any:
    """Return data as equal rows, uint8 of shape (count, bytes)."""
    return np.frombuffer(data, dtype=np.uint8).reshape(count, -1)


def _alike(given: Any, wanted: Any) -> bool:
    return np.shape(given) == wanted.shape and bool((np.asarray(given) == wanted).all())


Kernel = Codec | ClayKernel | OwnKernel


def kernel_of(scheme: RedundancyScheme, backend: str) -> Kernel:
    """Return a backend's kernel for a code.

    Raises
    ------
    KernelError
        If the backend is missing or does not support the code.
    """
    only = _only_backend(scheme)
    if only is not None and backend != only:
        raise KernelError(
            f"kernel: backend of {scheme.name}: got {backend!r}, wanted {only}"
        )
    if isinstance(scheme, Clay):
        return ClayKernel(scheme)
    if isinstance(scheme, OwnCode):
        return OwnKernel(scheme)
    if isinstance(scheme, LRC | CephLRC):
        return LrcCodec(scheme)
    return Codec(backend, k=scheme.k, m=scheme.m)


def _only_backend(scheme: RedundancyScheme) -> str | None:
    """Return the backend of a code that only one supports, or None."""
    if isinstance(scheme, Clay):
        return CLAY_BACKEND
    if isinstance(scheme, OwnCode):
        return OWN_BACKEND
    if isinstance(scheme, LRC | CephLRC):
        return LRC_BACKEND
    return None


def kernels_of(scheme: RedundancyScheme, backends: list[str] | None) -> list[Kernel]:
    """Return one kernel per backend.

    Parameters
    ----------
    scheme
        Erasure code.
    backends
        Backends that must support the code. None means all available ones that do.

    Raises
    ------
    KernelError
        If a named backend, or all backends, cannot be used.
    """
    only = _only_backend(scheme)
    if backends is None and only is not None:
        backends = [only]
    if backends is not None:
        return [kernel_of(scheme, backend) for backend in dict.fromkeys(backends)]
    kernels: list[Kernel] = []
    for backend in available_backends():
        try:
            kernels.append(kernel_of(scheme, backend))
        except KernelError:
            continue
    # The constructor reports which part is missing.
    return kernels or [kernel_of(scheme, BACKENDS[0])]


def own_size_bytes(scheme: OwnCode, size_bytes: int) -> int:
    """Round a data size [B] up to k chunks of whole sub-chunks."""
    parts = scheme.k * scheme.sub_chunks
    return -(-size_bytes // parts) * parts


def clay_size_bytes(scheme: Clay, size_bytes: int) -> int:
    """Round a data size [B] up to k chunks of whole sub-chunks, as in a stripe of the scheme."""
    return scheme.geometry(-(-size_bytes // scheme.k)).stripe_bytes
