"""Each check of the audit passes numbers that are right by hand, and refuses them once one is wrong."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.roles import PRIMARY_CPU, SSD, shard_role
from stripesim.sim.durability.losses import inconsistency
from stripesim.sim.engine.graph import NO_ROLE
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.observe.audit import (
    BOUND,
    BUSY,
    BYTES,
    LITTLE,
    LOSS,
    MONOTONE,
    RUN_LENGTH,
    BusiestQueue,
    RatePoint,
    RowNumbers,
    RunNumbers,
    audit_bound,
    audit_loss,
    audit_row,
    audit_run,
    falls,
)
from stripesim.sim.observe.audit_numbers import (
    _uses_after_reply,
    _written_factor,
    row_numbers,
)
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.result_row import ResultRow, withheld_columns
from stripesim.sim.observe.window import Window

# 2 clients × queue depth 16 = 32 in flight. At 8,000/s, each request takes 32 / 8,000 s = 4 ms.
CLOSED = RowNumbers(
    loop="closed",
    requests=4000,
    issued=4000,
    iops=8000.0,
    latency_mean_ns=4e6,
    half_fraction=0.0,
    asked=32,
    keeps_depth=True,
    is_steady=True,
    in_flight=32.0,
    in_flight_kept=32.0,
    in_flight_s=16.0,
    edge_fraction=0.0,
    length_key="workload.requests",
    least=256,
)
# 500 arrivals a second that take 10 ms each: 5 in flight.
OPEN = replace(
    CLOSED,
    loop="open",
    iops=500.0,
    latency_mean_ns=10e6,
    asked=0,
    in_flight=5.0,
    in_flight_kept=5.0,
)
# 4,000 requests of 4 ms each were in flight for 16 s, one after another or side by side.
WHOLE = replace(CLOSED, loop="whole", in_flight_s=16.0)

# One second on two drives and a core: 1,000 requests write 4 KiB to 3 copies. Each takes 0.6 ms of a drive
# for every copy, so 1.8 s on both drives, and 0.5 ms of the core.
RUN = RunNumbers(
    kinds=("ssd", "cpu"),
    kind_indices=np.array([0, 0, 1], dtype=np.int16),
    capacities=np.array([1, 1, 1]),
    used_ns=np.array([900_000_000, 900_000_000, 500_000_000]),
    span_ns=1_000_000_000,
    service_max_ns=0,
    uses=4000,
    uses_planned=(4000, 4000),
    written_bytes=1000 * 4096,
    factor=3.0,
    device_write_bytes=3 * 1000 * 4096,
    sent_ns={"public": 80_000_000, "private": 160_000_000},
    received_ns={"public": 80_000_000, "private": 160_000_000},
    is_delivered=True,
    rebuilt_bytes=0,
    held_bytes=0,
    rate_per_s=1000.0,
    requests=1000,
    half_fraction=0.0,
)

# A burst once in 100 years destroys all of 4 TB: 4e10 bytes a year. Within 1 year, P = 1 − exp(−0.01).
LOSS_ROW = {
    "loss_probability": 0.00995017,
    "nines_low": 2.0,
    "nines_high": 2.005,
    "horizon_s": 365.25 * 86_400,
    "client_bytes": 4e12,
    "bytes_lost_given_loss": 4e12,
    "bytes_lost_per_year": 4e10,
}


def check_of(refused):
    """Return the name of the check in a refusal."""
    assert refused is not None
    return refused.partition(":")[0]


@pytest.mark.parametrize("row", [CLOSED, OPEN, WHOLE])
def test_numbers_that_are_right_by_hand_pass(row):
    assert audit_row(row) is None


@pytest.mark.parametrize("row", [CLOSED, OPEN, WHOLE])
def test_a_latency_divided_by_ten_is_refused(row):
    refused = audit_row(replace(row, latency_mean_ns=row.latency_mean_ns / 10))
    assert check_of(refused) == LITTLE.name


def test_a_rate_off_by_more_than_the_tolerance_is_refused():
    # 5 % of 8,000 is 400.
    assert audit_row(replace(CLOSED, iops=8390.0)) is None
    assert audit_row(replace(CLOSED, iops=7610.0)) is None
    assert check_of(audit_row(replace(CLOSED, iops=8410.0))) == LITTLE.name
    assert check_of(audit_row(replace(CLOSED, iops=7590.0))) == LITTLE.name


def test_the_interval_widens_the_tolerance():
    # 10 % off, with an interval of ± 6 %: 5 % + 6 % = 11 %.
    row = replace(OPEN, iops=550.0, half_fraction=0.06)
    assert audit_row(row) is None
    # A closed loop keeps its requests in flight, however its rate varies.
    closed = replace(CLOSED, iops=8800.0, half_fraction=0.06)
    assert check_of(audit_row(closed)) == LITTLE.name
    assert check_of(audit_row(replace(row, half_fraction=0.04))) == LITTLE.name


def test_requests_in_parts_that_fill_a_queue_are_refused():
    # Four parts one after another: 16 parts in flight are 4 requests.
    row = replace(CLOSED, asked=16, iops=1000.0, latency_mean_ns=4e6, in_flight=4.0)
    assert check_of(audit_row(replace(row, in_flight_kept=4.0))) == LITTLE.name


def test_a_whole_run_that_keeps_fewer_requests_in_flight_is_refused():
    row = replace(CLOSED, is_steady=False, edge_fraction=0.008)
    assert audit_row(row) is None
    assert check_of(audit_row(replace(row, in_flight_kept=8.0))) == LITTLE.name


def test_more_in_flight_than_asked_for_is_refused():
    newest = replace(CLOSED, keeps_depth=False, in_flight=30.0, in_flight_kept=30.0)
    # 7,500/s × 4 ms = 30.
    assert audit_row(replace(newest, iops=7500.0)) is None
    more = replace(newest, iops=9000.0, in_flight=36.0, in_flight_kept=36.0)
    assert check_of(audit_row(more)) == LITTLE.name


def test_a_run_whose_rate_changes_from_half_to_half_is_refused():
    # Of the 2,500 requests in the window, chance moves the half by about 1 / √2,500 = 2 %; 1.5 % more are
    # allowed. The 4,000 of the whole run would move it by 1.6 % only.
    near = (1335, 1165)
    far = (1345, 1155)
    # 53.4 % and 53.8 %, in the first half or in the second.
    for halves in (near, near[::-1]):
        assert audit_row(replace(CLOSED, halves=halves)) is None
    for halves in (far, far[::-1]):
        refused = audit_row(replace(CLOSED, halves=halves))
        assert check_of(refused) == RUN_LENGTH.name


def test_requests_in_flight_at_the_end_of_a_whole_run_widen_its_tolerance():
    # 500 a second of 10.8 ms each are 5.4 in flight, 8 % more than the 5 measured.
    longer = replace(OPEN, latency_mean_ns=10.8e6)
    assert check_of(audit_row(longer)) == LITTLE.name
    assert check_of(audit_row(replace(longer, edge_fraction=0.02))) == LITTLE.name
    assert audit_row(replace(longer, edge_fraction=0.04)) is None


def test_halves_may_differ_by_the_chance_of_the_osd_where_most_requests_wait():
    # A quarter of 32 in flight is 8. 400 completions there move the half by 1 / √400 = 5 %: 53.8 % passes.
    far = replace(CLOSED, halves=(1345, 1155))
    crowded = BusiestQueue(waiting=20, arrived=400, completed=400)

    assert audit_row(replace(far, queue=crowded)) is None
    assert audit_row(replace(far, queue=crowded._replace(waiting=8))) is not None


def test_the_busiest_osd_completes_what_arrives():
    # 5 %, and 1 / √2,500 = 2 % by chance: 175 of 2,500.
    steady = BusiestQueue(waiting=30, arrived=2670, completed=2500)
    assert audit_row(replace(CLOSED, queue=steady)) is None
    for arrived in (2680, 2320):
        drifts = replace(CLOSED, queue=steady._replace(arrived=arrived))
        assert check_of(audit_row(drifts)) == RUN_LENGTH.name


@pytest.mark.parametrize(
    ("waiting", "completed", "wanted"),
    # All that wait, or 1,600. A window that shows a quarter of them asks for four times the 4,000 requests,
    # and one that shows fewer for eight times at most.
    [
        (200, 50, 16_000),
        (12_000, 400, 16_000),
        (12_000, 100, 32_000),
        (200, 200, 4000),
        (12_000, 1600, 4000),
    ],
)
def test_the_busiest_osd_completes_enough_to_know_its_rate(waiting, completed, wanted):
    queue = BusiestQueue(waiting=waiting, arrived=completed, completed=completed)
    row = replace(CLOSED, queue=queue)

    assert row.requests_wanted == wanted
    refused = audit_row(row)
    assert (refused is None) == (wanted == 4000)


def test_a_run_shorter_than_eight_rounds_names_the_requests_that_are_wanted():
    # 8 × 32 = 256.
    refused = audit_row(replace(CLOSED, issued=250))
    assert check_of(refused) == RUN_LENGTH.name
    assert "256 (workload.requests)" in refused


def test_a_run_that_is_right_by_hand_passes():
    assert audit_run(RUN) is None


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        (BUSY, {"used_ns": np.array([1_000_000_001, 900_000_000, 500_000_000])}),
        (BUSY, {"uses": 3999}),
        (BUSY, {"uses": 4001}),
        # Two copies instead of three.
        (BYTES, {"device_write_bytes": 2 * 1000 * 4096}),
        (BYTES, {"received_ns": {"public": 70_000_000, "private": 160_000_000}}),
        (BYTES, {"received_ns": {"public": 80_000_000, "private": 170_000_000}}),
        (BYTES, {"rebuilt_bytes": 5_000_000, "held_bytes": 4_000_000}),
        # Both drives together take 1.8 ms for a request: 2 / 1.8 ms = 1,111/s, and 5 % more is 1,167/s.
        (BOUND, {"rate_per_s": 1170.0}),
    ],
)
def test_a_wrong_number_of_a_run_is_refused_by_its_check(check, wrong):
    assert check_of(audit_run(replace(RUN, **wrong))) == check.name


def test_a_service_may_outlast_a_run_that_time_bounds_by_its_own_length():
    late = replace(RUN, used_ns=np.array([1_002_000_000, 900_000_000, 500_000_000]))
    assert check_of(audit_run(late)) == BUSY.name
    assert audit_run(replace(late, service_max_ns=2_000_000)) is None


def test_messages_on_their_way_at_the_end_were_sent_and_not_received():
    late = replace(
        RUN,
        received_ns={"public": 70_000_000, "private": 150_000_000},
        is_delivered=False,
    )
    assert audit_run(late) is None
    more = {"public": 90_000_000, "private": 150_000_000}
    assert check_of(audit_run(replace(late, received_ns=more))) == BYTES.name


def test_demands_need_not_match_the_rate_of_other_requests():
    assert audit_run(replace(RUN, rate_per_s=None)) is None


def test_a_rate_stays_within_the_bound():
    # 5 % above 1,000/s.
    assert audit_bound(1049.0, 1000.0, "drives") is None
    assert check_of(audit_bound(1051.0, 1000.0, "drives")) == BOUND.name
    assert audit_bound(1051.0, 1000.0, "drives", half_fraction=0.01) is None


def test_a_fall_beyond_both_intervals_is_a_warning():
    rising = [RatePoint("depth 1", 100.0, 2.0), RatePoint("depth 2", 190.0, 3.0)]
    assert not list(falls(rising))
    # 5 % of 190 and both intervals: 190 − 9.5 − 3 − 2 = 175.5.
    assert not list(falls([*rising, RatePoint("depth 4", 176.0, 2.0)]))
    (warning,) = falls([*rising, RatePoint("depth 4", 175.0, 2.0)])
    assert check_of(warning) == MONOTONE.name
    assert not MONOTONE.refuses


def test_a_contradiction_of_expected_losses_is_refused_by_name():
    assert audit_loss(inconsistency(LOSS_ROW)) is None
    # One placement group of 64 instead of all.
    wrong = LOSS_ROW | {"bytes_lost_per_year": 6.25e8}
    assert check_of(audit_loss(inconsistency(wrong))) == LOSS.name


def test_requests_in_flight_are_averaged_over_the_window():
    # From 0 to 4, from 2 to 6, and from 5 on without an end. Over 0 to 8: (4 + 4 + 3) / 8.
    requested = ClientRequests(
        issued_ns=np.array([0, 2, 5]),
        completed_ns=np.array([4, 6, -1]),
        lengths_bytes=np.full(3, 4096),
        is_write=np.zeros(3, dtype=bool),
        groups=np.zeros(3, dtype=np.int64),
        ages_ns=np.zeros(3, dtype=np.int64),
    )
    assert requested.in_flight_mean(0, 8) == 11 / 8
    # Over 3 to 5: 1 + 2 = 3 in 2.
    assert requested.in_flight_mean(3, 5) == 3 / 2


def test_the_busiest_osd_is_that_of_most_requests_in_flight_in_the_middle(
    models, make_pool
):
    # Given reads of groups 0 and 1, with primaries 0 and 1, in a window from 10 to 30. In its middle, two of
    # group 0 are in flight, one of them to the end of the run, and one of group 1.
    issued_ns = np.array([0, 5, 12, 15, 15, 22, 18])
    completed_ns = np.array([11, 19, 18, 24, 28, 29, -1])
    groups = np.array([1, 1, 1, 1, 0, 1, 0])
    requested = ClientRequests(
        issued_ns=issued_ns,
        completed_ns=completed_ns,
        lengths_bytes=np.full(7, 4096),
        is_write=np.zeros(7, dtype=bool),
        groups=groups,
        ages_ns=np.array([1, 1, 0, 0, 0, 0, 0]),
    )
    scope = SimpleNamespace(
        requested=requested,
        window=Window(10, 30, is_whole=False, transient_ns=0),
        dry_ns=30,
        requests_in_flight=3,
        is_closed=True,
        is_synthetic=True,
        timeout_ns=0,
    )

    numbers = row_numbers(
        make_pool(models, "rep:3", groups=2, osds=6),
        ResultRow(
            requests=6,
            iops=1.0,
            latency_mean_ns=1.0,
            simulated_s=1.0,
            engine_wall_s=0.1,
        ),
        scope,
        newest_only=False,
        has_faults=False,
        is_saturated=False,
        is_bounded=True,
    )

    # Then OSD 0 completes one of the two that arrive there.
    assert numbers.queue == BusiestQueue(waiting=2, arrived=2, completed=1)
    # Three requests complete until 20, three later.
    assert numbers.halves == (3, 3)


@pytest.mark.parametrize(
    ("scheme", "acting", "factor"),
    [
        ("rep:3", [[0, 1, 2], [1, 2, 3]], 3.0),
        ("rep:3", [[0, 1, 2], [1, NO_OSD, 3]], 2.0),
        # Each of four data shards and two parities has a quarter of an object.
        ("rs:4,2", [[0, 1, 2, 3, 4, 5]], 6 / 4),
        ("rs:4,2", [[0, 1, 2, 3, 4, NO_OSD]], 5 / 4),
    ],
)
def test_the_group_with_the_fewest_members_decides_what_is_written_at_least(
    models, make_pool, scheme, acting, factor
):
    assert _written_factor(make_pool(models, scheme, osds=6, acting=acting)) == factor


@pytest.mark.parametrize(("first", "left"), [(None, 1), (1, 3)])
def test_uses_that_a_reply_does_not_surely_wait_for_may_be_left_at_the_end(first, left):
    # Given two reads whose data the reply waits for, or of which it waits for one, and a use after both
    graph = GraphBuilder("read")
    reads = [
        graph.use(shard_role(shard, SSD), 100, after=[graph.issue], label="read")
        for shard in range(2)
    ]
    data = graph.join(reads, first=first, label="data")
    graph.use(PRIMARY_CPU, 10, after=[data], label="clean up")
    path = graph.finish(reply=graph.delay(NO_ROLE, 10, after=[data], label="reply"))
    assert _uses_after_reply(path) == left


def test_a_refused_row_keeps_what_was_asked_for_and_the_reason():
    row = ResultRow(
        requests=60,
        iops=8000.0,
        latency_mean_ns=4e6,
        simulated_s=1.0,
        engine_wall_s=0.1,
        refused="Run length: got 60",
    )
    assert row.withheld().iops is None
    assert row.withheld().requests == 60
    assert row.withheld().refused == row.refused
    flat = withheld_columns({"scheme": "rep:3", **row.as_dict()}, others=("scheme",))
    assert flat == {"scheme": "rep:3", **row.withheld().as_dict()}
    assert replace(row, refused=None).withheld().iops == 8000.0
