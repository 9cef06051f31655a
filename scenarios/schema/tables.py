"""The tables that a scenario may have beside cluster and workload: faults, changes, durability, plan."""

from typing import Annotated, Final, Literal

from pydantic import Discriminator, Field, Tag

from stripesim.scenarios.schema.types import (
    Bytes,
    Count,
    GbitPerS,
    GenerationName,
    IntervalS,
    OsdId,
    PositiveFloat,
    PositiveInt,
    SchemeText,
    Share,
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


class Throttles(Table):
    """What holds recovery back. Left out numbers are those of the generation of Ceph."""

    max_backfills: Count | None = None
    """PGs that an OSD recovers at a time [count] (osd_max_backfills)."""
    recovery_max_active: Count | None = None
    """Objects an OSD recovers at a time [count] (osd_recovery_max_active)."""
    recovery_chunk_bytes: SizeBytes | None = None
    """Most bytes one round moves [bytes] (osd_recovery_max_chunk)."""
    recovery_sleep_s: TimeS | None = None
    """Pause between starts of recovery on an OSD [s] (osd_recovery_sleep)."""


class FaultsSpec(Throttles):
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
    scrub_interval_s: IntervalS | None = None
    """Time in which every PG is scrubbed once [s] (osd_deep_scrub_interval). Where it and
    workload.duration_s are given, scrubs read what they compare."""
    object_writes: Count | None = None
    """Writes that each object of a prefilled image has had [count]: where the logs of PGs hold all of them,
    new OSDs are recovered by log. Left out: more than logs hold, so that new OSDs are backfilled."""
    series_s: SpanS = 1.0
    """Width of the bins of the series [s]; a multiple of it in a run that ends by itself and would have more
    than a million bins."""


# Planned changes of a cluster, for `stripesim rehearse`.

ChangeKind = Literal["out", "in", "weight", "add", "remove", "scheme"]

#: Keys that each kind of change needs, and those that it may have.
CHANGE_KEYS: Final[dict[str, tuple[set[str], set[str]]]] = {
    "out": ({"osds"}, set()),
    "in": ({"osds"}, set()),
    "weight": ({"osds", "weight"}, set()),
    "add": ({"hosts"}, {"osds_per_host", "weight"}),
    "remove": ({"hosts"}, set()),
    "scheme": ({"scheme"}, {"crush_rule"}),
}
#: Changes of one scenario at most.
CHANGES_MAX: Final = 1000


def _number_or_list(value: object) -> str:
    return "=list" if isinstance(value, list | tuple) else "=number"


HostsToChange = Annotated[
    Annotated[Count, Tag("=number")]
    | Annotated[tuple[OsdId, ...], Field(min_length=1), Tag("=list")],
    Discriminator(_number_or_list),
]


class ChangeSpec(Table):
    """One planned change. Changes run one after another, each once the cluster is clean."""

    kind: ChangeKind
    """out: move data off OSDs that stay up. in: bring them back. weight: set the CRUSH weight of OSDs.
    add: add hosts. remove: drain hosts. scheme: copy the pool into a new one and delete it."""
    osds: tuple[OsdId, ...] | None = Field(default=None, min_length=1)
    """OSD numbers, for out, in and weight."""
    weight: Annotated[float, Field(ge=0, le=10_000)] | None = None
    """CRUSH weight of each OSD [TiB by convention], for weight and add. Default for add: the weight of
    existing OSDs."""
    hosts: HostsToChange | None = None
    """For add, the number of new hosts [count]. For remove, the list of hosts to drain."""
    osds_per_host: Count | None = None
    """OSDs of each new host [count], for add. Default: as many as the last host has."""
    scheme: SchemeText | None = None
    """Scheme of the new pool, for scheme."""
    crush_rule: str | None = Field(default=None, min_length=1)
    """Rule of crush_map for the new pool, for scheme. Default: the rule of the old pool."""
    at_s: TimeS | None = None
    """Simulated time of the change [s]. Default: once the cluster is clean after the previous changes."""


# How drives fail and are rebuilt, for `stripesim durability`.


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
    detection_s: TimeS | None = None
    """From a failure to the start of its repair [s]; left out: until Ceph marks the OSD out, the generation's
    heartbeat grace and down-out interval."""
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


# What may vary, what is required and what things cost, for `stripesim plan`.

Price = Annotated[float, Field(ge=0, le=1e15)]


class DrivePricesSpec(Table):
    """What one kind of drive costs and draws; a key left out is that of `[plan.prices]`."""

    drive: Price | None = None
    """One drive, whatever it holds [currency]."""
    drive_per_tb: Price | None = None
    """A drive's price for each 10¹² bytes [currency]."""
    drive_watts: Price | None = None
    """One drive [W]."""


class PricesSpec(Table):
    """What the parts of a cluster cost and draw, in any one currency; a part left out costs nothing."""

    host: Price = 0.0
    """One host without drives and network [currency]."""
    drive: Price = 0.0
    """One drive, whatever it holds [currency]."""
    drive_per_tb: Price = 0.0
    """A drive's price for each 10¹² bytes [currency]."""
    drives: dict[str, DrivePricesSpec] = Field(default_factory=dict)
    """Prices by kind of drive, each a table [plan.prices.drives.NAME] with a name that plan.ssd or
    cluster.ssd has; wanted for every kind where plan.ssd names several."""
    network_per_gbit: Price = 0.0
    """Of a host's public and private network, for each Gbit/s [currency]."""
    host_watts: Price = 0.0
    """One host without drives [W]."""
    drive_watts: Price = 0.0
    """One drive [W]."""
    kwh: Price = 0.0
    """A kilowatt-hour, cooling included [currency]."""
    years: Price = 0.0
    """Time for which power is paid [years]."""


class PlanSpec(Table):
    """What may vary, under the scenario's own key names, and what a cluster must do."""

    generation: tuple[GenerationName, ...] = ()
    """Ceph releases to try."""
    hosts: tuple[Count, ...] = ()
    """cluster.hosts to try."""
    osds_per_host: tuple[Count, ...] = ()
    """cluster.osds_per_host to try."""
    ssd: tuple[str, ...] = ()
    """cluster.ssd to try."""
    drive_bytes: tuple[SizeBytes, ...] = ()
    """cluster.drive_bytes to try."""
    public_gbit_per_s: tuple[GbitPerS, ...] = ()
    """Public networks to try."""
    private_gbit_per_s: tuple[GbitPerS, ...] = ()
    """Private networks to try."""
    cores_per_host: tuple[Count, ...] = ()
    """cluster.cores_per_host to try."""
    pg_num: tuple[Count, ...] = ()
    """cluster.pg_num to try."""
    stripe_unit_bytes: tuple[SizeBytes, ...] = ()
    """Stripe units to try."""
    mclock_profile: tuple[
        Literal["high_client_ops", "balanced", "high_recovery_ops"], ...
    ] = ()
    """cluster.mclock_profile to try, with op_queue mclock_scheduler."""
    usable_bytes: Bytes | None = None
    """Client data that must fit at the nearfull ratio with the largest failure domain gone [bytes]."""
    rate_per_s: PositiveFloat | None = None
    """Requests that must be served [1/s]: simulated as Poisson arrivals at this rate."""
    p99_ms: PositiveFloat | None = None
    """Latency that 99 of 100 requests may take [ms]."""
    p99_recovery_ms: PositiveFloat | None = None
    """The same while a lost OSD is rebuilt [ms]."""
    rebuild_s: PositiveFloat | None = None
    """Time to rebuild a lost OSD that is as full as it should ever be [s]."""
    nines: PositiveFloat | None = None
    """−log10 of the probability of any loss within durability.horizon_s."""
    cost_max: PositiveFloat | None = None
    """By [plan.prices] [currency]."""
    watts_max: PositiveFloat | None = None
    """By [plan.prices] [W]."""
    days_until_full: PositiveFloat | None = None
    """Days until the safe capacity is used up [days]."""
    growth_bytes_per_day: Bytes | None = None
    """Growth of client data [bytes/day], for days_until_full."""
    stored_bytes: Bytes | None = None
    """Client data at the start [bytes]; left out: none."""
    owned_hosts: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """Hosts that are there already, as [cluster] describes them [count]. They cost nothing; what a candidate
    changes about them does (drives, networks), and so does their power."""
    replications: Annotated[int, Field(ge=2, le=50)] = 3
    """Runs of each candidate, each with its own seed [count]; they give intervals."""
    simulated_max: Annotated[int, Field(ge=1, le=500)] = 12
    """Candidates simulated at most, least cost first [count]."""
    wall_s_max: PositiveFloat = 600.0
    """Wall-clock time after which no further candidate is simulated [s]."""
    prices: PricesSpec | None = None
    """What the parts cost and draw."""

    @property
    def varies_domains(self) -> bool:
        """Whether candidates have other failure domains than `[cluster]`."""
        return bool(self.hosts or self.osds_per_host)


#: What a plan may vary: the scenario's `generation`, and keys of `[cluster]`.
VARIED: Final = (
    "generation",
    "hosts",
    "osds_per_host",
    "ssd",
    "drive_bytes",
    "public_gbit_per_s",
    "private_gbit_per_s",
    "cores_per_host",
    "pg_num",
    "stripe_unit_bytes",
    "mclock_profile",
)
