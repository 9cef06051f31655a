"""What a scenario may say about durability: drives that fail, repair, latent errors, bursts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from stripesim.scenarios.schema.types import PositiveFloat, PositiveInt, Table, TimeS
from stripesim.scenarios.schema.units import SIZE_PATTERN, SizeError, parse_size_bytes


def _bytes(value: object) -> object:
    """Read sizes as text; numbers stay as they are."""
    if isinstance(value, str):
        try:
            return float(parse_size_bytes(value))
        except SizeError:
            return value
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Bytes = Annotated[
    float,
    BeforeValidator(_bytes),
    Field(gt=0, le=1e24),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": 1e24},
                {"type": "string", "pattern": SIZE_PATTERN},
            ]
        }
    ),
]
Share = Annotated[float, Field(ge=0, le=1)]


class AgeingSpec(Table):
    """Lifetimes of drives; which numbers it takes depends on its name."""

    distribution: Literal["exponential", "weibull", "piecewise", "trace"]
    """Name of the distribution; trace: fitted to a failure trace."""
    scale_s: PositiveFloat | None = None
    """Scale of an exponential (its mean) or Weibull distribution [s]."""
    shape: Annotated[float, Field(ge=0.2, le=10)] | None = None
    """Shape of a Weibull distribution [1]."""
    ages_s: tuple[TimeS, ...] = ()
    """piecewise: ages at which a failure rate begins to hold [s], the first 0."""
    afrs: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = ()
    """piecewise: the annual failure rate from each of these ages on [0 to 1]."""
    trace: str | None = Field(default=None, min_length=1)
    """Failure trace to fit, relative to the scenario file."""
    trace_format: str | None = Field(default=None, min_length=1)
    """Format of the trace; leave out to recognise it."""
    pieces: Annotated[int, Field(ge=1, le=100)] | None = None
    """trace: pieces of a piecewise hazard [count]; left out: the better of exponential and Weibull."""
    age_s: TimeS = 0.0
    """Age of all drives at the start [s]."""


class BurstSpec(Table):
    """Failures that strike together: power, a rack, an upgrade."""

    name: str = Field(min_length=1)
    """What it is called in results."""
    unit: Literal["drive", "host", "rack"] = "host"
    """What is struck, at random."""
    units: PositiveInt = 1
    """How many at once [count]."""
    per_year: PositiveFloat
    """Bursts a year, the mean [1/year]."""
    lost_fraction: Share = 1.0
    """Probability that a drive of a struck unit loses its data [0 to 1]."""
    down_s: TimeS = 0.0
    """Time that struck units are out of reach [s]."""


class DurabilitySpec(Table):
    """How drives fail and are rebuilt, for `stripesim durability`."""

    placement: Literal["crush", "clustered", "declustered"] = "crush"
    """crush: the placement groups of [cluster]; clustered: pools of as many drives as the code has shards;
    declustered: stripes on any drives of all."""
    drives: PositiveInt | None = None
    """Drives in all [count]; not with crush."""
    drive_bytes: Bytes | None = None
    """Bytes stored on each drive [bytes]; crush, left out: its capacity."""
    afr: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Annual failure rate: share of drives that fail within a year [0 to 1]."""
    lifetime: AgeingSpec | None = None
    """Lifetimes instead of afr."""
    repair: Literal["serial", "parallel", "shared", "simulated"] = "parallel"
    """serial: one drive at a time in a pool; parallel: each failed drive at its own pace; shared: failed
    drives share one pace; simulated: in parallel, at the pace of the recovery model."""
    repair_bytes_per_s: Bytes | None = None
    """Pace of repair [bytes/s] of one failed drive; declustered: bandwidth that each surviving drive gives,
    reads and writes together."""
    repair_time: Literal["exponential", "fixed"] | None = None
    """Whether a rebuild takes a random or exactly its time; left out: exponential in clustered pools, as the
    chain has it, else fixed."""
    prioritised: bool = True
    """Whether groups nearest to loss are rebuilt first."""
    rebuilt_is_safe: bool = False
    """declustered: whether a failure exposes what is not rebuilt yet only, not its whole share as Markov
    calculators have it."""
    detection_s: TimeS = 0.0
    """From a failure to the start of its repair [s]."""
    horizon_s: PositiveFloat = 31_557_600.0
    """Time within which no data may be lost [s]; a year if left out."""
    sector_error_rate: Annotated[float, Field(ge=0)] = 0.0
    """Latent sector errors that a drive develops [1/year]."""
    scrub_interval_s: PositiveFloat | None = None
    """Time between scrubs, which find them [s]; left out: never within the horizon."""
    spare_drives: Annotated[int, Field(ge=0)] | None = None
    """Drives' worth of space to rebuild to [count]; left out: always enough."""
    replacement_s: TimeS = 0.0
    """Time until a used spare is replaced and free again [s]."""
    min_size: PositiveInt | None = None
    """Shards needed to serve clients [count]; left out: Ceph's default."""
    stripes: Bytes | None = None
    """declustered: stripes in all [count]; left out: every combination of drives has some."""
    bursts: tuple[BurstSpec, ...] = ()
    """Correlated failures, each a table [[durability.bursts]]."""
