"""The write, counted by hand: device bytes, network bytes, processor time, locks, latency."""

from dataclasses import fields, replace

import numpy as np
import pytest

from stripesim.models.clock import round_ns
from stripesim.models.cpu import CpuModel
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths import write_path
from stripesim.sim.engine.graph import ACQUIRE, RELEASE

KIB = 1024
MIB = 1 << 20
CODES = [("rs:6,3", 6, 3), ("rs:10,4", 10, 4)]


def traffic(nic, *sizes_bytes):
    return sum(nic.traffic_bytes(size) for size in sizes_bytes)


def public_bytes(models, payload_bytes):
    sizes = models.messages
    return traffic(
        models.public_nic, sizes.request_header_bytes + payload_bytes, sizes.reply_bytes
    )


def sub_write_bytes(models, payload_bytes):
    sizes = models.messages
    return traffic(
        models.private_nic,
        sizes.sub_write_header_bytes + payload_bytes,
        sizes.sub_reply_bytes,
    )


def roll_forward_bytes(models):
    sizes = models.messages
    return traffic(models.private_nic, sizes.roll_forward_bytes, sizes.sub_reply_bytes)


def sub_read_bytes(models, payload_bytes):
    sizes = models.messages
    return traffic(
        models.private_nic,
        sizes.sub_read_request_bytes,
        sizes.sub_read_reply_header_bytes + payload_bytes,
    )


def write(
    make_context, models, scheme, *, offset=0, length=4 * KIB, size=4 * MIB, **found
):
    cached = found.pop("cached", frozenset())
    return write_path(
        make_context(models, scheme, **found),
        offset_bytes=offset,
        length_bytes=length,
        object_size_bytes=size,
        cached_stripes=cached,
    )


def test_replicated_4_kib_over_existing_data(models, make_context, counted):
    found = counted(write(make_context, models, "rep:3"), 3)
    assert found["device_read_bytes"] == 0
    assert found["device_write_bytes"] == 3 * (4 * KIB + models.store.metadata_bytes)
    assert found["device_write_ops"] == 3 * 2
    assert found["private_net_bytes"] == 2 * sub_write_bytes(models, 4 * KIB)
    assert found["public_net_bytes"] == public_bytes(models, 4 * KIB)
    assert found["messages"] == 2 + 2 * 2
    assert found["encode_bytes"] == 0


def test_replicated_1_kib_reads_nine_times_its_bytes(models, make_context, counted):
    found = counted(write(make_context, models, "rep:3", length=KIB), 3)
    assert found["device_read_bytes"] == 3 * 3 * KIB == 9 * KIB
    # The whole unit goes into the log and later to its place.
    assert found["device_write_bytes"] == 3 * (
        4 * KIB + models.store.metadata_bytes + 4 * KIB
    )
    assert found["private_net_bytes"] == 2 * sub_write_bytes(models, KIB)


def test_replicated_1_kib_into_a_new_object_reads_nothing(
    models, make_context, counted
):
    found = counted(write(make_context, models, "rep:3", length=KIB, size=0), 3)
    assert found["device_read_bytes"] == 0
    assert found["device_write_bytes"] == 3 * (4 * KIB + models.store.metadata_bytes)


def test_a_large_write_reaches_the_device_in_pieces_of_128_kib(
    models, make_context, counted
):
    found = counted(write(make_context, models, "rep:1", length=300 * KIB), 1)
    assert found["device_write_bytes"] == 300 * KIB + models.store.metadata_bytes
    assert found["device_write_ops"] == 3 + 1


@pytest.mark.parametrize(("scheme", "k", "m"), CODES)
def test_a_full_stripe_write_reads_no_chunk_and_writes_each_once(
    models, make_context, counted, scheme, k, m
):
    found = counted(write(make_context, models, scheme, length=k * 4 * KIB), k + m)
    assert found["device_read_bytes"] == 0
    assert found["device_write_bytes"] == (k + m) * (
        4 * KIB + models.store.metadata_bytes + models.store.roll_forward_log_bytes
    )
    assert found["private_net_bytes"] == (k + m - 1) * (
        sub_write_bytes(models, 4 * KIB) + roll_forward_bytes(models)
    )
    assert found["public_net_bytes"] == public_bytes(models, k * 4 * KIB)
    assert found["encode_bytes"] == k * 4 * KIB
    assert found["messages"] == 2 + (k + m - 1) * 4


@pytest.mark.parametrize(("scheme", "k", "m"), CODES)
@pytest.mark.parametrize("length", [KIB, 4 * KIB])
def test_partial_stripe_reads_k_chunks_and_writes_k_plus_m(
    models, make_context, counted, scheme, k, m, length
):
    found = counted(write(make_context, models, scheme, length=length), k + m)
    assert found["device_read_bytes"] == k * 4 * KIB
    assert found["device_read_ops"] == k
    assert found["device_write_bytes"] == (k + m) * (
        4 * KIB + models.store.metadata_bytes + models.store.roll_forward_log_bytes
    )
    # The primary is one of the shards: its own chunk crosses no wire.
    assert found["private_net_bytes"] == (k - 1) * sub_read_bytes(models, 4 * KIB) + (
        k + m - 1
    ) * (sub_write_bytes(models, 4 * KIB) + roll_forward_bytes(models))
    assert found["encode_bytes"] == k * 4 * KIB


def test_a_stripe_in_the_cache_needs_no_device_read_but_still_the_wire(
    models, make_context, counted
):
    cold = counted(write(make_context, models, "rs:6,3"), 9)
    warm = counted(write(make_context, models, "rs:6,3", cached=frozenset({0})), 9)
    assert warm["device_read_bytes"] == warm["device_read_ops"] == 0
    assert warm["private_net_bytes"] == cold["private_net_bytes"]
    assert warm["device_write_bytes"] == cold["device_write_bytes"]


def test_a_write_across_two_stripes_reads_both(models, make_context, counted):
    found = counted(
        write(make_context, models, "rs:6,3", offset=20 * KIB, length=8 * KIB), 9
    )
    assert found["device_read_bytes"] == 6 * 2 * 4 * KIB
    assert found["device_write_bytes"] == 9 * (
        8 * KIB + models.store.metadata_bytes + models.store.roll_forward_log_bytes
    )
    assert found["encode_bytes"] == 2 * 24 * KIB
    one = counted(
        write(
            make_context,
            models,
            "rs:6,3",
            offset=20 * KIB,
            length=8 * KIB,
            cached=frozenset({1}),
        ),
        9,
    )
    assert one["device_read_bytes"] == 6 * 4 * KIB


@pytest.mark.parametrize(("scheme", "k", "m"), CODES)
def test_a_write_past_the_end_fills_encodes_and_ships_every_stripe_before_it(
    models, make_context, counted, scheme, k, m
):
    stripe = k * 4 * KIB
    # The object ends in its second stripe, and the write is in the seventh: five stripes, none read.
    found = counted(
        write(make_context, models, scheme, offset=6 * stripe, size=stripe + 1), k + m
    )
    assert found["device_read_bytes"] == 0
    assert found["encode_bytes"] == 5 * stripe
    assert found["device_write_bytes"] == (k + m) * (
        5 * 4 * KIB + models.store.metadata_bytes + models.store.roll_forward_log_bytes
    )
    assert found["private_net_bytes"] == (k + m - 1) * (
        sub_write_bytes(models, 5 * 4 * KIB) + roll_forward_bytes(models)
    )


def test_degraded_writes_skip_missing_shards_and_decode_only_their_reads(
    models, make_context, counted
):
    replicated = counted(write(make_context, models, "rep:3", missing={1}), 3)
    assert replicated["device_write_bytes"] == 2 * (
        4 * KIB + models.store.metadata_bytes
    )
    assert replicated["private_net_bytes"] == sub_write_bytes(models, 4 * KIB)
    partial = counted(write(make_context, models, "rs:6,3", missing={1}), 9)
    assert partial["device_read_bytes"] == 6 * 4 * KIB
    assert partial["device_write_bytes"] == 8 * (
        4 * KIB + models.store.metadata_bytes + models.store.roll_forward_log_bytes
    )
    whole, full = (
        write(make_context, models, "rs:6,3", missing=missing, length=24 * KIB)
        for missing in ((), {1})
    )
    # Nothing is read, so nothing is decoded: one shard less, and the encoding as before.
    assert (
        counted(full, 9)["encode_bytes"]
        == counted(whole, 9)["encode_bytes"]
        == 24 * KIB
    )
    lost_parity = counted(write(make_context, models, "rs:6,3", missing={8}), 9)
    assert lost_parity["cpu_ns"] < partial["cpu_ns"]


def test_decoding_costs_follow_the_kernel_table(models, change, make_context, counted):
    idle = change(models, cpu=no_cpu())
    listed = [
        counted(write(make_context, idle, "rs:6,3", missing=missing), 9)["cpu_ns"]
        for missing in ((), {1})
    ]
    encode_ns, decode_ns = (
        idle.encode_ns("rs:6,3", 24 * KIB),
        idle.decode_ns("rs:6,3", 24 * KIB, 1),
    )
    assert listed == [round(encode_ns), round(encode_ns + decode_ns)]
    assert decode_ns > 0


def no_cpu(**numbers):
    kept = ("cores_per_host", "user_fraction", "ec_kv_finish_factor", "provenance")
    nothing = {field.name: 0 for field in fields(CpuModel) if field.name not in kept}
    return nothing | {"ec_kv_finish_factor": 1} | numbers


# How often one write pays each term. Messages (both sides of each and the acknowledgement at its sender; one
# side of the client's two): rep:3: 2 sub-writes and 2 replies; rs:6,3 full stripe: 8 of both, and 8
# roll-forwards with 8 replies.
@pytest.mark.parametrize(
    ("term", "replicated", "full_stripe"),
    [
        ("message_base_ns", 2 + 3 * 4, 2 + 3 * 32),
        ("op_prepare_ns", 1, 1),
        ("sub_write_send_ns", 2, 8),
        ("sub_op_send_ns", 0, 8),
        ("sub_op_prepare_ns", 2, 8 + 8),
        ("sub_reply_ns", 2, 8 + 8),
        ("op_finish_ns", 1, 1),
        ("store_read_ns", 0, 0),
        ("store_transaction_ns", 3, 9 + 9),
        ("kv_transaction_ns", 3, 9 + 9),
        ("kv_finish_ns", 3, 9 + 9),
    ],
)
def test_each_term_of_processor_time_alone(
    models, change, make_context, counted, term, replicated, full_stripe
):
    only = change(models, cpu=no_cpu(**{term: 1000}))
    found = counted(write(make_context, only, "rep:3"), 3)
    assert found["cpu_ns"] == 1000 * replicated
    found = counted(write(make_context, only, "rs:6,3", length=24 * KIB), 9)
    encode_ns = round(only.encode_ns("rs:6,3", 24 * KIB))
    # The encoding shares a stage with other terms, and a stage is rounded once.
    assert found["cpu_ns"] == pytest.approx(1000 * full_stripe + encode_ns, abs=1)


def test_erasure_coding_takes_its_factor_longer_to_finish_a_transaction(
    models, change, make_context, counted
):
    only = change(models, cpu=no_cpu(kv_finish_ns=1000, ec_kv_finish_factor=1.5))
    found = counted(write(make_context, only, "rep:3"), 3)
    assert found["kv_ns"] == 3 * 1000
    # Nine sub-writes and nine roll-forwards.
    found = counted(write(make_context, only, "rs:6,3", length=24 * KIB), 9)
    assert found["kv_ns"] == (9 + 9) * 1500


def test_bytes_of_messages_cost_both_sides(models, change, make_context, counted):
    only = change(models, cpu=no_cpu(message_ns_per_byte=1))
    sizes = models.messages
    found = counted(write(make_context, only, "rep:3"), 3)
    public = sizes.request_header_bytes + 4 * KIB + sizes.reply_bytes
    private = sizes.sub_write_header_bytes + 4 * KIB + sizes.sub_reply_bytes
    assert found["cpu_ns"] == public + 2 * 2 * private


def test_encoding_is_paid_once_per_stripe_by_the_kernel_table(
    models, change, make_context, counted
):
    idle = change(models, cpu=no_cpu())
    for stripes in (1, 3):
        found = counted(
            write(make_context, idle, "rs:6,3", length=stripes * 24 * KIB), 9
        )
        assert found["cpu_ns"] == round(stripes * idle.encode_ns("rs:6,3", 24 * KIB))


@pytest.mark.parametrize("scope", ["commit", "dispatch", "none"])
@pytest.mark.parametrize("scheme", ["rep:3", "rs:6,3"])
def test_the_scope_determines_when_the_lock_is_released(
    models, change, make_context, scope, scheme
):
    scoped = change(models, pg_lock={"scope": scope})
    path = write(make_context, scoped, scheme)
    locks = [
        (step, word)
        for step, (word, role) in enumerate(
            zip(path.words.tolist(), path.roles.tolist(), strict=True)
        )
        if role == roles.PG_LOCK
    ]
    if scope == "none":
        assert locks == []
        assert roles.PG_EXEC not in path.roles
        return
    (taken, _), (back, _) = locks
    assert [word for _, word in locks] == [ACQUIRE, RELEASE]
    width = 3 if scheme == "rep:3" else 9
    commits = [
        step
        for step in range(path.steps)
        if path.roles[step]
        in {roles.shard_role(shard, roles.SYNC) for shard in range(width)}
    ]
    before = ancestors(path, back)
    # The first transaction of each member is the write, and any later one rolls forward.
    own = [step for step in commits if step < path.reply]
    assert len(own) == width
    assert all((step in before) == (scope == "commit") for step in own)
    assert taken in before
    # The reply waits for all commits, whatever the lock does.
    assert set(own) <= ancestors(path, path.reply)


@pytest.mark.parametrize("scope", ["commit", "dispatch", "none"])
@pytest.mark.parametrize("scheme", ["rep:3", "rs:6,3"])
@pytest.mark.parametrize("length", [KIB, 24 * KIB])
def test_each_pool_is_taken_before_it_is_given_back(
    models, change, make_context, scope, scheme, length
):
    path = write(
        make_context, change(models, pg_lock={"scope": scope}), scheme, length=length
    )
    pairs = 0
    for step in range(path.steps):
        if path.words[step] != RELEASE:
            continue
        before = [
            path.words[index]
            for index in ancestors(path, step)
            if path.roles[index] == path.roles[step]
        ]
        # On every path to it, the pool was acquired once more than released.
        assert before.count(ACQUIRE) > before.count(RELEASE)
        pairs += 1
    assert pairs == (path.words == ACQUIRE).sum() > 0


def test_roll_forward_comes_after_the_reply_and_only_where_the_pipeline_is_sure_to_be_empty(
    models, change, make_context, counted
):
    committed = write(make_context, models, "rs:6,3")
    dispatched = write(
        make_context, change(models, pg_lock={"scope": "dispatch"}), "rs:6,3"
    )
    rolls = [step for step, label in enumerate(committed.labels) if "roll" in label]
    assert rolls and not set(rolls) & ancestors(committed, committed.reply)
    assert not [label for label in dispatched.labels if "roll" in label]
    assert not [
        label
        for label in write(make_context, models, "rep:3").labels
        if "roll" in label
    ]


def test_co_located_shards_send_no_bytes(models, make_context, counted):
    path = write(make_context, models, "rs:6,3", length=24 * KIB)
    wires = (
        roles.OUT_TX,
        roles.OUT_WIRE,
        roles.OUT_RX,
        roles.BACK_TX,
        roles.BACK_WIRE,
        roles.BACK_RX,
    )
    at_home = [roles.shard_role(shard, part) for shard in (0, 3, 5) for part in wires]
    everywhere, here = counted(path, 9), counted(path, 9, unbound=at_home)
    per_shard = sub_write_bytes(models, 4 * KIB) + roll_forward_bytes(models)
    # Shard 0 is the primary and had no wire anyway.
    assert everywhere["private_net_bytes"] == 8 * per_shard
    assert here["private_net_bytes"] == 6 * per_shard
    assert here["messages"] == everywhere["messages"] - 2 * 4
    assert here["device_write_bytes"] == everywhere["device_write_bytes"]


def ancestors(path, step):
    """All steps that must have completed before a step does."""
    before = [[] for _ in range(path.steps)]
    for index in range(path.steps):
        for after in path.successors[
            path.successor_starts[index] : path.successor_starts[index + 1]
        ].tolist():
            before[after].append(index)
    seen, todo = set(), list(before[step])
    while todo:
        index = todo.pop()
        if index not in seen:
            seen.add(index)
            todo += before[index]
    return seen


def longest_ns(path, unbound=frozenset()):
    """End of the reply where nothing queues: the longest way to it."""
    ends = [0] * path.steps
    for step in range(path.steps):
        ends[step] += 0 if path.roles[step] in unbound else int(path.demands_ns[step])
        for after in path.successors[
            path.successor_starts[step] : path.successor_starts[step + 1]
        ].tolist():
            ends[after] = max(ends[after], ends[step])
    return ends[path.reply]


def test_the_way_of_a_replicated_write_by_hand(models, make_context):
    """Client, lock, dispatch, send, the slower replica, finish, reply: each demand rounded once."""
    cpu, ssd, sizes, store = models.cpu, models.ssd, models.messages, models.store
    public, private = models.public_nic, models.private_nic
    request, reply = sizes.request_header_bytes + 4 * KIB, sizes.reply_bytes
    sub_write, sub_reply = sizes.sub_write_header_bytes + 4 * KIB, sizes.sub_reply_bytes

    def wire(nic, size):
        return [nic.serialise_ns(size), nic.latency_ns, nic.serialise_ns(size)]

    def sent(size):
        return [cpu.message_ns(size), *wire(private, size), cpu.message_ns(size)]

    demands = [
        models.client.submit_ns,
        *wire(public, request),
        cpu.message_ns(request),
        cpu.op_prepare_ns,
        2 * cpu.sub_write_send_ns,
        *sent(sub_write),
        cpu.store_transaction_ns + cpu.sub_op_prepare_ns,
        ssd.write_ns(4 * KIB),
        cpu.kv_transaction_ns,
        ssd.sync_ns(store.metadata_bytes),
        *sent(sub_reply),
        cpu.sub_reply_ns,
        cpu.op_finish_ns,
        cpu.message_ns(reply),
        *wire(public, reply),
    ]
    assert longest_ns(write(make_context, models, "rep:3")) == sum(
        map(round_ns, demands)
    )


def test_a_thread_that_keeps_a_write_prepares_the_transaction_of_the_primary(
    models, make_context, counted
):
    def path(keeps):
        threads = replace(models.threads, lock_waits_per_thread_count=keeps)
        return write(make_context, replace(models, threads=threads), "rep:3")

    def stays(template):
        taken = np.flatnonzero(template.words == ACQUIRE)
        own = (roles.PRIMARY_WORKER, roles.shard_role(0, roles.WORKER))
        return [step for step in taken if template.roles[step] in own]

    kept, apart = path(1), path(0)
    # One stay for dispatch, sub-writes and own transaction, two for replies, one for the end.
    assert (len(stays(kept)), len(stays(apart))) == (4, 6)
    back = kept.labels.index("thread back from send")
    assert kept.labels.index("transaction") < back
    # No work is lost, and the order is: sub-writes leave, then the own transaction.
    assert counted(kept, 3)["cpu_ns"] == counted(apart, 3)["cpu_ns"]
    assert kept.labels.index("send") < kept.labels.index("transaction")


def test_work_below_half_a_nanosecond_is_one_step(make_context, models):
    # Given threads with time slices, and a finish that takes 0.4 ns (an ablation may come to that)
    sliced = replace(models.threads, slice_ns=1e6)
    for finish_ns, steps in ((0.4, 1), (2.5e6, 3)):
        cpu = replace(models.cpu, op_finish_ns=finish_ns)
        changed = replace(models, cpu=cpu, threads=sliced)
        template = write(make_context, changed, "rep:3")
        # Then it is still a step, and three slices of longer work are three
        assert template.labels.count("finish") == steps


@pytest.mark.parametrize(
    ("scheme", "optimised", "holders"),
    # In an optimised pool, data shards but the first are never primary, and so hold no attributes.
    [("rep:3", False, 3), ("rs:4,2", False, 6), ("rs:4,2", True, 1 + 2)],
)
def test_shards_that_may_be_primary_log_the_attributes_of_an_object(
    models, make_context, counted, scheme, optimised, holders
):
    ec = replace(models.ec, writes="shards") if optimised else models.ec
    plain = make_context(replace(models, ec=ec), scheme)
    log_bytes = [
        counted(
            write_path(
                replace(plain, attributes_bytes=attributes_bytes),
                offset_bytes=0,
                length_bytes=16 * KIB,
                object_size_bytes=0,
            ),
            plain.scheme.width,
        )["device_log_bytes"]
        for attributes_bytes in (0, 500)
    ]
    assert log_bytes[1] - log_bytes[0] == holders * 500
