"""The lock of a placement group."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stripesim.models.provenance import MeasuredModel

SCOPES = ("commit", "coded", "dispatch", "none")


@dataclass(frozen=True, kw_only=True)
class PgLockModel(MeasuredModel):
    """Lock that serialises operations on one placement group.

    Notes
    -----
    A thread is held only while it works: in ``commit`` scope the lock, not the thread,
    spans the commit. Deviation: in v11.2.0 a thread that waits for a lock blocks its
    shard's queue; here the operation waits without a thread.

    References
    ----------
    Ceph v11.2.0, ``src/osd/PG.h`` (``_lock``), ``src/osd/OSD.cc``
    (``ShardedOpWQ::_process``); Koh et al., IISWC 2017, section II.B.
    """

    #: ``commit``: the lock is held from dispatch until all members have committed (as Koh et al. 2017,
    #: section II.B, state). ``dispatch``: held while the primary processes the operation; sub-operations and
    #: commits of several operations overlap (as the code of v11.2.0 has it). ``coded``: to the commit in
    #: erasure-coded pools, to dispatch in replicated ones. ``none``: no lock (ablation).
    scope: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scope not in SCOPES:
            raise ValueError(
                f"PgLockModel: scope: got {self.scope!r}, wanted one of {', '.join(SCOPES)}"
            )

    def of_pool(self, *, erasure: bool) -> PgLockModel:
        """Return the lock of one kind of pool, where ``coded`` is decided."""
        if self.scope != "coded":
            return self
        return replace(self, scope="commit" if erasure else "dispatch")
