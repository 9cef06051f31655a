"""First writes into objects wait for the image's object map, one after another; nothing else does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import generations
from stripesim.models.problems import ScenarioError, StepsError
from stripesim.scenarios.answers.explain.request import explain
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.notes import object_map_warnings
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.ceph.clients.workload import Replay, Requests
from stripesim.sim.ceph.object_maps import ObjectMaps, pool_of_maps
from stripesim.sim.engine.graph import STEPS_MAX, chained
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.observe.recording import account
from stripesim.sim.run import simulate
from support.engines import both, completed, program
from support.koh_cluster import KOH_CLUSTER, KOH_KEYS

MIB = 1 << 20
OBJECT_BYTES = 4 * MIB
#: OSDs of each image's map. Data is on OSDs 0 to 7, so that maps have their OSDs to themselves.
SETS = [[8, 9, 10], [11, 12, 13]]

SCENARIO = f"""
generation = "kraken"
schemes = ["rep:3", "rs:4,2"]
[cluster]
{KOH_KEYS}
hosts = 7
osds_per_host = 1
pg_num = 64
[workload]
requests = 40
queue_depth = 8
image = "pristine"
image_bytes = "1GiB"
"""


def first_writes(count, *, queue_depth, images=1, same_object=False):
    """Writes of 4 KiB, each at the start of another object, on one image after the other in turn."""
    numbers = np.arange(count, dtype=np.int64)
    objects = numbers // images
    if same_object:
        objects = np.zeros_like(numbers)
    requests = Requests(
        is_write=np.ones(count, dtype=bool),
        images=numbers % images,
        offsets_bytes=objects * OBJECT_BYTES,
        lengths_bytes=np.full(count, 4096, dtype=np.int64),
    )
    return Replay(requests, queue_depth=queue_depth)


@pytest.fixture
def mapped(sleepless, make_pool):
    """Make a pool whose images have object maps, by default as locked as in old releases."""

    def make(scheme="rep:3", *, exclusive=True, models=None, sets=SETS, **more):
        pool = make_pool(models or sleepless, scheme, groups=6, **{"osds": 14, **more})
        maps = ObjectMaps(
            acting=np.array(sets, dtype=np.int64),
            scheme=parse_scheme("rep:3"),
            image_objects=256,
            exclusive=exclusive,
        )
        return replace(pool, cluster=replace(pool.cluster, object_maps=maps))

    return make


def without_maps(pool):
    return replace(pool, cluster=replace(pool.cluster, object_maps=None))


def ends_after_ns(pool, workload, **more):
    result = simulate(pool, workload, prefilled=False, **more)
    return int(result.requested.completed_ns.max())


def held_ns(pool, workload, name="map.0.lock"):
    """Return the time for which a map is locked."""
    result = simulate(pool, workload, prefilled=False)
    names = pool.cluster.resources.names
    return int(result.engine_run.held_ns[names.index(name)])


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
@pytest.mark.parametrize("queue_depth", [4, 20])
def test_first_writes_of_an_image_take_an_update_each_at_any_depth(
    mapped, scheme, queue_depth
):
    pool = mapped(scheme)
    count = 20
    update_ns = held_ns(pool, first_writes(1, queue_depth=1))
    assert update_ns > 0
    alone_ns = ends_after_ns(pool, first_writes(1, queue_depth=1))
    all_ns = ends_after_ns(pool, first_writes(count, queue_depth=queue_depth))
    # The updates run one after another, and the data of the last write follows.
    assert all_ns == pytest.approx(alone_ns + (count - 1) * update_ns, rel=0.05)
    assert held_ns(pool, first_writes(count, queue_depth=queue_depth)) == pytest.approx(
        count * update_ns, rel=0.05
    )


def test_two_images_update_their_maps_in_parallel(mapped):
    pool = mapped()
    one_ns = ends_after_ns(pool, first_writes(10, queue_depth=10))
    # Twice the writes, half of them on each image.
    both_ns = ends_after_ns(pool, first_writes(20, queue_depth=20, images=2))
    assert both_ns == pytest.approx(one_ns, rel=0.1)
    single_ns = ends_after_ns(pool, first_writes(20, queue_depth=20))
    assert single_ns > 1.7 * both_ns


def test_updates_that_share_the_lock_overlap(mapped):
    serial_ns = ends_after_ns(mapped(), first_writes(20, queue_depth=20))
    shared = mapped(exclusive=False)
    # What overlaps is the wait for the replicas. The placement group is busy with one stage at a time.
    assert ends_after_ns(shared, first_writes(20, queue_depth=20)) < 0.9 * serial_ns
    assert held_ns(shared, first_writes(20, queue_depth=20)) == 0


def test_only_the_first_write_into_an_object_updates_the_map(mapped):
    pool = mapped()
    one_ns = held_ns(pool, first_writes(1, queue_depth=1))
    assert held_ns(pool, first_writes(8, queue_depth=1, same_object=True)) == one_ns


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_overwrites_cost_nothing(mapped, scheme):
    pool = mapped(scheme)
    workloads = [first_writes(20, queue_depth=5) for _ in range(2)]
    with_maps = simulate(pool, workloads[0], prefilled=True)
    without = simulate(without_maps(pool), workloads[1], prefilled=True)
    assert with_maps.sha256 == without.sha256
    assert with_maps.uses == without.uses


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("scope", ["coded", "dispatch"])
def test_both_engines_agree_on_first_writes(
    mapped, models, change, scheme, exclusive, scope
):
    # Threads sleep, and cores have time slices.
    asleep = change(models, pg_lock={"scope": scope})
    pool = mapped(scheme, exclusive=exclusive, models=asleep)
    cluster = replace(pool.cluster, client_hosts=np.array([0, 0]))
    for own in (pool, replace(pool, cluster=cluster)):
        runs = [
            simulate(
                own,
                first_writes(30, queue_depth=7, images=2),
                prefilled=False,
                engine=engine,
            )
            for engine in ("simpy", "compiled")
        ]
        assert runs[0].sha256 == runs[1].sha256
        assert runs[0].uses == runs[1].uses


def test_replicas_of_a_map_on_one_host_send_nothing_over_the_network(mapped):
    # Hosts of OSDs 8 to 10: all on host 8.
    hosts = [*range(8), 8, 8, 8, 9, 10, 11]
    near = mapped(osds=None, hosts=hosts)
    far = mapped()
    for pool in (near, far):
        result = simulate(
            pool, first_writes(5, queue_depth=1), prefilled=False, bin_ns=1 << 40
        )
        counted = account(result.engine_run.streams[0], result.book)
        # The plan's totals are what the engine has counted step by step.
        assert counted["uses"] == result.uses
        assert counted["private_net_bytes"] == result.engine_run.bins[:, 4].sum()
    bare = simulate(without_maps(near), first_writes(5, queue_depth=1), prefilled=False)
    near_bytes = simulate(near, first_writes(5, queue_depth=1), prefilled=False)
    assert (
        account(near_bytes.engine_run.streams[0], near_bytes.book)["private_net_bytes"]
        == account(bare.engine_run.streams[0], bare.book)["private_net_bytes"]
    )


def test_the_fill_of_a_fresh_image_is_no_warm_up(mapped):
    pool = mapped()
    windows = [
        simulate(own, first_writes(60, queue_depth=4), prefilled=prefilled).window
        for own, prefilled in (
            (pool, False),
            (pool, True),
            (without_maps(pool), False),
        )
    ]
    assert [window.is_whole for window in windows] == [True, False, False]


def cell_of(scheme="rep:3", **sets):
    scenario = parse_scenario(SCENARIO, sets=sets)
    return build_cell(scenario, Cell(scheme, "write", "rand", 4096))


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_a_pristine_image_has_an_object_map_unless_its_features_say_otherwise(scheme):
    maps = cell_of(scheme).pool.cluster.object_maps
    assert maps is not None
    # 1 GiB in objects of 4 MiB, four of which share a byte of the map.
    assert (maps.images, maps.image_objects, maps.map_bytes) == (1, 256, 64)
    # One block of 64 B, its checksum and that of the header.
    assert maps.update_bytes == 64 + 2 * 4
    assert maps.scheme == pool_of_maps(parse_scheme(scheme)) == parse_scheme("rep:3")
    layering = {"workload.image_features": ["layering"]}
    assert cell_of(scheme, **layering).pool.cluster.object_maps is None
    prefilled = {"workload.image": "prefilled"}
    assert cell_of(scheme, **prefilled).pool.cluster.object_maps is None


def test_a_map_has_the_copies_that_are_left_if_every_group_has_lost_one():
    # Three copies in three hosts, one of them down: all groups have two OSDs, and so has each map.
    lost = {"schemes": ["rep:3"], "cluster.hosts": 3, "degraded.missing_osds": [1]}
    maps = cell_of(**lost).pool.cluster.object_maps
    assert maps.scheme == parse_scheme("rep:2")
    assert {tuple(sorted(row)) for row in maps.acting.tolist()} == {(0, 2)}


def test_each_client_has_an_image_with_a_map():
    clients = {"workload.clients": 5, "workload.requests": 100}
    assert cell_of(**clients).pool.cluster.object_maps.images == 5


def test_a_map_of_a_large_image_is_rewritten_by_blocks():
    maps = cell_of(**{"workload.image_bytes": "1TiB"}).pool.cluster.object_maps
    # 262,144 objects are 64 KiB: 16 blocks, each with a checksum, as the header.
    assert maps.map_bytes == 65_536
    assert maps.update_bytes == 4096 + 17 * 4


def test_releases_state_if_updates_lock_the_map():
    exclusive = {
        name for name, one in generations().items() if one.exclusive_class_writes
    }
    assert exclusive == {"kraken"}
    assert not cell_of(generation="squid").pool.cluster.object_maps.exclusive
    assert cell_of().pool.cluster.object_maps.exclusive


def test_runs_with_failures_leave_object_maps_out_and_say_so():
    event = {"faults.events": [{"osds": [0], "at_s": 1.0}]}
    duration = {"workload.duration_s": 5.0}
    scenario = SCENARIO.replace("requests = 40\n", "")
    failing = parse_scenario(scenario, sets={**event, **duration})
    (warning,) = object_map_warnings(failing)
    assert "object maps are not simulated" in warning
    cell = build_cell(failing, Cell("rep:3", "write", "rand", 4096))
    assert cell.pool.cluster.object_maps is None
    assert object_map_warnings(parse_scenario(SCENARIO)) == []


@pytest.mark.parametrize(
    ("features", "missing"),
    [(["layering", "object-map"], "exclusive-lock"), (["fast-diff"], "object-map")],
)
def test_a_feature_without_the_one_that_it_needs_is_rejected(features, missing):
    with pytest.raises(ScenarioError, match=f"workload.image_features: .*{missing}"):
        parse_scenario(SCENARIO, sets={"workload.image_features": features})


def test_explain_shows_the_update_before_the_first_write():
    layering = {**KOH_CLUSTER, "workload.image_features": ["layering"]}
    asked = (
        ("pristine", KOH_CLUSTER),
        ("prefilled", KOH_CLUSTER),
        ("pristine", layering),
    )
    fresh, again, plain = (
        explain("write", "rs:4,2", image=image, sets=sets, with_parameters=False)[0]
        for image, sets in asked
    )
    lanes = {entry.lane for entry in fresh.steps}
    assert "object map" in lanes
    for without in (again, plain):
        assert "object map" not in {entry.lane for entry in without.steps}
    locked = [hold for hold in fresh.holds if hold.role == "map.pg.lock"]
    (update,) = locked
    assert 0 < update.end_ns - update.start_ns < fresh.latency_ns - plain.latency_ns


# --- chained paths ----------------------------------------------------------------------------------------


def path(name, demands_ns, late_ns=0):
    """Use roles 0, 1, … in turn, reply after the last, then use role 0 once more."""
    graph = GraphBuilder(name)
    step = graph.issue
    for role, demand_ns in enumerate(demands_ns):
        step = graph.use(role, demand_ns, after=[step], label=f"{name} {role}")
    if late_ns:
        graph.use(0, late_ns, after=[step], label="after the reply")
    return graph.finish(reply=step)


@both
def test_the_second_path_begins_with_the_reply_of_the_first(run):
    first = path("first", [10, 20], late_ns=1000)
    second = path("second", [5, 7])
    joined = chained(first, second, name="joined")
    assert joined.steps == first.steps + second.steps
    stream = [type_of_stream(1)]
    result = run(program([joined], [(0, 2), (0, 2)], stream))
    # 10 + 20, then 5 + 7. The work after the first reply has a server of its own.
    assert completed(result) == [42]
    assert result.end_ns == 1030


def type_of_stream(count):
    from stripesim.sim.engine.program import ListedRequests

    zeros = np.zeros(count, dtype=np.int64)
    return ListedRequests(zeros, zeros, queue_depth=1)


def test_a_chain_has_as_few_steps_as_any_path():
    long = path("long", [1] * (STEPS_MAX // 2 + 1))
    with pytest.raises(StepsError):
        chained(long, long, name="too long")
