"""Means over replications, and the verdict on the steady state."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from stripesim.scenarios.answers.sweep.stats import aggregate, mean_columns
from stripesim.sim.observe.window import unsteady_reason
from support.messages import states


def rows_of(
    values: list[float | None], **columns: list[object] | object
) -> list[dict[str, Any]]:
    """Return rows with these values as rates, one replication each. Lists have a value for each."""
    return [
        {
            "scheme": "rep:3",
            "op": "read",
            "pattern": "seq",
            "block_size_bytes": 4096,
            "replication": number,
            "iops": value,
            **{
                name: column[number] if isinstance(column, list) else column
                for name, column in columns.items()
            },
        }
        for number, value in enumerate(values)
    ]


def test_the_interval_is_students() -> None:
    values: list[float | None] = [10.0, 12.0, 11.0, 15.0, 9.5]
    (row,) = aggregate(rows_of(values))
    low, high = stats.t.interval(0.95, 4, loc=np.mean(values), scale=stats.sem(values))
    assert row["replications"] == 5
    assert (row["iops"], row["iops_ci_low"], row["iops_ci_high"]) == pytest.approx(
        (11.5, low, high)
    )


def test_the_interval_has_its_nominal_coverage() -> None:
    # 1,000 intervals of 5 normal values: 950 expected, standard deviation 6.9, four of them allowed.
    draws = np.random.default_rng(1).normal(100.0, 20.0, size=(1000, 5))
    rows = [
        row
        for point, draw in enumerate(draws)
        for row in rows_of(draw.tolist(), point=point)
    ]
    found = aggregate(rows, ["point"])
    assert len(found) == 1000
    covered = sum(mean["iops_ci_low"] < 100 < mean["iops_ci_high"] for mean in found)
    assert 922 <= covered <= 978


def test_intervals_of_single_runs_are_not_averaged() -> None:
    rows = rows_of([7.0, 9.0], latency_ci_low=[1.0, 2.0], latency_ci_high=[3.0, 4.0])
    (mean,) = aggregate(rows)
    ends = [name for name in mean if "_ci_" in name]
    assert ends == ["iops_ci_low", "iops_ci_high"]


def test_one_replication_has_no_interval_and_missing_values_stay_out() -> None:
    (one,) = aggregate(rows_of([7.0]))
    assert (one["iops"], one["iops_ci_low"], one["iops_ci_high"]) == (7.0, None, None)
    (some,) = aggregate(rows_of([7.0, None, 9.0]))
    assert (some["replications"], some["iops"]) == (3, 8.0)
    (none,) = aggregate(rows_of([None, None]))
    assert none["iops"] is None


def test_equal_values_have_no_interval() -> None:
    (row,) = aggregate(rows_of([0.1, 0.1, 0.1]))
    assert row["iops"] == 0.1
    assert row["iops_ci_low"] is None
    assert row["iops_ci_high"] is None


def test_cells_stay_apart_and_in_order() -> None:
    rows = [
        *rows_of([1.0, 2.0], depth=8, scheme="rs:6,3"),
        *rows_of([3.0, 4.0], depth=4),
        *rows_of([5.0, 6.0], depth=8),
    ]
    found = aggregate(rows, ["depth"])
    assert [(mean["depth"], mean["scheme"], mean["iops"]) for mean in found] == [
        (8, "rs:6,3", 1.5),
        (4, "rep:3", 3.5),
        (8, "rep:3", 5.5),
    ]


def test_words_are_gathered_not_averaged() -> None:
    rows = rows_of(
        [1.0, 2.0, 3.0],
        steady=[True, False, True],
        bottleneck=["ssd", "cpu", "cpu"],
        refused=[None, "Little's law", None],
        seed=[1, 2, 3],
    )
    (row,) = aggregate(rows)
    assert (row["steady"], row["bottleneck"]) == (False, "cpu, ssd")
    assert row["refused"] == 1
    assert "seed" not in row
    assert "engine_wall_s" not in row


def test_no_rows_give_an_empty_table_with_its_columns() -> None:
    assert aggregate([]) == []
    columns = mean_columns([], ["depth"])
    assert {"depth", "scheme", "replications", "iops", "iops_ci_high"} <= set(columns)
    assert columns["requests"] is float


def closed_loop(latencies: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return issue and completion times of a closed loop, a request issued as another completes."""
    issued, completed = [], []
    free = np.zeros(depth)
    for latency in latencies:
        slot = int(np.argmin(free))
        issued.append(free[slot])
        free[slot] += latency
        completed.append(free[slot])
    order = np.argsort(issued, kind="stable")
    return np.array(issued)[order].astype(np.int64), np.array(completed)[order].astype(
        np.int64
    )


def verdict(latencies: np.ndarray, depth: int = 4) -> str | None:
    issued, completed = closed_loop(latencies, depth)
    return unsteady_reason(issued, completed, end_ns=int(completed.max()))


def test_a_stationary_run_is_steady() -> None:
    draws = np.random.default_rng(3)
    verdicts = [verdict(draws.exponential(1e6, 500)) for _ in range(50)]
    # By chance, MSER-5 sometimes cuts at the end of its search. This must stay rare.
    assert verdicts.count(None) >= 45


def test_a_short_transient_is_cut_off() -> None:
    draws = np.random.default_rng(4).normal(1e6, 1e5, 500)
    draws[:40] *= 10
    assert verdict(draws) is None


def test_a_run_that_never_settles_is_reported() -> None:
    draws = np.random.default_rng(5).normal(1e6, 1e5, 500) * np.linspace(1, 20, 500)
    assert verdict(draws) is not None


def test_too_few_requests_are_reported() -> None:
    assert states(str(verdict(np.full(49, 1e6))), "49 ... 50")
    assert verdict(np.full(60, 1e6) + np.arange(60) % 7) is None


def test_a_loop_without_reissues_is_reported() -> None:
    # All requests are in flight from the start: none completes before the last is issued.
    assert "last issue" in str(verdict(np.full(200, 1e6), depth=200))


def test_requests_cut_off_by_the_end_do_not_count() -> None:
    issued, completed = closed_loop(np.full(100, 1e6), 4)
    completed[40:] = -1
    reason = unsteady_reason(issued, completed, end_ns=10**7)
    assert states(str(reason), "40 ... 50")
