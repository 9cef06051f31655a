"""Interpolate kernel costs of a Reed-Solomon code from those of timed codes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from stripesim.models.kernel.cost import AffineKnee, KernelCost, KernelModel

#: Timed codes that a fit over k and m needs: three coefficients, and some to estimate its error.
CODES_MIN: Final = 6
#: Data sizes per call at which codes are compared [B].
_SIZES: Final = (4096, 65536, 1048576)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interpolated:
    """A kernel table extended by a code that was not timed."""

    table: KernelModel  #: The table with the added costs
    codes: int  #: Number of timed codes that were fitted
    #: Median and largest |predicted / measured − 1| when encoding by each timed code is predicted from all
    #: other codes, over codes and sizes.
    error_median: float
    error_max: float


def _shape(scheme: str) -> tuple[int, int] | None:
    kind, _, numbers = scheme.partition(":")
    parts = numbers.split(",")
    if kind == "rs" and len(parts) == 2:
        return (int(parts[0]), int(parts[1]))
    return None


def _predicted(coefficients: Floats, shape: Floats) -> float:
    return float(np.exp(coefficients @ np.array([1.0, *np.log(shape)])))


def _new_cost(group: Sequence[KernelCost], scheme: str) -> KernelCost:
    """Scale the cost of the nearest timed code by the ratio of the fitted durations."""
    wanted = np.array(_shape(scheme), dtype=float)
    shapes = np.array([_shape(cost.scheme) for cost in group], dtype=float)
    nearest = int(np.argmin(np.abs(np.log(shapes / wanted)).sum(axis=1)))
    design = np.column_stack([np.ones(len(shapes)), np.log(shapes)])
    factors = []
    for size in _SIZES:
        times_ns = np.array([max(1.0, cost.duration_ns(size)) for cost in group])
        coefficients: Floats = np.linalg.lstsq(design, np.log(times_ns), rcond=None)[0]
        factors.append(
            _predicted(coefficients, wanted) / _predicted(coefficients, shapes[nearest])
        )
    factor = float(np.exp(np.mean(np.log(factors))))
    cost = group[nearest]
    return replace(
        cost,
        scheme=scheme,
        total=_scaled(cost.total, factor),
        copy=cost.copy and _scaled(cost.copy, factor),
        net=cost.net and _scaled(cost.net, factor),
    )


def _scaled(part: AffineKnee, factor: float) -> AffineKnee:
    return replace(
        part,
        fixed_ns=part.fixed_ns * factor,
        per_byte_ns=part.per_byte_ns * factor,
        per_byte_beyond_ns=part.per_byte_beyond_ns * factor,
    )


def _errors(group: Sequence[KernelCost]) -> list[float]:
    """Predict each timed code from the others, and return the relative errors over codes and sizes."""
    errors = []
    for cost in group:
        predicted = _new_cost(
            [other for other in group if other is not cost], cost.scheme
        )
        errors += [
            abs(predicted.duration_ns(size) / cost.duration_ns(size) - 1)
            for size in _SIZES
        ]
    return errors


@lru_cache(maxsize=64)
def _added(
    costs: tuple[KernelCost, ...], scheme: str
) -> tuple[tuple[KernelCost, ...], int, float, float] | None:
    """Return the new costs, the number of fitted codes, and the median and largest leave-one-out error."""
    groups: dict[tuple[str, str, int], list[KernelCost]] = {}
    for cost in costs:
        if _shape(cost.scheme):
            groups.setdefault((cost.backend, cost.op, cost.erasures), []).append(cost)
    groups = {key: group for key, group in groups.items() if len(group) >= CODES_MIN}
    _, m = _shape(scheme) or (0, 0)
    new = tuple(
        _new_cost(group, scheme)
        for (_, _, erasures), group in groups.items()
        if erasures <= m
    )
    encodes = [group for (_, op, _), group in groups.items() if op == "encode"]
    if not encodes:
        return None
    errors = [error for group in encodes for error in _errors(group)]
    return new, max(map(len, encodes)), float(np.median(errors)), max(errors)


def interpolated(table: KernelModel, scheme: str) -> Interpolated | None:
    r"""Add the costs of a Reed-Solomon code that a table lacks.

    Parameters
    ----------
    table
        Measured kernel costs.
    scheme
        Code such as ``rs:5,2``.

    Returns
    -------
    Interpolated or None
        None if the table has the code, the code is not a Reed-Solomon code, or fewer than `CODES_MIN` codes
        were timed.

    Notes
    -----
    For each backend, operation and number of erasures, the durations of the timed codes at three sizes are
    fitted by

    .. math:: \ln t = a + b \ln k + c \ln m \tag{1}

    The cost of the nearest timed code is scaled by the ratio that (1) predicts for the two codes, so the
    dependence on size stays a measured one. The error comes from leaving out each timed code in turn.
    """
    if _shape(scheme) is None or scheme in table.schemes():
        return None
    added = _added(table.costs, scheme)
    if added is None:
        return None
    new, codes, median, highest = added
    return Interpolated(replace(table, costs=table.costs + new), codes, median, highest)
