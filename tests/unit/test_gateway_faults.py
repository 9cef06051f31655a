"""Objects over gateways while OSDs, hosts and gateways fail, and while a lost OSD is rebuilt."""

import re
from functools import cache

import numpy as np
import pytest

from stripesim.models.problems import ScenarioError
from stripesim.scenarios.answers.rehearse import samples
from stripesim.scenarios.answers.rehearse.rehearse import rehearse
from stripesim.scenarios.answers.rehearse.restarts import (
    missed_objects,
    short_restart,
)
from stripesim.scenarios.answers.rehearse.restarts.moments import moments_of
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import scenario_from
from stripesim.sim.ceph.clients.objects import S3Load
from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.ceph.gateway.layout import ObjectLayouts
from stripesim.sim.run import simulate
from support.messages import states

MIB = 1 << 20
OBJECTS = 96
HOSTS = 7


def scenario(scheme="rs:4,2", *, load=(), **tables):
    """Return a small object store: 16 PGs on seven hosts of one OSD, each with a gateway."""
    workload = {
        "kind": "s3",
        "ops": ["get", "put", "list", "delete"],
        "op_shares": [45, 45, 5, 5],
        "object_sizes_bytes": ["64k", "5MiB"],
        "size_shares": [50, 50],
        "objects": OBJECTS,
        "buckets": 4,
        "clients": 2,
        "queue_depth": 1,
        "duration_s": 6.0,
    }
    return scenario_from(
        {
            "name": "objects-under-faults",
            "description": "",
            "schemes": [scheme],
            "cluster": {
                "hosts": HOSTS,
                "osds_per_host": 1,
                "pg_num": 16,
                "gateways": {"count": HOSTS},
            },
            "workload": workload | dict(load),
            **tables,
        }
    )


def lost_host(out_s=1, **event):
    failure = {"hosts": [2], "at_s": 0.5, "kind": "process"} | event
    return {"faults": {"down_out_interval_s": out_s} | {"events": [failure]}}


def simulated(asked, engine="compiled"):
    return run_cell(asked, cells(asked)[0], engine)


def layouts_of(asked):
    """Return the state of the placement groups of a scenario, as its run begins with them."""
    built = build_cell(asked, cells(asked)[0])
    load = built.workload.workload
    assert isinstance(load, S3Load)
    pool = built.pool
    counts = np.array(built.faults.group_objects, dtype=np.int64)
    return ObjectLayouts(pool, pool.book(), load, counts)


def test_both_engines_lose_a_host_and_its_gateway_in_the_same_way():
    asked = scenario(load={"duration_s": 3.0}, **lost_host())
    runs = [simulated(asked, engine) for engine in ("compiled", "simpy")]
    assert runs[0].sha256 == runs[1].sha256
    assert runs[0].row.faults.requests_retried > 0


def test_requests_of_a_failed_gateway_go_to_another_after_three_checks():
    # Two clients use four of the seven gateways each. The failed one hangs them until 0.5 s + 6 s.
    asked = scenario(
        load={"duration_s": 7.0, "ops": ["get"], "op_shares": [1]},
        **lost_host(out_s=600),
    )
    result = simulated(asked)
    events = {event["what"]: event for event in result.timeline["events"]}
    assert events["gateways"]["time_s"] == pytest.approx(6.5)
    assert events["gateways"]["text"] == f"clients use {HOSTS - 1} of {HOSTS} gateways"
    requested = result.requested
    assert not (requested.completed_ns < 0)[requested.issued_ns < 6e9].any()
    assert "gateway" in result.row.faults.phases["degraded"].blocked_by


def test_clients_of_a_failed_gateway_go_on_with_another():
    # Given small GETs, of which clients take several rounds while the gateway of some is away
    small = {"object_sizes_bytes": ["64k"], "size_shares": [1], "queue_depth": 4}
    reads = {"ops": ["get"], "op_shares": [1], "clients": 7, "duration_s": 14.0}
    result = simulated(scenario("rep:3", load=small | reads, **lost_host(out_s=600)))
    # When it has failed at 0.5 s, and clients have left it at 6.5 s
    requested = result.requested
    issued_s = requested.issued_ns[requested.completed_ns < 0] / 1e9
    # Then each of 28 loops has issued its last request shortly before the end, not at 7 s.
    assert len(issued_s) == 28
    assert issued_s.min() > 13.9


def test_gateways_with_machines_of_their_own_outlive_the_hosts_of_osds():
    # Given the load and the failure above, after which clients leave a gateway at 6.5 s
    load = {"duration_s": 7.0, "ops": ["get"], "op_shares": [1]}
    asked = scenario(load=load, **lost_host(out_s=600))
    apart = asked.with_cluster(gateways=asked.cluster.gateways.replaced(place="own"))
    result = simulated(apart)
    assert "gateways" not in {event["what"] for event in result.timeline["events"]}


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_a_lost_osd_is_rebuilt_with_heads_tails_and_index(scheme):
    asked = scenario(scheme, repair={"lost_osds": [3]})
    built = build_cell(asked, cells(asked)[0])
    gateways = built.pool.cluster.gateways
    # Half of the objects have a head alone, half a head and a tail: 1.5 on average.
    stored = sum(built.faults.group_objects)
    assert stored == OBJECTS * 3 // 2
    mean_bytes = (64 * 1024 + 5 * MIB) / 2 / 1.5
    assert built.pool.object_bytes == pytest.approx(mean_bytes, abs=4096)
    on_lost = (built.pool.cluster.acting == 3).any(axis=1)
    k = {"rep:3": 1, "rs:4,2": 4}[scheme]
    data_bytes = sum(
        count * mean_bytes / k
        for count, lost in zip(built.faults.group_objects, on_lost, strict=True)
        if lost
    )
    shards_on_lost = (gateways.index_acting == 3).any(axis=1).sum()
    assert shards_on_lost > 0
    # 96 objects on 4 buckets with 11 shards each: three keys in a shard, rounded up.
    assert (
        gateways.index_shard_bytes
        == 3 * built.pool.cluster.models.gateway.index_entry_bytes
    )
    result = simulated(asked)
    repair = result.row.faults.repair
    # Chunks of the last stripe are padded.
    assert repair.repair_lost_bytes == pytest.approx(
        data_bytes + shards_on_lost * gateways.index_shard_bytes, rel=0.05
    )
    assert repair.repair_objects_pending == 0
    # A replica is read once, a shard of a code is decoded from k others.
    assert repair.repair_device_read_bytes_per_lost_byte == pytest.approx(k, rel=0.05)
    assert result.row.faults.clean_at_end


def test_an_osd_that_returns_gets_what_clients_stored_meanwhile():
    event = {"hosts": [], "osds": [2], "return_s": 2.0}
    asked = scenario(
        load={"ops": ["put"], "op_shares": [1], "duration_s": 7.0},
        **lost_host(**event),
    )
    result = simulated(asked)
    faults = result.row.faults
    assert faults.clean_at_end
    # Objects stored while it was away are recovered by the log, all others are still there.
    puts = int(
        (
            (result.requested.completed_ns > 5e8) & (result.requested.issued_ns < 3e9)
        ).sum()
    )
    assert 0 < faults.recovery.recovery_operations < 4 * puts + 44


def test_a_get_waits_for_the_groups_of_its_object_alone():
    layouts = layouts_of(scenario(repair={"lost_osds": [3]}))
    groups = layouts.engine_groups
    places = layouts.places
    slot = np.zeros(1, dtype=np.int64)
    gateway = np.zeros(1, dtype=np.int64)
    small, large = (np.array([size]) for size in (64 * 1024, 5 * MIB))
    head, tail = places.groups[0].tolist()
    index = places.groups_count + int(places.index_groups(slot)[0, 0])

    def waits_for(op, size):
        (number,) = layouts.groups_of(np.array([op]), size, slot, gateway).tolist()
        return {pg for pg in (head, tail, index) if number in groups.of_pg(pg)}

    assert waits_for(0, small) == {head}
    assert waits_for(0, large) == {head, tail}
    assert waits_for(1, small) == {head, index}
    assert waits_for(1, large) == {head, tail, index}


def test_requests_wait_for_an_index_that_has_too_few_replicas():
    # Two of three hosts with replicas of some index shards are lost: below min_size, PUTs to them wait.
    asked = scenario(
        "rep:2", load={"ops": ["put"], "op_shares": [1]}, **lost_host(hosts=[1, 2])
    )
    result = simulated(asked)
    states = result.timeline["pg_states"]
    # A pool of two copies is served by one, so that it is the index that waits.
    assert max(states[State.INACTIVE]) > 0


@pytest.fixture
def only_profiles(monkeypatch):
    """Rehearse changes with each profile, and not with more backfills at a time too."""
    module = "stripesim.scenarios.answers.rehearse.rehearse"
    monkeypatch.setattr(f"{module}.BACKFILLS_SHARDS_MAX", 0)


@pytest.mark.usefixtures("only_profiles")
def test_a_planned_change_under_a_load_of_objects_moves_what_crush_moves():
    asked = scenario(changes=[{"kind": "out", "osds": [3]}])
    document = rehearse(asked)
    (change,) = document["changes"]
    pool = build_cell(asked, cells(asked)[0]).pool
    shard_bytes = pool.object_bytes / 4
    objects = OBJECTS * (64 * 1024 + 5 * MIB) / 2 / pool.object_bytes
    assert change["bytes_moved"] == pytest.approx(
        change["shards_moved"] * objects / 16 * shard_bytes, rel=0.05
    )
    assert change["duration_s"] > 0
    assert change["profiles"][0]["before"]["iops"] > 0


@pytest.mark.usefixtures("only_profiles")
def test_a_sample_of_the_objects_in_buckets_predicts_the_change_of_all(monkeypatch):
    def change_of(shards_max):
        monkeypatch.setattr(samples, "SHARDS_MAX", shards_max)
        asked = scenario(
            "rep:3",
            load={
                "ops": ["get"],
                "op_shares": [1],
                "object_sizes_bytes": ["1MiB"],
                "size_shares": [1],
                "objects": 640,
                "clients": 1,
            },
            generation="pacific",
            changes=[{"kind": "out", "osds": [3]}],
        )
        document = rehearse(asked)
        return document["changes"][0], document["warnings"]

    # 40 objects in each of 16 groups, all of them or a few.
    whole, warnings = change_of(10_000)
    assert not any("extrapolated" in line for line in warnings)
    part, warnings = change_of(50)
    assert any("extrapolated" in line for line in warnings)
    assert part["bytes_moved"] == whole["bytes_moved"]
    for key in ("device_write_bytes", "private_net_bytes"):
        assert part[key] == pytest.approx(whole[key], rel=0.1)
    assert part["duration_s"] == pytest.approx(whole["duration_s"], rel=0.3)
    # A copy is written once, with its log.
    assert 1 <= part["device_write_bytes"] / part["bytes_moved"] < 1.2


@pytest.mark.usefixtures("only_profiles")
def test_a_sample_of_the_objects_moves_the_whole_index_once(monkeypatch):
    # Given 3,125 objects of 64 KiB in each of 16 groups, of which a rehearsal simulates a few
    monkeypatch.setattr(samples, "SHARDS_MAX", 50)
    few = {"ops": ["get"], "op_shares": [1], "clients": 1}
    small = {"object_sizes_bytes": ["64k"], "size_shares": [1], "objects": 50_000}
    changes = [{"kind": "out", "osds": [3]}]
    asked = scenario("rep:3", load=few | small, changes=changes)
    # When one of seven OSDs is taken out
    (change,) = rehearse(asked)["changes"]
    # Then copies of objects are sent with some percent of messages, 1.8 GB in all, and 44 shards of the index
    # once, at most 44 × 1,137 entries × 320 B = 16 MB.
    assert change["bytes_moved"] > 100 * 16e6
    assert 1 < change["private_net_bytes"] / change["bytes_moved"] < 1.1


def test_hosts_that_are_added_get_no_gateways():
    asked = scenario(changes=[{"kind": "add", "hosts": 2}])
    one_each = asked.cluster.gateways.replaced(count=None)
    for gateways in (asked.cluster.gateways, one_each):
        grown = asked.with_cluster(gateways=gateways)
        pool = build_cell(grown, cells(grown)[0]).pool
        assert pool.cluster.hosts == HOSTS + 2
        assert pool.cluster.gateways.hosts.tolist() == list(range(HOSTS))


def test_puts_and_deletes_fill_osds_and_gets_do_not():
    for op, writes in (("put", True), ("delete", True), ("get", False)):
        load = scenario(load={"ops": [op], "op_shares": [1]}).workload
        assert samples._writes(load) is writes


def test_a_change_of_scheme_is_refused_by_name_and_with_its_reason():
    change = {"kind": "scheme", "scheme": "rs:2,1"}
    with pytest.raises(ScenarioError) as caught:
        rehearse(scenario(changes=[change]))
    assert states(str(caught.value), "changes.kind ... storage class")


def restarted(**keys):
    """Rehearse the restart of a host of five with an OSD and a gateway each, under PUTs and GETs."""
    keys = {"count": 5, "place": "osd-hosts", "hosts": [0], "downtime_s": 20} | keys
    asked = scenario(
        "rep:3",
        load={
            "ops": ["put", "get"],
            "op_shares": [50, 50],
            "object_sizes_bytes": ["64k"],
            "size_shares": [1],
            "objects": 4000,
            "clients": 1,
        },
        changes=[
            {
                "kind": "restart",
                "hosts": keys["hosts"],
                "downtime_s": keys["downtime_s"],
            }
        ],
    )
    gateways = asked.cluster.gateways.replaced(count=keys["count"], place=keys["place"])
    return rehearse(asked.with_cluster(hosts=5, pg_num=8, gateways=gateways))


@cache
def restarted_once(**keys):
    """Rehearse a restart once for all tests that look at its answer and change nothing of the simulator."""
    return restarted(**keys)


def test_a_short_restart_of_an_object_store_recovers_as_the_whole_one(monkeypatch):
    (short,) = restarted_once(downtime_s=40)["changes"]
    monkeypatch.setattr(short_restart, "_DOWNTIME_MIN_S", 40.0)
    (whole,) = restarted(downtime_s=40)["changes"]
    assert short["degraded_objects"] == pytest.approx(
        whole["degraded_objects"], rel=0.05
    )
    recovers_s = {id(row): row["duration_s"] - 40 for row in (short, whole)}
    assert recovers_s[id(short)] == pytest.approx(recovers_s[id(whole)], rel=0.15)
    rates = [row["profiles"][0]["down"]["iops"] for row in (short, whole)]
    assert rates[0] == pytest.approx(rates[1], rel=0.05)
    # Peering and the shards of the index move as many bytes in both.
    for counter in ("bytes_moved", "device_read_bytes", "device_write_bytes"):
        assert short[counter] == pytest.approx(whole[counter], rel=0.05)


def test_a_long_restart_reads_each_object_once():
    (change,) = restarted_once(downtime_s=400)["changes"]
    # A copy of each object is read and sent. Shards of the index are read from memory. All 44 are reached in
    # the simulated part, so a longer downtime adds objects alone.
    assert change["device_read_bytes"] / change["bytes_moved"] == pytest.approx(
        1, abs=0.001
    )


def test_one_in_several_stored_objects_recovers_for_all_of_them(monkeypatch):
    (every,) = restarted_once(downtime_s=40)["changes"]
    plans = []

    def simulated(*args, **keys):
        plans.append(keys["faults"])
        return simulate(*args, **keys)

    monkeypatch.setattr(short_restart, "simulate", simulated)
    monkeypatch.setattr(short_restart, "STORED_MAX", 200)
    (sampled,) = restarted(downtime_s=40)["changes"]
    assert plans[-1].recovered_one_in > 2
    assert sampled["degraded_objects"] == pytest.approx(
        every["degraded_objects"], rel=0.1
    )
    recovers_s = [row["duration_s"] - 40 for row in (sampled, every)]
    assert recovers_s[0] == pytest.approx(recovers_s[1], rel=0.15)


def test_a_restart_ends_soon_after_the_cluster_is_clean(monkeypatch):
    shown = []

    def moments(*args):
        shown.append(moments_of(*args))
        return shown[-1]

    monkeypatch.setattr(short_restart, "moments_of", moments)
    restarted()
    (one,) = shown
    # It may last 160 s, of which few are needed. One client takes more than 5 s for 8,000 requests.
    assert one.result.engine_run.end_ns / 1e9 == pytest.approx(one.clean_s + 5, abs=0.1)


def test_a_restart_under_too_many_requests_names_the_rate_that_it_takes(monkeypatch):
    monkeypatch.setattr(short_restart, "USES_MAX", 10_000)
    with pytest.raises(ScenarioError) as caught:
        restarted()
    (problem,) = caught.value.problems
    assert problem.key == "workload.queue_depth"
    # 10,000 uses of a few hundred each until the host is back after 11 s: a handful of requests a second.
    found = re.search(r"at most ([\d.]+)", problem.wanted)
    assert 1 < float(found[1]) < 20
    assert "workload.rate_per_s" in problem.wanted


def test_clients_of_a_restarted_gateway_wait_until_they_use_another():
    (row,) = restarted_once()["changes"]
    (apart,) = restarted_once(place="own")["changes"]
    longest_s = [
        one["profiles"][0]["down"]["latency_max_ns"] / 1e9 for one in (row, apart)
    ]
    # The balancer notices after 6 s. With gateways elsewhere, requests wait for peering alone.
    assert 4 < longest_s[0] <= 6.1
    assert longest_s[1] < 4
    # Four of five gateways serve the rest of the downtime at the rate before: the client has one request in
    # flight, and waits for at most 6 of 20 s.
    clients = row["profiles"][0]
    assert clients["down"]["iops"] >= 0.95 * (1 - 6 / 20) * clients["before"]["iops"]


def test_a_restart_counts_the_groups_of_the_index_and_names_the_only_gateway():
    document = restarted(count=1)
    (row,) = document["changes"]
    asked = scenario("rep:3", repair={"lost_osds": [0]}).with_cluster(hosts=5, pg_num=8)
    pool = build_cell(asked, cells(asked)[0]).pool
    index = pool.cluster.gateways.index_sets
    on_host = [(sets == 0).any(axis=1).sum() for sets in (pool.cluster.acting, index)]
    assert row["hosts"][0]["pgs"] == sum(on_host)
    assert any("no gateway serves" in line for line in document["warnings"])
    assert not any("no gateway serves" in line for line in restarted_once()["warnings"])


def test_a_longer_downtime_recovers_more_objects_but_hardly_more_of_the_index():
    # Updates of 44 shards: 100 reach 44 × (1 − e^(−100/44)) = 39.5 of them, 1,000 all.
    assert missed_objects._reached(44, 100) == pytest.approx(39.5, abs=0.1)
    assert missed_objects._reached(44, 1000) == pytest.approx(44, abs=1e-6)


def test_objects_of_a_bucket_that_is_listed_use_all_shards_of_its_index():
    places = layouts_of(scenario(repair={"lost_osds": [3]})).places
    shards = places.index_shards(np.arange(places.slots))
    # Four buckets of eleven shards. An object's own shard comes first, then the others of its bucket.
    assert set(shards[:, 0].tolist()) == set(range(44))
    assert all(
        sorted(row) == list(range(row[0] // 11 * 11, row[0] // 11 * 11 + 11))
        for row in shards.tolist()
    )


def test_graphs_that_other_runs_have_compiled_change_no_answer():
    """Seeds lose the same OSDs, and meet the states of placement groups in other orders."""
    asked = scenario(load={"duration_s": 3.0}, **lost_host())
    graphs = {}
    for seed in range(3):
        seeded = asked.seeded(seed)
        cell = cells(seeded)[0]
        shared = run_cell(seeded, cell, "compiled", compiled=graphs)
        assert shared.sha256 == run_cell(seeded, cell, "compiled").sha256
