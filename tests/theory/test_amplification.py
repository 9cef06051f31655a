"""Amplification and serial throughput of whole runs against what paper and pencil give."""

import numpy as np
import pytest

from stripesim.models.clock import round_ns
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.planner import RequestPlanner
from stripesim.sim.engine.graph import ACQUIRE
from stripesim.sim.engine.program import Program
from stripesim.sim.engine.simpy.engine import SimpyEngine
from stripesim.sim.run import factor_tables, simulate

KIB = 1024
MIB = 1 << 20
ENGINES = ["compiled", "simpy"]
SCHEMES = [("rep:3", 1, 2), ("rs:6,3", 6, 3), ("rs:10,4", 10, 4)]


def load(pattern, block, *, read, requests=200, queue_depth=16, image=256 * MIB):
    return Synthetic(
        pattern=pattern,
        block_bytes=block,
        image_bytes=image,
        read_fraction=float(read),
        requests=requests,
        queue_depth=queue_depth,
    ).start()


def traffic(nic, *sizes_bytes):
    return sum(nic.traffic_bytes(size) for size in sizes_bytes)


@pytest.fixture(scope="module")
def uncached(models, change):
    return change(models, store={"read_cache_bytes": 0})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("scheme", "k", "m"), SCHEMES)
def test_random_4_kib_reads_cost_k_blocks(uncached, make_pool, scheme, k, m, engine):
    pool = make_pool(uncached, scheme, groups=32)
    # With 4 KiB units, a 4 KiB block is in one stripe.
    row = simulate(pool, load("rand", 4 * KIB, read=True), engine=engine).row
    assert row.device_read_bytes_per_client_byte == k
    assert row.device_write_bytes_per_client_byte == 0
    sizes = uncached.messages
    per_shard = traffic(
        uncached.private_nic,
        sizes.sub_read_request_bytes,
        sizes.sub_read_reply_header_bytes + 4 * KIB,
    )
    assert row.private_net_bytes_per_client_byte == (k - 1) * per_shard / (4 * KIB)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("scheme", "k", "m"), SCHEMES)
def test_random_4_kib_overwrites(uncached, make_pool, scheme, k, m, engine):
    pool = make_pool(uncached, scheme, groups=32)
    row = simulate(pool, load("rand", 4 * KIB, read=False), engine=engine).row
    erasure = scheme != "rep:3"
    assert row.device_read_bytes_per_client_byte == (k if erasure else 0)
    store = uncached.store
    per_shard = (
        4 * KIB
        + store.metadata_bytes
        + (store.roll_forward_log_bytes if erasure else 0)
    )
    assert row.device_write_bytes_per_client_byte == (k + m) * per_shard / (4 * KIB)


@pytest.mark.parametrize("engine", ENGINES)
def test_1_kib_overwrites_under_replication_read_nine_times(models, make_pool, engine):
    """Koh et al. 2017, section VI.A: 9 times, because each of three replicas reads 3 KiB of padding."""
    row = simulate(
        make_pool(models, "rep:3", groups=32),
        load("rand", KIB, read=False),
        engine=engine,
    ).row
    assert row.device_read_bytes_per_client_byte == 9


@pytest.mark.parametrize(("scheme", "k", "m"), SCHEMES[1:])
@pytest.mark.parametrize("order", ["rising", "falling"])
def test_filling_a_pristine_object_writes_each_stripe_once_more_than_touched(
    uncached, make_pool, scheme, k, m, order
):
    """One 4 KiB write per stripe of an object, first to last or last to first."""
    from stripesim.sim.ceph.clients.workload import Replay, Requests

    stripes = 20
    index = np.arange(stripes) if order == "rising" else np.arange(stripes)[::-1]
    requests = Requests(
        is_write=np.ones(stripes, dtype=bool),
        images=np.zeros(stripes, dtype=np.int64),
        offsets_bytes=index * k * 4 * KIB,
        lengths_bytes=np.full(stripes, 4 * KIB, dtype=np.int64),
    )
    pool = make_pool(uncached, scheme, object_bytes=stripes * k * 4 * KIB)
    row = simulate(pool, Replay(requests, queue_depth=1), prefilled=False).row
    meta = uncached.store.metadata_bytes + uncached.store.roll_forward_log_bytes
    # Rising: every stripe is new, written once, none read. Falling: the first write fills all twenty,
    # each of the others reads its stripe and writes it again.
    stripe_writes = stripes if order == "rising" else stripes + stripes - 1
    stripe_reads = 0 if order == "rising" else stripes - 1
    client_bytes = stripes * 4 * KIB
    assert (
        row.device_read_bytes_per_client_byte
        == stripe_reads * k * 4 * KIB / client_bytes
    )
    assert row.device_write_bytes_per_client_byte == pytest.approx(
        (k + m) * (stripe_writes * 4 * KIB + stripes * meta) / client_bytes, rel=1e-12
    )


@pytest.mark.parametrize(
    ("scheme", "hosts", "crossing"),
    [
        ("rep:3", [0, 1, 2], 2),
        ("rep:3", [0, 0, 1], 1),
        ("rs:6,3", list(range(9)), 8),
        ("rs:6,3", [shard % 4 for shard in range(9)], 6),
    ],
)
def test_shards_on_the_primarys_host_cross_no_wire(
    uncached, make_pool, scheme, hosts, crossing
):
    sizes, nic = uncached.messages, uncached.private_nic
    pool = make_pool(uncached, scheme, hosts=hosts)
    block = 4 * KIB if scheme == "rep:3" else 24 * KIB
    row = simulate(pool, load("seq", block, read=False, requests=20)).row
    per_shard = traffic(
        nic, sizes.sub_write_header_bytes + 4 * KIB, sizes.sub_reply_bytes
    )
    if scheme != "rep:3":
        per_shard += traffic(nic, sizes.roll_forward_bytes, sizes.sub_reply_bytes)
    assert row.private_net_bytes_per_client_byte == crossing * per_shard / block


def serial_ns(models, scheme):
    """From the lock to the unlock of a 4 KiB write of one or two copies, each demand rounded once."""
    cpu, nic, sizes, ssd = models.cpu, models.private_nic, models.messages, models.ssd
    sub_write, sub_reply = sizes.sub_write_header_bytes + 4 * KIB, sizes.sub_reply_bytes
    remote = scheme == "rep:2"
    demands = [
        cpu.op_prepare_ns,
        (1 if remote else 0) * cpu.sub_write_send_ns,
        cpu.op_finish_ns,
    ]
    demands += [
        ssd.write_ns(4 * KIB),
        cpu.kv_transaction_ns,
        ssd.sync_ns(models.store.metadata_bytes),
    ]
    demands.append(cpu.store_transaction_ns + (cpu.sub_op_prepare_ns if remote else 0))
    if remote:
        for size in (sub_write, sub_reply):
            demands += (
                [cpu.message_ns(size)] * 2
                + [nic.serialise_ns(size)] * 2
                + [nic.latency_ns]
            )
        demands.append(cpu.sub_reply_ns)
    return sum(map(round_ns, demands))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scheme", ["rep:1", "rep:2"])
@pytest.mark.parametrize("queue_depth", [4, 32])
def test_one_group_serves_one_write_per_serial_time(
    sleepless, change, make_pool, scheme, engine, queue_depth
):
    """A lock that spans the commit: whatever the depth, completions are one serial time apart."""
    # Work of the store after a commit delays no later commit, and the client is fast.
    built = change(sleepless, cpu={"kv_finish_ns": 0}, client={"submit_ns": 1000})
    result = simulate(
        make_pool(built, scheme),
        load("rand", 4 * KIB, read=False, queue_depth=queue_depth),
        engine=engine,
    )
    gaps = np.diff(result.requested.completed_ns)
    assert (gaps == serial_ns(built, scheme)).all()
    assert result.row.bottleneck == "pg.lock"


@pytest.mark.parametrize("scope", ["dispatch", "none"])
def test_without_that_lock_one_group_does_better_than_one_per_serial_time(
    models, change, make_pool, scope
):
    numbers = {"cpu": {"kv_finish_ns": 0}, "client": {"submit_ns": 1000}}
    rates = {
        kind: simulate(
            make_pool(change(models, pg_lock={"scope": kind}, **numbers), "rep:3"),
            load("rand", 4 * KIB, read=False, queue_depth=32),
        ).row.iops
        for kind in ("commit", scope)
    }
    assert rates[scope] > 1.5 * rates["commit"]


def test_rate_grows_with_the_groups_that_a_load_falls_on(models, change, make_pool):
    built = change(models, client={"submit_ns": 1000}, cpu={"kv_finish_ns": 0})

    def rate(groups):
        pool = make_pool(built, "rep:3", groups=groups, osds=12, object_bytes=64 * KIB)
        return simulate(
            pool, load("rand", 4 * KIB, read=False, requests=800, queue_depth=32)
        ).row.iops

    one, four = rate(1), rate(4)
    # Random objects fall unevenly on four groups: more than twice, never more than four times.
    assert 2 * one < four <= 4 * one * 1.01


class Watching(SimpyEngine):
    """Count the holders of each PG lock, and assert that there is at most one."""

    def __init__(self, program, locks):
        super().__init__(program)
        self.locks = [self.resources[lock] for lock in locks]
        self.turns = 0

    def complete(self, request, step):
        if step.word == ACQUIRE and request.row[step.role] in self.locks:
            lock = request.row[step.role]
            assert list(lock.users()) == [request], "held by another request"
            self.turns += 1
        super().complete(request, step)


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_a_lock_that_spans_the_commit_lets_one_write_of_a_group_through_at_a_time(
    models, make_pool, scheme
):
    pool = make_pool(models, scheme, groups=3, osds=7, object_bytes=64 * KIB)
    book = pool.book()
    planner = RequestPlanner(
        pool, book, load("rand", 4 * KIB, read=False, image=4 * MIB), prefilled=True
    )
    resources = pool.cluster.resources
    program = Program(
        resources=resources,
        book=book,
        streams=[planner],
        groups=3,
        factor_tables=factor_tables(pool),
    )
    locks = {index for index, kind in enumerate(resources.kinds) if kind == "pg.lock"}
    engine = Watching(program, locks)
    run = engine.execute()
    assert engine.turns == 200
    assert not any(list(lock.users()) for lock in engine.locks)
    # In one group, commits do not overlap, so completions keep a serial distance.
    stream = run.streams[0]
    for group in range(3):
        done = np.sort(stream.completed_ns[stream.groups == group])
        least = round_ns(models.ssd.write_ns(4 * KIB)) + round_ns(
            models.ssd.sync_ns(models.store.metadata_bytes)
        )
        assert (np.diff(done) > least).all()
    again = simulate(pool, load("rand", 4 * KIB, read=False, image=4 * MIB))
    assert (again.requested.completed_ns == stream.completed_ns).all()
