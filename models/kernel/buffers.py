"""Memory cost around the encode kernel in a storage daemon: buffers, buffer lists and fresh memory."""

from dataclasses import dataclass

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class EncodeBufferModel(MeasuredModel):
    r"""Time of one encode call outside the kernel.

    Notes
    -----
    .. math:: t = (k + m) s + b \, x m / k \tag{1}

    for :math:`x` data bytes. Data bytes cost nothing here. Ceph encodes references to the message's buffers,
    which are aligned if the client's write is, and allocates memory only for parity. An unaligned write is
    first copied as a whole, which this model does not include.

    References
    ----------
    Ceph v16.2.15: ``src/erasure-code/ErasureCode.cc`` (``encode_prepare``: data chunks refer to the message
    unless they must be aligned, parity chunks are created aligned); ``src/osd/ECUtil.cc`` (``encode``: one
    call per stripe).
    """

    shard_ns: float  #: Per shard of a call: its buffer and list entries [ns]
    output_ns_per_byte: float  #: Per byte of parity written into fresh memory [ns/B]

    def duration_ns(self, data_bytes: float, *, k: int, m: int) -> float:
        """Return the time of one encode call outside its kernel, by equation (1).

        Parameters
        ----------
        data_bytes
            Data encoded by the call [B].
        k, m
            Data and parity shards of the code.

        Returns
        -------
        float
            Duration [ns].
        """
        return (k + m) * self.shard_ns + self.output_ns_per_byte * data_bytes * m / k
