"""Compare a synthetic trace with both halves of the recorded one."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from stripesim.models.documents import Documented
from stripesim.traces import BlockTrace
from stripesim.traces.locality import reuse
from stripesim.traces.statistics import (
    dispersion,
    footprint_bytes,
    sequential_fraction,
    windows_ns,
)


@dataclass(frozen=True)
class WorkloadScore(Documented):
    """A characteristic of the fitted half, the other half and a synthetic trace."""

    name: str  # Name of the characteristic
    # Values in each. For Kolmogorov-Smirnov distances: 0, the distance of the held-out half from the fitted
    # one, and that of the synthetic trace from the fitted half.
    fitted: float
    held_out: float
    synthetic: float
    tolerance: float
    """Tolerated distance of the synthetic value from the fitted one, relative unless `absolute`."""
    absolute: bool  # True if the tolerance is absolute

    in_document: ClassVar = (
        "name",
        "fitted",
        "held_out",
        "synthetic",
        "error",
        "held_out_error",
        "drift",
        "tolerance",
        "absolute",
        "passes",
    )

    @property
    def error(self) -> float:
        """Error of the synthetic value against the fitted one, relative or absolute."""
        return _error(self.synthetic, self.fitted, self.absolute)

    @property
    def held_out_error(self) -> float:
        """Error of the synthetic value against the held-out one, relative or absolute."""
        return _error(self.synthetic, self.held_out, self.absolute)

    @property
    def drift(self) -> float:
        """Difference between the fitted and the held-out value: the change within the trace itself."""
        return _error(self.fitted, self.held_out, self.absolute)

    @property
    def passes(self) -> bool:
        """True if the synthetic trace keeps the characteristic within the tolerance."""
        return bool(abs(self.error) <= self.tolerance)


def score_workload(
    first: BlockTrace, rest: BlockTrace, synthetic: BlockTrace
) -> tuple[WorkloadScore, ...]:
    """Compare a synthetic trace with the fitted half (`first`) and the other half (`rest`) of a trace.

    Returns
    -------
    tuple of WorkloadScore
        One score per characteristic that all three traces have.
    """
    three = (first, rest, synthetic)
    listed = [_characteristics(trace) for trace in three]
    scores = [
        WorkloadScore(
            name, listed[0][name], listed[1][name], listed[2][name], tolerance, absolute
        )
        for name, (tolerance, absolute) in _TOLERANCES.items()
        if all(name in one for one in listed)
    ]
    gaps = [
        np.diff(trace.requests["issue_ns"].to_numpy()).astype(np.float64)
        for trace in three
    ]
    sizes = [
        trace.requests["length_bytes"].to_numpy().astype(np.float64) for trace in three
    ]
    for name, (base, *others) in (("gaps, KS", gaps), ("sizes, KS", sizes)):
        distances = [
            float(scipy.stats.ks_2samp(base, other, method="asymp").statistic)
            for other in others
        ]
        scores.append(WorkloadScore(name, 0.0, distances[0], distances[1], 0.05, True))
    return tuple(scores)


_TOLERANCES: dict[str, tuple[float, bool]] = {
    "rate [1/s]": (0.25, False),
    "gap CV2": (0.5, False),
    "dispersion, short": (0.5, False),
    "dispersion, long": (1.0, False),
    "read ratio": (0.03, True),
    "size mean [B]": (0.05, False),
    "sequential fraction": (0.03, True),
    "footprint / bytes": (0.1, True),
    "reuse ratio": (0.1, True),
    "LRU hits, 10 % cache": (0.1, True),
}
"""Tolerances of a synthetic trace. A burst may change dispersions by half, whereas shares are stable."""


def _characteristics(trace: BlockTrace) -> dict[str, float]:
    requests = trace.requests
    issue = requests["issue_ns"].to_numpy()
    gaps = np.diff(issue).astype(np.float64)
    seconds = float(issue[-1] - issue[0]) / 1e9
    reused = reuse(requests)
    values = {
        "read ratio": float((~requests["is_write"]).mean()),  # type: ignore[arg-type]
        "size mean [B]": float(requests["length_bytes"].mean()),  # type: ignore[arg-type]
        "sequential fraction": sequential_fraction(requests),
        "footprint / bytes": footprint_bytes(requests)
        / int(requests["length_bytes"].sum()),
        "reuse ratio": float((reused.distances >= 0).mean()),
        "LRU hits, 10 % cache": float(
            reused.hit_ratio([max(1, reused.blocks // 10)])[0]
        ),
    }
    if seconds:
        values["rate [1/s]"] = requests.height / seconds
        values["gap CV2"] = float(gaps.var() / gaps.mean() ** 2)
        if windows := windows_ns(issue):
            values["dispersion, short"] = dispersion(issue, windows[0])
            values["dispersion, long"] = dispersion(issue, windows[-1])
    return values


def _error(value: float, against: float, absolute: bool) -> float:
    if absolute:
        return value - against
    if against:
        return value / against - 1
    if value:
        return float("inf")
    return 0.0
