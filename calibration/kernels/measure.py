"""Measure real encode kernels, most of them through pyeclib, each datum verified; keep them as a table."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stripesim.calibration.kernels.codec import (
    BACKENDS,
    NULL_BACKEND,
    Codec,
    available_backends,
    payloads,
)
from stripesim.calibration.kernels.codes import (
    CLAY_BACKEND,
    LRC_BACKEND,
    LrcCodec,
    clay_calls,
    clay_size_bytes,
)
from stripesim.calibration.kernels.malloc import raise_malloc_thresholds
from stripesim.models.coding.clay import Clay
from stripesim.models.coding.errors import CodecError, SchemeError
from stripesim.models.coding.lrc import LRC
from stripesim.models.coding.lrc_ceph import CephLRC
from stripesim.models.coding.parse import parse_scheme
from stripesim.models.coding.protocol import RedundancyScheme
from stripesim.models.kernel.cost import Op

#: Chunk sizes [B] measured where the caller names no sizes: data sizes are k times these.
DEFAULT_CHUNKS_BYTES = (4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288)
SIZE_MAX_BYTES = 1 << 28

Row = dict[str, Any]


class KernelMeasureError(ValueError):
    """A measurement that was asked for and cannot be made."""


@dataclass
class _Case:
    """One call to time; `check` says whether what it returned is right."""

    backend: str
    op: Op
    erasures: int
    call: Callable[[], Any]
    check: Callable[[Any], bool]
    iterations: int = 1
    samples_s: list[float] = field(default_factory=list)
    verified: bool = True


def measure(
    schemes: Sequence[str] = ("rs:6,3",),
    sizes_bytes: Sequence[int] | None = None,
    backends: Sequence[str] | None = None,
    *,
    rounds: int = 9,
    sample_s: float = 0.002,
    tune_malloc: bool = True,
    seed: int = 1,
    progress: Callable[[str], None] | None = None,
) -> list[Row]:
    """Time encode, decode and reconstruct of these codes by these backends.

    Parameters
    ----------
    schemes : sequence of str
        Codes, such as ``rs:k,m``, ``lrc:k,m,l`` or ``clay:k,m,d``.
    sizes_bytes : sequence of int, optional
        Data sizes [B]; `DEFAULT_CHUNKS_BYTES` times k where left out.
    backends : sequence of str, optional
        Names from `stripesim.calibration.kernels.codec.BACKENDS`; all that this machine can load and that
        offer the shape where left out. An LRC has ``isa_l_rs_lrc`` only, a Clay code ``numpy_clay``.
    rounds : int
        Samples of each case, at least 1; in every round all cases of a scheme run once, in a new order.
    sample_s : float
        Shortest duration of a sample [s]: short calls are repeated so often.
    tune_malloc : bool
        Raise glibc's thresholds first; see `stripesim.calibration.kernels.malloc`. They stay raised.
    seed : int
        Seed of the data and of the order.
    progress : callable, optional
        Called with each scheme before it is measured.

    Returns
    -------
    list of dict
        A row per backend, scheme, op, number of erasures and size, with the keys ``backend``, ``scheme``,
        ``op``, ``erasures``, ``size_bytes``, ``seconds_median``, ``seconds_p10``, ``seconds_p90``,
        ``bytes_per_s`` (data bytes over the median), ``copy_seconds_median`` (the same call of the null
        code, measured in the same rounds; for Clay see Notes) and ``verified`` (what the call returned was
        compared).

    Raises
    ------
    KernelMeasureError
        If a size, the rounds or the sample's duration is out of range.
    SchemeError
        If a scheme cannot be read or is no erasure code.
    CodecError
        If a backend is unknown, absent or does not offer the shape, or pyeclib is absent.

    Notes
    -----
    Times are the thread's processor time: a kernel waits for nothing, and
    waiting for a shared processor is no time of the kernel. They are those
    of calls through Python on warm buffers and include the library's copies
    and headers; the copy figure stands beside them and is not subtracted.
    Erased are the first fragments, all data: the dearest case. For the
    backends ``flat_xor_hd_*`` the scheme names the shape only, for the code
    is another and bears fewer erasures. So too for SHEC, which no library here has: a dense code of its shape
    does at least its work.

    Clay codes run in NumPy here: sizes are rounded up to whole sub-chunks, and in place of the null code
    stands the same call on sub-chunks of one byte, that is what the interpreter takes whatever the size.
    """
    plan = [(scheme, _sizes(sizes_bytes, scheme)) for scheme in map(_code, schemes)]
    if rounds < 1:
        raise KernelMeasureError(f"kernel: rounds: got {rounds}, wanted at least 1")
    if sample_s < 0:
        raise KernelMeasureError(f"kernel: sample_s: got {sample_s}, wanted 0 or more")
    codecs = {scheme.name: _codecs(backends, scheme) for scheme, _ in plan}
    if tune_malloc:
        raise_malloc_thresholds()
    rng = random.Random(seed)
    rows: list[Row] = []
    for scheme, sizes in plan:
        if progress is not None:
            progress(scheme.name)
        groups = [_prepare(scheme, codecs[scheme.name], size, sample_s, rng) for size in sizes]
        everything = [case for group in groups for case in (*group.copies, *group.cases)]
        # A round holds all sizes, so that another program's burst hits one sample of many cases.
        for _ in range(rounds):
            rng.shuffle(everything)
            for case in everything:
                case.samples_s.append(_sample(case.call, case.iterations))
        rows += [row for group in groups for row in _rows(scheme.name, group)]
    return rows


def malloc_effect(
    scheme: str = "rs:6,2", size_bytes: int = 1 << 20, backend: str = "isa_l_rs_vand", *, calls: int = 400
) -> dict[str, Any]:
    """Encode speed with the allocator's thresholds as they are and raised.

    Parameters
    ----------
    scheme, size_bytes, backend : str, int, str
        The case; the size in data bytes [B].
    calls : int
        Encode calls timed in each of the two, at least 1.

    Returns
    -------
    dict
        The case, ``default_bytes_per_s`` and ``raised_bytes_per_s``.

    Raises
    ------
    KernelMeasureError, SchemeError, CodecError
        As `measure`.

    Notes
    -----
    Each is a loop of encode alone in a fresh interpreter: glibc adapts its
    thresholds to what a process has freed, so that a process which has also
    decoded no longer shows the effect, and raised thresholds cannot be put
    back.
    """
    code = _code(scheme)
    (size_bytes,) = _sizes([size_bytes], code)
    if calls < 1:
        raise KernelMeasureError(f"kernel: calls: got {calls}, wanted at least 1")
    k, m = code.k, code.m
    Codec(backend, k=k, m=m)
    speeds = []
    for raised in (False, True):
        arguments = [backend, str(k), str(m), str(size_bytes), str(calls), str(int(raised))]
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "stripesim.calibration.kernels.malloc_probe",
            *arguments,
        ]
        finished = subprocess.run(command, check=True, capture_output=True, text=True)
        speeds.append(float(finished.stdout))
    return {
        "scheme": code.name,
        "size_bytes": size_bytes,
        "backend": backend,
        "op": "encode",
        "default_bytes_per_s": speeds[0],
        "raised_bytes_per_s": speeds[1],
    }


def _code(text: str) -> RedundancyScheme:
    scheme = parse_scheme(text)
    if scheme.kind != "erasure":
        raise SchemeError(f"kernel: scheme: got {text!r}, wanted an erasure code such as rs:6,3")
    return scheme


def _sizes(sizes_bytes: Sequence[int] | None, scheme: RedundancyScheme) -> list[int]:
    chosen = sizes_bytes
    if chosen is None:
        chosen = [scheme.k * chunk_bytes for chunk_bytes in DEFAULT_CHUNKS_BYTES]
    for size_bytes in chosen:
        if not 1 <= size_bytes <= SIZE_MAX_BYTES:
            raise KernelMeasureError(f"kernel: size: got {size_bytes} bytes, wanted 1 to {SIZE_MAX_BYTES}")
    if isinstance(scheme, Clay):
        chosen = [clay_size_bytes(scheme, size_bytes) for size_bytes in chosen]
    return list(dict.fromkeys(chosen))


def _codecs(backends: Sequence[str] | None, scheme: RedundancyScheme) -> list[Codec]:
    """A codec per backend; by default those that offer the shape, named ones must. None for Clay."""
    k, m = scheme.k, scheme.m
    if isinstance(scheme, LRC | CephLRC | Clay):
        only = CLAY_BACKEND if isinstance(scheme, Clay) else LRC_BACKEND
        for backend in backends or ():
            if backend != only:
                raise CodecError(f"kernel: backend of {scheme.name}: got {backend!r}, wanted {only}")
        return [] if isinstance(scheme, Clay) else [LrcCodec(scheme)]
    if backends is not None:
        return [Codec(backend, k=k, m=m) for backend in dict.fromkeys(backends)]
    codecs = []
    for backend in available_backends():
        try:
            codecs.append(Codec(backend, k=k, m=m))
        except CodecError:
            continue
    if not codecs:
        # The constructor knows which part is missing and says so.
        codecs.append(Codec(BACKENDS[0], k=k, m=m))
    return codecs


def erasures_max(codec: Codec) -> int:
    """How many erasures of any fragments the backend bears: flat XOR codes of distance d bear d - 1."""
    if isinstance(codec, LrcCodec):
        return codec.erasures_max
    prefix, _, distance = codec.backend.rpartition("_")
    return int(distance) - 1 if prefix == "flat_xor_hd" else codec.m


def _cases(codec: Codec, data: bytes, *, is_null: bool) -> list[_Case]:
    """Every call of one codec; the null code's outcomes mean nothing and are not checked."""
    fragments = codec.encode(data)

    def holds_data(encoded: list[bytes]) -> bool:
        return is_null or b"".join(payloads(encoded[: codec.k]))[: len(data)] == data

    cases = [_Case(codec.backend, "encode", 0, lambda: codec.encode(data), holds_data)]
    for erasures in range(erasures_max(codec) + 1):
        left = fragments[erasures:]
        cases.append(
            _Case(
                codec.backend,
                "decode",
                erasures,
                # The defaults bind this turn's fragments, not the last turn's.
                lambda left=left: codec.decode(left),  # type: ignore[misc]
                lambda decoded: is_null or decoded == data,
            )
        )
    cases.append(
        _Case(
            codec.backend,
            "reconstruct",
            1,
            lambda: codec.reconstruct(fragments[1:], 0),
            lambda rebuilt: is_null or payloads([rebuilt]) == payloads(fragments[:1]),
        )
    )
    return cases


@dataclass
class _Group:
    """All calls of one scheme and size: the backends' and, for the copy cost, the null code's."""

    size_bytes: int
    copies: list[_Case]
    cases: list[_Case]


def _clay_cases(scheme: Clay, data: bytes) -> list[_Case]:
    """Every call of the NumPy kernel."""
    return [_Case(CLAY_BACKEND, c.op, c.erasures, c.call, c.check) for c in clay_calls(scheme, data)]


def _prepare(
    scheme: RedundancyScheme, codecs: list[Codec], size_bytes: int, sample_s: float, rng: random.Random
) -> _Group:
    """Encode, check every call once and settle how often a sample repeats it."""
    data = rng.randbytes(size_bytes)
    if isinstance(scheme, Clay):
        copies = _clay_cases(scheme, rng.randbytes(scheme.k * scheme.shape.sub_chunks))
        cases = _clay_cases(scheme, data)
    else:
        copies = _cases(Codec(NULL_BACKEND, k=scheme.k, m=scheme.m), data, is_null=True)
        cases = [case for codec in codecs for case in _cases(codec, data, is_null=False)]
    for case in (*copies, *cases):
        case.verified &= case.check(case.call())
        case.iterations = _iterations(case.call, sample_s)
    return _Group(size_bytes, copies, cases)


def _rows(scheme: str, group: _Group) -> list[Row]:
    copy_s = {(case.op, case.erasures): statistics.median(case.samples_s) for case in group.copies}
    for case in group.cases:
        # Once more after the timing: a kernel that goes wrong when hot must not pass.
        case.verified &= case.check(case.call())
    return [_row(scheme, case, group.size_bytes, copy_s[case.op, case.erasures]) for case in group.cases]


def _iterations(call: Callable[[], Any], sample_s: float) -> int:
    once_s = min(_sample(call, 1) for _ in range(3))
    return max(1, round(sample_s / once_s))


def _sample(call: Callable[[], Any], iterations: int) -> float:
    """Processor seconds per call over so many calls."""
    start_ns = time.thread_time_ns()
    for _ in range(iterations):
        call()
    return max(1, time.thread_time_ns() - start_ns) / iterations / 1e9


def _row(scheme: str, case: _Case, size_bytes: int, copy_s: float) -> Row:
    p10_s, median_s, p90_s = (float(q) for q in np.quantile(case.samples_s, (0.1, 0.5, 0.9)))
    return {
        "backend": case.backend,
        "scheme": scheme,
        "op": case.op,
        "erasures": case.erasures,
        "size_bytes": size_bytes,
        "seconds_median": median_s,
        "seconds_p10": p10_s,
        "seconds_p90": p90_s,
        "bytes_per_s": size_bytes / median_s,
        "copy_seconds_median": copy_s,
        "verified": case.verified,
    }
