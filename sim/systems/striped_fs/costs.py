"""Costs of a write in a file system whose data servers encode, step by step."""

from dataclasses import dataclass
from typing import ClassVar

from stripesim.models.kernel.cost import AffineKnee
from stripesim.models.provenance import MeasuredModel

REFERENCE_RECORD_BYTES = 4096
REFERENCE_SHARD_BYTES = 1024
REFERENCE_RATE_BITS_PER_S = 1e9


@dataclass(frozen=True, kw_only=True)
class VolumeGeometry:
    """An erasure-coded volume whose records are cut into small stripes.

    >>> volume = VolumeGeometry(k=4, m=2, block_bytes=1024, chunk_bytes=64 << 20)
    >>> volume.stripes(131072), volume.stripes(5000), volume.stored_bytes(5000)
    (32, 2, 12288)
    """

    k: int  #: Data blocks of a stripe [count]
    m: int  #: Parity blocks of a stripe [count]
    #: Size of one block [B]. A stripe holds ``k * block_bytes`` of data, the encoding unit
    block_bytes: int = 1024
    #: Bytes of one server's file that a chunk set fills before the next chunk set is allocated [B]
    chunk_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        for name in ("k", "m", "block_bytes", "chunk_bytes"):
            value = getattr(self, name)
            if value < 1:
                raise ValueError(f"volume: {name}: got {value}, wanted at least 1")

    @property
    def width(self) -> int:
        """Number of blocks of a stripe, data and parity."""
        return self.k + self.m

    @property
    def encoding_unit_bytes(self) -> int:
        """Data of one stripe [B]."""
        return self.k * self.block_bytes

    def stripes(self, record_bytes: int) -> int:
        """Return the stripes of one record, padded with zeros to whole encoding units.

        Parameters
        ----------
        record_bytes
            Size of the record [B].

        Raises
        ------
        ValueError
            If the record is empty.
        """
        if record_bytes < 1:
            raise ValueError(
                f"volume: record: got {record_bytes} bytes, wanted at least 1"
            )
        return -(-record_bytes // self.encoding_unit_bytes)

    def shard_bytes(self, record_bytes: int) -> int:
        """Return the bytes of a record on each server, including padding [B]."""
        return self.stripes(record_bytes) * self.block_bytes

    def stored_bytes(self, record_bytes: int) -> int:
        """Return the bytes of a record on all servers [B]."""
        return self.width * self.shard_bytes(record_bytes)

    def records_per_chunk_set(self, record_bytes: int) -> int:
        """Return the records per chunk set, at least 1."""
        return max(1, self.chunk_bytes // self.shard_bytes(record_bytes))


@dataclass(frozen=True, kw_only=True)
class StripedWriteModel(MeasuredModel):
    r"""Times of the five steps of one record's write.

    Notes
    -----
    For a record of :math:`R` bytes in :math:`n` stripes of :math:`k + m` blocks of :math:`b` bytes:

    .. math::
        \text{client} &= c (R / 4\,\text{KiB})^{p}
        (\min(\text{rate}, \text{rate}_\text{max}) / 1\,\text{Gb/s})^{r} \tag{1} \\
        \text{master}, \text{parity} &= a + s \min(n, n_c) + s' \max(n - n_c, 0) \tag{2} \\
        n_c &= C / (b (2 k + m)) \tag{3} \\
        \text{distribution} &= d + 8\,\text{bytes} / (\text{rate} \cdot e) \tag{4} \\
        \text{slave} &= v (n b / 1\,\text{KiB})^{q} \tag{5}

    Equation (3): record, copy and parity together fill the cache :math:`C`. Equation (4) is not
    computed here: the engine sends messages over interfaces of the rate :math:`\text{rate} \cdot e`.

    Equations (1) and (5) describe the calibration rows. No mechanism is known for the exponents, so
    they have little meaning outside the measured range. The client's time grows with the network's
    rate in Tables 1 and 2 at every size, and the source does not explain why. An unexplained effect
    is not extrapolated: above the fastest calibrated rate, the client's time is constant.

    Only one measured size is above the knee of equation (2). `parity_ns` scales parity to other codes
    and geometries.

    References
    ----------
    D.-O. Kim, H.-Y. Kim, Y.-K. Kim, J.-J. Kim, "Cost analysis of erasure coding for exa-scale
    storage", J. Supercomputing 75, 2019, sections 2.2 and 3 (the steps), Tables 1 and 2 (the numbers).
    """

    positive: ClassVar = ("network_efficiency_fraction", "cache_bytes", "cores_count")
    #: Client's work on a record of 4 KiB with a network of 1 Gb/s [ns]
    client_base_ns: float
    client_growth_exponent: float  #: Exponent of its growth with the record
    client_rate_exponent: float  #: Exponent of its growth with the network's rate
    #: Rate up to which it grows: the fastest calibrated rate [bit/s]
    client_rate_max_bits_per_s: float
    #: One exchange with the metadata server, including the server's work [ns]
    mds_round_trip_ns: float
    mds_round_trips_per_chunk_set: float  #: Exchanges per new chunk set of a file
    master_record_ns: float  #: Master: lock, memory and transfer of a record [ns]
    #: `master_stripe_ns`, `master_stripe_uncached_ns`: master: per stripe, within the processor's cache and
    #: beyond it [ns]
    master_stripe_ns: float
    master_stripe_uncached_ns: float
    #: `parity_record_ns`, `parity_stripe_ns`, `parity_stripe_uncached_ns`: parity calculation: the same three
    #: times for 4+2 with the measured kernel [ns]
    parity_record_ns: float
    parity_stripe_ns: float
    parity_stripe_uncached_ns: float
    cache_bytes: float  #: Cache of one core that a record's working set can fill [B]
    #: Distribution: constant time of a record at any network rate [ns]
    distribution_record_ns: float
    #: Part of the line rate that transfers between servers reach, above 0 to 1
    network_efficiency_fraction: float
    slave_base_ns: float  #: Slave: recording, logging and locking of 1 KiB [ns]
    slave_growth_exponent: float  #: Exponent of its growth with the bytes
    #: Size of a message without its payload, and of a reply [B]
    message_header_bytes: float
    cores_count: float  #: Cores of a server, and of a client

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.network_efficiency_fraction > 1:
            raise ValueError(
                f"StripedWriteModel: network_efficiency_fraction: got {self.network_efficiency_fraction}, "
                "wanted at most 1"
            )

    def client_ns(self, record_bytes: int, network_bits_per_s: float) -> float:
        """Return the client's work on a record [ns], equation (1).

        Parameters
        ----------
        record_bytes
            Size of the record [B].
        network_bits_per_s
            Line rate of the network [bit/s].
        """
        size = (record_bytes / REFERENCE_RECORD_BYTES) ** self.client_growth_exponent
        rate_bits_per_s = min(network_bits_per_s, self.client_rate_max_bits_per_s)
        relative_rate = rate_bits_per_s / REFERENCE_RATE_BITS_PER_S
        rate = relative_rate**self.client_rate_exponent
        return float(self.client_base_ns * size * rate)

    def slave_ns(self, shard_bytes: int) -> float:
        """Return a slave's work on its part of a record [ns], equation (5)."""
        relative = shard_bytes / REFERENCE_SHARD_BYTES
        return float(self.slave_base_ns * relative**self.slave_growth_exponent)

    def knee_stripes(self, geometry: VolumeGeometry) -> float:
        """Return the stripes whose record, copy and parity fill the cache, equation (3)."""
        return self.cache_bytes / (geometry.block_bytes * (2 * geometry.k + geometry.m))

    def master_ns(self, geometry: VolumeGeometry, record_bytes: int) -> float:
        """Return the master's work on a record without parity calculation [ns], equation (2).

        Parameters
        ----------
        geometry
            The volume.
        record_bytes
            Size of the record [B].

        Notes
        -----
        The work per stripe is copying, so it grows with the stripe's data.
        """
        scale = geometry.encoding_unit_bytes / REFERENCE_RECORD_BYTES
        times_ns = (
            self.master_record_ns,
            self.master_stripe_ns,
            self.master_stripe_uncached_ns,
        )
        return self._of_stripes(times_ns, scale, geometry, record_bytes)

    def parity_ns(
        self, geometry: VolumeGeometry, record_bytes: int, *, kernel_factor: float = 1.0
    ) -> float:
        """Return the time of the encode calls of a record [ns], equation (2).

        Parameters
        ----------
        geometry
            The volume.
        record_bytes
            Size of the record [B].
        kernel_factor
            Time of the encoding kernel relative to the calibrated kernel.

        Raises
        ------
        ValueError
            If the factor is negative.

        Notes
        -----
        Each of the m parity blocks reads all k data blocks once, so a stripe's time is scaled by
        k m b relative to the measured 4+2 with blocks of 1 KiB.
        """
        if kernel_factor < 0:
            raise ValueError(
                f"parity: kernel_factor: got {kernel_factor}, wanted 0 or more"
            )
        scale = geometry.m * geometry.encoding_unit_bytes / (2 * REFERENCE_RECORD_BYTES)
        times_ns = (
            self.parity_record_ns,
            self.parity_stripe_ns,
            self.parity_stripe_uncached_ns,
        )
        return kernel_factor * self._of_stripes(times_ns, scale, geometry, record_bytes)

    def _of_stripes(
        self,
        times_ns: tuple[float, float, float],
        scale: float,
        geometry: VolumeGeometry,
        record_bytes: int,
    ) -> float:
        record_ns, stripe_ns, uncached_ns = times_ns
        cost = AffineKnee(
            record_ns,
            scale * stripe_ns,
            self.knee_stripes(geometry),
            scale * uncached_ns,
        )
        return cost.duration_ns(geometry.stripes(record_bytes))


@dataclass(frozen=True, kw_only=True)
class SlaveDiskModel(MeasuredModel):
    """The disk that stores a slave's chunk."""

    positive: ClassVar = ("rate_bytes_per_s", "burst_bytes", "disks_count")
    rate_bytes_per_s: float  #: Sequential write rate [B/s]
    positioning_ns: float  #: Seek and half a rotation before a burst [ns]
    burst_bytes: float  #: Bytes that write-back gathers into one burst [B]
    #: Bytes of one server's memory that may wait for its disks [B]. With 0, each record waits for the disk
    dirty_bytes: float
    disks_count: float  #: Disks of a server. A chunk is on one of them

    def write_ns(self, size_bytes: int) -> float:
        """Return the time of a disk for one write [ns].

        Parameters
        ----------
        size_bytes
            Size of the write [B].

        Notes
        -----
        Gathered bytes share the positioning of their burst. Without memory to gather them in, each write
        positions the disk again.
        """
        bursts = 1.0
        if self.dirty_bytes:
            bursts = size_bytes / self.burst_bytes
        return size_bytes * 1e9 / self.rate_bytes_per_s + bursts * self.positioning_ns

    def records_dirty(self, size_bytes: int) -> int:
        """Return the number of writes that a server's memory holds, at least 1."""
        return max(1, int(self.dirty_bytes // size_bytes))
