"""Define the scenario tables `[faults]`, `[[changes]]`, `[durability]` and `[plan]`."""

from collections.abc import Mapping
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
    ScenarioTable,
    SchemeText,
    Share,
    SizeBytes,
    SpanS,
    StripeUnitBytes,
    TimeS,
)

FaultKind = Literal["process", "power", "hang"]
EventKind = Literal["process", "power", "hang", "slow"]
#: Highest factor of a slow drive.
SLOW_FACTOR_MAX: Final = 1000
Unit = Literal["osd", "host"]

_KIND = (
    "process: the daemon dies and peers see refused connections immediately. power: the OSD is silent until "
    "heartbeats run out. hang: as power, but the daemon then resumes where it stopped."
)
_EVENT_KIND = (
    f"{_KIND} slow: the OSD stays up, but all service times of its drive are factor times as long. Ceph "
    "never marks it down or out for that; [[changes]] can."
)


class EventSpec(ScenarioTable):
    """A failure: OSDs, hosts, racks or sites that stop, or whose drives become slow, at a given time."""

    osds: tuple[OsdId, ...] = ()
    """Numbers of the OSDs that stop or have slow drives."""
    hosts: tuple[OsdId, ...] = ()
    """Numbers of the hosts that stop, with all their OSDs, cores and networks. With slow, only their drives
    are slow."""
    racks: tuple[OsdId, ...] = ()
    """Numbers of the racks whose hosts fail."""
    sites: tuple[OsdId, ...] = ()
    """Numbers of the sites whose hosts fail."""
    at_s: TimeS
    """Simulated time of the failure [s]."""
    return_s: TimeS | None = None
    """Simulated time of the return, with slow of the return to normal speed [s]. Default: no return."""
    kind: EventKind = Field(default="process", description=_EVENT_KIND)
    factor: Annotated[float, Field(ge=1, le=SLOW_FACTOR_MAX)] | None = None
    """Factor on all service times of a slow drive, to three decimals [1]: reads, writes, syncs of the log
    (unless it has a separate drive) and transfers over its link. Required with slow."""
    data: Literal["kept", "lost"] = "kept"
    """Data of returning OSDs. kept: still there. lost: they return with empty drives."""


class CorruptionSpec(ScenarioTable):
    """Silent corruption of shards, which the next scrub of their PG finds."""

    osd: OsdId
    """Number of the OSD."""
    at_s: TimeS
    """Simulated time of the corruption [s]."""
    shards: PositiveInt = 1
    """Corrupted shards, chosen at random [count]."""


class LifetimeSpec(ScenarioTable):
    """A distribution of times. Its name decides which parameters it takes."""

    distribution: Literal["exponential", "weibull", "lognormal"]
    """Name of the distribution."""
    scale_s: PositiveFloat | None = None
    """Scale of an exponential (its mean) or Weibull distribution [s]."""
    shape: PositiveFloat | None = None
    """Shape of a Weibull distribution [1]."""
    median_s: PositiveFloat | None = None
    """Median of a lognormal distribution [s]."""
    sigma: PositiveFloat | None = None
    """Sigma of a lognormal distribution [1]."""


class DrawnSpec(ScenarioTable):
    """Random failures of each OSD or host, which alternate between up and down."""

    unit: Unit = "osd"
    """Unit that fails independently."""
    lifetime: LifetimeSpec | None = None
    """Time to failure."""
    downtime: LifetimeSpec | None = None
    """Time to return. Default: no return if lifetime is given."""
    trace: str | None = Field(default=None, min_length=1)
    """Failure trace to fit both distributions to, relative to the scenario file. The fit with the lowest
    AIC is used."""
    trace_format: str | None = Field(default=None, min_length=1)
    """Format of the trace. Default: detected."""
    speed: PositiveFloat = 1.0
    """Factor by which failures are accelerated [1]: 1000 compresses months to hours."""
    kind: FaultKind = Field(default="power", description=_KIND)


class ReplaySpec(ScenarioTable):
    """Failures replayed from a trace. Its units map to OSDs or hosts in order of their first failure."""

    trace: str = Field(min_length=1)
    """Path of the trace, relative to the scenario file."""
    trace_format: str | None = Field(default=None, min_length=1)
    """Format of the trace. Default: detected."""
    unit: Unit = "host"
    """osd: each component of the trace maps to an OSD. host: each node maps to a host, or each component
    where the trace names no nodes."""
    from_s: TimeS = 0.0
    """Time in the trace at which the run starts [s]."""
    speed: PositiveFloat = 1.0
    """Factor by which the trace is accelerated [1]."""
    kind: FaultKind = Field(default="power", description=_KIND)


class Throttles(ScenarioTable):
    """Limits on recovery. Missing keys come from the Ceph generation."""

    max_backfills: Count | None = None
    """PGs that an OSD recovers in parallel [count] (osd_max_backfills)."""
    recovery_max_active: Count | None = None
    """Objects that an OSD recovers in parallel [count] (osd_recovery_max_active)."""
    recovery_chunk_bytes: SizeBytes | None = None
    """Maximum size of one recovery operation [bytes] (osd_recovery_max_chunk)."""
    recovery_sleep_s: TimeS | None = None
    """Pause between recovery operations on an OSD [s] (osd_recovery_sleep)."""


class FaultsSpec(Throttles):
    """Failures during the run. Missing keys come from the Ceph generation."""

    events: tuple[EventSpec, ...] = ()
    """Failures at given times, each a table [[faults.events]]."""
    corruptions: tuple[CorruptionSpec, ...] = ()
    """Silent corruption, each a table [[faults.corruptions]]."""
    drawn: DrawnSpec | None = None
    """Random failures."""
    replay: ReplaySpec | None = None
    """Failures replayed from a trace."""
    heartbeat_interval_s: IntervalS | None = None
    """Interval of pings between two OSDs [s] (osd_heartbeat_interval)."""
    heartbeat_grace_s: IntervalS | None = None
    """Silence after which peers report an OSD [s] (osd_heartbeat_grace)."""
    min_down_reporters: Count | None = None
    """Hosts that must report an OSD before it is marked down [count] (mon_osd_min_down_reporters)."""
    down_out_interval_s: TimeS | None = None
    """Time from down to out [s] (mon_osd_down_out_interval)."""
    min_in_fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    """Minimum fraction of OSDs that stay in [0 to 1] (mon_osd_min_in_ratio)."""
    scrub_interval_s: IntervalS | None = None
    """Interval at which every PG is deep-scrubbed [s] (osd_deep_scrub_interval). With
    workload.duration_s, scrubs also read the data that they compare."""
    object_writes: Count | None = None
    """Past writes to each object of a prefilled image [count]. If PG logs hold all of them, returning
    OSDs recover from the log. Default: more than logs hold, so that they backfill."""
    series_s: SpanS = 1.0
    """Bin width of time series [s]. A run without duration_s widens the bins if it would need more than a
    million."""

    def numbered_events(self, *, slow: bool) -> list[tuple[int, EventSpec]]:
        """Return the events that slow drives down, or those that stop OSDs, with their numbers."""
        return [
            (number, event)
            for number, event in enumerate(self.events)
            if (event.kind == "slow") == slow
        ]


# Planned changes of a cluster, for `stripesim rehearse`.

ChangeKind = Literal["out", "in", "weight", "add", "remove", "scheme", "restart"]

_OF_COMMANDS: Final = {"command_s", "norebalance"}
#: Keys that each kind of change needs, and those that it may have.
CHANGE_KEYS: Final[dict[str, tuple[set[str], set[str]]]] = {
    "out": ({"osds"}, _OF_COMMANDS),
    "in": ({"osds"}, _OF_COMMANDS),
    "weight": ({"osds", "weight"}, _OF_COMMANDS),
    "add": ({"hosts"}, {"osds_per_host", "weight", *_OF_COMMANDS}),
    "remove": ({"hosts"}, _OF_COMMANDS),
    "scheme": ({"scheme"}, {"crush_rule", "copy_parallel"}),
    "restart": (set(), {"hosts", "downtime_s", "noout"}),
}
#: Changes of one scenario at most.
CHANGES_MAX: Final = 1000


def _number_or_list(value: object) -> str:
    return "=list" if isinstance(value, list | tuple) else "=number"


def _number_or_name(value: object) -> str:
    return "=name" if isinstance(value, str) else "=number"


HostToDrain = Annotated[
    Annotated[OsdId, Tag("=number")]
    | Annotated[str, Field(min_length=1, max_length=255), Tag("=name")],
    Discriminator(_number_or_name),
]
HostsToChange = Annotated[
    Annotated[Count, Tag("=number")]
    | Annotated[tuple[HostToDrain, ...], Field(min_length=1), Tag("=list")],
    Discriminator(_number_or_list),
]


class ChangeSpec(ScenarioTable):
    """One planned change. Changes run one after another, each once the cluster is clean."""

    kind: ChangeKind
    """out: move data off OSDs that stay up. in: bring them back. weight: set the CRUSH weight of OSDs.
    add: add hosts. remove: drain hosts. scheme: copy the pool into a new one and delete it. restart: restart
    hosts one after another, each once the cluster is clean."""
    osds: tuple[OsdId, ...] | None = Field(default=None, min_length=1)
    """OSD numbers, for out, in and weight."""
    weight: Annotated[float, Field(ge=0, le=10_000)] | None = None
    """CRUSH weight of each OSD [TiB], for weight and add. Without a CRUSH map and a capacity of the drives,
    1 is the weight of each. Default for add: the weight of existing OSDs."""
    hosts: HostsToChange | None = None
    """For add, the number of new hosts [count]. For remove and restart, the list of hosts, by number from 0
    or by their name in the CRUSH map. Default for restart: all hosts."""
    osds_per_host: Count | None = None
    """OSDs of each new host [count], for add. Default: as many as the last host has."""
    scheme: SchemeText | None = None
    """Scheme of the new pool, for scheme."""
    crush_rule: str | None = Field(default=None, min_length=1)
    """Rule of crush_map for the new pool, for scheme. Default: the rule of the old pool."""
    copy_parallel: Count | None = None
    """Objects that the copying client keeps in flight [count], for scheme. Default: 10, as rbd migration and
    rbd deep copy do (rbd_concurrent_management_ops)."""
    downtime_s: PositiveFloat | None = None
    """Time that each host is down [s], for restart. Default: 300 s."""
    noout: bool = True
    """For restart, True if no OSD is marked out meanwhile (ceph osd set noout)."""
    at_s: TimeS | None = None
    """Simulated time of the change [s], not before that of an earlier one, and not with restart. Default:
    once the cluster is clean after the previous changes."""
    command_s: TimeS | None = None
    """Time until the operator has given a command [s], for out, in, weight, add and remove. Commands follow
    one another: one in all for out and in, one for each OSD otherwise, two more with norebalance. They are a
    part of the duration. Default: 0 s, all at once."""
    norebalance: bool | None = None
    """True if the operator sets the flag norebalance before the commands and ends it after them: backfills of
    data that only moves wait until then. Default: true for add, false for out, in, weight and remove."""


# Failure and repair of drives, for `stripesim durability`.


class AgeingSpec(ScenarioTable):
    """Lifetimes of drives. The name of the distribution decides which parameters it takes."""

    distribution: Literal["exponential", "weibull", "piecewise", "trace"]
    """Name of the distribution. trace: fitted to a failure trace."""
    scale_s: PositiveFloat | None = None
    """Scale of an exponential (its mean) or Weibull distribution [s]."""
    shape: Annotated[float, Field(ge=0.2, le=10)] | None = None
    """Shape of a Weibull distribution [1]."""
    ages_s: tuple[TimeS, ...] = ()
    """piecewise: ages at which the failure rate changes [s]. The first is 0."""
    afrs: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = ()
    """piecewise: annual failure rate from each of these ages [0 to 1]."""
    trace: str | None = Field(default=None, min_length=1)
    """Failure trace to fit, relative to the scenario file."""
    trace_format: str | None = Field(default=None, min_length=1)
    """Format of the trace. Default: detected."""
    pieces: Annotated[int, Field(ge=1, le=100)] | None = None
    """trace: pieces of a piecewise-constant hazard [count]. Default: the better fit of exponential and
    Weibull."""
    age_s: TimeS = 0.0
    """Age of all drives at the start [s]."""


class BurstSpec(ScenarioTable):
    """Correlated failures, such as a power cut, the loss of a rack or a site, or a failed upgrade."""

    name: str = Field(min_length=1)
    """Name of the burst in results."""
    unit: Literal["drive", "host", "rack", "site"] = "host"
    """Unit that a burst hits, chosen at random."""
    units: PositiveInt = 1
    """Units that one burst hits [count]."""
    per_year: PositiveFloat
    """Mean number of bursts per year [1/year]."""
    lost_fraction: Share = 1.0
    """Probability that a drive of a hit unit loses its data [0 to 1]."""
    down_s: TimeS = 0.0
    """Time that hit units are unavailable [s]."""


class DurabilitySpec(ScenarioTable):
    """Failure and repair of drives, for `stripesim durability`."""

    placement: Literal["crush", "clustered", "declustered"] = "crush"
    """crush: the placement groups of [cluster]. clustered: separate pools with one drive for each shard
    of the code. declustered: stripes spread over arbitrary drives."""
    drives: PositiveInt | None = None
    """Total number of drives [count]. Not with crush."""
    drive_bytes: Bytes | None = None
    """Bytes stored on each drive, which its rebuild restores [bytes]. Default with crush: the mean of
    cluster.used_bytes, or the drive's part of cluster.stored_bytes, or else the capacity of the drive."""
    afr: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Annual failure rate: fraction of drives that fail within a year [0 to 1]."""
    lifetime: AgeingSpec | None = None
    """Distribution of lifetimes, instead of afr."""
    repair: Literal["serial", "parallel", "shared", "simulated"] = "parallel"
    """serial: a pool rebuilds one drive at a time. parallel: each failed drive is rebuilt at its own
    rate. shared: failed drives share one rate. simulated: parallel, without repair_bytes_per_s. No effect
    with declustered, where all survivors share each rebuild."""
    repair_bytes_per_s: Bytes | None = None
    """Rebuild rate of one failed drive under a code that reads k shards to rebuild one [bytes/s]. Other
    codes are rebuilt faster or slower, by the bytes that they read and write. With declustered: bandwidth
    that each surviving drive contributes, reads and writes together. Default with crush: the rate that the
    recovery model simulates for the idle cluster."""
    repair_time: Literal["exponential", "fixed"] | None = None
    """Distribution of rebuild times. Not with declustered. Default: exponential with clustered, as in the
    Markov chain, otherwise fixed."""
    prioritised: bool = True
    """Rebuild the groups that are closest to data loss first."""
    groups_at_once: PositiveInt | None = None
    """crush: placement groups of a failed drive that are rebuilt at the same time, each at an equal part of
    the drive's rate [count]. Default: as many as max_backfills of [repair] or [faults] lets primaries and
    targets rebuild, on average."""
    rebuilt_is_safe: bool = False
    """declustered: a failure exposes only data that is not rebuilt yet. Markov calculators assume the
    whole share (false)."""
    detection_s: TimeS | None = None
    """Time from failure to start of repair [s]. Default: the generation's heartbeat grace plus down-out
    interval, after which Ceph marks the OSD out."""
    horizon_s: PositiveFloat = 31_557_600.0
    """Period over which the probability of data loss is computed [s]. Default: one year."""
    sector_error_rate: Annotated[float, Field(ge=0)] = 0.0
    """Latent sector errors per drive [1/year]."""
    scrub_interval_s: PositiveFloat | None = None
    """Interval of the scrubs that find latent errors [s]. Default: no scrubs within the horizon."""
    spare_drives: Annotated[int, Field(ge=0)] | None = None
    """Spare space for rebuilds [drives]. Not with declustered. Default: unlimited. With 0, no drive is ever
    rebuilt."""
    replacement_s: TimeS = 0.0
    """Time to replace a used spare of spare_drives [s]."""
    min_size: PositiveInt | None = None
    """Shards needed to serve clients [count]. Default: Ceph's."""
    stripes: Bytes | None = None
    """declustered: total number of stripes [count]. Default: enough for every combination of drives."""
    bursts: tuple[BurstSpec, ...] = ()
    """Correlated failures, each a table [[durability.bursts]]."""


# Keys to vary, requirements and prices, for `stripesim plan`.

Price = Annotated[float, Field(ge=0, le=1e15)]


class DrivePricesSpec(ScenarioTable):
    """Price and power of one kind of drive. Missing keys come from `[plan.prices]`."""

    drive: Price | None = None
    """Price of a drive, independent of its capacity [currency]."""
    drive_per_tb: Price | None = None
    """Price of a drive per 10¹² bytes [currency]."""
    drive_watts: Price | None = None
    """Power of a drive [W]."""


class PricesSpec(ScenarioTable):
    """Prices and power of a cluster's parts, in any currency. Missing parts cost nothing."""

    host: Price = 0.0
    """Price of a host with cluster.cores_per_host cores, without drives and network [currency]."""
    core: Price | None = None
    """Price of a further core of a host, bought or kept, in the unit of cores_per_host [currency]. Default:
    bought hosts have as many as asked for, and kept ones that have fewer are replaced."""
    drive: Price = 0.0
    """Price of a drive, independent of its capacity [currency]."""
    drive_per_tb: Price = 0.0
    """Price of a drive per 10¹² bytes [currency]."""
    drives: dict[str, DrivePricesSpec] = Field(default_factory=dict)
    """Prices by kind of drive, each a table [plan.prices.drives.NAME], with NAME from plan.drive or
    cluster.drive. Required for every kind if plan.drive compares several."""
    network_per_gbit: Price = 0.0
    """Price of a host's public and private network per Gbit/s [currency]."""
    gateway: Price = 0.0
    """Price of a gateway [currency]: its machine and network where cluster.gateways.place is own, or what a
    further one on a storage host costs."""
    gateway_core: Price | None = None
    """Price of a core of a gateway's machine beyond those of cluster.gateways.cores [currency]. Default: more
    cores need a new machine."""
    host_watts: Price = 0.0
    """Power of a host without drives [W]."""
    gateway_watts: Price = 0.0
    """Power of a gateway's own machine [W]."""
    drive_watts: Price = 0.0
    """Power of a drive [W]."""
    kwh: Price = 0.0
    """Price of a kilowatt-hour, cooling included [currency]."""
    years: Price = 0.0
    """Period over which power is paid [years]."""

    @property
    def has_power(self) -> bool:
        """Return True if any part takes power."""
        drives_watts = [drive.drive_watts for drive in self.drives.values()]
        return any(
            (self.host_watts, self.gateway_watts, self.drive_watts, *drives_watts)
        )

    @property
    def has_cost(self) -> bool:
        """Return True if any part or its power has a price."""
        drives = self.drives.values()
        parts = (
            self.host,
            self.core,
            self.drive,
            self.drive_per_tb,
            self.network_per_gbit,
            self.gateway,
            self.gateway_core,
            *(drive.drive for drive in drives),
            *(drive.drive_per_tb for drive in drives),
        )
        return any(parts) or (self.has_power and bool(self.kwh and self.years))


class PlanSpec(ScenarioTable):
    """Keys to vary and requirements to meet. Keys have the names of those in the scenario."""

    generation: tuple[GenerationName, ...] = ()
    """Ceph releases to try."""
    hosts: tuple[Count, ...] = ()
    """Values of cluster.hosts to try."""
    osds_per_host: tuple[Count, ...] = ()
    """Values of cluster.osds_per_host to try."""
    drive: tuple[str, ...] = ()
    """Values of cluster.drive to try."""
    drive_bytes: tuple[SizeBytes, ...] = ()
    """Values of cluster.drive_bytes to try."""
    public_gbit_per_s: tuple[GbitPerS, ...] = ()
    """Values of cluster.public_gbit_per_s to try."""
    private_gbit_per_s: tuple[GbitPerS, ...] = ()
    """Values of cluster.private_gbit_per_s to try."""
    cores_per_host: tuple[Count, ...] = ()
    """Values of cluster.cores_per_host to try."""
    gateways: tuple[Count, ...] = ()
    """Values of cluster.gateways.count to try, with workload.kind s3."""
    gateway_cores: tuple[Count, ...] = ()
    """Values of cluster.gateways.cores to try, with workload.kind s3."""
    pg_num: tuple[Count, ...] = ()
    """Values of cluster.pg_num to try."""
    stripe_unit_bytes: tuple[StripeUnitBytes, ...] = ()
    """Values of cluster.stripe_unit_bytes to try."""
    mclock_profile: tuple[
        Literal["high_client_ops", "balanced", "high_recovery_ops"], ...
    ] = ()
    """Values of cluster.mclock_profile to try, with op_queue mclock_scheduler."""
    sites: tuple[Count, ...] = ()
    """Values of cluster.sites to try, all with the same cluster.site_rtt_ms."""
    stretch: tuple[bool, ...] = ()
    """Values of cluster.stretch to try: with and without stretch mode, which only rep:4 at two sites has."""
    site_loss: Literal["serves", "keeps"] | None = None
    """Requirement without any one site. serves: every placement group keeps min_size shards. keeps: k, so
    that no data is lost."""
    usable_bytes: Bytes | None = None
    """Minimum client data that fits with the fullest OSD at the nearfull ratio, without the largest failure
    domain [bytes]."""
    spare_domains: Annotated[int, Field(ge=0, le=1000)] = 1
    """Minimum failure domains beyond one for each shard [count]. After a loss, a pool heals only into a spare
    one. 0 allows none, with a warning."""
    rate_per_s: PositiveFloat | None = None
    """Minimum request rate [requests/s], simulated as Poisson arrivals at this rate."""
    p99_ms: PositiveFloat | None = None
    """Maximum 99th percentile of latency [ms]."""
    p99_recovery_ms: PositiveFloat | None = None
    """Maximum 99th percentile of latency during the rebuild of a lost OSD [ms]."""
    rebuild_s: PositiveFloat | None = None
    """Maximum time to rebuild a lost OSD that holds as much as it safely can [s]."""
    nines: PositiveFloat | None = None
    """Minimum of −log10 of the probability of any data loss within durability.horizon_s."""
    cost_max: PositiveFloat | None = None
    """Maximum cost, by [plan.prices] [currency]."""
    watts_max: PositiveFloat | None = None
    """Maximum power, by [plan.prices] [W]."""
    days_until_full: PositiveFloat | None = None
    """Minimum time until the safe capacity is used up [days]."""
    growth_bytes_per_day: Bytes | None = None
    """Growth of client data [bytes/day], for days_until_full."""
    stored_bytes: Bytes | None = None
    """Client data at the start [bytes], which has to fit as usable_bytes do. Default: none."""
    owned_hosts: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """Hosts that exist already, as [cluster] describes them [count]. They cost nothing, but changes to
    them (drives, networks) and their power do."""
    owned_gateways: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """Gateways that exist already, as [cluster.gateways] describes them [count]."""
    replications: Annotated[int, Field(ge=2, le=50)] = 3
    """Runs of each candidate, with different seeds, for confidence intervals [count]."""
    interval_percent: Annotated[float, Field(gt=0, le=100)] | None = None
    """Largest half of the 95 % intervals of rate and latency, of their means [%]. Each candidate runs under
    further seeds until its intervals are that narrow: at least 5 and at most 50. Default: `replications`."""
    simulated_max: Annotated[int, Field(ge=1, le=500)] = 12
    """Maximum number of candidates to simulate, cheapest first [count]."""
    wall_s_max: PositiveFloat = 600.0
    """Wall-clock time after which no further candidate is simulated [s]."""
    prices: PricesSpec | None = None
    """Prices and power of the parts."""

    @property
    def held_bytes(self) -> float | None:
        """Client data that has to fit [bytes]: what is required, and what is there at the start."""
        stated = [
            size for size in (self.usable_bytes, self.stored_bytes) if size is not None
        ]
        return max(stated, default=None)

    @property
    def varies_domains(self) -> bool:
        """Return True if candidates have different failure domains from `[cluster]`."""
        return any(getattr(self, key) for key in VARIED_DOMAINS)


#: Keys that a plan may vary and that change the failure domains.
VARIED_DOMAINS: Final = ("hosts", "osds_per_host", "sites")
#: Keys that a plan may vary: the scenario's `generation`, keys of `[cluster]`, and those of `GATEWAY_KEYS`.
VARIED: Final = (
    "generation",
    "hosts",
    "osds_per_host",
    "drive",
    "drive_bytes",
    "public_gbit_per_s",
    "private_gbit_per_s",
    "cores_per_host",
    "gateways",
    "gateway_cores",
    "pg_num",
    "stripe_unit_bytes",
    "mclock_profile",
    "sites",
    "stretch",
)
#: Key that a plan varies → key of `[cluster.gateways]`.
GATEWAY_KEYS: Final[Mapping[str, str]] = {"gateways": "count", "gateway_cores": "cores"}
