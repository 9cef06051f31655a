"""An OSD admits a limited number of client requests; a closed loop beyond it starts in its steady state."""

import dataclasses

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.cells.build import build_cell, build_pool
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.sim.ceph import demands
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.demands import Mix, requests_in_flight

LOAD = {
    "schemes": ["rep:3"],
    "generation": "reef",
    "cluster.parameters": "nvme",
    "cluster.drive": "samsung-pm983",
    "cluster.hosts": 4,
    "cluster.osds_per_host": 2,
    "cluster.pg_num": 256,
    "workload.ops": ["read"],
    "workload.patterns": ["rand"],
    "workload.block_sizes_bytes": ["4k"],
    "workload.image_bytes": "1GiB",
    "workload.requests": 20_000,
}


SEVERAL = """
name = "several"
generation = "reef"
schemes = ["rep:3"]
[cluster]
hosts = 4
osds_per_host = 2
pg_num = 64
parameters = "nvme"
drive = "samsung-pm983"
[workload]
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
image_bytes = "256MiB"
requests = 2000
"""


def scenario(clients, depth, **more):
    """Return a scenario of random reads in closed loops."""
    loops = {"workload.clients": clients, "workload.queue_depth": depth}
    return load_scenario("quickstart", sets={**LOAD, **loops, **more})


def throttle_of(loaded):
    """Return the limit of a scenario's cluster."""
    pool = build_pool(loaded, parse_scheme("rep:3"), build_models(loaded))
    return pool.cluster.models.throttle


def test_the_limit_is_left_out_where_fewer_requests_are_in_flight():
    # Reef admits 256 (osd_client_message_cap).
    assert throttle_of(scenario(4, 64)) is None
    throttle = throttle_of(scenario(4, 65))
    assert throttle is not None
    assert throttle.client_requests_max_count == 256


def workloads(tmp_path, *loads):
    """Return a scenario of random reads by several workloads: clients, queue depth and other keys of each."""
    tables = [
        f'[[workloads]]\nname = "load {number}"\nclients = {clients}\n{keys}\n'
        for number, (clients, keys) in enumerate(loads)
    ]
    path = tmp_path / "several.toml"
    path.write_text(SEVERAL + "".join(tables), encoding="utf-8")
    return load_scenario(path)


def test_requests_of_all_workloads_count(tmp_path):
    # 4 x 32 and 2 x 64 requests are 256 in all, of which Reef's OSDs would admit each one.
    depth_32 = "queue_depth = 32"
    depth_64 = "queue_depth = 64"
    assert throttle_of(workloads(tmp_path, (4, depth_32), (2, depth_64))) is None
    # Neither of these reaches the limit alone, but 5 x 32 + 2 x 64 = 288 do.
    assert throttle_of(workloads(tmp_path, (5, depth_32), (2, depth_64))) is not None


def test_an_open_workload_may_reach_the_limit(tmp_path):
    arrivals = 'kind = "open"\nrate_per_s = 100.0'
    loaded = workloads(tmp_path, (1, "queue_depth = 1"), (1, arrivals))
    assert throttle_of(loaded) is not None


def test_models_do_not_depend_on_the_load():
    few = build_models(scenario(4, 64))
    many = build_models(scenario(4, 65))
    assert few.throttle == many.throttle


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_an_osd_never_serves_more_requests_than_it_admits(engine):
    # Given 50 requests in flight, and OSDs that admit one each
    loaded = scenario(10, 5, **{"workload.requests": 1000})
    models = build_models(loaded)
    assert models.throttle is not None
    one = dataclasses.replace(models.throttle, client_requests_max_count=1)
    narrow = dataclasses.replace(models, throttle=one)
    cell = cells(loaded)[0]
    # When they run
    wide_iops = run_cell(loaded, cell, engine, models).row.iops
    row = run_cell(loaded, cell, engine, narrow).row
    # Then by Little's law the 8 OSDs complete at most 8 requests per unloaded latency, 85 us of its drive
    # at least.
    assert row.iops < 8 / 85e-6
    assert row.iops < wide_iops / 2


@pytest.mark.usefixtures("short_runs")
def test_both_engines_agree_under_the_limit():
    loaded = scenario(30, 10, **{"workload.requests": 600})
    cell = cells(loaded)[0]
    results = [
        run_cell(loaded, cell, engine, unchecked=True)
        for engine in ("compiled", "simpy")
    ]
    assert results[0].sha256 == results[1].sha256


def random_load(*, clients, queue_depth, read_fraction):
    """Requests of 4 KiB at random offsets, without end. Each client has an image of 1 GiB."""
    return Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=1 << 30,
        read_fraction=read_fraction,
        requests=None,
        queue_depth=queue_depth,
        clients=clients,
        image_stride_bytes=1 << 30,
    )


def test_requests_in_flight_add_up_and_gather_where_the_load_is_highest():
    # Given a pool of which one group gets ten times the requests of the others
    loaded = scenario(30, 10)
    pool = build_pool(loaded, parse_scheme("rep:3"), build_models(loaded))
    weights = np.ones(256)
    weights[7] = 10
    weights /= weights.sum()
    load = random_load(clients=30, queue_depth=10, read_fraction=1.0)
    # When 300 requests are in flight
    at_resources, waiting = requests_in_flight(
        pool, Mix(workload=load.start()), weights, 300, np.random.default_rng(1)
    )
    # Then they are all somewhere, most of them on the primary of that group.
    assert at_resources.sum() + waiting.sum() == pytest.approx(300)
    primaries = pool.cluster.acting[np.arange(256), pool.primaries]
    of_primary = np.bincount(primaries, at_resources + waiting)
    assert of_primary.argmax() == primaries[7]


def test_no_line_forms_for_a_sync_that_serves_all_transactions_at_once(change):
    # Given drives whose flush takes no time, or 50 ms
    loaded = scenario(30, 10)
    load = random_load(clients=30, queue_depth=10, read_fraction=0.0)
    weights = np.full(256, 1 / 256)
    drawn = []
    for flush_ns in (0.0, 5e7):
        models = change(build_models(loaded), ssd={"flush_base_ns": flush_ns})
        pool = build_pool(loaded, parse_scheme("rep:3"), models)
        mix = Mix(workload=load.start())
        rng = np.random.default_rng(4)
        drawn.append(requests_in_flight(pool, mix, weights, 300, rng))
    # Then the same requests wait at the same places, although a flush is by far the longest service.
    for fast, slow in zip(*drawn, strict=True):
        assert slow.tolist() == fast.tolist()


def test_a_draw_does_not_depend_on_the_parts_that_it_is_made_in(monkeypatch):
    # Given the loads of a pool's resources, of which memory allows only some at a time
    loaded = scenario(30, 10)
    pool = build_pool(loaded, parse_scheme("rep:3"), build_models(loaded))
    load = random_load(clients=30, queue_depth=10, read_fraction=0.5)
    weights = np.full(256, 1 / 256)

    def drawn():
        rng = np.random.default_rng(3)
        mix = Mix(workload=load.start())
        return np.array(requests_in_flight(pool, mix, weights, 300, rng))

    at_once = drawn()
    monkeypatch.setattr(demands, "_RESOURCES_AT_A_TIME", 7)
    monkeypatch.setattr(demands, "_GROUPS_AT_A_TIME", 7)
    assert len(pool.cluster.resources) > 100
    assert (drawn() == at_once).all()


def test_writes_beyond_the_limit_wait_for_admission_to_one_primary():
    # Given 3,000 writes in flight, nearly all of them queued at the busiest OSD, which admits 256 of its own
    loaded = scenario(30, 100)
    pool = build_pool(loaded, parse_scheme("rep:3"), build_models(loaded))
    limit = pool.cluster.models.throttle.client_requests_max_count
    load = random_load(clients=30, queue_depth=100, read_fraction=0.0)
    weights = np.full(256, 1 / 256)
    at_resources, waiting = requests_in_flight(
        pool, Mix(workload=load.start()), weights, 3000, np.random.default_rng(1)
    )
    # Then those that wait have one primary, and fill the limit together with those of others at replicas.
    primaries = pool.cluster.acting[np.arange(256), pool.primaries]
    assert len(set(primaries[waiting > 0])) == 1
    [hot] = set(primaries[waiting > 0])
    of_hot = at_resources[primaries == hot].sum()
    assert limit <= of_hot < 1.2 * limit
    assert at_resources.sum() + waiting.sum() == pytest.approx(3000)


@pytest.fixture(scope="module")
def two_hot():
    """Return a pool, weights that give half of all reads to a group of each of two OSDs, and their groups."""
    loaded = scenario(30, 100)
    pool = build_pool(loaded, parse_scheme("rep:3"), build_models(loaded))
    primaries = pool.cluster.acting[np.arange(256), pool.primaries]
    weights = np.zeros(256)
    hot = primaries[[0, np.flatnonzero(primaries != primaries[0])[0]]]
    for osd in hot:
        [first, *_] = np.flatnonzero(primaries == osd)
        weights[first] = 0.5
    return pool, weights, [primaries == osd for osd in hot]


def test_two_crowded_osds_both_admit_no_more_than_their_limit(two_hot):
    # Given 10,000 reads in flight of two OSDs with equal loads, of which one has thousands in line as well
    pool, weights, groups_of_hot = two_hot
    limit = pool.cluster.models.throttle.client_requests_max_count
    load = random_load(clients=100, queue_depth=100, read_fraction=1.0)
    at_resources, waiting = requests_in_flight(
        pool, Mix(workload=load.start()), weights, 10_000, np.random.default_rng(2)
    )
    # Then each admits its limit, beside the few at other resources, and all others wait.
    for groups in groups_of_hot:
        assert waiting[groups].sum() > limit
        assert limit <= at_resources[groups].sum() < 1.1 * limit
    assert at_resources.sum() + waiting.sum() == pytest.approx(10_000)


def test_an_osd_slightly_beyond_its_limit_admits_no_more_either(two_hot):
    # Given 800 reads in flight of two OSDs that admit 256 each, the second of which has any part of them
    pool, weights, groups_of_hot = two_hot
    load = random_load(clients=80, queue_depth=10, read_fraction=1.0)
    for seed in range(10):
        at_resources, _ = requests_in_flight(
            pool, Mix(workload=load.start()), weights, 800, np.random.default_rng(seed)
        )
        # Then a few more are at other resources.
        for groups in groups_of_hot:
            assert at_resources[groups].sum() < 1.05 * 256, f"seed {seed}"


def test_only_first_requests_are_placed():
    # Given the same load, started in its steady state or evenly
    loaded = scenario(30, 10)
    workload = build_cell(loaded, cells(loaded)[0]).workload
    placed = workload.take(20)
    evenly = dataclasses.replace(workload.workload, first_blocks=None).start().take(20)
    first = 30 * 10
    # Then the first requests of each client differ, all later ones are equal.
    assert (placed.offsets_bytes[:first] != evenly.offsets_bytes[:first]).any()
    assert (placed.offsets_bytes[first:] == evenly.offsets_bytes[first:]).all()
