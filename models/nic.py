"""A network interface: frames on the wire, and a latency."""

from dataclasses import dataclass
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class NicModel(MeasuredModel):
    r"""One full-duplex interface and the way to its peer.

    Notes
    -----
    A message of `n` bytes takes

    .. math:: t(n) = 8 (n + h \lceil n / p \rceil) / R \tag{1}

    on the sender's side and again on the receiver's (a store-and-forward switch), with
    :math:`p` payload and :math:`h` overhead of a frame, and :math:`R` the rate. Messages of
    one direction queue in order of arrival. Not modelled: loss, TCP windows, switch
    buffers, interrupts (those are CPU time, see `stripesim.models.cpu`).
    """

    positive: ClassVar = ("rate_bits_per_s", "frame_payload_bytes")
    rate_bits_per_s: float  #: Line rate in each direction [bit/s]
    frame_payload_bytes: int  #: Bytes of a message that fit one frame [B]; 1448 for TCP over an MTU of 1500
    #: Bytes on the wire that a frame adds to its payload [B]: TCP, IP and Ethernet headers, preamble, check
    #: sequence, gap between frames
    frame_overhead_bytes: int
    #: The part of the overhead that an operating system counts as traffic [B]: IP and TCP headers. Counters
    #: of interfaces and of this simulator include it.
    frame_header_bytes: int
    latency_ns: float  #: One way, beyond serialisation: stack, switch, wire [ns]

    def frames(self, size_bytes: int) -> int:
        """Return the frames that a message of `size_bytes` takes; at least one."""
        return max(1, -(-size_bytes // self.frame_payload_bytes))

    def traffic_bytes(self, size_bytes: int) -> int:
        """Return the bytes that interface counters show for a message [B]."""
        return size_bytes + self.frames(size_bytes) * self.frame_header_bytes

    def serialise_ns(self, size_bytes: int) -> float:
        """Time that a message holds one direction of the interface [ns], equation (1)."""
        wire_bytes = size_bytes + self.frames(size_bytes) * self.frame_overhead_bytes
        return wire_bytes * 8e9 / self.rate_bits_per_s
