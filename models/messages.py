"""Sizes of messages between daemons, without payload."""

from dataclasses import dataclass

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class MessageModel(MeasuredModel):
    """Bytes of messages in addition to their data.

    References
    ----------
    Ceph v16.2.15, ``src/osd/ECTransaction.cc`` (``generate_transactions``), ``src/osd/ECMsgTypes.h``.
    """

    #: A client request without its data, and a reply without data [B].
    request_header_bytes: int
    reply_bytes: int
    sub_write_header_bytes: (
        int  #: A sub-write without its data: transaction, log entry and attributes [B]
    )
    #: Extra bytes of a sub-write in an erasure-coded pool: rollback information, the rollback object and the
    #: attributes of the shard [B]
    ec_sub_write_extra_bytes: int
    sub_reply_bytes: int  #: Acknowledgement of a sub-write or a push [B]
    #: A sub-read, and its reply without the data [B].
    sub_read_request_bytes: int
    sub_read_reply_header_bytes: int
    #: The message that lets members of an erasure-coded pool discard rollback information [B]
    roll_forward_bytes: int

    def sub_write_overhead_bytes(self, *, erasure: bool) -> int:
        """Return the bytes of a sub-write without its data [B]."""
        return self.sub_write_header_bytes + (
            self.ec_sub_write_extra_bytes if erasure else 0
        )
