"""Every code's kernel behind one face: pyeclib's plain (k, m) codes, its LRC, and Clay in NumPy."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stripesim.calibration.kernels.codec import (
    BACKENDS,
    Call,
    Codec,
    available_backends,
    pyeclib_driver,
)
from stripesim.models.coding import LRC, CephLRC, Clay, CodecError, RedundancyScheme
from stripesim.models.coding.clay_coder import coder_of

LRC_BACKEND: Final = "isa_l_rs_lrc"
CLAY_BACKEND: Final = "numpy_clay"


class LrcCodec(Codec):
    """The locally repairable code of liberasurecode, over ISA-L; up to 32 fragments, groups of two or more.

    Its local parities are the two halves of a further Reed-Solomon parity (a pyramid code), not exclusive-or
    sums as in Xorbas or Ceph: the scheme names the shape only. All parities are rows of one matrix: local
    ones are charged k products each, not the group's.
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
        """Number of fragments whose loss is always bearable; the library decodes some larger sets."""
        return self._erasures_max


class ClayKernel:
    """A Clay code in NumPy; data are k chunks of whole sub-chunks."""

    backend = CLAY_BACKEND

    def __init__(self, scheme: Clay) -> None:
        self.scheme = scheme
        self.coder = coder_of(scheme.shape)

    def encode(self, data: bytes) -> Any:
        """Return all shards."""
        return self.coder.encode(self._chunks(data))

    def holds(self, shards: Any, data: bytes) -> bool:
        """Return True if the data is recovered after the number of losses the code bears."""
        left = {
            shard: shards[shard] for shard in range(self.scheme.m, self.scheme.width)
        }
        return bool(
            (self.coder.decode(left)[: self.scheme.k] == self._chunks(data)).all()
        )

    def calls(self, data: bytes) -> list[Call]:
        """Encode, decode without 0 to m data shards, and repair of shard 0 from its helpers' ready parts."""
        scheme = self.scheme
        coder = self.coder
        chunks = self._chunks(data)
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
            Call("encode", 0, lambda: coder.encode(chunks), holds_data),
            *(
                Call("decode", lost, decode(lost), holds_data)
                for lost in range(scheme.m + 1)
            ),
            Call(
                "reconstruct",
                1,
                lambda: coder.repair(0, parts),
                lambda c: bool((c == chunks[0]).all()),
            ),
        ]

    def copies(self, data: bytes) -> list[Call]:
        """Return the same calls on sub-chunks of one byte: the interpreter's share, whatever the size."""
        return self.calls(data[: self.scheme.k * self.scheme.shape.sub_chunks])

    def _chunks(self, data: bytes) -> Any:
        return np.frombuffer(data, dtype=np.uint8).reshape(self.scheme.k, -1)


Kernel = Codec | ClayKernel


def kernel_of(scheme: RedundancyScheme, backend: str) -> Kernel:
    """Return a backend's kernel of a code; `CodecError` if it is absent or does not offer the code."""
    only = CLAY_BACKEND if isinstance(scheme, Clay) else LRC_BACKEND
    if isinstance(scheme, LRC | CephLRC | Clay):
        if backend != only:
            raise CodecError(
                f"kernel: backend of {scheme.name}: got {backend!r}, wanted {only}"
            )
        if isinstance(scheme, Clay):
            return ClayKernel(scheme)
        return LrcCodec(scheme)
    return Codec(backend, k=scheme.k, m=scheme.m)


def kernels_of(scheme: RedundancyScheme, backends: list[str] | None) -> list[Kernel]:
    """Return a kernel per backend; by default of those that offer the shape, named ones must."""
    if isinstance(scheme, LRC | CephLRC | Clay):
        backends = backends or [
            CLAY_BACKEND if isinstance(scheme, Clay) else LRC_BACKEND
        ]
    if backends is not None:
        return [kernel_of(scheme, backend) for backend in dict.fromkeys(backends)]
    kernels: list[Kernel] = []
    for backend in available_backends():
        try:
            kernels.append(kernel_of(scheme, backend))
        except CodecError:
            continue
    # The constructor knows which part is missing and says so.
    return kernels or [kernel_of(scheme, BACKENDS[0])]


def clay_size_bytes(scheme: Clay, size_bytes: int) -> int:
    """Return a data size [B] rounded up to k chunks of whole sub-chunks, as a stripe of the scheme is."""
    return scheme.geometry(-(-size_bytes // scheme.k)).stripe_bytes
