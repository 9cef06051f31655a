"""Results of a run: bottleneck, utilisation, Little's law, the window, the fingerprint."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.sim.ceph import loops
from stripesim.sim.ceph.clients.workload import Replay, Requests, Synthetic
from stripesim.sim.run import simulate

KIB = 1024
MIB = 1 << 20


def load(
    *, read=0.0, queue_depth=64, requests=600, block=4 * KIB, rate=None, pattern="rand"
):
    return Synthetic(
        pattern=pattern,
        block_bytes=block,
        image_bytes=1 << 30,
        read_fraction=read,
        requests=requests,
        queue_depth=queue_depth,
        rate_per_s=rate,
    ).start()


@pytest.fixture(scope="module")
def fast(models, change):
    """Make a fast cluster with more threads than requests, to slow down one resource at a time."""
    quick = {name: 100 for name in models.cpu.number_names() if name.endswith("_ns")}
    return change(
        models,
        client={"submit_ns": 100},
        cpu=quick,
        threads={"op_threads_per_shard_count": 64, "messenger_threads_count": 64},
        ssd={
            "read_base_ns": 100,
            "write_base_ns": 100,
            "read_ns_per_byte": 0.001,
            "write_ns_per_byte": 0.001,
        },
        public_nic={"rate_bits_per_s": 1e12},
        private_nic={"rate_bits_per_s": 1e12},
        pg_lock={"scope": "dispatch"},
        store={"read_cache_bytes": 0},
    )


@pytest.mark.parametrize(
    ("kind", "numbers", "read"),
    [
        ("private.tx", {"private_nic": {"rate_bits_per_s": 1e8}}, 0.0),
        ("public.tx", {"public_nic": {"rate_bits_per_s": 1e9}}, 1.0),
        (
            "ssd",
            {"ssd": {"channels": 1, "raid0_drives": 1, "read_base_ns": 2_000_000}},
            1.0,
        ),
        ("client.submit", {"client": {"submit_ns": 1_000_000}}, 0.0),
        ("cpu", {"cpu": {"cores_per_host": 1, "message_base_ns": 500_000}}, 1.0),
    ],
)
def test_the_slowed_resource_is_the_bottleneck(
    fast, change, make_pool, kind, numbers, read
):
    # With this many groups, two requests rarely share one.
    pool = make_pool(change(fast, **numbers), "rep:3", groups=2048, osds=4)
    row = simulate(pool, load(read=read)).row
    if kind == "public.tx":
        # Replies of four hosts meet at the one client, whose receiving side is as slow.
        assert row.bottleneck in ("public.tx", "client.rx")
    else:
        assert row.bottleneck == kind
    # Who waits for it may hold a lock or a thread that others wait for in turn.
    assert row.bottleneck_wait_fraction > 0.4
    assert 0.5 < row.bottleneck_utilisation <= 1


def test_one_placement_group_is_the_bottleneck_where_its_lock_spans_the_commit(
    models, make_pool
):
    row = simulate(make_pool(models, "rep:3", groups=1), load()).row
    assert row.bottleneck == "pg.lock"
    assert row.bottleneck_utilisation > 0.99


@pytest.mark.parametrize(
    ("pattern", "bottleneck"), [("seq", "pg.lock"), ("rand", "client.submit")]
)
def test_the_few_locks_of_a_sequential_stream_are_its_bottleneck(
    pattern: str, bottleneck: str
) -> None:
    # Small requests in order fall into one object, so into one group of 1,024 at a time.
    given = [
        'schemes=["rep:3"]',
        'workload.ops=["write"]',
        f'workload.patterns=["{pattern}"]',
    ]
    (row,) = run_scenario(
        load_scenario(
            "koh2017",
            sets=[*given, "workload.block_sizes_bytes=4k", "workload.requests=2500"],
        ),
        costs=False,
    ).rows.to_dicts()
    assert row["bottleneck"] == bottleneck
    assert ("in line" in row["limits"]) == (bottleneck == "pg.lock")


def test_threads_that_wait_for_the_cores_of_one_host_are_not_the_bottleneck() -> None:
    # One host of four holds half of the OSDs and has few cores, so the threads of its OSDs wait for them.
    def row(cores: int) -> dict[str, Any]:
        groups = [{"count": 3, "osds": 2, "cores": 24}]
        groups += [{"count": 1, "osds": 6, "cores": cores}]
        scenario = load_scenario(
            "quickstart",
            sets={
                "schemes": ["rep:3"],
                "cluster.hosts": groups,
                "workload.ops": ["write"],
                "workload.queue_depth": 128,
                "workload.requests": 6000,
            },
        )
        return run_scenario(scenario, costs=False).rows.to_dicts()[0]

    few, twice = row(16), row(32)
    assert twice["iops"] > 1.5 * few["iops"]
    # Key-value threads are in use more than cores, because they are in use while they wait for them.
    assert "kv hot spot" in few["limits"]
    assert few["bottleneck"] == "cpu"
    assert twice["bottleneck"] != "cpu"


def test_a_lone_request_is_limited_by_its_latency(fast, change, make_pool):
    # One request at a time keeps nothing busy: it spends its time at the drive, which takes 1 ms.
    pool = make_pool(change(fast, ssd={"read_base_ns": 1e6}), "rep:1", groups=4)
    row = simulate(pool, load(read=1.0, queue_depth=1, requests=50)).row
    assert (row.bottleneck, row.bottleneck_utilisation) == ("latency", None)
    assert row.latency_at == "ssd"
    assert row.latency_at_fraction > 0.9


def test_requests_that_are_all_served_have_no_bottleneck(models, make_pool):
    calm = load(read=1.0, requests=50, queue_depth=0, rate=10.0)
    row = simulate(make_pool(models, "rep:1", groups=4), calm).row
    assert row.bottleneck == "none"
    assert not row.saturated


def test_a_saturated_trace_names_where_its_requests_queue(models, make_pool):
    # Given a trace that is idle for a second, and then has 3,000 reads within 3 µs. They take 0.1 s at most,
    # so nothing is busy for 70 % of the run. Yet few arrivals are served when the last one arrives.
    count = 3000
    burst = Requests(
        is_write=np.zeros(count, dtype=bool),
        images=np.zeros(count, dtype=np.int64),
        offsets_bytes=4096 * np.arange(count),
        lengths_bytes=np.full(count, 4096),
        arrivals_ns=np.append(0, 10**9 + np.arange(1, count)),
    )

    row = simulate(make_pool(models, "rep:1", groups=4), Replay(burst)).row

    assert row.saturated
    assert row.bottleneck_utilisation < 0.7
    assert row.bottleneck == row.latency_at
    assert row.bottleneck_wait_fraction > 0.5


def test_a_full_member_is_a_bottleneck_though_most_are_idle(fast, change, make_pool):
    # Two placement groups on 16 OSDs: 2 drives are always busy, 14 are idle.
    without_locks = change(fast, ssd={"read_base_ns": 1e6}, pg_lock={"scope": "none"})
    pool = make_pool(without_locks, "rep:1", groups=2, osds=16)
    row = simulate(pool, load(read=1.0, queue_depth=64)).row
    assert row.bottleneck == "ssd"
    assert row.bottleneck_utilisation > 0.9
    assert row.bottleneck_mean_utilisation < 0.3


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
@pytest.mark.parametrize("read", [0.0, 1.0])
@pytest.mark.parametrize("queue_depth", [1, 16, 200])
def test_utilisation_is_a_fraction_and_little_holds(
    models, make_pool, scheme, read, queue_depth
):
    pool = make_pool(models, scheme, groups=16, osds=6)
    result = simulate(pool, load(read=read, queue_depth=queue_depth))
    resources, run = pool.cluster.resources, result.engine_run
    busy = np.maximum(run.busy_ns, run.held_ns) / (resources.capacities * run.end_ns)
    assert (busy >= 0).all() and (busy <= 1).all()
    assert 0 <= result.row.cpu_utilisation <= 1
    asked = result.requested
    # Exactly: the time integral of the number in the system is the sum of the times in it.
    events = np.r_[
        np.stack([asked.issued_ns, np.ones(600, dtype=np.int64)], axis=1),
        np.stack([asked.completed_ns, -np.ones(600, dtype=np.int64)], axis=1),
    ]
    events = events[np.lexsort((events[:, 1], events[:, 0]))]
    number = np.cumsum(events[:, 1])
    integral = (number[:-1] * np.diff(events[:, 0])).sum()
    assert integral == asked.latencies_ns.sum()
    assert number.max() <= queue_depth
    # In the steady window, with the loop full: number = rate × latency, to the noise of its edges.
    if queue_depth < 100:
        assert result.row.iops * result.row.latency_mean_ns / 1e9 == pytest.approx(
            queue_depth, rel=0.1
        )


def test_an_open_loop_far_below_saturation_gives_its_rate(models, make_pool):
    pool = make_pool(models, "rep:3", groups=64)
    result = simulate(pool, load(read=1.0, queue_depth=0, rate=500.0, requests=4000))
    # 4000 arrivals tell the rate to 1.6 %; the window leaves some out.
    assert result.row.iops == pytest.approx(500, rel=0.06)
    assert result.row.throughput_ci_low <= 500 * 4 * KIB * 1.06
    assert result.row.throughput_ci_high >= 500 * 4 * KIB * 0.94


def test_columns_are_consistent(models, make_pool):
    result = simulate(
        make_pool(models, "rs:4,2", groups=16), load(read=0.5, queue_depth=4)
    )
    row = result.row
    assert row.throughput_bytes_per_s == pytest.approx(row.iops * 4 * KIB)
    assert row.throughput_ci_low <= row.throughput_bytes_per_s <= row.throughput_ci_high
    assert row.latency_p50_ns <= row.latency_p95_ns <= row.latency_p99_ns
    assert row.latency_p99_ns <= row.latency_max_ns
    assert row.latency_max_ns <= result.requested.latencies_ns.max()
    assert row.simulated_s == result.engine_run.end_ns / 1e9


def test_the_fingerprint_is_that_of_all_completions_in_order_of_issue(
    models, make_pool
):
    result = simulate(make_pool(models, "rep:3", groups=4), load(requests=100))
    times = result.requested.completed_ns
    assert result.sha256 == hashlib.sha256(times.astype("<i8").tobytes()).hexdigest()
    assert (np.diff(result.requested.issued_ns) >= 0).all()


@pytest.mark.parametrize("read", [0.0, 0.5])
def test_requests_planned_at_a_time_change_nothing(
    models, make_pool, monkeypatch, read
):
    # Given three clients with 64 in flight each, planned 64 requests at a time, or 16.
    three = replace(load(read=read).workload, clients=3, image_stride_bytes=1 << 30)
    monkeypatch.setattr(loops, "CHUNK", 1)

    def completions():
        pool = make_pool(models, "rep:3", groups=8)
        result = simulate(pool, three.start())
        return result.requested.completed_ns.tolist()

    whole = completions()
    monkeypatch.setattr(loops, "_FIRST_MAX", 0)
    assert completions() == whole


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_a_bounded_run_counts_completed_requests(models, make_pool, engine):
    pool = make_pool(models, "rep:3", groups=8)
    result = simulate(
        pool, load(requests=None, queue_depth=8), until_ns=50_000_000, engine=engine
    )
    asked = result.requested
    assert result.engine_run.end_ns == 50_000_000
    assert result.row.requests == asked.done.sum() < len(asked.issued_ns)
    assert (~asked.done).sum() == 8
    assert (asked.completed_ns[asked.done] <= 50_000_000).all()


def test_a_run_too_short_for_any_request_is_reported(models, make_pool):
    result = simulate(
        make_pool(models, "rep:3"), load(requests=None, queue_depth=8), until_ns=10
    )
    assert result.row.requests == 0
    assert result.row.iops is None


@pytest.mark.parametrize("requests", [1, 2, 19, 20, 21])
def test_few_requests_still_make_a_row(models, make_pool, requests):
    row = simulate(
        make_pool(models, "rep:3"), load(requests=requests, queue_depth=4)
    ).row
    assert row.requests == requests
    assert row.iops > 0 and row.latency_mean_ns > 0


@pytest.mark.parametrize("requests", [1, 200])
def test_the_rate_of_a_burst_ends_with_its_last_reply(requests):
    # Disks write what they deferred after the last reply, which takes no client's time.
    sets = {
        "schemes": ["rep:3"],
        "cluster.drive": "hdd-7200",
        "workload.ops": ["write"],
        "workload.kind": "open",
        "workload.rate_per_s": 1e5,
        "workload.requests": requests,
    }
    result = run_scenario(load_scenario("quickstart", sets=sets), unchecked=True)
    (row,) = result.rows.rows(named=True)
    # All arrive long before the first reply, so the slowest takes nearly all the time.
    arrivals_s = 3e-3
    slowest_s = row["latency_max_ns"] / 1e9
    assert requests / (slowest_s + arrivals_s) <= row["iops"] <= requests / slowest_s
    assert row["simulated_s"] > 1.3 * slowest_s


def test_bins_sum_to_the_account(models, make_pool):
    from stripesim.sim.engine.graph import COUNTERS

    pool = make_pool(models, "rs:4,2", groups=4)
    simulated = simulate(pool, load(requests=80), bin_ns=1_000_000)
    sums = dict(
        zip(COUNTERS, simulated.engine_run.bins.sum(axis=0).tolist(), strict=True)
    )
    client_bytes = 80 * 4 * KIB
    for name in (
        "device_read_bytes",
        "device_write_bytes",
        "private_net_bytes",
        "public_net_bytes",
    ):
        assert (
            sums[name]
            == getattr(simulated.row, f"{name}_per_client_byte") * client_bytes
        )
    # Bins hold what steps account. What waking threads takes, the run counts beside them.
    wakes_ns = simulated.engine_run.sleeps * pool.cluster.resources.wake_ns
    woken_ns = int(wakes_ns.sum())
    assert woken_ns > 0
    assert sums["cpu_ns"] + woken_ns == pytest.approx(simulated.row.cpu_ns_per_op * 80)


def test_preemptions_come_on_top_of_all_other_context_switches(
    models, change, make_pool
):
    # Given a thread that loses its core once for every two wake-ups
    switches = []
    for preemptions in (0, 0.5):
        changed = change(models, threads={"preemptions_per_wake_count": preemptions})
        row = simulate(make_pool(changed, "rs:4,2", groups=4), load(requests=80)).row
        switches.append(row.context_switches_per_op)
    assert switches[0] > 0
    assert switches[1] == pytest.approx(1.5 * switches[0], abs=1 / 80)


def test_intervals_are_centred_on_the_values_of_the_whole_window(models, make_pool):
    # Given an open loop, whose last arrival ends the window somewhat after the last batch
    pool = make_pool(models, "rep:3", groups=16)
    row = simulate(pool, load(requests=2000, queue_depth=0, rate=2000.0)).row
    assert row.throughput_ci_low > 0
    middle = (row.throughput_ci_low + row.throughput_ci_high) / 2
    assert middle == pytest.approx(row.throughput_bytes_per_s, rel=1e-9)
    middle_ns = (row.latency_ci_low + row.latency_ci_high) / 2
    assert middle_ns == pytest.approx(row.latency_mean_ns, rel=1e-9)
