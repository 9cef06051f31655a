"""Service times of a hard disk or a RAID-0 set: seek, rotation and transfer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, lgamma
from typing import ClassVar

import numpy as np

from stripesim.models.provenance import MeasuredModel, Provenance
from stripesim.models.ssd import FACTOR_POINTS, SsdModel

#: Mean square root of the seek distance between two uniformly drawn positions: 2 ∫ √x (1 − x) dx.
MEAN_ROOT_DISTANCE = 8 / 15

# Number of midpoints for each of the two uniform draws that produce the spread.
_SPREAD_POINTS = 512

QUEUE_MAX = 32
"""Commands in a disk's queue at most (SATA, native command queueing)."""
# Positions and times of the integral over a queue.
_QUEUE_POINTS = 64
_QUEUE_TIMES = 1_500


@dataclass(frozen=True, kw_only=True)
class HddModel(MeasuredModel):
    r"""Service times of one disk under an object store.

    Notes
    -----
    A seek over the fraction :math:`x` of the stroke takes :math:`s(x) = s_1 + (s_f - s_1) \sqrt x`. The
    wanted sector is then half a revolution away on average. The distance between two uniformly drawn
    positions has the density :math:`2 (1 - x)`, so the mean of :math:`\sqrt x` is 8/15. With the mean seek
    :math:`\bar s` from a data sheet, it follows that

    .. math:: s_f = s_1 + \tfrac{15}{8} (\bar s - s_1), \quad t(n) = \bar s + T / 2 + n / r \tag{1}

    An extent is one request up to `run_bytes`: its parts are adjacent, so only the first needs a seek. The
    spread is that of :math:`s(x) + u T` with both drawn at random, for a transfer of one block. It is applied
    to the whole service time.

    A read that begins where the disk's previous request ended needs neither seek nor rotation, because the
    drive reads ahead. Such a write needs no seek, but waits half a revolution: a flush follows each write.
    Deferred writes go to the disk in batches, in order of position. Of :math:`n` random positions, neighbours
    are the fraction :math:`x` of the stroke apart with the density :math:`n (1 - x)^{n-1}`, so that

    .. math:: E[\sqrt x] = \frac{\Gamma(3/2)\, \Gamma(n + 1)}{\Gamma(n + 3/2)} \tag{2}

    A disk with :math:`n` reads in its queue serves the one that it reaches first (`position_factors`). It
    gets to one after :math:`s(x) + u T`, with the distribution :math:`F_h` for a head at :math:`h`, so that

    .. math:: t_n = E_h \int_0^\infty (1 - F_h(t))^n \, dt \tag{3}

    Those that were left out are rather far away, which makes :math:`t_n` up to 9 % longer: this is left out.
    The engine takes :math:`n` from the disk's queue when the read begins, writes included.

    Deviation: a long transfer varies more than in reality, but its mean is right. Deviation: writes of
    clients are not sorted. The log that a commit waits for has its own head (as with a separate log device).

    References
    ----------
    C. Ruemmler, J. Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994: the seek time
    grows with the square root of the distance, then linearly. Here the square root is used throughout.

    D. M. Jacobson, J. Wilkes, "Disk scheduling algorithms based on rotational position", HP Laboratories
    HPL-CSP-91-7, 1991: shortest access time first.

    Examples
    --------
    >>> from stripesim.models.provenance import Provenance
    >>> numbers = {"raid0_drives": 1, "read_track_seek_ns": 0.2e6, "write_track_seek_ns": 0.3e6,
    ...            "read_mean_seek_ns": 8e6, "write_mean_seek_ns": 9e6, "rotation_ns": 8e6,
    ...            "read_ns_per_byte": 5.0, "write_ns_per_byte": 5.0, "flush_base_ns": 0.0,
    ...            "run_bytes": 1 << 20, "block_bytes": 4096}
    >>> disk = HddModel(**numbers, provenance=dict.fromkeys(numbers, Provenance("assumed", "an example")))
    >>> disk.read_ns(1_000_000 // 4096 * 4096) / 1e6  # 8 ms, half of 8 ms, 5 ns for each of 999,424 bytes
    16.99712
    """

    positive: ClassVar = ("raid0_drives", "rotation_ns", "run_bytes", "block_bytes")
    #: Daemons use their settings for rotational devices. One arm serves both directions, and the link to the
    #: host adds no time to that of the platter.
    rotational: ClassVar = True
    write_servers_count: ClassVar = 0
    link_ns_per_byte: ClassVar = 0.0
    has_log_drive: ClassVar = False  #: True if commits wait for a separate drive
    raid0_drives: (
        int  #: Striped disks behind one OSD. Each serves one request at a time.
    )
    #: Seek to an adjacent track, for reads and writes [ns].
    read_track_seek_ns: float
    write_track_seek_ns: float
    #: Seek between two random positions, including settling, for reads and writes [ns].
    read_mean_seek_ns: float
    write_mean_seek_ns: float
    rotation_ns: float  #: One revolution [ns]
    #: Transfer time per byte, averaged over the zones of the disk, for reads and writes [ns/B].
    read_ns_per_byte: float
    write_ns_per_byte: float
    flush_base_ns: float  #: Time that a flush adds to a commit [ns]
    run_bytes: int  #: Largest part of an extent that is moved before the head serves another request [B]
    block_bytes: int  #: Smallest unit of a read or write by the host [B]

    def __post_init__(self) -> None:
        super().__post_init__()
        for way in ("read", "write"):
            mean_ns = getattr(self, f"{way}_mean_seek_ns")
            track_ns = getattr(self, f"{way}_track_seek_ns")
            if not mean_ns >= track_ns:
                raise ValueError(
                    f"HddModel: {way}_mean_seek_ns: got {mean_ns}, "
                    f"wanted {way}_track_seek_ns = {track_ns} or more"
                )

    @property
    def servers(self) -> int:
        """Number of requests in service at the same time, over all disks of the set."""
        return self.raid0_drives

    @property
    def writers(self) -> int:
        """Number of writes in service at the same time. Both directions share the arms."""
        return self.servers

    def single(self) -> HddModel:
        """Return one disk of the set."""
        origin = Provenance("given", "one bare device")
        return self.with_numbers({"raid0_drives": 1}, origin)

    @property
    def read_position_ns(self) -> float:
        """Mean time to position the head for a random read [ns]."""
        return self.read_mean_seek_ns + self.rotation_ns / 2

    @cached_property
    def position_factors(self) -> tuple[float, ...]:
        """Factors of `read_position_ns` with 0, 1, … further requests in the queue, as (3) has it."""
        positions = (np.arange(_QUEUE_POINTS) + 0.5) / _QUEUE_POINTS
        stroke_ns = self.read_mean_seek_ns - self.read_track_seek_ns
        stroke_ns /= MEAN_ROOT_DISTANCE
        longest_ns = self.read_track_seek_ns + stroke_ns + self.rotation_ns
        times_ns = (np.arange(_QUEUE_TIMES) + 0.5) / _QUEUE_TIMES * longest_ns
        # 1 − F by head and time
        left = np.empty((_QUEUE_POINTS, _QUEUE_TIMES))
        for row, head in zip(left, positions, strict=True):
            distance = np.abs(positions - head)
            seeks_ns = self.read_track_seek_ns + stroke_ns * np.sqrt(distance)
            turned = (times_ns[:, None] - seeks_ns) / self.rotation_ns
            row[:] = 1 - np.clip(turned, 0, 1).mean(axis=1)
        factors = [1.0]
        all_left = left
        for _ in range(1, QUEUE_MAX):
            all_left = all_left * left
            factors.append(float(all_left.mean() * longest_ns / self.read_position_ns))
        return tuple(factors)

    def blocks_bytes(self, size_bytes: int) -> int:
        """Round a size up to whole blocks [B]."""
        return -(-size_bytes // self.block_bytes) * self.block_bytes

    def pieces_bytes(self, size_bytes: int) -> list[int]:
        """Split the transfer of one extent into requests [B]."""
        full, rest = divmod(size_bytes, self.run_bytes)
        return [self.run_bytes] * full + ([rest] if rest else [])

    def parts_bytes(self, piece_bytes: int) -> list[int]:
        """Return the parts of one request that are served in parallel [B]. A disk has one arm."""
        return [piece_bytes]

    def read_ns(self, size_bytes: int) -> float:
        """Return the mean time to read `size_bytes` of one extent [ns], by equation (1)."""
        transfer_ns = self.read_ns_per_byte * self.blocks_bytes(size_bytes)
        return self.read_position_ns + transfer_ns

    def read_next_ns(self, size_bytes: int) -> float:
        """Return the mean time to read next to the previous read [ns]: track seek, half a revolution."""
        position_ns = self.read_track_seek_ns + self.rotation_ns / 2
        return position_ns + self.read_ns_per_byte * self.blocks_bytes(size_bytes)

    def write_ns(self, size_bytes: int) -> float:
        """Return the mean time to write `size_bytes` of one extent [ns], by equation (1)."""
        position_ns = self.write_mean_seek_ns + self.rotation_ns / 2
        return position_ns + self.write_ns_per_byte * self.blocks_bytes(size_bytes)

    def continued_read_ns(self, size_bytes: int) -> float:
        """Return the mean time to read what follows the disk's previous request [ns]: the transfer."""
        return self.read_ns_per_byte * self.blocks_bytes(size_bytes)

    def continued_write_ns(self, size_bytes: int) -> float:
        """Return the mean time to write after the previous request [ns]: half a revolution, the transfer."""
        transfer_ns = self.write_ns_per_byte * self.blocks_bytes(size_bytes)
        return self.rotation_ns / 2 + transfer_ns

    def deferred_write_ns(self, size_bytes: int, batch_count: int) -> float:
        """Return the mean time of one of `batch_count` writes in order of position [ns], by equation (2)."""
        # Two positions are as far apart as a random one from the head.
        count = max(2, batch_count)
        root = exp(lgamma(1.5) + lgamma(count + 1) - lgamma(count + 1.5))
        stroke_ns = (self.write_mean_seek_ns - self.write_track_seek_ns) / (
            MEAN_ROOT_DISTANCE
        )
        seek_ns = self.write_track_seek_ns + stroke_ns * root
        return seek_ns + self.continued_write_ns(size_bytes)

    def adjacent_write_ns(self, size_bytes: int, batch_count: int) -> float:
        """Return the mean time of one of `batch_count` deferred writes that are next to each other [ns].

        The disk positions its head once for all of them.
        """
        position_ns = self.write_mean_seek_ns + self.rotation_ns / 2
        transfer_ns = self.write_ns_per_byte * self.blocks_bytes(size_bytes)
        return position_ns / max(1, batch_count) + transfer_ns

    def sync_ns(self, size_bytes: int) -> float:
        """Return the mean time to write `size_bytes` and flush, as in a commit [ns]."""
        return self.write_ns(size_bytes) + self.flush_base_ns

    @cached_property
    def read_quantiles(self) -> tuple[float, ...]:
        """`FACTOR_POINTS` ascending factors of mean 1 that describe the spread of read times."""
        transfer_ns = self.read_ns_per_byte * self.block_bytes
        return self._factors(
            self.read_track_seek_ns, self.read_mean_seek_ns, transfer_ns
        )

    @cached_property
    def write_quantiles(self) -> tuple[float, ...]:
        """`FACTOR_POINTS` ascending factors of mean 1 that describe the spread of write times."""
        transfer_ns = self.write_ns_per_byte * self.block_bytes
        return self._factors(
            self.write_track_seek_ns, self.write_mean_seek_ns, transfer_ns
        )

    def _factors(
        self, track_ns: float, mean_ns: float, transfer_ns: float
    ) -> tuple[float, ...]:
        middles = (np.arange(_SPREAD_POINTS) + 0.5) / _SPREAD_POINTS
        # Invert the distribution function of the distance, 1 − (1 − x)².
        distance = 1 - np.sqrt(1 - middles)
        seek_ns = track_ns + (mean_ns - track_ns) / MEAN_ROOT_DISTANCE * np.sqrt(
            distance
        )
        times_ns = (
            np.sort((seek_ns[:, None] + middles * self.rotation_ns).ravel())
            + transfer_ns
        )
        points = times_ns.reshape(FACTOR_POINTS, -1).mean(axis=1)
        return tuple((points / points.mean()).tolist())


@dataclass(frozen=True, kw_only=True)
class HddWithLogModel(HddModel):
    """A hard disk with its log and key-value store on a separate drive.

    Notes
    -----
    Commits wait for the separate drive, data are on the disk. Deviation: the drive has one queue per OSD, so
    the combined writes of several OSDs to one shared drive are not limited. Deviation: the spread of the
    drive's service times is that of the disk.
    """

    has_log_drive: ClassVar = True
    #: Size-independent part of the time of a write to the log drive [ns]
    log_write_base_ns: float
    log_write_ns_per_byte: float  #: Part that grows with size [ns/B]

    def sync_ns(self, size_bytes: int) -> float:
        """Return the mean time to write `size_bytes` to the log drive and flush, as in a commit [ns]."""
        write_ns = (
            self.log_write_base_ns
            + self.log_write_ns_per_byte * self.blocks_bytes(size_bytes)
        )
        return write_ns + self.flush_base_ns


DeviceModel = SsdModel | HddModel
"""Both have servers, service times by direction and size, a spread, and a way to split transfers."""
