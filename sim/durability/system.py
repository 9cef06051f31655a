"""The system whose durability is estimated: a code, failing drives, repair and bursts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb, log1p
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from stripesim.models.coding import RedundancyScheme, parse_scheme, repair_reads
from stripesim.models.coding.galois import patterns_independent
from stripesim.models.coding.grouped import GroupedCode

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Placement = Literal["crush", "clustered", "declustered"]
Unit = Literal["drive", "host", "rack", "site"]
Policy = Literal["parallel", "serial", "shared"]

#: A Julian year [s].
YEAR_S: Final = 365.25 * 86400

#: Widest code whose erasure patterns are tabulated [shards].
PATTERN_SHARDS_MAX: Final = 20

#: Pieces that approximate a smooth hazard [count].
_PIECES: Final = 40


@dataclass(frozen=True)
class Lifetime:
    """Time from a new drive to its failure, as a hazard that is piecewise constant in the drive's age.

    Attributes
    ----------
    edges_s
        Ages at the beginning of each piece [s], the first one 0. The last piece has no end.
    hazards_per_s
        Failure rate in each piece [1/s].

    Examples
    --------
    >>> round(Lifetime.exponential(0.02).hazards_per_s[0] * YEAR_S, 6)
    0.020203
    """

    edges_s: tuple[float, ...]
    hazards_per_s: tuple[float, ...]

    @classmethod
    def exponential(cls, afr: float) -> Lifetime:
        """Return exponential lifetimes.

        Parameters
        ----------
        afr
            Annual failure rate: the part of the drives that fail within a year, 0 to 1.
        """
        return cls((0.0,), (-log1p(-afr) / YEAR_S,))

    @classmethod
    def weibull(cls, scale_s: float, shape: float, until_s: float) -> Lifetime:
        """Approximate Weibull lifetimes by pieces with the mean hazards of the distribution.

        Pieces have equal lengths if the hazard rises, and grow with age if it falls from infinity.

        Parameters
        ----------
        scale_s
            Scale of the distribution [s].
        shape
            Shape of the distribution. 1 is exponential.
        until_s
            Age at the end of the last but one piece [s].
        """
        if shape == 1:
            return cls((0.0,), (1 / scale_s,))
        grid = np.linspace(0, 1, _PIECES + 1)
        edges = until_s * (grid if shape > 1 else grid**4)
        cumulative = (edges / scale_s) ** shape
        hazards = np.diff(cumulative) / np.diff(edges)
        return cls(tuple(edges[:-1].tolist()), tuple(hazards.tolist()))

    @property
    def constant(self) -> bool:
        """True if drives do not age."""
        return len(set(self.hazards_per_s)) == 1

    @property
    def rate_per_s(self) -> float:
        """Hazard of a drive at any age [1/s] or, if drives age, the mean over pieces."""
        if self.constant or len(self.edges_s) == 1:
            return self.hazards_per_s[0]
        lengths = np.diff(np.array(self.edges_s))
        return float(np.average(self.hazards_per_s[:-1], weights=lengths))


@dataclass(frozen=True)
class Code:
    """The properties of a redundancy scheme that determine durability.

    Attributes
    ----------
    name
        Name of the scheme.
    width, k
        Number of shards in total, and of data shards.
    tolerated
        Largest number of shards whose loss never destroys data.
    repair_reads
        Bytes read to rebuild one byte, the mean over shards.
    min_shards
        Shards required to serve clients (Ceph's default ``min_size``).
    distances
        Number of further losses that destroy data, by pattern of lost shards (bit i is shard i),
        shape (2**width,). 0 if data is destroyed already. None if the number of lost shards
        decides.
    """

    name: str
    width: int
    k: int
    tolerated: int
    repair_reads: float
    min_shards: int
    distances: npt.NDArray[np.uint8] | None = None


def code_of(name: str) -> Code:
    """Return the `Code` of a scheme.

    Parameters
    ----------
    name
        The scheme in the notation of scenarios, such as ``rs:6,3``.

    Returns
    -------
    Code
        Its properties.

    Notes
    -----
    If some patterns of m losses cannot be decoded and the code has more than 20 shards, the loss of
    more than `failures_tolerated` shards counts as data loss.
    """
    return _properties(parse_scheme(name))


@lru_cache(maxsize=32)
def _properties(scheme: RedundancyScheme) -> Code:
    # A name is not a key: a user's own code may be defined again under the same name.
    reads = 1.0
    if scheme.kind == "erasure":
        reads = repair_reads(scheme, scheme.geometry(4096))
    tolerated = scheme.failures_tolerated
    distances = _distances(scheme)
    if distances is not None:
        # A scheme may state a proven lower bound only.
        tolerated = int(distances[0]) - 1
    return Code(
        name=scheme.name,
        width=scheme.width,
        k=scheme.k,
        tolerated=tolerated,
        repair_reads=reads,
        min_shards=scheme.min_size,
        distances=distances,
    )


def _distances(scheme: RedundancyScheme) -> npt.NDArray[np.uint8] | None:
    """Tabulate `Code.distances`. None if the number of lost shards decides."""
    width = scheme.width
    if scheme.failures_tolerated >= scheme.m or width > PATTERN_SHARDS_MAX:
        return None
    decodes = _decodable(scheme)
    distance = np.zeros(1 << width, dtype=np.uint8)
    masks = np.arange(1 << width)
    counts = np.bitwise_count(masks)
    # Proceed from many losses to few, so that the distance after one more loss is known.
    for size in range(scheme.m, -1, -1):
        patterns = masks[(counts == size) & decodes]
        nearest = np.full(len(patterns), width + 1, dtype=np.int64)
        for shard in range(width):
            one_more = patterns | (1 << shard)
            is_lost = one_more == patterns
            after = np.where(is_lost, width + 1, distance[one_more])
            nearest = np.minimum(nearest, after)
        distance[patterns] = nearest + 1
    return distance


def _decodable(scheme: RedundancyScheme) -> npt.NDArray[np.bool_]:
    """Tabulate the patterns of lost shards that can be decoded, shape (2**width,)."""
    width = scheme.width
    decodes = np.zeros(1 << width, dtype=bool)
    for size in range(scheme.m + 1):
        patterns = np.array(list(combinations(range(width), size)), dtype=np.int64)
        patterns = patterns.reshape(comb(width, size), size)
        if size <= scheme.failures_tolerated:
            good = np.ones(len(patterns), dtype=bool)
        elif isinstance(scheme, GroupedCode):
            good = np.concatenate(list(patterns_independent(scheme.parity_check, size)))
        else:
            good = np.array(
                [scheme.can_decode(frozenset(pattern)) for pattern in patterns.tolist()]
            )
        decodes[(1 << patterns[good]).sum(axis=1)] = True
    return decodes


def parity_note(code: Code) -> str | None:
    """Compare the losses that a code surely survives with its parities; None if it survives that many.

    >>> print(parity_note(code_of("lrc:4,3,2")))
    lrc:4,3,2 has 3 parities, but survives only the loss of any 1 shard: of 21 sets of 2, 2 cannot be decoded
    >>> parity_note(code_of("rs:4,2"))
    """
    parities = code.width - code.k
    if code.tolerated >= parities:
        return None
    shards = "shard" if code.tolerated == 1 else "shards"
    note = (
        f"{code.name} has {parities} parities, but survives only the loss of any "
        f"{code.tolerated} {shards}"
    )
    if code.distances is None:
        return note
    fatal = code.tolerated + 1
    losses = np.bitwise_count(np.arange(len(code.distances))) == fatal
    undecodable = np.count_nonzero(code.distances[losses] == 0)
    return f"{note}: of {comb(code.width, fatal):,} sets of {fatal}, {undecodable:,} cannot be decoded"


@dataclass(frozen=True)
class DriveRepair:
    """The pace of repair.

    Attributes
    ----------
    bytes_per_s
        Pace at which one failed drive is rebuilt [B/s]. In a declustered pool, the bandwidth that
        each surviving drive contributes, reads and writes together.
    policy
        "parallel": each failed drive at its own pace. "serial": one drive at a time in a pool, with
        `prioritised` that with a placement group nearest to loss. "shared": all failed drives at the same
        time, sharing one pace.
    detection_s
        Time from a failure to the start of its repair [s].
    fixed
        True if a repair takes exactly its time, False for an exponential time of that mean.
    prioritised
        True if the placement groups nearest to loss come first, before others that are being rebuilt.
    groups_at_once
        Placement groups of a failed drive that are rebuilt at the same time, each at an equal part of its
        pace [count].
    progress
        In a declustered pool, True if rebuilt stripes are safe from the next failure. Otherwise a
        failure exposes all stripes on its drive, as in the chain.
    """

    bytes_per_s: float
    policy: Policy = "serial"
    detection_s: float = 0.0
    fixed: bool = True
    prioritised: bool = True
    progress: bool = False
    groups_at_once: int = 1


@dataclass(frozen=True)
class Burst:
    """A kind of correlated failure.

    Attributes
    ----------
    name
        Name of the burst.
    unit
        Kind of the units that it strikes, drawn at random.
    units
        Number of units struck at the same time.
    rate_per_s
        Mean rate of such bursts [1/s].
    lost_fraction
        Probability that a drive of a struck unit loses its data.
    down_s
        Time that struck units are unavailable [s].
    """

    name: str
    unit: Unit
    units: int
    rate_per_s: float
    lost_fraction: float = 1.0
    down_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class System:
    """One scheme on one set of drives.

    Attributes
    ----------
    code
        Properties of the scheme.
    placement
        "crush": placement groups as given. "clustered": pools of `code.width` drives.
        "declustered": each stripe on any of all drives.
    drives
        Number of drives.
    drive_bytes
        Bytes stored on a drive, all of which a rebuild restores [B].
    stored_bytes
        Client data in the placement groups [B]. None if drives hold nothing else.
    lifetime
        Lifetimes of drives.
    repair
        Pace of repair.
    horizon_s
        Time within which loss is estimated [s].
    age_s
        Age of all drives at the start [s].
    sector_errors
        Mean number of latent sector errors on a drive.
    bursts
        Correlated failures.
    groups
        Drive of each shard with "crush", −1 for a hole, shape (groups, width).
    units
        Host and rack number of each drive, if known, shape (drives,).
    stripes
        Number of stripes of a declustered pool. None if every combination of drives has a stripe.
    min_shards
        Shards required to serve clients. None for Ceph's default.
    is_stretched
        True in Ceph's stretch mode: a group serves with a shard at each of two sites, or while one is down
        without it.
    spares
        Spare drives to rebuild to until failed drives are replaced. None for no limit.
    replacement_s
        Time from the use of a spare until a new one is available [s].
    """

    code: Code
    placement: Placement
    drives: int
    drive_bytes: float
    lifetime: Lifetime
    repair: DriveRepair
    horizon_s: float = YEAR_S
    age_s: float = 0.0
    sector_errors: float = 0.0
    bursts: tuple[Burst, ...] = ()
    groups: Ints | None = None
    units: dict[str, Ints] = field(default_factory=dict)
    stripes: float | None = None
    min_shards: int | None = None
    is_stretched: bool = False
    spares: int | None = None
    replacement_s: float = 0.0
    stored_bytes: float | None = None

    @property
    def pools(self) -> int:
        """Number of pools of a clustered placement, 1 otherwise."""
        if self.placement == "clustered":
            return self.drives // self.code.width
        return 1

    @property
    def failures(self) -> float:
        """Expected failures of drives within the horizon, if all that fail are replaced."""
        return self.drives * self.lifetime.rate_per_s * self.horizon_s

    @property
    def transfer_s(self) -> float:
        """Time to rebuild one whole drive, without detection and other rebuilds [s]."""
        if self.placement != "declustered":
            return self.drive_bytes / self.repair.bytes_per_s
        bandwidth = self.repair.bytes_per_s * (self.drives - 1)
        return self.drive_bytes * (self.code.repair_reads + 1) / bandwidth

    @cached_property
    def groups_at_once(self) -> int:
        """Placement groups of a failed drive that are rebuilt at the same time, no more than it holds."""
        held = int((self.layout >= 0).sum()) / self.drives
        return max(1, min(self.repair.groups_at_once, round(held)))

    @property
    def group_transfer_s(self) -> float:
        """Time to rebuild one shard of a placement group beside the others rebuilt with it [s]."""
        return self.groups_at_once * group_bytes(self) / self.repair.bytes_per_s

    @property
    def shard_transfer_s(self) -> float:
        """Mean time until a shard of a lost drive is rebuilt, from the end of detection [s]."""
        if self.placement != "crush":
            return self.transfer_s / 2
        return (self.transfer_s + self.group_transfer_s) / 2

    @property
    def rebuild_s(self) -> float:
        """Time from a failure until its drive is rebuilt, without other rebuilds [s]."""
        return self.repair.detection_s + self.transfer_s

    @property
    def client_bytes(self) -> float:
        """Client data in all placement groups, pools or stripes [B]."""
        if self.stored_bytes is not None:
            return self.stored_bytes
        if self.placement == "declustered":
            return self.drives * self.drive_bytes * self.code.k / self.code.width
        return self.code.k * group_bytes(self) * len(self.layout)

    @property
    def client_bytes_per_group(self) -> float:
        """Client data in a placement group, or in a pool of a clustered placement [B]."""
        return self.client_bytes / len(self.layout)

    @property
    def missing_allowed(self) -> int:
        """Number of shards that may be missing while clients are served."""
        min_shards = self.min_shards
        if min_shards is None:
            min_shards = self.code.min_shards
        return self.code.width - min_shards

    @cached_property
    def layout(self) -> Ints:
        """Drives of each placement group, or of each pool of a clustered placement."""
        if self.groups is not None:
            return self.groups
        n = self.code.width
        return np.arange(self.pools * n, dtype=np.int32).reshape(self.pools, n)


def group_bytes(system: System) -> float:
    """Return the size of one shard of a placement group, or of a pool [B]."""
    if system.groups is None:
        return system.drive_bytes
    shards = int((system.groups >= 0).sum())
    return system.drive_bytes * system.drives / shards
