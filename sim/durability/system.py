"""Describe a system whose durability is asked for: a code, drives that fail, repair, bursts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb, log1p
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from stripesim.models.coding import RedundancyScheme, parse_scheme
from stripesim.models.coding.galois import patterns_independent
from stripesim.models.coding.grouped import GroupedCode

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Placement = Literal["crush", "clustered", "declustered"]
Unit = Literal["drive", "host", "rack"]
Policy = Literal["parallel", "serial", "shared"]

#: A Julian year [s].
YEAR_S: Final = 365.25 * 86400

#: Widest code whose erasure patterns are tabulated [shards].
PATTERN_SHARDS_MAX: Final = 20

#: Pieces that approximate a smooth hazard [count].
_PIECES: Final = 40


@dataclass(frozen=True)
class Lifetime:
    """Time from a new drive to its failure, as a hazard that is constant over pieces of the drive's age.

    >>> round(Lifetime.exponential(0.02).hazards_per_s[0] * YEAR_S, 6)
    0.020203
    """

    # Ages at which pieces begin [s], the first 0; the last piece has no end.
    edges_s: tuple[float, ...]
    hazards_per_s: tuple[float, ...]  # Failure rate in each [1/s]

    @classmethod
    def exponential(cls, afr: float) -> Lifetime:
        """Return lifetimes of an annual failure rate `afr`, the share of drives that fail within a year."""
        return cls((0.0,), (-log1p(-afr) / YEAR_S,))

    @classmethod
    def weibull(cls, scale_s: float, shape: float, until_s: float) -> Lifetime:
        """Return Weibull lifetimes, as pieces up to an age [s] with the mean hazards of the distribution.

        Pieces are equally long where the hazard rises, and grow with age where it falls from infinity.
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
        """Return True if drives do not age."""
        return len(set(self.hazards_per_s)) == 1

    @property
    def rate_per_s(self) -> float:
        """Return the hazard of a drive of any age or, if drives age, the mean over pieces [1/s]."""
        if self.constant or len(self.edges_s) == 1:
            return self.hazards_per_s[0]
        lengths = np.diff(np.array(self.edges_s))
        return float(np.average(self.hazards_per_s[:-1], weights=lengths))


@dataclass(frozen=True)
class Code:
    """The properties of a redundancy scheme that durability depends on."""

    name: str
    # Shards in all, and those that carry data.
    width: int
    k: int
    tolerated: int  # Any so many shards may be lost
    repair_reads: float  # Shards read to rebuild one, the mean over shards
    min_shards: int  # Shards needed to serve clients (Ceph's default ``min_size``)
    distances: npt.NDArray[np.uint8] | None = None
    """Shape (2**width,): further losses that destroy data, by pattern of lost shards (bit i: shard i); 0:
    destroyed already. None where the number of lost shards decides."""


@lru_cache(maxsize=32)
def code_of(name: str) -> Code:
    """Return the `Code` of a scheme as scenarios write it.

    A code whose patterns of m losses are not all decodable and that has more than 20 shards is taken to lose
    data as soon as more than `failures_tolerated` shards are gone.
    """
    scheme = parse_scheme(name)
    replicated = scheme.kind == "replicated"
    if replicated:
        repair_reads = 1.0
        min_shards = scheme.width - scheme.width // 2
    else:
        repair_reads = _repair_reads(scheme)
        min_shards = scheme.k + min(1, scheme.m - 1)
    tolerated = scheme.failures_tolerated
    distances = _distances(scheme)
    if distances is not None:
        # A scheme may state no more than a proven lower bound.
        tolerated = int(distances[0]) - 1
    return Code(
        name=scheme.name,
        width=scheme.width,
        k=scheme.k,
        tolerated=tolerated,
        repair_reads=repair_reads,
        min_shards=max(1, min_shards),
        distances=distances,
    )


def _repair_reads(scheme: RedundancyScheme) -> float:
    """Return the mean number of shards read to rebuild one."""
    geometry = scheme.geometry(4096)
    size = geometry.stripe_unit_bytes * scheme.k
    total = 0
    for shard in range(scheme.width):
        plan = scheme.plan_repair(
            lost=frozenset({shard}), object_size_bytes=size, geometry=geometry
        )
        total += sum(extent.length_bytes for extent in plan.reads)
    return total / scheme.width / geometry.stripe_unit_bytes


def _distances(scheme: RedundancyScheme) -> npt.NDArray[np.uint8] | None:
    """Tabulate `Code.distances`; None where the number of lost shards decides."""
    width = scheme.width
    if scheme.failures_tolerated >= scheme.m or width > PATTERN_SHARDS_MAX:
        return None
    decodes = _decodable(scheme)
    distance = np.zeros(1 << width, dtype=np.uint8)
    masks = np.arange(1 << width)
    counts = np.bitwise_count(masks)
    # From many losses to few: the distance after one more loss is then known.
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
    """Tabulate which patterns of lost shards can be decoded; shape (2**width,)."""
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


@dataclass(frozen=True)
class Repair:
    """How fast lost shards are rebuilt."""

    bytes_per_s: float
    """Pace at which one failed drive is rebuilt [B/s]; in a declustered pool the bandwidth that each
    surviving drive gives, reads and writes together."""
    policy: Policy = "serial"
    """Each failed drive at its own pace; one at a time in a pool; all at once, sharing one pace."""
    detection_s: float = 0.0  # From a failure to the start of its repair [s]
    fixed: bool = True  # Whether a repair takes exactly its time, or an exponential one of that mean
    prioritised: bool = True  # Whether placement groups nearest to loss come first
    progress: bool = False
    """In a declustered pool, whether stripes already rebuilt are safe from the next failure; else a failure
    exposes its whole share, as in the chain."""


@dataclass(frozen=True)
class Burst:
    """Failures that strike together."""

    name: str
    unit: Unit  # What is struck, drawn at random
    units: int  # How many at once
    rate_per_s: float  # Mean rate of such bursts [1/s]
    # Probability that a drive of a struck unit loses its data.
    lost_fraction: float = 1.0
    down_s: float = 0.0  # Time that struck units are out of reach [s]


@dataclass(frozen=True, kw_only=True)
class System:
    """One scheme on one set of drives."""

    code: Code
    placement: Placement
    """Placement groups as given; pools of `code.width` drives; stripes on any drives of all."""
    drives: int
    drive_bytes: float  # Bytes stored on a drive [B]
    lifetime: Lifetime
    repair: Repair
    horizon_s: float = YEAR_S
    age_s: float = 0.0  # Age of all drives at the start [s]
    sector_errors: float = 0.0  # Mean latent sector errors on a drive [count]
    bursts: tuple[Burst, ...] = ()
    groups: Ints | None = None
    """Shape (groups, width): with "crush", the drive of each shard, -1 for a hole."""
    units: dict[str, Ints] = field(default_factory=dict)
    """Shape (drives,): number of the host and of the rack of each drive, as far as there are any."""
    stripes: float | None = None
    """Stripes of a declustered pool [count]; None: so many that every combination of drives has some."""
    min_shards: int | None = None  # Needed to serve clients; None: as Ceph's default
    spares: int | None = None
    """Spare drives to rebuild to, until failed drives are replaced [count]; None: no limit."""
    replacement_s: float = 0.0  # From use of a spare until it is free again [s]

    @property
    def pools(self) -> int:
        """Return the pools of a clustered placement, 1 otherwise."""
        if self.placement == "clustered":
            return self.drives // self.code.width
        return 1

    @property
    def transfer_s(self) -> float:
        """Return the time to rebuild one whole drive, without detection and other rebuilds [s]."""
        if self.placement != "declustered":
            return self.drive_bytes / self.repair.bytes_per_s
        bandwidth = self.repair.bytes_per_s * (self.drives - 1)
        return self.drive_bytes * (self.code.repair_reads + 1) / bandwidth

    @property
    def missing_allowed(self) -> int:
        """Return how many shards may be missing while clients are served."""
        min_shards = self.min_shards
        if min_shards is None:
            min_shards = self.code.min_shards
        return self.code.width - min_shards

    @cached_property
    def layout(self) -> Ints:
        """Return the drives of each placement group, or of each pool of a clustered placement."""
        if self.groups is not None:
            return self.groups
        n = self.code.width
        return np.arange(self.pools * n, dtype=np.int32).reshape(self.pools, n)


def group_bytes(system: System) -> float:
    """Return the bytes of one shard of a placement group, or of a pool [B]."""
    if system.groups is None:
        return system.drive_bytes
    shards = int((system.groups >= 0).sum())
    return system.drive_bytes * system.drives / shards
