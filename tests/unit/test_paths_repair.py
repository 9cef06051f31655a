"""The repair of one object counted by hand, repairs after two losses, and OSDs that stay down."""

from dataclasses import replace

import numpy as np
import pytest

from stripesim.calibration.kernels.store import shipped_table
from stripesim.models.generations import recovery_model
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures import Corruption, Failure, FaultPlan
from stripesim.sim.ceph.paths import (
    move_path,
    repair_path,
    rounds_bytes,
    scrub_path,
)
from stripesim.sim.ceph.qos import BEST_EFFORT, IMMEDIATE, RECOVERY, mclock, wpq
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.run import simulate

KIB = 1024
MIB = 1 << 20


def traffic(nic, *sizes_bytes):
    return sum(nic.traffic_bytes(size) for size in sizes_bytes)


def repair(make_context, models, scheme, lost, *, size=4 * MIB, **found):
    context = make_context(models, scheme, **found)
    rounds = rounds_bytes(
        size, context.recovery_chunk_bytes, context.geometry.stripe_bytes
    )
    return repair_path(context, lost=lost, sizes_bytes=rounds)


@pytest.mark.parametrize(
    ("scheme", "k", "width"), [("rs:6,3", 6, 9), ("rs:10,4", 10, 14), ("rs:4,2", 4, 6)]
)
def test_a_code_reads_k_chunks_and_writes_one(
    models, make_context, counted, scheme, k, width
):
    # The last stripe is padded, so a shard is a whole number of chunks.
    shard = -(-4 * MIB // (k * 4 * KIB)) * 4 * KIB
    found = counted(repair(make_context, models, scheme, [width - 1]), width)
    assert found["device_read_bytes"] == k * shard
    assert found["device_write_bytes"] == shard + models.store.metadata_bytes
    sizes = models.messages
    reads = traffic(
        models.private_nic,
        sizes.sub_read_request_bytes,
        sizes.sub_read_reply_header_bytes + shard,
    )
    push = traffic(
        models.private_nic, sizes.sub_write_header_bytes + shard, sizes.sub_reply_bytes
    )
    # The primary is one of the k sources; the target is another host.
    assert found["private_net_bytes"] == (k - 1) * reads + push
    assert found["public_net_bytes"] == 0
    assert found["encode_bytes"] == shard * k


def test_a_copy_is_read_once_and_pushed(models, make_context, counted):
    found = counted(repair(make_context, models, "rep:3", [2]), 3)
    assert found["device_read_bytes"] == 4 * MIB
    assert found["device_write_bytes"] == 4 * MIB + models.store.metadata_bytes
    sizes = models.messages
    assert found["private_net_bytes"] == traffic(
        models.private_nic,
        sizes.sub_write_header_bytes + 4 * MIB,
        sizes.sub_reply_bytes,
    )
    assert found["encode_bytes"] == 0


def test_two_copies_are_pushed_from_one_read(models, make_context, counted):
    found = counted(repair(make_context, models, "rep:3", [1, 2]), 3)
    assert found["device_read_bytes"] == 4 * MIB
    assert found["device_write_bytes"] == 2 * (4 * MIB + models.store.metadata_bytes)


def test_two_shards_are_decoded_together(models, make_context, counted):
    one, two = (
        counted(repair(make_context, models, "rs:6,3", lost), 9)
        for lost in ([8], [7, 8])
    )
    assert two["device_read_bytes"] == one["device_read_bytes"]
    assert two["device_write_bytes"] == 2 * one["device_write_bytes"]
    assert two["encode_bytes"] == one["encode_bytes"]


def test_other_missing_shards_are_neither_read_nor_written(
    models, make_context, counted
):
    path = repair(make_context, models, "rs:6,3", [8], missing={1})
    used = {roles.role_name(role) for role in path.roles.tolist()}
    assert "shard[1].ssd" not in used and "shard[6].ssd" in used
    assert counted(path, 9)["device_read_bytes"] == 6 * 171 * 4 * KIB


@pytest.mark.parametrize("name", ["amd-epyc-family25-model17", "ceph-16.2.15"])
def test_rebuild_costs_follow_the_kernel_table(models, make_context, counted, name):
    """Without a measured reconstruct, a table uses the decode of one erasure."""
    kernel = shipped_table(name)
    free = replace(models, kernel=kernel)
    found = free.rebuild_ns("rs:6,3", 24 * KIB, 1)
    cost = kernel.cost(
        scheme="rs:6,3", op="reconstruct" if "amd" in name else "decode", erasures=1
    )
    assert found == cost.arithmetic_ns(24 * KIB) > 0
    assert (
        free.rebuild_ns("rs:6,3", 24 * KIB, 2)
        == free.decode_ns("rs:6,3", 24 * KIB, 2)
        > 0
    )
    assert counted(repair(make_context, free, "rs:6,3", [8]), 9)["cpu_ns"] > 171 * found


def test_rounds_move_the_object_piece_by_piece(models, make_context, counted):
    whole = repair(make_context, models, "rs:6,3", [8])
    pieces = repair(make_context, models, "rs:6,3", [8], recovery_chunk_bytes=1 * MIB)
    one, many = counted(whole, 9), counted(pieces, 9)
    # 1 MiB is rounded up to 43 stripes of 24 KiB, so 171 stripes take four rounds.
    assert pieces.labels.count("start repair") == 4
    assert whole.labels.count("start repair") == 1
    for same in ("device_read_bytes", "encode_bytes"):
        assert one[same] == many[same]
    assert (
        many["device_write_bytes"] - one["device_write_bytes"]
        == 3 * models.store.metadata_bytes
    )
    assert many["messages"] == 4 * one["messages"]


def reads(requests=20):
    return Synthetic(
        pattern="rand",
        block_bytes=4 * KIB,
        image_bytes=64 * MIB,
        read_fraction=1.0,
        requests=requests,
        queue_depth=2,
    ).start()


def losing(acting, targets, *, lost, missing=(), objects, **limits):
    """Return a plan with OSDs lost before the run and the resulting CRUSH sets."""
    return FaultPlan(
        lost_osds=lost,
        missing_osds=missing,
        up_sets=lambda weights: np.array(
            targets if weights.out else acting, dtype=np.int64
        ),
        image_objects=objects,
        model=recovery_model("pacific").given(**{"recovery_sleep_ns": 0, **limits}),
    )


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
@pytest.mark.parametrize("max_active", [1, 3])
def test_two_lost_osds_whose_targets_cross_do_not_block_each_other(
    models, make_pool, engine, max_active
):
    """Half of the groups rebuild shard 4 on OSD 6 and shard 5 on OSD 7, the others the other way round."""
    acting = [[group % 4, *(np.arange(3) + group + 1) % 4, 4, 5] for group in range(16)]
    targets = [
        [*row[:4], *((6, 7) if group % 2 else (7, 6))]
        for group, row in enumerate(acting)
    ]
    pool = make_pool(models, "rs:4,2", osds=8, acting=acting, object_bytes=MIB)
    plan = losing(
        acting, targets, lost=(4, 5), objects=64, recovery_max_active_count=max_active
    )
    row = simulate(pool, reads(), faults=plan, engine=engine).row
    assert row.faults.repair.repair_objects == 64
    assert row.faults.repair.repair_objects_pending == 0
    # Every object loses two shards of 64 stripes.
    assert row.faults.repair.repair_lost_bytes == 64 * 2 * 64 * 4 * KIB
    assert row.faults.repair.repair_device_read_bytes_per_lost_byte == pytest.approx(
        4 / 2
    )


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_rounds_of_an_object_are_separate_graphs(models, make_pool, scheme):
    """Many rounds do not need a larger graph, and both engines agree on them.

    Messages of up to 128 KiB travel in one piece.
    """
    acting = [[0, 1, 2, 3, 4, 5][: 3 if scheme == "rep:3" else 6]]
    targets = [[6, *acting[0][1:]]]
    pool = make_pool(models, scheme, osds=8, acting=acting, object_bytes=MIB)
    rows, steps = [], []
    for chunk in (128 * KIB, 64 * KIB):
        plan = losing(acting, targets, lost=(0,), objects=8, recovery_chunk_bytes=chunk)
        one, other = (
            simulate(pool, reads(), faults=plan, engine=engine)
            for engine in ("compiled", "simpy")
        )
        assert one.sha256 == other.sha256 and one.timeline == other.timeline
        rows.append(one.row)
        steps.append(max(template.steps for template in one.book.templates))
    assert steps[1] == steps[0]
    assert [row.faults.recovery.recovery_operations for row in rows] == [8, 8]
    assert (
        rows[0].faults.recovery.recovery_bytes
        == rows[1].faults.recovery.recovery_bytes
        == rows[0].faults.repair.repair_lost_bytes
    )
    assert rows[1].faults.repair.repair_s > rows[0].faults.repair.repair_s


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_a_group_that_crush_only_moves_is_no_part_of_the_rebuild(
    models, make_pool, scheme
):
    """OSD 0 is lost. Its group gets OSD 6; the other group lost nothing, and OSD 7 takes over a shard."""
    width = 3 if scheme == "rep:3" else 6
    acting = [[0, 1, 2, 3, 4, 5][:width], [1, 2, 3, 4, 5, 6][:width]]
    targets = [[6, *acting[0][1:]], [7, *acting[1][1:]]]
    pool = make_pool(models, scheme, osds=8, acting=acting, object_bytes=MIB)
    plan = losing(acting, targets, lost=(0,), objects=16)
    faults = simulate(pool, reads(), faults=plan).row.faults
    moved = faults.recovery.recovery_operations - faults.repair.repair_objects
    # Each of the 16 objects is in one of the groups, and some are in the second.
    assert faults.recovery.recovery_operations == 16 and moved > 0
    assert faults.repair.repair_objects_pending == 0
    assert faults.repair.repair_s > 0
    # An object of 1 MiB is a copy of 1 MiB, or a shard of 64 stripe units of 4 KiB.
    shard = MIB if scheme == "rep:3" else 64 * 4 * KIB
    assert faults.repair.repair_lost_bytes == faults.repair.repair_objects * shard
    reads_of_one = 1 if scheme == "rep:3" else 4
    assert faults.repair.repair_device_read_bytes_per_lost_byte == reads_of_one


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_bytes_per_lost_byte_refer_to_the_contents_of_the_failed_osd(
    models, make_pool, engine
):
    """OSD 0 fails. CRUSH gives its shard a new OSD and moves another shard that was not lost."""
    acting = np.array([[0, 1, 2, 3, 4, 5]])
    after_out = np.array([[6, 1, 2, 3, 4, 7]])
    pool = make_pool(models, "rs:4,2", osds=8, acting=acting, object_bytes=MIB)
    plan = FaultPlan(
        failures=[Failure(osds=(0,), time_ns=10**9)],
        up_sets=lambda weights: after_out if 0 in weights.out else acting,
        image_objects=8,
        model=recovery_model("pacific").given(down_out_interval_ns=10**9),
    )
    row = simulate(pool, reads(), faults=plan, engine=engine).row
    shard = 64 * 4 * KIB
    # Eight objects: each had one shard on the OSD, and has two new ones.
    assert row.faults.recovery.recovery_lost_bytes == 8 * shard
    assert row.faults.recovery.recovery_bytes == 2 * 8 * shard
    # The lost shard is decoded from four, the moved one is read once.
    assert row.faults.recovery.recovery_device_read_bytes_per_lost_byte == 4 + 1


def test_log_recovery_reserves_at_every_member(models, make_pool):
    """Two groups that share a member, not a target: by log one after the other, as backfill together."""
    acting, targets = [[0, 1, 2], [3, 4, 2]], [[5, 1, 2], [6, 4, 2]]
    pool = make_pool(models, "rep:3", osds=8, acting=acting, object_bytes=MIB)
    plan = losing(acting, targets, lost=(0, 3), objects=16)
    backfill, log = (
        simulate(
            pool, reads(), faults=replace(plan, object_writes_count=writes)
        ).row.faults.repair.repair_s
        for writes in (None, 1)
    )
    assert log > 1.5 * backfill


def test_osds_that_only_stay_down_are_not_rebuilt(models, make_pool):
    # OSD 4 is lost and OSD 5 is only down: CRUSH still maps shard 5 to it, and moves shard 4 to OSD 6.
    acting = [[0, 1, 2, 3, 4, 5]]
    pool = make_pool(models, "rs:4,2", osds=8, acting=acting, object_bytes=MIB)
    plan = losing(acting, [[0, 1, 2, 3, 6, 5]], lost=(4,), missing=(5,), objects=8)
    # The client waits until the fifth shard is there: Ceph's min_size is k + 1.
    row = simulate(pool, reads(), faults=plan).row
    assert row.faults.repair.repair_lost_bytes == 8 * 64 * 4 * KIB
    assert row.faults.repair.repair_device_read_bytes_per_lost_byte == 4
    assert row.requests == 20


def test_a_shard_without_a_new_home_is_reported(models, make_pool):
    acting = [[0, 1, 2, 3, 4, 5]]
    pool = make_pool(models, "rs:4,2", osds=6, acting=acting, object_bytes=MIB)
    plan = losing(acting, [[0, 1, 2, 3, 4, NO_OSD]], lost=(5,), objects=8)
    with pytest.raises(
        ValueError,
        match=r"placement group 0: .*shard 5",
    ):
        simulate(pool, reads(), faults=plan)


def test_copies_that_crush_moved_up_still_get_one_new_home_each(models, make_pool):
    # firstn closes the gap: the new OSD comes last, not in the slot that was lost.
    pool = make_pool(models, "rep:3", osds=5, acting=[[0, 1, 2]], object_bytes=MIB)
    result = simulate(
        pool, reads(), faults=losing([[0, 1, 2]], [[1, 2, 4]], lost=(0,), objects=8)
    )
    assert result.row.faults.repair.repair_lost_bytes == 8 * MIB
    names = list(pool.cluster.resources.names)
    busy = result.engine_run.busy_ns
    assert busy[names.index("osd.4.ssd")] > 0
    assert busy[names.index("osd.3.ssd")] == busy[names.index("osd.0.ssd")] == 0


def test_the_fewer_at_a_time_the_longer(models, make_pool):
    acting = [[group % 4, (group + 1) % 4, 4] for group in range(8)]
    targets = [[*row[:2], 5] for row in acting]
    pool = make_pool(models, "rep:3", osds=6, acting=acting, object_bytes=MIB)

    def seconds(backfills=1, **limits):
        plan = losing(
            acting,
            targets,
            lost=(4,),
            objects=32,
            max_backfills_count=backfills,
            **limits,
        )
        return simulate(pool, reads(), faults=plan).row.faults.repair.repair_s

    one = seconds(recovery_max_active_count=1)
    assert seconds(backfills=8, recovery_max_active_count=4) < one
    # A placement group recovers one object at a time, so that one reservation has no use for more.
    assert seconds(recovery_max_active_count=4) == one
    # One reservation on the one target: placement groups follow each other, and an OSD that leads begins an
    # object at most every 50 ms; at most eight times another OSD takes the lead.
    paused = seconds(recovery_max_active_count=1, recovery_sleep_ns=50_000_000)
    assert paused > 0.05 * (32 - 8)


@pytest.mark.parametrize(
    ("scheme", "width", "shard"), [("rep:3", 3, 4 * MIB), ("rs:4,2", 6, 1 * MIB)]
)
def test_a_deep_scrub_reads_every_shard_once_in_strides(
    models, make_context, counted, scheme, width, shard
):
    context = make_context(models, scheme)
    found = counted(scrub_path(context, shard_bytes=shard, objects=1, deep=True), width)
    assert found["device_read_bytes"] == width * shard
    strides = width * shard // (512 * KIB)
    assert found["device_read_ops"] == strides * len(models.ssd.pieces_bytes(512 * KIB))
    assert found["device_write_bytes"] == 0
    # Members reply with their results, and no data crosses the network.
    assert found["private_net_bytes"] < 0.01 * found["device_read_bytes"]
    shallow = counted(
        scrub_path(context, shard_bytes=shard, objects=25, deep=False), width
    )
    assert shallow["device_read_bytes"] == 0
    assert shallow["messages"] == found["messages"]


@pytest.mark.parametrize(
    ("deep", "objects", "reads"),
    # A shard of 1 MiB has two strides of 512 KiB. A look-up costs what a read does.
    [(True, 1, 2), (False, 25, 25)],
)
def test_a_scrub_pays_for_each_stride_that_it_reads_or_object_that_it_looks_up(
    models, change, make_context, counted, deep, objects, reads
):
    free_ns, paid_ns = (
        counted(
            scrub_path(
                make_context(change(models, cpu={"store_read_ns": each_ns}), "rs:4,2"),
                shard_bytes=1 * MIB,
                objects=objects,
                deep=deep,
            ),
            6,
        )["cpu_ns"]
        for each_ns in (0, 1000)
    )
    assert paid_ns - free_ns == 6 * reads * 1000


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_scrubs_read_all_that_there_is_once_in_an_interval(models, make_pool, scheme):
    width = 3 if scheme == "rep:3" else 6
    acting = [[(group + shard) % 8 for shard in range(width)] for group in range(8)]
    pool = make_pool(models, scheme, osds=8, acting=acting, object_bytes=MIB)
    plan = FaultPlan(
        up_sets=lambda weights: np.array(acting, dtype=np.int64),
        image_objects=32,
        model=recovery_model("pacific").given(scrub_interval_ns=2 * 10**9),
        scrubs=True,
    )
    one, other = (
        simulate(pool, reads(), faults=plan, engine=engine, until_ns=6 * 10**9)
        for engine in ("compiled", "simpy")
    )
    assert one.sha256 == other.sha256
    assert (
        one.row.faults.scrub_device_read_bytes
        == other.row.faults.scrub_device_read_bytes
    )
    # Three intervals; a group that waits for another one's OSDs is scrubbed later, not more often.
    shard_bytes = MIB if scheme == "rep:3" else 64 * 4 * KIB
    assert one.row.faults.deep_scrubs in (23, 24)
    assert one.row.faults.scrub_device_read_bytes == pytest.approx(
        3 * 32 * width * shard_bytes, rel=0.1
    )


def test_a_scrub_yields_to_a_failure_and_finds_corruption(models, make_pool):
    acting = [[0, 1, 2]]
    pool = make_pool(models, "rep:3", osds=4, acting=acting, object_bytes=MIB)
    model = recovery_model("pacific").given(
        scrub_interval_ns=10**9, down_out_interval_ns=10**12
    )
    plan = FaultPlan(
        failures=[Failure(osds=(2,), time_ns=10**9, back_ns=8 * 10**9)],
        corruptions=[Corruption(osd=1, time_ns=2 * 10**9, shards_count=3)],
        up_sets=lambda weights: np.array(acting, dtype=np.int64),
        image_objects=400,
        model=model,
        scrubs=True,
    )
    result = simulate(pool, reads(), faults=plan, until_ns=60 * 10**9)
    scrubbed = [
        event["time_s"]
        for event in result.timeline["events"]
        if event["what"] == "scrubbed"
    ]
    # Not while a member is down, and then once.
    assert len(scrubbed) == 1 and scrubbed[0] > 8
    assert result.row.faults.clean_at_end
    # The copies that the failed OSD held, and those that rotted.
    assert result.row.faults.recovery.recovery_lost_bytes == (400 + 3) * MIB


@pytest.mark.parametrize(
    ("scheme", "optimised", "queue", "start", "read", "push"),
    [
        # The primary of a classic coded pool pushes with the priority of recovery, others with that of moves.
        ("rs:4,2", False, mclock("reef"), BEST_EFFORT, IMMEDIATE, RECOVERY),
        ("rs:4,2", True, mclock("reef"), BEST_EFFORT, IMMEDIATE, BEST_EFFORT),
        ("rep:3", False, mclock("reef"), BEST_EFFORT, IMMEDIATE, BEST_EFFORT),
        # Before Reef, messages of recovery were immediate.
        ("rs:4,2", False, mclock("quincy"), RECOVERY, IMMEDIATE, IMMEDIATE),
        ("rs:4,2", False, wpq(), RECOVERY, RECOVERY, RECOVERY),
    ],
)
def test_the_class_of_each_item_of_an_object_that_only_moves(
    models, make_context, monkeypatch, scheme, optimised, queue, start, read, push
):
    classes = []
    monkeypatch.setattr(
        GraphBuilder,
        "in_class",
        lambda self, step, number, cost: classes.append(number),
    )
    ec = replace(models.ec, writes="shards") if optimised else models.ec
    context = make_context(replace(models, op_queue=queue, ec=ec), scheme).moving

    move_path(context, moves=[(1, 2)], sizes_bytes=[64 * KIB])

    # The start of the move, the read by its source and the reply, then the push and its reply.
    assert classes == [start, read, read, push, push]
