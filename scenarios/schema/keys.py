"""What a scenario may say: its keys, their units and their defaults.

A scenario is data: it holds no physics and starts nothing. `stripesim.scenarios.schema.loader` reads one
from TOML
and reports every fault at once; rules that span several keys stand in `stripesim.scenarios.schema.checks`.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import Discriminator, Field, PrivateAttr, Tag

from stripesim.scenarios.schema.tables import (
    CHANGES_MAX,
    ChangeSpec,
    DurabilitySpec,
    FaultsSpec,
    PlanSpec,
    Throttles,
)
from stripesim.scenarios.schema.toml import KeyPath, KeyPlaces
from stripesim.scenarios.schema.types import (
    INT_MAX,
    Bytes,
    Count,
    FailureDomain,
    GbitPerS,
    GenerationName,
    Op,
    OsdId,
    Pattern,
    PositiveFloat,
    PositiveInt,
    SchemeText,
    SizeBytes,
    SpanS,
    Table,
)

#: Keys whose values are paths of files that a run reads, in whatever table they stand.
FILE_KEYS: Final = frozenset({"crush_map", "trace"})
#: Keys whose values are either names of parameter sets that ship or, with this ending, such paths.
_SET_KEYS: Final = frozenset({"ssd"})
SET_SUFFIX: Final = ".toml"
#: Streams that the engine's records can number, with room for the background.
CLIENTS_MAX = 100_000
#: Lengths of lists that other keys multiply or that rules compare.
SCHEMES_MAX: Final = 1000
BLOCK_SIZES_MAX: Final = 1000
WORKLOADS_MAX: Final = 1000
HOST_GROUPS_MAX: Final = 4000

#: The parameter set of scenarios that name none, and what a scenario with it has where it says nothing: AMD
#: EPYC 7742, a PM983 for each OSD (scenarios/studies/nvme/data/clusters.toml). The defaults of the keys are
#: those of Koh et al. (2017).
TODAY_PARAMETERS: Final = "nvme"
TODAY_GENERATION: Final = "reef"
TODAY_CLUSTER: Final = {
    "ssd": "samsung-pm983",
    "cores_per_host": 128,
    "public_gbit_per_s": 100.0,
    "private_gbit_per_s": 100.0,
}


def names_file(key: str, value: object) -> bool:
    """Whether what a key holds is the path of a file that a run reads."""
    return isinstance(value, str) and (
        key in FILE_KEYS or (key in _SET_KEYS and value.endswith(SET_SUFFIX))
    )


#: Ratios of a cluster that sets none: mon_osd_full_ratio and mon_osd_nearfull_ratio.
FULL_RATIO: Final = 0.95
NEARFULL_RATIO: Final = 0.85

#: Share of a drive that may be used [1].
FillRatio = Annotated[float, Field(gt=0, le=1)]

#: A time of a drive, or of one of its bytes [ns].
DeviceNs = Annotated[float, Field(ge=0, le=1e12)]


class DriveSpec(Table):
    """Numbers of a drive of one's own; what is left out is as in the device parameter set `cluster.ssd`."""

    channels: Count | None = None
    """Requests that the drive serves at the same time [count]."""
    raid0_drives: Count | None = None
    """Drives striped together behind one OSD [count]."""
    read_base_ns: DeviceNs | None = None
    """Part of a read's service time that does not depend on its size [ns]."""
    read_ns_per_byte: DeviceNs | None = None
    """Part of a read's service time that grows with its size [ns/byte]."""
    write_base_ns: DeviceNs | None = None
    """The same of a write [ns]."""
    write_ns_per_byte: DeviceNs | None = None
    """The same of a write [ns/byte]."""
    flush_base_ns: DeviceNs | None = None
    """Time of a cache flush; 0 with power-loss protection [ns]."""
    link_ns_per_byte: DeviceNs | None = None
    """Time that a read holds the drive's one way to the host after its channel [ns/byte]; 0: the read's
    slope has it."""
    write_servers_count: Annotated[int, Field(ge=0, le=INT_MAX)] | None = None
    """Writes that the flash takes at a time, apart from reads [count]; 0: directions share the channels."""
    steady_state_write_factor: PositiveFloat | None = None
    """Write service time of a drive in use over that of a fresh one [1]."""
    ftl_write_factor: PositiveFloat | None = None
    """Bytes programmed into flash per byte that the host wrote: wear, not time [1]."""
    block_bytes: SizeBytes | None = None
    """Smallest unit that the host reads or writes [bytes]."""
    read_sigma: Annotated[float, Field(ge=0, le=5)] | None = None
    """Lognormal spread of read times around their mean: standard deviation of the logarithm [1]."""
    write_sigma: Annotated[float, Field(ge=0, le=5)] | None = None
    """The same of write times [1]."""


class ReweightSpec(Table):
    """An OSD that takes only a share of its PGs (``ceph osd reweight``)."""

    osd: OsdId
    """Number of the OSD."""
    weight: FillRatio
    """Share of its PGs that it takes [0 to 1]."""


class UpmapSpec(Table):
    """OSDs of one PG that the balancer has replaced (``ceph osd pg-upmap-items``)."""

    pg: str = Field(pattern=r"^(0|[1-9a-f][0-9a-f]{0,7})$")
    """Number of the PG in its pool, in hexadecimal."""
    pairs: tuple[tuple[OsdId, OsdId], ...] = Field(min_length=1)
    """OSD that CRUSH names, and the one that replaces it, of each."""


class HostGroup(Table):
    """Hosts that are alike, where those of a cluster are not; what is left out is as `[cluster]` has it."""

    count: Count = 1
    """Hosts of this group [count]."""
    osds: Count | None = None
    """OSDs on each of them [count]; cluster.osds_per_host."""
    drive_bytes: SizeBytes | None = None
    """Capacity of one drive of theirs [bytes]; cluster.drive_bytes."""
    cores: Count | None = None
    """CPU cores of each [count]; cluster.cores_per_host."""
    rack: str | None = Field(default=None, min_length=1, max_length=64)
    """Rack that they stand in; all groups name one, or none does."""


def _number_or_groups(value: object) -> str:
    return "=groups" if isinstance(value, list | tuple) else "=number"


#: Which of both is meant is known before either is checked, so that only its own problems are reported.
Hosts = Annotated[
    Annotated[Count, Tag("=number")]
    | Annotated[
        tuple[HostGroup, ...],
        Field(min_length=1, max_length=HOST_GROUPS_MAX),
        Tag("=groups"),
    ],
    Discriminator(_number_or_groups),
]


class ClusterSpec(Table):
    """The machines, how they are wired, and how objects are laid over them.

    Defaults are the cluster of Koh et al. (2017), section III. OSDs are numbered host by host: OSD i is on
    host i // osds_per_host, unless `crush_map` says otherwise. Racks hold hosts / racks hosts each, in order.
    """

    hosts: Hosts = 4
    """Storage hosts [count], or groups of hosts that differ, each a table [[cluster.hosts]]. With crush_map
    groups describe its hosts in their order."""
    osds_per_host: Count = 6
    """OSDs on each host [count]."""
    racks: Count | None = None
    """Racks, each with as many hosts [count]; leave out for one row of hosts."""
    pg_num: Count = 1024
    """Placement groups of the pool [count]."""
    pool_id: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1
    """Number of the pool in Ceph, which decides where CRUSH places its groups."""
    object_bytes: SizeBytes = 4 * 1024**2
    """Size of one RADOS object of the image [bytes]."""
    stripe_unit_bytes: SizeBytes = 4096
    """Bytes of a stripe that one data shard holds [bytes]; a stripe is k times this. Clay codes round it up
    to whole sub-chunks, as Ceph does."""
    failure_domain_replicated: FailureDomain = "host"
    """No two replicas of an object share one of these."""
    failure_domain_erasure: FailureDomain = "host"
    """No two shards of an erasure-coded object share one of these."""
    crush_map: str | None = Field(default=None, min_length=1)
    """Path of a CRUSH map in crushtool's text form, relative to the scenario file. It defines hosts, OSDs and
    racks, which may not be given next to it; nor may failure domains next to crush_rule."""
    crush_rule: str | None = Field(default=None, min_length=1)
    """Rule of crush_map to place by."""
    osd_reweights: tuple[ReweightSpec, ...] = ()
    """Shares of their PGs that OSDs of crush_map take, each a table [[cluster.osd_reweights]]."""
    upmap_items: tuple[UpmapSpec, ...] = ()
    """PGs of the pool with OSDs that the balancer has replaced, each a table [[cluster.upmap_items]]."""
    cores_per_host: Count = 24
    """CPU cores of each storage host; with the set nvme its hardware threads [count]."""
    op_shards: Count | None = None
    """Queues of operations of one OSD (osd_op_num_shards) [count]; leave out to take what the parameter set
    or the generation has."""
    op_threads_per_shard: Count | None = None
    """Threads that serve one of these (osd_op_num_threads_per_shard) [count]."""
    messenger_threads: Count | None = None
    """Threads of one OSD that send and receive messages (ms_async_op_threads) [count]."""
    client_cores: Count = 36
    """CPU cores of the client machine [count]."""
    public_gbit_per_s: GbitPerS = 10.0
    """Rate of the network between client and hosts, per node and direction [10^9 bit/s]."""
    private_gbit_per_s: GbitPerS = 10.0
    """Rate of the network between hosts, per node and direction [10^9 bit/s]."""
    networks: Literal[1, 2] = 2
    """Interfaces of each host [count]: 2, one for clients and one between hosts; 1, one of public_gbit_per_s
    for both."""
    ssd: str = Field(default="intel-730", min_length=1)
    """Name of an OSD's device parameter set, of drives or of disks (hdd-7200); or the path of one of your own
    (./drive.toml, from the scenario file's folder), such as `stripesim trace fit --out` writes."""
    drive: DriveSpec = DriveSpec()
    """Numbers that replace those of the device parameter set, for drives."""
    drive_bytes: SizeBytes | None = None
    """Capacity of one drive [bytes], for usable capacity, wear and repair in reports; leave out to take that
    of the device parameter set."""
    full_ratio: FillRatio | None = None
    """Share of an OSD's capacity at which Ceph refuses writes [0 to 1] (mon_osd_full_ratio); leave out to
    take that of the parameter set."""
    nearfull_ratio: FillRatio | None = None
    """Share at which Ceph warns [0 to 1] (mon_osd_nearfull_ratio); at most full_ratio."""
    backfillfull_ratio: FillRatio = 0.9
    """Share at which no backfill to an OSD begins [0 to 1] (mon_osd_backfillfull_ratio)."""
    stored_bytes: Bytes | None = None
    """Client data that the pool holds when planned changes begin [bytes]; leave out for the images' size."""
    used_bytes: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Bytes that each OSD holds when planned changes begin, of all pools, by number [bytes]; leave out for
    those of the pool alone."""
    drive_rated_write_bytes: SizeBytes | None = None
    """Host writes that the maker rates one drive for over its life [bytes] (TBW), for wear in reports; leave
    out to take that of the device parameter set."""
    drive_rated_days: PositiveFloat = 1825.0
    """Life that drive_rated_write_bytes is rated for [days]."""
    parameters: str = Field(default=TODAY_PARAMETERS, min_length=1)
    """Name of the calibrated parameter set. With nvme, what a scenario leaves out of generation, ssd,
    cores_per_host and network rates is as that set was measured, not as written here."""
    kernel_table: str = ""
    """Name of the table of encode and decode costs; empty takes the one that ships."""
    kernel_backend: str | None = Field(default=None, min_length=1)
    """Kernel of that table, such as jerasure_rs_vand; leave out to take its first."""
    encode_buffers: bool = True
    """Charge with ISA-L's kernels what Ceph's plugin pays for buffers around an encode call."""
    ec_optimizations: bool | None = None
    """Whether erasure-coded pools have the flag allow_ec_optimizations (FastEC); leave out for yes where the
    generation has it."""
    direct_reads: bool = False
    """Whether clients read the shards of erasure-coded objects themselves, not through the primary; with
    generation umbrella."""
    pg_lock_scope: Literal["commit", "coded", "dispatch", "none"] | None = None
    """How long a PG's lock is held; leave out to take what the generation does."""
    op_queue: Literal["fifo", "wpq", "mclock_scheduler"] = "fifo"
    """How an OSD's worker threads choose between clients and recovery: in order of arrival, by Ceph's
    weighted priority queue, or by mClock with the generation's costs and defaults."""
    mclock_profile: (
        Literal["high_client_ops", "balanced", "high_recovery_ops"] | None
    ) = None
    """Profile of mclock_scheduler; leave out to take the generation's default."""

    @property
    def host_groups(self) -> tuple[HostGroup, ...]:
        """Groups of hosts with every key but the rack filled in; one where all hosts are alike."""
        groups = (
            (HostGroup(count=self.hosts),)
            if isinstance(self.hosts, int)
            else self.hosts
        )
        common = {
            "osds": self.osds_per_host,
            "drive_bytes": self.drive_bytes,
            "cores": self.cores_per_host,
        }
        return tuple(
            group.model_copy(
                update={
                    key: value
                    for key, value in common.items()
                    if getattr(group, key) is None
                }
            )
            for group in groups
        )

    def of_hosts(self, key: str) -> list[Any]:
        """What a key of its group says of each host."""
        return [
            getattr(group, key)
            for group in self.host_groups
            for _ in range(group.count)
        ]

    @property
    def host_count(self) -> int:
        """Storage hosts [count]."""
        return sum(group.count for group in self.host_groups)

    @property
    def osd_count(self) -> int:
        """OSDs of all hosts [count]; of a CRUSH map only where groups describe its hosts."""
        return sum(group.count * (group.osds or 0) for group in self.host_groups)

    @property
    def rack_names(self) -> list[str] | None:
        """Rack of each host; None where nothing is said of racks, or they do not divide the hosts."""
        if not isinstance(self.hosts, int):
            return None if self.hosts[0].rack is None else self.of_hosts("rack")
        if self.racks is None or self.hosts % self.racks:
            return None
        each = self.hosts // self.racks
        return [f"rack{host // each}" for host in range(self.hosts)]


class WorkloadSpec(Table):
    """What the client asks for; each combination of op, pattern and block size is one cell."""

    kind: Literal["closed", "open", "trace"] = "closed"
    """closed: queue_depth requests always in flight; open: Poisson arrivals at rate_per_s; trace: the
    requests of a recorded trace."""
    ops: tuple[Op, ...] = Field(default=("read", "write"), min_length=1)
    """Operations, each its own cell; unused with kind trace."""
    read_fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of reads in one mixed cell [0 to 1], instead of ops."""
    patterns: tuple[Pattern, ...] = Field(default=("seq", "rand"), min_length=1)
    """Order of offsets; unused with kind trace."""
    block_sizes_bytes: tuple[SizeBytes, ...] = Field(
        default=(4096,), min_length=1, max_length=BLOCK_SIZES_MAX
    )
    """Request sizes [bytes]; unused with kind trace."""
    clients: Annotated[int, Field(ge=1, le=CLIENTS_MAX)] = 1
    """Clients [count], each with submission threads, a network and an image of its own."""
    clients_per_host: Count = 1
    """Clients on one machine, whose network they share [count]."""
    queue_depth: Count = 256
    """Requests that each client has in flight [count]; unused where requests arrive by the clock."""
    completions: Literal["each", "newest"] = "each"
    """each: the client goes on with each request that completes; newest: it waits for the request that it
    issued last, then goes on with all that have completed. Only where queue_depth requests are in flight."""
    requests: PositiveInt | None = None
    """Requests per cell, of all clients [count]; give this or duration_s."""
    duration_s: SpanS | None = None
    """Simulated time per cell [s]; give this or requests."""
    image: Literal["pristine", "prefilled"] = "prefilled"
    """Whether the image's objects exist before the run."""
    image_bytes: SizeBytes = 100 * 10**9
    """Size of the block image of each client [bytes]."""
    rate_per_s: PositiveFloat | None = None
    """Mean arrival rate of all clients together with kind open [requests/s]."""
    trace: str | None = Field(default=None, min_length=1)
    """Path of the trace with kind trace, relative to the scenario file."""
    trace_format: str | None = Field(default=None, min_length=1)
    """Format of the trace; leave out to recognise it."""
    speed: PositiveFloat = 1.0
    """Factor the recorded times of a trace are divided by [1]; 2 replays twice as fast."""
    replay: Literal["recorded", "closed"] = "recorded"
    """recorded: a trace's requests arrive at their (scaled) times; closed: in the same order, queue_depth at
    a time."""
    timeout_s: SpanS | None = None
    """Time after which the client gives a request up [s] (rados_osd_op_timeout); leave out for never, as Ceph
    does. Only with [faults]."""


class LoadSpec(WorkloadSpec):
    """One of several workloads that run at the same time; a key left out is that of `[workload]`."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")
    """Name of the workload in results."""


class ClientSpec(Table):
    """The machines that issue requests."""

    threads: PositiveInt | None = None
    """Requests whose submission one client works on at the same time [count]; leave out to take the parameter
    set's (one, as for a single load generator on a block-device library)."""
    place: Literal["own", "osd-hosts"] = "own"
    """own: clients have machines of their own; osd-hosts: they run on the storage hosts in turn and share the
    public network of those."""


class RepairSpec(Throttles):
    """OSDs lost for good, rebuilt while the workload runs. Left out values are those of the generation."""

    lost_osds: tuple[OsdId, ...] = Field(min_length=1)
    """Numbers of the OSDs that are lost."""


class DegradedSpec(Table):
    """OSDs that are down for the whole run and are not repaired."""

    missing_osds: tuple[OsdId, ...] = Field(min_length=1)
    """Numbers of the OSDs that are down."""


class Scenario(Table):
    """One question asked of the simulator: a cluster, a workload, and the schemes to compare.

    Build one with `stripesim.scenarios.schema.loader.load_scenario`, which also applies the rules that span
    several keys.
    """

    name: str = Field(default="scenario", pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")
    """Short name, used in titles and file names: letters, digits, space, dot, _ and -."""
    description: str = ""
    """What the scenario is for, in a sentence or two."""
    generation: GenerationName = "kraken"
    """Ceph release whose write, read and repair paths are simulated; up to squid erasure-coded pools are
    classic, tentacle is v20.2.0 with FastEC, umbrella is main."""
    schemes: tuple[SchemeText, ...] = Field(min_length=1, max_length=SCHEMES_MAX)
    """Redundancy schemes to compare: rep:3, rs:6,3 (k, m), lrc:10,6,5 (k, parities in all, locality),
    lrc-ceph:4,2,3 and shec:6,3,2 (as Ceph's plugins), clay:9,3,11 (k, m, helpers d), or none for one bare
    device."""
    seed: Annotated[int, Field(ge=0, le=INT_MAX)] = 1
    """Seed of every random draw; the same seed gives the same run."""
    cluster: ClusterSpec = ClusterSpec()
    """The machines and their layout."""
    workload: WorkloadSpec = WorkloadSpec()
    """What the client asks for."""
    workloads: tuple[LoadSpec, ...] = Field(default=(), max_length=WORKLOADS_MAX)
    """Several workloads at once, each of one op, pattern and block size; keys that one leaves out are those
    of [workload]."""
    client: ClientSpec = ClientSpec()
    """The clients: their threads and machines."""
    repair: RepairSpec | None = None
    """Lost OSDs, rebuilt under the foreground load."""
    degraded: DegradedSpec | None = None
    """OSDs that are down and stay down."""
    faults: FaultsSpec | None = None
    """What fails and comes back during the run, and how the cluster recovers."""
    changes: tuple[ChangeSpec, ...] = Field(default=(), max_length=CHANGES_MAX)
    """Planned changes, each a table [[changes]]: see stripesim rehearse."""
    durability: DurabilitySpec | None = None
    """How drives fail and are rebuilt over years: see stripesim durability."""
    plan: PlanSpec | None = None
    """What may vary and what is required: see stripesim plan."""

    # Where relative paths start. It is private because a result must not
    # depend on where a file happens to lie.
    _base_dir: Path = PrivateAttr(default_factory=Path)
    # Where keys stand, for what is found out only when the scenario is built.
    _places: KeyPlaces = PrivateAttr(default_factory=KeyPlaces)

    @property
    def loads(self) -> tuple[WorkloadSpec, ...]:
        """The workloads that run at the same time, as a rule one."""
        if not self.workloads:
            return (self.workload,)
        return tuple(_with_defaults(load, self.workload) for load in self.workloads)

    @property
    def clients(self) -> int:
        """Clients of all workloads together [count]."""
        return sum(load.clients for load in self.loads)

    @property
    def images_bytes(self) -> int:
        """Size of the images of all clients, each in whole objects [bytes]."""
        return sum(load.clients * self.image_stride_bytes(load) for load in self.loads)

    @property
    def duration_s(self) -> float | None:
        """Bound of a run in simulated time [s]; None: it ends when its requests do."""
        bounds = [load.duration_s for load in self.loads]
        return max((bound for bound in bounds if bound is not None), default=None)

    @property
    def until_ns(self) -> int | None:
        """The same bound [ns]."""
        if self.duration_s is None:
            return None
        return round(self.duration_s * 1e9)

    @property
    def missing_osds(self) -> tuple[int, ...]:
        """OSDs that are missing from the start."""
        if self.degraded is None:
            return ()
        return tuple(self.degraded.missing_osds)

    @property
    def lost_osds(self) -> tuple[int, ...]:
        """OSDs that are lost when the run begins, and repaired."""
        if self.repair is None:
            return ()
        return tuple(self.repair.lost_osds)

    def image_stride_bytes(self, load: WorkloadSpec) -> int:
        """Size of an image of a workload, in whole objects [bytes]."""
        return (
            -(-load.image_bytes // self.cluster.object_bytes)
            * self.cluster.object_bytes
        )

    def where(self, *path: str | int) -> str:
        """Write a key with its file and line, as far as they are known, for messages."""
        return self._places.text(path)

    def is_override(self, *path: str | int) -> bool:
        """Return True if the command line gave a key, or a table that holds it."""
        overrides = self._places.overrides
        return any(path[:length] in overrides for length in range(1, len(path) + 1))

    def problem(self, path: str, got: str, wanted: str) -> ValueError:
        """Make the error of a dotted key: ``file:line: key: got …, wanted …``.

        Digits in the key are positions in a list.
        """
        parts = [int(part) if part.isdigit() else part for part in path.split(".")]
        return ValueError(f"{self.where(*parts)}: got {got}, wanted {wanted}")

    def resolve(self, path: str) -> Path:
        """Turn a path of the scenario into one that can be opened."""
        return self._base_dir / Path(path).expanduser()

    def files(self) -> list[tuple[KeyPath, str]]:
        """List the files that the scenario names, each with its key: a run depends on their content too."""

        def walk(table: Table, above: KeyPath) -> Iterator[tuple[KeyPath, str]]:
            for name in type(table).model_fields:
                value = getattr(table, name)
                for index, item in enumerate(
                    value if isinstance(value, tuple) else (value,)
                ):
                    path = (
                        (*above, name, index)
                        if isinstance(value, tuple)
                        else (*above, name)
                    )
                    if isinstance(item, Table):
                        yield from walk(item, path)
                    elif names_file(name, item):
                        yield path, item

        return list(walk(self, ()))

    def has_file(self, path: str) -> bool:
        """Tell whether a path of the scenario names a file."""
        # Names too long for the file system, or of a user that is not there, are refused by raising.
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            return self.resolve(path).exists() and not self.resolve(path).is_dir()
        return False

    def hash(self) -> str:
        """Name the scenario by its content; paths count as written, optional tables only where given."""
        left_out: dict[str, Any] = {
            key: True for key in ("durability", "plan") if getattr(self, key) is None
        }
        if not self.changes:
            left_out["changes"] = True
        # Keys that scenarios without them do not depend on.
        late_keys = (
            "pool_id",
            "backfillfull_ratio",
            "osd_reweights",
            "upmap_items",
            "stored_bytes",
            "used_bytes",
        )
        given = self.cluster.model_fields_set
        left_out["cluster"] = {key for key in late_keys if key not in given}
        canonical = json.dumps(
            self.model_dump(mode="json", exclude=left_out),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        )
        return hashlib.sha256(canonical.encode()).hexdigest()


class Cell(NamedTuple):
    """One row of the result: a scheme under one kind of request.

    scheme: scheme as the scenario writes it; op: ``read`` or ``write``; ``mixed`` where the scenario gives a
    read fraction; ``trace`` where a trace decides; pattern: ``seq`` or ``rand``; ``trace`` where a trace
    decides, ``mixed`` where several workloads do; block_size_bytes: request size [bytes]; None where a trace
    or several workloads decide.
    """

    scheme: str
    op: Literal["read", "write", "mixed", "trace"]
    pattern: Literal["seq", "rand", "trace", "mixed"]
    block_size_bytes: int | None


def cells(scenario: Scenario) -> list[Cell]:
    """List the cells of a scenario."""
    workload = scenario.workload
    if scenario.workloads:
        return [Cell(scheme, "mixed", "mixed", None) for scheme in scenario.schemes]
    if workload.kind == "trace":
        return [Cell(scheme, "trace", "trace", None) for scheme in scenario.schemes]
    ops: tuple[Literal["read", "write", "mixed"], ...] = (
        workload.ops if workload.read_fraction is None else ("mixed",)
    )
    return [
        Cell(scheme, op, pattern, block_size_bytes)
        for scheme in scenario.schemes
        for op in ops
        for pattern in workload.patterns
        for block_size_bytes in workload.block_sizes_bytes
    ]


#: Ways to say one thing: a workload that gives one does not take the other from `[workload]`.
_ALTERNATIVES = (
    ("requests", "duration_s"),
    ("ops", "read_fraction"),
    ("rate_per_s", "queue_depth"),
)


def _with_defaults(load: LoadSpec, common: WorkloadSpec) -> LoadSpec:
    """Return one of several workloads with what it leaves out as `[workload]` gives it."""
    given = set(load.model_fields_set)
    for pair in _ALTERNATIVES:
        given |= set(pair) if given & set(pair) else set()
    taken = {key: getattr(common, key) for key in common.model_fields_set - given}
    return load.model_copy(update=taken)


def load_cell(scheme: str, load: WorkloadSpec) -> Cell:
    """Return the cell of one of several workloads, which has one op, pattern and block size."""
    op = load.ops[0] if load.read_fraction is None else "mixed"
    return Cell(scheme, op, load.patterns[0], load.block_sizes_bytes[0])


def schema_json() -> str:
    """Write the JSON schema of scenario files, for editors."""
    schema: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema |= _unwrapped(Scenario.model_json_schema())
    schema["title"] = "stripesim scenario"
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _unwrapped(value: Any) -> Any:
    """Join the lines over which the source wraps the description of a key; write choices one way."""
    if isinstance(value, dict):
        return {
            "anyOf" if key == "oneOf" else key: _unwrapped(part)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_unwrapped(part) for part in value]
    return (
        " ".join(value.split())
        if isinstance(value, str) and "\n\n" not in value
        else value
    )
