"""Kernels of codes that pyeclib's plain (k, m) interface does not know: LRC and Clay."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from stripesim.calibration.kernels.codec import Codec
from stripesim.models.coding.clay import Clay
from stripesim.models.coding.clay_coder import coder_of
from stripesim.models.coding.errors import CodecError
from stripesim.models.coding.lrc import LRC
from stripesim.models.coding.lrc_ceph import CephLRC
from stripesim.models.kernel.cost import Op

LRC_BACKEND: Final = "isa_l_rs_lrc"
CLAY_BACKEND: Final = "numpy_clay"


class LrcCodec(Codec):
    """The locally repairable code of liberasurecode, over ISA-L.

    Parameters
    ----------
    scheme : LRC or CephLRC
        Gives the shape: k, all parities, and how many of them are local.

    Raises
    ------
    CodecError
        If pyeclib is absent or lacks this backend, or the shape is not offered: more than 32 fragments,
        or local groups of fewer than two data fragments.

    Notes
    -----
    Its local parities are the two halves of a further Reed-Solomon parity (a pyramid code), not
    exclusive-or sums as in Xorbas or Ceph: the scheme names the shape only. ISA-L multiplies
    by every coefficient alike, so the time does not depend on which they are. Encoding treats all
    parities as rows of one matrix: local ones are charged k products each, not the group's.
    """

    def __init__(self, scheme: LRC | CephLRC) -> None:
        self.backend = LRC_BACKEND
        self.k, self.m = scheme.k, scheme.m
        #: Any so many fragments may be lost; of larger sets the library decodes only some.
        self.erasures_max = scheme.global_parities
        self._driver: Any = _lrc_driver(scheme)


def _lrc_driver(scheme: LRC | CephLRC) -> Any:
    try:
        from pyeclib import ec_iface
    except ImportError:
        raise CodecError(
            f"codec: {LRC_BACKEND}: pyeclib is not installed; "
            "install pyeclib 1.8 or newer, or use a shipped kernel table"
        ) from None
    if LRC_BACKEND not in ec_iface.VALID_EC_TYPES:
        raise CodecError(f"codec: backend: got {LRC_BACKEND!r}, which this machine's pyeclib does not have")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return ec_iface.ECDriver(
                ec_type=LRC_BACKEND, k=scheme.k, m=scheme.m, local_parity=scheme.local_parities
            )
    except (ec_iface.ECDriverError, TypeError):
        raise CodecError(
            f"codec: {LRC_BACKEND}: got {scheme.name}, wanted at most 32 shards and groups of 2 or more data "
            "shards (liberasurecode's limits)"
        ) from None


@dataclass(frozen=True)
class Call:
    """One call to time; `check` says whether what it returned is right."""

    op: Op
    erasures: int
    call: Callable[[], Any]
    check: Callable[[Any], bool]


def clay_size_bytes(scheme: Clay, size_bytes: int) -> int:
    """A data size [B] rounded up to k chunks of whole sub-chunks, as a stripe of the scheme is."""
    return scheme.geometry(-(-size_bytes // scheme.k)).stripe_bytes


def clay_calls(scheme: Clay, data: bytes) -> list[Call]:
    """Every call of the NumPy kernel on some data.

    Parameters
    ----------
    scheme : Clay
    data : bytes
        k chunks of whole sub-chunks.

    Returns
    -------
    list of Call
        Encode; decode without 0 to m data shards; the repair of shard 0 from its helpers' parts, which
        lie ready: cutting them out is the helpers' work.
    """
    coder = coder_of(scheme.shape)
    chunks = np.frombuffer(data, dtype=np.uint8).reshape(scheme.k, -1)
    shards = coder.encode(chunks)

    def holds_data(rows: Any) -> bool:
        return bool((rows[: scheme.k] == chunks).all())

    calls = [Call("encode", 0, lambda: coder.encode(chunks), holds_data)]
    for erasures in range(scheme.m + 1):
        left = {shard: shards[shard] for shard in range(erasures, scheme.width)}
        # The default binds this turn's shards, not the last turn's.
        calls.append(
            Call("decode", erasures, lambda left=left: coder.decode(left), holds_data)  # type: ignore[misc]
        )
    parts = {s: coder.helper_part(shards[s], lost=0) for s in scheme.helpers(frozenset({0}))}
    calls.append(
        Call("reconstruct", 1, lambda: coder.repair(0, parts), lambda chunk: bool((chunk == chunks[0]).all()))
    )
    return calls
