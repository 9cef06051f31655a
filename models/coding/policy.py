"""Define how a release of Ceph reads and writes the shards of an erasure-coded object."""

from dataclasses import dataclass
from typing import Literal

Writes = Literal["stripes", "shards"]
Reads = Literal["stripes", "columns", "chunks", "pages"]
Tie = Literal["reconstruct", "delta"]

#: Granularity of all shard I/O of an optimised pool [B] (EC_ALIGN_SIZE).
PAGE_BYTES = 4096


@dataclass(frozen=True)
class EcPolicy:
    """Rules for the shard I/O of a read or write of an erasure-coded object.

    References
    ----------
    Ceph main (0009f3f5), ``src/osd/ECTransaction.cc`` (``WritePlanObj``), ``src/osd/ECCommon.cc``
    (``get_min_want_to_read_shards``); v20.2.0 from the counters of a running cluster.
    """

    #: ``stripes``: partially covered stripes are read whole, and all k + m chunks of every touched stripe are
    #: written. ``shards`` (FastEC): only the touched data shards and the parities are written, and parities
    #: are computed from the rest of the stripe or from the changes, whichever reads fewer shards.
    writes: Writes = "stripes"
    #: Granularity of reads: whole ``stripes``, ``columns`` (the shards that hold wanted bytes, in all touched
    #: stripes), ``chunks`` that hold wanted bytes, or their 4 KiB ``pages``.
    reads: Reads = "stripes"
    #: Method of a ``shards`` write if both methods read the same number of shards: ``reconstruct`` or
    #: ``delta``.
    tie: Tie = "reconstruct"
    direct_reads: bool = False  #: True if clients may read shards directly.

    @property
    def optimised(self) -> bool:
        """True if pools have ``allow_ec_optimizations`` and store pages instead of padded stripes."""
        return self.writes == "shards"


def leaders(*, k: int, width: int, policy: EcPolicy) -> tuple[int, ...]:
    """Return the shards whose OSD may be the primary of a placement group.

    Other data shards of an optimised pool may lack the latest object info (Ceph v20.2.0,
    ``src/mon/OSDMonitor.cc``, ``nonprimary_shards``).

    Parameters
    ----------
    k, width
        Data shards, and all shards.
    policy
        EC policy of the pool.

    Examples
    --------
    >>> leaders(k=4, width=6, policy=EcPolicy(writes="shards"))
    (0, 4, 5)
    """
    if policy.optimised:
        return (0, *range(k, width))
    return tuple(range(width))


#: Erasure coding up to Squid, in whole stripes.
WHOLE_STRIPES = EcPolicy()
