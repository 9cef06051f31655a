"""The measured cluster: one machine, 16 OSDs that each have an address, the cluster's own CRUSH map."""

from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np

from stripesim.calibration.kernels.store import named_table
from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.coding import RedundancyScheme, parse_scheme
from stripesim.models.cpu import ClientModel, CpuModel
from stripesim.models.generations import generation
from stripesim.models.kernel.cost import KernelModel
from stripesim.models.messages import MessageModel
from stripesim.models.nic import NicModel
from stripesim.models.object_store.store import ObjectStoreModel
from stripesim.models.pg_lock import PgLockModel
from stripesim.models.placement import (
    CrushMap,
    OsdWeights,
    parse_map,
    pg_mappings,
    reweighted,
)
from stripesim.models.ssd import SsdModel
from stripesim.models.threads import ThreadModel
from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.parameters import changed_models
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.cluster import NO_OSD, Cluster, Models
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import POOL, Bindings, Resources
from stripesim.sim.engine.shares import FAIR, Share, ShareClass

PARAMETERS = "pacific"
RELEASE = generation("pacific")
KERNEL_TABLE = "ceph-16.2.15"
# Codes that the table lacks take the measured cost of this one. Only durations depend on it.
KERNEL_STAND_IN = "rs:6,3"

PG_NUM = 32
META_PG_NUM = 8
OBJECT_BYTES = 4 << 20
CORES = 2
LOOPBACK_BITS_PER_S = 20e9
# Pool ids as measured. Any other code gets OTHER_POOL_ID.
POOL_IDS = {"rep:3": 3, "rs:6,3": 4, "rs:10,4": 5}
META_POOL_ID = 2
OTHER_POOL_ID = 9
# The process that has used the cores least gets one first. Linux groups the processes of a session
# (``kernel.sched_autogroup_enabled`` is 1 there), and each daemon begins a session.
_CORE_SHARE = Share(FAIR, (ShareClass(),))


class OneMachine(Cluster):
    """Hosts with their own network interfaces that share the cores of one machine with the client."""

    @cached_property
    def resources(self) -> Resources:
        """Return all resources. The client's thread also needs a core."""
        resources = super().resources
        kinds = np.array(resources.kinds)
        return replace(
            resources,
            disciplines=np.where(kinds == "client.submit", POOL, resources.disciplines),
            shares=(*resources.shares, _CORE_SHARE),
            share_indices=np.where(
                kinds == "cpu", len(resources.shares), resources.share_indices
            ),
        )

    def bind(
        self, acting: IntArray, primary_shards: IntArray, groups: IntArray
    ) -> Bindings:
        """Bind roles to resources, with the client on the machine's cores."""
        rows = super().bind(acting, primary_shards, groups)
        rows[:, roles.CLIENT_THREAD] = rows[:, roles.CLIENT_SUBMIT]
        rows[:, roles.CLIENT_SUBMIT] = self.host_resource(
            np.zeros(1, dtype=np.int64), "cpu"
        )
        return rows

    def host_resource(self, hosts: IntArray, kind: str) -> IntArray:
        """Return the index of a host's resource. All hosts share the cores of the first."""
        return super().host_resource(
            np.zeros_like(hosts) if kind == "cpu" else hosts, kind
        )


@lru_cache(maxsize=1)
def crush_map() -> CrushMap:
    """Return the cluster's CRUSH map, as the cluster gave it."""
    resource = study_folder("ceph16") / "data" / "cluster.crush.txt"
    return parse_map(resource.read_text(encoding="utf-8"))


def kernel_for(scheme: RedundancyScheme) -> KernelModel:
    """Return costs of encoding. A code that was not timed borrows those of `KERNEL_STAND_IN`."""
    table = named_table(KERNEL_TABLE)
    if scheme.kind != "erasure" or scheme.name in table.schemes():
        return table
    borrowed = tuple(
        replace(cost, scheme=scheme.name)
        for cost in table.costs
        if cost.scheme == KERNEL_STAND_IN
    )
    return replace(table, costs=table.costs + borrowed)


def models_for(scheme: RedundancyScheme) -> Models:
    """Build the models of the generation `pacific` for one scheme."""
    parameters = ParameterSet(PARAMETERS)
    rate = {"rate_bits_per_s": LOOPBACK_BITS_PER_S}
    models = Models(
        client=parameters.model(ClientModel, "client"),
        cpu=parameters.model(CpuModel, "cpu", {"cores_per_host": CORES}),
        public_nic=parameters.model(NicModel, "public_nic", rate),
        private_nic=parameters.model(NicModel, "private_nic", rate),
        messages=parameters.model(MessageModel, "messages"),
        pg_lock=PgLockModel(scope=RELEASE.pg_lock_scope, provenance={}),
        threads=parameters.model(
            ThreadModel,
            "threads",
            {
                "op_shards_count": RELEASE.op_threads().shards_count,
                "op_threads_per_shard_count": RELEASE.op_threads().threads_per_shard_count,
            },
        ),
        ssd=parameters.model(SsdModel, "ssd"),
        store=parameters.model(ObjectStoreModel, "store"),
        kernel=kernel_for(scheme),
    )
    return changed_models(models)


def acting_sets(
    scheme: RedundancyScheme,
    *,
    pool_id: int,
    pg_num: int,
    weights: OsdWeights | None = None,
) -> IntArray:
    """Return the acting sets of a pool with some weights of OSDs, shape (pg_num, width)."""
    weights = weights or OsdWeights()
    rule = "ec63" if scheme.kind == "erasure" else "rep"
    crush = reweighted(crush_map(), dict(weights.crush))
    reweights = dict.fromkeys(weights.out, 0.0)
    rows = pg_mappings(crush, rule, pool_id, pg_num, scheme.width, reweights)
    return np.asarray(rows, dtype=np.int64)


def build_pool(
    name: str,
    stripe_unit_bytes: int,
    *,
    models: Models | None = None,
    down: int | None = None,
    meta: bool = False,
    pool_id: int | None = None,
    hinted_writes: bool = False,
) -> Pool:
    """Place a scheme's pool on the measured cluster."""
    scheme = parse_scheme(name)
    if pool_id is None:
        pool_id = META_POOL_ID if meta else POOL_IDS.get(scheme.name, OTHER_POOL_ID)
    acting = acting_sets(
        scheme, pool_id=pool_id, pg_num=META_PG_NUM if meta else PG_NUM
    )
    osds = crush_map().max_devices
    if (acting == NO_OSD).any():
        raise ValueError(
            f"{scheme.name}: got {scheme.width} shards, wanted at most the cluster's {osds} OSDs"
        )
    if down is not None:
        if not 0 <= down < osds:
            raise ValueError(
                f"dead_osd: got {down}, wanted one of the cluster's {osds} OSDs"
            )
        acting = np.where(acting == down, NO_OSD, acting)
    return Pool(
        cluster=OneMachine(
            osd_hosts=np.arange(osds, dtype=np.int64),
            acting=acting,
            models=models or models_for(scheme),
            hinted_writes=hinted_writes,
        ),
        scheme=scheme,
        stripe_unit_bytes=stripe_unit_bytes,
        object_bytes=OBJECT_BYTES,
    )
