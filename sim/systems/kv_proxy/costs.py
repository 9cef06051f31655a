"""Mapping of files to stripes and keys in a file system over a key-value store, and its costs."""

from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from stripesim.models.provenance import MeasuredModel

_BASE64_IN = 3
_BASE64_OUT = 4
Sizes = TypeVar("Sizes", int, npt.NDArray[np.int64])


def base64_bytes(size_bytes: Sizes) -> Sizes:
    """Return the length of data in Base64, including padding.

    Parameters
    ----------
    size_bytes
        Length of the data [B], a number or an array.

    Examples
    --------
    >>> base64_bytes(12), base64_bytes(13)
    (16, 20)
    """
    return -(-size_bytes // _BASE64_IN) * _BASE64_OUT


@dataclass(frozen=True, kw_only=True)
class AggregationModel(MeasuredModel):
    """Grouping of one-byte blocks under keys. A full buffer of a position becomes a key."""

    positive: ClassVar = (
        "buffered_blocks_count",
        "block_stored_bytes",
        "write_bytes",
        "extract_record_bytes",
        "extract_block_bytes",
        "list_entry_bytes",
    )
    buffered_blocks_count: float  #: Blocks in the buffers of all positions
    block_stored_bytes: float  #: Stored size of a block of one byte [B]
    key_header_bytes: float  #: Stored bytes of each key in addition to its blocks [B]
    write_bytes: float  #: Largest write that the file system passes on [B]
    #: Record size for reading an archive: no write of an extracted file crosses its end [B]
    extract_record_bytes: float
    #: Unit to which headers and files in an archive are rounded up [B]
    extract_block_bytes: float
    list_entry_bytes: (
        float  #: Size of one block's entry in the proxy's list for a file [B]
    )

    def buffer_blocks(self, width: int) -> int:
        """Return the largest number of blocks in one key, for stripes of `width` positions."""
        return -(-int(self.buffered_blocks_count) // width)

    def key_stripes(self, stripes: int, width: int) -> tuple[int, ...]:
        """Return the stripes under each key of a position that one write creates."""
        blocks = self.buffer_blocks(width)
        full, rest = divmod(stripes, blocks)
        keys = (blocks,) * full
        if rest:
            keys += (rest,)
        return keys

    def key_bytes(self, stripes: Sizes) -> Sizes:
        """Return the size of a key's value before Base64 [B], for a number of stripes or an array."""
        return int(self.key_header_bytes) + int(self.block_stored_bytes) * stripes

    def value_bytes(self, stripes: Sizes) -> Sizes:
        """Return the size of a key's value in the store [B], for a number of stripes or an array."""
        return base64_bytes(self.key_bytes(stripes))


@dataclass(frozen=True, kw_only=True)
class ProxyModel(MeasuredModel):
    r"""Times of the encoding proxy and its store for reads and writes.

    One thread does all the work: file system, stripes, code, and one request to the store after another.

    Notes
    -----
    A write of :math:`B` bytes in :math:`S` stripes of :math:`n` positions with :math:`K` keys, when the file
    has :math:`L` blocks, keeps the proxy busy for

    .. math::
        f B + S n w + e B + 4 c L \tag{1}

    and the store for :math:`K` requests one after another, with their bytes on the wire. A read takes
    :math:`f' B + r B`, one request per key for its presence, and one request per value.
    """

    #: `write_start_ns`, `read_start_ns`: once per run, for code that is not compiled yet [ns]
    write_start_ns: float
    read_start_ns: float
    block_write_ns: float  #: Putting one block of one stripe into its buffer [ns]
    #: `encode_nc_ns_per_byte`, `encode_rs_ns_per_byte`, `encode_lrc_ns_per_byte`: the encoder per byte of
    #: data [ns/B]
    encode_nc_ns_per_byte: float
    encode_rs_ns_per_byte: float
    encode_lrc_ns_per_byte: float
    encode_start_ns: (
        float  #: Once per run if the encoder computes in a finite field [ns]
    )
    #: `read_nc_ns_per_byte`, `read_rs_ns_per_byte`, `read_lrc_ns_per_byte`: looking up, gathering and
    #: decoding stripes, per byte of data [ns/B]
    read_nc_ns_per_byte: float
    read_rs_ns_per_byte: float
    read_lrc_ns_per_byte: float
    request_ns: float  #: One request, without `request_node_ns`: proxy, stack and key-value node [ns]
    request_node_ns: float  #: Additional time of a request per node of the store [ns]
    #: `fuse_write_ns_per_byte`, `fuse_read_ns_per_byte`: passage through the kernel's file system [ns/B]
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
        """Return the encoder's initial time in a run [ns], 0 without a code."""
        if code == "NC":
            return 0.0
        return self.encode_start_ns

    def service_ns(self, nodes: int) -> float:
        """Return the time of a request to a store of `nodes` nodes, without transfers [ns]."""
        return self.request_ns + nodes * self.request_node_ns
