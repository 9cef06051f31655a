"""Upmaps while weights change: which stay, which the monitors drop."""

import numpy as np

from stripesim.models.placement import (
    OsdMap,
    OsdWeights,
    PlacedPool,
    balanced_osd_map,
    build_map,
    changed_osd_map,
    map_of_hosts,
    pg_mappings,
    pg_sets,
)
from stripesim.models.placement.balancer import balanced_sets
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.placement.upmaps import upmap_pairs

POOL = PlacedPool(id=1, name="p", kind="erasure", size=3, pg_num=64, pgp_num=64, rule=2)
CRUSH = build_map(hosts=6, osds_per_host=2)
ROWS = pg_mappings(CRUSH, "ec", 1, 64, 3).tolist()


def osd_map(pairs):
    present = np.ones(12, dtype=bool)
    full = np.full(12, WEIGHT_ONE, dtype=np.int64)
    return OsdMap(
        CRUSH, present, present, full, full, (POOL,), pg_upmap_items={(1, 0): pairs}
    )


def spare_of(row):
    """Return an OSD on a host that a PG does not use."""
    hosts = {osd // 2 for osd in row}
    return next(osd for osd in range(12) if osd // 2 not in hosts)


def test_an_upmap_that_holds_stays():
    old, spare = ROWS[0][1], spare_of(ROWS[0])
    changed = changed_osd_map(osd_map([(old, spare)]), OsdWeights())
    assert changed.pg_upmap_items == {(1, 0): [(old, spare)]}
    assert pg_sets(changed, POOL).up[0].tolist() == [ROWS[0][0], spare, ROWS[0][2]]


def test_an_upmap_to_an_osd_that_is_out_or_weighs_nothing_is_dropped():
    old, spare = ROWS[0][1], spare_of(ROWS[0])
    for weights in (OsdWeights(out=(spare,)), OsdWeights(crush=((spare, 0),))):
        changed = changed_osd_map(osd_map([(old, spare)]), weights)
        assert changed.pg_upmap_items == {}
        assert spare not in pg_sets(changed, POOL).up[0]


def test_an_upmap_into_a_failure_domain_of_the_pg_is_dropped():
    first, old, _ = ROWS[0]
    neighbour = first ^ 1
    changed = changed_osd_map(osd_map([(old, neighbour)]), OsdWeights())
    assert changed.pg_upmap_items == {}


def test_a_pair_whose_osd_crush_no_longer_names_is_dropped():
    old, spare = ROWS[0][1], spare_of(ROWS[0])
    weights = OsdWeights(crush=((old, 0),))
    changed = changed_osd_map(osd_map([(old, spare)]), weights)
    assert changed.pg_upmap_items == {}


def balanced(cluster_map):
    """Return a map that is balanced to a deviation of one PG, and the up sets of its pool."""
    shares = dict.fromkeys(range(12), 1.0)
    hosts = {osd: osd // 2 for osd in range(12)}
    evened = balanced_osd_map(cluster_map, shares, hosts, max_deviation=1)
    return evened, pg_sets(evened, POOL).up


def test_a_balanced_map_places_what_the_balancer_placed():
    evened, rows = balanced(osd_map([]))
    shares = dict.fromkeys(range(12), 1.0)
    hosts = {osd: osd // 2 for osd in range(12)}
    assert (rows == balanced_sets(ROWS, shares, hosts, max_deviation=1)).all()
    # 64 PGs of 3 shards on 12 OSDs: 16 each, one more at most.
    assert np.bincount(rows.ravel()).max() <= 17
    assert evened.pg_upmap_items


def test_a_lost_osd_moves_only_groups_that_it_belongs_to():
    evened, before = balanced(osd_map([]))
    after = pg_sets(changed_osd_map(evened, OsdWeights(out=(0,))), POOL).up
    moved = (np.sort(before) != np.sort(after)).any(axis=1)
    assert (moved == (before == 0).any(axis=1)).all()
    assert 0 not in after


def test_pairs_are_in_an_order_that_ceph_applies():
    # Of the row (a, b, c), the shard of b moves to d before that of a moves to b.
    a, b, c = ROWS[0]
    spare = spare_of(ROWS[0])
    pairs = upmap_pairs([a, b, c], [b, spare, c])
    assert pairs == [(b, spare), (a, b)]
    assert pg_sets(osd_map(pairs), POOL).up[0].tolist() == [b, spare, c]


def test_some_groups_of_a_pool_whose_rule_is_missing_have_a_row_each():
    crush = map_of_hosts([(WEIGHT_ONE,) * 2] * 4)
    osds = crush.max_devices
    pool = PlacedPool(
        id=1, name="p", kind="replicated", size=3, pg_num=16, pgp_num=16, rule=99
    )
    osd_map = OsdMap(
        crush=crush,
        exists=np.ones(osds, dtype=bool),
        up=np.ones(osds, dtype=bool),
        weights=np.full(osds, WEIGHT_ONE),
        affinities=np.full(osds, WEIGHT_ONE),
        pools=(pool,),
    )
    assert pg_sets(osd_map, pool, np.array([1, 2])).up.shape == (2, 3)
