"""Compute the bytes a coded object occupies: division into chunks, and padding, in exact numbers."""

from fractions import Fraction

from stripesim.models.coding.errors import require
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.optimised import ShardMap
from stripesim.models.coding.optimised.extents import align, length
from stripesim.models.coding.policy import WHOLE_STRIPES, EcPolicy
from stripesim.models.coding.protocol import RedundancyScheme


def stored_bytes(
    scheme: RedundancyScheme,
    geometry: StripeGeometry,
    object_bytes: int,
    *,
    min_alloc_bytes: int = 1,
    policy: EcPolicy = WHOLE_STRIPES,
) -> int:
    r"""Return the bytes that all shards of one object occupy [B].

    `object_bytes` is the object as written, at least 1; `geometry` is without meaning for replication. An
    optimised pool stores whole pages, not whole stripes: a byte takes one page and m more.

    Notes
    -----
    The object is divided into :math:`\lceil S / (k u) \rceil` stripes of :math:`k` chunks of :math:`u`
    bytes, the last one padded, and each of the :math:`n` shards stores a chunk of every stripe:

    .. math:: B = n \, u \left\lceil \frac{S}{k u} \right\rceil \tag{1}

    The store rounds a shard up to whole units. Metadata comes on top, so this is a lower bound.

    References
    ----------
    Ceph v11.2.0, ``src/osd/ECUtil.h``; Han et al., "Revisiting Erasure Codes: A Configuration Perspective"
    (HotStorage 2024), slides: division and padding.

    Examples
    --------
    RS(12, 9) of the source, n and k, is ``rs:9,3`` here:

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
    """Return bytes stored per byte written, without metadata: equation (1) of `stored_bytes` over the size.

    It is n / k where whole stripes are written and never less; at most n times the stripe unit over the size
    for objects below a stripe.

    >>> from stripesim.models.coding import parse_scheme
    >>> code = parse_scheme("rs:12,3")
    >>> padded_amplification(code, code.geometry(4 << 20), 64 << 20)
    Fraction(15, 8)
    """
    stored = stored_bytes(
        scheme, geometry, object_bytes, min_alloc_bytes=min_alloc_bytes
    )
    return Fraction(stored, object_bytes)
