"""Sites: messages between them take half a round trip longer, whoever sends them."""

from dataclasses import replace

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.placement import map_of_hosts
from stripesim.models.problems import ScenarioError
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.cells.build import build_cell, check_schemes
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import up_sets
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario
from stripesim.sim.run import simulate
from support.messages import states

# Six hosts, two at each of three sites. One request is in flight at a time, and drives have no spread, so
# that requests differ by their distances alone.
CLUSTER = """[cluster]
parameters = "kraken"
hosts = 6
osds_per_host = 2
sites = 3
pg_num = 64
failure_domain_replicated = "site"
failure_domain_erasure = "site"
[cluster.drive_numbers]
read_sigma = 0
write_sigma = 0
[workload]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
image_bytes = "2GB"
queue_depth = 1
requests = 120
"""
RTT_MS = 20.0
FAR_MS = ((0, 10, 40), (10, 0, 20), (40, 20, 0))


def scenario(scheme: str, op: str, *sets: str):
    text = f'schemes = ["{scheme}"]\n{CLUSTER}ops = ["{op}"]\n'
    return parse_scenario(text, sets=sets)


def latencies(asked, engine: str = "compiled"):
    """Return the latency of each request, the sites of its shards (the primary first), and the run [ms]."""
    cell = cells(asked)[0]
    inputs = build_cell(asked, cell)
    pool = inputs.pool
    result = simulate(pool, inputs.workload, engine=engine, prefilled=inputs.prefilled)
    requested = result.requested
    # Two OSDs on each host, two hosts at each site.
    sites = pool.cluster.acting[requested.groups] // 4
    return requested.latencies_ns / 1e6, sites, result


def by_hand(rtt_ms, sites, *, write: bool):
    """Return the sum of round trips of each request of a client at site 0 [ms]."""
    rtt_ms = np.array(rtt_ms)
    primary = sites[:, 0]
    to_primary = rtt_ms[0, primary]
    if not write:
        return to_primary
    # The primary replies when its last replica has.
    replicas = [rtt_ms[primary, sites[:, shard]] for shard in range(1, sites.shape[1])]
    return to_primary + np.max(replicas, axis=0)


@pytest.mark.parametrize("rtt", [RTT_MS, FAR_MS])
@pytest.mark.parametrize("op", ["read", "write"])
def test_a_request_takes_the_round_trips_of_its_messages_longer(op, rtt):
    text = str([list(row) for row in rtt]) if isinstance(rtt, tuple) else str(rtt)
    rtt_ms = rtt if isinstance(rtt, tuple) else RTT_MS * (1 - np.eye(3))
    times_ms, sites, _ = latencies(scenario("rep:3", op, f"cluster.site_rtt_ms={text}"))
    expected_ms = by_hand(rtt_ms, sites, write=op == "write")
    assert len(np.unique(expected_ms)) >= 2
    # All else takes as long as without sites: less than 1 ms.
    rest_ms = times_ms - expected_ms
    assert (rest_ms > 0).all()
    assert (rest_ms < 1).all()


def test_a_write_over_three_zones_takes_five_thirds_of_a_round_trip_longer():
    near_ms, _, _ = latencies(scenario("rep:3", "write", "cluster.site_rtt_ms=0"))
    far_ms, sites, _ = latencies(
        scenario("rep:3", "write", f"cluster.site_rtt_ms={RTT_MS}")
    )
    # One round trip to the replicas, and one to the primary if it is at another site: two thirds of requests.
    share = (sites[:, 0] != 0).mean()
    assert share == pytest.approx(2 / 3, abs=0.15)
    longer_ms = far_ms.mean() - near_ms.mean()
    assert longer_ms == pytest.approx((1 + share) * RTT_MS, rel=0.002)


def test_clients_are_at_the_sites_in_turn_or_at_the_stated_one():
    asked = scenario(
        "rep:3",
        "read",
        "cluster.site_rtt_ms=1",
        "workload.clients=4",
        "workload.requests=40",
    )
    assert build_cell(
        asked, cells(asked)[0]
    ).pool.cluster.sites.client_sites.tolist() == [0, 1, 2, 0]
    stated = asked.with_workload(client_site=2)
    sites = build_cell(stated, cells(stated)[0]).pool.cluster.sites
    assert sites.client_sites.tolist() == [2, 2, 2, 2]


def test_clients_at_several_sites_are_each_as_far_as_their_own_site():
    asked = scenario(
        "rep:3", "read", f"cluster.site_rtt_ms={RTT_MS}", "workload.clients=3"
    )
    cell = cells(asked)[0]
    inputs = build_cell(asked, cell)
    result = simulate(inputs.pool, inputs.workload, prefilled=True)
    times_ms = result.requested.latencies_ns / 1e6
    # A third of all requests finds its primary at its own site, the others one round trip away.
    is_near = times_ms < RTT_MS
    assert is_near.mean() == pytest.approx(1 / 3, abs=0.12)
    assert (times_ms[~is_near] < RTT_MS + 1).all()


@pytest.mark.parametrize("image", ["prefilled", "pristine"])
@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_both_engines_agree_on_sites(scheme, image):
    asked = scenario(
        scheme,
        "write",
        "cluster.site_rtt_ms=[[0, 1, 3], [1, 0, 2], [3, 2, 0]]",
        "workload.clients=3",
        f'workload.image="{image}"',
        "workload.queue_depth=4",
    )
    runs = [latencies(asked, engine)[2] for engine in ("compiled", "simpy")]
    assert runs[0].sha256 == runs[1].sha256


def test_both_engines_agree_on_local_reads():
    asked = scenario(
        "rep:3",
        "read",
        "cluster.site_rtt_ms=1",
        "cluster.read_policy=local",
        "workload.clients=3",
        "workload.queue_depth=4",
    )
    runs = [latencies(asked, engine)[2] for engine in ("compiled", "simpy")]
    assert runs[0].sha256 == runs[1].sha256


def test_a_first_write_waits_for_its_object_map_at_the_distance_of_the_map():
    asked = scenario(
        "rep:3", "write", f"cluster.site_rtt_ms={RTT_MS}", 'workload.image="pristine"'
    )
    cell = cells(asked)[0]
    pool = build_cell(asked, cell).pool
    map_sites = pool.cluster.object_maps.acting // 4
    times_ms, sites, _ = latencies(asked)
    expected_ms = by_hand(RTT_MS * (1 - np.eye(3)), sites, write=True)
    # The map is replicated, too: its update takes a round trip to the replicas, and one to a far primary.
    update_ms = RTT_MS * (1 + (map_sites[0, 0] != 0))
    is_first = times_ms - expected_ms > 1
    assert is_first.any()
    # The rest of an update, and of its write, takes less than 1 ms each.
    rest_ms = times_ms[is_first] - expected_ms[is_first] - update_ms
    assert ((rest_ms > 0) & (rest_ms < 2)).all()


@pytest.mark.parametrize(
    ("scheme", "each"), [("rep:3", 1), ("rs:4,2", 2), ("rs:6,3", 3)]
)
def test_every_site_holds_its_share_of_the_shards(scheme, each):
    asked = scenario(scheme, "write", "cluster.site_rtt_ms=1", "cluster.hosts=9")
    sets = up_sets(asked, parse_scheme(scheme))
    sites = sets // 6
    for site in range(3):
        assert ((sites == site).sum(axis=1) == each).all()
    # No two shards share a host.
    assert all(len(set(row)) == len(row) for row in (sets // 2).tolist())


def test_racks_are_below_sites():
    names = [f"rack{host // 2}" for host in range(8)]
    sites = [f"site{host // 4}" for host in range(8)]
    crush = map_of_hosts([(1 << 16,)] * 8, names, sites)
    racks = crush.domains("rack")
    places = crush.domains("datacenter")
    assert [racks[osd] for osd in range(8)] == names
    assert [places[osd] for osd in range(8)] == sites


@pytest.mark.parametrize(
    ("sets", "wanted"),
    [
        (["cluster.sites=3"], "cluster.sites: got 3 ... site_rtt_ms"),
        (
            ["cluster.site_rtt_ms=1", "cluster.sites=4"],
            "cluster.sites: got 4 ... divisor ... 6",
        ),
        (["cluster.site_rtt_ms=[[0, 1], [1, 0]]"], "site_rtt_ms: got 2 ... 3"),
        (
            ["cluster.site_rtt_ms=[[0, 1, 1], [1, 0, 1], [2, 1, 0]]"],
            "cluster.site_rtt_ms: got 2 ... 2 ... 0 ... 1",
        ),
        (
            ["cluster.site_rtt_ms=[[1, 1, 1], [1, 0, 1], [1, 1, 0]]"],
            "cluster.site_rtt_ms: got 1 ... 0 ... 0",
        ),
        (
            ["cluster.site_rtt_ms=1", "workload.client_site=3"],
            "workload.client_site: got 3 ... 0 ... 2",
        ),
        (
            ["cluster.site_rtt_ms=1", "cluster.racks=2"],
            "cluster.racks: got rack0 ... 2",
        ),
        (
            ["cluster.site_rtt_ms=1", "cluster.hosts=3", 'schemes=["rs:4,2"]'],
            "cluster.hosts: got 1 ... 2 ... 2",
        ),
    ],
)
def test_keys_of_sites_that_do_not_fit_are_refused(sets, wanted):
    with pytest.raises(ScenarioError) as caught:
        scenario("rep:3", "write", *sets)
    assert any(states(fault, wanted) for fault in caught.value.faults), (
        caught.value.faults
    )


def test_local_reads_take_no_round_trip_where_every_site_has_a_copy():
    local = ("cluster.read_policy=local", f"cluster.site_rtt_ms={RTT_MS}")
    times_ms, sites, _ = latencies(scenario("rep:3", "read", *local))
    # A copy at each site: no read leaves the site of its client, also of primaries elsewhere.
    assert (sites[:, 0] != 0).any()
    assert (times_ms < 1).all()
    spread = scenario("rep:3", "read", *local, "workload.clients=3")
    of_spread_ms, _, _ = latencies(spread)
    assert (of_spread_ms < 1).all()


def test_local_reads_go_to_the_primary_where_the_site_has_no_copy():
    # Copies on any three of six hosts: some groups have none at site 0.
    asked = scenario(
        "rep:3",
        "read",
        "cluster.read_policy=local",
        f"cluster.site_rtt_ms={RTT_MS}",
        "cluster.failure_domain_replicated=host",
    )
    times_ms, sites, _ = latencies(asked)
    has_copy = (sites == 0).any(axis=1)
    assert 0 < has_copy.sum() < len(has_copy)
    assert (times_ms[has_copy] < 1).all()
    rest_ms = times_ms[~has_copy] - RTT_MS
    assert ((rest_ms > 0) & (rest_ms < 1)).all()


@pytest.mark.parametrize(
    ("scheme", "sets", "wanted"),
    [
        (
            "rs:4,2",
            ["cluster.site_rtt_ms=1"],
            "cluster.read_policy: ... rs:4,2 ... rep:3",
        ),
        (
            "rep:3",
            ["cluster.sites=1", "cluster.site_rtt_ms=1", "cluster.direct_reads=true"],
            "cluster.read_policy: ... direct_reads",
        ),
    ],
)
def test_local_reads_are_of_replicas_through_their_osds(scheme, sets, wanted):
    asked = scenario(scheme, "read", "cluster.read_policy=local", *sets)
    asked = asked.with_cluster(failure_domain_replicated="host")
    models = replace(
        build_models(asked.with_cluster(direct_reads=False)), local_reads=True
    )
    with pytest.raises(ScenarioError) as caught:
        check_schemes(asked, models)
    assert any(states(fault, wanted) for fault in caught.value.faults), (
        caught.value.faults
    )


@pytest.mark.parametrize(("rtt_ms", "is_far"), [(2.0, True), (0.1, False)])
def test_a_write_that_travels_between_sites_spends_its_time_there(
    rtt_ms: float, is_far: bool
) -> None:
    # The client is as far from two of three primaries, and each primary from its replicas: 2/3 + 1 round
    # trips are 3.3 ms at 2 ms each, and 0.17 ms at 0.1 ms, beside some 0.4 ms on cores and drives.
    scenario = load_scenario(
        "quickstart",
        sets={
            "schemes": ["rep:3"],
            "cluster.hosts": 6,
            "cluster.sites": 3,
            "cluster.site_rtt_ms": rtt_ms,
            "cluster.failure_domain_replicated": "site",
            "workload.ops": ["write"],
            "workload.requests": 500,
            "workload.queue_depth": 8,
        },
    )
    (row,) = run_scenario(scenario, costs=False).rows.to_dicts()
    assert row["bottleneck"] == "latency"
    assert (row["latency_at"] == "sites") == is_far
    if is_far:
        # A lower bound, because times at resources overlap.
        assert 0.7 < row["latency_at_fraction"] <= 3.33 / 3.6
