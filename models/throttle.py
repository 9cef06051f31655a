"""Limits on the client requests that one OSD admits at a time."""

from dataclasses import dataclass
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class ThrottleModel(MeasuredModel):
    """Limit of the client requests that an OSD admits before its messengers stop reading from clients.

    Notes
    -----
    A request counts from the moment it is read from its connection to its reply. Further requests wait
    unread, whatever placement group they are for, so a busy placement group delays every client of its OSD.
    Requests between OSDs do not count.

    Left out: ``osd_client_message_size_cap``, which limits their bytes (500 MiB in every release), and which
    more than 125 writes of 4 MiB in flight on one OSD would reach.

    References
    ----------
    Ceph v16.2.15: ``src/ceph_osd.cc`` (``set_policy_throttlers`` for clients),
    ``src/msg/async/ProtocolV2.cc`` (``throttle_message``). The limit was absent from Luminous (pull request
    14944) and 256 since v16.2.6 (pull request 42157).
    """

    positive: ClassVar = ("client_requests_max_count",)
    client_requests_max_count: int  #: Client requests of one OSD in flight [count]
