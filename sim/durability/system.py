"""What a question about durability consists of: a code, drives that fail, repair, bursts."""

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

#: Widest code whose erasure patterns are tabulated one by one [shards].
PATTERN_SHARDS_MAX: Final = 20

#: Pieces that stand for a smooth hazard.
_PIECES: Final = 40


@dataclass(frozen=True)
class Lifetime:
    """Time from a new drive to its failure, as a hazard that is constant over pieces of the drive's age.

    >>> round(Lifetime.exponential(0.02).hazards_per_s[0] * YEAR_S, 6)
    0.020203
    """

    edges_s: tuple[
        float, ...
    ]  # Ages at which pieces begin [s], the first 0; the last piece has no end
    hazards_per_s: tuple[float, ...]  # Failure rate in each [1/s]

    @classmethod
    def exponential(cls, afr: float) -> Lifetime:
        """Lifetimes of an annual failure rate `afr`, the share of drives that fail within a year."""
        return cls((0.0,), (-log1p(-afr) / YEAR_S,))

    @classmethod
    def weibull(cls, scale_s: float, shape: float, until_s: float) -> Lifetime:
        """Weibull lifetimes, as pieces up to an age [s] that have the distribution's own mean hazards.

        Pieces are equally long where the hazard rises, and grow with age where it falls from infinity.
        """
        if shape == 1:
            return cls((0.0,), (1 / scale_s,))
        grid = np.linspace(0, 1, _PIECES + 1)
        edges = until_s * (grid if shape > 1 else grid**4)
        cumulative = (edges / scale_s) ** shape
        return cls(
            tuple(edges[:-1].tolist()),
            tuple((np.diff(cumulative) / np.diff(edges)).tolist()),
        )

    @property
    def constant(self) -> bool:
        """Whether a drive's age does not matter."""
        return len(set(self.hazards_per_s)) == 1

    @property
    def rate_per_s(self) -> float:
        """The hazard of a drive whose age does not matter, else of one of unknown age: the mean of pieces."""
        if self.constant or len(self.edges_s) == 1:
            return self.hazards_per_s[0]
        lengths = np.diff(np.array(self.edges_s))
        return float(np.average(self.hazards_per_s[:-1], weights=lengths))


@dataclass(frozen=True)
class Code:
    """What matters of a redundancy scheme here."""

    name: str
    # Shards in all, and those that carry data.
    width: int
    k: int
    tolerated: int  # Any so many shards may be lost
    repair_reads: float  # Shards read to rebuild one, the mean over shards
    min_shards: int  # Shards that must be there for a client to be served (Ceph's default ``min_size``)
    distances: npt.NDArray[np.uint8] | None = None
    """Shape (2**width,): by pattern of lost shards (bit i: shard i): how many further losses destroy data, 0:
    destroyed. None where the number lost decides."""


@lru_cache(maxsize=32)
def code_of(name: str) -> Code:
    """Return the `Code` of a scheme as scenarios write it.

    A code whose patterns of m losses are not all decodable and that has more than 20 shards is taken to lose
    data as soon as more than `failures_tolerated` shards are gone.
    """
    scheme = parse_scheme(name)
    replicated = scheme.kind == "replicated"
    least = (
        scheme.width - scheme.width // 2
        if replicated
        else scheme.k + min(1, scheme.m - 1)
    )
    distances = _distances(scheme)
    return Code(
        name=scheme.name,
        width=scheme.width,
        k=scheme.k,
        # What a scheme says of itself may be no more than a proven lower bound.
        tolerated=scheme.failures_tolerated
        if distances is None
        else int(distances[0]) - 1,
        repair_reads=1.0 if replicated else _repair_reads(scheme),
        min_shards=max(1, least),
        distances=distances,
    )


def _repair_reads(scheme: RedundancyScheme) -> float:
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
    width, tolerated = scheme.width, scheme.failures_tolerated
    if tolerated >= scheme.m or width > PATTERN_SHARDS_MAX:
        return None
    decodes = np.zeros(1 << width, dtype=bool)
    for size in range(scheme.m + 1):
        patterns = np.array(list(combinations(range(width), size)), dtype=np.int64)
        patterns = patterns.reshape(comb(width, size), size)
        if size <= tolerated:
            good = np.ones(len(patterns), dtype=bool)
        elif isinstance(scheme, GroupedCode):
            good = np.concatenate(list(patterns_independent(scheme.parity_check, size)))
        else:
            good = np.array(
                [scheme.can_decode(frozenset(pattern)) for pattern in patterns.tolist()]
            )
        decodes[(1 << patterns[good]).sum(axis=1)] = True
    distance = np.zeros(1 << width, dtype=np.uint8)
    masks = np.arange(1 << width)
    counts = np.bitwise_count(masks)
    # From many losses to few, so that what one more loss leads to is known.
    for size in range(scheme.m, -1, -1):
        here = masks[(counts == size) & decodes]
        nearest = np.full(len(here), width + 1, dtype=np.int64)
        for shard in range(width):
            one_more = here | (1 << shard)
            nearest = np.minimum(
                nearest, np.where(one_more == here, width + 1, distance[one_more])
            )
        distance[here] = nearest + 1
    return distance


@dataclass(frozen=True)
class Repair:
    """How fast lost shards come back."""

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
    lost_fraction: float = (
        1.0  # Probability that a drive of a struck unit loses its data
    )
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
    sector_errors: float = (
        0.0  # Latent sector errors on a drive at any moment, the mean count
    )
    bursts: tuple[Burst, ...] = ()
    groups: Ints | None = (
        None  # Shape (groups, width): with "crush": drive of each shard, -1 for a hole
    )
    units: dict[str, Ints] = field(default_factory=dict)
    """Shape (drives,): number of the host and of the rack of each drive, as far as there are any."""
    stripes: float | None = None
    """Stripes of a declustered pool [count]; None: so many that every combination of drives has some."""
    min_shards: int | None = (
        None  # Shards needed to serve clients; None: as Ceph's default
    )
    spares: int | None = None
    """Repairs that find a place to rebuild to, until failed drives are replaced [count]; None: always."""
    replacement_s: float = (
        0.0  # Time until a failed drive is replaced and its spare is free again [s]
    )

    @property
    def pools(self) -> int:
        """Pools of a clustered placement, 1 otherwise."""
        return self.drives // self.code.width if self.placement == "clustered" else 1

    @property
    def transfer_s(self) -> float:
        """Time to rebuild one whole drive, once it has begun and nothing else is rebuilt [s]."""
        if self.placement == "declustered":
            return (
                self.drive_bytes
                * (self.code.repair_reads + 1)
                / (self.repair.bytes_per_s * (self.drives - 1))
            )
        return self.drive_bytes / self.repair.bytes_per_s

    @property
    def missing_allowed(self) -> int:
        """Shards that may be missing while clients are served."""
        least = self.code.min_shards if self.min_shards is None else self.min_shards
        return self.code.width - least

    @cached_property
    def layout(self) -> Ints:
        """Drives of each placement group, or of each pool of a clustered placement."""
        if self.groups is not None:
            return self.groups
        n = self.code.width
        return np.arange(self.pools * n, dtype=np.int32).reshape(self.pools, n)


def group_bytes(system: System) -> float:
    """Bytes of one shard of a placement group, or of a pool [B]."""
    shards = int((system.layout >= 0).sum())
    return (
        system.drive_bytes * system.drives / shards
        if system.groups is not None
        else system.drive_bytes
    )
