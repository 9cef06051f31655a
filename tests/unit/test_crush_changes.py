"""Changes of a CRUSH map: weights that ancestors follow, new hosts, and the shards that move."""

import csv
import gzip
import json
import time
from dataclasses import replace

import numpy as np
import pytest

from stripesim.models.placement import (
    NONE,
    Movement,
    build_map,
    load_map,
    parse_map,
    pg_mappings,
    reweighted,
    with_new_hosts,
)
from stripesim.models.placement.crush.elements import WEIGHT_ONE, BucketArgs
from stripesim.models.problems import ProblemsError

# Pools of the measured cluster: name → rule, id and width.
POOLS = {"rep3": ("rep", 3, 3), "ec63": ("ec63", 4, 9)}
PG_NUM = 32
# The same two hosts twice: below the root, and as shadows of the class ssd.
SMALL = """
device 0 osd.0 class ssd
device 1 osd.1 class ssd
device 2 osd.2 class ssd
type 0 osd
type 1 host
type 2 root
host a {
  id -2
  id -5 class ssd
  alg straw2
  hash 0
  item osd.0 weight 1.000
  item osd.1 weight 2.000
}
host b {
  id -3
  id -6 class ssd
  alg straw2
  hash 0
  item osd.2 weight 4.000
}
root default {
  id -1
  id -4 class ssd
  alg straw2
  hash 0
  item a weight 3.000
  item b weight 4.000
}
rule rep {
  id 0
  type replicated
  step take default class ssd
  step chooseleaf firstn 0 type host
  step emit
}
"""


def weights_of(crush):
    return {
        bucket.id: [weight / WEIGHT_ONE for weight in bucket.weights]
        for bucket in crush.buckets
    }


def drained(crush, osds):
    return reweighted(crush, dict.fromkeys(osds, 0))


def maps_around(crush, kind):
    """Return map and reweights before and after each measured change."""
    full = (crush, None)
    without_osd_5 = (crush, {5: 0.0})
    without_two = (drained(crush, [14, 15]), None)
    around = {
        "drain": (full, without_osd_5),
        "return": (without_osd_5, full),
        "shrink": (full, without_two),
        "grow": (without_two, full),
    }
    return around[kind]


def measured_rows(data):
    with (data / "ceph16/change/change.csv").open() as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("scheme", POOLS)
@pytest.mark.parametrize("kind", ["drain", "return", "shrink", "grow"])
def test_up_sets_and_shards_that_move_are_those_of_a_real_cluster(data, scheme, kind):
    folder = data / "ceph16/change"
    rule, pool_id, width = POOLS[scheme]
    crush = load_map(folder / "cluster.crush.txt")
    with gzip.open(folder / f"change-{scheme}-{kind}.json.gz", "rt") as file:
        measured = json.load(file)
    rows = [
        pg_mappings(changed, rule, pool_id, PG_NUM, width, reweights)
        for changed, reweights in maps_around(crush, kind)
    ]
    for moment, mapped in zip(("before", "after"), rows, strict=True):
        wanted = [
            measured[moment][f"{pool_id}.{group:x}"]["up"] for group in range(PG_NUM)
        ]
        assert mapped.tolist() == wanted
    movement = Movement.between(*rows, is_replicated=scheme == "rep3")
    (row,) = (
        row
        for row in measured_rows(data)
        if (row["scheme"], row["kind"]) == (scheme, kind)
    )
    assert movement.shards_count == int(row["shards_moved"])
    objects = np.array(
        [
            measured["before"][f"{pool_id}.{group:x}"]["objects"]
            for group in range(PG_NUM)
        ]
    )
    assert objects[movement.groups].sum() == int(row["objects_moved"])
    assert objects[movement.left_groups].sum() == int(row["objects_moved"])


def test_ancestors_follow_a_weight_in_both_trees():
    crush = reweighted(parse_map(SMALL), {1: WEIGHT_ONE // 2})
    # 1 + 0.5 in host a, 1.5 + 4 in the root; the shadows have the same.
    below_root = [[1.0, 0.5], [4.0], [1.5, 4.0]]
    by_id = weights_of(crush)
    assert [by_id[-2], by_id[-3], by_id[-1]] == below_root
    assert [by_id[-5], by_id[-6], by_id[-4]] == below_root


def test_weight_sets_of_the_ancestors_follow_too():
    one = WEIGHT_ONE
    crush = parse_map(SMALL)
    sets = (
        BucketArgs(-5, ((one, one), (one, 3 * one))),
        BucketArgs(-4, ((2 * one, 5 * one), (4 * one, 5 * one))),
        BucketArgs(-6, (), (7,)),
    )
    changed = reweighted(replace(crush, choose_args=((-1, sets),)), {0: 2 * one})
    ((_, after),) = changed.choose_args
    # OSD 0 weighs 2 in both positions; host a weighs 2 + 1 and 2 + 3 now, host b is as before.
    assert after[0].weight_sets == ((2 * one, one), (2 * one, 3 * one))
    assert after[1].weight_sets == ((3 * one, 5 * one), (5 * one, 5 * one))
    assert after[2] == sets[2]


def test_the_set_of_the_pool_is_used_and_another_pool_has_the_set_for_all():
    one = WEIGHT_ONE
    crush = parse_map(SMALL)
    # Pool 3 never uses host b, pool 4 never host a.
    sets = (
        (3, (BucketArgs(-4, ((one, 0),)),)),
        (-1, (BucketArgs(-4, ((0, one),)),)),
    )
    crush = replace(crush, choose_args=sets)
    assert set(pg_mappings(crush, "rep", 3, 64, 1).ravel().tolist()) == {0, 1}
    assert set(pg_mappings(crush, "rep", 4, 64, 1).ravel().tolist()) == {2}


def test_an_osd_that_the_map_does_not_have_is_refused():
    with pytest.raises(ProblemsError, match="OSD 9"):
        reweighted(build_map(hosts=2, osds_per_host=2), {9: 0})


def test_new_hosts_move_nothing_until_their_osds_have_a_weight():
    crush = build_map(hosts=4, osds_per_host=2)
    root = crush.buckets[-1].id
    grown, osds = with_new_hosts(
        crush, ["host4", "host5"], parents=[root, root], osds_per_host=2
    )
    assert osds == [[8, 9], [10, 11]]
    before = pg_mappings(crush, "ec", 1, 512, 3)
    assert pg_mappings(grown, "ec", 1, 512, 3).tolist() == before.tolist()
    weights = dict.fromkeys([8, 9, 10, 11], WEIGHT_ONE)
    after = pg_mappings(reweighted(grown, weights), "ec", 1, 512, 3)
    movement = Movement.between(before, after, is_replicated=False)
    received = np.bincount(movement.targets, minlength=12)
    # 4 of 12 OSDs are new, so a third of 1,536 shards goes to them, give or take three deviations.
    deviation = (1536 / 3 * 2 / 3) ** 0.5
    assert abs(received[8:].sum() - 512) < 3 * deviation
    # Straw2 also moves a shard between old hosts where an earlier place has taken its host.
    assert received[:8].sum() < received[8:].sum() / 2


def test_new_hosts_get_free_ids_and_shadows_as_in_ceph():
    crush = parse_map(SMALL)
    grown, osds = with_new_hosts(
        crush, ["c"], parents=[-1], osds_per_host=1, device_class="ssd"
    )
    assert osds == [[3]]
    after = reweighted(grown, {3: 8 * WEIGHT_ONE})
    by_id = {bucket.id: bucket for bucket in after.buckets}
    # The lowest free ids: −7 for the host, −8 for its shadow.
    assert by_id[-1].items == (-2, -3, -7)
    assert by_id[-4].items == (-5, -6, -8)
    assert (by_id[-7].items, by_id[-8].items) == ((3,), (3,))
    assert weights_of(after)[-4] == [3.0, 4.0, 8.0]
    assert 3 in pg_mappings(after, "rep", 1, 32, 2)


def test_a_weight_of_zero_and_back_is_as_before():
    crush = build_map(hosts=6, osds_per_host=4, racks=3)
    away = reweighted(crush, {3: 0, 7: 0})
    assert reweighted(away, {3: WEIGHT_ONE, 7: WEIGHT_ONE}) == crush


def test_replicas_that_change_places_do_not_move():
    movement = Movement.between([[0, 1, 2]], [[2, 0, 3]], is_replicated=True)
    assert (movement.targets.tolist(), movement.sources.tolist()) == ([3], [1])
    movement = Movement.between([[0, 1, 2]], [[2, 0, 3]], is_replicated=False)
    assert movement.targets.tolist() == [2, 0, 3]
    assert movement.groups_count == 1


def test_a_shard_without_an_osd_does_not_move():
    movement = Movement.between(
        [[0, 1], [0, NONE]], [[0, NONE], [0, 1]], is_replicated=False
    )
    assert movement.groups.tolist() == [1]
    assert movement.sources.tolist() == [1]


def test_a_thousand_osds_take_less_than_a_minute():
    crush = build_map(hosts=50, osds_per_host=20)
    started_s = time.monotonic()
    before = pg_mappings(crush, "ec", 1, 16384, 9)
    after = pg_mappings(drained(crush, range(20)), "ec", 1, 16384, 9)
    movement = Movement.between(before, after, is_replicated=False)
    assert time.monotonic() - started_s < 60
    # Each shard of the drained host leaves it, a fiftieth of all.
    assert (movement.sources < 20).sum() == np.isin(before, np.arange(20)).sum()
