"""Load curves: a cluster with a known curve, adaptive points, bounds by hand, refusals."""

import pytest

from stripesim.scenarios.load.analysis import knee_of, rate_within
from stripesim.scenarios.load.curves import load_curves
from stripesim.scenarios.schema.loader import load_scenario


def test_the_knee_of_m_d_1_is_at_two_minus_the_root_of_two():
    # Given M/D/1 with a service time of 1: T = 1 + r / (2 (1 - r)), whose power r / T is highest where
    # r^2 - 4 r + 2 = 0, at r = 2 - sqrt(2) = 0.586.
    rates = [0.1, 0.3, 0.5, 0.55, 0.6, 0.65, 0.85, 0.95]

    knee = knee_of(rates, [1 + rate / (2 * (1 - rate)) for rate in rates])

    assert knee == pytest.approx(0.586, abs=0.005)


def test_a_latency_that_never_rises_has_its_knee_at_the_last_point():
    assert knee_of([10.0, 20.0, 30.0], [1.0, 1.0, 1.0]) == 30.0


def test_two_points_have_no_knee():
    assert knee_of([10.0, 20.0], [1.0, 2.0]) is None


def test_the_rate_within_a_bound_is_interpolated_in_the_logarithm():
    # From 2 ms at 1,000/s to 32 ms at 2,000/s the latency doubles four times. 4 ms is one doubling: 1,250/s.
    assert rate_within([1000.0, 2000.0], [2.0, 32.0], 4.0) == pytest.approx(1250.0)


def test_the_first_crossing_counts_where_a_latency_falls_again():
    rates = [1.0, 2.0, 3.0, 4.0]

    assert rate_within(rates, [1.0, 4.0, 1.0, 16.0], 2.0) == pytest.approx(1.5)


@pytest.mark.parametrize("bound", [0.5, 8.0])
def test_no_rate_is_within_a_bound_below_or_above_all_points(bound):
    assert rate_within([1.0, 2.0], [1.0, 4.0], bound) is None


def test_points_come_one_by_one_until_the_caller_stops():
    # Given a caller that stops after three points.
    scenario = load_scenario("quickstart", sets=["workload.ops=read", "schemes=rep:3"])
    points = []

    curves = load_curves(
        scenario,
        jobs=1,
        replications=2,
        requests=500,
        on_point=lambda curve, point: points.append(point),
        should_stop=lambda: len(points) >= 3,
    )

    assert len(points) == 3
    assert curves[0].points == tuple(points)


def test_the_pool_answers_items_that_are_appended_while_it_works():
    # Covered by the curves of two workers: each batch depends on the answers to the one before.
    scenario = load_scenario("quickstart", sets=["workload.ops=read"])
    options = {"replications": 2, "requests": 300, "points_max": 9}

    alone = load_curves(scenario, jobs=1, **options)
    together = load_curves(scenario, jobs=2, **options)

    assert alone == together
