"""Service times of a solid state drive or a RAID-0 set, by direction and size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel, Provenance

FACTOR_POINTS = 256

# The block layer splits longer transfers, and the pieces are served in parallel.
TRANSFER_MAX_BYTES = 128 * 1024
# A drive spreads a request over its channels. 128 KiB keep the four channels of an Intel SSD 730 busy.
PART_BYTES = 32 * 1024


# The block of the figures of data sheets.
_SHEET_BLOCK_BYTES = 4096


def numbers_of_sheet(
    *,
    read_4k_iops: float,
    read_latency_ns: float,
    read_bytes_per_s: float,
    write_4k_iops: float,
    write_bytes_per_s: float,
) -> dict[str, float]:
    r"""Scale the measured NVMe drive to a data sheet, and return the numbers that change.

    Parameters
    ----------
    read_4k_iops, write_4k_iops
        Sustained rates of random requests of 4 KiB [1/s].
    read_latency_ns
        Latency of one random read of 4 KiB [ns].
    read_bytes_per_s, write_bytes_per_s
        Rates of large sequential requests [B/s].

    Returns
    -------
    dict
        Numbers of an `SsdModel` by name: channels, base and slope of each direction, link, write servers.

    Notes
    -----
    The drive keeps the form that was measured within whole clusters (``samsung-pm983``): channels that serve
    reads in parallel, one link to the host, and one queue of writes behind a protected buffer. With the
    latency :math:`t`, the rates :math:`i` of 4 KiB and :math:`b` of large requests,

    .. math::
        c = \operatorname{round}(i_r t), \quad
        t_r = t - 4096 / b_r, \quad
        s_\text{link} = 1 / b_r, \quad
        t_w = 1 / i_w - 4096 / b_w, \quad
        s_w = 1 / b_w \tag{1}

    so an idle drive reads 4 KiB in :math:`t`, and larger reads add only their time on the link. Whole
    channels let the rate of small reads deviate from the sheet. The spread is that of the measured drive.

    Examples
    --------
    >>> pm983 = numbers_of_sheet(read_4k_iops=540e3, read_latency_ns=85e3, read_bytes_per_s=3e9,
    ...                          write_4k_iops=50e3, write_bytes_per_s=1.9e9)
    >>> pm983["channels"], round(pm983["read_base_ns"]), round(pm983["write_base_ns"])
    (46, 83635, 17844)
    """
    link_ns = 1e9 / read_bytes_per_s
    write_ns = 1e9 / write_bytes_per_s
    return {
        "channels": max(1, round(read_4k_iops * read_latency_ns * 1e-9)),
        "read_base_ns": max(0.0, read_latency_ns - link_ns * _SHEET_BLOCK_BYTES),
        "read_ns_per_byte": 0.0,
        "write_base_ns": max(0.0, 1e9 / write_4k_iops - write_ns * _SHEET_BLOCK_BYTES),
        "write_ns_per_byte": write_ns,
        "link_ns_per_byte": link_ns,
        "write_servers_count": 1,
    }


@dataclass(frozen=True, kw_only=True)
class SsdModel(MeasuredModel):
    r"""Service times of one drive under an object store.

    Notes
    -----
    The mean service time of `n` bytes, rounded up to whole blocks, is

    .. math:: t(n) = t_0 + n / r \tag{1}

    With `c` channels the drive serves at most ``c / t(n)`` requests per second. The rate of large transfers
    is ``c / ns_per_byte``, and that of small ones ``c / t(4096)``. The three figures in a data sheet (4 KiB
    latency, 4 KiB rate, large transfer rate) thus determine base, slope and channels.

    Assumptions: both directions share the channels unless `write_servers_count` is set. Any free server of a
    RAID-0 set takes a request (requests are smaller than the strip size). Garbage collection enters only
    through ``steady_state_write_factor``. Not modelled: absorption by a write cache, and interference between
    reads and writes beyond sharing channels.
    """

    positive: ClassVar = (
        "channels",
        "raid0_drives",
        "block_bytes",
        "steady_state_write_factor",
        "ftl_write_factor",
    )
    #: No head is to be positioned, so the order of reads does not matter.
    read_position_ns: ClassVar = 0.0
    position_factors: ClassVar = (1.0,)
    rotational: ClassVar = (
        False  #: True if daemons use their settings for rotational devices
    )
    has_log_drive: ClassVar = False  #: True if commits wait for a separate drive
    channels: int  #: Requests that one drive serves concurrently
    raid0_drives: int  #: Striped drives behind one OSD, which give ``channels * raid0_drives`` servers
    #: Size-independent part of a service time, for reads and writes [ns]
    read_base_ns: float
    #: Part of a service time that grows with size, for reads and writes [ns/B]
    read_ns_per_byte: float
    write_base_ns: float
    write_ns_per_byte: float
    #: Time of the cache flush that a synchronous commit waits for [ns]. Near zero for drives with power-loss
    #: protection.
    flush_base_ns: float
    #: Ratio of the mean write service time after preconditioning to that of a fresh drive
    steady_state_write_factor: float
    ftl_write_factor: float  #: Bytes programmed to flash per byte that the host writes; affects only wear
    block_bytes: int  #: Smallest unit of a read or write by the host [B]
    #: Writes that the flash handles concurrently, separate from reads. 0: both directions share the channels.
    #: A drive that acknowledges from a protected buffer has one queue, which empties at the rate in the data
    #: sheet.
    write_servers_count: int
    #: Time per byte that a read occupies the link to the host after its channel [ns/B]. 0: the slope of the
    #: channels includes it.
    link_ns_per_byte: float
    #: Distribution of service times around the mean: the means of `FACTOR_POINTS` equally likely ascending
    #: cells of factors, of mean 1 in all. All ones: no spread.
    read_quantiles: tuple[float, ...]
    write_quantiles: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("read_quantiles", "write_quantiles"):
            points = getattr(self, name)
            mean = sum(points) / max(1, len(points))
            # Phrased so that NaN also fails.
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
        """Number of requests in service at the same time, over all drives of the set."""
        return self.channels * self.raid0_drives

    @property
    def writers(self) -> int:
        """Number of writes in service at the same time: those of the separate queue, if the drive has one."""
        return self.write_servers_count * self.raid0_drives or self.servers

    def single(self) -> SsdModel:
        """Return one drive of the set."""
        origin = Provenance("given", "one bare device")
        return self.with_numbers({"raid0_drives": 1}, origin)

    def blocks_bytes(self, size_bytes: int) -> int:
        """Round a size up to whole blocks [B]."""
        return -(-size_bytes // self.block_bytes) * self.block_bytes

    def pieces_bytes(self, size_bytes: int) -> list[int]:
        """Split the transfer of one extent into requests [B]."""
        full, rest = divmod(size_bytes, TRANSFER_MAX_BYTES)
        return [TRANSFER_MAX_BYTES] * full + ([rest] if rest else [])

    def parts_bytes(self, piece_bytes: int) -> list[int]:
        """Split a request into equal parts that are served in parallel [B], each at least `PART_BYTES`."""
        parts = max(1, min(self.servers, piece_bytes // PART_BYTES))
        size, rest = divmod(self.blocks_bytes(piece_bytes) // self.block_bytes, parts)
        parts_listed = [
            (size + (index < rest)) * self.block_bytes for index in range(parts)
        ]
        parts_listed[-1] -= self.blocks_bytes(piece_bytes) - piece_bytes
        return parts_listed

    def read_ns(self, size_bytes: int) -> float:
        """Return the mean time to read `size_bytes` [ns], by equation (1)."""
        return self.read_base_ns + self.read_ns_per_byte * self.blocks_bytes(size_bytes)

    def read_next_ns(self, size_bytes: int) -> float:
        """Return the mean time to read next to the previous read [ns]. A drive has no position."""
        return self.read_ns(size_bytes)

    def continued_read_ns(self, size_bytes: int) -> float:
        """Return the mean time to read what follows the previous request [ns]. A drive has no position."""
        return self.read_ns(size_bytes)

    def continued_write_ns(self, size_bytes: int) -> float:
        """Return the mean time to write what follows the previous request [ns]."""
        return self.write_ns(size_bytes)

    def deferred_write_ns(self, size_bytes: int, batch_count: int) -> float:
        """Return the mean time of one of a batch of writes [ns]."""
        return self.write_ns(size_bytes)

    def adjacent_write_ns(self, size_bytes: int, batch_count: int) -> float:
        """Return the mean time of one of a batch of writes side by side [ns]. A drive has no position."""
        return self.write_ns(size_bytes)

    def write_ns(self, size_bytes: int) -> float:
        """Return the mean time to write `size_bytes` [ns], by equation (1) with the steady-state factor."""
        fresh_ns = self.write_base_ns + self.write_ns_per_byte * self.blocks_bytes(
            size_bytes
        )
        return fresh_ns * self.steady_state_write_factor

    def sync_ns(self, size_bytes: int) -> float:
        """Return the mean time to write `size_bytes` and flush, as in a commit [ns]."""
        return self.write_ns(size_bytes) + self.flush_base_ns
