"""Erasure coding by release: both engines agree for any primary, and bytes follow the plans."""

import pytest

from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import parse_scenario

TOML = """
name = "releases"
schemes = ["rs:4,2"]
[cluster]
hosts = 7
osds_per_host = 1
pg_num = 16
stripe_unit_bytes = 8192
parameters = "pacific"
[workload]
ops = ["write", "read"]
patterns = ["rand", "seq"]
block_sizes_bytes = ["4k", "20k"]
queue_depth = 8
requests = 90
image_bytes = "32MiB"
"""


def scenario(*sets):
    return parse_scenario(TOML, label="releases", sets=list(sets))


@pytest.mark.parametrize(
    "sets",
    [
        ["generation=squid"],
        ["generation=reef-partial-read"],
        ["generation=tentacle"],
        ["generation=tentacle", "workload.image=pristine"],
        ["generation=umbrella", "cluster.direct_reads=true"],
        ["generation=umbrella", "degraded.missing_osds=[0]"],
        ["generation=tentacle", "cluster.ec_optimizations=false"],
        ["generation=tentacle", "workload.read_fraction=0.5"],
    ],
    ids=" ".join,
)
def test_both_engines_complete_every_request_at_the_same_time(short_runs, sets):
    runs = [
        run_scenario(
            scenario(*sets, "workload.requests=48"),
            engine=engine,
            costs=False,
            first_full=False,
            unchecked=True,
        )
        for engine in ("compiled", "simpy")
    ]
    assert runs[0].completions_sha256 == runs[1].completions_sha256
    assert min(runs[0].rows["requests"]) >= 48


def test_an_optimised_pool_is_led_by_shard_0_or_a_parity():
    found = scenario("generation=tentacle", "degraded.missing_osds=[0]")
    (first, *_) = cells(found)
    pool = build_cell(found, first).pool
    lost = (pool.cluster.acting[:, 0] < 0) | (pool.cluster.acting[:, 0] > 6)
    assert lost.any()
    assert set(pool.primaries[lost].tolist()) == {4}
    assert set(pool.primaries[~lost].tolist()) == {0}


def test_a_classic_pool_of_a_new_release_writes_as_one_of_an_old_one():
    writes = "workload.ops=['write']"
    classic = run_scenario(
        scenario("generation=tentacle", "cluster.ec_optimizations=false", writes)
    )
    squid = run_scenario(scenario("generation=squid", writes))
    assert classic.completions_sha256 == squid.completions_sha256


def test_a_classic_pool_of_a_new_release_reads_one_chunk_for_4_kib():
    reads = (
        "workload.ops=['read']",
        "workload.patterns=['rand']",
        "workload.block_sizes_bytes=['4k']",
        "workload.image_bytes=64GiB",
        "cluster.stripe_unit_bytes=4096",
    )
    classic = run_scenario(
        scenario("generation=tentacle", "cluster.ec_optimizations=false", *reads)
    )
    squid = run_scenario(scenario("generation=squid", *reads))
    # RS(4,2): one chunk of 4 KiB instead of the stripe's four.
    column = "device_read_bytes_per_client_byte"
    assert classic.rows[column].to_list() == [1.0]
    assert squid.rows[column].to_list() == [4.0]


def test_a_run_of_several_clients_breaks_down_its_latency():
    result = run_scenario(scenario("generation=tentacle", "workload.clients=2"))
    assert result.rows["cost_latency_mean_ns"].min() > 0
