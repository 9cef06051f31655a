"""Fit measured kernel times: a line with at most one knee, by relative least squares."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from stripesim.models.kernel.cost import AffineKnee, KernelCost, KernelModel

Floats = npt.NDArray[np.float64]

#: A knee adds two parameters, so it needs at least this number of sizes.
KNEE_POINTS_MIN = 6
#: A knee is kept only if it reduces the sum of squared relative residuals to this share.
KNEE_GAIN_MAX = 0.5


def fit_affine(
    size_bytes: npt.ArrayLike,
    seconds: npt.ArrayLike,
    *,
    relative_to_s: npt.ArrayLike | None = None,
) -> AffineKnee:
    """Fit a duration that is affine in the data size, with a knee if the data requires one.

    Parameters
    ----------
    size_bytes
        Data sizes [B], greater than 0, shape (n,) with n of at least 1.
    seconds
        Measured durations [s], shape (n,).
    relative_to_s
        Scale of each residual [s], shape (n,). The default is the measured duration, so that a stripe of 24
        KiB weighs as much as 4 MiB. Pass it for a small difference of two long durations.

    Returns
    -------
    AffineKnee
        The fitted duration. With a single size, the line passes through the origin.

    Raises
    ------
    ValueError
        If the lengths differ, or a size or scale is not positive.

    Notes
    -----
    The fit minimises the sum of ((fit - measured) / scale)^2 over non-negative coefficients. The knee is
    searched on a logarithmic scale between the second smallest and second largest size, first on a grid and
    then by bounded scalar minimisation. It is kept only if it at least halves the sum.
    """
    x = np.asarray(size_bytes, dtype=np.float64)
    y_ns = np.asarray(seconds, dtype=np.float64) * 1e9
    if relative_to_s is None:
        scale_ns = y_ns
    else:
        scale_ns = np.asarray(relative_to_s, dtype=np.float64) * 1e9
    if not x.shape == y_ns.shape == scale_ns.shape or x.ndim != 1 or x.size == 0:
        raise ValueError(
            f"kernel fit: got shapes {x.shape} and {y_ns.shape}, wanted two equal ones of at least 1"
        )
    if not ((x > 0).all() and (scale_ns > 0).all()):
        raise ValueError(
            "kernel fit: got a size or duration that is not positive, wanted all positive"
        )
    if x.size == 1:
        return AffineKnee(0.0, max(0.0, float(y_ns[0] / x[0])))
    line, line_loss = _solve(x, y_ns, scale_ns, math.inf)
    if np.unique(x).size >= KNEE_POINTS_MIN:
        knee_bytes = _best_knee(x, y_ns, scale_ns)
        bent, bent_loss = _solve(x, y_ns, scale_ns, knee_bytes)
        if bent_loss <= KNEE_GAIN_MAX * line_loss:
            return AffineKnee(
                float(bent[0]), float(bent[1]), knee_bytes, float(bent[2])
            )
    return AffineKnee(float(line[0]), float(line[1]))


def relative_residuals(
    fit: AffineKnee, size_bytes: npt.ArrayLike, seconds: npt.ArrayLike
) -> Floats:
    """Return the relative residuals |fit / measured - 1|.

    Parameters
    ----------
    fit
        Fitted duration.
    size_bytes, seconds
        Measured data sizes [B] and durations [s], shape (n,).

    Returns
    -------
    ndarray
        float64 of shape (n,).
    """
    x = np.asarray(size_bytes, dtype=np.float64)
    fitted_ns = np.array([fit.duration_ns(size) for size in x], dtype=np.float64)
    return np.asarray(
        np.abs(fitted_ns / (np.asarray(seconds, dtype=np.float64) * 1e9) - 1.0)
    )


def fit_rows(rows: Iterable[Mapping[str, Any]]) -> tuple[KernelCost, ...]:
    """Return the cost of each operation in measured rows, in order of appearance.

    Raises
    ------
    ValueError
        If a row failed verification.
    """
    groups: dict[tuple[str, str, str, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        key = (row["backend"], row["scheme"], row["op"], row["erasures"])
        if row["verified"] is False:
            raise ValueError(
                f"kernel: {row['scheme']}: {row['op']} of backend {row['backend']}: got a wrong result, "
                "wanted a correct one (the time of a wrong one means nothing)"
            )
        groups.setdefault(key, []).append(row)
    return tuple(_fit_group(key, group) for key, group in groups.items())


def table_from_rows(
    rows: Iterable[Mapping[str, Any]], *, name: str, provenance: Mapping[str, Any]
) -> KernelModel:
    """Return the kernel table fitted to measured rows.

    Parameters
    ----------
    rows
        Rows as from `stripesim.calibration.kernels.timing.row_of`.
    name
        Name of the table.
    provenance
        Provenance of the rows. The relative residuals of the fits are added to it.

    Raises
    ------
    ValueError
        If a row failed verification.
    """
    costs = fit_rows(rows)
    residuals = {
        "cost_count": len(costs),
        "median_of_medians": float(np.median([cost.residual_median for cost in costs])),
        "median_of_maxima": float(np.median([cost.residual_max for cost in costs])),
        "max": max(cost.residual_max for cost in costs),
    }
    return KernelModel(name, {**provenance, "relative_residuals": residuals}, costs)


def _fit_group(
    key: tuple[str, str, str, int], group: list[Mapping[str, Any]]
) -> KernelCost:
    sizes = [row["size_bytes"] for row in group]
    seconds = [row["seconds_median"] for row in group]
    copies = [row["copy_seconds_median"] for row in group]
    total = fit_affine(sizes, seconds)
    copy = None
    net = None
    if None not in copies:
        copy = fit_affine(sizes, copies)
        net = fit_affine(sizes, np.subtract(seconds, copies), relative_to_s=seconds)
    residuals = relative_residuals(total, sizes, seconds)
    backend, scheme, op, erasures = key
    return KernelCost(
        backend=backend,
        scheme=scheme,
        op=op,  # type: ignore[arg-type]  # KernelCost checks it
        erasures=erasures,
        total=total,
        copy=copy,
        net=net,
        size_min_bytes=min(sizes),
        size_max_bytes=max(sizes),
        points=len(sizes),
        residual_median=float(np.median(residuals)),
        residual_max=float(residuals.max()),
    )


def _solve(
    x: Floats, y_ns: Floats, scale_ns: Floats, knee_bytes: float
) -> tuple[Floats, float]:
    """Return the coefficients for a given knee, and the sum of squared relative residuals."""
    below = np.minimum(x, knee_bytes)
    columns = [np.ones_like(x), below]
    if math.isfinite(knee_bytes):
        columns.append(x - below)
    design = np.stack(columns, axis=1) / scale_ns[:, None]
    # Columns of similar magnitude keep the solver's tolerances meaningful.
    norms = np.linalg.norm(design, axis=0)
    norms[norms == 0] = 1.0
    coefficients, norm = scipy.optimize.nnls(design / norms, y_ns / scale_ns)
    return coefficients / norms, float(norm) ** 2


def _best_knee(x: Floats, y_ns: Floats, scale_ns: Floats) -> float:
    sizes = np.unique(x)
    low = math.log(sizes[1])
    high = math.log(sizes[-2])

    def loss(log_knee: float) -> float:
        return _solve(x, y_ns, scale_ns, math.exp(log_knee))[1]

    grid = np.linspace(low, high, 25)
    best = int(np.argmin([loss(point) for point in grid]))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)])
    minimum = scipy.optimize.minimize_scalar(loss, bounds=bounds, method="bounded")
    return math.exp(minimum.x if minimum.fun < loss(grid[best]) else grid[best])
