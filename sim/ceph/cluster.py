"""The cluster: its models, its indexed resources, and the binding of roles to resources."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stripesim.models.coding import WHOLE_STRIPES, EcPolicy, parse_scheme
from stripesim.models.coding.optimised.extent_cache import ExtentCacheModel
from stripesim.models.cpu import ClientModel, CpuModel
from stripesim.models.hdd import DeviceModel
from stripesim.models.kernel.buffers import EncodeBufferModel
from stripesim.models.kernel.cost import KernelModel
from stripesim.models.messages import MessageModel
from stripesim.models.nic import NicModel
from stripesim.models.object_store.gateway import GatewayModel
from stripesim.models.object_store.metadata_cache import MetadataLookup
from stripesim.models.object_store.store import DeferralModel, ObjectStoreModel
from stripesim.models.pg_lock import PgLockModel
from stripesim.models.problems import KernelError
from stripesim.models.provenance import MeasuredModel
from stripesim.models.threads import ThreadModel
from stripesim.models.throttle import ThrottleModel
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.gateway import service
from stripesim.sim.ceph.gateway.service import Gateways
from stripesim.sim.ceph.object_maps import ObjectMaps
from stripesim.sim.ceph.qos import OpQueue
from stripesim.sim.ceph.sites import Sites
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.kinds import Kinds, Members, Names, kinds_of
from stripesim.sim.engine.program import (
    BATCH,
    BY_CLIENT,
    FIFO,
    GATE,
    PAIRED_UNIT,
    POOL,
    UNBOUND,
    Bindings,
    Resources,
)
from stripesim.sim.engine.shares import QUOTA, Share

Ints = npt.NDArray[np.int32]

NO_OSD = 2147483647

# Resource kinds of each host, in index order.
_HOST_KINDS = ("cpu", "public.tx", "public.rx", "private.tx", "private.rx")
# Resource kinds of each OSD, after one pool of worker threads per operation queue.
_OSD_KINDS = ("messenger", "ssd", "kv", "sync", "finisher")
# Threads of a device, where threads keep their cores: one collects completions, others block on reads.
_WAITING_KINDS = ("aio", "reader")
# Admission limit for an OSD's client requests, included only if the load can reach it.
_THROTTLE_KINDS = ("throttle",)
_DEFERRED_KINDS = ("deferred",)
# Additional queues of a drive that queues reads and writes separately.
_DRIVE_KINDS = ("ssd.link", "ssd.write")
#: Resource kinds that are threads, which sleep when idle.
THREAD_KINDS = ("worker", "messenger", "kv", "finisher", *_WAITING_KINDS)
_GROUP_KINDS = ("pg.lock", "pg.exec", "pg.pipeline")
# The same for the object map of each image.
_MAP_KINDS = ("map.lock", "map.exec", "map.pipeline")
# The same for each shard of a bucket index.
_INDEX_KINDS = ("index.lock", "index.exec", "index.pipeline")
# Resource kinds of each gateway, the last ones only on a machine of its own.
_GATEWAY_KINDS = (
    "gateway.thread",
    "gateway.messenger",
    "gateway.serial",
    "gateway.budget",
)
_GATEWAY_MACHINE_KINDS = ("gateway.cpu", "gateway.tx", "gateway.rx")
# Prefixes of kinds that names of resources leave out, because they begin with the owner.
_OWNED_PREFIXES = ("osd.", "pg.", "map.", "index.", "gateway.")
# Cores of an OSD that shares them with no other process, or has a quota of their time.
_OSD_CORE_KINDS = ("osd.cpu",)
#: Kinds of the cores on which the threads of OSDs run.
CORE_KINDS = ("cpu", *_OSD_CORE_KINDS)
# Kinds that are cores.
_CORES = (*CORE_KINDS, "gateway.cpu")
# Period of a quota of processor time: the kernel's default, which Kubernetes leaves as it is
# (``cpu.max``, ``cpu.cfs_period_us``).
_QUOTA_PERIOD_NS = 100_000_000
_CLIENT_KINDS = ("client.submit", "client.tx", "client.rx")
# Threads and interfaces of a client that does not limit the rate: more than requests are sent at a time.
_UNLIMITED_COUNT = 1 << 16


#: The buffer model was fitted with this kernel and is charged only for it. Jerasure without pyeclib's copies
#: already takes as long as Ceph's complete plugin, so nothing is added.
BUFFERED_KERNELS = "isa_l"


@dataclass(frozen=True, kw_only=True)
class Models:
    """The measured models of one cluster.

    `kernel_backend` selects the encoding kernel from the table. The default is the table's first.

    `encode_buffers` models the buffer handling around an encode call. It is charged for `BUFFERED_KERNELS`
    if the table holds the kernel without copies (Ceph's tables hold both).

    `lookup` models device reads of object metadata. Without it all metadata is in memory.

    `ec` sets how erasure-coded objects are read and written. `op_queue` schedules operations on worker
    threads, which are otherwise served in order of arrival.

    `throttle` limits the client requests that an OSD admits. It is None without a limit. A cluster whose load
    cannot reach the limit has none.

    `deferral` defers small writes, by default none.

    `gateway` has the costs of gateways, if the parameter set knows them.

    `extent_cache` keeps pages of recent writes at the primaries of optimised pools, by default none.

    `local_reads` is True if clients read the copy at their own site, of pools with copies there.

    `extra_reads` counts the shards, or copies, that a read asks for beyond those it needs. Pools with fewer
    spare ones ask for all they have.
    """

    client: ClientModel
    cpu: CpuModel
    public_nic: NicModel
    private_nic: NicModel
    messages: MessageModel
    pg_lock: PgLockModel
    threads: ThreadModel
    ssd: DeviceModel
    store: ObjectStoreModel
    kernel: KernelModel
    kernel_backend: str | None = None
    encode_buffers: EncodeBufferModel | None = None
    lookup: MetadataLookup | None = None
    ec: EcPolicy = WHOLE_STRIPES
    op_queue: OpQueue | None = None
    throttle: ThrottleModel | None = None
    deferral: DeferralModel | None = None
    gateway: GatewayModel | None = None
    extent_cache: ExtentCacheModel | None = None
    extra_reads: int = 0
    local_reads: bool = False

    def described(self) -> dict[str, MeasuredModel]:
        """Return the models that record the provenance of their numbers, by name."""
        return {
            name: model
            for name, model in vars(self).items()
            if isinstance(model, MeasuredModel)
        }

    def backend_for(self, scheme: str) -> str | None:
        """Return the named kernel, or None (the table's first) if it does not support the scheme."""
        named = self.kernel_backend
        if named in self.kernel.backends and scheme not in self.kernel.schemes(named):
            return None
        return named

    def encode_ns(self, scheme: str, data_bytes: float) -> float:
        """Return the processor time of encoding one stripe, without copies where measured separately [ns]."""
        cost = self.kernel.cost(
            scheme=scheme, op="encode", backend=self.backend_for(scheme)
        )
        kernel_ns = cost.arithmetic_ns(data_bytes)
        kernel_ns += self.cpu.ec_copy_ns_per_byte * data_bytes
        if (
            self.encode_buffers is None
            or cost.copy is None
            or not cost.backend.startswith(BUFFERED_KERNELS)
        ):
            return kernel_ns
        code = parse_scheme(scheme)
        return kernel_ns + self.encode_buffers.duration_ns(
            data_bytes, k=code.k, m=code.m
        )

    def decode_ns(self, scheme: str, data_bytes: float, erasures: int) -> float:
        """Return the processor time of decoding one stripe with some shards absent [ns]."""
        return self.kernel.decode_ns(
            data_bytes,
            scheme=scheme,
            erasures=erasures,
            backend=self.backend_for(scheme),
        )

    def rebuild_ns(self, scheme: str, data_bytes: float, erasures: int) -> float:
        """Return the processor time of rebuilding some lost shards of one stripe [ns]."""
        if erasures > 1:
            return self.decode_ns(scheme, data_bytes, erasures)
        try:
            cost = self.kernel.cost(
                scheme=scheme,
                op="reconstruct",
                erasures=1,
                backend=self.backend_for(scheme),
            )
        except KernelError:
            # Ceph's plugins cannot rebuild a single shard separately. They decode with one erasure.
            cost = self.kernel.cost(
                scheme=scheme, op="decode", erasures=1, backend=self.backend_for(scheme)
            )
        return cost.arithmetic_ns(data_bytes)


def _members(count: int, prefix: str, kinds: tuple[str, ...]) -> Members:
    """Return members whose resources have the names of their kinds, without their owner's."""
    return Members(count, prefix, kinds, tuple(map(_own_label, kinds)))


def _own_label(kind: str) -> str:
    """Return the name of a kind without that of its owner."""
    for prefix in _OWNED_PREFIXES:
        if kind.startswith(prefix):
            return kind.removeprefix(prefix)
    return kind


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Hosts with OSDs, clients, and a pool of placement groups."""

    osd_hosts: IntArray  #: Host of each OSD, shape (osds,)
    #: OSD of each shard of each placement group, or `NO_OSD`, shape (groups, width)
    acting: IntArray
    models: Models
    #: Maximum part of an object that one recovery round moves [B]
    recovery_chunk_bytes: int = 8 << 20
    #: Time of a sync of the log that recovery waits for, or 0 for that of the drive alone [ns]
    recovery_sync_ns: int = 0
    #: Machine of each client, from 0. Clients on one machine share its network, shape (clients,)
    client_hosts: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    #: True if clients run on the storage hosts and share their processors and public network
    clients_on_osd_hosts: bool = False
    #: True if clients have a thread and an interface for each of their requests
    unlimited_clients: bool = False
    #: True if one interface of each host carries both public and private traffic
    one_network: bool = False
    #: Cores of each host, by default those of the processor model, shape (hosts,)
    host_cores: IntArray | None = None
    #: Cores that each OSD is pinned to and shares with no process, or None if OSDs share those of their host
    cores_per_osd: int | None = None
    #: Mean number of cores that each OSD may use, or None without a limit. It may use more at a time, until
    #: the quota of a period is used up
    cpu_limit_per_osd: float | None = None
    #: Object maps of the images, or None if first writes into objects update none
    object_maps: ObjectMaps | None = None
    #: Gateways through which clients reach the pool, or None if they access it directly
    gateways: Gateways | None = None
    #: True if clients send an allocation hint with each write, as librbd does to images without an object
    #: map. In optimised pools every shard then gets a transaction
    hinted_writes: bool = False
    #: Sites of hosts and clients, or None if all are at one
    sites: Sites | None = None

    def __repr__(self) -> str:
        groups = len(self.acting)
        return f"<Cluster: {self.hosts} hosts, {self.osds} OSDs, {groups:,} placement groups>"

    @cached_property
    def hosts(self) -> int:
        """Number of storage hosts."""
        return int(self.osd_hosts.max()) + 1

    @property
    def cores(self) -> IntArray:
        """Cores of each host."""
        if self.host_cores is not None:
            return self.host_cores
        return np.full(self.hosts, self.models.cpu.cores_per_host, dtype=np.int64)

    @property
    def osds_have_cores(self) -> bool:
        """True if each OSD has cores, or a quota of their time, of its own."""
        return self.cores_per_osd is not None or self.cpu_limit_per_osd is not None

    @cached_property
    def _osd_cores(self) -> IntArray:
        """Cores on which each OSD may run, shape (osds,)."""
        if self.cores_per_osd is not None:
            return np.full(self.osds, self.cores_per_osd, dtype=np.int64)
        return self.cores[self.osd_hosts]

    @cached_property
    def free_cores(self) -> IntArray:
        """Cores of each host that its OSDs do not have for themselves, shape (hosts,)."""
        each = self.cores_per_osd
        if each is None:
            each = math.ceil(self.cpu_limit_per_osd or 0)
        counts = np.bincount(self.osd_hosts, minlength=self.hosts)
        return self.cores - each * counts

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.client_hosts)

    @property
    def one_client(self) -> bool:
        """True if there is a single client on a separate machine, so that every binding row can name it."""
        if self.gateways is not None or self.sites is not None:
            return False
        return self.clients == 1 and not self.clients_on_osd_hosts

    @cached_property
    def _client_machines(self) -> int:
        if self.clients_on_osd_hosts:
            return 0
        return int(self.client_hosts.max()) + 1

    @property
    def osds(self) -> int:
        """Number of OSDs."""
        return len(self.osd_hosts)

    @property
    def read_threads(self) -> int:
        """Threads of an OSD that each wait for a read of theirs."""
        return self._op_shards * self.models.threads.op_threads_per_shard_count

    @property
    def position_factors(self) -> tuple[float, ...]:
        """Factors of the time to position a disk's head with 0, 1, … further requests per disk in its queue.

        A thread waits for each read. The one whose read has just ended has no other yet, and that of the next
        read no longer waits in the queue. So of reads, a disk sorts no more.
        """
        drive = self.models.ssd
        waiting = max(0, self.read_threads - drive.servers - 1)
        return drive.position_factors[: waiting // drive.servers + 1]

    @property
    def groups(self) -> int:
        """Number of placement groups."""
        return len(self.acting)

    @property
    def width(self) -> int:
        """Shards of a placement group."""
        return int(self.acting.shape[1])

    @property
    def images(self) -> int:
        """Number of images with an object map."""
        return self.object_maps.images if self.object_maps else 0

    @property
    def index_shards(self) -> int:
        """Number of shards of all bucket indexes."""
        return len(self.gateways.index_groups) if self.gateways else 0

    @property
    def roles(self) -> int:
        """Number of roles that binding rows bind."""
        if self.gateways is not None:
            return self.gateways.roles.count
        count = self.member_roles(self.width)
        if self.object_maps is not None:
            count += self.member_roles(self.object_maps.scheme.width)
        return count

    def member_roles(self, width: int) -> int:
        """Return the number of roles of a pool with `width` shards, without those of object maps."""
        count = roles.role_count(width)
        if self.sites is not None:
            count += self.sites.delays.role_count(width)
        return count

    def role_name(self, role: int) -> str:
        """Return the name of a role for figures and messages."""
        data = self.member_roles(self.width)
        if role >= data and self.object_maps is not None:
            width = self.object_maps.scheme.width
            return f"map.{self._member_role_name(role - data, width)}"
        return self._member_role_name(role, self.width)

    def _member_role_name(self, role: int, width: int) -> str:
        if self.sites is not None and role >= roles.role_count(width):
            return self.sites.delays.role_name(role, width)
        return roles.role_name(role)

    @cached_property
    def resources(self) -> Resources:
        """All resources, in order: clients, hosts, OSDs, locks of placement groups."""
        models = self.models
        threads = models.threads
        members = self._members()
        kinds = kinds_of(members)
        servers = kinds.values(self._capacities, 1)
        hosts = np.arange(self.hosts)
        servers[self.host_resource(hosts, "cpu")] = np.maximum(1, self.free_cores)
        if self.osds_have_cores:
            osds = np.arange(self.osds)
            servers[self.osd_resource(osds, "osd.cpu")] = self._osd_cores
        locks = ("pg.lock", "pg.exec", "map.lock", "map.exec", *_INDEX_KINDS[:2])
        pools = (
            *THREAD_KINDS,
            *_THROTTLE_KINDS,
            *_DEFERRED_KINDS,
            *locks,
            "gateway.thread",
            "gateway.messenger",
            "gateway.budget",
        )
        gates = ("pg.pipeline", "map.pipeline", "index.pipeline")
        disciplines = {
            **dict.fromkeys(pools, POOL),
            **dict.fromkeys(gates, GATE),
            "sync": BATCH,
        }
        # Wake-up cost of each thread. For the key-value thread it includes the time of a sync. A thread that
        # also finishes transactions is woken twice: before a sync and after it.
        wakes_per_sync = 1 if threads.finish_threads_count else 2
        wakes_ns = dict.fromkeys(THREAD_KINDS, round(threads.wake_ns))
        wakes_ns["kv"] = round(threads.wake_ns + threads.sync_ns / wakes_per_sync)
        slowdown = round(models.cpu.paired_slowdown_fraction * PAIRED_UNIT)
        return Resources(
            names=Names(members),
            kinds=kinds,
            capacities=servers,
            disciplines=kinds.values(disciplines, FIFO, np.int8),
            shares=tuple(self._shares.values()),
            share_indices=kinds.values(
                {kind: index for index, kind in enumerate(self._shares)}, -1, np.int8
            ),
            wake_ns=kinds.values(wakes_ns, 0, np.int32),
            slice_ns=kinds.values(
                dict.fromkeys(_CORES, round(threads.slice_ns)), 0, np.int32
            ),
            served_by=self._served_by(len(kinds)),
            paired=kinds.values(dict.fromkeys(_CORES, int(slowdown > 0)), 0, np.int8),
            paired_slowdown=slowdown,
            processes=self._processes(kinds),
            warm_ns=round(threads.wake_ns) if threads.cool_ns else 0,
            cool_ns=round(threads.cool_ns),
        )

    @property
    def _shares(self) -> dict[str, Share]:
        """Return the disciplines of shared queues, by kind of resource."""
        shares = {}
        if self.models.op_queue:
            shares["worker"] = self.models.op_queue.share
        if self.cpu_limit_per_osd is not None:
            shares["osd.cpu"] = Share(
                QUOTA,
                quota_ns=round(self.cpu_limit_per_osd * _QUOTA_PERIOD_NS),
                period_ns=_QUOTA_PERIOD_NS,
            )
        return shares

    @property
    def _capacities(self) -> dict[str, int]:
        """Return the servers of each kind of resource that may have several, except cores."""
        client = self.models.client
        threads = self.models.threads
        drive = self.models.ssd
        writers = drive.write_servers_count * drive.raid0_drives
        throttle = self.models.throttle
        deferral = self.models.deferral
        of_clients = {"client.submit": client.submit_threads_count}
        if self.unlimited_clients:
            of_clients = dict.fromkeys(_CLIENT_KINDS, _UNLIMITED_COUNT)
        gateways = self.gateways
        gateway = self.models.gateway
        return {
            **of_clients,
            "gateway.thread": gateways.workers_count if gateways else 1,
            "gateway.messenger": gateway.messenger_threads_count if gateway else 1,
            "gateway.budget": (
                gateway.operations_in_flight(gateways.unit_bytes)
                if gateway and gateways
                else 1
            ),
            "gateway.cpu": gateways.cores_count if gateways else 1,
            "deferred": deferral.room_count if deferral else 1,
            "throttle": throttle.client_requests_max_count if throttle else 1,
            "worker": threads.op_threads_per_shard_count,
            "messenger": threads.messenger_threads_count,
            "reader": self.read_threads,
            "ssd": drive.servers,
            "ssd.write": max(1, writers),
        }

    def _members(self) -> list[Members]:
        """List the members with their resources, in index order."""
        queues = [""]
        if self._op_shards > 1:
            queues = [f"queue.{number}." for number in range(self._op_shards)]
        osd_kinds = ("worker",) * len(queues) + self._osd_kinds
        osd_labels = tuple(f"{queue}worker" for queue in queues)
        osd_labels += tuple(map(_own_label, self._osd_kinds))
        return [
            *self._client_members(),
            _members(self.hosts, "host.{}.", _HOST_KINDS),
            Members(self.osds, "osd.{}.", osd_kinds, osd_labels),
            _members(self.groups, "pg.{:x}.", _GROUP_KINDS),
            _members(self.images, "map.{}.", _MAP_KINDS),
            _members(self.index_shards, "index.{}.", _INDEX_KINDS),
            *self._gateway_members(),
        ]

    def _gateway_members(self) -> list[Members]:
        """List the resources of gateways, and of their machines if they have any of their own."""
        if self.gateways is None:
            return []
        return [_members(self.gateways.count, "gateway.{}.", self._gateway_kinds)]

    def _processes(self, kinds: Kinds) -> Ints:
        """Return the process (OSD) of each thread, if switches between processes are modelled."""
        processes = np.full(len(kinds), -1, dtype=np.int32)
        if self.models.threads.cool_ns:
            first = self._first_osd_resource
            own = processes[first : first + self.osds * self._osd_size]
            own[:] = np.repeat(np.arange(self.osds), self._osd_size)
            processes[~kinds.are(*THREAD_KINDS)] = -1
        return processes

    def _served_by(self, resources: int) -> Ints:
        """Return the key-value thread that performs each OSD's syncs, where threads keep their cores."""
        served_by = np.full(resources, -1, dtype=np.int32)
        if self.models.threads.slice_ns:
            osds = np.arange(self.osds)
            served_by[self.osd_resource(osds, "sync")] = self.osd_resource(osds, "kv")
        return served_by

    def _client_members(self) -> list[Members]:
        """List the client resources: submission threads per client, network per machine."""
        if self.one_client:
            return [_members(1, "", _CLIENT_KINDS)]
        submit, *nics = _CLIENT_KINDS
        machines = self._client_machines
        return [
            _members(self.clients, "{}.", (submit,)),
            *(_members(machines, "machine.{}.", (nic,)) for nic in nics),
        ]

    @cached_property
    def _first_host_resource(self) -> int:
        return self.clients + 2 * self._client_machines

    @cached_property
    def _first_osd_resource(self) -> int:
        return self._first_host_resource + self.hosts * len(_HOST_KINDS)

    def client_rows(self) -> Bindings:
        """Bind only the roles of each client, shape (clients, roles).

        If images have object maps, bind the roles of each image's map and client, shape (images, roles).
        Clients are assigned to images in turn.
        """
        rows = self._rows_of_clients()
        if self.gateways is not None:
            return self._with_gateways(rows, self.gateways)
        maps = self.object_maps
        if maps is None:
            return rows
        images = np.arange(maps.images, dtype=np.int64)
        rows = rows[images % self.clients]
        # Locks of maps follow those of placement groups.
        of_maps = self.members_rows(
            maps.acting, np.zeros_like(images), self.groups + images
        )
        if self.sites is not None:
            self._enable_client_delays(of_maps, maps.scheme.width, self.sites)
        rows[:, self.member_roles(self.width) :] = of_maps
        return rows

    def _enable_client_delays(
        self, of_maps: Bindings, width: int, sites: Sites
    ) -> None:
        """Bind the delays between the client and the OSDs of its image's map."""
        images = np.arange(len(of_maps), dtype=np.int64)
        far = np.tile(sites.client_rows()[images % self.clients], 1 + width)
        first = roles.role_count(width)
        delays = of_maps[:, first : first + far.shape[1]]
        asks = delays == BY_CLIENT
        delays[asks] = np.where(far[asks], 0, UNBOUND)

    def _with_gateways(self, of_clients: Bindings, gateways: Gateways) -> Bindings:
        """Bind each client to the gateways that it uses, shape (clients × gateways of each, roles)."""
        rows = np.repeat(of_clients, gateways.bound_of(self.clients), axis=0)
        numbers = np.arange(len(rows), dtype=np.int64) % gateways.count
        first = len(self.resources.capacities) - gateways.count * len(
            self._gateway_kinds
        )
        for part, kind in (
            (service.THREAD, "gateway.thread"),
            (service.MESSENGER, "gateway.messenger"),
            (service.SERIAL, "gateway.serial"),
            (service.BUDGET, "gateway.budget"),
        ):
            kind_index = self._gateway_kinds.index(kind)
            own = first + numbers * len(self._gateway_kinds) + kind_index
            rows[:, gateways.roles.gateway(part)] = own
        machine = (service.CPU, service.TX, service.RX)
        for part, kind in zip(machine, ("cpu", "tx", "rx"), strict=True):
            if gateways.on_osd_hosts:
                on_host = "cpu" if kind == "cpu" else f"public.{kind}"
                own = self.host_resource(gateways.hosts[numbers], on_host)
            else:
                kind_index = self._gateway_kinds.index(f"gateway.{kind}")
                own = first + numbers * len(self._gateway_kinds) + kind_index
            rows[:, gateways.roles.gateway(part)] = own
        return rows

    @property
    def _gateway_kinds(self) -> tuple[str, ...]:
        assert self.gateways is not None
        if self.gateways.on_osd_hosts:
            return _GATEWAY_KINDS
        return _GATEWAY_KINDS + _GATEWAY_MACHINE_KINDS

    def unbound_rows(self, count: int) -> Bindings:
        """Return rows in which the client binds the roles of gateways, and no other role is bound."""
        assert self.gateways is not None
        rows = np.full((count, self.roles), UNBOUND, dtype=np.int32)
        rows[:, self.gateways.roles.gateway(0) :] = BY_CLIENT
        return rows

    def index_rows(self, shards: IntArray) -> Bindings:
        """Bind the roles of objects of the bucket index, shape (shards, roles of an index object)."""
        assert self.gateways is not None
        # The locks of index shards follow those of placement groups.
        return self.members_rows(
            self.gateways.index_acting[shards],
            np.zeros_like(shards),
            self.groups + self.images + shards,
        )

    def bind_index_locks(self, rows: Bindings, shards: IntArray) -> None:
        """Bind the locks of index shards in rows of objects of the index, shape (shards, roles of one)."""
        locks = self.groups + self.images + shards
        rows[:, roles.PG_LOCK] = self.group_resource(locks, "pg.lock")
        rows[:, roles.PG_EXEC] = self.group_resource(locks, "pg.exec")
        rows[:, roles.PG_PIPELINE] = self.group_resource(locks, "pg.pipeline")

    def _rows_of_clients(self) -> Bindings:
        rows = np.full((self.clients, self.roles), UNBOUND, dtype=np.int32)
        if self.one_client:
            # The rows of placement groups bind its roles.
            return rows
        if self.sites is not None:
            far = np.tile(self.sites.client_rows(), 1 + self.width)
            first = roles.role_count(self.width)
            rows[:, first : first + far.shape[1]] = np.where(far, 0, UNBOUND)
        rows[:, roles.CLIENT_SUBMIT] = np.arange(self.clients)
        if self.clients_on_osd_hosts:
            rows[:, roles.CLIENT_TX] = self.host_resource(
                self.client_hosts, "public.tx"
            )
            rows[:, roles.CLIENT_RX] = self.host_resource(
                self.client_hosts, "public.rx"
            )
            rows[:, roles.CLIENT_CPU] = self.host_resource(self.client_hosts, "cpu")
        else:
            rows[:, roles.CLIENT_TX] = self.clients + self.client_hosts
            rows[:, roles.CLIENT_RX] = (
                self.clients + self._client_machines + self.client_hosts
            )
        return rows

    def hosts_of_shards(self, acting: IntArray) -> IntArray:
        """Return the host of each shard of acting sets, -1 where a shard has no OSD, of the same shape."""
        present = acting != NO_OSD
        return np.where(present, self.osd_hosts[np.where(present, acting, 0)], -1)

    def host_resource(self, hosts: IntArray, kind: str) -> IntArray:
        """Return the resource index of one kind for each host in an array."""
        if self.one_network:
            kind = kind.replace("private", "public")
        kind_index = _HOST_KINDS.index(kind)
        return self._first_host_resource + hosts * len(_HOST_KINDS) + kind_index

    def osd_resource(self, osds: IntArray, kind: str) -> IntArray:
        """Return the resource index of one kind for each OSD in an array."""
        offset = self._op_shards + self._osd_kinds.index(kind)
        return self._first_osd_resource + osds * self._osd_size + offset

    def core_resource(self, osds: IntArray) -> IntArray:
        """Return the resource index of the cores of each OSD in an array, its own or its host's."""
        if self.osds_have_cores:
            return self.osd_resource(osds, "osd.cpu")
        return self.host_resource(self.osd_hosts[osds], "cpu")

    def worker_resource(self, osds: IntArray, groups: IntArray) -> IntArray:
        """Return the worker pool that serves a PG's operations on an OSD (v16.2.15, ``hash_to_shard``)."""
        first = self.osd_resource(osds, _OSD_KINDS[0])
        return first - self._op_shards + groups % self._op_shards

    @cached_property
    def _op_shards(self) -> int:
        return self.models.threads.op_shards_count

    @cached_property
    def _osd_size(self) -> int:
        return self._op_shards + len(self._osd_kinds)

    @cached_property
    def _osd_kinds(self) -> tuple[str, ...]:
        kinds: tuple[str, ...] = _OSD_KINDS
        if self.models.threads.slice_ns:
            kinds += _WAITING_KINDS
        if self.models.ssd.write_servers_count:
            kinds += _DRIVE_KINDS
        if self.models.throttle:
            kinds += _THROTTLE_KINDS
        if self.models.deferral:
            kinds += _DEFERRED_KINDS
        if self.osds_have_cores:
            kinds += _OSD_CORE_KINDS
        return kinds

    def group_resource(self, groups: IntArray, kind: str) -> IntArray:
        """Return the resource index of one kind for each placement group in an array."""
        first = self._first_osd_resource + self.osds * self._osd_size
        return first + groups * len(_GROUP_KINDS) + _GROUP_KINDS.index(kind)

    def resources_of_osd(self, osd: int) -> IntArray:
        """Return the indices of all resources that fail with an OSD."""
        first = self.worker_resource(np.array([osd]), np.zeros(1, dtype=np.int64))
        return first + np.arange(self._osd_size)

    def drive_resources(self, osd: int) -> IntArray:
        """Return the resources that are part of an OSD's drive: reads, writes, link and syncs of the log.

        A separate log drive is not part of it.
        """
        drive = self.models.ssd
        kinds = ["ssd"]
        if not drive.has_log_drive:
            kinds.append("sync")
        if drive.write_servers_count:
            kinds += _DRIVE_KINDS
        one = np.array([osd], dtype=np.int64)
        return np.concatenate([self.osd_resource(one, kind) for kind in kinds])

    def resources_of_host(self, host: int) -> IntArray:
        """Return the resources that fail with a host, except those of its OSDs: processors and network."""
        one = np.array([host], dtype=np.int64)
        return np.concatenate([self.host_resource(one, kind) for kind in _HOST_KINDS])

    def bind(
        self, acting: IntArray, primary_shards: IntArray, groups: IntArray
    ) -> Bindings:
        """Bind roles to resources.

        Each row holds the OSD of each shard (or `NO_OSD`), the primary's shard, and the placement group
        that owns the lock. Roles of shards without an OSD are `UNBOUND` in the result, as is the network
        between the primary and shards on the same host. With several clients, client roles are `BY_CLIENT`
        and `client_rows` binds them. Roles of object maps are `BY_CLIENT` as well.
        """
        own = self.members_rows(acting, primary_shards, groups)
        if own.shape[1] == self.roles:
            return own
        rows = np.full((len(acting), self.roles), BY_CLIENT, dtype=np.int32)
        rows[:, : own.shape[1]] = own
        return rows

    def members_rows(
        self, acting: IntArray, primary_shards: IntArray, groups: IntArray
    ) -> Bindings:
        """Bind roles to the members of a placement group and its client."""
        rows = np.full(
            (len(acting), roles.role_count(acting.shape[1])), UNBOUND, dtype=np.int32
        )
        primary = acting[np.arange(len(acting)), primary_shards]
        assert (primary != NO_OSD).all(), "a placement group has no primary"
        home = self.osd_hosts[primary]
        own = roles.CLIENT_RX + 1
        rows[:, :own] = range(own) if self.one_client else BY_CLIENT
        if self.clients_on_osd_hosts:
            rows[:, roles.CLIENT_CPU] = BY_CLIENT
        rows[:, roles.PUBLIC_TX] = self.host_resource(home, "public.tx")
        for role in (roles.PUBLIC_RX, roles.PUBLIC_WIRE):
            rows[:, role] = self.host_resource(home, "public.rx")
        rows[:, roles.PRIMARY_WORKER] = self.worker_resource(primary, groups)
        rows[:, roles.PRIMARY_MESSENGER] = self.osd_resource(primary, "messenger")
        if self.models.throttle:
            rows[:, roles.PRIMARY_THROTTLE] = self.osd_resource(primary, "throttle")
        rows[:, roles.PRIMARY_CPU] = self.core_resource(primary)
        rows[:, roles.PG_LOCK] = self.group_resource(groups, "pg.lock")
        rows[:, roles.PG_EXEC] = self.group_resource(groups, "pg.exec")
        rows[:, roles.PG_PIPELINE] = self.group_resource(groups, "pg.pipeline")
        shards = self._shard_rows(acting, home[:, None], groups[:, None])
        rows[:, roles.FIXED_ROLES :] = shards.reshape(len(rows), -1)
        if self.sites is None:
            return rows
        delays = self._site_rows(self.sites, acting, primary)
        return np.concatenate([rows, delays], axis=1)

    def _site_rows(self, sites: Sites, acting: IntArray, primary: IntArray) -> Bindings:
        present = acting != NO_OSD
        hosts = self.osd_hosts[np.where(present, acting, 0)]
        return sites.member_rows(self.osd_hosts[primary], hosts, present)

    def delay_shares(self, primary_shards: IntArray) -> npt.NDArray[np.float64]:
        """Return the mean share of requests that each role's delay takes part in, shape (roles,).

        All but those between sites always do.
        """
        shares = np.ones(self.roles)
        if self.sites is None:
            return shares
        primary = self.acting[np.arange(self.groups), primary_shards]
        rows = self._site_rows(self.sites, self.acting, primary)
        first = roles.role_count(self.width)
        of_delays = self.sites.delay_shares(rows, self.width)
        shares[first : first + len(of_delays)] = of_delays
        return shares

    def _shard_rows(self, acting: IntArray, home: IntArray, groups: IntArray) -> Ints:
        """Bind the roles of each shard, shape (groups, shards, roles of a shard)."""
        present = acting != NO_OSD
        member = np.where(present, acting, 0)
        host = self.osd_hosts[member]
        remote = present & (host != home)
        rows = np.full((*acting.shape, roles.SHARD_ROLES), UNBOUND, dtype=np.int32)

        def fill(part: int, resources: IntArray, where: npt.NDArray[np.bool_]) -> None:
            rows[:, :, part] = np.where(where, resources, UNBOUND)

        fill(roles.WORKER, self.worker_resource(member, groups), present)
        parts, offsets = self._shard_places
        of_osds = self.osd_resource(member, _OSD_KINDS[0])[..., None] + offsets
        rows[:, :, parts] = np.where(present[..., None], of_osds, UNBOUND)
        fill(roles.CPU, self.core_resource(member), present)
        fill(roles.CLIENT_SIDE_TX, self.host_resource(host, "public.tx"), present)
        fill(roles.CLIENT_SIDE_RX, self.host_resource(host, "public.rx"), present)
        for part in (roles.OUT_TX, roles.OUT_WIRE):
            fill(part, self.host_resource(home, "private.tx"), remote)
        fill(roles.OUT_RX, self.host_resource(host, "private.rx"), remote)
        for part in (roles.BACK_TX, roles.BACK_WIRE):
            fill(part, self.host_resource(host, "private.tx"), remote)
        fill(roles.BACK_RX, self.host_resource(home, "private.rx"), remote)
        return rows

    @cached_property
    def _shard_places(self) -> tuple[list[int], IntArray]:
        """Parts of a shard, and the place of each part's resource among those of its OSD."""
        kinds = self._shard_kinds
        offsets = [self._osd_kinds.index(kind) for kind in kinds.values()]
        return list(kinds), np.array(offsets)

    @property
    def _shard_kinds(self) -> dict[int, str]:
        """Return the kind of OSD resource for each part of a shard."""
        kinds = {
            roles.MESSENGER: "messenger",
            roles.FINISHER: "finisher",
            roles.SSD: "ssd",
            roles.SSD_WRITER: "ssd",
            roles.KV: "kv",
            roles.SYNC: "sync",
        }
        if self.models.threads.slice_ns:
            kinds |= {roles.AIO: "aio", roles.READER: "reader"}
        if self.models.ssd.write_servers_count:
            kinds |= {roles.SSD_LINK: "ssd.link", roles.SSD_WRITER: "ssd.write"}
        if self.models.throttle:
            kinds |= {roles.THROTTLE: "throttle"}
        if self.models.deferral:
            kinds |= {roles.DEFERRED: "deferred"}
        return kinds
