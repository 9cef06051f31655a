"""Measure real encode kernels, mostly through pyeclib, with verified results."""

import random
import statistics
from collections.abc import Sequence

from stripesim.calibration.kernels.codec import KernelCall
from stripesim.calibration.kernels.codes import (
    Kernel,
    clay_size_bytes,
    kernels_of,
    own_size_bytes,
)
from stripesim.calibration.kernels.malloc import raise_malloc_thresholds
from stripesim.calibration.kernels.timing import Case, Row, repeated, row_of, sample
from stripesim.models.coding import Clay, OwnCode, RedundancyScheme, parse_scheme
from stripesim.models.problems import KernelError, SchemeError

#: Default chunk sizes [B]. Data sizes are k times these.
DEFAULT_CHUNKS_BYTES = (4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288)
SIZE_MAX_BYTES = 1 << 28


def measure(
    schemes: Sequence[str] = ("rs:6,3",),
    sizes_bytes: Sequence[int] | None = None,
    backends: Sequence[str] | None = None,
    *,
    rounds: int = 9,
    sample_s: float = 0.002,
    tune_malloc: bool = True,
) -> list[Row]:
    """Time encode, decode and reconstruct, with verified results.

    Parameters
    ----------
    schemes
        Erasure codes.
    sizes_bytes
        Data sizes [B], 1 to 256 MiB. The default is `DEFAULT_CHUNKS_BYTES` times k.
    backends
        pyeclib backends, ``isa_l_rs_lrc`` for LRCs or ``numpy_clay`` for Clay codes. The default is all that
        this machine can load and that support the code.
    rounds
        Samples per case, at least 1. In each round all cases of a scheme run once, in random order.
    sample_s
        Shortest duration of a sample [s].
    tune_malloc
        Raise glibc's thresholds first, see `stripesim.calibration.kernels.malloc`. They stay raised.

    Returns
    -------
    list of dict
        Rows as from `stripesim.calibration.kernels.timing.row_of`.

    Raises
    ------
    SchemeError
        If a scheme is not an erasure code.
    KernelError
        If pyeclib or a named backend is missing, or does not support a code, or if a size, `rounds` or
        `sample_s` is out of range.

    Notes
    -----
    Times are processor times of the thread, because a kernel does not wait. They are for calls through Python
    on warm buffers and include the library's copies and headers. ``copy_seconds_median`` is the same call
    with the null code in the same rounds and is not subtracted. The erased fragments are the first ones, all
    data, which is the most expensive case. For ``flat_xor_hd_*`` and SHEC, only the shape matches the scheme.
    Clay codes run in NumPy, with sizes rounded up to whole sub-chunks, and use the same call on sub-chunks of
    one byte in place of the null code.
    """
    plan = [
        (scheme, _sizes(sizes_bytes, scheme)) for scheme in map(erasure_code, schemes)
    ]
    if rounds < 1:
        raise KernelError(f"kernel: rounds: got {rounds}, wanted at least 1")
    if sample_s < 0:
        raise KernelError(f"kernel: sample_s: got {sample_s}, wanted 0 or more")
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
    """All calls on the same data: those of the backends, and those that compute nothing for the copy cost."""

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
                # Verify again after timing, to catch kernels that fail when hot.
                verified=before and _holds(call),
            )
            for (backend, call, case), before in zip(
                self.timed, self.verified, strict=True
            )
        ]


def _holds(call: KernelCall) -> bool:
    return call.check(call.call())


def erasure_code(text: str) -> RedundancyScheme:
    """Parse the name of an erasure code, or raise `SchemeError`."""
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
            raise KernelError(
                f"kernel: size: got {size_bytes} bytes, wanted 1 to {SIZE_MAX_BYTES}"
            )
    if isinstance(scheme, Clay):
        sizes = [clay_size_bytes(scheme, size_bytes) for size_bytes in sizes]
    if isinstance(scheme, OwnCode):
        sizes = [own_size_bytes(scheme, size_bytes) for size_bytes in sizes]
    return list(dict.fromkeys(sizes))
