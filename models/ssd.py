"""A solid state drive, or a RAID-0 set of them: servers and a service time by direction and size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel, Provenance

FACTOR_POINTS = 256

# The block layer splits longer transfers; the pieces are served in parallel.
TRANSFER_MAX_BYTES = 128 * 1024
# A drive spreads a request over its channels; 128 KiB keep the four of an Intel SSD 730 busy.
PART_BYTES = 32 * 1024


@dataclass(frozen=True, kw_only=True)
class SsdModel(MeasuredModel):
    r"""Service times of one drive under an object store.

    Notes
    -----
    Mean service time of `n` bytes, rounded up to whole blocks,

    .. math:: t(n) = t_0 + n / r \tag{1}

    With `c` channels the drive serves at most ``c / t(n)`` requests per second, so the rate of large
    transfers is ``c / ns_per_byte`` and the rate of small ones ``c / t(4096)``: the three figures of a data
    sheet (4 KiB latency, 4 KiB rate, large transfer rate) determine base, slope and channels.

    Assumptions: directions share the channels unless `write_servers_count` says otherwise; a RAID-0
    member is chosen by whichever server is free (requests here are below the strip size); garbage
    collection enters only as ``steady_state_write_factor``. Not modelled: write cache absorption, mixed
    read/write interference beyond sharing the channels.
    """

    positive: ClassVar = (
        "channels",
        "raid0_drives",
        "block_bytes",
        "steady_state_write_factor",
        "ftl_write_factor",
    )
    rotational: ClassVar = False  #: Whether a daemon takes its settings for disks
    channels: int  #: Requests that one drive serves at the same time
    raid0_drives: int  #: Drives striped together behind one OSD; servers are ``channels * raid0_drives``
    #: `read_base_ns`, `write_base_ns`: part of a service time that does not depend on the size [ns]
    read_base_ns: float
    #: `read_ns_per_byte`, `write_ns_per_byte`: part that grows with the size [ns/B]
    read_ns_per_byte: float
    write_base_ns: float
    write_ns_per_byte: float
    #: Time of a cache flush that a synchronous commit waits for [ns]. Near zero for drives with power-loss
    #: protection.
    flush_base_ns: float
    #: Mean write service time after preconditioning over that of a fresh drive
    steady_state_write_factor: float
    ftl_write_factor: float  #: Bytes programmed into flash per byte that the host wrote; wear only, not time
    block_bytes: int  #: Smallest unit that the host reads or writes [B]
    #: Writes that the drive's flash takes at a time, apart from reads; 0: directions share the channels. A
    #: drive that answers from a protected buffer has one queue that empties at the rate of a data sheet.
    write_servers_count: int
    #: Time that a read holds the drive's one way to the host after its channel [ns/B]; 0: the channels' slope
    #: has it
    link_ns_per_byte: float
    #: `read_quantiles`, `write_quantiles`: `FACTOR_POINTS` factors, ascending, of mean 1: the distribution of
    #: a service time around its mean, as equally likely values. All ones: no spread.
    read_quantiles: tuple[float, ...]
    write_quantiles: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("read_quantiles", "write_quantiles"):
            points = getattr(self, name)
            mean = sum(points) / max(1, len(points))
            # Asked this way round, a point that is not a number fails too.
            if not (
                len(points) == FACTOR_POINTS
                and abs(mean - 1) <= 1e-3
                and min(points) >= 0
            ):
                raise ValueError(
                    f"SsdModel: {name}: got {len(points)} points of mean {mean:.4f}, the least "
                    f"{min(points, default=0)}, wanted {FACTOR_POINTS} points of mean 1, none below 0"
                )

    @property
    def servers(self) -> int:
        """Requests in service at the same time, over all drives of the set."""
        return self.channels * self.raid0_drives

    def single(self) -> SsdModel:
        """Return one drive of the set."""
        provenance = {
            **self.provenance,
            "raid0_drives": Provenance("given", "one bare device"),
        }
        return replace(self, raid0_drives=1, provenance=provenance)

    def blocks_bytes(self, size_bytes: int) -> int:
        """Round a size up to whole blocks [B]."""
        return -(-size_bytes // self.block_bytes) * self.block_bytes

    def pieces_bytes(self, size_bytes: int) -> list[int]:
        """Return the requests that the transfer of one extent becomes [B]."""
        whole, rest = divmod(size_bytes, TRANSFER_MAX_BYTES)
        return [TRANSFER_MAX_BYTES] * whole + ([rest] if rest else [])

    def parts_bytes(self, piece_bytes: int) -> list[int]:
        """Return the equal parts of a request served in parallel [B], each at least `PART_BYTES`."""
        parts = max(1, min(self.servers, piece_bytes // PART_BYTES))
        size, rest = divmod(self.blocks_bytes(piece_bytes) // self.block_bytes, parts)
        parts_listed = [
            (size + (index < rest)) * self.block_bytes for index in range(parts)
        ]
        parts_listed[-1] -= self.blocks_bytes(piece_bytes) - piece_bytes
        return parts_listed

    def read_ns(self, size_bytes: int) -> float:
        """Return the mean time to read `size_bytes` [ns], equation (1)."""
        return self.read_base_ns + self.read_ns_per_byte * self.blocks_bytes(size_bytes)

    def read_next_ns(self, size_bytes: int) -> float:
        """Return the mean time to read near the last read [ns]: a drive has no position."""
        return self.read_ns(size_bytes)

    def write_ns(self, size_bytes: int) -> float:
        """Return the mean time to write `size_bytes` [ns], equation (1) with the steady-state factor."""
        fresh_ns = self.write_base_ns + self.write_ns_per_byte * self.blocks_bytes(
            size_bytes
        )
        return fresh_ns * self.steady_state_write_factor

    def sync_ns(self, size_bytes: int) -> float:
        """Return the mean time to write `size_bytes` and flush, as a commit does [ns]."""
        return self.write_ns(size_bytes) + self.flush_base_ns
