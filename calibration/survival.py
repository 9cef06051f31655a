"""Fit exponential, Weibull and lognormal distributions to censored lifetimes and repair times."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

from stripesim.models.problems import TraceError
from stripesim.traces.failures.columns import FailureTrace

Floats = npt.NDArray[np.float64]
DeviceState = Literal["up", "down"]

ENDS_MIN = 20
"""Fewer observed ends than this do not determine a shape."""

POOR_DISTANCE = 0.1
"""Distance to the Kaplan-Meier curve above which a fit is called poor."""

SHORTEST_S = 0.5
"""Clocks of failure traces count seconds. A span of 0 is taken as half a second."""


@dataclass(frozen=True)
class Lifetimes:
    """Durations, some of which are censored."""

    duration_s: Floats  # Age at the end of observation [s], float64 of shape (n,)
    observed: npt.NDArray[np.bool_]
    """True if observation ended with the event, False if it is censored there; bool of shape (n,)."""
    entry_s: Floats
    """Age at the start of observation [s], float64 of shape (n,); above 0 for late entry."""
    dropped: int = (
        0  # Spans left out because they started before the record, at an unknown age
    )


@dataclass(frozen=True)
class LifetimeFit:
    """A distribution fitted to lifetimes."""

    name: str  # `exponential` (scale), `weibull` (scale, shape) or `lognormal` (median, sigma)
    parameters: dict[str, float]  # Values, with scales and medians in seconds
    ci95: dict[
        str, tuple[float, float]
    ]  # Wald intervals on the logarithm of each parameter
    # At the maximum. A lower AIC is better.
    log_likelihood: float
    aic: float
    mean_s: float  # Mean of the fitted distribution [s]
    ks: float  # Largest distance between the fitted distribution function and the Kaplan-Meier estimate


@dataclass(frozen=True)
class SurvivalFit:
    """All distributions fitted to one state of a trace."""

    source: str  # File name
    state: DeviceState  # Time to failure or time to repair
    # Numbers of spans used, with observed end, censored, and left out.
    spans: int
    ends: int
    censored: int
    dropped: int
    fits: tuple[LifetimeFit, ...]  # Ordered by AIC, best first

    def summary(self) -> str:
        """Return several lines for a terminal."""
        quantity = f"time to {'failure' if self.state == 'up' else 'repair'}, {self.spans} spans"
        lines = [
            f"{self.source}: {quantity}, {self.censored} censored, {self.dropped} left out"
        ]
        best = self.fits[0].aic
        for fit in self.fits:
            numbers = ", ".join(
                f"{key.removesuffix('_s')} {_text(key, value)} "
                f"(95 % {_text(key, fit.ci95[key][0])} to {_text(key, fit.ci95[key][1])})"
                for key, value in fit.parameters.items()
            )
            lines.append(
                f"  {fit.name:<12} {numbers}; AIC +{fit.aic - best:.1f}, KS {fit.ks:.3f}"
            )
        nearest = min(fit.ks for fit in self.fits)
        if nearest > POOR_DISTANCE:
            lines.append(
                f"  poor fit: every curve is off by {100 * nearest:.0f} % of the spans or more somewhere"
            )
        return "\n".join(lines)


def lifetimes_of(trace: FailureTrace, state: DeviceState) -> Lifetimes:
    """Return the spans of one state as lifetimes. Spans that start before the record need a known age.

    Raises
    ------
    TraceError
        If the trace has no spans, or fewer than 20 spans with an observed end.
    """
    if trace.spans is None:
        raise TraceError(
            f"{trace.source}: got failures alone (format {trace.format}), "
            "wanted times of being up and down: a lifetime needs the components that lived"
        )
    rows = trace.spans.filter(trace.spans["up"] == (state == "up"))
    unknown = rows["left_cut"] & rows["entry_age_s"].is_null()
    rows = rows.filter(~unknown)
    entry = pl.when(rows["left_cut"]).then(rows["entry_age_s"]).otherwise(0)
    table = rows.select(
        entry.cast(pl.Float64).alias("entry"),
        (pl.col("stop_s") - pl.col("start_s"))
        .cast(pl.Float64)
        .clip(SHORTEST_S)
        .alias("length"),
        (~pl.col("right_cut")).alias("observed"),
    )
    ends = int(table["observed"].sum())
    if ends < ENDS_MIN:
        raise TraceError(
            f"{trace.source}: got {ends} spans of being {state} whose age and end are known, "
            f"wanted at least {ENDS_MIN}"
        )
    entry_s = table["entry"].to_numpy()
    return Lifetimes(
        entry_s + table["length"].to_numpy(),
        table["observed"].to_numpy(),
        entry_s,
        int(unknown.sum()),
    )


def fit_survival(trace: FailureTrace, state: DeviceState = "up") -> SurvivalFit:
    """Fit exponential, Weibull and lognormal distributions to the durations of a state.

    Parameters
    ----------
    trace
        Failure trace with spans.
    state
        ``up`` for times to failure, ``down`` for times to repair.

    Raises
    ------
    TraceError
        As from `lifetimes_of` and `fit_lifetimes`.
    """
    lifetimes = lifetimes_of(trace, state)
    count = len(lifetimes.observed)
    ends = int(lifetimes.observed.sum())
    fits = fit_lifetimes(lifetimes)
    return SurvivalFit(
        Path(trace.source).name,
        state,
        count,
        ends,
        count - ends,
        lifetimes.dropped,
        fits,
    )


def fit_lifetimes(lifetimes: Lifetimes) -> tuple[LifetimeFit, ...]:
    """Fit the three distributions by maximum likelihood, best AIC first.

    Distributions whose likelihood grows towards a bound are left out. This happens if all durations are
    equal, or a single one is thousands of times as long as the others.

    Raises
    ------
    TraceError
        If no distribution has a maximum likelihood.

    Notes
    -----
    log L = sum over observed ends of log f(t) + sum over censored of log S(t) - sum of log S(entry).
    Censoring is assumed to be independent of lifetime. Spans of one component, and components of one site,
    are correlated, so the true intervals are wider.

    References
    ----------
    Klein, Moeschberger: Survival Analysis, 2nd edition 2003, sections 3.5 (likelihood), 4.6 (late entry).
    """
    fits = [fit for family in _FAMILIES if (fit := _fit(family, lifetimes)) is not None]
    if not fits:
        raise TraceError(
            "got durations whose likelihood has no maximum, wanted ones that differ"
        )
    return tuple(sorted(fits, key=lambda fit: fit.aic))


def kaplan_meier(lifetimes: Lifetimes) -> tuple[Floats, Floats]:
    """Return the ages of observed ends [s] and the share that survives each: the product-limit estimate.

    References
    ----------
    Kaplan, Meier: Nonparametric estimation from incomplete observations, JASA 1958; with late entry as in
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
    # At risk from just after entry, up to and including the end.
    entered = np.searchsorted(np.sort(lifetimes.entry_s), age, side="left")
    at_risk = np.maximum(entered - left, ends)
    survival: Floats = np.cumprod(1 - ends / at_risk)
    return age, survival


def piecewise_hazard(
    lifetimes: Lifetimes, pieces: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Estimate a piecewise constant hazard.

    Parameters
    ----------
    lifetimes
        Lifetimes to describe.
    pieces
        Number of pieces, at least 1, with about equal numbers of observed ends.

    Returns
    -------
    tuple
        Ages at the start of each piece [s], and the hazard of each [1/s]. The last piece is unbounded.

    Notes
    -----
    The hazard is the number of observed ends over the time at risk, which is the maximum likelihood estimate.

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
    if pieces > 1:
        inner = np.unique(np.quantile(ends, np.arange(1, pieces) / pieces))
    else:
        inner = np.zeros(0)
    edges = np.concatenate([[0.0], inner[inner > 0]])
    stops = np.append(edges[1:], np.inf)
    hazards = []
    for start, stop in zip(edges, stops, strict=True):
        begun = np.maximum(lifetimes.entry_s, start)
        at_risk = np.clip(np.minimum(lifetimes.duration_s, stop) - begun, 0, None).sum()
        # An end at an edge belongs to the earlier piece, whose exposure includes it.
        count = ((ends > start) & (ends <= stop)).sum()
        hazards.append(float(count / at_risk) if at_risk else 0.0)
    return tuple(edges.tolist()), tuple(hazards)


@dataclass(frozen=True)
class _Family:
    """A distribution of SciPy. `names` lists its scale and, if it has one, its shape."""

    name: str
    names: tuple[str, ...]
    distribution: str

    @property
    def law(self) -> Any:
        return getattr(scipy.stats, self.distribution)

    def at(self, logarithms: Floats) -> dict[str, Any]:
        """Return SciPy's arguments for logarithms of the parameters."""
        scale, *shape = np.exp(np.minimum(logarithms, _LOG_MAX))
        return {"scale": scale} | dict(
            zip(self.law.shapes.split() if shape else (), shape, strict=True)
        )


# exp() overflows above this value.
_LOG_MAX = 700.0
_FAMILIES = (
    _Family("exponential", ("scale_s",), "expon"),
    _Family("weibull", ("scale_s", "shape"), "weibull_min"),
    _Family("lognormal", ("median_s", "sigma"), "lognorm"),
)


class _Likelihood:
    """Likelihood of lifetimes under one distribution, in units of their mean."""

    def __init__(self, family: _Family, lifetimes: Lifetimes) -> None:
        self.unit_s = float(lifetimes.duration_s.mean())
        durations = lifetimes.duration_s / self.unit_s
        entries = lifetimes.entry_s / self.unit_s
        self._family = family
        self._total = durations.sum()
        self._ended = durations[lifetimes.observed]
        self._censored = durations[~lifetimes.observed]
        self._entered = entries[entries > 0]

    def loss(self, logarithms: Floats) -> float:
        """Return the negative log-likelihood for logarithms of the parameters."""
        law = self._family.law
        at = self._family.at(logarithms)
        with np.errstate(all="ignore"):
            total = -law.logpdf(self._ended, **at).sum()
            total -= law.logsf(self._censored, **at).sum()
            total += law.logsf(self._entered, **at).sum()
        if np.isfinite(total):
            return float(total)
        return 1e300

    def start(self) -> list[float]:
        """Return initial logarithms, which are near 0 in units of the mean duration."""
        mean = np.log(self._total / len(self._ended))
        logarithms = np.log(self._ended)
        spread = float(np.std(logarithms))
        starts = {
            "exponential": [mean],
            "weibull": [mean, 0.0],
            "lognormal": [float(logarithms.mean()), np.log(max(spread, 1e-3))],
        }
        return starts[self._family.name]

    def logarithm(self, logarithms: Floats) -> float:
        """Return the log-likelihood of durations in seconds.

        The survival function has no unit, so only the densities depend on the unit.
        """
        return -self.loss(logarithms) - len(self._ended) * float(np.log(self.unit_s))


def _fit(family: _Family, lifetimes: Lifetimes) -> LifetimeFit | None:
    """Fit one distribution. Return None if the likelihood has no interior maximum and so no intervals."""
    likelihood = _Likelihood(family, lifetimes)
    best = scipy.optimize.minimize(
        likelihood.loss,
        likelihood.start(),
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-7, "maxiter": 4000},
    ).x
    curvature = _hessian(likelihood.loss, best)
    if not np.isfinite(curvature).all() or np.linalg.eigvalsh(curvature).min() <= 0:
        return None
    half = scipy.special.ndtri(0.975) * np.sqrt(np.diag(np.linalg.inv(curvature)))
    unit_s = likelihood.unit_s
    units = np.array([unit_s if key.endswith("_s") else 1.0 for key in family.names])
    law_at_best = family.at(best)
    with np.errstate(over="ignore"):
        values = (np.exp(best) * units).tolist()
        low = (np.exp(best - half) * units).tolist()
        high = (np.exp(best + half) * units).tolist()
        mean_s = float(family.law.mean(**law_at_best) * unit_s)
    log_likelihood = likelihood.logarithm(best)
    if not np.isfinite([*values, *low, *high, mean_s, log_likelihood]).all():
        return None
    intervals = zip(low, high, strict=True)
    return LifetimeFit(
        name=family.name,
        parameters=dict(zip(family.names, values, strict=True)),
        ci95=dict(zip(family.names, intervals, strict=True)),
        log_likelihood=log_likelihood,
        aic=2 * len(family.names) - 2 * log_likelihood,
        mean_s=mean_s,
        ks=_distance(lifetimes, lambda age: family.law.sf(age / unit_s, **law_at_best)),
    )


def _distance(lifetimes: Lifetimes, survival: Callable[[Floats], Floats]) -> float:
    age, estimate = kaplan_meier(lifetimes)
    start = survival(np.array([lifetimes.entry_s.min() or 1e-300]))[0]
    model = survival(age) / start
    before = np.concatenate(([1.0], estimate[:-1]))
    return float(np.max(np.maximum(np.abs(model - estimate), np.abs(model - before))))


def _hessian(loss: Callable[[Floats], float], at: Floats) -> Floats:
    """Compute second differences, with a step that balances rounding against changes in curvature."""
    size = len(at)
    step = 1e-4
    out = np.empty((size, size))
    eye = np.eye(size) * step
    for i, j in np.ndindex(size, size):
        up = at + eye[i]
        down = at - eye[i]
        corners = (
            loss(up + eye[j])
            - loss(up - eye[j])
            - loss(down + eye[j])
            + loss(down - eye[j])
        )
        out[i, j] = corners / (4 * step * step)
    return out


def _text(key: str, value: float) -> str:
    if key.endswith("_s"):
        return f"{value / 3600:.4g} h"
    return f"{value:.3f}"
