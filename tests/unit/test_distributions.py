"""Distributions of service times: means, variances and quantiles of what the engines draw."""

from math import log, pi, sqrt

import numpy as np
import pytest

from stripesim import blocks
from stripesim.sim.engine.draws import FACTOR_ONE, drawn_factor, factor_cells

MANY = 1 << 16


def drawn(row):
    """Draw many factors of a distribution, as the engines do."""
    cells = factor_cells([row.tolist()])[0].tolist()
    return np.array([drawn_factor(cells, 1, key) for key in range(MANY)]) / FACTOR_ONE


def test_an_exponential_has_its_moments_and_quantiles():
    factors = drawn(blocks.exponential())
    # The standard error of the mean is 1 / 256, and the variance's sqrt(8) / 256.
    assert factors.mean() == pytest.approx(1, abs=3 / 256)
    assert factors.var() == pytest.approx(1, abs=3 * sqrt(8) / 256)
    for share in (0.1, 0.5, 0.9, 0.99):
        # The standard error of a quantile is sqrt(p / (1 - p) / n).
        error = sqrt(share / (1 - share) / MANY)
        assert np.quantile(factors, share) == pytest.approx(
            -log(1 - share), abs=4 * error
        )


@pytest.mark.parametrize("cv", [0.1, 0.5, 1.0])
def test_a_lognormal_has_its_coefficient_of_variation(cv):
    factors = drawn(blocks.lognormal(cv=cv))
    assert factors.mean() == pytest.approx(1, abs=4 * cv / 256)
    # The last of 256 cells has an exponential tail, hence the wider tolerance for wide distributions.
    assert factors.std() == pytest.approx(cv, rel=0.02 + 0.05 * cv)
    # The median is exp(-sigma^2 / 2) = 1 / sqrt(1 + cv^2).
    # Its relative standard error is sigma sqrt(pi / 2) / 256.
    error = sqrt(log(1 + cv * cv) * pi / 2) / 256
    assert np.median(factors) == pytest.approx(1 / sqrt(1 + cv * cv), rel=4 * error)


@pytest.mark.parametrize(("cv", "kept"), [(1.0, 0.99), (2.0, 0.94), (2.5, 0.91)])
def test_a_lognormal_keeps_the_stated_part_of_its_variation(cv, kept):
    # Given the cells, each linear from `low` to its mean at the knot and from there to its end
    low, knot, rise, later_rise = (
        factor_cells([blocks.lognormal(cv=cv)])[0].T / FACTOR_ONE
    )
    mean = low + knot * rise
    end = mean + (1 - knot) * later_rise
    # When their squares are integrated: (a^2 + a b + b^2) / 3 over a line from a to b
    squares = knot * (low**2 + low * mean + mean**2)
    squares += (1 - knot) * (mean**2 + mean * end + end**2)
    # Then the variation is the stated part of the one asked for.
    assert sqrt(squares.mean() / 3 - 1) / cv == pytest.approx(kept, abs=0.005)


def test_an_empirical_distribution_has_the_cells_of_its_samples():
    # 512 samples: each cell is the mean of two neighbours, divided by the mean of all, 256.5.
    samples = np.arange(1, 513)
    factors = blocks.empirical(np.random.default_rng(0).permutation(samples))
    wanted = samples.reshape(-1, 2).mean(axis=1) / 256.5
    assert factors / FACTOR_ONE == pytest.approx(wanted, abs=1e-6)


def test_ties_of_few_samples_stay_ties():
    factors = drawn(blocks.empirical([10, 10, 10, 50]))
    assert np.mean(factors == 0.5) == pytest.approx(0.75, abs=0.02)
    assert np.mean(factors == 2.5) == pytest.approx(0.25, abs=0.02)


def test_a_program_gets_the_fixed_distribution_first():
    table = blocks.service_times(blocks.exponential(), blocks.lognormal(cv=1))
    assert table.shape == (3, blocks.FACTOR_POINTS)
    assert (table[0] == FACTOR_ONE).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: blocks.lognormal(cv=0), "got cv = 0, wanted above 0"),
        (lambda: blocks.lognormal(cv=float("nan")), "got cv = nan, wanted above 0"),
        (lambda: blocks.lognormal(cv=3), "got cv = 3, wanted at most 2.5"),
        (
            lambda: blocks.empirical([0] * 999 + [1]),
            "wanted at most 128 times the mean",
        ),
        (lambda: blocks.empirical([]), "wanted at least one, each 0 or more"),
        (lambda: blocks.empirical([1, -1]), "wanted at least one, each 0 or more"),
        (lambda: blocks.empirical([0, 0]), "wanted a mean above 0"),
    ],
)
def test_refuses_what_is_no_distribution(make, words):
    with pytest.raises(ValueError, match=words):
        make()
