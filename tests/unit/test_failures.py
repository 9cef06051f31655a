"""Failures of an imported cluster: movement as Ceph's, fill and spares counted by hand, the answer.

``data/osdmaptool-mark-out.json`` is what osdmaptool of Ceph 18.2.7 printed for a balanced map of 24 OSDs,
from which one OSD at a time was marked out.
"""

import gzip
import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.placement import (
    NONE,
    OsdMap,
    PlacedPool,
    PoolOutages,
    build_map,
    load_map,
    map_to_text,
    parse_map,
    pg_sets,
)
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.scenarios.answers.cluster import answer_of_cluster
from stripesim.scenarios.answers.failures.answer import heat_map, sentences_of_failures
from stripesim.scenarios.answers.failures.failures import failures_of
from stripesim.scenarios.answers.failures.healing_time import HealingPace, healing_time
from stripesim.scenarios.answers.failures.pool_failures import GroupMove, PoolFailures
from stripesim.scenarios.answers.failures.room import Shift, used_after, without_room
from stripesim.scenarios.cells.placement import up_sets
from stripesim.scenarios.clusters.cluster import GroupData, import_cluster
from stripesim.scenarios.clusters.summary import describe_cluster
from stripesim.scenarios.schema.scenario import load_scenario
from support.reports import report, write_report

DATA = Path(__file__).parent / "data"
MIB = 2**20


def whole_map(crush, pool, **exceptions):
    """Return an OSD map whose OSDs are all up and in."""
    count = crush.max_devices
    full = np.full(count, WEIGHT_ONE, dtype=np.int64)
    present = np.ones(count, dtype=bool)
    return OsdMap(crush, present, present, full, full, (pool,), **exceptions)


def scheme_of(pool, data_shards):
    """Return replication, or a Reed-Solomon code."""
    if pool.kind == "replicated":
        return f"rep:{pool.size}"
    return f"rs:{data_shards},{pool.size - data_shards}"


def pool_failures(osd_map, pool, stored_bytes, *, data_shards=1, **more):
    """Return a pool of one cluster with the bytes of each group."""
    count = len(stored_bytes)
    data = GroupData(
        np.array(stored_bytes),
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.bool_),
    )
    imported = SimpleNamespace(
        placed=pool,
        scheme=more.get("scheme", scheme_of(pool, data_shards)),
        overhead=pool.size / data_shards,
        min_size=more.get("min_size", 2),
        allocated_bytes=more.get("allocated_bytes"),
    )
    cluster = SimpleNamespace(
        osd_map=osd_map,
        sets={pool.id: pg_sets(osd_map, pool)},
        group_data={pool.id: data},
    )
    return PoolFailures(cluster, imported)


# Movement: as Ceph moves it.


@pytest.mark.parametrize("osd", [4, 11, 20])
def test_groups_are_where_osdmaptool_has_them_once_an_osd_is_out(osd):
    told = json.loads((DATA / "osdmaptool-mark-out.json").read_text())
    pool = PlacedPool(
        id=1, name="rbd", kind="replicated", size=3, pg_num=384, pgp_num=384, rule=0
    )
    items = {
        (1, int(pg.split(".")[1], 16)): [tuple(pair) for pair in pairs]
        for pg, pairs in told["pg_upmap_items"]
    }
    crush = build_map(hosts=8, osds_per_host=3)
    osd_map = whole_map(crush, pool, pg_upmap_items=items)
    before = pg_sets(osd_map, pool).up.tolist()
    groups, rows = PoolOutages(osd_map, pool).without([osd])
    changed = {
        f"{group:x}": [before[group], row]
        for group, row in zip(groups.tolist(), rows.tolist(), strict=True)
        if before[group] != row
    }
    assert changed == told["changed"][str(osd)]


def pairs_map():
    """Return the text of a map of three hosts with two OSDs each, and a rule with two shards in each host.

    Where an OSD is out and down, Ceph 16.2.15 leaves its place empty in each of 16 groups: the other OSD of
    the host has a shard already.
    """
    crush = build_map(hosts=3, osds_per_host=2)
    text = map_to_text(crush).partition("rule rep {")[0]
    text += "rule pairs {\n id 0\n type erasure\n step set_chooseleaf_tries 5\n"
    text += " step set_choose_tries 100\n step take root\n"
    text += " step choose indep 3 type host\n step chooseleaf indep 2 type osd\n"
    return text + " step emit\n}\n"


def test_an_osd_that_is_out_holds_no_shard_of_a_scenario(tmp_path):
    (tmp_path / "m.txt").write_text(pairs_map())
    (tmp_path / "s.toml").write_text(
        'schemes = ["rs:4,2"]\n[cluster]\ncrush_map = "m.txt"\ncrush_rule = "pairs"\npg_num = 16\n'
        "[[cluster.osd_reweights]]\nosd = 1\nweight = 0.0\n[workload]\nrequests = 10\n"
    )
    scenario = load_scenario(str(tmp_path / "s.toml"))
    for row in up_sets(scenario, parse_scheme("rs:4,2")).tolist():
        assert row.count(NONE) == 1 and 1 not in row


def test_no_shard_moves_to_the_osd_that_failed():
    pool = PlacedPool(
        id=4, name="ec", kind="erasure", size=6, pg_num=16, pgp_num=16, rule=0
    )
    osd_map = whole_map(parse_map(pairs_map()), pool)
    groups, rows = PoolOutages(osd_map, pool).without([1])
    assert groups.tolist() == list(range(16))
    for row in rows.tolist():
        assert row.count(NONE) == 1 and 1 not in row


@pytest.mark.parametrize(
    ("scheme", "pool_id", "size", "k"), [("rep3", 3, 3, 1), ("ec63", 4, 9, 6)]
)
def test_each_osd_gets_the_bytes_that_a_real_ceph_moved_to_it(
    data, scheme, pool_id, size, k
):
    folder = data / "ceph16" / "change"
    with gzip.open(folder / f"change-{scheme}-drain.json.gz") as file:
        measured = json.load(file)
    crush = load_map(folder / "cluster.crush.txt")
    rows = {
        int(pgid.split(".")[1], 16): row
        for pgid, row in measured["before"].items()
        if pgid.startswith(f"{pool_id}.")
    }
    kind = "replicated" if k == 1 else "erasure"
    rule = {rule.name: rule.id for rule in crush.rules}
    pool = PlacedPool(
        id=pool_id,
        name=scheme,
        kind=kind,
        size=size,
        pg_num=32,
        pgp_num=32,
        rule=rule["replicated_rule"] if k == 1 else rule.get("ec63", 1),
    )
    osd_map = whole_map(crush, pool)
    stored = [rows[group]["bytes"] for group in range(32)]
    failures = pool_failures(osd_map, pool, stored, data_shards=k)
    moves, undersized = failures.moves_without([5], lost=())
    assert not len(undersized)
    moved = sum(len(move.targets) for move in moves)
    assert moved == measured["row"]["shards_moved"]
    shifts = [
        Shift(move.sources, move.targets, failures.shard_bytes[move.group])
        for move in moves
    ]
    received = sum(shift.shard_bytes * len(shift.targets) for shift in shifts)
    assert received == pytest.approx(measured["row"]["bytes_moved"], rel=0.01)
    first, last = measured["used"][0][1], measured["used"][-1][1]
    grown = np.array([last[str(osd)] - first[str(osd)] for osd in range(16)])
    # A cluster in use also writes its logs: at most some MiB of each OSD.
    others = np.arange(16) != 5
    gains = used_after(np.zeros(16), shifts)
    assert gains[others] == pytest.approx(grown[others], rel=0.02, abs=MIB)


# Room: three OSDs of 100 bytes that refuse backfill above 90, and are full above 95.

LIMIT = np.array([90.0, 90.0, 90.0])
FULL = np.array([95.0, 95.0, 95.0])


def test_a_target_refuses_the_shard_that_would_lift_it_above_its_limit():
    shifts = [Shift([0], [1], 30), Shift([0], [1], 30)]
    used = np.array([60.0, 50.0, 0.0])
    # 50 + 30 = 80 fits. 80 + 30 = 110 does not.
    assert without_room(used, shifts, LIMIT, FULL) == [1]
    assert used_after(used, shifts).tolist() == [0, 110, 0]


def test_a_target_takes_a_shard_that_fills_it_to_its_limit_exactly():
    used = np.array([30.0, 60.0, 0.0])
    assert without_room(used, [Shift([0], [1], 30)], LIMIT, FULL) == []


def test_a_shard_waits_until_another_one_has_left_its_target():
    used = np.array([30.0, 80.0, 0.0])
    # 80 + 30 does not fit before OSD 1 has given 30 to OSD 2.
    shifts = [Shift([0], [1], 30), Shift([1], [2], 30)]
    assert without_room(used, shifts, LIMIT, FULL) == []
    assert used_after(used, shifts).tolist() == [0, 80, 30]


def test_a_recovery_by_the_log_begins_until_its_target_is_full():
    by_log = [Shift([0], [1], 10, is_backfilled=False)] * 3
    # 85 + 10 = 95 and, because 95 is not above the ratio, 95 + 10 = 105. The third finds OSD 1 full.
    assert without_room(np.array([30.0, 85.0, 0.0]), by_log, LIMIT, FULL) == [2]


# Time: each OSD leads one group at a time and receives one.


def test_groups_of_one_target_take_turns_and_others_go_side_by_side():
    pool = SimpleNamespace(
        shard_bytes=np.array([10.0, 20.0, 40.0]),
        pool=SimpleNamespace(placed=SimpleNamespace(id=1)),
    )
    paces = {1: HealingPace(start_s=4, s_per_byte=0.5, low=0.8, high=1.5, slots=1)}
    shared = [
        (pool, GroupMove(0, lead=1, steps=((9, 3),))),
        (pool, GroupMove(1, lead=2, steps=((9, 3),))),
    ]
    # OSD 3 receives 10 bytes, then 20, at 0.5 s each, after 4 s.
    assert healing_time(shared, paces).duration_s == 4 + 15
    apart = [*shared, (pool, GroupMove(2, lead=4, steps=((9, 5),)))]
    # OSD 5 receives 40 bytes meanwhile, in 20 s.
    time = healing_time(apart, paces)
    assert (time.duration_s, time.low_s, time.high_s) == (4 + 20, 4 + 16, 4 + 30)


def test_a_pool_without_a_pace_has_no_time():
    pool = SimpleNamespace(
        shard_bytes=np.array([10.0]),
        pool=SimpleNamespace(placed=SimpleNamespace(id=1)),
    )
    moves = [(pool, GroupMove(0, lead=1, steps=((9, 3),)))]
    assert healing_time(moves, {}) is None


# A whole cluster: 6 hosts with 4 OSDs each, 3 copies, every third group larger than the others.


GROUP_BYTES = [(3 if group % 3 == 0 else 1) * 10**11 for group in range(64)]


def documents(tmp_path, *, kb_used, object_bytes=4 << 20):
    osds = range(24)
    pgs = {
        "pg_stats": [
            {"pgid": f"1.{group:x}", "stat_sum": {"num_bytes": size}}
            for group, size in enumerate(GROUP_BYTES)
        ],
        "osd_stats": [
            {"osd": osd, "kb": 4_000_000_000, "kb_used": kb_used} for osd in osds
        ],
    }
    stored_bytes = sum(GROUP_BYTES)
    counters = {"num_bytes": stored_bytes, "num_objects": stored_bytes // object_bytes}
    return [
        write_report(tmp_path, report(counters=counters)),
        write_report(tmp_path, pgs, "pgs.json"),
    ]


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    """Return a half-full cluster, and its failures."""
    paths = documents(tmp_path_factory.mktemp("roomy"), kb_used=2_000_000_000)
    cluster = import_cluster(paths)
    return cluster, failures_of(cluster)


@pytest.fixture
def no_pace(monkeypatch):
    """Leave the simulation of rebuilds out."""
    where = "stripesim.scenarios.answers.failures.failures.healing_paces"
    monkeypatch.setattr(where, lambda *_, **__: ({}, []))


def row_of(document, name):
    return next(row for row in document["failures"] if row["name"] == name)


def test_every_host_and_every_osd_fails_once(roomy):
    _, document = roomy
    kinds = [row["kind"] for row in document["failures"]]
    assert (kinds.count("host"), kinds.count("osd")) == (6, 24)


def test_progress_counts_rebuilds_and_tens_of_failures(roomy):
    cluster, _ = roomy
    totals = []
    failures_of(cluster, progress=lambda words, total: totals.append(total))
    # One pool with data is rebuilt. 6 hosts and 24 OSDs are three tens.
    assert totals == [4] * 4


def test_a_failed_osd_gives_the_bytes_of_each_of_its_groups_to_others(roomy):
    cluster, document = roomy
    row = row_of(document, "osd.7")
    held = [
        size
        for size, acting in zip(
            GROUP_BYTES, cluster.sets[1].acting.tolist(), strict=True
        )
        if 7 in acting
    ]
    assert row["pgs_moved"] >= len(held)
    moves = row["moves"]
    from_failed = [
        size
        for size, source in zip(moves["bytes"], moves["from"], strict=True)
        if source == 7
    ]
    assert sorted(from_failed) == sorted(held)
    # Three copies, of which two serve clients (min_size), so no group has a spare left.
    assert row["pgs_at_min_size"] == len(held)
    assert row["bytes_at_min_size"] == sum(held)
    assert row["pgs_inactive"] == row["pgs_lost"] == row["pgs_undersized"] == 0


def test_the_fill_of_an_osd_grows_by_what_it_receives(roomy):
    _, document = roomy
    row = row_of(document, "osd.7")
    moves, use = row["moves"], row["use"]
    gains = dict.fromkeys(use["osd"], 0)
    for source, target, size in zip(
        moves["from"], moves["to"], moves["bytes"], strict=True
    ):
        gains[target] += size
        if source != 7:
            gains[source] -= size
    used_bytes = {osd: 2_000_000_000 * 1024 + gain for osd, gain in gains.items()}
    assert dict(zip(use["osd"], use["used_bytes"], strict=True)) == used_bytes
    fullest = max(used_bytes.values())
    assert row["fullest_used_ratio"] == pytest.approx(fullest / 4_096_000_000_000)


def test_a_longer_time_comes_with_an_interval_around_it(roomy):
    _, document = roomy
    for row in document["failures"]:
        assert 0 < row["duration_low_s"] <= row["duration_s"] <= row["duration_high_s"]


def test_a_cluster_with_room_says_which_failure_is_the_tightest(roomy):
    _, document = roomy
    sentence = sentences_of_failures(document)[0]
    tightest = max(document["failures"], key=lambda row: row["fullest_used_ratio"])
    assert sentence.startswith("None of 30 failures")
    assert (
        f"osd.{tightest['fullest_osd']} is {100 * tightest['fullest_used_ratio']:.1f} %"
        in sentence
    )


def test_small_objects_take_longer_to_heal_than_as_many_bytes_of_large_ones(
    roomy, tmp_path
):
    _, large = roomy
    paths = documents(tmp_path, kb_used=2_000_000_000, object_bytes=64 << 10)
    small = failures_of(import_cluster(paths))
    # 64 times as many objects, each with a sync of its own: far more than twice the time.
    large_s, small_s = (
        row_of(document, "osd.7")["duration_s"] for document in (large, small)
    )
    assert small_s > 2 * large_s
    moved = [row_of(document, "osd.7")["moves"] for document in (large, small)]
    assert moved[0] == moved[1]


@pytest.mark.usefixtures("no_pace")
def test_a_full_cluster_ends_in_backfill_toofull(tmp_path):
    # 3.5 of 4 billion KiB used: 87.5 %, and 90 % leave room for 102 GB, one small group.
    cluster = import_cluster(documents(tmp_path, kb_used=3_500_000_000))
    document = failures_of(cluster)
    row = row_of(document, "host0")
    room = 0.9 * 4_096e9 - 3_500_000_000 * 1024
    assert room == pytest.approx(102.4e9)
    gets = {}
    for target, size in zip(row["moves"]["to"], row["moves"]["bytes"], strict=True):
        gets.setdefault(target, []).append(size)
    large = sum(size > room for sizes in gets.values() for size in sizes)
    assert row["pgs_toofull"] >= large > 0
    assert row["full_ratio_reached"] in ("backfillfull", "full")
    assert row["duration_s"] is None
    shown = answer_of_cluster(*describe_cluster(cluster, failures=lambda _: document))
    assert "end in backfill_toofull" in shown.sentence
    assert "osd." in heat_map(document).caption


@pytest.mark.usefixtures("no_pace")
def test_without_the_bytes_of_groups_they_count_as_equally_full(tmp_path):
    (path, _) = documents(tmp_path, kb_used=0)
    document = failures_of(import_cluster([path]))
    mean = round(sum(GROUP_BYTES) / 64)
    assert set(row_of(document, "osd.7")["moves"]["bytes"]) == {mean}
    assumptions = " ".join(document["before_failure"]["assumptions"])
    assert "ceph pg dump" in assumptions


@pytest.mark.usefixtures("no_pace")
def test_without_the_bytes_of_groups_the_keys_of_a_pool_move_too(tmp_path):
    # A bucket index: 64 groups, no data, and 64 MB of keys in each copy.
    (path, _) = documents(tmp_path, kb_used=0)
    content = json.loads(path.read_text())
    content["pool_stats"] = [
        {"poolid": 1, "stat_sum": {"num_bytes": 0, "num_omap_bytes": 64 * 10**6}}
    ]
    path.write_text(json.dumps(content))
    document = failures_of(import_cluster([path]))
    assert set(row_of(document, "osd.7")["moves"]["bytes"]) == {10**6}
    assumptions = " ".join(document["before_failure"]["assumptions"])
    assert "ceph pg dump" in assumptions


def test_what_a_pool_allocates_counts_and_not_what_it_stores():
    pool = PlacedPool(
        id=1, name="p", kind="replicated", size=2, pg_num=4, pgp_num=4, rule=0
    )
    osd_map = whole_map(build_map(hosts=3, osds_per_host=1), pool)
    # 4 groups of 100 bytes, two copies: 800 bytes stored, 1,000 allocated.
    failures = pool_failures(osd_map, pool, [100] * 4, min_size=1, allocated_bytes=1000)
    assert failures.allocated_bytes.tolist() == [125] * 4
    assert failures.shard_bytes.tolist() == [100] * 4


@pytest.mark.parametrize(
    ("scheme", "width", "lost_sets"),
    [
        # Reed-Solomon rebuilds from any 4 shards.
        ("rs:4,3", 7, 0),
        # 8 of the 35 sets of 4 shards lack rank 4.
        ("shec:4,3,2", 7, 8),
        # Two groups of three shards and a local parity, which repairs one shard. Two parities over all groups
        # repair two of the three. Sets that miss 4 of one group: 2, all lost. 3 and 1: 8 of 32, those with
        # the three shards. 2 and 2: 27 of 36, all but those with both local parities.
        ("lrc-ceph:4,2,3", 8, 37),
    ],
)
def test_a_group_is_lost_if_its_code_cannot_decode_the_shards_left(
    scheme, width, lost_sets
):
    pool = PlacedPool(
        id=1, name="p", kind="erasure", size=width, pg_num=1, pgp_num=1, rule=2
    )
    osd_map = whole_map(build_map(hosts=width, osds_per_host=1), pool)
    failures = pool_failures(osd_map, pool, [400], data_shards=4, scheme=scheme)
    dead_sets = combinations(range(width), width - 4)
    lost = [dead for dead in dead_sets if len(failures.left_without(dead).lost)]
    assert len(lost) == lost_sets


def test_the_places_of_a_layered_code_are_those_of_ceph():
    pool = PlacedPool(
        id=1, name="p", kind="erasure", size=8, pg_num=1, pgp_num=1, rule=2
    )
    osd_map = whole_map(build_map(hosts=8, osds_per_host=1), pool)
    failures = pool_failures(
        osd_map, pool, [400], data_shards=4, scheme="lrc-ceph:4,2,3", min_size=5
    )
    row = pg_sets(osd_map, pool).acting[0].tolist()
    # Ceph's mapping is DD__DD__: places 0, 1 and 2 are of one group, two data shards and a parity. The layer
    # of all groups has two parities, too few for three shards.
    left = failures.left_without(row[:3])
    assert (len(left.lost), len(left.inactive), len(left.at_min_size)) == (1, 1, 0)
    # Places 0, 1 and 4: the second group repairs its own shard.
    left = failures.left_without([row[0], row[1], row[4]])
    assert (len(left.lost), len(left.inactive), len(left.at_min_size)) == (0, 0, 1)


def test_three_of_three_hosts_leave_no_place_for_a_lost_shard():
    pool = PlacedPool(
        id=1, name="p", kind="erasure", size=3, pg_num=4, pgp_num=4, rule=2
    )
    osd_map = whole_map(build_map(hosts=3, osds_per_host=1), pool)
    failures = pool_failures(osd_map, pool, [200] * 4, data_shards=2, min_size=3)
    left = failures.left_without([1])
    # RS(2,1) serves clients with 3 shards (min_size) and can be rebuilt from 2.
    assert (len(left.at_min_size), len(left.inactive), len(left.lost)) == (0, 4, 0)
    assert len(failures.left_without([0, 1]).lost) == 4
    moves, undersized = failures.moves_without([1], lost=())
    assert (len(moves), len(undersized)) == (0, 4)


def test_shards_of_an_osd_that_is_down_are_neither_lost_nor_rebuilt():
    pool = PlacedPool(
        id=1, name="p", kind="erasure", size=3, pg_num=4, pgp_num=4, rule=2
    )
    whole = whole_map(build_map(hosts=4, osds_per_host=1), pool)
    rows = pg_sets(whole, pool).up.tolist()
    first, second, third = rows[0]
    up = whole.up.copy()
    up[first] = False
    osd_map = replace(whole, up=up)
    failures = pool_failures(osd_map, pool, [200] * 4, data_shards=2, min_size=2)
    # RS(2,1) serves with 2 shards. With 1 it does not, but the OSD that is down brings its shard back.
    left = failures.left_without([second])
    assert 0 in left.inactive
    assert len(left.lost) == 0
    assert 0 in failures.left_without([second, third]).lost
    # Each shard of the failed OSD goes to the only host left, and no other one moves.
    moves, undersized = failures.moves_without([second], lost=())
    of_failed = [group for group, row in enumerate(rows) if second in row]
    assert [(one.group, one.sources) for one in moves] == [
        (group, [second]) for group in of_failed
    ]
    assert len(undersized) == 0
    assert len(failures.pending().groups) == 0
