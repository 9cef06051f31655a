"""Measure real encode kernels, most of them through pyeclib, each datum verified."""

import random
import statistics
from collections.abc import Sequence

from stripesim.calibration.kernels.codec import Call
from stripesim.calibration.kernels.codes import Kernel, clay_size_bytes, kernels_of
from stripesim.calibration.kernels.malloc import raise_malloc_thresholds
from stripesim.calibration.kernels.timing import Case, Row, repeated, row_of, sample
from stripesim.models.coding import Clay, RedundancyScheme, SchemeError, parse_scheme

#: Chunk sizes [B] measured where the caller names no sizes: data sizes are k times these.
DEFAULT_CHUNKS_BYTES = (4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288)
SIZE_MAX_BYTES = 1 << 28


class KernelMeasureError(ValueError):
    """A requested measurement that cannot be made."""


def measure(
    schemes: Sequence[str] = ("rs:6,3",),
    sizes_bytes: Sequence[int] | None = None,
    backends: Sequence[str] | None = None,
    *,
    rounds: int = 9,
    sample_s: float = 0.002,
    tune_malloc: bool = True,
) -> list[Row]:
    """Time encode, decode and reconstruct of these codes by these backends, each result verified.

    Without `sizes_bytes` they are `DEFAULT_CHUNKS_BYTES` times k [B]; without `backends` all that this
    machine can load and that offer the shape: an LRC has ``isa_l_rs_lrc`` only, a Clay code ``numpy_clay``.
    In each of `rounds` all cases of a scheme run once, in a new order, for `sample_s` [s] at least.
    `tune_malloc` raises glibc's thresholds first (`stripesim.calibration.kernels.malloc`); they stay raised.

    Times are the thread's processor time: a kernel waits for nothing. They are those of calls through Python
    on warm buffers and include the library's copies and headers; ``copy_seconds_median`` is the same call of
    the null code in the same rounds and is not subtracted. Erased are the first fragments, all data: the most
    expensive case. For ``flat_xor_hd_*`` and SHEC the scheme names the shape only. Clay codes run in NumPy:
    sizes are rounded up to whole sub-chunks, and in place of the null code stands the same call on sub-chunks
    of one byte.
    """
    plan = [
        (scheme, _sizes(sizes_bytes, scheme)) for scheme in map(erasure_code, schemes)
    ]
    if rounds < 1:
        raise KernelMeasureError(f"kernel: rounds: got {rounds}, wanted at least 1")
    if sample_s < 0:
        raise KernelMeasureError(f"kernel: sample_s: got {sample_s}, wanted 0 or more")
    named = None if backends is None else list(backends)
    kernels = {scheme.name: kernels_of(scheme, named) for scheme, _ in plan}
    if tune_malloc:
        raise_malloc_thresholds()
    rng = random.Random(1)
    rows: list[Row] = []
    for scheme, sizes in plan:
        groups = [_Group(kernels[scheme.name], size, sample_s, rng) for size in sizes]
        sample((case for group in groups for case in group.cases), rounds, rng)
        rows += [row for group in groups for row in group.rows(scheme.name)]
    return rows


class _Group:
    """All calls on some data: the backends' and, for the copy cost, those that compute nothing."""

    def __init__(
        self,
        kernels: list[Kernel],
        size_bytes: int,
        sample_s: float,
        rng: random.Random,
    ) -> None:
        data = rng.randbytes(size_bytes)
        self.size_bytes = size_bytes
        self.copies = [
            (call, Case(repeated(call.call))) for call in kernels[0].copies(data)
        ]
        self.timed = [
            (k.backend, call, Case(repeated(call.call)))
            for k in kernels
            for call in k.calls(data)
        ]
        self.verified = [_holds(call) for _, call, _ in self.timed]
        for case in self.cases:
            case.settle(sample_s)

    @property
    def cases(self) -> list[Case]:
        return [case for _, case in self.copies] + [case for _, _, case in self.timed]

    def rows(self, scheme: str) -> list[Row]:
        copy_s = {
            (call.op, call.erasures): statistics.median(case.samples_s)
            for call, case in self.copies
        }
        return [
            row_of(
                backend,
                scheme,
                call.op,
                call.erasures,
                self.size_bytes,
                case.samples_s,
                copy_s=copy_s[call.op, call.erasures],
                # Once more after the timing: a kernel that goes wrong when hot must not pass.
                verified=before and _holds(call),
            )
            for (backend, call, case), before in zip(
                self.timed, self.verified, strict=True
            )
        ]


def _holds(call: Call) -> bool:
    return call.check(call.call())


def erasure_code(text: str) -> RedundancyScheme:
    """Read a scheme that has a kernel."""
    scheme = parse_scheme(text)
    if scheme.kind != "erasure":
        raise SchemeError(
            f"kernel: scheme: got {text!r}, wanted an erasure code such as rs:6,3"
        )
    return scheme


def _sizes(sizes_bytes: Sequence[int] | None, scheme: RedundancyScheme) -> list[int]:
    sizes = sizes_bytes
    if sizes is None:
        sizes = [scheme.k * chunk_bytes for chunk_bytes in DEFAULT_CHUNKS_BYTES]
    for size_bytes in sizes:
        if not 1 <= size_bytes <= SIZE_MAX_BYTES:
            raise KernelMeasureError(
                f"kernel: size: got {size_bytes} bytes, wanted 1 to {SIZE_MAX_BYTES}"
            )
    if isinstance(scheme, Clay):
        sizes = [clay_size_bytes(scheme, size_bytes) for size_bytes in sizes]
    return list(dict.fromkeys(sizes))
