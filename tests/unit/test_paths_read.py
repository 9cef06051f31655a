"""The read, counted by hand: one replica, or whole stripes gathered at the primary."""

from dataclasses import fields, replace

import pytest

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.cpu import CpuModel
from stripesim.models.object_store.metadata_cache import MetadataLookup
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths import bare_path, direct_read_path, read_path
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.paths.store import ssd_chain
from stripesim.sim.ceph.qos.op_queue import CLIENT, mclock
from stripesim.sim.engine.graph import COUNTER_INDEX
from stripesim.sim.engine.graph_builder import GraphBuilder

KIB = 1024
MIB = 1 << 20
DISK = ParameterSet("hdd-7200").device()
CODES = [("rs:6,3", 6, 3), ("rs:10,4", 10, 4)]


def traffic(nic, *sizes_bytes):
    return sum(nic.traffic_bytes(size) for size in sizes_bytes)


def read(
    make_context,
    models,
    scheme,
    *,
    offset=0,
    length=4 * KIB,
    size=4 * MIB,
    head=0,
    tail=0,
    **found,
):
    return read_path(
        make_context(models, scheme, **found),
        offset_bytes=offset,
        length_bytes=length,
        object_size_bytes=size,
        cached_head_bytes=head,
        cached_tail_bytes=tail,
    )


def sub_read_bytes(models, payload_bytes):
    sizes = models.messages
    return traffic(
        models.private_nic,
        sizes.sub_read_request_bytes,
        sizes.sub_read_reply_header_bytes + payload_bytes,
    )


def public_bytes(models, payload_bytes):
    sizes = models.messages
    return traffic(
        models.public_nic, sizes.request_header_bytes, sizes.reply_bytes + payload_bytes
    )


def test_a_replica_is_read_once_and_stays_off_the_private_network(
    models, make_context, counted
):
    found = counted(read(make_context, models, "rep:3"), 3)
    assert found["device_read_bytes"] == 4 * KIB
    assert (
        found["device_write_bytes"]
        == found["private_net_bytes"]
        == found["encode_bytes"]
        == 0
    )
    assert found["public_net_bytes"] == public_bytes(models, 4 * KIB)
    assert found["messages"] == 2


@pytest.mark.parametrize(
    ("offset", "length", "device"),
    [(0, KIB, 4), (3 * KIB, 2 * KIB, 8), (4 * KIB, 4 * KIB, 4), (KIB, 128 * KIB, 132)],
)
def test_a_replica_reads_whole_units_and_returns_the_requested_bytes(
    models, make_context, counted, offset, length, device
):
    found = counted(
        read(make_context, models, "rep:3", offset=offset, length=length), 3
    )
    assert found["device_read_bytes"] == device * KIB
    assert found["public_net_bytes"] == public_bytes(models, length)


@pytest.mark.parametrize(("scheme", "k", "m"), CODES)
@pytest.mark.parametrize("length", [KIB, 4 * KIB])
def test_a_small_read_of_a_code_moves_its_whole_stripe(
    models, make_context, counted, scheme, k, m, length
):
    found = counted(read(make_context, models, scheme, length=length), k + m)
    # 6 and 10 times the device bytes of a 4 KiB read.
    assert found["device_read_bytes"] == k * 4 * KIB
    assert found["private_net_bytes"] == (k - 1) * sub_read_bytes(models, 4 * KIB)
    assert found["public_net_bytes"] == public_bytes(models, length)
    assert found["encode_bytes"] == found["device_write_bytes"] == 0
    assert found["messages"] == 2 + 2 * (k - 1)


@pytest.mark.parametrize(("scheme", "k", "m"), CODES)
def test_a_read_across_two_stripes_moves_both(
    models, make_context, counted, scheme, k, m
):
    found = counted(
        read(make_context, models, scheme, offset=(k - 1) * 4 * KIB, length=8 * KIB),
        k + m,
    )
    assert found["device_read_bytes"] == 2 * k * 4 * KIB
    assert found["private_net_bytes"] == (k - 1) * sub_read_bytes(models, 8 * KIB)


@pytest.mark.parametrize("scheme", ["rep:3", "rs:6,3"])
def test_reading_unwritten_data_touches_no_device(
    models, make_context, counted, scheme
):
    width = 3 if scheme == "rep:3" else 9
    found = counted(read(make_context, models, scheme, size=0), width)
    assert found["device_read_bytes"] == found["private_net_bytes"] == 0
    assert found["public_net_bytes"] == public_bytes(models, 0)


def test_a_read_past_the_end_returns_the_existing_bytes(models, make_context, counted):
    found = counted(
        read(make_context, models, "rep:3", length=16 * KIB, size=6 * KIB), 3
    )
    assert found["device_read_bytes"] == 8 * KIB
    assert found["public_net_bytes"] == public_bytes(models, 6 * KIB)


@pytest.mark.parametrize(
    ("scheme", "missing", "primary"),
    [("rs:6,3", {1}, 0), ("rs:6,3", {0, 1, 2}, 3), ("rs:10,4", {4}, 0)],
)
def test_a_degraded_read_takes_any_k_shards_and_decodes(
    models, make_context, counted, scheme, missing, primary
):
    k = 6 if scheme == "rs:6,3" else 10
    width = 9 if k == 6 else 14
    found = counted(
        read(make_context, models, scheme, missing=missing, primary=primary), width
    )
    assert found["device_read_bytes"] == k * 4 * KIB
    assert found["private_net_bytes"] == (k - 1) * sub_read_bytes(models, 4 * KIB)
    assert found["encode_bytes"] == k * 4 * KIB


def test_losing_parity_does_not_change_a_read(models, make_context, counted):
    whole, degraded = (
        counted(read(make_context, models, "rs:6,3", missing=lost), 9)
        for lost in ((), {7, 8})
    )
    assert whole == degraded


def test_a_degraded_replica_is_read_from_the_next_one(models, make_context, counted):
    path = read(make_context, models, "rep:3", missing={0}, primary=1)
    used = {roles.role_name(role) for role in path.roles.tolist()}
    assert "shard[1].ssd" in used and "shard[0].ssd" not in used
    assert counted(path, 3)["device_read_bytes"] == 4 * KIB


def test_a_primary_that_holds_parity_gathers_all_k_chunks_over_the_wire(
    models, make_context, counted
):
    found = counted(read(make_context, models, "rs:6,3", primary=8), 9)
    assert found["private_net_bytes"] == 6 * sub_read_bytes(models, 4 * KIB)


def no_cpu(**numbers):
    kept = ("cores_per_host", "user_fraction", "provenance")
    return {
        field.name: 0 for field in fields(CpuModel) if field.name not in kept
    } | numbers


# How often one read pays each term. Messages: one side of the client's two; rs:6,3: 5 sub-reads and 5
# answers, both sides of each, and the acknowledgement of each at its sender.
@pytest.mark.parametrize(
    ("term", "replicated", "gathered"),
    [
        ("message_base_ns", 2, 2 + 3 * 10),
        ("op_prepare_ns", 1, 1),
        ("sub_op_send_ns", 0, 5),
        ("sub_op_prepare_ns", 0, 5),
        ("sub_reply_ns", 0, 5),
        ("store_read_ns", 1, 6),
        ("store_transaction_ns", 0, 0),
        ("kv_transaction_ns", 0, 0),
        ("op_finish_ns", 0, 1),
    ],
)
def test_each_term_of_processor_time_alone(
    models, change, make_context, counted, term, replicated, gathered
):
    only = change(models, cpu=no_cpu(**{term: 1000}))
    assert counted(read(make_context, only, "rep:3"), 3)["cpu_ns"] == 1000 * replicated
    assert counted(read(make_context, only, "rs:6,3"), 9)["cpu_ns"] == 1000 * gathered


@pytest.mark.parametrize("erasures", [1, 2, 3])
def test_decoding_costs_follow_the_kernel_table(
    models, change, make_context, counted, erasures
):
    idle = change(models, cpu=no_cpu())
    lost = set(range(1, 1 + erasures))
    for stripes in (1, 2):
        found = counted(
            read(make_context, idle, "rs:6,3", missing=lost, length=stripes * 24 * KIB),
            9,
        )
        assert found["cpu_ns"] == round(
            stripes * idle.decode_ns("rs:6,3", 24 * KIB, erasures)
        )


def test_a_look_up_that_misses_once_in_four_takes_a_quarter_of_a_read(
    models, change, make_context, counted
):
    # Given a device that reads 8 KiB in 1,000 + 8,192 ns, and data in the cache
    timed = change(models, ssd={"read_base_ns": 1000, "read_ns_per_byte": 1})
    missed = replace(timed, lookup=MetadataLookup(miss_fraction=1 / 4, read_bytes=8192))
    path = read(make_context, missed, "rep:3", head=4 * KIB)
    assert path.demands_ns[path.labels.index("metadata read")] == 250 + 2048
    assert counted(path, 3)["device_read_bytes"] == 2048


def positions_of(path, label):
    """Return the time for which a disk positions its head in each step with a label [ns]."""
    return [
        int(position_ns)
        for position_ns, name in zip(
            path.dynamics.positions_ns, path.labels, strict=True
        )
        if name == label
    ]


def test_a_disk_positions_its_head_for_a_look_up_as_often_as_one_misses(
    models, make_context
):
    # Given data of which a part is on the disk, and metadata that miss once in four times
    missed = replace(models, ssd=DISK, lookup=MetadataLookup(1 / 4, 8192))
    path = read(make_context, missed, "rep:3")
    assert positions_of(path, "drive read") == [round(DISK.read_position_ns)]
    assert positions_of(path, "metadata read") == [round(DISK.read_position_ns / 4)]


def test_a_disk_positions_its_head_once_for_the_pieces_of_an_object(
    models, make_context
):
    # Given three pieces of one object, read one after another
    on_disk = replace(models, ssd=DISK)
    graph = GraphBuilder("chain")
    stage = Stage(graph, make_context(on_disk, "rs:6,3"))
    sizes_bytes = [8 * KIB, 4 * KIB, 4 * KIB]
    path = graph.finish(reply=ssd_chain(stage, 1, sizes_bytes, graph.issue))
    positions = positions_of(path, "drive read")
    assert positions == [round(DISK.read_position_ns), 0, 0]
    # The head seeks to the next track between pieces.
    demands = path.demands_ns[[name == "drive read" for name in path.labels]]
    assert demands.tolist() == [
        round(DISK.read_ns(8 * KIB)),
        *[round(DISK.read_next_ns(4 * KIB))] * 2,
    ]


@pytest.mark.parametrize("extra", [1, 2])
def test_a_read_of_further_shards_sends_and_decodes_for_as_many(
    models, change, make_context, extra
):
    # Given a primary whose only work is to send requests, each for 1,000 ns, and to decode
    asking = replace(change(models, cpu=no_cpu(sub_op_send_ns=1000)), extra_reads=extra)
    path = read(make_context, asking, "rs:4,2", length=16 * KIB)
    # It has one of four shards itself, and decodes as many as may be late.
    dispatch = path.demands_ns[path.labels.index("dispatch")]
    assert dispatch == (3 + extra) * 1000
    coding_ns = path.amounts[:, COUNTER_INDEX["coding_ns"]]
    assert coding_ns.max() == round(asking.decode_ns("rs:4,2", 16 * KIB, extra))


@pytest.mark.parametrize(
    ("head", "tail", "device"), [(0, 0, 24), (4, 0, 20), (4, 8, 12), (0, 24, 0)]
)
def test_a_read_of_chunks_leaves_out_those_that_are_cached(
    models, make_context, counted, head, tail, device
):
    # Given a release that reads only the chunks that hold wanted bytes, and a stripe of six
    of_chunks = replace(models, ec=replace(models.ec, reads="chunks"))
    values = {"length": 24 * KIB, "head": head * KIB, "tail": tail * KIB}
    path = read(make_context, of_chunks, "rs:6,3", **values)
    assert counted(path, 9)["device_read_bytes"] == device * KIB


@pytest.mark.parametrize(
    ("head", "tail", "device"), [(0, 0, 16), (4, 0, 12), (4, 8, 4), (16, 0, 0)]
)
def test_cached_data_is_not_read_again(
    models, make_context, counted, head, tail, device
):
    values = {"length": 16 * KIB, "head": head * KIB, "tail": tail * KIB}
    assert (
        counted(read(make_context, models, "rep:3", **values), 3)["device_read_bytes"]
        == device * KIB
    )
    # A gather subtracts it at each of its sources: four stripes are 16 KiB on each of six shards.
    values["length"] = 4 * 24 * KIB
    assert (
        counted(read(make_context, models, "rs:6,3", **values), 9)["device_read_bytes"]
        == 6 * device * KIB
    )


@pytest.mark.parametrize("scheme", ["rep:3", "rs:6,3"])
def test_the_scope_of_the_lock(models, change, make_context, scheme):
    paths = {
        scope: read(make_context, change(models, pg_lock={"scope": scope}), scheme)
        for scope in ("commit", "dispatch", "none")
    }
    assert roles.PG_LOCK not in paths["none"].roles
    if scheme == "rep:3":
        # A replica's read is synchronous: processing it is all of it.
        assert paths["commit"].labels == paths["dispatch"].labels
        return
    last = {
        scope: max(
            step
            for step, role in enumerate(paths[scope].roles.tolist())
            if role == roles.PG_LOCK
        )
        for scope in ("commit", "dispatch")
    }
    first_device = {
        scope: min(
            step
            for step, label in enumerate(paths[scope].labels)
            if label == "drive read"
        )
        for scope in ("commit", "dispatch")
    }
    assert last["commit"] > first_device["commit"]
    assert last["dispatch"] < first_device["dispatch"]


@pytest.mark.parametrize(("length", "blocks"), [(KIB, 4), (4 * KIB, 4), (5 * KIB, 8)])
def test_a_bare_device_moves_blocks_and_nothing_else(
    models, make_context, counted, length, blocks
):
    context = make_context(models, "none")
    for write in (False, True):
        path = bare_path(
            context, write=write, length_bytes=length, device_bytes=blocks * KIB
        )
        found = counted(path, 1)
        moved = "device_write" if write else "device_read"
        assert {name: amount for name, amount in found.items() if amount} == {
            f"{moved}_bytes": blocks * KIB,
            f"{moved}_ops": 1,
        }


def test_a_bare_read_from_the_host_cache_touches_no_device(
    models, make_context, counted
):
    path = bare_path(
        make_context(models, "none"), write=False, length_bytes=KIB, device_bytes=0
    )
    assert not any(counted(path, 1).values())
    assert path.reply > 0


@pytest.mark.parametrize("length", [4 * KIB, 64 * KIB])
def test_a_direct_read_costs_its_client_what_a_read_through_the_primary_costs(
    models, make_context, length
):
    models = replace(models, client=replace(models.client, submit_ns_per_byte=0.5))
    extent = {"offset_bytes": 0, "length_bytes": length, "object_size_bytes": 4 * MIB}
    context = make_context(models, "rs:6,3")
    submissions = []
    for path in (read_path, direct_read_path):
        template = path(context, **extent)
        step = template.labels.index("client submits")
        submissions.append(template.demands_ns[step])
    assert submissions[0] == submissions[1]


def test_every_part_of_a_direct_read_waits_with_the_operations_of_clients(
    models, make_context, monkeypatch
):
    classes = []
    monkeypatch.setattr(
        GraphBuilder,
        "in_class",
        lambda self, step, number, cost: classes.append(number),
    )
    shared = replace(models, op_queue=mclock("squid", "balanced", queues=8))
    direct_read_path(
        make_context(shared, "rs:6,3"),
        offset_bytes=0,
        length_bytes=24 * KIB,
        object_size_bytes=4 * MIB,
    )
    # Six shards, of which the first is the primary's.
    assert classes == [CLIENT] * 6
