"""Binary files of records of one size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from stripesim.traces.problems import FaultLog
from stripesim.traces.source import Break, TraceSource


def record_blocks(
    source: TraceSource, dtype: np.dtype[np.void], log: FaultLog
) -> Iterator[tuple[int, npt.NDArray[np.void]]]:
    """Yield a file's records in blocks."""
    first, rest = 1, b""
    for piece in source.pieces(max(dtype.itemsize, min(source.block_bytes, 1 << 20))):
        if isinstance(piece, Break):
            log.add(first + len(rest) // dtype.itemsize, piece.got, piece.wanted)
            break
        rest += piece
        whole = len(rest) // dtype.itemsize
        if whole and len(rest) >= min(source.block_bytes, 1 << 20):
            yield first, np.frombuffer(rest, dtype=dtype, count=whole)
            first += whole
            rest = rest[whole * dtype.itemsize :]
    whole = len(rest) // dtype.itemsize
    if whole:
        yield first, np.frombuffer(rest, dtype=dtype, count=whole)
    cut = len(rest) - whole * dtype.itemsize
    if cut:
        log.add(first + whole, f"{cut} bytes", f"a record of {dtype.itemsize} bytes")
