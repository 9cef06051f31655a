"""The bound of a cluster's rate, compared with hand calculations and simulation."""

from dataclasses import replace

import numpy as np
import pytest

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.scenarios.cells import longer, run
from stripesim.scenarios.cells.bound import (
    bounds_of,
    bounds_of_cell,
    may_hit_caches,
    measured_bounds,
    within_bound,
)
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import scenario_from
from stripesim.sim.ceph.demands import Mix, demands_of
from stripesim.sim.ceph.planner import PoolGraphs
from stripesim.sim.engine.program import POOL

CLUSTER = {"hosts": 6, "osds_per_host": 4, "pg_num": 1024}
LOAD = {
    "patterns": ["rand"],
    "block_sizes_bytes": ["4k"],
    "queue_depth": 128,
    "clients": 8,
    "image_bytes": "64GiB",
}


def scenario_of(cluster, load, schemes=("rep:3", "rs:4,2"), **top):
    tables = {"cluster": CLUSTER | cluster, "workload": LOAD | load}
    return scenario_from({"schemes": list(schemes), **tables, **top})


def bound_of(scenario, scheme, resource):
    return next(
        bound.iops
        for bound in bounds_of(scenario, scheme)
        if bound.resource == resource
    )


def number(name, table, key):
    return ParameterSet(name).table(table)[key]["value"]


def test_disks_serve_one_request_per_seek_and_half_turn():
    # Given 24 disks and one placement group on each pair, so that no disk has more than another.
    scenario = scenario_of(
        {"drive": "hdd-7200", "pg_num": 4096},
        {"ops": ["read"], "requests": 10},
        schemes=["rep:1"],
    )

    iops = bound_of(scenario, "rep:1", "drives")

    seek_s = number("hdd-7200", "hdd", "read_mean_seek_ns") * 1e-9
    half_turn_s = number("hdd-7200", "hdd", "rotation_ns") * 0.5e-9
    transfer_s = number("hdd-7200", "hdd", "read_ns_per_byte") * 4096e-9
    # When a read ends, those of four other threads wait. The disk reaches the nearest in 0.657 of the time.
    by_hand = 24 / (0.657 * (seek_s + half_turn_s) + transfer_s)
    # The busiest disk of 24 with 170 placement groups each has some 10 to 25 % more than the mean.
    assert by_hand / 1.4 < iops <= by_hand
    # A disk does 86 reads per second in order of arrival, and 131 of those that it sorts.
    assert 125 < by_hand / 24 < 135


def test_large_reads_are_bound_by_the_wires_of_all_hosts():
    given = {"public_gbit_per_s": 10.0, "private_gbit_per_s": 10.0}
    load = {"ops": ["read"], "block_sizes_bytes": ["1MiB"], "requests": 10}
    scenario = scenario_of(given, load, schemes=["rep:3"])

    iops = bound_of(scenario, "rep:3", "public network")

    # 6 hosts × 1.25 GB/s / 1 MiB, less 90 bytes of frame to each 1,448 of payload and the uneven placement.
    by_hand = 6 * 1.25e9 / (1024**2 * (1 + 90 / 1448))
    assert by_hand / 1.2 < iops <= by_hand


@pytest.mark.parametrize("private", [{}, {"private_gbit_per_s": 40.0}])
def test_one_network_carries_copies_at_the_rate_of_its_only_interface(private):
    given = {"public_gbit_per_s": 10.0, "networks": 1, **private}
    load = {"ops": ["write"], "block_sizes_bytes": ["1MiB"], "requests": 10}
    scenario = scenario_of(given, load, schemes=["rep:3"])

    iops = bound_of(scenario, "rep:3", "public network")

    # As above, and hosts receive each write three times: its primary from the client, two others from it.
    by_hand = 6 * 1.25e9 / (3 * 1024**2 * (1 + 90 / 1448))
    assert by_hand / 1.2 < iops <= by_hand


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_fewer_cores_lower_the_bound_of_a_processor_bound_cluster(scheme):
    load = {"ops": ["write"], "requests": 10}
    many, few = (scenario_of({"cores_per_host": cores}, load) for cores in (32, 2))

    ratio = bound_of(many, scheme, "processors") / bound_of(few, scheme, "processors")

    assert ratio == pytest.approx(16)
    assert bounds_of(few, scheme)[0].resource == "processors"


def test_erasure_coding_saturates_processors_at_a_lower_rate_than_copies():
    scenario = scenario_of({"cores_per_host": 4}, {"ops": ["write"], "requests": 10})
    coded, copied = (bounds_of(scenario, scheme)[0] for scheme in ("rs:4,2", "rep:3"))
    assert coded.resource == copied.resource == "processors"
    assert coded.iops < copied.iops


CLUSTERS = {
    "disks": ({"drive": "hdd-7200"}, {"queue_depth": 64, "requests": 5000}),
    "nvme": ({}, {"queue_depth": 64, "requests": 5000}),
    "few cores": ({"cores_per_host": 4}, {"queue_depth": 64, "requests": 10_000}),
}


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("size", ["4k", "64k"])
def test_saturation_reaches_the_bound(name, size):
    # Given a load of 512 requests in flight, which saturates each of these clusters.
    cluster, load = CLUSTERS[name]
    scenario = scenario_of(
        cluster, load | {"ops": ["write", "read"], "block_sizes_bytes": [size]}
    )
    models = build_models(scenario)
    for cell in cells(scenario):
        bound = bounds_of_cell(scenario, cell, models)[0]
        reached = run_cell(scenario, cell, "compiled", models).row.iops
        # A short run passes the rate of the busiest member until its queue has grown.
        assert 0.7 < bound.iops / reached < 1.5, (cell, bound, reached)


def test_a_thread_without_a_neighbour_is_not_slowed():
    # Given hosts with one hardware thread, with the two of a core, and with three: a core and a thread.
    # Two that share a core are each slower by s. Of three, two share: they are slower by 2 s / 3 on average.
    load = {"ops": ["write"], "requests": 1000}
    scenario = scenario_of({}, load, ["rep:3"])
    slower = build_models(scenario).cpu.paired_slowdown_fraction
    bounds = [
        bound_of(
            scenario_of({"cores_per_host": cores}, load, ["rep:3"]),
            "rep:3",
            "processors",
        )
        for cores in (1, 2, 3)
    ]

    assert slower > 0
    # Engines round s to 1 / 1,024.
    assert bounds[1] / bounds[0] == pytest.approx(2 / (1 + slower), rel=1e-3)
    three = 3 / (1 + 2 / 3 * slower)
    assert bounds[2] / bounds[0] == pytest.approx(three, rel=1e-3)


def test_a_run_above_its_bound_runs_longer(monkeypatch):
    # Given a bound that only runs of four times the requests keep.
    def four_times(scenario, cell, models, result):
        refused = None if result.length >= 4 else "Bounds: got more"
        return replace(result, row=replace(result.row, refused=refused))

    monkeypatch.setattr(run, "within_bound", four_times)
    load = {"ops": ["read"], "queue_depth": 1, "clients": 1, "requests": 100}
    scenario = scenario_of({}, load, ["rep:3"])

    result = run_cell(scenario, cells(scenario)[0], "compiled")

    assert result.length == 4
    assert len(result.requested.issued_ns) == 400


@pytest.mark.parametrize(
    ("parameters", "image", "scheme", "may_exceed"),
    # 24 OSDs cache 1 GiB each in kraken, and nothing in nvme. A drive alone has no cache.
    [
        ("kraken", "1GiB", "rep:3", True),
        ("kraken", "512GiB", "rep:3", False),
        ("nvme", "1GiB", "rep:3", False),
        ("kraken", "1GiB", "none", False),
    ],
)
def test_reads_that_hit_caches_are_not_judged_by_the_bound_of_drives(
    parameters, image, scheme, may_exceed
):
    load = {"ops": ["read"], "image_bytes": image, "clients": 1, "requests": 10}
    cluster = {"parameters": parameters}
    if scheme == "none":
        cluster |= {"hosts": 1, "osds_per_host": 1, "pg_num": 1}
    scenario = scenario_of(cluster, load, [scheme])
    (cell,) = cells(scenario)
    assert may_hit_caches(scenario, cell, build_models(scenario)) == may_exceed


def test_a_run_with_warm_caches_exceeds_the_rate_of_its_disks():
    cluster = {"parameters": "kraken", "drive": "hdd-7200"}
    load = {"ops": ["read"], "image_bytes": "16MiB", "clients": 1, "requests": 20_000}
    scenario = scenario_of(cluster, load, ["rep:3"])
    row = run_cell(scenario, cells(scenario)[0], "compiled").row
    # 4,096 blocks of 4 KiB are read once, so four reads of five hit.
    assert row.refused is None
    assert row.device_read_bytes_per_client_byte == pytest.approx(0.2, abs=0.02)
    assert row.iops > 1.2 * bound_of(scenario, "rep:3", "drives")


@pytest.mark.parametrize("clients", [1, 3])
def test_a_run_that_is_known_to_be_too_short_is_not_simulated_first(
    monkeypatch, clients
):
    # Given fewer than eight rounds of requests.
    load = {"ops": ["write"], "queue_depth": 8, "clients": clients, "requests": 50}
    scenario = scenario_of({}, load, ["rep:3"])
    lengths = []
    simulated = run.simulate

    def counted(*args, **further):
        result = simulated(*args, **further)
        lengths.append(len(result.requested.issued_ns))
        return result

    monkeypatch.setattr(run, "simulate", counted)

    # When it runs, and when a short run comes first.
    result = run_cell(scenario, cells(scenario)[0], "compiled")
    direct = list(lengths)
    monkeypatch.setattr(longer, "_UNTRIED_REQUESTS_MAX", 0)
    other = run_cell(scenario, cells(scenario)[0], "compiled")

    assert direct == lengths[2:]
    assert lengths[1] == 50
    assert (result.length, result.sha256) == (other.length, other.sha256)


@pytest.mark.parametrize("requests", [1, 5000])
def test_each_group_of_a_degraded_pool_counts_by_its_own_requests(requests):
    """Given groups that lack an OSD in different places, whose writes hold their lock as long as others.

    One request meets one such group, and all of them were taken to go where it goes.
    """
    small = {"hosts": 7, "osds_per_host": 2, "pg_num": 16}
    load = {"ops": ["write"], "requests": requests, "image_bytes": "1TB"}
    of_whole = scenario_of(small, load, ["rs:4,2"])
    degraded = scenario_of(small, load, ["rs:4,2"], degraded={"missing_osds": [2]})
    locks = "placement group locks"

    healthy = bound_of(of_whole, "rs:4,2", locks)
    assert bound_of(degraded, "rs:4,2", locks) == pytest.approx(healthy, rel=0.05)


SLOW_WIRES = {"public_gbit_per_s": 1}
READS = {"ops": ["read"], "queue_depth": 16, "requests": 20_000}
GETS = {
    "kind": "s3",
    "ops": ["get"],
    "object_sizes_bytes": ["4k"],
    "clients": 5,
    "queue_depth": 50,
    "requests": 20_000,
}


@pytest.mark.parametrize(
    "scenario",
    [
        scenario_of(SLOW_WIRES, READS, ["rep:3"]),
        scenario_of(SLOW_WIRES, READS | {"patterns": ["rand", "seq"]}, ["rep:3"]),
        scenario_from(
            {
                "schemes": ["rep:3"],
                "cluster": CLUSTER | SLOW_WIRES | {"gateways": {"count": 6}},
                "workload": GETS,
            }
        ),
    ],
    ids=["reads", "random reads of two patterns", "objects without a pattern"],
)
def test_a_rate_above_the_lowest_bound_is_refused_by_its_check(scenario):
    # Given a cluster at its bound, whose rate is multiplied by two.
    models = build_models(scenario)
    cell = cells(scenario)[0]
    result = run_cell(scenario, cell, "compiled", models)
    row = result.row
    assert row.throughput_ci_low is not None
    doubled = replace(row, iops=2 * row.iops)

    refused = within_bound(scenario, cell, models, replace(result, row=doubled))

    assert within_bound(scenario, cell, models, result).refused is None
    assert refused.refused.startswith("Bounds")


@pytest.mark.parametrize("clients", [1, 8])
def test_the_bound_of_a_mix_counts_reads_and_writes_by_their_shares(clients):
    # 512 drawn requests would have up to 7 % more or fewer writes.
    def processor_ns(read_fraction):
        load = {
            "read_fraction": read_fraction,
            "clients": clients,
            "queue_depth": 8,
            "requests": 4000,
        }
        scenario = scenario_of({}, load, schemes=["rep:3"])
        (cell,) = cells(scenario)
        inputs = build_cell(scenario, cell, build_models(scenario))
        groups = inputs.pool.cluster.groups
        stations = demands_of(
            inputs.pool, [Mix(workload=inputs.workload)], np.full(groups, 1 / groups)
        )
        return next(one.demand_ns for one in stations if one.kind == "cpu")

    by_hand_ns = 0.7 * processor_ns(1.0) + 0.3 * processor_ns(0.0)
    assert processor_ns(0.7) == pytest.approx(by_hand_ns, rel=1e-9)


def test_cheap_requests_that_overtake_do_not_refute_the_utilisation_law():
    # Given 120 requests within 60 ms to disks. Reads of objects without data complete at once, writes queue
    # for half a second, so the completions until the last arrival have a fraction of the mean demand.
    load = {
        "kind": "open",
        "rate_per_s": 2000.0,
        "requests": 120,
        "read_fraction": 0.7,
        "patterns": ["rand"],
        "block_sizes_bytes": ["64k"],
        "image": "pristine",
        "image_bytes": "256MiB",
        "clients": 3,
    }
    cluster = {"hosts": 10, "osds_per_host": 1, "pg_num": 32, "drive": "hdd-7200"}
    scenario = scenario_from(
        {
            "generation": "tentacle",
            "schemes": ["rs:2,1"],
            "cluster": cluster,
            "workload": load,
        }
    )
    [cell] = cells(scenario)

    row = run_cell(scenario, cell, "compiled").row

    assert row.iops is not None


def per_request(scenario):
    """Return the planned demand and the measured use of each class by a request of an idle cluster [ns]."""
    models = build_models(scenario)
    [cell] = cells(scenario)
    pool = build_cell(scenario, cell, models).pool
    weights = np.full(pool.cluster.groups, 1 / pool.cluster.groups)
    load = build_cell(scenario, cell, models).workload
    planned = {
        station.kind: station.demand_ns
        for station in demands_of(pool, [Mix(workload=load)], weights)
    }
    result = run_cell(scenario, cell, "compiled", models, unchecked=True)
    resources = pool.cluster.resources
    run_ = result.engine_run
    is_pool = resources.disciplines == POOL
    used_ns = np.where(is_pool, run_.held_ns, run_.busy_ns)
    totals_ns = np.bincount(resources.kind_indices, weights=used_ns)
    measured = totals_ns / result.row.requests
    return planned, dict(zip(resources.kind_names, measured.tolist(), strict=False))


@pytest.mark.parametrize(
    ("scheme", "cluster", "load", "top"),
    [
        ("rep:3", {}, {"ops": ["write"]}, {}),
        ("rs:4,2", {}, {"ops": ["read"]}, {}),
        # A client on a storage host does not reach its own primaries over the network.
        ("rep:3", {}, {"ops": ["read"]}, {"client": {"place": "osd-hosts"}}),
        ("rep:3", {}, {"ops": ["write"]}, {"client": {"place": "osd-hosts"}}),
        # On equal drives, the parity is never before the four data shards, so that nothing is decoded.
        (
            "rs:4,2",
            {"read_policy": "speculative:1", "drive_numbers": {"read_sigma": 0.0}},
            {"ops": ["read"], "block_sizes_bytes": ["1MiB"]},
            {"generation": "pacific"},
        ),
    ],
)
def test_planned_demands_are_what_requests_use_in_an_idle_cluster(
    scheme, cluster, load, top
):
    idle = {"queue_depth": 1, "clients": 3, "requests": 3000}
    scenario = scenario_of(cluster, load | idle, [scheme], **top)
    planned, measured = per_request(scenario)
    # Times of drives are drawn, and threads also wake up. Of the rest, 3,000 requests meet the placement
    # groups in slightly other shares.
    networks = [
        f"{net}.{way}"
        for net in ("client", "public", "private")
        for way in ("tx", "rx")
    ]
    known = planned.keys() & {"cpu", "client.submit", *networks}
    assert known >= {"cpu", "client.submit", "public.tx", "public.rx"}
    for kind in known:
        assert planned[kind] == pytest.approx(measured[kind], rel=0.01), kind


def test_demands_of_objects_weigh_operations_and_sizes_by_their_shares():
    # Given three GETs for each PUT, and nine small objects for each large one
    load = {
        "kind": "s3",
        "ops": ["get", "put"],
        "op_shares": [3, 1],
        "object_sizes_bytes": ["4k", "1MiB"],
        "size_shares": [9, 1],
        "queue_depth": 1,
        "requests": 3000,
    }
    scenario = scenario_from(
        {"schemes": ["rep:3"], "cluster": CLUSTER, "workload": load}
    )

    planned, measured = per_request(scenario)

    # Of 3,000 requests, 75 are PUTs of 1 MiB: their number has a deviation of 11 %.
    for kind in ("cpu", "private.tx"):
        assert planned[kind] == pytest.approx(measured[kind], rel=0.2), kind
    a_copy_ns = 2 * (1 << 20) * 8 / scenario.cluster.private_gbit_per_s
    assert planned["private.tx"] == pytest.approx(a_copy_ns / 40, rel=0.2)


def test_a_lock_is_held_for_the_messages_that_cross_sites_and_no_others():
    # Given reads under a lock that is held until the one other shard has answered. Of five other hosts, three
    # are at the other site.
    cluster = {"sites": 2, "site_rtt_ms": 2.0, "parameters": "kraken"}
    load = {"ops": ["read"], "queue_depth": 1, "clients": 3, "requests": 3000}
    scenario = scenario_of(
        cluster | {"drive": "intel-730"}, load, ["rs:2,1"], generation="kraken"
    )

    planned, measured = per_request(scenario)

    # Wake-ups of threads, which the demand leaves out, take less than 0.2 ms.
    crossing_ns = 3 / 5 * 2e6
    assert crossing_ns < planned["pg.lock"] < crossing_ns + 0.3e6
    assert planned["pg.lock"] < measured["pg.lock"] < planned["pg.lock"] + 0.2e6


def test_a_bound_states_how_much_more_its_busiest_member_has():
    # Given so few placement groups that the busiest of 24 drives holds far more than the mean
    scenario = scenario_of({"pg_num": 32}, {"ops": ["read"], "requests": 10}, ["rep:3"])
    [cell] = cells(scenario)
    models = build_models(scenario)
    pool = build_cell(scenario, cell, models).pool
    groups_of_osd = np.bincount(pool.primary_osds, minlength=24)

    [drives] = [
        bound
        for bound in bounds_of_cell(scenario, cell, models)
        if bound.resource == "drives"
    ]

    over = groups_of_osd.max() / groups_of_osd.mean()
    assert over > 2
    assert f"the busiest has {over:.1f}" in drives.why


def test_small_sequential_writes_are_bound_by_the_groups_they_are_in():
    load = {"ops": ["write"], "patterns": ["seq"], "requests": 5000}
    scenario = scenario_of(
        {"parameters": "kraken", "drive": "intel-730"}, load, generation="kraken"
    )
    models = build_models(scenario)
    for cell in cells(scenario):
        bound = bounds_of_cell(scenario, cell, models)[0]
        reached = run_cell(scenario, cell, "compiled", models).row.iops
        assert bound.resource == "placement group locks"
        # While a group is locked, its write also waits for what other groups' writes keep busy.
        assert 0.9 < bound.iops / reached < 2.5, (cell, bound, reached)


def test_a_stream_keeps_a_group_busy_and_two_more_for_each_object_in_flight():
    # Given sequential writes of 64 KiB to objects of 4 MiB
    load = {"ops": ["write"], "patterns": ["seq"], "block_sizes_bytes": ["64k"]}
    kraken = {"parameters": "kraken", "drive": "intel-730", "pg_num": 64}

    def locks_iops(clients, queue_depth):
        loops = {"clients": clients, "queue_depth": queue_depth, "requests": 10}
        scenario = scenario_of(kraken, load | loops, ["rep:3"], generation="kraken")
        return bound_of(scenario, "rep:3", "placement group locks")

    # When half an object or one and a half are in flight, they keep 1 + 1 and 1 + 3 groups busy.
    half = locks_iops(clients=1, queue_depth=32)
    assert locks_iops(clients=1, queue_depth=96) / half == pytest.approx(4 / 2)
    # Each client has its own stream.
    assert locks_iops(clients=3, queue_depth=32) / half == pytest.approx(3)


def test_of_several_workloads_the_mix_of_their_rates_decides():
    each = {"patterns": ["rand"], "block_sizes_bytes": ["4k"], "kind": "open"}
    reads = {**each, "name": "reads", "ops": ["read"]}
    writes = {**each, "name": "writes", "ops": ["write"]}

    def bound(reads_per_s, writes_per_s):
        loads = [
            {**reads, "rate_per_s": reads_per_s},
            {**writes, "rate_per_s": writes_per_s},
        ]
        tables = {
            "cluster": CLUSTER | {"drive": "hdd-7200"},
            "workload": {"requests": 10},
        }
        scenario = scenario_from({"schemes": ["rep:3"], **tables, "workloads": loads})
        return bounds_of(scenario, "rep:3")[0].iops

    # By time of drives per request: a half of each takes the mean of both.
    mixed = 1 / (0.5 / bound(1000.0, 0.001) + 0.5 / bound(0.001, 1000.0))
    assert bound(500.0, 500.0) == pytest.approx(mixed, rel=0.15)


def test_a_filling_image_is_bound_by_the_cheaper_of_its_states():
    # First writes to an object of this code also write the zeros before them, later ones do not.
    load = {"ops": ["write"], "requests": 10, "image_bytes": "1GiB"}
    rates = {
        image: {
            bound.resource: bound.iops
            for bound in bounds_of(scenario_of({}, load | {"image": image}), "rs:4,2")
        }
        for image in ("prefilled", "pristine")
    }
    # A filled image does not stay below the bound of one that fills.
    assert rates["pristine"]["drives"] >= rates["prefilled"]["drives"]
    assert min(rates["pristine"].values()) >= min(rates["prefilled"].values())


def test_the_mix_of_workloads_is_unknown_if_none_of_a_workload_completes():
    each = {"patterns": ["rand"], "block_sizes_bytes": ["4k"], "ops": ["read"]}
    loads = [{**each, "name": name} for name in ("first", "second")]
    tables = {"cluster": CLUSTER, "workload": {"requests": 200}, "workloads": loads}
    scenario = scenario_from({"schemes": ["rep:3"], **tables})
    (cell,) = cells(scenario)
    models = build_models(scenario)
    result = run_cell(scenario, cell, "compiled", models)
    first, second = result.load_rows
    assert measured_bounds(scenario, cell, models, result)
    none = replace(result, load_rows=(first, replace(second, iops=None)))
    assert measured_bounds(scenario, cell, models, none) == ()


@pytest.mark.usefixtures("short_runs")
def test_bounds_of_a_run_use_the_graphs_that_it_has_compiled(monkeypatch):
    # Given a run whose requests the bound plans as well
    load = {"ops": ["read"], "block_sizes_bytes": ["4k"], "requests": 600}
    scenario = scenario_of({"pg_num": 16}, load, ["rs:4,2"])
    (cell,) = cells(scenario)
    models = build_models(scenario)
    result = run_cell(scenario, cell, "compiled", models, unchecked=True)
    alone = measured_bounds(scenario, cell, models, replace(result, compiled={}))
    # When its bounds are computed where no graph can be compiled
    monkeypatch.setattr(PoolGraphs, "_compile", None)
    # Then they are those of graphs that are compiled again.
    assert measured_bounds(scenario, cell, models, result) == alone
