"""Hold load curves: points, rates within latency bounds, and the curve with its knee and saturation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from stripesim.models.documents import Documented
from stripesim.scenarios.cells.bound import Bound
from stripesim.scenarios.schema.keys import Cell
from stripesim.sim.observe.intervals import Interval
from stripesim.sim.observe.result_row import withheld_columns


@dataclass(frozen=True, kw_only=True)
class LoadPoint(Documented):
    """One simulated rate.

    Attributes
    ----------
    offered_iops
        Arrivals per second, mean over replications [1/s].
    iops
        Completions per second, with a 95 % interval over replications [1/s].
    latency_mean_ns, latency_p50_ns, latency_p99_ns
        Latencies with 95 % intervals [ns]. Without intervals where the latency has no steady value.
    is_past_saturation
        True if the rate exceeds saturation. The latency then grows with the length of the run.
    is_steady
        False if the latency rises through the run, so that a longer run would show a higher one.
    requests
        Requests of each replication [count].
    refused
        Check of the audit that one of its runs fails, or None.
    """

    offered_iops: float
    iops: Interval
    latency_mean_ns: Interval
    latency_p50_ns: Interval
    latency_p99_ns: Interval
    is_past_saturation: bool
    is_steady: bool
    requests: int
    refused: str | None = None

    in_document: ClassVar = (
        "offered_iops",
        ("iops", "iops.mean"),
        ("iops_low", "iops.low"),
        ("iops_high", "iops.high"),
        ("latency_mean_ns", "latency_mean_ns.mean"),
        ("latency_p50_ns", "latency_p50_ns.mean"),
        ("latency_p50_low_ns", "latency_p50_ns.low"),
        ("latency_p50_high_ns", "latency_p50_ns.high"),
        ("latency_p99_ns", "latency_p99_ns.mean"),
        ("latency_p99_low_ns", "latency_p99_ns.low"),
        ("latency_p99_high_ns", "latency_p99_ns.high"),
        ("past_saturation", "is_past_saturation"),
        ("steady", "is_steady"),
        "requests",
        "refused",
    )


@dataclass(frozen=True, kw_only=True)
class RateWithin(Documented):
    """The highest rate within a bound of the 99th percentile.

    Attributes
    ----------
    p99_ns
        The bound [ns].
    iops
        Rate at which the 99th percentile reaches the bound, with a 95 % interval [1/s]. None if it exceeds
        the bound at the lowest rate.
    is_saturation
        True if no steady point exceeds the bound. `iops` is then the rate of the highest one.
    """

    p99_ns: float
    iops: Interval | None
    is_saturation: bool

    in_document: ClassVar = (
        ("latency_p99_ns", "p99_ns"),
        ("iops", "iops.mean"),
        ("iops_low", "iops.low"),
        ("iops_high", "iops.high"),
        ("up_to_saturation", "is_saturation"),
    )


@dataclass(frozen=True, kw_only=True)
class LoadCurve(Documented):
    """Latency over throughput of one scheme and kind of request.

    Attributes
    ----------
    cell
        Scheme and kind of request.
    points
        Simulated rates, ascending.
    saturation_iops
        Highest rate that the cluster sustains [1/s]: of a closed loop with enough requests in flight, with
        a 95 % interval over replications, or the bracket of a search.
    is_searched
        True if a search with open loops found the saturation.
    limited_by
        Class of resource that limits the saturated cluster.
    bound
        Lowest bound of a resource by its demand, or None if unknown.
    knee_iops
        Rate of highest power, with a 95 % interval over replications [1/s]. None with fewer than three
        steady points. See `stripesim.scenarios.answers.load.analysis.knee_of`.
    within
        Highest rate within each latency bound.
    replications
        Runs of each point [count].
    refused_points
        Rates whose numbers the audit withholds, ascending. They are not among `points`.
    falls
        Steps below saturation at which the served rate falls as the offered rate rises.
    """

    cell: Cell
    points: tuple[LoadPoint, ...]
    saturation_iops: Interval
    is_searched: bool
    limited_by: str | None
    bound: Bound | None
    knee_iops: Interval | None
    within: tuple[RateWithin, ...]
    replications: int
    refused_points: tuple[LoadPoint, ...] = ()
    falls: tuple[str, ...] = ()

    in_document: ClassVar = (
        *((name, f"cell.{name}") for name in Cell._fields),
        ("points", "all_points"),
        ("knee_iops", "knee_iops.mean"),
        ("knee_low_iops", "knee_iops.low"),
        ("knee_high_iops", "knee_iops.high"),
        ("saturation_iops", "saturation_iops.mean"),
        ("saturation_low_iops", "saturation_iops.low"),
        ("saturation_high_iops", "saturation_iops.high"),
        "saturation_from",
        "limited_by",
        "bound",
        ("p99_bounds", "within"),
        "replications",
    )

    @property
    def saturation_from(self) -> str:
        """Method that found the saturation."""
        return "search" if self.is_searched else "closed loop"

    def all_points(self) -> list[dict[str, Any]]:
        """Return the documents of all points, of refused ones without their numbers."""
        named = ("offered_iops", "past_saturation")
        return [
            *(point.to_json() for point in self.points),
            *(
                withheld_columns(point.to_json(), others=named)
                for point in self.refused_points
            ),
        ]

    @property
    def refusals(self) -> list[str]:
        """The points that the audit refuses: their rate, the check, and what it got and wanted."""
        refused = [*self.refused_points, *self.points]
        return [
            f"{self.cell.name} at {point.offered_iops:,.0f} requests/s: {point.refused}"
            for point in refused
            if point.refused is not None
        ]

    def __repr__(self) -> str:
        cell = self.cell
        saturation = f"saturation {self.saturation_iops.mean:,.0f}/s"
        return f"<LoadCurve: {cell.scheme} {cell.op}, {len(self.points)} points, {saturation}>"
