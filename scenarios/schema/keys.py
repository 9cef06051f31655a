"""Define the keys of a scenario, with their units and defaults.

`stripesim.scenarios.schema.scenario` makes a scenario of them, and `stripesim.scenarios.schema.loader` reads
them from TOML and reports all problems at once. `stripesim.scenarios.schema.checks` holds the rules that span
several keys.
"""

import contextlib
from collections.abc import Iterator, Mapping
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import Discriminator, Field, PrivateAttr, Tag, model_validator

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
    S3_OPS,
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
    ReadPolicy,
    RttMs,
    ScenarioTable,
    SchemeText,
    SizeBytes,
    SpanS,
    StripeUnitBytes,
)
from stripesim.scenarios.schema.units import format_size

#: Keys, in any table, whose values are paths of files that a run reads.
FILE_KEYS: Final = frozenset({"codes", "crush_map", "trace"})
#: Keys whose values are either names of shipped parameter sets or paths with this suffix.
_SET_KEYS: Final = frozenset({"drive", "parameters", "ssd"})
SET_SUFFIX: Final = ".toml"

#: Size of the objects of images by default [B].
OBJECT_BYTES: Final = 4 * 1024**2
#: Number of streams that the engine's records can hold, less some for background work.
CLIENTS_MAX = 100_000
#: Limits for lists that other keys multiply or that rules compare pairwise.
SCHEMES_MAX: Final = 1000
BLOCK_SIZES_MAX: Final = 1000
WORKLOADS_MAX: Final = 1000
HOST_GROUPS_MAX: Final = 4000
CODE_FILES_MAX: Final = 100
OBJECT_SIZES_MAX: Final = 100
SITES_MAX: Final = 16
#: Index shards of all buckets, each of which has locks of its own.
INDEX_SHARDS_MAX: Final = 100_000
#: Data of a RADOS object of an object in a bucket at most (rgw_obj_stripe_size), and an allocation unit [B].
RGW_CHUNK_BYTES: Final = 4 << 20
ALLOCATION_BYTES: Final = 4096
#: Operations of an S3 load that names none.
S3_DEFAULT_OPS: Final = ("put", "get")


def names_file(key: str, value: object) -> bool:
    """Return True if a key's value is the path of a file that a run reads."""
    return isinstance(value, str) and (
        key in FILE_KEYS or (key in _SET_KEYS and value.endswith(SET_SUFFIX))
    )


#: Ceph's defaults of the fill ratios (mon_osd_nearfull_ratio and so on), each at least the one before it.
FILL_RATIOS: Final[Mapping[str, float]] = {
    "nearfull_ratio": 0.85,
    "backfillfull_ratio": 0.9,
    "full_ratio": 0.95,
}

#: Fraction of a drive's capacity [0 to 1].
FillRatio = Annotated[float, Field(gt=0, le=1)]

#: Service time of a drive, total or per byte [ns].
DeviceNs = Annotated[float, Field(ge=0, le=1e12)]


class DriveSpec(ScenarioTable):
    """Custom values for a drive. Missing keys come from the parameter set that `cluster.drive` names."""

    channels: Count | None = None
    """Requests that the drive serves in parallel [count]."""
    raid0_drives: Count | None = None
    """Drives striped together behind one OSD [count]."""
    read_base_ns: DeviceNs | None = None
    """Fixed part of a read's service time [ns]."""
    read_ns_per_byte: DeviceNs | None = None
    """Increase of a read's service time with its size [ns/byte]."""
    write_base_ns: DeviceNs | None = None
    """Fixed part of a write's service time [ns]."""
    write_ns_per_byte: DeviceNs | None = None
    """Increase of a write's service time with its size [ns/byte]."""
    flush_base_ns: DeviceNs | None = None
    """Duration of a cache flush [ns]. 0 for drives with power-loss protection."""
    link_ns_per_byte: DeviceNs | None = None
    """Time that a read occupies the drive's single link to the host, after its channel [ns/byte]. 0 if
    read_ns_per_byte includes the link."""
    write_servers_count: Annotated[int, Field(ge=0, le=INT_MAX)] | None = None
    """Writes that the flash serves in parallel, separately from reads [count]. 0 if reads and writes
    share the channels."""
    steady_state_write_factor: PositiveFloat | None = None
    """Write service time of a used drive divided by that of a fresh one [1]."""
    ftl_write_factor: PositiveFloat | None = None
    """Bytes programmed into flash per byte written by the host [1]. Affects wear, not time."""
    block_bytes: SizeBytes | None = None
    """Smallest unit of I/O [bytes]."""
    read_sigma: Annotated[float, Field(ge=0, le=5)] | None = None
    """Lognormal spread of read times: standard deviation of the logarithm [1]."""
    write_sigma: Annotated[float, Field(ge=0, le=5)] | None = None
    """Lognormal spread of write times: standard deviation of the logarithm [1]."""


class ReweightSpec(ScenarioTable):
    """An OSD that takes only a share of its PGs (``ceph osd reweight``), or none because it is out."""

    osd: OsdId
    """Number of the OSD."""
    weight: Annotated[float, Field(ge=0, le=1)]
    """Share of its PGs that it takes [0 to 1]. An OSD of weight 0 is out: CRUSH draws it and rejects it."""


class PrimaryAffinitySpec(ScenarioTable):
    """An OSD that is the primary of fewer PGs (``ceph osd primary-affinity``)."""

    osd: OsdId
    """Number of the OSD."""
    affinity: Annotated[float, Field(ge=0, le=1)]
    """Share of the PGs that list it first whose primary it is [0 to 1]. With 0 it is one where no other OSD
    can be."""


class UpmapSpec(ScenarioTable):
    """OSDs of one PG that the balancer has replaced (``ceph osd pg-upmap-items``)."""

    pg: str = Field(pattern=r"^(0|[1-9a-f][0-9a-f]{0,7})$")
    """Number of the PG in its pool, in hexadecimal."""
    pairs: tuple[tuple[OsdId, OsdId], ...] = Field(min_length=1)
    """OSD that CRUSH names, and the one that replaces it, of each."""


class HostGroup(ScenarioTable):
    """A group of identical hosts, for clusters whose hosts differ. Missing keys come from `[cluster]`."""

    count: Count = 1
    """Hosts in this group [count]."""
    osds: Count | None = None
    """OSDs on each host of the group [count]. Default: cluster.osds_per_host."""
    drive_bytes: SizeBytes | None = None
    """Capacity of one drive [bytes]. Default: cluster.drive_bytes."""
    cores: Count | None = None
    """CPU cores of each host [count]. Default: cluster.cores_per_host."""
    rack: str | None = Field(default=None, min_length=1, max_length=64)
    """Rack of these hosts. Either all groups name a rack or none does."""
    site: str | None = Field(default=None, min_length=1, max_length=64)
    """Site of these hosts. Either all groups name a site or none does."""


def _number_or_groups(value: object) -> str:
    return "=groups" if isinstance(value, list | tuple) else "=number"


#: The type of the value selects the branch before validation, so that errors are about that branch only.
Hosts = Annotated[
    Annotated[Count, Tag("=number")]
    | Annotated[
        tuple[HostGroup, ...],
        Field(min_length=1, max_length=HOST_GROUPS_MAX),
        Tag("=groups"),
    ],
    Discriminator(_number_or_groups),
]


def _number_or_rows(value: object) -> str:
    return "=rows" if isinstance(value, list | tuple) else "=number"


SiteRtts = Annotated[
    Annotated[RttMs, Tag("=number")]
    | Annotated[
        tuple[Annotated[tuple[RttMs, ...], Field(max_length=SITES_MAX)], ...],
        Field(min_length=1, max_length=SITES_MAX),
        Tag("=rows"),
    ],
    Discriminator(_number_or_rows),
]


class GatewaysSpec(ScenarioTable):
    """RADOS gateways, for workload.kind s3."""

    count: Count | None = None
    """Gateways [count]. Default: one for each storage host."""
    place: Literal["osd-hosts", "own"] = "osd-hosts"
    """osd-hosts: gateways run on the storage hosts, assigned round-robin, and share their processors and
    public network. own: each has a machine of its own."""
    cores: Count | None = None
    """Cores of a gateway's machine, or those that a gateway on a storage host uses at most [count]. Default:
    cluster.cores_per_host."""
    threads: Count = 512
    """Threads of a gateway [count] (rgw_thread_pool_size). A request that waits for OSDs holds none."""
    index_scheme: SchemeText = "rep:3"
    """Replication of the pool that holds the bucket indexes."""


class ClusterSpec(ScenarioTable):
    """The machines, their network, and the placement of objects on them.

    Defaults of drive, cores and networks are those of the cluster that the default parameter set was measured
    on (AMD EPYC 7742, one PM983 for each OSD), whichever set is named. OSDs are numbered host
    by host: OSD i is on host i // osds_per_host, unless `crush_map` says otherwise. Racks hold hosts / racks
    hosts each, in order.
    """

    hosts: Hosts = 4
    """Storage hosts [count], or a table [[cluster.hosts]] for each group of identical hosts. With
    crush_map, the groups describe the map's hosts in order."""
    osds_per_host: Count = 6
    """OSDs on each host [count]."""
    racks: Count | None = None
    """Racks of equal size [count]. Default: no racks."""
    sites: Annotated[int, Field(ge=1, le=SITES_MAX)] | None = None
    """Sites (data centres, availability zones) of equal size [count], which hold hosts / sites hosts each, in
    order, and whole racks. Default: one. With crush_map, sites are its buckets of type datacenter or zone."""
    site_rtt_ms: SiteRtts | None = None
    """Round-trip time between hosts of different sites, beyond that within a site [ms]: one number for all
    pairs, or for each site a list of its times to all sites. Required with sites."""
    stretch: bool = False
    """Ceph's stretch mode: two sites, and a tiebreaker monitor elsewhere. Placement groups have two copies at
    each site (rep:4, failure domain site) and serve clients with min_size 2 and a member at each site, or
    with one member while no OSD of the other site is up."""
    pg_num: Count = 1024
    """Placement groups of the pool [count]."""
    pool_id: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1
    """Number of the pool in Ceph. It decides where CRUSH places the pool's groups."""
    upmap_max_deviation: Count | None = None
    """Placement groups above its share that Ceph's balancer leaves on an OSD (mode upmap) [count]; Ceph's
    default is 5. Default: no balancer, placement by CRUSH alone. Primaries are not balanced. The balancer
    does not run again when OSDs fail or change."""
    object_bytes: SizeBytes = OBJECT_BYTES
    """Size of one RADOS object of the image [bytes]."""
    stripe_unit_bytes: StripeUnitBytes = 4096
    """Part of a stripe on each data shard [bytes], a multiple of 32 B. A stripe is k times this size.
    Clay codes round it up to whole sub-chunks, as Ceph does unless a profile states it."""
    failure_domain_replicated: FailureDomain = "host"
    """Unit that holds at most one replica of an object."""
    failure_domain_erasure: FailureDomain = "host"
    """Unit that holds at most one shard of an erasure-coded object."""
    crush_map: str | None = Field(default=None, min_length=1)
    """Path of a CRUSH map in crushtool's text form, relative to the scenario file. It defines hosts, OSDs
    and racks, whose keys are refused with a map. With crush_rule, so are failure domains."""
    crush_rule: str | None = Field(default=None, min_length=1)
    """Rule of crush_map that places the pool."""
    osd_reweights: tuple[ReweightSpec, ...] = ()
    """OSDs of crush_map that take only a share of their PGs, or none, each a table
    [[cluster.osd_reweights]]."""
    primary_affinities: tuple[PrimaryAffinitySpec, ...] = ()
    """OSDs of crush_map that lead fewer PGs of a replicated pool, each a table
    [[cluster.primary_affinities]]."""
    upmap_items: tuple[UpmapSpec, ...] = ()
    """PGs of the pool on OSDs that the balancer chose, each a table [[cluster.upmap_items]]."""
    cores_per_host: Count = 128
    """CPU cores of each storage host [count]. The set nvme counts hardware threads."""
    cores_per_osd: Count | None = None
    """Cores that each OSD is pinned to (numactl, cpuset, Kubernetes' static CPU manager) [count], in the
    unit of cores_per_host. No other process uses them. Default: all OSDs of a host share its cores."""
    cpu_limit_per_osd: Annotated[float, Field(ge=0.01, le=10_000)] | None = None
    """Processor time that each OSD may use, as a number of cores (limits.cpu of Kubernetes, cpu.max of a
    cgroup): this many times 100 ms in each 100 ms. Until these are used up, its threads run on all cores of
    the host, or on the cores_per_osd. Then they stop until the next 100 ms. Default: no limit."""
    op_shards: Count | None = None
    """Operation queues of one OSD [count] (osd_op_num_shards). Default: the parameter set's or the
    generation's."""
    op_threads_per_shard: Count | None = None
    """Worker threads per queue [count] (osd_op_num_threads_per_shard). Default: as for op_shards."""
    messenger_threads: Count | None = None
    """Messenger threads of one OSD [count] (ms_async_op_threads)."""
    client_cores: Count = 36
    """CPU cores of the client machine [count]."""
    public_gbit_per_s: GbitPerS = 100.0
    """Rate of the network between clients and hosts, per node and direction [10^9 bit/s]."""
    private_gbit_per_s: GbitPerS = 100.0
    """Rate of the network between hosts, per node and direction [10^9 bit/s]. Ignored if networks is 1."""
    networks: Literal[1, 2] = 2
    """Network interfaces of each host [count]. 2: separate public and private networks. 1: both share one
    interface of public_gbit_per_s."""
    drive: str = Field(default="samsung-pm983", min_length=1)
    """Drive under each OSD: the name of a device parameter set (an SSD such as nvme-tlc, or a disk such
    as hdd-7200), or the path of your own (./drive.toml, from the scenario file's folder), such as
    `stripesim trace fit --out` writes."""
    drive_numbers: DriveSpec = DriveSpec()
    """Values that replace those of the device parameter set. Not for disks."""
    drive_bytes: SizeBytes | None = None
    """Capacity of one drive [bytes], for usable capacity, wear and repair in reports. Default: the device
    parameter set's."""
    full_ratio: FillRatio | None = None
    """Fraction of an OSD's capacity at which Ceph refuses writes [0 to 1] (mon_osd_full_ratio). Default:
    the parameter set's."""
    nearfull_ratio: FillRatio | None = None
    """Fraction of an OSD's capacity at which Ceph warns [0 to 1] (mon_osd_nearfull_ratio). At most
    full_ratio."""
    backfillfull_ratio: FillRatio = FILL_RATIOS["backfillfull_ratio"]
    """Fraction of an OSD's capacity at which backfills to it wait [0 to 1] (mon_osd_backfillfull_ratio)."""
    stored_bytes: Bytes | None = None
    """Client data in the pool at the start, and for durability [bytes], of which images are a part. [faults],
    [repair] and planned changes move it. Default: the size of the images, and full drives for durability."""
    used_bytes: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Bytes that each OSD holds when planned changes begin, and for durability, of all pools, by OSD number
    [bytes]. Default: those of this pool alone."""
    drive_rated_write_bytes: SizeBytes | None = None
    """Rated endurance of one drive: host writes over its life [bytes] (TBW), for wear in reports.
    Default: the device parameter set's."""
    drive_rated_days: PositiveFloat = 1825.0
    """Lifetime to which drive_rated_write_bytes applies [days]."""
    parameters: str = Field(default="nvme", min_length=1)
    """Name of the calibrated parameter set; or the path of your own (./parameters.toml, from the scenario
    file's folder), which `stripesim calibrate` writes."""
    kernel_table: str = ""
    """Name of the table of encode and decode costs. Default: the shipped table."""
    kernel_backend: str | None = Field(default=None, min_length=1)
    """Kernel in that table, such as jerasure_rs_vand. Default: the first."""
    encode_buffers: bool = True
    """Include the cost of the buffers that Ceph's plugin allocates around an encode call. ISA-L kernels
    only."""
    ec_optimizations: bool | None = None
    """Set the flag allow_ec_optimizations (FastEC) on erasure-coded pools. Default: true where the
    generation supports it, although Ceph itself sets it only on request."""
    direct_reads: bool = False
    """Let clients read shards of erasure-coded objects directly, not through the primary. Generation
    umbrella only."""
    read_policy: ReadPolicy = "needed"
    """Shards that a read asks for. needed: those that it needs, of replicas the primary's. speculative:1: k
    and 1 more (up to m more), of which the first k to answer are used. fastest:k: all k + m, as with Ceph's
    fast_read, of which the first k are used. Of replicas (k is 1), the client asks for further copies and
    uses the first answer. Late answers use resources as others do. Only for codes any k of whose shards
    hold the data. local: of replicas, the one at the client's site (rbd_read_from_replica_policy =
    localize), else the primary's."""
    pg_lock_scope: Literal["commit", "coded", "dispatch", "none"] | None = None
    """Point up to which a request holds its PG's lock. Default: the generation's."""
    recovery_sync_ms: Annotated[float, Field(ge=0.001, le=1e5)] | None = None
    """Mean time of a sync of an OSD's log while objects recover, as counted on your own cluster [ms]
    (bluestore.kv_sync_lat). Each object that recovers waits for one, and so do clients' writes that share it.
    Default: what was counted for the drive, or else the drive's write and flush alone."""
    op_queue: Literal["fifo", "wpq", "mclock_scheduler"] = "fifo"
    """Scheduling of client and recovery operations: fifo serves them in order of arrival, wpq is Ceph's
    weighted priority queue, mclock_scheduler is mClock with the generation's costs and defaults."""
    mclock_profile: (
        Literal["high_client_ops", "balanced", "high_recovery_ops"] | None
    ) = None
    """Profile of mclock_scheduler. Default: the generation's."""
    gateways: GatewaysSpec = GatewaysSpec()
    """RADOS gateways, for workload.kind s3."""

    @property
    def ssd(self) -> str:
        """Old name of `drive`, for one release."""
        return self.drive

    @property
    def host_groups(self) -> tuple[HostGroup, ...]:
        """Groups of identical hosts, at least one, with defaults for all keys but rack and site."""
        groups = self.hosts
        if isinstance(groups, int):
            groups = (HostGroup(count=groups),)
        common = {
            "osds": self.osds_per_host,
            "drive_bytes": self.drive_bytes,
            "cores": self.cores_per_host,
        }
        return tuple(
            group.replaced(
                **{
                    key: value
                    for key, value in common.items()
                    if getattr(group, key) is None
                }
            )
            for group in groups
        )

    def of_hosts(self, key: str) -> list[Any]:
        """Return the value of a group's key for each host."""
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
    def gateway_count(self) -> int:
        """Gateways of a load on buckets, by default one for each storage host [count]."""
        return self.gateways.count or self.host_count

    @property
    def between_hosts_gbit_per_s(self) -> float:
        """Rate of the interface that carries traffic between hosts, per direction [10^9 bit/s]."""
        if self.networks == 1:
            return self.public_gbit_per_s
        return self.private_gbit_per_s

    @property
    def osd_count(self) -> int:
        """OSDs of all hosts [count]. With a CRUSH map, correct only if groups describe its hosts."""
        return sum(group.count * (group.osds or 0) for group in self.host_groups)

    @property
    def cores_key(self) -> str:
        """Key that decides which cores OSDs have: their limit, cores of their own, or those of the host."""
        if self.cpu_limit_per_osd is not None:
            return "cpu_limit_per_osd"
        if self.cores_per_osd is not None:
            return "cores_per_osd"
        return "cores_per_host"

    @property
    def rack_names(self) -> list[str] | None:
        """Rack of each host, or None without racks or if racks do not divide the hosts evenly."""
        if not isinstance(self.hosts, int):
            return None if self.hosts[0].rack is None else self.of_hosts("rack")
        if self.racks is None or self.hosts % self.racks:
            return None
        each = self.hosts // self.racks
        return [f"rack{host // each}" for host in range(self.hosts)]

    @property
    def site_names(self) -> list[str] | None:
        """Site of each host, or None without sites or if sites do not divide the hosts evenly."""
        if not isinstance(self.hosts, int):
            return None if self.hosts[0].site is None else self.of_hosts("site")
        if self.sites is None or self.hosts % self.sites:
            return None
        each = self.hosts // self.sites
        return [f"site{host // each}" for host in range(self.hosts)]

    @property
    def site_count(self) -> int:
        """Sites that the scenario states, 1 without any [count]."""
        return len(set(self.site_names or ())) or self.sites or 1


#: Read policy of clients that read the copy at their site.
LOCAL_READS: Final = "local"
#: Features of an RBD image.
ImageFeature = Literal[
    "layering",
    "exclusive-lock",
    "object-map",
    "fast-diff",
    "deep-flatten",
    "journaling",
]


class WorkloadSpec(ScenarioTable):
    """Client load. Each combination of op, pattern and block size is one cell."""

    kind: Literal["closed", "open", "trace", "s3"] = "closed"
    """closed: queue_depth requests are always in flight. open: Poisson arrivals at rate_per_s. trace: the
    requests of a recorded trace. s3: requests for objects through cluster.gateways, open with rate_per_s,
    else closed."""
    ops: tuple[Op, ...] = Field(default=("read", "write"), min_length=1)
    """Operations, one cell each: read, write, or with kind s3 put, get, head, list, delete (default: put and
    get). Ignored with kind trace."""
    op_shares: tuple[PositiveFloat, ...] | None = Field(default=None, min_length=1)
    """Share of each of ops in one mixed cell, in any unit. Kind s3 only."""
    object_sizes_bytes: tuple[SizeBytes, ...] = Field(
        default=(4 * 1024**2,), min_length=1, max_length=OBJECT_SIZES_MAX
    )
    """Sizes of objects [bytes], one cell each. Kind s3 only."""
    size_shares: tuple[PositiveFloat, ...] | None = Field(default=None, min_length=1)
    """Share of each of object_sizes_bytes among all objects, in any unit, for one cell of mixed sizes. Kind
    s3 only."""
    multipart_threshold_bytes: SizeBytes | None = None
    """Size from which objects are uploaded in parts and read in ranges, all at the same time [bytes].
    Default: none, all in single requests. Kind s3 only."""
    part_size_bytes: SizeBytes = 16 * 1024**2
    """Size of these parts and ranges [bytes]. Kind s3 only."""
    objects: Count = 1_000_000
    """Objects in all buckets [count]. Kind s3 only."""
    buckets: Annotated[int, Field(ge=1, le=INDEX_SHARDS_MAX)] = 16
    """Buckets [count]. Kind s3 only."""
    index_shards: Annotated[int, Field(ge=1, le=1999)] = 11
    """Index shards of each bucket [count] (bucket_index_max_shards). Kind s3 only."""
    tls: bool = False
    """Encrypt the connections of clients to gateways. Kind s3 only."""
    read_fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    """Fraction of reads in one mixed cell [0 to 1], instead of ops."""
    patterns: tuple[Pattern, ...] = Field(default=("seq", "rand"), min_length=1)
    """Access patterns, one cell each. Ignored with kind trace. Not with kind s3."""
    block_sizes_bytes: tuple[SizeBytes, ...] = Field(
        default=(4096,), min_length=1, max_length=BLOCK_SIZES_MAX
    )
    """Request sizes [bytes], one cell each. Ignored with kind trace. Objects have object_sizes_bytes."""
    clients: Annotated[int, Field(ge=1, le=CLIENTS_MAX)] = 1
    """Clients [count], each with its own submission threads, network and image."""
    clients_per_host: Count = 1
    """Clients per machine [count]. They share its network."""
    client_site: Annotated[int, Field(ge=0, lt=SITES_MAX)] | None = None
    """Site of all clients, from 0. Default: their machines are assigned to the sites in turn, so a single
    client is at site 0."""
    queue_depth: Count = 256
    """Requests that each client keeps in flight, or all together with a trace [count]. Ignored for Poisson
    arrivals and for traces replayed at recorded times."""
    vms: Annotated[int, Field(ge=1, le=CLIENTS_MAX)] | None = None
    """Virtual machines [count], each a client with an image of its own, in place of clients. `stripesim load
    --vms` finds how many keep a latency. Default: none, clients are stated directly."""
    vm_queue_depth: Count | None = None
    """Requests that each virtual machine keeps in flight [count], without vm_iops_limit. Default:
    queue_depth."""
    vm_iops_limit: PositiveFloat | None = None
    """Request rate of each virtual machine (iops limit of a hypervisor or storage class) [requests/s]. They
    issue as much as they may, at random moments: Poisson arrivals of vms × vm_iops_limit. Default: none."""
    completions: Literal["each", "newest"] = "each"
    """each: the client submits a new request after every completion. newest: it waits for its latest
    request, then replaces all completed ones. For closed loops only."""
    requests: PositiveInt | None = None
    """Requests per cell, all clients together, at least [count]. Give either this or duration_s. Closed loops
    issue more if these are too few to show the steady state."""
    duration_s: SpanS | None = None
    """Simulated time per cell [s]. Give either this or requests."""
    image: Literal["pristine", "prefilled"] = "prefilled"
    """State of the image before the run. prefilled: all objects exist. pristine: none does."""
    image_bytes: SizeBytes = 100 * 10**9
    """Size of each client's block image [bytes]. With a trace, that of each of its devices; default: up to
    the end of its last request."""
    image_features: tuple[ImageFeature, ...] | None = Field(default=None, min_length=1)
    """Features of the images. With object-map, the first write into an object of a pristine image waits
    for an update of the image's object map. Not simulated with [faults], [[changes]] or [repair].
    Default: the release's: layering, exclusive-lock, object-map, fast-diff, deep-flatten."""
    rate_per_s: PositiveFloat | None = None
    """Mean arrival rate of all clients together [requests/s]. Kinds open and s3 only."""
    trace: str | None = Field(default=None, min_length=1)
    """Path of the trace, relative to the scenario file. Kind trace only."""
    trace_format: str | None = Field(default=None, min_length=1)
    """Format of the trace. Default: detected."""
    speed: PositiveFloat = 1.0
    """Factor by which a trace is replayed faster [1]: 2 halves the recorded times. Not with replay closed."""
    replay: Literal["recorded", "closed"] = "recorded"
    """recorded: requests of a trace arrive at their recorded times, divided by speed. closed: they arrive
    in the same order, queue_depth at a time."""
    timeout_s: SpanS | None = None
    """Time after which the client abandons a request [s] (rados_osd_op_timeout). Default: never, as in
    Ceph. Only with [faults]."""

    @model_validator(mode="after")
    def _vms_are_clients(self) -> Self:
        """Set the keys of clients by those of virtual machines, unless they are given. Rules compare them."""
        meant = {
            key: value
            for key, value in self.keys_of_vms().items()
            if key not in self.model_fields_set
        }
        return self.replaced(**meant) if meant else self

    def keys_of_vms(self) -> dict[str, Any]:
        """Return the keys of clients that virtual machines mean, with their values."""
        if self.vms is None:
            return {}
        meant: dict[str, Any] = {"clients": self.vms}
        if self.vm_queue_depth is not None:
            meant["queue_depth"] = self.vm_queue_depth
        if self.vm_iops_limit is not None:
            meant |= {"kind": "open", "rate_per_s": self.vms * self.vm_iops_limit}
        return meant

    def with_vms(self, vms: int) -> Self:
        """Return the workload with a number of virtual machines."""
        load = self.replaced(vms=vms, clients=vms)
        if self.vm_iops_limit is None:
            return load
        return load.at_rate(vms * self.vm_iops_limit)

    @property
    def is_s3(self) -> bool:
        """True for requests for objects through gateways."""
        return self.kind == "s3"

    @property
    def is_open(self) -> bool:
        """True for Poisson arrivals."""
        return self.kind == "open" or (self.is_s3 and self.rate_per_s is not None)

    @property
    def is_closed(self) -> bool:
        """True for a closed loop."""
        return self.kind == "closed" or (self.is_s3 and self.rate_per_s is None)

    @property
    def used_ops(self) -> tuple[Op, ...]:
        """Operations of the workload."""
        if self.is_s3 and "ops" not in self.model_fields_set:
            return S3_DEFAULT_OPS
        return self.ops

    @property
    def writes(self) -> bool:
        """True if any request stores data."""
        if self.kind == "trace" or self.read_fraction is not None:
            return True
        return bool({"write", "put"} & set(self.used_ops))

    @property
    def mean_object_bytes(self) -> float:
        """Mean size of objects, if their sizes are mixed [bytes]."""
        shares = self.size_shares or (1.0,) * len(self.object_sizes_bytes)
        weighed = zip(self.object_sizes_bytes, shares, strict=True)
        return sum(size * share for size, share in weighed) / sum(shares)

    @property
    def rados_object_bytes(self) -> int:
        """Mean size of the RADOS objects of objects in buckets, in whole allocation units [bytes]."""
        shares = self.size_shares or (1.0,) * len(self.object_sizes_bytes)
        counts = [
            sum(
                count * ceil(part_bytes / RGW_CHUNK_BYTES)
                for part_bytes, count in self.uploaded_parts(size).items()
            )
            for size in self.object_sizes_bytes
        ]
        weighed = zip(counts, shares, strict=True)
        mean_count = sum(count * share for count, share in weighed) / sum(shares)
        units = ceil(self.mean_object_bytes / mean_count / ALLOCATION_BYTES)
        return units * ALLOCATION_BYTES

    def uploaded_parts(self, size_bytes: int) -> dict[int, int]:
        """Return the number of parts of each size in which clients upload an object of a size [bytes]."""
        threshold = self.multipart_threshold_bytes
        if threshold is None or size_bytes < threshold:
            return {size_bytes: 1}
        whole, rest_bytes = divmod(size_bytes, self.part_size_bytes)
        parts = {self.part_size_bytes: whole, rest_bytes: 1}
        return {part_bytes: n for part_bytes, n in parts.items() if part_bytes and n}

    def at_rate(self, rate_per_s: float, *, requests: int | None = None) -> Self:
        """Return the workload with Poisson arrivals, as long as it was or for a number of requests."""
        kind = "s3" if self.is_s3 else "open"
        load = self.replaced(kind=kind, rate_per_s=rate_per_s, completions="each")
        return load if requests is None else load.lasting(requests)

    def closed(self, queue_depth: int, *, requests: int) -> Self:
        """Return the workload as a closed loop of a number of requests."""
        load = self.replaced(
            kind="s3" if self.is_s3 else "closed",
            queue_depth=queue_depth,
            rate_per_s=None,
            completions="each",
        )
        return load.lasting(requests)

    def lasting(self, requests: int) -> Self:
        """Return the workload with a number of requests."""
        return self.replaced(requests=requests, duration_s=None)


#: Keys of a workload that only kind s3 has.
S3_KEYS: Final = frozenset(
    {
        "op_shares",
        "object_sizes_bytes",
        "size_shares",
        "multipart_threshold_bytes",
        "part_size_bytes",
        "objects",
        "buckets",
        "index_shards",
        "tls",
    }
)


class LoadSpec(WorkloadSpec):
    """One of several concurrent workloads. Missing keys come from `[workload]`."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")
    """Name of the workload in results."""


class ClientSpec(ScenarioTable):
    """The machines that issue requests."""

    threads: PositiveInt | None = None
    """Submission threads of one client [count]. Default: the parameter set's, which is one, as for a
    single load generator on a block-device library."""
    place: Literal["own", "osd-hosts"] = "own"
    """own: clients run on separate machines. osd-hosts: they run on the storage hosts, assigned
    round-robin, and share the hosts' public network."""
    unlimited: bool | None = None
    """true: each client has as many submission threads and network interfaces as its requests need, each
    as fast as one, so that only the cluster limits the rate. Default: false, but true in load, plan and
    serve if the scenario states no clients (clients, clients_per_host, [client])."""


class RepairSpec(Throttles):
    """OSDs lost for good and rebuilt while the workload runs. Missing keys come from the generation."""

    lost_osds: tuple[OsdId, ...] = Field(min_length=1)
    """Numbers of the lost OSDs."""


class DegradedSpec(ScenarioTable):
    """OSDs that are down for the whole run, without repair."""

    missing_osds: tuple[OsdId, ...] = Field(min_length=1)
    """Numbers of the OSDs that are down."""


class Cell(NamedTuple):
    """Scheme and kind of request of one result row.

    Attributes
    ----------
    scheme
        Scheme as the scenario writes it.
    op
        ``read``, ``write``, an operation of S3, ``mixed`` with a read fraction, shares of operations or
        several workloads, or ``trace``.
    pattern
        ``seq``, ``rand``, ``mixed`` with several workloads, or ``trace``.
    block_size_bytes
        Request size, or (mean) size of objects [bytes]; None for traces and several workloads.
    """

    scheme: str
    op: Op | Literal["mixed", "trace"]
    pattern: Literal["seq", "rand", "trace", "mixed"]
    block_size_bytes: int | None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Cell":
        """Return the cell of a result row, or of another row with these fields."""
        return cls(*(row[name] for name in cls._fields))

    @property
    def name(self) -> str:
        """The name of its row, such as ``rep:3 write rand 4KiB``."""
        return row_name(self._asdict())


def row_name(coordinates: Mapping[str, Any]) -> str:
    """Return the name of a row, such as ``rep:3 write rand 4KiB`` or ``rep:3 put 4MiB``.

    Parameters
    ----------
    coordinates
        Scheme, operation, pattern, block size and name of the workload, in the order of the name. Those that
        are missing or None are left out, and so is the pattern of objects, which have none.
    """
    parts = {key: one for key, one in coordinates.items() if one is not None}
    if parts.get("op") in S3_OPS:
        parts.pop("pattern", None)
    if "block_size_bytes" in parts:
        parts["block_size_bytes"] = format_size(parts["block_size_bytes"])
    # Several workloads are `mixed` in operation and pattern.
    return " ".join(dict.fromkeys(map(str, parts.values())))


class ScenarioKeys(ScenarioTable):
    """The keys of a scenario, each of them valid: a cluster, a workload, and the schemes to compare.

    A `Scenario` also obeys the rules that span several keys.
    """

    name: str = Field(default="scenario", pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")
    """Short name, used in titles and file names: letters, digits, space, dot, _ and -."""
    description: str = ""
    """Purpose of the scenario, in a sentence or two."""
    generation: GenerationName = "reef"
    """Ceph release whose write, read and repair paths are simulated. Up to squid, erasure-coded pools are
    classic; tentacle is v20.2.0 with FastEC; umbrella is main."""
    schemes: tuple[SchemeText, ...] = Field(min_length=1, max_length=SCHEMES_MAX)
    """Redundancy schemes to compare: rep:3, rs:6,3 (k, m), lrc:10,6,5 (k, all parities, locality),
    lrc-ceph:4,2,3 and shec:6,3,2 (Ceph's plugins), clay:9,3,11 (k, m, helpers d), none for a bare device,
    or your own code."""
    codes: tuple[str, ...] = Field(default=(), max_length=CODE_FILES_MAX)
    """Python files with your own codes, relative to the scenario file. They are executed."""
    seed: Annotated[int, Field(ge=0, le=INT_MAX)] = 1
    """Seed of all random draws. The same seed gives the same run."""
    cluster: ClusterSpec = ClusterSpec()
    """The machines, their network and the placement of objects."""
    workload: WorkloadSpec = WorkloadSpec()
    """Client load."""
    workloads: tuple[LoadSpec, ...] = Field(default=(), max_length=WORKLOADS_MAX)
    """Several concurrent workloads, each with one op, pattern and block size. Missing keys come from
    [workload]."""
    client: ClientSpec = ClientSpec()
    """Threads and machines of the clients."""
    repair: RepairSpec | None = None
    """Lost OSDs, rebuilt under client load."""
    degraded: DegradedSpec | None = None
    """OSDs that stay down."""
    faults: FaultsSpec | None = None
    """Failures and returns during the run, and the cluster's recovery."""
    changes: tuple[ChangeSpec, ...] = Field(default=(), max_length=CHANGES_MAX)
    """Planned changes, each a table [[changes]]; see stripesim rehearse."""
    durability: DurabilitySpec | None = None
    """Failure and repair of drives over years. See stripesim durability."""
    plan: PlanSpec | None = None
    """Keys to vary and requirements to meet. See stripesim plan."""

    # Base of relative paths. Private, so that results do not depend on the location of the file.
    _base_dir: Path = PrivateAttr(default_factory=Path)
    # Locations of keys, for errors that only appear when the scenario is built.
    _places: KeyPlaces = PrivateAttr(default_factory=KeyPlaces)

    @property
    def title(self) -> str:
        """Name for pages: that of the file if the scenario states none, as results do not depend on it."""
        file = Path(self._places.label)
        if "name" in self.model_fields_set or file.suffix != ".toml":
            return self.name
        return file.stem

    @property
    def loads(self) -> tuple[WorkloadSpec, ...]:
        """Concurrent workloads, usually one."""
        if not self.workloads:
            return (self.workload,)
        return tuple(_with_defaults(load, self.workload) for load in self.workloads)

    @property
    def images_bytes(self) -> int:
        """Size of the images of all clients, each in whole objects [bytes]."""
        return sum(
            load.objects * round(load.mean_object_bytes)
            if load.is_s3
            else load.clients * self.image_stride_bytes(load)
            for load in self.loads
        )

    @property
    def duration_s(self) -> float | None:
        """Simulated time after which a run stops [s], or None if it stops after its last request."""
        bounds = [load.duration_s for load in self.loads]
        return max((bound for bound in bounds if bound is not None), default=None)

    @property
    def missing_osds(self) -> tuple[int, ...]:
        """OSDs that are down from the start."""
        if self.degraded is None:
            return ()
        return tuple(self.degraded.missing_osds)

    @property
    def lost_osds(self) -> tuple[int, ...]:
        """OSDs that are lost at the start, then repaired."""
        if self.repair is None:
            return ()
        return tuple(self.repair.lost_osds)

    def image_stride_bytes(self, load: WorkloadSpec) -> int:
        """Return the size of a workload's image, rounded up to whole objects [bytes]."""
        return (
            -(-load.image_bytes // self.cluster.object_bytes)
            * self.cluster.object_bytes
        )

    def is_override(self, *path: str | int) -> bool:
        """Return True if the command line set a key or a table that contains it."""
        overrides = self._places.overrides
        return any(path[:length] in overrides for length in range(1, len(path) + 1))

    def resolve(self, path: str) -> Path:
        """Return a path of the scenario relative to the scenario file's folder."""
        return self._base_dir / Path(path).expanduser()

    def files(self) -> list[tuple[KeyPath, str]]:
        """List the files that the scenario names, with their keys. Their content affects a run."""

        def walk(table: ScenarioTable, above: KeyPath) -> Iterator[tuple[KeyPath, str]]:
            for name in type(table).model_fields:
                value = getattr(table, name)
                items: list[tuple[KeyPath, Any]] = [((*above, name), value)]
                if isinstance(value, tuple):
                    items = [
                        ((*above, name, index), item)
                        for index, item in enumerate(value)
                    ]
                for path, item in items:
                    if isinstance(item, ScenarioTable):
                        yield from walk(item, path)
                    elif names_file(name, item):
                        yield path, item

        return list(walk(self, ()))

    def has_file(self, path: str) -> bool:
        """Return True if a path of the scenario is that of a file."""
        # Python raises for names that are too long and for home directories of unknown users.
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            return self.resolve(path).exists() and not self.resolve(path).is_dir()
        return False


def cells(scenario: ScenarioKeys) -> list[Cell]:
    """List the cells of a scenario."""
    workload = scenario.workload
    if scenario.workloads:
        return [Cell(scheme, "mixed", "mixed", None) for scheme in scenario.schemes]
    if workload.kind == "trace":
        return [Cell(scheme, "trace", "trace", None) for scheme in scenario.schemes]
    if workload.is_s3:
        return _s3_cells(scenario)
    ops: tuple[Op | Literal["mixed"], ...] = (
        workload.ops if workload.read_fraction is None else ("mixed",)
    )
    return [
        Cell(scheme, op, pattern, block_size_bytes)
        for scheme in scenario.schemes
        for op in ops
        for pattern in workload.patterns
        for block_size_bytes in workload.block_sizes_bytes
    ]


def _s3_cells(scenario: ScenarioKeys) -> list[Cell]:
    """List the cells of a load on buckets: one for each operation and size, unless their shares mix them."""
    load = scenario.workload
    ops: tuple[Op | Literal["mixed"], ...] = load.used_ops
    if load.op_shares is not None:
        ops = ("mixed",)
    sizes = load.object_sizes_bytes
    if load.size_shares is not None:
        sizes = (round(load.mean_object_bytes),)
    return [
        Cell(scheme, op, "rand", size)
        for scheme in scenario.schemes
        for op in ops
        for size in sizes
    ]


#: Mutually exclusive keys: a workload with one of them does not inherit the other from `[workload]`.
_ALTERNATIVES = (
    ("requests", "duration_s"),
    ("ops", "read_fraction"),
    ("rate_per_s", "queue_depth"),
)


def _with_defaults(load: LoadSpec, common: WorkloadSpec) -> LoadSpec:
    """Return a workload with its missing keys filled in from `[workload]`."""
    own_keys = set(load.model_fields_set)
    for pair in _ALTERNATIVES:
        if own_keys & set(pair):
            own_keys |= set(pair)
    taken = {key: getattr(common, key) for key in common.model_fields_set - own_keys}
    return load.replaced(**taken)


def load_cell(scheme: str, load: WorkloadSpec) -> Cell:
    """Return the cell of one of several concurrent workloads, which has one op, pattern and block size."""
    op = load.ops[0] if load.read_fraction is None else "mixed"
    return Cell(scheme, op, load.patterns[0], load.block_sizes_bytes[0])


def scenario_schema() -> dict[str, Any]:
    """Return the JSON schema of scenario files, for editors."""
    schema: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema |= _unwrapped(ScenarioKeys.model_json_schema())
    schema["title"] = "stripesim scenario"
    return schema


def _unwrapped(value: Any) -> Any:
    """Unwrap the lines of descriptions, and rename oneOf to anyOf."""
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
