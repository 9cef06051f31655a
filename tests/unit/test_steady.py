"""The start of the steady state, and the coverage of intervals."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import stdtrit

from stripesim.sim.observe.intervals import (
    Interval,
    mser5,
    ratio_interval,
    student_interval,
    student_quantile,
)


@pytest.mark.parametrize("skipped", [0, 50, 200, 400])
def test_mser_finds_the_end_of_a_step(skipped):
    noise = np.random.default_rng(1).normal(10, 1, 1000)
    noise[:skipped] += 30
    # Batches of five locate the end to within one batch, and noise may add a few.
    assert skipped <= mser5(noise) <= skipped + 50


@pytest.mark.parametrize("seed", range(10))
def test_mser_cuts_most_of_an_exponential_transient(seed):
    index = np.arange(2000)
    series = (
        10 + 40 * np.exp(-index / 50) + np.random.default_rng(seed).normal(0, 1, 2000)
    )
    cut = mser5(series)
    # After 4 time constants the transient is below the noise. 20 would waste 1000 observations.
    assert 100 <= cut <= 1000
    assert abs(series[cut:].mean() - 10) < 0.25 < abs(series.mean() - 10)


def test_mser_keeps_a_short_or_constant_series():
    assert mser5([1.0, 50.0] * 9) == 0
    assert mser5([]) == 0
    assert mser5([7.0] * 100) == 0


def test_mser_leaves_out_at_most_half_and_whole_batches():
    rising = np.arange(1000.0)
    assert mser5(rising) == 500
    assert mser5(np.r_[rising, [3.0, 4.0]]) % 5 == 0


def test_mser_does_not_change_with_unit_or_offset():
    series = np.random.default_rng(3).normal(0, 1, 500)
    series[:60] += 9
    assert mser5(series) == mser5(series * 1e6 + 1e9) == mser5(series * 1e-3) > 0


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 19, 20, 79, 159, 1000])
def test_the_quantile_of_student_agrees_with_scipy(freedom):
    assert student_quantile(freedom) == pytest.approx(
        stdtrit(freedom, 0.975), rel=1e-11
    )


def test_an_interval_of_batches_is_students():
    # 1 to 5: mean 3, standard deviation sqrt(2.5), t(0.975, 4) = 2.7764.
    found = student_interval([1, 2, 3, 4, 5], least=3)
    assert found.mean == 3
    assert found.high - found.mean == pytest.approx(2.7764 * (2.5 / 5) ** 0.5, rel=1e-4)
    assert found.mean - found.low == pytest.approx(found.high - found.mean)


def test_too_few_batches_give_no_interval():
    # (1 + 2) / 2, because two values are fewer than three.
    found = student_interval([1.0, 2.0], least=3)
    assert (found.mean, found.low, found.high) == (1.5, None, None)
    # As few as wanted: standard deviation sqrt(0.5), t(0.975, 1) = 12.706.
    enough = student_interval([1.0, 2.0], least=2)
    assert enough.high - 1.5 == pytest.approx(12.706 * (0.5 / 2) ** 0.5, rel=1e-4)
    assert 1.5 - enough.low == pytest.approx(enough.high - 1.5)


def test_equal_values_give_no_interval():
    # No spread among five values does not make the mean certain.
    found = student_interval([2.82] * 5)
    assert (found.mean, found.low, found.high) == (2.82, None, None)


def test_intervals_cover_the_mean_as_often_as_they_say():
    covered = 0
    for seed in range(200):
        # Correlated within a batch, like latencies: 20 batches of 50 of a first-order process.
        noise = np.random.default_rng(seed).normal(0, 1, 1000)
        series = np.empty(1000)
        value = 0.0
        for index, shock in enumerate(noise):
            value = 0.5 * value + shock
            series[index] = value
        found = student_interval(series.reshape(20, 50).mean(axis=1), least=3)
        covered += found.low <= 0 <= found.high
    # Of 200 intervals of 95 %, 180 to 198 cover unless something is wrong (binomial, 3 in 1000).
    assert 180 <= covered <= 198


@pytest.mark.parametrize(
    ("runs", "is_given"),
    # Of 19 pairs of neighbours, those in different runs differ: (19 - 2 × 5) / 20 = 0.45, (19 - 2 × 6) / 20.
    [((4, 4, 3, 3, 3, 3), False), ((3, 3, 3, 3, 2, 4, 2), True)],
)
def test_correlated_batches_give_no_interval(runs, is_given):
    # Given 20 batches in runs of 10 ± 1, whose neighbours correlate by 2 / sqrt(20) = 0.447 by chance
    signs = np.repeat(np.resize([1.0, -1.0], len(runs)), runs)
    assert len(signs) == 20 and signs.sum() == 0
    found = ratio_interval(10 + signs, np.ones(20))
    assert found.mean == 10
    assert (found.low is not None) == is_given


@pytest.mark.parametrize(
    ("shrunk", "is_given"),
    # Independent batches keep the variance of their mean. In one run of 60, it seems to be below 0.4 of it.
    [(0.3, False), (0.5, True)],
)
def test_batches_that_compensate_for_one_another_give_no_interval(shrunk, is_given):
    # Given 20 long batches, independent of each other, of four short ones that differ by 1 and -1 in turn
    square = shrunk / (4 - shrunk)
    long_signs = np.tile([1.0, 1.0, -1.0, -1.0], 5)
    short = np.repeat(long_signs, 4) * square**0.5 + np.tile([1.0, -1.0], 40)
    # Then short ones have the variance h² + 1, and sums of four have 16 h² instead of 4 (h² + 1).
    assert 16 * square / (4 * (square + 1)) == pytest.approx(shrunk)
    found = ratio_interval(10 + short, np.ones(80))
    assert (found.low is not None) == is_given


@pytest.mark.parametrize("memory", [0.5, 0.7, 0.8])
def test_correlation_that_batches_do_not_show_widens_the_interval(memory):
    given = covered = 0
    for seed in range(600):
        # A first-order process whose memory 20 batches of eight values seldom show
        shocks = np.random.default_rng(seed).normal(0, 1, 400)
        values = 100 + lfilter([1], [1, -memory], shocks)[-160:]
        found = ratio_interval(values, np.ones(160))
        if found.low is not None and found.high is not None:
            given += 1
            covered += found.low <= 100 <= found.high
    assert given > 450
    # Without the wider interval, 89, 86 and 84 % cover; from the shortest batches alone, up to 91 %.
    assert covered / given > 0.915


def test_half_of_an_interval_is_half_of_its_width():
    assert Interval(5.0, 4.0, 7.0).half == 1.5
    assert Interval(5.0, None, None).half is None
