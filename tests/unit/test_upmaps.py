"""Upmaps while weights change: which stay, which the monitors drop."""

import numpy as np

from stripesim.models.placement import (
    OsdMap,
    OsdWeights,
    PlacedPool,
    build_map,
    changed_osd_map,
    pg_mappings,
    pg_sets,
)
from stripesim.models.placement.crush.elements import WEIGHT_ONE

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
