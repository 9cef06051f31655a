"""Compute how a file system over a key-value store turns files into stripes and keys, and at what cost."""

from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from stripesim.models.provenance import MeasuredModel

_BASE64_IN = 3
_BASE64_OUT = 4
Sizes = TypeVar("Sizes", int, npt.NDArray[np.int64])


def base64_bytes(size_bytes: Sizes) -> Sizes:
    """Return the length of bytes in Base64 [B], padding included; of one size or of an array.

    >>> base64_bytes(12), base64_bytes(13)
    (16, 20)
    """
    return -(-size_bytes // _BASE64_IN) * _BASE64_OUT


@dataclass(frozen=True, kw_only=True)
class AggregationModel(MeasuredModel):
    """How one-byte blocks are gathered under keys: a full buffer of a position becomes a key."""

    positive: ClassVar = (
        "buffered_blocks_count",
        "block_stored_bytes",
        "write_bytes",
        "extract_record_bytes",
        "extract_block_bytes",
        "list_entry_bytes",
    )
    buffered_blocks_count: float  #: Blocks in the buffers of all positions
    block_stored_bytes: float  #: Bytes in which a block of one byte is stored [B]
    key_header_bytes: float  #: Bytes that each key stores in addition to its blocks [B]
    write_bytes: float  #: Largest write that the file system passes on [B]
    #: Record in which an archive is read: no write of an extracted file crosses its end [B]
    extract_record_bytes: float
    #: Unit to which headers and files in an archive are rounded up [B]
    extract_block_bytes: float
    list_entry_bytes: float  #: Bytes of one block's entry in the list that the proxy keeps for a file [B]

    def buffer_blocks(self, width: int) -> int:
        """Return the most blocks of one key, for stripes of so many positions."""
        return -(-int(self.buffered_blocks_count) // width)

    def key_stripes(self, stripes: int, width: int) -> tuple[int, ...]:
        """Return the stripes under each key of a position that one write makes."""
        blocks = self.buffer_blocks(width)
        full, rest = divmod(stripes, blocks)
        keys = (blocks,) * full
        if rest:
            keys += (rest,)
        return keys

    def key_bytes(self, stripes: Sizes) -> Sizes:
        """Return the bytes of a key's value before Base64 [B]; of one key or of an array."""
        return int(self.key_header_bytes) + int(self.block_stored_bytes) * stripes

    def value_bytes(self, stripes: Sizes) -> Sizes:
        """Return the bytes of a key's value in the store [B]; of one key or of an array."""
        return base64_bytes(self.key_bytes(stripes))


@dataclass(frozen=True, kw_only=True)
class ProxyModel(MeasuredModel):
    r"""Times of the encoding proxy and its store for reads and writes.

    One thread does everything: file system, stripes, code, and one request to the store after another.

    Notes
    -----
    A write of :math:`B` bytes in :math:`S` stripes of :math:`n` positions with :math:`K` keys, the file
    having :math:`L` blocks by then, keeps the proxy busy for

    .. math::
        f B + S n w + e B + 4 c L \tag{1}

    and the store for :math:`K` requests one after another, with their bytes on the wire. A read has
    :math:`f' B + r B`, a request for each key's presence and one for each value.
    """

    #: `write_start_ns`, `read_start_ns`: once per run: code that is not compiled yet [ns]
    write_start_ns: float
    read_start_ns: float
    block_write_ns: float  #: One block of one stripe put into its buffer [ns]
    #: `encode_nc_ns_per_byte`, `encode_rs_ns_per_byte`, `encode_lrc_ns_per_byte`: the encoder per byte of
    #: data [ns/B]
    encode_nc_ns_per_byte: float
    encode_rs_ns_per_byte: float
    encode_lrc_ns_per_byte: float
    encode_start_ns: (
        float  #: Once per run whose encoder computes in a finite field [ns]
    )
    #: `read_nc_ns_per_byte`, `read_rs_ns_per_byte`, `read_lrc_ns_per_byte`: looking up, gathering and
    #: decoding stripes per byte of data [ns/B]
    read_nc_ns_per_byte: float
    read_rs_ns_per_byte: float
    read_lrc_ns_per_byte: float
    request_ns: float  #: One request to a store of no nodes: proxy, stack and key-value node [ns]
    request_node_ns: float  #: Additional time of a request per node of the store [ns]
    #: `fuse_write_ns_per_byte`, `fuse_read_ns_per_byte`: the way through the kernel's file system [ns/B]
    fuse_write_ns_per_byte: float
    fuse_read_ns_per_byte: float
    list_copy_ns_per_byte: float  #: Copying the file's list of block keys, which grows with each write [ns/B]

    def encode_ns_per_byte(self, code: str) -> float:
        """Return the encoder's time for a code, by its name in the source: NC, RS or LRC [ns/B]."""
        return float(getattr(self, f"encode_{code.lower()}_ns_per_byte"))

    def read_ns_per_byte(self, code: str) -> float:
        """Return the read path's time for a code, by its name in the source [ns/B]."""
        return float(getattr(self, f"read_{code.lower()}_ns_per_byte"))

    def encoder_start_ns(self, code: str) -> float:
        """Return the encoder's time once per run [ns]; without a code it computes nothing."""
        if code == "NC":
            return 0.0
        return self.encode_start_ns

    def service_ns(self, nodes: int) -> float:
        """Return the time of a request to a store of so many nodes, without transfers [ns]."""
        return self.request_ns + nodes * self.request_node_ns
