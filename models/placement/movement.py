"""Exact movement of data by a change of the cluster, from the up sets before and after.

Start with `Movement.between`. `stripesim.models.placement.pg_sets` gives the up sets of an OSD map.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush.elements import NONE

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OsdWeights:
    """Weights changed by operators and monitors: OSDs that are out, and CRUSH weights."""

    out: tuple[int, ...] = ()  #: OSDs that are out, ascending
    #: OSD and CRUSH weight, 16.16 fixed point, of each whose weight was changed, ascending
    crush: tuple[tuple[int, int], ...] = ()

    def then(self, later: "OsdWeights") -> "OsdWeights":
        """Return the weights after further changes. OSDs that are out stay out."""
        return OsdWeights(
            out=tuple(sorted({*self.out, *later.out})),
            crush=tuple(sorted({**dict(self.crush), **dict(later.crush)}.items())),
        )


@dataclass(frozen=True)
class Movement:
    """Shards that move to another OSD.

    A shard moves where the OSD at its place in the up set changes, a replica where an OSD joins the set.
    """

    groups: IntArray  #: PG of each shard that moves, shape (shards,)
    targets: IntArray  #: OSD that gets it, shape (shards,)
    left_groups: (
        IntArray  #: PG of each shard that leaves an OSD, shape (leaving shards,)
    )
    sources: IntArray  #: OSD that it leaves, shape (leaving shards,)

    @classmethod
    def between(
        cls, before: npt.ArrayLike, after: npt.ArrayLike, *, is_replicated: bool
    ) -> "Movement":
        """Compare up sets.

        Parameters
        ----------
        before, after
            OSD of each shard of each PG, `NONE` where there is none, shape (groups, width).
        is_replicated
            True if all places of an up set hold the same.

        Returns
        -------
        Movement
            The shards that move. A shard that only loses its OSD does not move.
        """
        old = np.asarray(before, dtype=np.int64)
        new = np.asarray(after, dtype=np.int64)
        if is_replicated:
            same = old[:, :, None] == new[:, None, :]
            joins = ~same.any(axis=1)
            leaves = ~same.any(axis=2)
        else:
            joins = leaves = old != new
        joins = joins & (new != NONE)
        leaves = leaves & (old != NONE)
        return cls(
            groups=np.nonzero(joins)[0].astype(np.int64),
            targets=new[joins],
            left_groups=np.nonzero(leaves)[0].astype(np.int64),
            sources=old[leaves],
        )

    @property
    def shards_count(self) -> int:
        """Shards that move [count]."""
        return len(self.groups)

    @property
    def groups_count(self) -> int:
        """PGs with a shard that moves [count]."""
        return len(np.unique(self.groups))
