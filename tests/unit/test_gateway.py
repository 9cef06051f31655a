"""S3 requests pass gateways, the bucket index and the pool's own paths; bytes follow by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.hdd import HddModel
from stripesim.models.problems import ProblemsError, ScenarioError
from stripesim.scenarios.answers.explain.request import explain
from stripesim.scenarios.answers.explain.text import heading
from stripesim.scenarios.answers.load.curve_builder import CurveSettings
from stripesim.scenarios.answers.load.curves import curve_builders
from stripesim.scenarios.answers.load.rate_runs import RateMeasurement
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.cells.bound import bounds_of, bounds_of_cell
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.gateways import recovered_objects
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import scenario_warnings
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.forms.capacity import (
    capacity_of,
    drives_of,
    stored_object_bytes,
)
from stripesim.scenarios.forms.rebuild import idle_rebuild
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.ceph.demands import Mix, demands_of
from stripesim.sim.ceph.gateway.paths import S3Paths
from stripesim.sim.ceph.gateway.planner import S3Planner
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.engine.graph import COUNTER_INDEX
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.observe.critical_path import COST_KEYS
from support.messages import states

KIB = 1 << 10
MIB = 1 << 20

CLUSTER = """
[cluster]
hosts = 8
osds_per_host = 2
pg_num = 64
"""


def scenario(workload, schemes='["rep:3"]', cluster="", requests=64, queue_depth=4):
    return parse_scenario(
        f'schemes = {schemes}\n{CLUSTER}{cluster}\n[workload]\nkind = "s3"\n'
        f"requests = {requests}\nqueue_depth = {queue_depth}\n{workload}"
    )


def ran(one, number=0, engine="compiled"):
    result = run_cell(one, cells(one)[number], engine, unchecked=True)
    # The audit accepts it: Little's law, busy times, bytes, bounds.
    assert result.refused is None
    return result


def built(one, number=0):
    return build_cell(one, cells(one)[number], build_models(one))


def gateway_of(one):
    model = build_models(one).gateway
    assert model is not None
    return model


@pytest.mark.parametrize(
    ("scheme", "size", "head", "tails"),
    [
        # 4 MiB are a whole number of 16 KiB stripes.
        ("rs:4,2", 9 * MIB, 4 * MIB, [4 * MIB, 1 * MIB]),
        ("rep:3", 4 * MIB, 4 * MIB, []),
        ("rep:3", 1, 1, []),
        # Stripes of RS(6,3) have 24 KiB: 170 of them are 4,177,920 bytes.
        ("rs:6,3", 5 * MIB, 4177920, [5 * MIB - 4177920]),
    ],
)
def test_chunks_are_whole_stripes_of_the_pool(scheme, size, head, tails) -> None:
    one = scenario(
        f"object_sizes_bytes = [{size}]",
        f'["{scheme}"]',
        'failure_domain_erasure = "osd"',
    )
    stripe_bytes = 4096 * parse_scheme(scheme).k if scheme != "rep:3" else 1
    layout = gateway_of(one).layout(size, stripe_bytes)
    assert layout.head_bytes == head
    assert list(layout.tail_bytes) == tails
    cluster = built(one).pool.cluster
    assert cluster.gateways.tails == len(tails)


def test_both_engines_agree_on_every_operation() -> None:
    one = scenario(
        'ops = ["put", "get", "head", "list", "delete"]\n'
        "op_shares = [3, 3, 1, 1, 1]\n"
        'object_sizes_bytes = ["4k", "5MiB"]\nsize_shares = [2, 1]\nclients = 2',
        '["rep:3", "rs:4,2"]',
        requests=256,
    )
    for number in range(2):
        by_engine = [
            ran(one, number, engine).sha256 for engine in ("compiled", "simpy")
        ]
        assert by_engine[0] == by_engine[1]


def test_a_put_writes_the_head_and_updates_the_index_twice() -> None:
    one = scenario('ops = ["put"]\nobject_sizes_bytes = ["64k"]')
    result = ran(one)
    store = build_models(one).store
    model = gateway_of(one)
    # Three copies of the head; its log entry with the attributes, and those of two index updates, on three
    # OSDs each. A sync writes further bytes once for all of its transactions.
    data = 3 * 64 * KIB
    head_bytes = model.new_object_log_bytes + model.attributes_bytes
    logs = 3 * (head_bytes + 2 * model.index_log_bytes)
    written = result.row.device_write_bytes_per_client_byte * 64 * KIB
    syncs = 9 * store.sync_log_bytes
    assert data + logs <= written <= data + logs + syncs
    assert result.row.device_data_write_bytes_per_client_byte == 3


def test_a_put_of_several_chunks_writes_each_byte_three_times() -> None:
    result = ran(scenario('ops = ["put"]\nobject_sizes_bytes = ["10MiB"]'))
    assert result.row.device_data_write_bytes_per_client_byte == 3


def test_small_objects_of_a_code_are_padded_to_a_stripe() -> None:
    one = scenario('ops = ["put"]\nobject_sizes_bytes = ["4k"]', '["rs:4,2"]')
    # One stripe has six chunks of 4 KiB.
    assert ran(one).row.device_data_write_bytes_per_client_byte == 6


@pytest.mark.parametrize(
    ("optimised", "size_kib", "stored_kib"),
    [
        # Classic pools store whole stripes of six chunks of 4 KiB.
        ("false", 4, 6 * 4),
        ("false", 20, 2 * 6 * 4),
        # Optimised ones store one chunk of data and two parities, or 4 + 2 and 1 + 2 in two stripes.
        ("true", 4, 3 * 4),
        ("true", 20, (6 + 3) * 4),
    ],
)
def test_small_objects_take_whole_stripes_in_classic_pools_only(
    optimised, size_kib, stored_kib
) -> None:
    one = parse_scenario(
        f'generation = "tentacle"\nschemes = ["rs:4,2"]\n{CLUSTER}ec_optimizations = {optimised}\n'
        '[workload]\nkind = "s3"\nrequests = 20\nops = ["put"]\nobject_sizes_bytes = ["20k"]'
    )
    assert stored_object_bytes(built(one).pool, size_kib * KIB) == stored_kib * KIB


def test_get_head_list_and_delete_move_the_bytes_that_they_need() -> None:
    one = scenario(
        'ops = ["get", "head", "list", "delete"]\nobject_sizes_bytes = ["64k"]'
    )
    get, head, listed, delete = (ran(one, number) for number in range(4))
    assert get.row.device_read_bytes_per_client_byte == 1
    # From the OSD to the gateway, and from there to the client.
    assert 2 < get.row.public_net_bytes_per_client_byte < 2.2
    for without_data in (head, listed, delete):
        assert without_data.row.throughput_bytes_per_s == 0
        assert without_data.row.device_read_bytes_per_client_byte is None
    # A LIST asks all shards of a bucket, a HEAD only the head.
    assert listed.uses > 5 * head.uses


def totals(op, scheme, size_bytes):
    (one,) = explain(
        op, scheme, size_bytes, generation="tentacle", with_parameters=False
    )
    return one


def sent_to_gateway(op, scheme, size_bytes):
    """Return the bytes of the OSDs' replies to the gateway."""
    one = totals(op, scheme, size_bytes)
    return sum(
        step.step.counted.get("public_net_bytes", 0)
        for step in one.steps
        if step.step.label.endswith("reply sent") and "gateway:" not in step.step.label
    )


def test_a_coded_pool_returns_the_attributes_of_a_head_twice_with_its_data() -> None:
    attributes = gateway_of(scenario("")).attributes_bytes
    # The reply is one frame longer or not, so that its overhead differs by up to 90 B a frame.
    for scheme, copies in (("rep:3", 1), ("rs:4,2", 2)):
        bare = sent_to_gateway("get", scheme, 4096) - 4096
        without = bare - copies * attributes
        assert 200 < without < 600
    # A HEAD has no data, so that it returns them once in every pool.
    assert sent_to_gateway("head", "rs:4,2", 4096) == sent_to_gateway(
        "head", "rep:3", 4096
    )


def transactions(op, scheme, size_bytes):
    one = totals(op, scheme, size_bytes)
    return sum(
        step.step.label.endswith("kv submit") and step.step.word == "use"
        for step in one.steps
    )


@pytest.mark.parametrize(
    ("op", "scheme", "size", "count"),
    [
        # Two updates of the index on three OSDs, and the head on three.
        ("put", "rep:3", 4096, 6 + 3),
        # A coded head is written on six shards, which then roll forward. So does its removal.
        ("put", "rs:4,2", 4096, 6 + 6 + 6),
        ("delete", "rs:4,2", 4096, 6 + 6 + 6),
        # The tails are noted in a list of garbage, on three OSDs.
        ("delete", "rep:3", 8 * MIB, 6 + 3 + 3),
    ],
)
def test_transactions_of_a_request_are_those_counted_on_a_real_gateway(
    op, scheme, size, count
) -> None:
    assert transactions(op, scheme, size) == count


@pytest.mark.parametrize(
    ("keys", "shards", "count"),
    [
        # 1 + 1001 // 11 + sqrt(2002 * ln(11) / 11) = 1 + 91 + 20.9, also for fewer keys.
        (1000, 11, 112),
        (10, 11, 112),
        # One more than it returns.
        (1000, 1, 1001),
        # 1 + 0 + sqrt(2002 * ln(5000) / 5000) = 1 + 1.8, but at least 8.
        (1000, 5000, 8),
    ],
)
def test_a_list_reads_ahead_on_each_shard(keys, shards, count) -> None:
    model = gateway_of(scenario(""))
    assert model.listed_keys_of_shard(keys, shards) == count


def listed(shards):
    """Return the graph of a LIST of 1,000 keys of a bucket with some index shards."""
    one = scenario(
        f'ops = ["list"]\nobjects = 100_000\nbuckets = 1\nindex_shards = {shards}'
    )
    pool = built(one).pool
    paths = S3Paths(kind_of(pool), pool.contexts, tls=False)
    return paths.compile("list", 1000), pool


@pytest.mark.parametrize(
    ("shards", "keys"),
    # 1 + 1001 // 64 + sqrt(2002 * ln(64) / 64) = 1 + 15 + 11.4 keys of each of 64 shards.
    [(11, 112), (64, 27)],
)
def test_a_list_takes_time_for_each_shard_and_each_key_that_it_reads(
    shards, keys
) -> None:
    template, pool = listed(shards)
    model = pool.cluster.models.gateway
    sums = template.totals(np.ones(template.highest_role + 2, dtype=np.bool_))
    counted = {name: int(sums[number]) for name, number in COUNTER_INDEX.items()}
    merged_ns = shards * (model.list_shard_ns + keys * model.list_key_ns)
    reply_ns = model.get_ns_per_byte * 1000 * model.list_entry_bytes
    assert counted["gateway_ns"] == pytest.approx(
        model.read_ns + merged_ns + reply_ns, rel=1e-6
    )
    # Gateways are on hosts of OSDs, so that their time is in that of the hosts.
    cpu = pool.cluster.models.cpu
    of_osds_ns = counted["cpu_ns"] - counted["gateway_ns"]
    assert of_osds_ns >= shards * (keys * model.index_key_ns + cpu.op_prepare_ns)
    assert counted["public_net_bytes"] >= shards * keys * model.index_entry_bytes


def put_paths(**numbers):
    """Return the paths of objects of 40 MiB in ten chunks, with other numbers of the gateway."""
    pool = built(scenario('ops = ["put"]\nobject_sizes_bytes = ["40MiB"]')).pool
    models = pool.cluster.models
    changed = replace(models, gateway=replace(models.gateway, **numbers))
    pool = replace(pool, cluster=replace(pool.cluster, models=changed))
    return S3Paths(kind_of(pool), list(pool.contexts) * 10, tls=False)


@pytest.mark.parametrize(("op", "updates"), [("put", 2), ("part", 3)])
def test_a_part_is_noted_in_the_index_between_the_two_updates_of_an_object(
    op, updates
) -> None:
    labels = put_paths().compile(op, 40 << 20).labels
    # Three members of the index's pool sync for each update.
    syncs = [label for label in labels if label.startswith("index")]
    assert sum(label.endswith("kv sync") for label in syncs) == 3 * updates


def test_the_first_bytes_of_a_put_carry_its_request() -> None:
    sent = []
    for request_bytes in (0, 1000):
        path = put_paths(request_bytes=request_bytes).compile("put", 40 << 20)
        sums = path.totals(np.ones(path.highest_role + 2, dtype=np.bool_))
        sent.append(int(sums[COUNTER_INDEX["public_net_bytes"]]))
    # At most one frame more, with its headers of less than 100 bytes.
    assert 1000 <= sent[1] - sent[0] < 1100


def test_a_put_waits_for_room_in_the_window_of_its_tails() -> None:
    # Given chunks of 4 MiB, and a window of one of them or of all
    one = scenario(
        'ops = ["put"]\nobject_sizes_bytes = ["40MiB"]\nclients = 1',
        requests=16,
        queue_depth=1,
    )
    models = build_models(one)
    latencies_ns = []
    for window_bytes in (4 << 20, 40 << 20):
        gateway = replace(models.gateway, put_window_bytes=window_bytes)
        changed = replace(models, gateway=gateway)
        row = run_cell(one, cells(one)[0], "compiled", changed).row
        latencies_ns.append(row.latency_mean_ns)
    # The client's wire takes most of the time in both.
    assert latencies_ns[0] > 1.05 * latencies_ns[1]


def test_a_list_asks_some_shards_at_a_time() -> None:
    one = scenario('ops = ["list"]\nclients = 1', requests=32, queue_depth=1)
    models = build_models(one)
    latencies_ns = {}
    for in_flight in (1, 6, 11):
        gateway = replace(models.gateway, list_in_flight_max_count=in_flight)
        changed = replace(models, gateway=gateway)
        row = run_cell(one, cells(one)[0], "compiled", changed).row
        latencies_ns[in_flight] = row.latency_mean_ns
    # Eleven shards in eleven rounds, two, or one.
    two_ns, eleven_ns = (latencies_ns[count] - latencies_ns[11] for count in (6, 1))
    assert two_ns > 0
    assert eleven_ns == pytest.approx(10 * two_ns, rel=0.3)


def test_garbage_is_data_in_a_list() -> None:
    # Without tails there is none. Two tails: their entries and the list's head on three OSDs, in blocks.
    small = totals("delete", "rep:3", 4 * MIB).totals()
    large = totals("delete", "rep:3", 12 * MIB).totals()
    model = gateway_of(scenario(""))
    entry = model.garbage_entry_bytes + 2 * model.garbage_tail_bytes
    data = 3 * (model.garbage_head_bytes + entry + 4096)
    added = [
        one["device_write_bytes"] - one["device_log_bytes"] for one in (small, large)
    ]
    assert added == [0, data]


def test_a_coded_pool_keeps_the_blocks_of_a_removed_head_until_it_rolls_forward() -> (
    None
):
    # 4 MiB under RS(4,2) are 1 MiB on each of six shards, 256 blocks. 64 KiB are 16 KiB, four blocks. The
    # onodes that are written again differ by their checksums and extents.
    model = gateway_of(scenario(""))
    logs = [
        totals("delete", "rs:4,2", size).totals()["device_log_bytes"]
        for size in (64 << 10, 4 * MIB)
    ]
    assert logs[1] - logs[0] == 6 * (256 - 4) * model.kept_block_log_bytes
    copies = [
        totals("delete", "rep:3", size).totals()["device_log_bytes"]
        for size in (64 << 10, 4 * MIB)
    ]
    assert copies[0] == copies[1]


def test_the_time_of_a_client_for_bytes_is_its_own_and_no_pause() -> None:
    spent_ns = totals("get", "rep:3", 4 * MIB).latency_by_category_ns()
    model = gateway_of(scenario(""))
    assert spent_ns["client"] == pytest.approx(
        model.client_ns_per_byte * 4 * MIB, rel=1e-3
    )


def test_the_reply_to_a_put_does_not_wait_for_the_index_to_complete() -> None:
    (one,) = explain("put", "rep:3", 4096, with_parameters=False)
    ends_ns = {step.step.label: step.step.end_ns for step in one.steps}
    completed = max(
        end_ns
        for label, end_ns in ends_ns.items()
        if label.startswith("index complete: ") and "kv sync" in label
    )
    prepared = ends_ns["index prepare: all committed"]
    written = ends_ns["head: all committed"]
    assert prepared < written < one.latency_ns < one.end_ns
    assert completed > written
    assert set(one.lanes()) == {"client", "gateway", "bucket index", "head"}
    assert sum(one.latency_by_category_ns().values()) == one.latency_ns


def test_titles_of_requests_name_what_they_have() -> None:
    titles = {
        (op, size): heading(explain(op, "rep:3", size, with_parameters=False)[0])
        for op, size in (
            ("list", 4096),
            ("head", 4096),
            ("put", 4096),
            ("put", 8 * MIB),
            ("put", 12 * MIB),
        )
    }
    # A list has no size. A head of 4 MiB leaves one or two tails.
    assert titles["list", 4096] == "3-replication: list, reef"
    assert titles["head", 4096] == "3-replication: 4 KiB head, reef"
    assert titles["put", 4096] == "3-replication: 4 KiB put, reef"
    assert titles["put", 8 * MIB].endswith("8 MiB put, reef (head and a tail object)")
    assert titles["put", 12 * MIB].endswith("(head and 2 tail objects)")


def test_a_get_reads_tails_ahead_within_the_window() -> None:
    (one,) = explain("get", "rep:3", 24 * MIB, with_parameters=False)
    starts_ns = {
        number: min(
            step.step.start_ns
            for step in one.steps
            if step.lane == f"tail {number}" and step.step.word == "use"
        )
        for number in range(1, 6)
    }
    # The window of 16 MiB holds four tails. The fifth waits until the first is on its way to the client.
    first_four = [starts_ns[number] for number in range(1, 5)]
    assert max(first_four) - min(first_four) < 1_000
    assert starts_ns[5] - max(first_four) > 100_000


def test_one_gateway_limits_the_rate_by_what_its_requests_share() -> None:
    workload = 'ops = ["get"]\nobject_sizes_bytes = ["4k"]'
    one = scenario(
        workload,
        cluster="[cluster.gateways]\ncount = 1",
        requests=4000,
        queue_depth=300,
    )
    result = ran(one)
    most_per_s = 1e9 / gateway_of(one).serial_ns
    assert result.row.iops == pytest.approx(most_per_s, rel=0.02)
    assert result.row.bottleneck == "gateway.serial"
    first, *_ = bounds_of_cell(one, cells(one)[0], build_models(one))
    assert first.iops == pytest.approx(most_per_s, rel=1e-6)


def test_the_data_that_a_gateway_has_in_flight_limits_the_rate() -> None:
    one = scenario(
        'ops = ["get"]\nobject_sizes_bytes = ["4MiB"]',
        cluster="[cluster.gateways]\ncount = 1",
        requests=400,
        queue_depth=60,
    )
    models = build_models(one)
    gateway = gateway_of(one)
    # 100 MiB are 25 operations of 4 MiB, and 100 of 1 MiB.
    assert gateway.operations_in_flight(4 * MIB) == 25
    assert gateway.operations_in_flight(MIB) == 100
    tight = replace(models, gateway=replace(gateway, budget_bytes=4 * MIB))
    # With one operation in flight, transfers from the drive and over the wire follow one another.
    wire_ns = 4 * MIB * 8 / one.cluster.public_gbit_per_s
    alone_ns = models.ssd.link_ns_per_byte * 4 * MIB + wire_ns
    (cell,) = cells(one)
    assert run_cell(one, cell, "compiled", tight).row.iops < 1e9 / alone_ns
    assert ran(one).row.iops > 1e9 / alone_ns


def test_deferred_data_of_new_objects_are_written_to_a_disk_side_by_side() -> None:
    one = scenario(
        'ops = ["put"]\nobject_sizes_bytes = ["16k"]',
        cluster='drive = "hdd-7200-nvme-db"',
    )
    result = ran(one)
    models = build_models(one)
    assert isinstance(models.ssd, HddModel)
    assert models.deferral is not None
    disk = models.ssd
    position_ns = disk.write_mean_seek_ns + disk.rotation_ns / 2
    each_ns = (
        position_ns / models.deferral.deferred_batch_count
        + disk.write_ns_per_byte * 16 * KIB
    )
    arms = built(one).pool.cluster.resources.numbered_kinds.are("ssd")
    # 60 objects have 180 copies. Times vary by seek and rotation.
    assert result.engine_run.busy_ns[arms].sum() == pytest.approx(
        180 * each_ns, rel=0.15
    )


def test_gateways_of_their_own_have_cores_and_networks() -> None:
    workload = 'ops = ["get"]\nobject_sizes_bytes = ["4MiB"]'
    apart = '[cluster.gateways]\ncount = 2\nplace = "own"\ncores = 8'
    result = ran(scenario(workload, cluster=apart))
    kinds = {use.kind for use in result.resources if use.utilisation > 0}
    assert {"gateway.cpu", "gateway.tx", "gateway.rx"} <= kinds


def test_one_client_uses_all_gateways_in_turn() -> None:
    workload = 'ops = ["get"]\nobject_sizes_bytes = ["4k"]'
    # The requests are a multiple of the gateways.
    text = scenario(workload, cluster="[cluster.gateways]\ncount = 5", requests=65)
    result = ran(text)
    pool = built(text).pool
    serial = pool.cluster.resources.numbered_kinds.are("gateway.serial")
    busy_ns = result.engine_run.busy_ns[serial]
    assert len(busy_ns) == 5
    assert len(set(busy_ns.tolist())) == 1


@pytest.mark.parametrize("lost", [0, 2])
def test_bounds_count_groups_with_and_without_all_their_members(lost: int) -> None:
    # Given one of eight hosts away, so that some groups have three copies and others two. The first place is
    # in groups of two, which demand two thirds of the mean of the network.
    one = parse_scenario(
        'schemes = ["rep:3"]\n[cluster]\nhosts = 8\nosds_per_host = 2\npg_num = 64\n'
        f"[degraded]\nmissing_osds = [{2 * lost}, {2 * lost + 1}]\n"
        '[workload]\nkind = "s3"\nops = ["put"]\nobject_sizes_bytes = ["64k"]\nrequests = 2000\n'
        "queue_depth = 4\n"
    )
    inputs = built(one)
    pool = inputs.pool
    kinds = pool.cluster.resources.numbered_kinds
    busy_ns = ran(one).engine_run.busy_ns[kinds.are("private.tx")].sum() / 2000

    stations = demands_of(
        pool, [Mix(workload=inputs.workload)], np.ones(pool.cluster.groups)
    )

    (sends,) = [one for one in stations if one.kind == "private.tx"]
    assert sends.demand_ns == pytest.approx(busy_ns, rel=0.02)


@pytest.mark.parametrize("gateways", [3, 5, 6, 8])
@pytest.mark.parametrize("clients", [1, 4, 10])
def test_all_gateways_get_equally_many_requests(gateways: int, clients: int) -> None:
    # Given 120 requests for each gateway. With four clients that used two of five gateways each, three
    # gateways had two clients and two had one.
    workload = f'ops = ["head"]\nobject_sizes_bytes = ["4k"]\nclients = {clients}'
    one = scenario(
        workload,
        cluster=f"[cluster.gateways]\ncount = {gateways}",
        requests=120 * gateways * clients,
    )
    pool = built(one).pool
    result = ran(one)

    serial = pool.cluster.resources.numbered_kinds.are("gateway.serial")
    busy_ns = result.engine_run.busy_ns[serial]
    assert busy_ns == pytest.approx(busy_ns.mean(), rel=0.1)
    # They sustain as many times the rate of one.
    bounds = bounds_of_cell(one, cells(one)[0], build_models(one))
    shared = next(bound for bound in bounds if "shared state" in bound.resource)
    assert shared.iops == pytest.approx(gateways * 1e9 / gateway_of(one).serial_ns)


def test_capacity_follows_from_the_sizes_of_objects() -> None:
    one = scenario(
        'object_sizes_bytes = ["4k", "4MiB"]\nsize_shares = [3, 1]', '["rs:4,2"]'
    )
    models = build_models(one)
    pool = built(one).pool
    # 4 KiB take a stripe of six chunks, 4 MiB take 256 stripes.
    assert stored_object_bytes(pool, 4 * KIB) == 6 * 4 * KIB
    assert stored_object_bytes(pool, 4 * MIB) == 6 * MIB
    held = capacity_of(one, "rs:4,2", models, drives_of(one, models))
    per_byte = (3 * 24 * KIB + 6 * MIB) / (3 * 4 * KIB + 4 * MIB)
    assert held.stored_per_client_byte == pytest.approx(per_byte)
    assert held.usable_bytes_full == pytest.approx(
        held.raw_bytes * 0.95 / (per_byte * held.imbalance)
    )


def test_parts_of_an_upload_are_padded_each() -> None:
    one = scenario(
        'ops = ["put"]\nobject_sizes_bytes = ["12MiB"]\nmultipart_threshold_bytes = "8MiB"\n'
        'part_size_bytes = "5MiB"',
        '["rs:6,2"]',
        "stripe_unit_bytes = 65536",
    )
    models = build_models(one)
    held = capacity_of(one, "rs:6,2", models, drives_of(one, models))
    # A stripe is 384 KiB. A part of 5 MiB is a chunk of 10 stripes and 1.25 MiB in 4 stripes, the last one of
    # 2 MiB takes 6 stripes: 34 stripes of 8 chunks. The whole object would take 32 stripes.
    stored_bytes = 34 * 8 * 64 * KIB
    assert held.stored_per_client_byte == stored_bytes / (12 * MIB)
    assert ran(one).row.device_data_write_bytes_per_client_byte == pytest.approx(
        held.stored_per_client_byte
    )
    # A rebuild moves these 5 objects, too: 2.4 MiB on average, in units of 4 KiB.
    assert recovered_objects(one, cells(one)[0], built(one).pool) == (
        5 * one.workload.objects,
        2460 * KIB,
    )
    assert one.workload.rados_object_bytes == 2460 * KIB


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            'ops = ["write"]',
            'workload.ops: got "write" ... put, get, head, list, delete',
        ),
        ("op_shares = [1]", "workload.op_shares: got 1 ... 2"),
        ("size_shares = [1, 2]", "workload.size_shares: got 2 ... 1"),
        (
            'block_sizes_bytes = ["4k"]',
            "workload.block_sizes_bytes: got 4KiB ... object_sizes_bytes",
        ),
        (
            "buckets = 100000\nindex_shards = 2",
            "workload.buckets: got 200,000 ... 100,000",
        ),
        ('image = "pristine"', 'workload.image: got "pristine" ... prefilled'),
        ("read_fraction = 0.5", "workload.read_fraction: got 0.5 ... op_shares"),
    ],
)
def test_wrong_keys_of_a_load_on_buckets_are_named(text, says) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(text)
    assert states(str(caught.value), says)


def test_what_a_workload_of_objects_returns_is_checked(monkeypatch) -> None:
    cell = built(scenario('ops = ["put"]'))
    stream = cell.workload
    planner = S3Planner(cell.pool, cell.pool.book(), stream)
    monkeypatch.setattr(stream, "take", lambda _: None)

    with pytest.raises(ProblemsError) as caught:
        planner.take(1)

    assert states(str(caught.value), "workload: take: got None ... S3Requests")


def test_rebuilds_move_objects_of_the_size_of_those_in_buckets() -> None:
    sizes = 'object_sizes_bytes = ["64k"]'
    small = idle_rebuild(scenario(sizes), "rep:3", sample_objects=40)
    large = idle_rebuild(
        scenario('object_sizes_bytes = ["8MiB"]'), "rep:3", sample_objects=40
    )
    assert small.lost_bytes == small.objects * 64 * KIB
    # Heads and tails of 4 MiB.
    assert large.lost_bytes == large.objects * 4 * MIB


@pytest.mark.usefixtures("quick_figures")
def test_a_report_and_a_sweep_show_objects(tmp_path, command) -> None:
    (tmp_path / "s3.toml").write_text(
        f'schemes = ["rep:3"]\n{CLUSTER}\n[workload]\nkind = "s3"\nrequests = 120\nqueue_depth = 2\n'
        'object_sizes_bytes = ["4k", "64k"]\n',
        encoding="utf-8",
    )
    path = str(tmp_path / "s3.toml")
    status, out, _ = command("run", path, "--no-costs", "--out", str(tmp_path / "out"))
    assert status == 0
    assert "Usable capacity for objects of these sizes" in out
    assert (tmp_path / "out" / "headline.png").exists()
    over = ("--over", "workload.queue_depth=1,2", "--jobs", "1")
    status, out, _ = command("sweep", path, *over, "--json", "-")
    assert status == 0
    # Two depths, two operations and two sizes.
    assert len(json.loads(out)["rows"]) == 8


@pytest.mark.parametrize(
    ("size", "parts"),
    [("64k", ""), ("20MiB", 'multipart_threshold_bytes = "8MiB"')],
)
def test_the_latency_of_objects_is_split_into_steps(size, parts) -> None:
    one = scenario(
        f'ops = ["put", "get"]\nobject_sizes_bytes = ["{size}"]\nobjects = 1000\n{parts}'
    )
    for row in run_scenario(one, costs=True).rows.to_dicts():
        spent_ns = sum(row[key] for key in COST_KEYS)
        assert spent_ns == pytest.approx(row["cost_latency_mean_ns"])
        # Client and gateway take most of the time of one request.
        assert row["cost_client_ns"] > 0


@pytest.mark.parametrize(("part", "next_in_flight"), [(0.98, 512), (0.5, 1024)])
def test_a_curve_of_mixed_sizes_needs_no_more_in_flight_near_its_bound(
    part, next_in_flight
) -> None:
    # Small objects pass large ones that wait for the gateway's data in flight, so a loop with many requests
    # in flight serves more than the bound for long, and the audit refuses it.
    one = scenario(
        'ops = ["get"]\nobject_sizes_bytes = ["4k", "1MiB"]\nsize_shares = [9, 1]\n',
        cluster="[cluster.gateways]\ncount = 1\n",
    )
    (builder,) = curve_builders(one, CurveSettings(replications=2, requests=300))
    batches = builder.runs()
    (first,) = next(batches)
    assert first.in_flight == 512
    assert first.requests >= 60 * first.in_flight
    bound = bounds_of(one, "rep:3")[0]
    measured = RateMeasurement(
        offered_iops=part * bound.iops,
        iops=part * bound.iops,
        latency_mean_ns=1e6,
        latency_p50_ns=1e6,
        latency_p99_ns=1e6,
        growth=1.0,
        tail_growth=1.0,
        bottleneck="gateway.messenger",
    )
    (following,) = batches.send([measured])
    assert following.in_flight == next_in_flight


def test_a_load_curve_of_objects_has_fewer_requests_than_one_of_images() -> None:
    # Runs as long as those of images take a minute for each curve, and each size is a curve.
    (builder,) = curve_builders(
        scenario('ops = ["put"]\nobject_sizes_bytes = ["4k"]'), CurveSettings()
    )
    assert builder.requests == 2000


def test_parts_of_an_upload_move_the_bytes_of_the_object() -> None:
    one = scenario(
        'ops = ["put", "get"]\nobject_sizes_bytes = ["40MiB"]\n'
        'multipart_threshold_bytes = "16MiB"',
    )
    put, get = ran(one, 0), ran(one, 1)
    assert put.row.device_data_write_bytes_per_client_byte == 3
    assert get.row.device_read_bytes_per_client_byte == 1
    # Parts of 16, 16 and 8 MiB, and the completion.
    owners = put.foreground.planned.owners
    assert np.bincount(owners).tolist()[:3] == [4, 4, 4]
    assert set(put.requested.lengths_bytes.tolist()) == {40 * MIB}
    assert ran(one, 0, "simpy").sha256 == put.sha256


def test_objects_too_large_for_one_graph_are_refused() -> None:
    one = scenario('ops = ["put"]\nobject_sizes_bytes = ["1GiB"]', requests=2)
    with pytest.raises(ScenarioError) as caught:
        ran(one)
    assert states(str(caught.value), "workload.object_sizes_bytes: got 1GiB ... 16384")


def test_a_list_of_too_many_index_shards_is_refused_by_their_number() -> None:
    # 20 steps for each of 1,024 shards, and 18 for the others.
    one = scenario('ops = ["list"]\nbuckets = 1\nindex_shards = 1024', requests=2)
    with pytest.raises(ScenarioError) as caught:
        ran(one)
    said = "workload.index_shards: got 1024 with rep:3, which takes 20498 steps ... fewer index shards"
    assert states(str(caught.value), said)
    with pytest.raises(ScenarioError) as caught:
        explain("list", "rep:3", scenario=one)
    assert states(str(caught.value), said)


def test_keys_of_buckets_need_kind_s3() -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario('schemes = ["rep:3"]\n[workload]\nrequests = 1\nbuckets = 4')
    assert states(str(caught.value), 'workload.buckets: got 4 ... kind = "s3"')


def test_a_set_without_gateways_is_refused() -> None:
    one = scenario("", cluster='parameters = "pacific"')
    with pytest.raises(ScenarioError) as caught:
        build_models(one)
    assert states(str(caught.value), 'cluster.parameters: got "pacific" ... nvme')


def test_an_embedded_path_takes_as_long_as_alone() -> None:
    inner = GraphBuilder("inner")
    first = inner.use(0, 100, after=[inner.issue], label="first")
    second = inner.use(1, 50, after=[inner.issue], label="second")
    path = inner.finish(reply=inner.join([first, second]))
    outer = GraphBuilder("outer")
    begun = outer.use(2, 10, after=[outer.issue], label="begun")
    reply = outer.embed(path, after=[begun], roles=[5, 6], label="part")
    whole = outer.finish(reply=reply)
    assert whole.roles.tolist() == [-1, 2, 5, 6, -1]
    assert whole.demands_ns.tolist() == [0, 10, 100, 50, 0]
    assert whole.labels[2] == "part: first"
    assert np.array_equal(whole.predecessors, [0, 1, 1, 1, 2])


def gets_from_disks(requests, queue_depth):
    return scenario(
        'ops = ["get"]\nobject_sizes_bytes = ["4k"]',
        '["rep:3"]',
        cluster='drive = "hdd-7200-nvme-db"',
        requests=requests,
        queue_depth=queue_depth,
    )


def test_disks_sort_the_reads_that_wait_at_them() -> None:
    # Given many GETs at three OSDs, which have one disk and five threads that wait for their reads
    many = gets_from_disks(requests=3000, queue_depth=192).with_cluster(
        hosts=3, osds_per_host=1, pg_num=512
    )
    disk = build_models(many).ssd
    assert isinstance(disk, HddModel)
    # Then a disk that has ended one read has those of four threads to choose from: 0.66 × 11.6 ms, by hand.
    assert disk.position_factors[3] == pytest.approx(0.657, abs=0.001)
    each_ns = 0.657 * disk.read_position_ns + disk.continued_read_ns(4096)
    run = run_cell(many, cells(many)[0], "compiled", unchecked=True).engine_run
    arms = built(many).pool.cluster.resources.numbered_kinds.are("ssd")
    assert run.busy_ns[arms].sum() / 3000 == pytest.approx(each_ns, rel=0.05)
    # The bound is that of these four, at the disk with most of the GETs.
    drives = bounds_of(many, "rep:3")[0]
    assert drives.resource == "drives"
    assert f"{each_ns / 1e6:.3g} ms of service per request" in drives.why
    # Of one read at a time there is nothing to sort.
    one = gets_from_disks(requests=500, queue_depth=1)
    arms = built(one).pool.cluster.resources.numbered_kinds.are("ssd")
    alone_ns = ran(one).engine_run.busy_ns[arms].sum() / 500
    assert alone_ns == pytest.approx(disk.read_ns(4096), rel=0.05)


def test_the_bound_of_disks_with_writes_is_kept() -> None:
    # Waiting writes count in the queue that shortens a read, but it sorts no more than the reads of threads.
    both = scenario(
        'ops = ["get", "put"]\nobject_sizes_bytes = ["4k"]',
        '["rep:3"]',
        cluster='drive = "hdd-7200-nvme-db"',
    )
    result = run_cell(both, cells(both)[0], "compiled", unchecked=True)
    assert result.row.iops <= bounds_of(both, "rep:3")[0].iops


def test_latencies_at_disks_that_sort_are_split_by_step() -> None:
    # Given GETs that wait at disks, so that a second run must have their times
    many = gets_from_disks(requests=3000, queue_depth=64)
    (row,) = run_scenario(many, costs=True).rows.to_dicts()
    parts_ns = sum(row[key] for key in COST_KEYS)
    assert parts_ns == pytest.approx(row["cost_latency_mean_ns"])


@pytest.mark.parametrize(
    ("op", "objects", "told"),
    [("get", 1000, True), ("put", 1000, False), ("get", 1_000_000, False)],
)
def test_gets_warn_of_read_caches_that_they_leave_out(op, objects, told):
    # Six OSDs have 6 GB of read caches: more than 1,000 objects of 4 MiB, and 0.14 % of a million.
    asked = parse_scenario(
        'schemes = ["rep:3"]\n[cluster]\nhosts = 3\nosds_per_host = 2\npg_num = 32\n'
        '[workload]\nkind = "s3"\nobject_sizes_bytes = ["4MiB"]\nrequests = 10\n'
        f'ops = ["{op}"]\nobjects = {objects}\n'
    )
    models = build_models(asked)
    store = replace(models.store, read_cache_bytes=10**9)
    found = scenario_warnings(asked, replace(models, store=store))
    assert any("read caches of the OSDs (6 GB" in line for line in found) == told


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            'failure_domain_replicated = "rack"\n',
            r'failure_domain_replicated: got "rack", wanted cluster.racks, too',
        ),
        (
            "hosts = 2\n",
            r"gateways.index_scheme: got rep:3 \(3 shards\) with failure_domain host \(2 hosts\)",
        ),
    ],
)
def test_bucket_indexes_need_failure_domains_too(keys, said):
    # Given data that need no more than two hosts
    with pytest.raises(ScenarioError, match=said):
        parse_scenario(
            f'schemes = ["rs:1,1"]\n[cluster]\nosds_per_host = 4\n{keys}'
            '[workload]\nkind = "s3"\nrequests = 10\n'
        )


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ('block_sizes_bytes = ["4k"]', "workload.object_sizes_bytes"),
        ('patterns = ["seq"]', "no such key"),
        ('image_bytes = "1GB"', "workload.objects"),
        ('part_size_bytes = "8MiB"', "workload.multipart_threshold_bytes, too"),
    ],
)
def test_keys_of_images_are_refused_and_not_ignored(key, wanted):
    # Given objects of 64 KiB, and a key that says something else of images
    with pytest.raises(ScenarioError) as caught:
        scenario(f'object_sizes_bytes = ["64k"]\n{key}')
    (fault,) = caught.value.faults
    assert f"workload.{key.split()[0]}" in fault
    assert wanted in fault


def test_keys_of_images_in_a_file_do_not_matter_once_its_kind_is_overridden():
    text = (
        'schemes = ["rep:3"]\n[workload]\nrequests = 10\nblock_sizes_bytes = ["4k"]\n'
        'patterns = ["seq"]\nimage_bytes = "1GB"\n'
    )
    sets = ["workload.kind=s3", "workload.object_sizes_bytes=64k"]
    assert parse_scenario(text, sets=sets).workload.is_s3
    # One size must be stated, and nothing beside the kind may be of images.
    for more in (sets[:1], [*sets, "workload.patterns=seq"]):
        with pytest.raises(ScenarioError, match=r"workload\.(block|patterns)"):
            parse_scenario(text, sets=more)


def test_a_flag_wants_true_or_false():
    with pytest.raises(ScenarioError, match="tls: got 1, wanted true or false"):
        scenario("tls = 1")


def test_a_single_share_is_called_one_value():
    with pytest.raises(ScenarioError, match="op_shares: got 1 value, wanted 2"):
        scenario('ops = ["put", "get"]\nop_shares = [1]')
