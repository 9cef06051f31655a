"""Placement while OSDs are out: the affected groups alone give what the whole map gives."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stripesim.models.placement import (
    NONE,
    OsdMap,
    OsdWeights,
    PlacedPool,
    PoolOutages,
    build_map,
    changed_osd_map,
    pg_sets,
)
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from support.examples import SLOW

HOSTS, OSDS_PER_HOST, RACKS = 8, 3, 4
OSDS = HOSTS * OSDS_PER_HOST
CRUSH = build_map(hosts=HOSTS, osds_per_host=OSDS_PER_HOST, racks=RACKS)
GROUPS = 64


@st.composite
def cluster_maps(draw):
    """Draw an OSD map with reweights, OSDs that are out or down, and upmaps of all kinds."""
    rule = draw(st.sampled_from(CRUSH.rules))
    kind = draw(st.sampled_from(["replicated", "erasure"]))
    width = draw(st.integers(2, 4))
    pool = PlacedPool(
        id=draw(st.integers(1, 5)),
        name="p",
        kind=kind,
        size=width,
        pg_num=GROUPS,
        pgp_num=GROUPS,
        rule=rule.id,
    )
    share = st.sampled_from([WEIGHT_ONE] * 6 + [WEIGHT_ONE // 2, 0])
    weights = draw(st.lists(share, min_size=OSDS, max_size=OSDS))
    up = draw(
        st.lists(st.sampled_from([True] * 9 + [False]), min_size=OSDS, max_size=OSDS)
    )
    osd = st.integers(0, OSDS - 1)
    group = st.integers(0, GROUPS - 1)
    pair = st.tuples(osd, osd)
    items = draw(
        st.dictionaries(group, st.lists(pair, min_size=1, max_size=2), max_size=24)
    )
    whole = st.lists(osd, min_size=width, max_size=width, unique=True)
    upmaps = draw(st.dictionaries(group, whole, max_size=4))
    return OsdMap(
        CRUSH,
        exists=np.ones(OSDS, dtype=bool),
        up=np.array(up),
        weights=np.array(weights, dtype=np.int64),
        affinities=np.full(OSDS, WEIGHT_ONE, dtype=np.int64),
        pools=(pool,),
        pg_upmap={(pool.id, number): osds for number, osds in upmaps.items()},
        pg_upmap_items={(pool.id, number): pairs for number, pairs in items.items()},
    )


@settings(max_examples=SLOW)
@given(cluster_maps(), st.sets(st.integers(0, OSDS - 1), min_size=1, max_size=4))
def test_the_affected_groups_alone_move_as_in_the_whole_map(drawn, failed):
    # The monitors clean the map before the failure too.
    osd_map = changed_osd_map(drawn, OsdWeights())
    (pool,) = osd_map.pools
    before = pg_sets(osd_map, pool).up
    whole = changed_osd_map(osd_map, OsdWeights(out=tuple(failed)))
    wanted = pg_sets(whole, pool).up
    groups, rows = PoolOutages(osd_map, pool).without(failed)
    width = max(before.shape[1], rows.shape[1], wanted.shape[1])
    found = padded(before, width)
    found[groups] = padded(rows, width)
    assert (found == padded(wanted, width)).all()


def padded(rows, width):
    wide = np.full((len(rows), width), NONE, dtype=np.int32)
    wide[:, : rows.shape[1]] = rows
    return wide


@settings(max_examples=SLOW)
@given(cluster_maps(), st.sets(st.integers(0, GROUPS - 1)))
def test_some_groups_are_placed_as_all_are(osd_map, chosen):
    (pool,) = osd_map.pools
    groups = np.array(sorted(chosen), dtype=np.int64)
    osd_map = replace(osd_map, pg_temp={(pool.id, 3): [0, 1], (pool.id, 5): [2]})
    every = pg_sets(osd_map, pool)
    some = pg_sets(osd_map, pool, groups)
    for name in ("up", "acting"):
        wanted = getattr(every, name)
        found = padded(getattr(some, name), wanted.shape[1])
        assert (found == wanted[groups]).all()
        primaries = f"{name}_primary"
        assert (getattr(some, primaries) == getattr(every, primaries)[groups]).all()
