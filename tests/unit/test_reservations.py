"""Reservations: by priority, then by the order of requests, and taken away by a higher priority."""

from types import SimpleNamespace

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.placement.movement import Movement
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.background.recovery import Priority
from stripesim.sim.ceph.failures.background.reservations import (
    Backfill,
    Grant,
    Reservations,
    Reserver,
    backfills_of,
)
from stripesim.sim.ceph.failures.groups import PgInterval, ServingOsds


def test_slots_are_granted_by_priority_then_in_order():
    reserver = Reserver(1)
    for group, priority in ((7, 100), (3, 100), (5, 140)):
        reserver.ask(group, priority)
    assert reserver.grant() == Grant(5)
    assert reserver.grant() is None
    reserver.cancel(5)
    assert reserver.grant() == Grant(7)


def test_a_higher_priority_takes_the_slot_of_the_lowest():
    # Given two slots of different priorities
    reserver = Reserver(2)
    reserver.ask(9, 140)
    reserver.ask(4, 100)
    assert [reserver.grant(), reserver.grant()] == [Grant(9), Grant(4)]
    # When one of the priority of a holder asks, then it waits
    reserver.ask(1, 100)
    assert reserver.grant() is None
    # and one of a higher priority gets the slot of the lowest.
    reserver.ask(2, 180)
    assert reserver.grant() == Grant(2, loser=4)
    reserver.ask(6, 180)
    assert reserver.grant() == Grant(6, loser=9)
    # Nobody is left to lose one.
    reserver.ask(8, 180)
    assert reserver.grant() is None


def test_of_equal_priorities_the_lowest_number_loses():
    reserver = Reserver(2)
    for group in (8, 3):
        reserver.ask(group, 100)
        reserver.grant()
    reserver.ask(9, 180)
    assert reserver.grant() == Grant(9, loser=3)


def test_targets_are_asked_in_their_order_each_once_the_one_before_has_granted():
    # Given a group whose second target serves another one first
    reservations = Reservations(1)
    reservations.ask(8, 100, lead=4, targets=[2])
    reservations.ask(5, 100, lead=0, targets=[1, 2, 3])
    assert [grant.group for grant in reservations.granted()] == [5, 8]
    assert reservations.ask_next(8)
    assert [grant.group for grant in reservations.granted()] == [8]
    # When it asks, then its first target grants, the second not before it is released.
    assert reservations.ask_next(5)
    assert [grant.group for grant in reservations.granted()] == [5]
    assert reservations.ask_next(5)
    assert list(reservations.granted()) == []
    reservations.release(8, 4, [2])
    assert [grant.group for grant in reservations.granted()] == [5]
    assert reservations.ask_next(5)
    assert [grant.group for grant in reservations.granted()] == [5]
    assert not reservations.ask_next(5)


def test_a_primary_reserves_nothing_at_itself():
    # Given a code whose first two shards change places, and another of which OSD 7 gets the last shard
    before = np.array([[0, 1, 2], [NO_OSD, 4, 5]])
    after = np.array([[1, 0, 2], [NO_OSD, 4, 7]])
    movement = Movement.between(before, after, is_replicated=False)
    # Then OSD 0 fills its own new shard, and the first OSD that is there leads.
    assert backfills_of(movement, before.tolist()) == [
        Backfill(0, (1,)),
        Backfill(4, (7,)),
    ]


def test_a_grant_says_whether_a_target_gives_it():
    reservations = Reservations(1)
    reservations.ask(1, 100, lead=0, targets=[2])
    assert list(reservations.granted()) == [Grant(1)]
    assert reservations.ask_next(1)
    assert list(reservations.granted()) == [Grant(1, is_target=True)]
    assert not reservations.ask_next(1)
    reservations.ask(5, 180, lead=1, targets=[2])
    assert list(reservations.granted()) == [Grant(5)]
    assert reservations.ask_next(5)
    assert list(reservations.granted()) == [Grant(5, loser=1, is_target=True)]
    # A lost reservation is not requested again by itself.
    assert not reservations.ask_next(1)
    reservations.release(5, 1, [2])
    assert list(reservations.granted()) == []


@pytest.mark.parametrize(
    ("served", "is_active", "is_backfilled", "priority"),
    [
        # RS(4,2) has a min_size of 5. With one shard more than min_size allows missing, it serves no client.
        (6, True, True, 100),
        (5, True, True, 141),
        (5, True, False, 180),
        (4, False, True, 221),
        (4, False, False, 221),
        (3, False, True, 222),
    ],
)
def test_groups_that_lack_more_shards_come_first(
    served, is_active, is_backfilled, priority
):
    acting = (*range(served), *(NO_OSD for _ in range(6 - served)))
    group = SimpleNamespace(
        scheme=parse_scheme("rs:4,2"),
        members=ServingOsds(acting, (NO_OSD,) * 6, tuple(range(6))),
        interval=PgInterval(active=is_active),
        is_backfilled=is_backfilled,
    )
    assert Priority.of(group) == priority


def test_three_copies_with_one_left_come_before_those_with_two():
    # With min_size 1, both serve clients.
    groups = [
        SimpleNamespace(
            scheme=parse_scheme("rep:3"),
            members=ServingOsds(acting, (NO_OSD,) * 3, (0, 1, 2)),
            interval=PgInterval(),
            is_backfilled=True,
        )
        for acting in ((0, 1, NO_OSD), (0, NO_OSD, NO_OSD))
    ]
    assert [Priority.of(group) for group in groups] == [141, 142]
