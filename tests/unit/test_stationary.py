"""Requests in flight at the start of a steady run have waited before it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from stripesim.sim.ceph.clients.stationary import ages_at_start
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
