"""The log of a placement group: how long it is, and who is recovered by it."""

import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.groups import Group


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
    return Group(0, parse_scheme("rep:3"), (0, 1, 2), range(4), entries=entries, log_lengths=lengths)


def move(placed, *osds):
    placed.up = osds
    placed.add_empty_copies()
    placed.members = placed.decide(lambda osd: True)


@pytest.mark.parametrize(("entries", "backfill"), [(10, False), (11, True)])
def test_a_new_member_is_backfilled_once_the_log_was_trimmed(entries, backfill):
    placed = group(entries=entries)
    move(placed, 0, 1, 3)
    assert placed.members.joining == (NO_OSD, NO_OSD, 3)
    assert placed.copy_of(3, 2).backfill == backfill
    assert placed.copy_of(3, 2).missing == {0, 1, 2, 3}


@pytest.mark.parametrize(("writes", "backfill"), [(10, False), (11, True)])
def test_who_returns_is_backfilled_if_it_missed_more_than_the_log_holds(writes, backfill):
    placed = group(entries=100)
    move(placed, 0, 1, NO_OSD)
    placed.written(2, writes)
    move(placed, 0, 1, 2)
    assert placed.copy_of(2, 2).backfill == backfill
    assert placed.copy_of(2, 2).missing == {2}


def test_before_octopus_a_log_grows_while_its_group_is_degraded():
    placed = group(entries=100, lengths=(10, 3))
    move(placed, 0, 1, NO_OSD)
    placed.written(2, 5)
    placed.written(3, 5)
    move(placed, 0, 1, 2)
    assert not placed.copy_of(2, 2).backfill
    move(placed, 0, 1, NO_OSD)
    placed.written(2, 1)
    move(placed, 0, 1, 2)
    assert placed.copy_of(2, 2).backfill


def test_an_empty_device_lacks_the_whole_log():
    placed = group(entries=100)
    placed.wipe(2)
    move(placed, 0, 1, 2)
    assert placed.copy_of(2, 2).backfill
