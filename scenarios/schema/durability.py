"""What a scenario may say about durability: drives that fail, repair, latent errors, bursts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from stripesim.scenarios.schema.types import PositiveFloat, PositiveInt, Table, TimeS
from stripesim.scenarios.schema.units import SIZE_PATTERN, SizeError, parse_size_bytes

__all__ = ["AgeingSpec", "BurstSpec", "DurabilitySpec"]


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

    distribution: Literal["exponential", "weibull", "piecewise", "trace"] = Field(
        description="Name of the distribution; trace: fitted to a failure trace."
    )
    scale_s: PositiveFloat | None = Field(
        default=None, description="Scale of an exponential (its mean) or Weibull distribution [s]."
    )
    shape: Annotated[float, Field(ge=0.2, le=10)] | None = Field(
        default=None, description="Shape of a Weibull distribution [1]."
    )
    ages_s: tuple[TimeS, ...] = Field(
        default=(), description="piecewise: ages at which a failure rate begins to hold [s], the first 0."
    )
    afrs: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = Field(
        default=(), description="piecewise: the annual failure rate from each of these ages on [0 to 1]."
    )
    trace: str | None = Field(
        default=None, min_length=1, description="Failure trace to fit, relative to the scenario file."
    )
    trace_format: str | None = Field(
        default=None, min_length=1, description="Format of the trace; leave out to recognise it."
    )
    pieces: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None,
        description="trace: pieces of a piecewise hazard [count]; left out: the better of exponential and "
        "Weibull.",
    )
    age_s: TimeS = Field(default=0.0, description="Age of all drives at the start [s].")


class BurstSpec(Table):
    """Failures that strike together: power, a rack, an upgrade."""

    name: str = Field(min_length=1, description="What it is called in results.")
    unit: Literal["drive", "host", "rack"] = Field(default="host", description="What is struck, at random.")
    units: PositiveInt = Field(default=1, description="How many at once [count].")
    per_year: PositiveFloat = Field(description="Bursts a year, the mean [1/year].")
    lost_fraction: Share = Field(
        default=1.0, description="Probability that a drive of a struck unit loses its data [0 to 1]."
    )
    down_s: TimeS = Field(default=0.0, description="Time that struck units are out of reach [s].")


class DurabilitySpec(Table):
    """How drives fail and are rebuilt, for `stripesim durability`."""

    placement: Literal["crush", "clustered", "declustered"] = Field(
        default="crush",
        description="crush: the placement groups of [cluster]; clustered: pools of as many drives as the "
        "code has shards; declustered: stripes on any drives of all.",
    )
    drives: PositiveInt | None = Field(default=None, description="Drives in all [count]; not with crush.")
    drive_bytes: Bytes | None = Field(
        default=None,
        description="Bytes stored on each drive [bytes]; crush, left out: its capacity.",
    )
    afr: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None, description="Annual failure rate: share of drives that fail within a year [0 to 1]."
    )
    lifetime: AgeingSpec | None = Field(default=None, description="Lifetimes instead of afr.")
    repair: Literal["serial", "parallel", "shared", "simulated"] = Field(
        default="parallel",
        description="serial: one drive at a time in a pool; parallel: each failed drive at its own pace; "
        "shared: failed drives share one pace; simulated: in parallel, at the pace of the recovery model.",
    )
    repair_bytes_per_s: Bytes | None = Field(
        default=None,
        description="Pace of repair [bytes/s] of one failed drive; declustered: bandwidth that each "
        "surviving drive gives, reads and writes together.",
    )
    repair_time: Literal["exponential", "fixed"] | None = Field(
        default=None,
        description="Whether a rebuild takes a random or exactly its time; left out: exponential in "
        "clustered pools, as the chain has it, else fixed.",
    )
    prioritised: bool = Field(default=True, description="Whether groups nearest to loss are rebuilt first.")
    rebuilt_is_safe: bool = Field(
        default=False,
        description="declustered: whether a failure exposes what is not rebuilt yet only, not its whole "
        "share as Markov calculators have it.",
    )
    detection_s: TimeS = Field(default=0.0, description="From a failure to the start of its repair [s].")
    horizon_s: PositiveFloat = Field(
        default=31_557_600.0, description="Time within which no data may be lost [s]; a year if left out."
    )
    sector_error_rate: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="Latent sector errors that a drive develops [1/year]."
    )
    scrub_interval_s: PositiveFloat | None = Field(
        default=None,
        description="Time between scrubs, which find them [s]; left out: never within the horizon.",
    )
    spare_drives: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Drives' worth of space to rebuild to [count]; left out: always enough."
    )
    replacement_s: TimeS = Field(
        default=0.0, description="Time until a used spare is replaced and free again [s]."
    )
    min_size: PositiveInt | None = Field(
        default=None, description="Shards needed to serve clients [count]; left out: Ceph's default."
    )
    stripes: Bytes | None = Field(
        default=None,
        description="declustered: stripes in all [count]; left out: every combination of drives has some.",
    )
    bursts: tuple[BurstSpec, ...] = Field(
        default=(), description="Correlated failures, each a table [[durability.bursts]]."
    )
