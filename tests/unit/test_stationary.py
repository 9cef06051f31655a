"""Requests in flight at the start of a steady run have waited before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from stripesim.sim.ceph.clients.stationary import (
    ages_at_start,
    busiest_osd,
    requests_at,
)
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.pool import Pool


@pytest.mark.parametrize("steady_ns", [1000, 400])
def test_age_and_time_to_completion_add_up_to_the_time_in_a_queue(
    models: Models, make_pool: Callable[..., Pool], steady_ns: int
) -> None:
    # Given ten reads in the queue of one placement group, of which one completes every 100 ns. Those after
    # the end of the steady state complete at once, because clients have stopped.
    pool = make_pool(models, "rep:3")
    completed_ns = 100 * np.arange(1, 11)
    completed_ns[completed_ns > steady_ns] = steady_ns + 1

    ages_ns = ages_at_start(
        pool,
        groups=np.zeros(10, dtype=np.int64),
        is_write=np.zeros(10, dtype=bool),
        completed_ns=completed_ns,
        steady_ns=steady_ns,
    )

    # Then each that completes in the steady state spends 11 services there, the n + 1 of the docstring.
    in_time = completed_ns <= steady_ns
    assert (completed_ns + ages_ns)[in_time].tolist() == [1100] * in_time.sum()


@pytest.mark.parametrize(("primary", "shares_a_queue"), [(0, True), (5, False)])
def test_requests_with_the_same_primary_and_most_crowded_osd_wait_in_one_queue(
    models: Models, make_pool: Callable[..., Pool], primary: int, shares_a_queue: bool
) -> None:
    # Given writes of two groups that complete after 100 and 300 ns. Both groups use OSD 0 most, but only in
    # the first case is it also the primary of the second one.
    acting = [[0, 1, 2], [primary, *{0, 5} - {primary}, 4]]
    pool = make_pool(models, "rs:2,1", osds=6, acting=acting)

    ages_ns = ages_at_start(
        pool,
        groups=np.array([0, 1]),
        is_write=np.array([True, True]),
        completed_ns=np.array([100, 300]),
        steady_ns=1000,
    )

    # Then in one queue the first to complete is the oldest.
    assert ages_ns.tolist() == ([300, 100] if shares_a_queue else [100, 300])


def test_a_read_that_asks_for_further_copies_uses_all_members(
    models: Models, make_pool: Callable[..., Pool]
) -> None:
    # Given a read of group 1, whose primary is OSD 1
    pool = make_pool(replace(models, extra_reads=1), "rep:3", groups=2, osds=6)
    there = [
        requests_at(pool, osd, np.array([1]), np.array([False])).tolist()
        for osd in range(5)
    ]
    assert there == [[False], [True], [True], [True], [False]]


def test_reads_use_the_primary_and_writes_all_members(
    models: Models, make_pool: Callable[..., Pool]
) -> None:
    # Given reads of group 0, on OSDs 0, 1 and 2, and a write of group 1, on OSDs 1, 2 and 3.
    pool = make_pool(models, "rep:3", groups=2, osds=6)
    groups = np.array([0, 0, 1])
    is_write = np.array([False, False, True])

    there = [requests_at(pool, osd, groups, is_write).tolist() for osd in range(4)]

    assert busiest_osd(pool, groups, is_write) == 0
    assert there[0] == [True, True, False]
    assert there[1:] == 3 * [[False, False, True]]
