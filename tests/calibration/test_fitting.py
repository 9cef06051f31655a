"""Least squares on noisy simulations: the width of derivatives, and parameters far from their start."""

from itertools import pairwise
from math import exp, log, sin

import pytest

from stripesim.calibration.fitting import fit_parameters


def fit(simulate, published=0.25, **more):
    """Fit the parameter x, which starts at 1, to one row."""
    return fit_parameters(
        simulate,
        start={"x": 1.0},
        published={"row": published},
        tolerance={"row": 0.1},
        **more,
    )


@pytest.mark.parametrize(("prior", "step"), [(None, 0.05), (0.1, 0.05), (2.0, 0.5)])
def test_a_derivative_is_as_wide_as_noise_and_prior_ask_wherever_the_parameter_is(
    prior, step
):
    # Given an optimum at 1/e of the start, where the logarithm is a whole number
    tried = []

    def simulate(values):
        tried.append(log(values["x"]))
        return {"row": values["x"]}

    fit(simulate, exp(-1), prior=None if prior is None else {"x": prior})

    # A search evaluates a point, and then the step beside it.
    steps = [abs(after - before) for before, after in pairwise(tried)]
    assert len(steps) > 2
    assert min(steps[::2]) == pytest.approx(step)


def test_noise_of_two_per_cent_does_not_hide_a_parameter():
    # Given a row that follows the square root of x, with noise of 2 % that changes within each per cent of x.
    # Steps of 1 % would take its slope, 300 % per unit of the logarithm, for that of the row, 50 %.
    def simulate(values):
        at = log(values["x"])
        return {"row": exp(at / 2) * (1 + 0.02 * sin(150 * at))}

    fitted = fit(simulate, prior={"x": 3.0})

    # The row is 0.25 where x is 1/16; the prior of factor 20 pulls by (ln 16 / 3)² = 0.9 towards the start.
    assert fitted.parameters[0].value == pytest.approx(1 / 16, rel=0.1)


def test_a_parameter_at_its_upper_bound_has_a_derivative():
    tried = []

    def simulate(values):
        tried.append(values["x"])
        return {"row": 0.1 * values["x"]}

    fitted = fit(simulate, bounds={"x": (0.5, 2.0)})
    # No derivative steps beyond the bound, where the simulation may not go.
    assert max(tried) <= 2.0
    assert fitted.parameters[0].value == pytest.approx(2.0, rel=1e-3)
    assert fitted.leverages["row"] == pytest.approx(1.0)


def test_an_interval_has_1_96_tolerances_on_either_side_of_a_row_that_is_the_parameter():
    fitted = fit(lambda values: {"row": values["x"]})
    low, high = fitted.parameters[0].confidence_interval
    # One normal value in 40 is beyond either end. The tolerance is 0.1 of the logarithm.
    assert log(high / 0.25) == pytest.approx(0.196, abs=1e-4)
    assert log(0.25 / low) == pytest.approx(0.196, abs=1e-4)


@pytest.mark.parametrize("tolerance", [0.2, 0.13])
def test_a_search_that_ends_in_a_local_minimum_begins_again(tolerance):
    # Given reads that the client limits at the start, 2 / client, and later the processor, 3 / processor.
    # Writes are 1 / processor. A short simulation takes these reads for faster than they were measured.
    def simulate(values):
        limits = (2 / values["client"], 3 / values["processor"])
        return {"read": min(limits), "write": 1 / values["processor"]}

    fitted = fit_parameters(
        simulate,
        start={"processor": 1.0, "client": 1.0},
        published={"read": 0.6, "write": 0.25},
        tolerance={"read": tolerance, "write": 0.2},
        prior={"processor": 1.0, "client": 0.6},
        loss="soft_l1",
    )

    # The first step makes the client slower, to 2 / 0.6, where it limits reads. With a client of 1, a
    # processor of 4 leaves reads of 0.75, which costs less than that client: ln(0.75 / 0.6) / 0.2 is 1.1,
    # and ln(2 / 0.6) / 0.6 is 2. With a tolerance of 0.13 it is 1.7, and the loss decides: √(1 + 1.7²) − 1 is
    # less than √(1 + 2²) − 1 = 1.24, but half the square, 1.5, is more.
    processor, client = fitted.parameters
    assert client.value == pytest.approx(1, rel=0.05)
    # Writes want a processor of 4, reads one of 5.
    assert 3.9 < processor.value < 5
    # No row tells anything about the client, so its interval is that of the prior.
    assert client.confidence_interval[0] == pytest.approx(exp(-1.96 * 0.6), rel=0.05)
