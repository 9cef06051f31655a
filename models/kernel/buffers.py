"""Cost of memory around the encode kernel in a storage daemon: buffers, lists of buffers, fresh memory."""

from dataclasses import dataclass

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class EncodeBufferModel(MeasuredModel):
    r"""Time of one encode call outside the kernel itself.

    Notes
    -----
    .. math:: t = (k + m) s + b \, x m / k \tag{1}

    for :math:`x` data bytes. Data bytes cost nothing here: Ceph encodes from the message's buffers, which are
    aligned where a client's write is, and takes references to them; only the parity gets memory of its
    own. A write that is not aligned is first copied as a whole, which is not in this model.

    References
    ----------
    Ceph v16.2.15: ``src/erasure-code/ErasureCode.cc`` (``encode_prepare``: data chunks are references into
    the message unless they must be aligned, parity chunks are created aligned);
    ``src/osd/ECUtil.cc`` (``encode``: one call per stripe).
    """

    shard_ns: (
        float  #: For each shard of a call: its buffer, its place in the lists [ns]
    )
    output_ns_per_byte: float  #: For each byte of parity written into memory that was not used before [ns/B]

    def duration_ns(self, data_bytes: float, *, k: int, m: int) -> float:
        """Return the time of one call outside its kernel [ns], equation (1)."""
        return (k + m) * self.shard_ns + self.output_ns_per_byte * data_bytes * m / k
