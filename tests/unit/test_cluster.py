"""Resources of a cluster, and the binding of roles to them."""

from dataclasses import replace

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.placement import pgs_of_objects
from stripesim.models.problems import UnavailableError
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.clients.workload import Replay, Requests
from stripesim.sim.ceph.cluster import NO_OSD, THREAD_KINDS, Cluster
from stripesim.sim.ceph.pool import Pool, image_prefix
from stripesim.sim.engine.program import BATCH, FIFO, GATE, POOL, UNBOUND
from stripesim.sim.run import simulate

PRIVATE = (
    roles.OUT_TX,
    roles.OUT_WIRE,
    roles.OUT_RX,
    roles.BACK_TX,
    roles.BACK_WIRE,
    roles.BACK_RX,
)


@pytest.fixture(scope="module")
def cluster(models):
    """Three hosts of two OSDs; the second group has two shards on one host, the third lacks one."""
    return Cluster(
        osd_hosts=np.array([0, 0, 1, 1, 2, 2]),
        acting=np.array([[0, 2, 4], [3, 2, 5], [4, NO_OSD, 1]]),
        models=models,
    )


def bound(cluster, group, primary=0):
    row = cluster.bind(cluster.acting, np.full(3, primary), np.arange(3))[group]
    names = cluster.resources.names
    return {
        roles.role_name(i): None if r == UNBOUND else names[r]
        for i, r in enumerate(row.tolist())
    }


def test_counts(cluster):
    assert (cluster.hosts, cluster.osds, cluster.groups, cluster.width) == (3, 6, 3, 3)


def test_resources_have_unique_names_and_the_capacities_of_the_models(cluster, models):
    resources = cluster.resources
    # Each OSD has five op queues, messengers, drive, kv, sync, finisher, aio and reader.
    of_osd = 5 + 5 + 2
    total = 3 + 3 * 5 + 6 * of_osd + 3 * 3
    assert len(set(resources.names)) == len(resources) == total
    by_name = {
        name: (kind, int(capacity), int(discipline))
        for name, kind, capacity, discipline in zip(
            resources.names,
            resources.kinds,
            resources.capacities,
            resources.disciplines,
            strict=True,
        )
    }
    assert by_name["client.submit"] == (
        "client.submit",
        models.client.submit_threads_count,
        FIFO,
    )
    assert by_name["host.2.cpu"] == ("cpu", models.cpu.cores_per_host, FIFO)
    assert by_name["host.0.private.tx"] == ("private.tx", 1, FIFO)
    assert by_name["osd.5.ssd"] == (
        "ssd",
        models.ssd.channels * models.ssd.raid0_drives,
        FIFO,
    )
    assert by_name["osd.0.sync"] == ("sync", 1, BATCH)
    assert by_name["osd.0.queue.4.worker"] == (
        "worker",
        models.threads.op_threads_per_shard_count,
        POOL,
    )
    assert by_name["osd.2.kv"] == ("kv", 1, POOL)
    assert by_name["pg.2.lock"] == ("pg.lock", 1, POOL)
    assert by_name["pg.2.exec"] == ("pg.exec", 1, POOL)
    assert by_name["pg.2.pipeline"] == ("pg.pipeline", 1, GATE)


def test_a_placement_group_belongs_to_one_queue_of_operations(cluster, models, change):
    sharded = replace(
        cluster,
        models=change(
            models,
            threads={
                "op_shards_count": 2,
                "op_threads_per_shard_count": 3,
                "messenger_threads_count": 4,
            },
        ),
    )
    names = sharded.resources.names
    assert len(set(names)) == len(names) == 3 + 3 * 5 + 6 * (2 + 5 + 2) + 3 * 3
    found = [bound(sharded, group) for group in range(3)]
    assert [row["primary.worker"][6:] for row in found] == [
        "queue.0.worker",
        "queue.1.worker",
        "queue.0.worker",
    ]
    assert found[1]["shard[2].worker"] == f"osd.{cluster.acting[1, 2]}.queue.1.worker"
    assert found[0]["primary.messenger"] == f"osd.{cluster.acting[0, 0]}.messenger"
    by_name = dict(zip(names, sharded.resources.capacities.tolist(), strict=True))
    assert (by_name["osd.0.queue.1.worker"], by_name["osd.0.messenger"]) == (3, 4)


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_every_thread_of_a_lone_write_is_woken_once_a_step_and_sleeps_again(
    make_pool, models, change, engine
):
    threads = {
        "messenger_threads_count": 3,
        "wake_ns": 1000.0,
        "sync_wakes_count": 20,
        "sync_ns": 0.0,
        "peer_acks_count": 1,
    }
    threads |= {"slice_ns": 1e6, "finish_threads_count": 1, "queue_wakes_count": 2}
    pool = make_pool(change(models, threads=threads), "rep:3")
    one = Requests(*(np.array([value]) for value in (True, 0, 0, 4096)))
    found = simulate(pool, Replay(one, queue_depth=1), engine=engine)
    kinds = np.array(pool.cluster.resources.kinds)
    sleeps = {
        kind: int(found.engine_run.sleeps[kinds == kind].sum()) for kind in THREAD_KINDS
    }
    # The request, two sub-writes, two answers and the reply: ten ends of messages on OSDs, and what
    # acknowledges the four between them.
    assert sleeps["messenger"] == 10 + 4
    # Dispatch, send, two replies and the finish at the primary, and three transactions.
    assert sleeps["worker"] == 5 + 3
    # Each transaction wakes two threads: before its sync and when it finishes.
    assert sleeps["kv"] == sleeps["finisher"] == 3
    # Each data write wakes the thread that collects it. No thread waits for a read.
    assert sleeps["aio"] == 3 and sleeps["reader"] == 0
    # Each sync wakes 20 more, and of the workers each item wakes two.
    assert found.row.context_switches_per_op == 14 + 2 * 8 + 3 + 3 + 3 + 3 * 20
    plain = simulate(
        make_pool(change(models, threads={**threads, "wake_ns": 0.0}), "rep:3"),
        Replay(one, queue_depth=1),
        engine=engine,
    )
    assert found.row.cpu_ns_per_op - plain.row.cpu_ns_per_op == 1000 * (28 + 3)
    assert found.row.latency_mean_ns > plain.row.latency_mean_ns
    with_sync = make_pool(
        change(models, threads={**threads, "sync_ns": 500.0}), "rep:3"
    )
    synced = simulate(with_sync, Replay(one, queue_depth=1), engine=engine)
    assert synced.row.cpu_ns_per_op - found.row.cpu_ns_per_op == 3 * 500
    # Most threads are woken by another one of their OSD, which has just run: they find its caches.
    warm = make_pool(change(models, threads={**threads, "cool_ns": 1e5}), "rep:3")
    cheaper = simulate(warm, Replay(one, queue_depth=1), engine=engine)
    spared_ns = int(cheaper.engine_run.warm_ns.sum())
    assert 0 < spared_ns < 1000 * 31
    assert found.row.cpu_ns_per_op - cheaper.row.cpu_ns_per_op == spared_ns


def test_index_functions_agree_with_names(cluster):
    names = cluster.resources.names
    assert (
        names[cluster.host_resource(np.array([1]), "public.rx")[0]]
        == "host.1.public.rx"
    )
    assert names[cluster.osd_resource(np.array([4]), "sync")[0]] == "osd.4.sync"
    assert names[cluster.group_resource(np.array([2]), "pg.lock")[0]] == "pg.2.lock"
    assert names[cluster.group_resource(np.array([0]), "pg.exec")[0]] == "pg.0.exec"


def test_shards_on_three_hosts(cluster):
    row = bound(cluster, 0)
    assert row["primary.cpu"] == "host.0.cpu"
    assert row["primary.public.rx"] == "host.0.public.rx"
    assert row["primary.worker"] == "osd.0.queue.0.worker"
    assert row["pg.lock"] == "pg.0.lock"
    assert row["shard[1].ssd"] == "osd.2.ssd"
    assert row["shard[2].cpu"] == "host.2.cpu"
    # Out leads from the primary's host to the shard's, back the other way.
    assert (row["shard[1].out.tx"], row["shard[1].out.rx"]) == (
        "host.0.private.tx",
        "host.1.private.rx",
    )
    assert (row["shard[1].back.tx"], row["shard[1].back.rx"]) == (
        "host.1.private.tx",
        "host.0.private.rx",
    )


def test_shards_that_share_a_host_with_the_primary_do_not_cross_the_wire(cluster):
    row = cluster.bind(cluster.acting, np.zeros(3, dtype=np.int64), np.arange(3))[1]
    for shard, crosses in ((0, False), (1, False), (2, True)):
        wires = [row[roles.shard_role(shard, part)] != UNBOUND for part in PRIVATE]
        assert wires == [crosses] * len(PRIVATE), shard
        assert row[roles.shard_role(shard, roles.SSD)] != UNBOUND


def test_another_primary_turns_the_wires_around(cluster):
    row = bound(cluster, 0, primary=2)
    assert row["primary.cpu"] == "host.2.cpu"
    assert row["shard[2].out.tx"] is None
    assert (row["shard[0].out.tx"], row["shard[0].out.rx"]) == (
        "host.2.private.tx",
        "host.0.private.rx",
    )


def test_a_shard_without_an_osd_has_nothing(cluster):
    row = bound(cluster, 2)
    assert all(
        resource is None
        for name, resource in row.items()
        if name.startswith("shard[1]")
    )
    assert row["shard[2].ssd"] == "osd.1.ssd"


def pool_of(cluster, scheme="rep:3"):
    return Pool(
        cluster=cluster,
        scheme=parse_scheme(scheme),
        stripe_unit_bytes=4096,
        object_bytes=1 << 22,
    )


def test_the_primary_is_the_first_shard_that_is_there(models):
    acting = np.array([[0, 1, 2], [NO_OSD, 1, 2], [NO_OSD, NO_OSD, 2]])
    pool = pool_of(Cluster(osd_hosts=np.arange(3), acting=acting, models=models))
    assert pool.primaries.tolist() == [0, 1, 2]
    assert [(context.primary, set(context.missing)) for context in pool.contexts] == [
        (0, set()),
        (1, {0}),
        (2, {0, 1}),
    ]
    assert pool.views.tolist() == [0, 1, 2]


def test_equal_groups_share_a_context(models):
    acting = np.array([[0, 1, 2], [2, 1, 0], [NO_OSD, 1, 2]])
    pool = pool_of(Cluster(osd_hosts=np.arange(3), acting=acting, models=models))
    assert len(pool.contexts) == 2
    assert pool.views.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("scheme", "missing", "said"),
    [
        ("rep:3", 3, "placement group 0: "),
        (
            "rs:2,1",
            2,
            r"placement group 0: rs:2,1 .*\[0, 1\].* 1$",
        ),
    ],
)
def test_a_group_that_lost_too_much_is_refused(models, scheme, missing, said):
    acting = np.array([[0, 1, 2]])
    acting[0, :missing] = NO_OSD
    pool = pool_of(
        Cluster(osd_hosts=np.arange(3), acting=acting, models=models), scheme
    )
    with pytest.raises(UnavailableError, match=f"^{said}"):
        _ = pool.contexts


def test_images_have_separate_object_names(models):
    assert image_prefix(0) != image_prefix(1)
    acting = np.tile([[0, 1, 2]], (64, 1))
    pool = pool_of(Cluster(osd_hosts=np.arange(3), acting=acting, models=models))
    objects = np.arange(200)
    first = pool.groups_of(np.zeros(200, dtype=np.int64), objects)
    second = pool.groups_of(np.ones(200, dtype=np.int64), objects)
    assert (first != second).mean() > 0.9
    # Mixed in any order, each object stays in its group.
    mixed = pool.groups_of(np.tile([0, 1], 200), np.repeat(objects, 2))
    assert (mixed[::2] == first).all() and (mixed[1::2] == second).all()
    assert set(first.tolist()) <= set(range(64))


def test_an_image_of_a_known_name_is_placed_by_that_name(models):
    """Of two images, only the first has a stated name."""
    acting = np.tile([[0, 1, 2]], (64, 1))
    unnamed = pool_of(Cluster(osd_hosts=np.arange(3), acting=acting, models=models))
    pool = replace(unnamed, image_prefixes=("rbd_data.2.5e23b8f4a1c2",))
    objects = np.arange(200)
    first = np.zeros(200, dtype=np.int64)
    expected = pgs_of_objects("rbd_data.2.5e23b8f4a1c2", objects, 64)
    assert pool.groups_of(first, objects).tolist() == list(expected)
    assert (pool.groups_of(first, objects) != unnamed.groups_of(first, objects)).any()
    second = first + 1
    assert (pool.groups_of(second, objects) == unnamed.groups_of(second, objects)).all()


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_a_sync_costs_the_same_if_one_thread_submits_syncs_and_finishes(
    make_pool, models, change, engine
):
    # Given a key-value thread that is woken twice for a lone transaction: before its sync and after it
    one = Requests(*(np.array([value]) for value in (True, 0, 0, 4096)))
    costs_ns = []
    for sync_ns in (0.0, 500.0):
        threads = {
            "wake_ns": 1000.0,
            "sync_wakes_count": 0,
            "sync_ns": sync_ns,
            "cool_ns": 0.0,
            "slice_ns": 0.0,
            "finish_threads_count": 0,
        }
        pool = make_pool(change(models, threads=threads), "rep:3")
        # When one write makes three transactions
        found = simulate(pool, Replay(one, queue_depth=1), engine=engine)
        costs_ns.append(found.row.cpu_ns_per_op)
    # Then each pays one sync.
    assert costs_ns[1] - costs_ns[0] == 3 * 500


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_transactions_that_find_the_thread_awake_share_its_sync(
    make_pool, models, change, engine
):
    # Given syncs of 1 ms of processor time, and 64 writes
    threads = {"wake_ns": 0.0, "sync_wakes_count": 0, "sync_ns": 1e6}
    threads |= {"cool_ns": 0.0, "slice_ns": 0.0}
    pool = make_pool(change(models, threads=threads), "rep:3", groups=64)
    writes = Requests(
        np.ones(64, dtype=bool),
        np.zeros(64, dtype=np.int64),
        np.arange(64) * (4 << 20),
        np.full(64, 4096),
    )
    # When they come one at a time, and all together
    alone, together = (
        simulate(pool, Replay(writes, queue_depth=depth), engine=engine)
        for depth in (1, 64)
    )
    # Then together they save more than three quarters of 3 syncs each, alone they pay all of them.
    saved_ns = alone.row.cpu_ns_per_op - together.row.cpu_ns_per_op
    assert alone.row.cpu_ns_per_op > 3 * 1e6
    assert 0.75 * 3 * 1e6 < saved_ns < 3 * 1e6
