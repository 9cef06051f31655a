"""The log of a placement group: its length, and the OSDs that are recovered by it."""

import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.groups import Group, PgLog

EVERY_OSD = set(range(6))


@pytest.mark.parametrize(
    ("release", "groups", "lengths"),
    [
        ("kraken", 100, (10_000, 3_000)),
        ("pacific", 1, (10_000, 10_000)),
        ("pacific", 100, (3_000, 3_000)),
        ("tentacle", 5_000, (250, 250)),
    ],
)
def test_the_groups_of_an_osd_share_log_entries_since_octopus(release, groups, lengths):
    assert recovery_model(release).log_lengths(groups) == lengths


def group(*, entries=0, lengths=(10, 10), **more):
    """Three copies of four objects on OSDs 0 to 2."""
    return Group(
        0,
        parse_scheme("rep:3"),
        (0, 1, 2),
        range(4),
        log=PgLog(lengths, entries_count=entries),
        **more,
    )


def wide_group(*, async_recovery_min=0):
    """Four objects under RS(6,3) on OSDs 0 to 8."""
    return Group(
        0,
        parse_scheme("rs:6,3"),
        range(9),
        range(4),
        log=PgLog((10, 10), entries_count=5, async_recovery_min=async_recovery_min),
    )


def remap(pg, *osds):
    """Give a PG another up set, while every OSD is up."""
    pg.up = osds
    pg.add_empty_copies()
    pg.members = pg.choose_members(EVERY_OSD)


@pytest.mark.parametrize(("entries", "backfill"), [(10, False), (11, True)])
def test_a_new_member_is_backfilled_once_the_log_was_trimmed(entries, backfill):
    # Given a log that holds 10 entries, when OSD 3 joins, which has missed all of them.
    pg = group(entries=entries)
    remap(pg, 0, 1, 3)
    assert pg.members.joining == (NO_OSD, NO_OSD, 3)
    assert pg.copy_of(3, 2).backfill == backfill
    assert pg.copy_of(3, 2).missing == {0, 1, 2, 3}


@pytest.mark.parametrize(("writes", "backfill"), [(10, False), (11, True)])
def test_an_osd_that_returns_is_backfilled_if_it_missed_more_than_the_log_holds(
    writes, backfill
):
    # Given a log that holds 10 of 100 entries, when OSD 2 misses some writes of object 2.
    pg = group(entries=100)
    remap(pg, 0, 1, NO_OSD)
    pg.note_writes({2: writes})
    remap(pg, 0, 1, 2)
    assert pg.copy_of(2, 2).backfill == backfill
    assert pg.copy_of(2, 2).missing == {2}


@pytest.mark.parametrize(("one_in", "kept"), [(0, 0), (1, 1000), (4, 250)])
def test_an_osd_misses_one_in_several_new_objects_and_is_behind_by_all(one_in, kept):
    # Given OSD 2 away, when clients store 1,000 objects and write one of the first four
    pg = group(entries=100, lengths=(2000, 2000), recovered_one_in=one_in)
    remap(pg, 0, 1, NO_OSD)
    pg.note_writes(dict.fromkeys((2, *range(100, 1100)), 1))
    missed = pg.copy_of(2, 2)
    assert 2 in missed.missing
    assert len(missed.missing) == pytest.approx(1 + kept, abs=5)
    # All 1,001 entries are new to it, except in a sample, whose objects represent the others.
    assert missed.missed_count == (1001 if one_in else 1)


def test_before_octopus_a_log_grows_while_its_group_is_degraded():
    # A clean PG keeps 3 entries, a degraded one 10: the log holds all 5 + 5 that OSD 2 missed.
    pg = group(entries=100, lengths=(10, 3))
    remap(pg, 0, 1, NO_OSD)
    pg.note_writes({2: 5, 3: 5})
    remap(pg, 0, 1, 2)
    assert not pg.copy_of(2, 2).backfill
    # The eleventh is one too many.
    remap(pg, 0, 1, NO_OSD)
    pg.note_writes({2: 1})
    remap(pg, 0, 1, 2)
    assert pg.copy_of(2, 2).backfill


def test_an_empty_device_lacks_the_whole_log():
    pg = group(entries=100)
    pg.wipe(2)
    remap(pg, 0, 1, 2)
    assert pg.copy_of(2, 2).backfill


@pytest.mark.parametrize(("entries", "third"), [(10, NO_OSD), (11, 2)])
def test_a_former_member_acts_for_one_that_is_backfilled_alone(entries, third):
    """A new member that is recovered by the log leaves a hole, and the former one does not act for it."""
    pg = group(entries=entries)
    remap(pg, 0, 1, 3)
    assert pg.members.acting == (0, 1, third)


def test_min_size_limits_the_shards_that_are_recovered_outside_the_acting_set():
    """RS(6,3) needs seven shards: of three new OSDs the two that are furthest behind are left out."""
    pg = wide_group(async_recovery_min=1)
    pg.up = (0, 1, 2, 3, 4, 5, 9, 10, 11)
    pg.add_empty_copies()
    pg.copy_of(10, 7).missed_count = 3
    members = pg.choose_members(set(range(12)))
    assert members.acting == (0, 1, 2, 3, 4, 5, NO_OSD, 10, NO_OSD)
    assert members.joining == (*[NO_OSD] * 6, 9, 10, 11)


def test_a_map_names_each_hole_of_an_acting_set():
    """With a second new OSD, the map that names a hole for the first is not enough."""
    pg = wide_group()
    every_osd = set(range(12))
    pg.up = (*range(8), 9)
    pg.add_empty_copies()
    pg.members = pg.choose_members(every_osd)
    assert not pg.is_named(every_osd)
    pg.pg_temp = pg.members.acting
    assert pg.is_named(every_osd)
    pg.up = (*range(7), 10, 9)
    pg.add_empty_copies()
    pg.members = pg.choose_members(every_osd)
    assert pg.members.acting == (*range(7), NO_OSD, NO_OSD)
    assert not pg.is_named(every_osd)


def coded(width=6):
    log = PgLog((10, 10))
    return Group(0, parse_scheme("rs:4,2"), range(width), range(4), log=log)


def lacking(pg, item):
    return {osd for (osd, _), copy in pg.copies.items() if item in copy.missing}


@pytest.mark.parametrize(
    ("make", "reached", "dead", "stays", "lack"),
    [
        (group, {0, 1}, set(), True, {2}),
        (group, {1}, set(), True, {0, 2}),
        (group, {1}, {1}, False, set()),
        (group, {0, 1}, {1}, True, {1, 2}),
        (coded, {0, 1, 2}, set(), False, set()),
        (coded, {0, 1, 2, 4}, set(), True, {3, 5}),
        (coded, {0, 1, 2, 4}, {4}, False, set()),
    ],
)
def test_a_write_that_was_cut_off_stays_where_it_can_be_read(
    make, reached, dead, stays, lack
):
    pg = make()
    touched = set(range(len(pg.up)))
    alive = EVERY_OSD - dead
    assert pg.settle_cut_off_write(1, touched, reached, alive) == stays
    assert lacking(pg, 1) == lack


def test_a_write_of_some_shards_leaves_the_others_as_they_are():
    pg = coded()
    assert pg.settle_cut_off_write(1, {0, 4, 5}, {0, 5}, EVERY_OSD)
    assert lacking(pg, 1) == {4}


def test_an_osd_that_lacks_an_object_does_not_get_it_by_another_write():
    pg = coded()
    for shard in (0, 1, 2):
        pg.copy_of(shard, shard).missing.add(1)
    remap(pg, *range(6))
    every_shard = set(range(6))
    assert not pg.settle_cut_off_write(1, every_shard, every_shard, EVERY_OSD)
