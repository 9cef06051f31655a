"""What clients notice of a rehearsed change: peering weighs what it weighs in the complete pool."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from stripesim.scenarios.answers.rehearse.client_effect import (
    clients_between,
    clients_during,
)
from stripesim.scenarios.answers.rehearse.samples import Sample

#: Latencies of a healthy cluster, of one that works off a backlog, and while objects move [s].
QUIET_S = 0.001
BACKLOG_S = 0.1
MOVING_S = 0.003


def sample_of_an_open_loop():
    """Return 1,000 requests/s over 6 s: peering from 2 to 3 s, its backlog until 3.2 s, moves until 5 s."""
    issued_s = np.arange(6000) / 1000 + 0.0005
    latencies_s = np.full(6000, QUIET_S)
    latencies_s[issued_s >= 3.0] = BACKLOG_S
    latencies_s[issued_s >= 3.2] = MOVING_S
    latencies_s[issued_s >= 5.0] = QUIET_S
    blocked = (issued_s >= 2.0) & (issued_s < 3.0)
    # The backlog leaves in order, from 3.0 to 3.2 s.
    completed_s = issued_s + latencies_s
    completed_s[blocked] = 3.0 + (issued_s[blocked] - 2.0) / 5
    row = {
        "at_s": 2.0,
        "clean_s": 5.0,
        "backfills": {"pg": [0], "start_s": [3.0], "end_s": [5.0]},
    }
    requested = SimpleNamespace(
        issued_ns=np.round(issued_s * 1e9).astype(np.int64),
        completed_ns=np.round(completed_s * 1e9).astype(np.int64),
        done=np.ones(6000, dtype=bool),
    )
    return Sample(
        group_objects_count=4,
        objects_ratio=1000.0,
        rows=[row],
        fill=None,
        history={},
        pg_states={},
        recovery={},
        requested=requested,
        blocked=blocked,
        end_ns=6_000_000_000,
        alone_ns=5_000_000_000,
        has_load=True,
        in_flight_count=None,
    )


def sample_of_a_closed_loop():
    """Return 100 requests in flight, each loop in turn for 0.1 s and 0.9 s. Objects move from 3 to 4 s."""
    issued_s = []
    latencies_s = []
    for loop in range(100):
        # Loops begin one after another within a cycle of 1 s.
        for cycle in range(6):
            start_s = loop / 100 + 0.0005 + cycle
            issued_s += [start_s, start_s + 0.1]
            latencies_s += [0.1, 0.9]
    return replace(
        sample_of_an_open_loop(),
        rows=[
            {
                "at_s": 3.0,
                "clean_s": 4.0,
                "backfills": {"pg": [0], "start_s": [3.0], "end_s": [4.0]},
            }
        ],
        requested=SimpleNamespace(
            issued_ns=np.round(np.array(issued_s) * 1e9).astype(np.int64),
            completed_ns=np.round(np.add(issued_s, latencies_s) * 1e9).astype(np.int64),
            done=np.ones(len(issued_s), dtype=bool),
        ),
        blocked=np.zeros(len(issued_s), dtype=bool),
        in_flight_count=100,
    )


def test_long_requests_count_although_the_sample_is_short():
    during = clients_during(sample_of_a_closed_loop(), 0, duration_s=3600.0)

    # Little's law: 100 in flight, 0.5 s each on average.
    assert during["iops"] == pytest.approx(200, rel=0.02)
    assert during["latency_p99_ns"] == pytest.approx(0.9e9)


def test_a_backlog_of_peering_does_not_stand_for_hours_of_backfill():
    sample = sample_of_an_open_loop()

    during = clients_during(sample, 0, duration_s=3600.0)

    # Peering delays 1,200 of 3.6 million requests, 0.03 %.
    assert during["latency_p99_ns"] == pytest.approx(MOVING_S * 1e9, rel=0.01)
    assert during["latency_p50_ns"] == pytest.approx(MOVING_S * 1e9, rel=0.01)
    # The rate of arrival, although the sample ends while some requests are still in flight.
    assert during["iops"] == pytest.approx(1000, rel=0.001)
    assert during["latency_max_ns"] == pytest.approx(1e9, rel=0.01)


def test_a_short_change_feels_its_peering():
    sample = sample_of_an_open_loop()

    during = clients_during(sample, 0, duration_s=None)

    # A third of the 3 s passes in peering.
    assert during["latency_p99_ns"] > 0.5e9


def test_the_time_before_a_change_begins_after_the_backlog_of_the_last_one():
    sample = sample_of_an_open_loop()

    # At 2.9995 s requests still wait for peering; all are gone at 3.2 s.
    between = clients_between(sample, 2.9995, 4.9)

    assert between["latency_max_ns"] < 0.11e9
    assert sample.calm_s(2.9995) == pytest.approx(3.2, abs=0.001)
    assert sample.calm_s(1.0) == 1.0
