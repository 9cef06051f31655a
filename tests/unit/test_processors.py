"""Use of processors: parts add up, Little's law and the utilisation law hold."""

import pytest

from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.run import simulate


@pytest.fixture(params=["rep:3", "rs:2,1"])
def result(request, make_pool, models, change):
    threads = {
        "messenger_threads_count": 3,
        "wake_ns": 1000.0,
        "slice_ns": 1e6,
        "peer_acks_count": 1,
    }
    load = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=1 << 26,
        read_fraction=0.0,
        requests=300,
        queue_depth=8,
    )
    return simulate(
        make_pool(change(models, threads=threads), request.param), load.start()
    )


def test_threads_add_up_to_the_processor_time_of_a_request(result):
    total = sum(one["cpu_ns_per_op"] for one in result.processors["threads"])
    assert total == pytest.approx(result.row.cpu_ns_per_op)
    assert all(one["cpu_ns_per_op"] > 0 for one in result.processors["threads"])


def test_hosts_are_busy_for_the_time_of_their_requests(result):
    busy_s = sum(
        host["utilisation"] * host["cores"] for host in result.processors["hosts"]
    )
    rate = result.row.requests / (result.engine_run.end_ns / 1e9)
    assert busy_s == pytest.approx(rate * result.row.cpu_ns_per_op / 1e9, rel=0.02)


def test_threads_without_waits_are_in_use_for_their_work(make_pool, models, change):
    # Little's law: in use = rate × how long each piece of work holds its thread, which alone is its own time.
    threads = {"messenger_threads_count": 3, "slice_ns": 1e6, "peer_acks_count": 1}
    load = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=1 << 26,
        read_fraction=0.0,
        requests=50,
        queue_depth=1,
    )
    pool = make_pool(
        change(models, threads=threads, cpu={"cores_per_host": 16}), "rep:3"
    )
    result = simulate(pool, load.start())
    messenger = result.processors["threads"][0]
    count = messenger["count_per_osd"] * pool.cluster.osds
    rate_per_ns = result.row.requests / result.engine_run.end_ns
    assert count * messenger["in_use_mean"] == pytest.approx(
        rate_per_ns * messenger["cpu_ns_per_op"], rel=0.01
    )
