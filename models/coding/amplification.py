"""Compute the bytes that a coded object occupies and that its repair reads, with padding, exactly."""

from fractions import Fraction

from stripesim.models.coding.errors import require
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.optimised import ShardMap
from stripesim.models.coding.optimised.extents import align, length
from stripesim.models.coding.policy import WHOLE_STRIPES, EcPolicy
from stripesim.models.coding.protocol import RedundancyScheme, ShardExtent


def stored_bytes(
    scheme: RedundancyScheme,
    geometry: StripeGeometry,
    object_bytes: int,
    *,
    min_alloc_bytes: int = 1,
    policy: EcPolicy = WHOLE_STRIPES,
) -> int:
    r"""Return the bytes that all shards of one object occupy [B].

    Parameters
    ----------
    scheme
        Redundancy scheme.
    geometry
        Stripes of the object. Replication ignores it.
    object_bytes
        Bytes written to the object [B], at least 1.
    min_alloc_bytes
        Allocation unit of the object store [B], at least 1.
    policy
        EC policy. An optimised pool stores whole pages instead of whole stripes: one byte takes one page plus
        m more.

    Raises
    ------
    SchemeError
        If `object_bytes` or `min_alloc_bytes` is less than 1.

    Notes
    -----
    The object is divided into :math:`\lceil S / (k u) \rceil` stripes of :math:`k` chunks of :math:`u`
    bytes. The last stripe is padded, and each of the :math:`n` shards stores one chunk per stripe:

    .. math:: B = n \, u \left\lceil \frac{S}{k u} \right\rceil \tag{1}

    The store rounds each shard up to whole allocation units. Metadata is not included, so this is a lower
    bound.

    References
    ----------
    Ceph v11.2.0, ``src/osd/ECUtil.h``; Han et al., "Revisiting Erasure Codes: A Configuration Perspective"
    (HotStorage 2024), slides on division and padding.

    Examples
    --------
    RS(12, 9) in the source, which states n and k, is ``rs:9,3`` here:

    >>> from stripesim.models.coding import parse_scheme
    >>> code = parse_scheme("rs:9,3")
    >>> stored_bytes(code, code.geometry(4 << 20), 64 << 20) >> 20
    96
    """
    require(
        object_bytes >= 1, f"{scheme.name}: object_bytes", object_bytes, "1 or more"
    )
    require(
        min_alloc_bytes >= 1,
        f"{scheme.name}: min_alloc_bytes",
        min_alloc_bytes,
        "1 or more",
    )
    if policy.optimised and scheme.kind == "erasure":
        stored = ShardMap(geometry, scheme.width).stored(object_bytes)
        return sum(length(align(runs, min_alloc_bytes)) for runs in stored.values())
    if scheme.kind == "replicated":
        shard_bytes = object_bytes
    else:
        shard_bytes = geometry.shard_size_bytes(object_bytes)
    return scheme.width * (-(-shard_bytes // min_alloc_bytes) * min_alloc_bytes)


def padded_amplification(
    scheme: RedundancyScheme,
    geometry: StripeGeometry,
    object_bytes: int,
    *,
    min_alloc_bytes: int = 1,
) -> Fraction:
    """Return the bytes stored per byte written: equation (1) of `stored_bytes` divided by the object size.

    The result is n / k for whole stripes and larger otherwise. For an object smaller than a stripe, it is at
    most n times the stripe unit divided by the object size. Metadata is not included.

    Parameters
    ----------
    scheme, geometry, object_bytes, min_alloc_bytes
        As for `stored_bytes`.

    Examples
    --------
    >>> from stripesim.models.coding import parse_scheme
    >>> code = parse_scheme("rs:12,3")
    >>> padded_amplification(code, code.geometry(4 << 20), 64 << 20)
    Fraction(15, 8)
    """
    stored = stored_bytes(
        scheme, geometry, object_bytes, min_alloc_bytes=min_alloc_bytes
    )
    return Fraction(stored, object_bytes)


def repair_reads(
    scheme: RedundancyScheme,
    geometry: StripeGeometry,
    *,
    stripes: int = 1,
    block_bytes: int = 1,
) -> float:
    """Return the bytes read to rebuild one byte of a lost shard, the mean over shards.

    Parameters
    ----------
    scheme
        Redundancy scheme.
    geometry
        Stripes of the object.
    stripes
        Stripes of the object [count].
    block_bytes
        Smallest unit of a read [B]. A block that two pieces share is read once.

    Examples
    --------
    Clay reads a quarter of each helper in pieces of 1,024 bytes, for which drives read all of 4 KiB:

    >>> from stripesim.models.coding import parse_scheme
    >>> code = parse_scheme("clay:4,2,5")
    >>> geometry = code.geometry(4096)
    >>> repair_reads(code, geometry), repair_reads(code, geometry, block_bytes=4096)
    (2.5, 5.0)
    """
    object_bytes = stripes * geometry.stripe_bytes
    read = 0
    for shard in range(scheme.width):
        plan = scheme.plan_repair(
            lost=frozenset({shard}), object_size_bytes=object_bytes, geometry=geometry
        )
        if block_bytes == 1:
            read += sum(extent.length_bytes for extent in plan.reads)
            continue
        blocks = {
            (extent.shard, block)
            for extent in plan.reads
            for block in _blocks_of(extent, block_bytes)
        }
        read += block_bytes * len(blocks)
    return read / scheme.width / (stripes * geometry.stripe_unit_bytes)


def _blocks_of(extent: ShardExtent, block_bytes: int) -> range:
    """Return the numbers of the blocks that an extent touches."""
    end_bytes = extent.offset_bytes + extent.length_bytes
    return range(extent.offset_bytes // block_bytes, -(-end_bytes // block_bytes))
