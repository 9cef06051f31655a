"""Survival fits recover known parameters under censoring and late entry, and agree with published data."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from stripesim.calibration.survival import (
    Lifetimes,
    fit_lifetimes,
    fit_survival,
    kaplan_meier,
    lifetimes_of,
    piecewise_hazard,
)
from stripesim.models.problems import TraceError
from stripesim.traces import FailureTrace, load

DATA = Path(__file__).resolve().parents[2].parent / "shared/data/failure-traces"
published = pytest.mark.skipif(
    not DATA.exists(), reason=f"no published failure traces in {DATA}"
)
COUNT = 4000


def drawn(
    family: stats.rv_continuous, seed: int, censor_s: float, entry_s: float = 0.0
) -> Lifetimes:
    """Lifetimes cut at a random age, and, where `entry_s` is given, seen only from a random age on."""
    rng = np.random.default_rng(seed)
    life = family.rvs(size=COUNT, random_state=rng)
    entry = rng.random(COUNT) * entry_s
    end = entry + rng.exponential(censor_s, COUNT)
    seen = life > entry
    return Lifetimes(np.minimum(life, end)[seen], (life <= end)[seen], entry[seen])


TRUTHS = {
    "exponential": (stats.expon(scale=5000), {"scale_s": 5000}),
    "weibull": (stats.weibull_min(0.7, scale=8000), {"scale_s": 8000, "shape": 0.7}),
    "lognormal": (stats.lognorm(1.5, scale=3000), {"median_s": 3000, "sigma": 1.5}),
}


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("entry_s", [0.0, 3000.0])
def test_the_true_family_and_its_parameters_are_found(
    name: str, entry_s: float
) -> None:
    family, truth = TRUTHS[name]
    lifetimes = drawn(family, 7, 12_000, entry_s)
    assert 0.1 < 1 - lifetimes.observed.mean() < 0.6
    fits = {fit.name: fit for fit in fit_lifetimes(lifetimes)}
    mine = fits[name]
    for key, value in truth.items():
        # A 95 % interval fails once in twenty: the tolerance is twice its half width.
        low, high = mine.ci95[key]
        assert abs(np.log(mine.parameters[key] / value)) < np.log(high / low)
        assert high / low < 1.3
    # The exponential is a special case of the Weibull. Otherwise the true family has the lowest AIC.
    rivals = [
        fit.aic
        for key, fit in fits.items()
        if {key, name} != {"weibull", "exponential"} and key != name
    ]
    assert all(mine.aic < other for other in rivals)
    # With late entry few are at risk at the youngest ages, where Kaplan and Meier's curve is rough.
    assert mine.ks < (0.1 if entry_s else 0.05)


def test_ignoring_censoring_would_bias_the_mean() -> None:
    """The check has teeth: the same durations with all ends taken as seen give a much shorter life."""
    lifetimes = drawn(stats.expon(scale=5000), 3, 5000)
    naive = Lifetimes(
        lifetimes.duration_s, np.ones_like(lifetimes.observed), lifetimes.entry_s
    )
    right, wrong = (
        next(fit for fit in fit_lifetimes(one) if fit.name == "exponential")
        for one in (lifetimes, naive)
    )
    assert right.parameters["scale_s"] == pytest.approx(5000, rel=0.08)
    assert wrong.parameters["scale_s"] < 3000


def test_exponential_is_the_closed_form() -> None:
    lifetimes = drawn(stats.expon(scale=100), 5, 80, 60)
    found = next(fit for fit in fit_lifetimes(lifetimes) if fit.name == "exponential")
    rate = lifetimes.observed.sum() / (lifetimes.duration_s - lifetimes.entry_s).sum()
    assert found.parameters["scale_s"] == pytest.approx(1 / rate, rel=1e-5)
    log_likelihood = lifetimes.observed.sum() * np.log(rate) - lifetimes.observed.sum()
    assert found.aic == pytest.approx(2 - 2 * log_likelihood, rel=1e-9)
    # Wald on log scale: the standard error of log rate is 1 / sqrt(ends).
    low, high = found.ci95["scale_s"]
    assert np.log(high / low) == pytest.approx(
        2 * 1.96 / np.sqrt(lifetimes.observed.sum()), rel=0.01
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("odd_s", [100.0, 1e-3, 1e9, 1e12])
def test_durations_that_hardly_differ_give_finite_numbers_or_no_fit(
    odd_s: float,
) -> None:
    """One time that is damaged in a trace must not end in NaN, which JSON does not know."""
    lived = Lifetimes(
        np.array([100.0] * 40 + [odd_s]), np.ones(41, dtype=bool), np.zeros(41)
    )
    fits = fit_lifetimes(lived)
    assert "exponential" in {fit.name for fit in fits}
    for fit in fits:
        json.dumps(asdict(fit), allow_nan=False)


def test_without_censoring_kaplan_meier_is_the_empirical_distribution() -> None:
    ages = np.random.default_rng(1).exponential(1, 200)
    age, survival = kaplan_meier(
        Lifetimes(ages, np.ones(200, dtype=bool), np.zeros(200))
    )
    assert np.allclose(survival, 1 - np.arange(1, 201) / 200)
    assert np.array_equal(age, np.sort(ages))


def test_late_entry_counts_from_the_recorded_age() -> None:
    """A drive first seen at 1000 h that fails 10 h later lived 1010 h. Drives of unknown age are omitted."""
    rows = [
        (0, 36_000, f"d{i}", None, None, True, None, True, i % 2 == 1, 3_600_000)
        for i in range(60)
    ]
    rows += [(0, 5, "x", None, None, True, None, True, False, None)]
    trace = FailureTrace(
        pl.DataFrame(),
        pl.DataFrame(rows, schema=_schema(), orient="row"),
        "made",
        "made",
    )
    lifetimes = lifetimes_of(trace, "up")
    assert set(lifetimes.duration_s) == {3_636_000.0}
    assert set(lifetimes.entry_s) == {3_600_000.0}
    assert (int(lifetimes.observed.sum()), lifetimes.dropped) == (30, 1)
    with pytest.raises(TraceError, match="got 0 spans of being down"):
        lifetimes_of(trace, "down")


def _schema() -> dict[str, pl.DataType]:
    from stripesim.traces import SPAN_SCHEMA

    return SPAN_SCHEMA


@published
def test_los_alamos_repairs_are_lognormal_and_failures_no_poisson_process() -> None:
    """As Schroeder and Gibson found in these data: lognormal repairs, and a hazard that falls."""
    trace = load(DATA / "fta_lanl/event_trace.tab.gz")
    assert isinstance(trace, FailureTrace)
    repair, life = fit_survival(trace, "down"), fit_survival(trace, "up")
    assert [fit.name for fit in repair.fits] == ["lognormal", "weibull", "exponential"]
    # The publication's median repair of an hour.
    assert repair.fits[0].parameters["median_s"] == pytest.approx(3600, rel=0.1)
    assert life.fits[-1].name == "exponential"
    weibull = next(fit for fit in life.fits if fit.name == "weibull")
    assert weibull.parameters["shape"] < 0.6


@published
def test_a_drive_is_at_risk_from_the_age_at_which_it_is_first_seen() -> None:
    # Given one drive seen from age 1 to its end at 2, and another from 0 to 3
    seen = Lifetimes(np.array([2.0, 3.0]), np.ones(2, dtype=bool), np.array([1.0, 0.0]))
    # Then two ends within 1 + 3 of time at risk. Up to the median, 2.5, it is one in 1 + 2.5.
    assert piecewise_hazard(seen, 1) == ((0.0,), (2 / 4,))
    assert piecewise_hazard(seen, 2) == ((0.0, 2.5), (1 / 3.5, 1 / 0.5))


def test_failures_alone_are_refused() -> None:
    trace = load(DATA / "alibaba_ssd/ssd_failure_tag.csv.zip")
    assert isinstance(trace, FailureTrace)
    with pytest.raises(TraceError, match="wanted"):
        fit_survival(trace)
