"""Lifetimes and repair times, fitted to a failure trace with censoring: exponential, Weibull, lognormal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import optimize, stats

from stripesim.traces.failures.columns import FailureTrace

Floats = npt.NDArray[np.float64]
State = Literal["up", "down"]

ENDS_MIN = 20
"""Fewer observed ends than this say nothing about a shape."""

SHORTEST_S = 0.5
"""Clocks of failure traces count seconds; a span of 0 lasted about half a one."""

_NORMAL_95 = float(stats.norm.ppf(0.975))


class SurvivalError(ValueError):
    """A trace does not hold what a fit of lifetimes needs; its text says what was got and wanted."""


@dataclass(frozen=True)
class Lifetimes:
    """Durations with what is known of their ends.

    Parameters
    ----------
    duration_s : numpy.ndarray
        Shape (n,), float64 [s]: age at which observation ended.
    observed : numpy.ndarray
        Shape (n,), bool: whether it ended in the event; else it is censored there.
    entry_s : numpy.ndarray
        Shape (n,), float64 [s]: age at which observation began, 0 unless recorded later (left truncation).
    dropped : int
        Spans left out because they had begun before the record, at an unknown age.
    """

    duration_s: Floats
    observed: npt.NDArray[np.bool_]
    entry_s: Floats
    dropped: int = 0


@dataclass(frozen=True)
class LifetimeFit:
    """One distribution fitted to lifetimes.

    Parameters
    ----------
    name : str
        `exponential` (scale), `weibull` (scale, shape) or `lognormal` (median, sigma).
    parameters : dict of str to float
        Values; scales and medians in seconds.
    ci95 : dict of str to (float, float)
        Wald intervals on the logarithm of each parameter.
    log_likelihood, aic : float
        At the maximum; lower AIC is better.
    mean_s : float
        Mean of the fitted distribution [s].
    ks : float
        Largest distance between the fitted distribution function and Kaplan and Meier's.
    """

    name: str
    parameters: dict[str, float]
    ci95: dict[str, tuple[float, float]]
    log_likelihood: float
    aic: float
    mean_s: float
    ks: float


@dataclass(frozen=True)
class SurvivalFit:
    """All distributions fitted to one state of one trace.

    Parameters
    ----------
    source : str
        File name.
    state : {"up", "down"}
        Time to failure or time to repair.
    spans, ends, censored, dropped : int
        Spans used, those whose end was seen, the others, and spans left out.
    fits : tuple of LifetimeFit
        In order of AIC, best first.
    """

    source: str
    state: State
    spans: int
    ends: int
    censored: int
    dropped: int
    fits: tuple[LifetimeFit, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Returns
        -------
        dict
        """
        return asdict(self)

    def summary(self) -> str:
        """Return a few lines for a terminal.

        Returns
        -------
        str
        """
        what = "time to failure" if self.state == "up" else "time to repair"
        lines = [
            f"{self.source}: {what}, {self.spans} spans, {self.censored} censored, {self.dropped} left out"
        ]
        best = self.fits[0].aic
        for fit in self.fits:
            told = ", ".join(
                f"{key.removesuffix('_s')} {_told(key, value)} "
                f"(95 % {_told(key, fit.ci95[key][0])} to {_told(key, fit.ci95[key][1])})"
                for key, value in fit.parameters.items()
            )
            lines.append(f"  {fit.name:<12} {told}; AIC +{fit.aic - best:.1f}, KS {fit.ks:.3f}")
        return "\n".join(lines)


def lifetimes_of(trace: FailureTrace, state: State) -> Lifetimes:
    """Return the spans of one state as lifetimes.

    Parameters
    ----------
    trace : FailureTrace
        The trace.
    state : {"up", "down"}
        Time to failure or time to repair.

    Returns
    -------
    Lifetimes

    Raises
    ------
    SurvivalError
        When the trace holds no spans, or fewer than `ENDS_MIN` whose end was seen.

    Notes
    -----
    A span cut on the left is of unknown age: it is left out, unless the component's age at its start is
    recorded (`entry_age_s`); then the lifetime counts from age 0 and enters at that age.
    """
    if trace.spans is None:
        raise SurvivalError(
            f"{trace.source}: got failures alone (format {trace.format}), "
            "wanted times of being up and down: a lifetime needs the components that lived"
        )
    rows = trace.spans.filter(trace.spans["up"] == (state == "up"))
    unknown = rows["left_cut"] & rows["entry_age_s"].is_null()
    rows = rows.filter(~unknown)
    entry = pl.when(rows["left_cut"]).then(rows["entry_age_s"]).otherwise(0)
    table = rows.select(
        entry.cast(pl.Float64).alias("entry"),
        (pl.col("stop_s") - pl.col("start_s")).cast(pl.Float64).clip(SHORTEST_S).alias("length"),
        (~pl.col("right_cut")).alias("observed"),
    )
    ends = int(table["observed"].sum())
    if ends < ENDS_MIN:
        raise SurvivalError(
            f"{trace.source}: got {ends} spans of being {state} whose age and end are known, "
            f"wanted at least {ENDS_MIN}"
        )
    entry_s = table["entry"].to_numpy()
    return Lifetimes(
        entry_s + table["length"].to_numpy(), table["observed"].to_numpy(), entry_s, int(unknown.sum())
    )


def fit_survival(trace: FailureTrace, state: State = "up") -> SurvivalFit:
    """Fit exponential, Weibull and lognormal distributions to a state's durations.

    Parameters
    ----------
    trace : FailureTrace
        The trace.
    state : {"up", "down"}
        Time to failure or time to repair.

    Returns
    -------
    SurvivalFit

    Raises
    ------
    SurvivalError
        When the trace does not hold what is needed.

    Notes
    -----
    See `fit_lifetimes`.
    """
    lifetimes = lifetimes_of(trace, state)
    ends = int(lifetimes.observed.sum())
    count = len(lifetimes.duration_s)
    return SurvivalFit(
        source=Path(trace.source).name,
        state=state,
        spans=count,
        ends=ends,
        censored=count - ends,
        dropped=lifetimes.dropped,
        fits=fit_lifetimes(lifetimes),
    )


def fit_lifetimes(lifetimes: Lifetimes) -> tuple[LifetimeFit, ...]:
    """Fit the three distributions by maximum likelihood.

    Parameters
    ----------
    lifetimes : Lifetimes
        Durations.

    Returns
    -------
    tuple of LifetimeFit
        Best AIC first.

    Notes
    -----
    log L = sum over seen ends of log f(t) + sum over censored of log S(t) - sum of log S(entry). Censoring is
    taken to be independent of the lifetime. Spans of one component, and components of one site, resemble each
    other, so the intervals are narrower than the truth.

    References
    ----------
    Klein, Moeschberger: Survival Analysis, 2nd edition 2003, sections 3.5 (likelihood), 4.6 (late entry).
    """
    unit_s = float(lifetimes.duration_s.mean())
    t, entry = lifetimes.duration_s / unit_s, lifetimes.entry_s / unit_s
    found = [
        _fit(name, names, log_f, log_s, lifetimes, t, entry, unit_s)
        for name, names, log_f, log_s in _FAMILIES
    ]
    return tuple(sorted(found, key=lambda fit: fit.aic))


def kaplan_meier(lifetimes: Lifetimes) -> tuple[Floats, Floats]:
    """Return the product-limit estimate of survival.

    Parameters
    ----------
    lifetimes : Lifetimes
        Durations.

    Returns
    -------
    age_s, survival : numpy.ndarray
        Shape (distinct ends,): ages at which ends were seen [s] and the share that outlives them.

    References
    ----------
    Kaplan, Meier: Nonparametric estimation from incomplete observations, JASA 1958; with delayed entry as in
    Klein and Moeschberger, section 4.6.

    Examples
    --------
    >>> import numpy as np
    >>> ones = Lifetimes(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True]), np.zeros(4))
    >>> [round(float(share), 3) for share in kaplan_meier(ones)[1]]
    [0.75, 0.375, 0.0]
    """
    age, ends = np.unique(lifetimes.duration_s[lifetimes.observed], return_counts=True)
    left = np.searchsorted(np.sort(lifetimes.duration_s), age, side="left")
    # At risk from just after entry up to and including the end.
    entered = np.searchsorted(np.sort(lifetimes.entry_s), age, side="left")
    at_risk = np.maximum(entered - left, ends)
    survival: Floats = np.cumprod(1 - ends / at_risk)
    return age, survival


def piecewise_hazard(lifetimes: Lifetimes, pieces: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return hazards that are constant between ages, each piece with about as many ends.

    Parameters
    ----------
    lifetimes : Lifetimes
    pieces : int
        At most one for each distinct age at which an end was seen.

    Returns
    -------
    edges_s, hazards_per_s : tuple of float
        Ages at which pieces begin [s], and ends seen over time spent at risk in each [1/s]: the maximum
        likelihood estimate. The last piece goes on.

    References
    ----------
    Friedman: Piecewise exponential models for survival data with covariates, Annals of Statistics 1982.

    Examples
    --------
    >>> import numpy as np
    >>> lived = Lifetimes(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4, dtype=bool), np.zeros(4))
    >>> piecewise_hazard(lived, 1)
    ((0.0,), (0.4,))
    """
    ends = lifetimes.duration_s[lifetimes.observed]
    inner = np.unique(np.quantile(ends, np.arange(1, pieces) / pieces)) if pieces > 1 else np.zeros(0)
    edges = np.concatenate([[0.0], inner[inner > 0]])
    stops = np.append(edges[1:], np.inf)
    hazards = []
    for start, stop in zip(edges, stops, strict=True):
        begun = np.maximum(lifetimes.entry_s, start)
        at_risk = np.clip(np.minimum(lifetimes.duration_s, stop) - begun, 0, None).sum()
        # An end at the very edge belongs to the piece before it, whose exposure reaches it.
        count = ((ends > start) & (ends <= stop)).sum()
        hazards.append(float(count / at_risk) if at_risk else 0.0)
    return tuple(edges.tolist()), tuple(hazards)


_LogFunction = Callable[[Floats, Floats], Floats]


def _log_f_exponential(t: Floats, p: Floats) -> Floats:
    out: Floats = -p[0] - t * np.exp(-p[0])
    return out


def _log_s_exponential(t: Floats, p: Floats) -> Floats:
    out: Floats = -t * np.exp(-p[0])
    return out


def _log_f_weibull(t: Floats, p: Floats) -> Floats:
    shape = np.exp(p[1])
    z = np.log(t) - p[0]
    out: Floats = p[1] - p[0] + (shape - 1) * z - np.exp(np.minimum(shape * z, 700))
    return out


def _log_s_weibull(t: Floats, p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        out: Floats = -np.exp(np.minimum(np.exp(p[1]) * (np.log(t) - p[0]), 700))
    return out


def _log_f_lognormal(t: Floats, p: Floats) -> Floats:
    z = (np.log(t) - p[0]) / np.exp(p[1])
    out: Floats = stats.norm.logpdf(z) - p[1] - np.log(t)
    return out


def _log_s_lognormal(t: Floats, p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        out: Floats = stats.norm.logsf((np.log(t) - p[0]) / np.exp(p[1]))
    return out


_FAMILIES: tuple[tuple[str, tuple[str, ...], _LogFunction, _LogFunction], ...] = (
    ("exponential", ("scale_s",), _log_f_exponential, _log_s_exponential),
    ("weibull", ("scale_s", "shape"), _log_f_weibull, _log_s_weibull),
    ("lognormal", ("median_s", "sigma"), _log_f_lognormal, _log_s_lognormal),
)


def _fit(
    name: str,
    names: tuple[str, ...],
    log_f: _LogFunction,
    log_s: _LogFunction,
    lifetimes: Lifetimes,
    t: Floats,
    entry: Floats,
    unit_s: float,
) -> LifetimeFit:
    ended, censored, entered = t[lifetimes.observed], t[~lifetimes.observed], entry[entry > 0]

    def loss(p: Floats) -> float:
        total = -log_f(ended, p).sum() - log_s(censored, p).sum() + log_s(entered, p).sum()
        return float(total) if np.isfinite(total) else 1e300

    # Parameters are logarithms, in units of the mean duration: all start near 0.
    spread = float(np.std(np.log(ended)))
    start = np.array([np.log(t.sum() / len(ended)), 0.0 if name == "weibull" else np.log(max(spread, 1e-3))])
    if name == "lognormal":
        start[0] = float(np.log(ended).mean())
    solution = optimize.minimize(
        loss,
        start[: len(names)],
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-7, "maxiter": 4000},
    )
    best = solution.x
    sigma = np.sqrt(np.clip(np.diag(np.linalg.pinv(_hessian(loss, best))), 0, None))
    units = [unit_s if key.endswith("_s") else 1.0 for key in names]
    value = {key: float(np.exp(p) * unit) for key, p, unit in zip(names, best, units, strict=True)}
    ci = {
        key: (float(np.exp(p - _NORMAL_95 * s) * unit), float(np.exp(p + _NORMAL_95 * s) * unit))
        for key, p, s, unit in zip(names, best, sigma, units, strict=True)
    }
    # The survival function has no unit, so the constant of the change of unit falls on the densities alone.
    log_likelihood = -loss(best) - len(ended) * np.log(unit_s)
    return LifetimeFit(
        name=name,
        parameters=value,
        ci95=ci,
        log_likelihood=float(log_likelihood),
        aic=float(2 * len(names) - 2 * log_likelihood),
        mean_s=_mean_s(name, value),
        ks=_distance(lifetimes, lambda age: np.exp(log_s(age / unit_s, best))),
    )


def _distance(lifetimes: Lifetimes, survival: Callable[[Floats], Floats]) -> float:
    age, estimate = kaplan_meier(lifetimes)
    start = survival(np.array([lifetimes.entry_s.min() or 1e-300]))[0]
    model = survival(age) / start
    before = np.concatenate(([1.0], estimate[:-1]))
    return float(np.max(np.maximum(np.abs(model - estimate), np.abs(model - before))))


def _hessian(loss: Callable[[Floats], float], at: Floats) -> Floats:
    """Second differences; the step balances the rounding of a sum against the curvature's change."""
    size, step = len(at), 1e-4
    out = np.empty((size, size))
    eye = np.eye(size) * step
    for i in range(size):
        for j in range(size):
            corners = (
                loss(at + eye[i] + eye[j])
                - loss(at + eye[i] - eye[j])
                - loss(at - eye[i] + eye[j])
                + loss(at - eye[i] - eye[j])
            )
            out[i, j] = corners / (4 * step * step)
    return out


def _mean_s(name: str, value: dict[str, float]) -> float:
    if name == "exponential":
        return value["scale_s"]
    if name == "weibull":
        return float(stats.weibull_min(value["shape"], scale=value["scale_s"]).mean())
    return float(value["median_s"] * np.exp(value["sigma"] ** 2 / 2))


def _told(key: str, value: float) -> str:
    return f"{value / 3600:.4g} h" if key.endswith("_s") else f"{value:.3f}"
