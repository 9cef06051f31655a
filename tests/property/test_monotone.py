"""Faster hardware must not make a single request slower.

Throughput under load may get worse: a machine with locks and several servers has anomalies (a
faster step reorders a queue). What must hold is tested: alone on the cluster, a chain of steps
takes exactly the sum of its demands, and every demand falls with the speed of its hardware.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripesim.models.clock import round_ns
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.run import simulate
from support.examples import SLOW

KIB = 1024

numbers = st.fixed_dictionaries(
    {
        "submit_ns": st.integers(0, 100_000),
        "rate_bits_per_s": st.integers(10**8, 10**11),
        "latency_ns": st.integers(0, 50_000),
        "message_base_ns": st.integers(0, 50_000),
        "op_prepare_ns": st.integers(0, 50_000),
        "op_finish_ns": st.integers(0, 50_000),
        "store_read_ns": st.integers(0, 50_000),
        "store_transaction_ns": st.integers(0, 50_000),
        "kv_transaction_ns": st.integers(0, 50_000),
        "read_base_ns": st.integers(0, 500_000),
        "write_base_ns": st.integers(0, 500_000),
        "flush_base_ns": st.integers(0, 500_000),
    }
)
PARTS = {
    "client": ("submit_ns",),
    "public_nic": ("rate_bits_per_s", "latency_ns"),
    "private_nic": ("rate_bits_per_s", "latency_ns"),
    "cpu": (
        "message_base_ns",
        "op_prepare_ns",
        "op_finish_ns",
        "store_read_ns",
        "store_transaction_ns",
        "kv_transaction_ns",
    ),
    "ssd": ("read_base_ns", "write_base_ns", "flush_base_ns"),
}


def cluster_of(found, models, change):
    return change(
        models,
        **{
            part: {name: found[name] for name in names} for part, names in PARTS.items()
        },
    )


def latencies_ns(models, make_pool, scheme, *, read, block=4 * KIB, engine="compiled"):
    workload = Synthetic(
        pattern="rand",
        block_bytes=block,
        image_bytes=1 << 30,
        read_fraction=float(read),
        requests=4,
        queue_depth=1,
    )
    result = simulate(
        make_pool(models, scheme, groups=2), workload.start(), engine=engine
    )
    return result.requested.latencies_ns.tolist()


@settings(max_examples=SLOW)
@given(
    found=numbers,
    block=st.sampled_from([4 * KIB, 64 * KIB]),
    engine=st.sampled_from(["compiled", "simpy"]),
)
def test_alone_a_read_takes_the_sum_of_its_demands(
    sleepless, change, make_pool, found, block, engine
):
    built = cluster_of(found, sleepless, change)
    nic, cpu, sizes = built.public_nic, built.cpu, built.messages
    request, reply = sizes.request_header_bytes, sizes.reply_bytes + block
    demands = [
        built.client.submit_ns,
        nic.serialise_ns(request),
        nic.latency_ns,
        nic.serialise_ns(request),
        cpu.message_ns(request),
        cpu.op_prepare_ns + cpu.store_read_ns,
        built.ssd.read_ns(max(built.ssd.parts_bytes(block))),
        cpu.message_ns(reply),
        nic.serialise_ns(reply),
        nic.latency_ns,
        nic.serialise_ns(reply),
    ]
    expected = sum(map(round_ns, demands))
    assert (
        latencies_ns(built, make_pool, "rep:3", read=True, block=block, engine=engine)
        == [expected] * 4
    )


@settings(max_examples=SLOW)
@given(found=numbers, engine=st.sampled_from(["compiled", "simpy"]))
def test_alone_a_write_of_one_copy_takes_the_sum_of_its_demands(
    sleepless, change, make_pool, found, engine
):
    # Work of the store after the commit would delay the next write, so it is switched off.
    built = change(cluster_of(found, sleepless, change), cpu={"kv_finish_ns": 0})
    nic, cpu, sizes, ssd = built.public_nic, built.cpu, built.messages, built.ssd
    request, reply = sizes.request_header_bytes + 4 * KIB, sizes.reply_bytes
    demands = [
        built.client.submit_ns,
        nic.serialise_ns(request),
        nic.latency_ns,
        nic.serialise_ns(request),
        cpu.message_ns(request),
        cpu.op_prepare_ns,
        cpu.store_transaction_ns,
        ssd.write_ns(4 * KIB),
        cpu.kv_transaction_ns,
        ssd.sync_ns(built.store.metadata_bytes),
        cpu.op_finish_ns,
        cpu.message_ns(reply),
        nic.serialise_ns(reply),
        nic.latency_ns,
        nic.serialise_ns(reply),
    ]
    expected = sum(map(round_ns, demands))
    assert (
        latencies_ns(built, make_pool, "rep:1", read=False, engine=engine)
        == [expected] * 4
    )


@settings(max_examples=SLOW)
@given(
    found=numbers,
    name=st.sampled_from([name for names in PARTS.values() for name in names]),
    factor=st.floats(0.0, 1.0),
    read=st.booleans(),
    scheme=st.sampled_from(["rep:1", "rep:2"]),
)
def test_alone_no_request_gets_slower_on_faster_hardware(
    sleepless, change, make_pool, found, name, factor, read, scheme
):
    """Up to two copies nothing of one request queues behind itself, so no order can change.

    Work after a commit is switched off, because the next request, sent sooner, would wait for it.
    """
    better = dict(found)
    if name == "rate_bits_per_s":
        better[name] = round(found[name] * (2 - factor))
    else:
        better[name] = found[name] * factor
    before, after = (
        latencies_ns(
            change(cluster_of(numbers, sleepless, change), cpu={"kv_finish_ns": 0}),
            make_pool,
            scheme,
            read=read,
        )
        for numbers in (found, better)
    )
    assert all(new <= old for new, old in zip(after, before, strict=True))


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
@pytest.mark.parametrize("read", [0.0, 1.0])
@pytest.mark.parametrize(
    "faster",
    [
        {"ssd": {"read_base_ns": 2_000, "write_base_ns": 3_000}},
        {
            "private_nic": {"rate_bits_per_s": 1e11},
            "public_nic": {"rate_bits_per_s": 1e11},
        },
        {"client": {"submit_ns": 1_000}},
    ],
    ids=["ssd", "nic", "client"],
)
def test_much_faster_hardware_does_not_lose_throughput_under_load(
    models, change, make_pool, scheme, read, faster
):
    def iops(built):
        workload = Synthetic(
            pattern="rand",
            block_bytes=4 * KIB,
            image_bytes=1 << 30,
            read_fraction=read,
            requests=1500,
            queue_depth=32,
        )
        return simulate(
            make_pool(built, scheme, groups=64, osds=8), workload.start()
        ).row.iops

    # Ten times faster parts against the noise of 1500 requests, a few per cent.
    assert iops(change(models, **faster)) > 0.95 * iops(models)
