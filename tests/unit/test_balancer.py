"""The balancer moves shards until no OSD is far above its share, and keeps failure domains apart."""

import numpy as np

from stripesim.models.placement import map_of_hosts, pg_mappings
from stripesim.models.placement.balancer import balanced_sets
from stripesim.models.placement.crush.elements import NONE, WEIGHT_ONE

HOSTS = 5
OSDS_PER_HOST = 4


def placed(groups):
    """Return the sets of replicated groups on five hosts, and the host of each OSD."""
    crush = map_of_hosts([(WEIGHT_ONE,) * OSDS_PER_HOST] * HOSTS)
    sets = np.asarray(pg_mappings(crush, "rep", 1, groups, 3), dtype=np.int64)
    domains = {osd: osd // OSDS_PER_HOST for osd in range(HOSTS * OSDS_PER_HOST)}
    return sets, domains


def test_no_osd_stays_above_its_share_by_more_than_the_deviation():
    # Given 512 groups of 3 on 20 equal OSDs: 512 * 3 / 20 = 76.8 shards each.
    sets, domains = placed(512)
    before = np.bincount(sets.reshape(-1), minlength=20)
    assert before.max() > 76.8 + 5
    # When they are balanced
    balanced = balanced_sets(
        sets, dict.fromkeys(domains, 1.0), domains, max_deviation=5
    )
    # Then none has more than 5 above, and no shard is lost.
    after = np.bincount(balanced.reshape(-1), minlength=20)
    assert after.max() <= 76.8 + 5
    assert after.sum() == before.sum()


def test_members_of_a_group_stay_on_different_hosts():
    sets, domains = placed(256)
    balanced = balanced_sets(sets, dict.fromkeys(domains, 1.0), domains)
    hosts = balanced // OSDS_PER_HOST
    assert all(len(set(row)) == 3 for row in hosts.tolist())


def test_an_osd_of_twice_the_weight_keeps_twice_the_shards():
    # Given one OSD of weight 2 among 19 of weight 1: its share is 2 / 21 of 512 * 3 shards, 146.3.
    sets, domains = placed(512)
    weights = dict.fromkeys(domains, 1.0)
    weights[0] = 2.0
    balanced = balanced_sets(sets, weights, domains)
    others = np.bincount(balanced.reshape(-1), minlength=20)[1:]
    # Then the others are at most one above theirs, 73.1; they give what OSD 0 can take.
    assert others.max() <= 512 * 3 / 21 + 1


def test_holes_stay_holes():
    sets, domains = placed(64)
    sets[3, 1] = NONE
    balanced = balanced_sets(sets, dict.fromkeys(domains, 1.0), domains)
    assert balanced[3, 1] == NONE
    assert (balanced == NONE).sum() == 1


def test_an_osd_that_is_too_empty_gets_shards_though_none_is_too_full():
    # Twelve single shards over three OSDs: 5, 5 and 2. Each deviates from its share of 4, none is above it by
    # more than 1, but one is 2 below. A balancer moves one shard to it (Ceph v16.2.15, calc_pg_upmaps).
    sets = [[0]] * 5 + [[1]] * 5 + [[2]] * 2
    balanced = balanced_sets(sets, {0: 1.0, 1: 1.0, 2: 1.0}, {}, max_deviation=1)
    assert sorted(np.bincount(balanced.ravel()).tolist()) == [3, 4, 5]


def test_shards_stay_in_the_tree_that_the_rule_takes():
    # Even OSDs are SSDs with one shard of each group, odd ones are disks: 0 and 1 hold most.
    trees = {osd: (osd % 2,) for osd in range(6)}
    sets = [[0, 1]] * 6 + [[2, 3]] * 2 + [[4, 5]]
    balanced = balanced_sets(sets, dict.fromkeys(trees, 1.0), {}, trees=trees)
    assert (balanced % 2 == [0, 1]).all()
    # 9 groups on three OSDs of each kind: 3 each, and one more is allowed.
    assert np.bincount(balanced.ravel()).max() <= 4
