"""Sizes of what the daemons say to each other, payload apart."""

from __future__ import annotations

from dataclasses import dataclass

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class MessageModel(MeasuredModel):
    """Bytes of messages beyond the data that they carry.

    Parameters
    ----------
    request_header_bytes, reply_bytes : int
        A client's request without its data, and a reply without data [B].
    sub_write_header_bytes : int
        A sub-write without its data: transaction, log entry, attributes [B].
    sub_reply_bytes : int
        Acknowledgement of a sub-write or a push [B].
    sub_read_request_bytes, sub_read_reply_header_bytes : int
        A sub-read and its reply without the data [B].
    roll_forward_bytes : int
        The message of an erasure-coded pool that lets members forget how to roll back [B].
    """

    request_header_bytes: int
    reply_bytes: int
    sub_write_header_bytes: int
    sub_reply_bytes: int
    sub_read_request_bytes: int
    sub_read_reply_header_bytes: int
    roll_forward_bytes: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_not_negative(*self.number_names())
