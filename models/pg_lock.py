"""Model of a placement group's lock."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stripesim.models.provenance import MeasuredModel

SCOPES = ("commit", "coded", "dispatch", "none")


@dataclass(frozen=True, kw_only=True)
class PgLockModel(MeasuredModel):
    """The lock that serialises operations on one placement group.

    Notes
    -----
    A thread is occupied only while it works: in ``commit`` scope the lock is held across the commit, but the
    thread is not. Deviation: in v11.2.0 a thread that waits for a lock blocks the queue of its shard. Here
    the operation waits without a thread.

    References
    ----------
    Ceph v11.2.0, ``src/osd/PG.h`` (``_lock``), ``src/osd/OSD.cc`` (``ShardedOpWQ::_process``); Koh et al.,
    IISWC 2017, section II.B.
    """

    #: ``commit``: held from dispatch until all members have committed (as stated by Koh et al. 2017, section
    #: II.B). ``dispatch``: held while the primary processes the operation, so that sub-operations and commits
    #: of several operations overlap (as in the code of v11.2.0). ``coded``: ``commit`` in erasure-coded
    #: pools, ``dispatch`` in replicated ones. ``none``: no lock (ablation).
    scope: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scope not in SCOPES:
            raise ValueError(
                f"PgLockModel: scope: got {self.scope!r}, wanted one of {', '.join(SCOPES)}"
            )

    def of_pool(self, *, erasure: bool) -> PgLockModel:
        """Return the lock of a pool, with scope ``coded`` resolved for its kind."""
        if self.scope != "coded":
            return self
        return replace(self, scope="commit" if erasure else "dispatch")
