"""A network interface: frames on the wire, and latency."""

from dataclasses import dataclass
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class NicModel(MeasuredModel):
    r"""A full-duplex interface and the path to its peer.

    Notes
    -----
    A message of `n` bytes takes

    .. math:: t(n) = 8 (n + h \lceil n / p \rceil) / R \tag{1}

    on the sender's side and again on the receiver's (a store-and-forward switch), where :math:`p` and
    :math:`h` are the payload and overhead of a frame and :math:`R` is the line rate. Messages in one
    direction queue in order of arrival. A large message passes both sides in pieces of whole frames, so that
    they overlap (see `stripesim.sim.ceph.paths.message`).

    Not modelled: loss, TCP windows, switch buffers and interrupts (which
    are CPU time, see `stripesim.models.cpu`).
    """

    positive: ClassVar = ("rate_bits_per_s", "frame_payload_bytes")
    rate_bits_per_s: float  #: Line rate in each direction [bit/s]
    frame_payload_bytes: (
        int  #: Bytes of a message per frame [B]; 1448 for TCP with an MTU of 1500
    )
    #: Bytes on the wire that a frame adds to its payload: TCP, IP and Ethernet headers, preamble, check
    #: sequence and inter-frame gap [B]
    frame_overhead_bytes: int
    #: Part of the overhead that counters at the IP level, and those of this simulator, include: IP and TCP
    #: headers [B]. Linux's counters of an Ethernet interface also include its header, 14 B.
    frame_header_bytes: int
    latency_ns: (
        float  #: One-way latency beyond serialisation: stack, switch and wire [ns]
    )

    def frames(self, size_bytes: int) -> int:
        """Return the number of frames in a message of `size_bytes`, at least one."""
        return max(1, -(-size_bytes // self.frame_payload_bytes))

    def traffic_bytes(self, size_bytes: int) -> int:
        """Return the bytes that counters at the IP level show for a message [B]."""
        return size_bytes + self.frames(size_bytes) * self.frame_header_bytes

    def serialise_ns(self, size_bytes: int) -> float:
        """Return the time that a message occupies one direction of the interface [ns], by equation (1)."""
        wire_bytes = size_bytes + self.frames(size_bytes) * self.frame_overhead_bytes
        return wire_bytes * 8e9 / self.rate_bits_per_s
