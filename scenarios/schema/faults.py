"""What a scenario may say about faults: events, draws from lifetimes, replays of failure traces, limits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stripesim.scenarios.schema.types import (
    Count,
    IntervalS,
    OsdId,
    PositiveFloat,
    PositiveInt,
    SizeBytes,
    SpanS,
    Table,
    TimeS,
)

FaultKind = Literal["process", "power", "hang"]
Unit = Literal["osd", "host"]

_KIND = (
    "process: the daemon dies and peers see refused connections at once; power: silence until heartbeats run "
    "out; hang: silence, and the daemon goes on where it was."
)


class EventSpec(Table):
    """One failure: OSDs, whole hosts or whole racks that stop at a time."""

    osds: tuple[OsdId, ...] = ()
    """Numbers of the OSDs that stop."""
    hosts: tuple[OsdId, ...] = ()
    """Numbers of the hosts that stop, with all their OSDs, cores and networks."""
    racks: tuple[OsdId, ...] = ()
    """Numbers of the racks whose hosts stop."""
    at_s: TimeS
    """When, in simulated time [s]."""
    return_s: TimeS | None = None
    """When they come back [s]; leave out for never within the run."""
    kind: FaultKind = Field(default="process", description=_KIND)
    data: Literal["kept", "lost"] = "kept"
    """Whether who comes back still has its data, or an empty device."""


class CorruptionSpec(Table):
    """Shards that silently go bad, found by the next scrub of their PG."""

    osd: OsdId
    """Number of the OSD."""
    at_s: TimeS
    """When, in simulated time [s]."""
    shards: PositiveInt = 1
    """Shards that go bad, drawn by seed [count]."""


class LifetimeSpec(Table):
    """A distribution of times; which numbers it takes depends on its name."""

    distribution: Literal["exponential", "weibull", "lognormal"]
    """Name of the distribution."""
    scale_s: PositiveFloat | None = None
    """Scale of an exponential (its mean) or Weibull distribution [s]."""
    shape: PositiveFloat | None = None
    """Shape of a Weibull distribution [1]."""
    median_s: PositiveFloat | None = None
    """Median of a lognormal one [s]."""
    sigma: PositiveFloat | None = None
    """Sigma of a lognormal one [1]."""


class DrawnSpec(Table):
    """Failures drawn by seed, for every OSD or host: up for a lifetime, down for a downtime, and again."""

    unit: Unit = "osd"
    """What fails on its own."""
    lifetime: LifetimeSpec | None = None
    """Time from up to down."""
    downtime: LifetimeSpec | None = None
    """Time from down to up; leave out with lifetime for never."""
    trace: str | None = Field(default=None, min_length=1)
    """Failure trace to fit both distributions to instead, relative to the scenario file; the one with the
    lowest AIC counts."""
    trace_format: str | None = Field(default=None, min_length=1)
    """Format of the trace."""
    speed: PositiveFloat = 1.0
    """Factor that drawn times are divided by [1]; 1000 compresses months to hours."""
    kind: FaultKind = Field(default="power", description=_KIND)


class ReplaySpec(Table):
    """Failures as a trace recorded them; its nodes become OSDs or hosts in the order in which they appear."""

    trace: str = Field(min_length=1)
    """Path of the trace, relative to the scenario file."""
    trace_format: str | None = Field(default=None, min_length=1)
    """Format of the trace; leave out to recognise it."""
    unit: Unit = "host"
    """What a node of the trace is here."""
    from_s: TimeS = 0.0
    """Where in the trace the run begins [s after its start]."""
    speed: PositiveFloat = 1.0
    """Factor that the trace's times are divided by [1]."""
    kind: FaultKind = Field(default="power", description=_KIND)


class FaultsSpec(Table):
    """What fails during the run. Left out numbers are those of the generation of Ceph."""

    events: tuple[EventSpec, ...] = ()
    """Failures, each a table [[faults.events]]."""
    corruptions: tuple[CorruptionSpec, ...] = ()
    """Silent corruption, each a table [[faults.corruptions]]."""
    drawn: DrawnSpec | None = None
    """Failures drawn from lifetimes."""
    replay: ReplaySpec | None = None
    """Failures replayed from a trace."""
    heartbeat_interval_s: IntervalS | None = None
    """Time between two pings of a pair [s] (osd_heartbeat_interval)."""
    heartbeat_grace_s: IntervalS | None = None
    """Silence after which an OSD is reported [s] (osd_heartbeat_grace)."""
    min_down_reporters: Count | None = None
    """Hosts that have to report it [count] (mon_osd_min_down_reporters)."""
    down_out_interval_s: TimeS | None = None
    """Time down after which an OSD is out [s] (mon_osd_down_out_interval)."""
    min_in_fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    """No OSD is marked out if that leaves a smaller share in [0 to 1] (mon_osd_min_in_ratio)."""
    max_backfills: Count | None = None
    """PGs that an OSD recovers at a time [count] (osd_max_backfills)."""
    recovery_max_active: Count | None = None
    """Objects an OSD recovers at a time [count] (osd_recovery_max_active)."""
    recovery_chunk_bytes: SizeBytes | None = None
    """Most bytes one round moves [bytes] (osd_recovery_max_chunk)."""
    recovery_sleep_s: TimeS | None = None
    """Pause between starts of recovery on an OSD [s] (osd_recovery_sleep)."""
    scrub_interval_s: IntervalS | None = None
    """Time in which every PG is scrubbed once [s] (osd_deep_scrub_interval)."""
    series_s: SpanS = 1.0
    """Width of the bins of the series [s]."""
