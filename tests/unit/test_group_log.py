"""The log of a placement group: how long it is, and who is recovered by it."""

import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.groups import Group

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


def group(*, entries=0, lengths=(10, 10)):
    return Group(
        0,
        parse_scheme("rep:3"),
        (0, 1, 2),
        range(4),
        entries=entries,
        log_lengths=lengths,
    )


def move(placed, *osds):
    placed.up = osds
    placed.add_empty_copies()
    placed.members = placed.choose_members(EVERY_OSD)


@pytest.mark.parametrize(("entries", "backfill"), [(10, False), (11, True)])
def test_a_new_member_is_backfilled_once_the_log_was_trimmed(entries, backfill):
    placed = group(entries=entries)
    move(placed, 0, 1, 3)
    assert placed.members.joining == (NO_OSD, NO_OSD, 3)
    assert placed.copy_of(3, 2).backfill == backfill
    assert placed.copy_of(3, 2).missing == {0, 1, 2, 3}


@pytest.mark.parametrize(("writes", "backfill"), [(10, False), (11, True)])
def test_who_returns_is_backfilled_if_it_missed_more_than_the_log_holds(
    writes, backfill
):
    placed = group(entries=100)
    move(placed, 0, 1, NO_OSD)
    placed.note_writes(2, writes)
    move(placed, 0, 1, 2)
    assert placed.copy_of(2, 2).backfill == backfill
    assert placed.copy_of(2, 2).missing == {2}


def test_before_octopus_a_log_grows_while_its_group_is_degraded():
    placed = group(entries=100, lengths=(10, 3))
    move(placed, 0, 1, NO_OSD)
    placed.note_writes(2, 5)
    placed.note_writes(3, 5)
    move(placed, 0, 1, 2)
    assert not placed.copy_of(2, 2).backfill
    move(placed, 0, 1, NO_OSD)
    placed.note_writes(2, 1)
    move(placed, 0, 1, 2)
    assert placed.copy_of(2, 2).backfill


def test_an_empty_device_lacks_the_whole_log():
    placed = group(entries=100)
    placed.wipe(2)
    move(placed, 0, 1, 2)
    assert placed.copy_of(2, 2).backfill


def coded(width=6):
    return Group(
        0, parse_scheme("rs:4,2"), range(width), range(4), log_lengths=(10, 10)
    )


def lacking(placed, item):
    return {osd for (osd, _), copy in placed.copies.items() if item in copy.missing}


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
    placed = make()
    touched = set(range(len(placed.up)))
    alive = EVERY_OSD - dead
    assert placed.settle_cut_off_write(1, touched, reached, alive) == stays
    assert lacking(placed, 1) == lack


def test_a_write_of_some_shards_leaves_the_others_as_they_are():
    placed = coded()
    assert placed.settle_cut_off_write(1, {0, 4, 5}, {0, 5}, EVERY_OSD)
    assert lacking(placed, 1) == {4}


def test_who_lacks_an_object_does_not_have_it_by_another_write():
    placed = coded()
    for shard in (0, 1, 2):
        placed.copy_of(shard, shard).missing.add(1)
    move(placed, *range(6))
    every_shard = set(range(6))
    assert not placed.settle_cut_off_write(1, every_shard, every_shard, EVERY_OSD)
