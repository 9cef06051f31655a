"""Choose the rates of one load curve, from their measurements so far.

A curve first finds the saturation of its cell, then simulates a few rates, and then refines where the curve
bends. It is a generator of runs that receives their measurements, so that `curves` can run several side by
side.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log
from typing import Final, NamedTuple

from stripesim.models.problems import RefusedError
from stripesim.scenarios.answers.load.analysis import knee_of, rate_within
from stripesim.scenarios.answers.load.rate_runs import (
    RateMeasurement,
    RateRun,
    scenario_of,
)
from stripesim.scenarios.answers.load.results import LoadCurve, LoadPoint, RateWithin
from stripesim.scenarios.cells.bound import (
    Bound,
    bounds_of_cell,
    has_streams,
    may_hit_caches,
)
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.observe.audit import RatePoint, audit_bound, falls
from stripesim.sim.observe.intervals import (
    NARROW_RUNS_MAX,
    Interval,
    is_narrow,
    student_interval,
)

#: Runs of each point, with different seeds.
REPLICATIONS: Final = 5
#: Points of one curve.
POINTS_MAX: Final = 14

# Requests of one run: for each OSD, at least, and at most.
_REQUESTS_PER_OSD: Final = 250
_REQUESTS_MIN: Final = 6000
_REQUESTS_MAX: Final = 20_000
# Requests of one run for objects in buckets: each of their sizes is a curve, and a PUT has 300 steps or more.
_REQUESTS_S3: Final = 2000

# Rates that every curve has, as parts of saturation.
_FIRST_PARTS: Final = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95)
_PAST_PARTS: Final = (1.05, 1.25)

# How much longer runs past saturation are, and those whose latency still rises below it; and at most.
_LONGER: Final = 3
_LONGER_MAX: Final = 9

# Requests in flight of a closed loop that saturates the cluster: for each OSD, and in all, at first; at most;
# and the gain from twice as many below which the rate counts as saturated. With more than one OSD admits, the
# loop starts in its steady state, with most requests at the busiest OSD.
_IN_FLIGHT_PER_OSD: Final = 32
_IN_FLIGHT_MIN: Final = 512
_IN_FLIGHT_MAX: Final = 16_384
_GAIN_MIN: Final = 1.01
# Part of the bound above which objects need no more requests in flight.
_NEAR_BOUND: Final = 0.97
# Requests of a closed loop for each request in flight, at least. The audit lengthens a run above the bound.
_ROUNDS: Final = 12
# The same for objects of mixed sizes. Small ones pass while large ones wait at their gateways, so most of
# those in flight are large in the end.
_ROUNDS_MIXED: Final = 60

# Part of the arrivals that a steady point serves, at least. The rest queues.
_SERVED_MIN: Final = 0.99
#: Growth of the mean latency from the first half of a window to the second one, above which a point has no
#: steady state.
GROWTH_MAX: Final = 1.15
# The same of the 99th percentile.
_TAIL_GROWTH_MAX: Final = 1.3
# The same of either, above which a run is too short for its latencies, but still shows whether they settle.
_SETTLED_GROWTH_MAX: Final = 1.05
# Ratio of the ends of the bracket where a search for saturation stops, and most steps.
_BRACKET: Final = 1.02
_SEARCH_STEPS_MAX: Final = 12

# Widths below which gaps are not refined, as parts of saturation: at the knee, at a latency bound, elsewhere.
_KNEE_WIDTH: Final = 0.06
_BOUND_WIDTH: Final = 0.03
_WIDTH_MIN: Final = 0.02
# Above the score of any gap that is refined only because the latency rises.
_FIRST_SCORE: Final = 1000.0
# Growth of the logarithm of the latency across a gap below which it is not refined.
_RISE_MIN: Final = 0.1

Batch = Generator[list[RateRun], list[RateMeasurement], None]


class CurveSettings(NamedTuple):
    """Settings of a curve.

    Attributes
    ----------
    engine
        ``compiled`` or ``simpy``.
    p99_bounds_s
        Bounds of the 99th percentile [s] to find the highest rate for. That of ``[plan]`` is added.
    replications
        Runs of each point [count], at least 2. Their seeds are the scenario's plus 0, 1, …, for all schemes
        alike. With `plan.interval_percent`, steady points run under further seeds until their mean latency
        and 99th percentile are known that well.
    requests
        Requests of each run [count]. Default: 6,000 to 20,000, by the number of OSDs, and 2,000 with kind s3.
        Runs whose latency grows by 5 % or more and those past saturation have three times as many, or nine.
    points_max
        Points of each curve [count].
    unchecked
        Keep the numbers of runs that the audit refuses.
    """

    engine: str = "compiled"
    p99_bounds_s: Sequence[float] = ()
    replications: int = REPLICATIONS
    requests: int | None = None
    points_max: int = POINTS_MAX
    unchecked: bool = False


class NewPoint(NamedTuple):
    """A point, and the curve as it was known then."""

    curve: LoadCurve
    point: LoadPoint


class _Rate(NamedTuple):
    """A simulated rate with the measurements of its replications."""

    per_s: float
    requests: int
    measured: tuple[RateMeasurement, ...]

    @property
    def offered_iops(self) -> float:
        return _mean([one.offered_iops for one in self.measured])

    @property
    def mean_ns(self) -> float:
        return _mean([one.latency_mean_ns for one in self.measured])

    @property
    def p99_ns(self) -> float:
        return _mean([one.latency_p99_ns for one in self.measured])

    def is_narrow(self, percent: float) -> bool:
        """Return True if the intervals of the mean and the 99th percentile are at most so wide [%]."""
        means_ns = [one.latency_mean_ns for one in self.measured]
        tails_ns = [one.latency_p99_ns for one in self.measured]
        return all(is_narrow(each, percent) for each in (means_ns, tails_ns))

    def with_further(self, replication: RateMeasurement) -> _Rate:
        """Return the rate with one more replication."""
        return self._replace(measured=(*self.measured, replication))

    @property
    def refused(self) -> str | None:
        """First check of the audit that a replication fails, or None."""
        refusals = [one.refused for one in self.measured]
        return next((text for text in refusals if text is not None), None)

    @property
    def is_steady(self) -> bool:
        """True unless the latency rises through the window, or arrivals are not served."""
        served = _mean([one.iops / one.offered_iops for one in self.measured])
        return served >= _SERVED_MIN and not self._rises(GROWTH_MAX, _TAIL_GROWTH_MAX)

    @property
    def is_settled(self) -> bool:
        """True if the run is so long that its start from an idle cluster no longer lowers its latencies."""
        return not self._rises(_SETTLED_GROWTH_MAX, _SETTLED_GROWTH_MAX)

    def _rises(self, growth_max: float, tail_growth_max: float) -> bool:
        """Return True if the mean latency or the 99th percentile grows through the window by more."""
        growths = [one.growth for one in self.measured]
        tail_growths = [one.tail_growth for one in self.measured]
        return _rises(growths, growth_max) or _rises(tail_growths, tail_growth_max)


@dataclass
class CurveBuilder:
    """Choose the rates of one curve."""

    scenario: Scenario
    cell: Cell
    settings: CurveSettings
    rates: list[_Rate] = field(default_factory=list)
    new: list[NewPoint] = field(default_factory=list)  # Not taken by `take_new` yet.
    saturation: Interval | None = None
    is_searched: bool = False
    limited_by: str | None = None
    bound: Bound | None = None

    @cached_property
    def requests(self) -> int:
        """Requests of a run [count], more for a larger cluster."""
        if self.settings.requests:
            return self.settings.requests
        if self.scenario.workload.is_s3:
            return _REQUESTS_S3
        wanted = _REQUESTS_PER_OSD * self.scenario.cluster.osd_count
        return min(_REQUESTS_MAX, max(_REQUESTS_MIN, wanted))

    @cached_property
    def p99_bounds_ns(self) -> tuple[float, ...]:
        """Bounds of the 99th percentile [ns], with that of a plan."""
        bounds_s = set(self.settings.p99_bounds_s)
        plan = self.scenario.plan
        if plan is not None and plan.p99_ms is not None:
            bounds_s.add(plan.p99_ms / 1e3)
        return tuple(bound_s * 1e9 for bound_s in sorted(bounds_s))

    @property
    def interval_percent(self) -> float | None:
        """Largest half of the interval of each mean and 99th percentile, of its value [%].

        None runs the replications alone.
        """
        plan = self.scenario.plan
        return None if plan is None else plan.interval_percent

    @property
    def is_begun(self) -> bool:
        """True once the saturation is known and one rate is simulated."""
        return self.saturation is not None and bool(self.rates)

    def runs(self) -> Batch:
        """Yield batches of runs, and receive their measurements."""
        shares = self._shares()
        open_loop = scenario_of(self._run(0, rates_per_s=shares, requests=1))
        bounds = bounds_of_cell(
            open_loop, self.cell, build_models(open_loop), rates=shares
        )
        if bounds:
            self.bound = bounds[0]
        if self.scenario.workloads:
            start = self.bound.iops if self.bound else 1000.0
            yield from self._search(shares, 0.0, start)
        else:
            settles = yield from self._saturate()
            assert self.saturation is not None
            if not settles:
                yield from self._search(shares, 0.0, self.saturation.mean)
            self._check_saturation()
            if settles:
                yield from self._extend(shares)
        assert self.saturation is not None
        saturation = self.saturation.mean
        for part in (*_FIRST_PARTS, *_PAST_PARTS):
            yield from self._simulate(shares, part * saturation)
        while len(self.rates) < self.settings.points_max:
            per_s = self._next_rate(saturation)
            if per_s is None:
                break
            yield from self._simulate(shares, per_s)
        yield from self._narrow(shares)

    def take_new(self) -> list[NewPoint]:
        """Return the points since the last call."""
        new, self.new = self.new, []
        return new

    def curve(self) -> LoadCurve:
        """Return the curve so far."""
        assert self.saturation is not None
        steady = self._steady_rates()
        points = [self._point(rate) for rate in self.rates]
        refused_points = []
        if not self.settings.unchecked:
            refused_points = [one for one in points if one.refused is not None]
        shown = [one for one in points if one not in refused_points]
        below = [one for one in shown if not one.is_past_saturation]
        return LoadCurve(
            cell=self.cell,
            points=tuple(shown),
            saturation_iops=self.saturation,
            is_searched=self.is_searched,
            limited_by=self.limited_by,
            bound=self.bound,
            knee_iops=_knee(steady),
            within=tuple(_within(steady, bound_ns) for bound_ns in self.p99_bounds_ns),
            replications=len(steady[0].measured)
            if steady
            else self.settings.replications,
            refused_points=tuple(refused_points),
            falls=tuple(falls([_rate_point(one) for one in below])),
        )

    def _shares(self) -> tuple[float, ...]:
        """Return the part of each workload in all requests.

        Workloads without stated rates have the shares that they reach as they are.
        """
        loads = self.scenario.loads
        if len(loads) == 1:
            return (1.0,)
        rates = [load.rate_per_s for load in loads if load.rate_per_s is not None]
        if len(rates) < len(loads):
            result = run_cell(self.scenario, self.cell, self.settings.engine)
            rates = [row.iops or 0.0 for row in result.load_rows]
        total = sum(rates)
        if min(rates) <= 0:
            raise ValueError(
                "load: got a workload without completed requests, wanted some of each"
            )
        return tuple(rate / total for rate in rates)

    def _saturate(self) -> Generator[list[RateRun], list[RateMeasurement], bool]:
        """Find the rate of a closed loop that is deep enough, and return True if it settles.

        Otherwise its queues need more than the budget of a run, and the audit refuses it, or clients with
        faster gateways issue more requests than others.
        """
        in_flight, first = yield from self._deep_enough()
        repetitions = [
            self._closed(in_flight, number)
            for number in range(1, self.settings.replications)
        ]
        measured = [first, *(yield from self._batch(repetitions))]
        self.saturation = student_interval([one.iops for one in measured])
        longer = 1
        # While requests pile up at the busiest OSD, the others still serve more than the bound.
        while longer < _LONGER_MAX and self._exceeds_bound(self.saturation):
            longer *= _LONGER
            runs = [
                self._closed(in_flight, number, longer=longer)
                for number in range(self.settings.replications)
            ]
            measured = yield from self._batch(runs)
            self.saturation = student_interval([one.iops for one in measured])
        self.limited_by = measured[0].bottleneck
        accepted = all(one.refused is None for one in measured)
        accepted = accepted and self._above_bound(self.saturation) is None
        return self.settings.unchecked or accepted

    def _deep_enough(
        self,
    ) -> Generator[list[RateRun], list[RateMeasurement], tuple[int, RateMeasurement]]:
        """Return the requests in flight of a closed loop that more do not help, and its first run."""
        in_flight = _IN_FLIGHT_PER_OSD * self.scenario.cluster.osd_count
        in_flight = max(_IN_FLIGHT_MIN, min(in_flight, _IN_FLIGHT_MAX // 4))
        (best,) = yield from self._batch([self._closed(in_flight, 0)])
        while 2 * in_flight <= _IN_FLIGHT_MAX and not self._reaches_bound(best):
            (more,) = yield from self._batch([self._closed(2 * in_flight, 0)])
            gain = more.iops / best.iops
            if gain >= _GAIN_MIN or (gain > 1 and more.refused is None):
                best = more
                in_flight *= 2
            if gain < _GAIN_MIN:
                break
        return in_flight, best

    def _reaches_bound(self, measured: RateMeasurement) -> bool:
        """Return True if a rate is so near to the bound that more requests in flight cannot help.

        More requests for objects only lengthen the time in which small ones pass large ones at the gateways.
        """
        if self.scenario.workload.is_s3:
            return (
                self.bound is not None
                and measured.iops >= _NEAR_BOUND * self.bound.iops
            )
        exact = self._exact_bound()
        return exact is not None and measured.iops >= exact.iops / _GAIN_MIN

    def _check_saturation(self) -> None:
        """Refuse the curve if its saturation, by which all rates are chosen, is above the bound."""
        assert self.saturation is not None
        above = self._above_bound(self.saturation)
        if above is not None and not self.settings.unchecked:
            raise RefusedError(f"{self.cell.name} at saturation: {above}")

    def _exceeds_bound(self, rate: Interval) -> bool:
        """Return True if all of the interval of a rate is above the bound."""
        bound = self._exact_bound()
        return bound is not None and rate.low is not None and rate.low > bound.iops

    def _above_bound(self, rate: Interval) -> str | None:
        """Return the refusal of a rate above the bound."""
        bound = self._exact_bound()
        if bound is None or rate.half is None:
            return None
        return audit_bound(
            rate.mean,
            bound.iops,
            bound.resource,
            half_fraction=rate.half / rate.mean,
        )

    @cached_property
    def _may_hit_caches(self) -> bool:
        """True if read caches may lift rates over the bound."""
        return may_hit_caches(self.scenario, self.cell, build_models(self.scenario))

    def _exact_bound(self) -> Bound | None:
        """Return the bound of random requests to full images, with cold caches. Others can be exceeded."""
        if self._may_hit_caches or has_streams(self.scenario, self.cell):
            return None
        if any(load.image == "pristine" for load in self.scenario.loads):
            return None
        return self.bound

    def _extend(self, shares: Sequence[float]) -> Batch:
        """Search further where open loops are steady past the closed loop, as sequential streams can be."""
        assert self.saturation is not None
        past = _PAST_PARTS[-1] * self.saturation.mean
        rate = yield from self._confirmed(shares, past)
        if rate.is_steady:
            yield from self._search(shares, past, 1.25 * past)

    def _search(self, shares: Sequence[float], low: float, high: float) -> Batch:
        """Bracket the highest steady rate between a steady rate, or 0, and a higher one."""
        is_bracketed = False
        highest: _Rate | None = None
        for _ in range(_SEARCH_STEPS_MAX):
            middle = high
            if is_bracketed:
                middle = (low + high) / 2
            # Long runs: a slow growth of the latency must show.
            rate = yield from self._confirmed(shares, middle, longer=_LONGER)
            if rate.is_steady:
                low = middle
                if not is_bracketed:
                    high = 1.5 * middle
                continue
            high = middle
            highest = rate
            is_bracketed = True
            if low and high < _BRACKET * low:
                break
        self.saturation = Interval((low + high) / 2, low, high)
        self.is_searched = True
        if highest is not None:
            self.limited_by = highest.measured[0].bottleneck

    def _simulate(self, shares: Sequence[float], per_s: float) -> Batch:
        """Add a rate to the curve."""
        assert self.saturation is not None
        if per_s >= self.saturation.mean:
            rate = yield from self._measure(shares, per_s, longer=_LONGER)
        else:
            # At least as long as at lower rates, where the latency settles sooner.
            below = [one.requests for one in self.rates if one.per_s < per_s]
            longer = max(below, default=self.requests) // self.requests
            rate = yield from self._measure(shares, per_s, longer=longer)
            while longer < _LONGER_MAX and not (rate.is_steady and rate.is_settled):
                longer *= _LONGER
                rate = yield from self._measure(shares, per_s, longer=longer)
            rate = yield from self._confirm(shares, rate)
        self.rates.append(rate)
        self.rates.sort(key=lambda one: one.per_s)
        self.new.append(NewPoint(self.curve(), self._point(rate)))

    def _narrow(self, shares: Sequence[float]) -> Batch:
        """Run all steady rates under further seeds, until their intervals are as narrow as asked.

        All rates have the same seeds, so that each seed has a knee of its own.
        """
        percent = self.interval_percent
        if percent is None:
            return
        # The first seeds are those of the curve and those that confirm a rate.
        first = 2 * self.settings.replications
        for seed in range(first, first + NARROW_RUNS_MAX - self.settings.replications):
            steady = self._steady_rates()
            if all(one.is_narrow(percent) for one in steady):
                break
            runs = [
                self._run(
                    seed,
                    rates_per_s=tuple(share * one.per_s for share in shares),
                    requests=one.requests,
                )
                for one in steady
            ]
            measured = yield from self._batch(runs)
            further = {
                rate.per_s: rate.with_further(own)
                for rate, own in zip(steady, measured, strict=True)
            }
            self.rates = [further.get(one.per_s, one) for one in self.rates]

    def _confirmed(
        self, shares: Sequence[float], per_s: float, *, longer: int = 1
    ) -> Generator[list[RateRun], list[RateMeasurement], _Rate]:
        """Run one rate, and confirm that it is not steady."""
        rate = yield from self._measure(shares, per_s, longer=longer)
        return (yield from self._confirm(shares, rate))

    def _confirm(
        self, shares: Sequence[float], rate: _Rate
    ) -> Generator[list[RateRun], list[RateMeasurement], _Rate]:
        """Return a rate that is not steady as it is under other seeds, if it is steady under those.

        By chance a latency may rise in all replications. One such rate would end the curve or the search.
        """
        if rate.is_steady:
            return rate
        longer = rate.requests // self.requests
        again = yield from self._measure(
            shares,
            rate.per_s,
            longer=longer,
            first_seed=self.settings.replications,
        )
        return again if again.is_steady else rate

    def _measure(
        self,
        shares: Sequence[float],
        per_s: float,
        *,
        longer: int = 1,
        first_seed: int = 0,
    ) -> Generator[list[RateRun], list[RateMeasurement], _Rate]:
        """Run all replications of one rate."""
        requests = longer * self.requests
        rates_per_s = tuple(share * per_s for share in shares)
        runs = [
            self._run(first_seed + number, rates_per_s=rates_per_s, requests=requests)
            for number in range(self.settings.replications)
        ]
        measured = yield from self._batch(runs)
        return _Rate(per_s, requests, tuple(measured))

    def _batch(
        self, runs: list[RateRun]
    ) -> Generator[list[RateRun], list[RateMeasurement], list[RateMeasurement]]:
        return (yield runs)

    def _closed(self, in_flight: int, number: int, *, longer: int = 1) -> RateRun:
        clients = self.scenario.workload.clients
        # Each client keeps a whole number of requests in flight.
        kept = -(-in_flight // clients) * clients
        rounds = _ROUNDS
        if len(self.scenario.workload.size_shares or ()) > 1:
            rounds = _ROUNDS_MIXED
        requests = max(_LONGER * self.requests, rounds * kept)
        return self._run(number, in_flight=in_flight, requests=longer * requests)

    def _run(
        self,
        number: int,
        *,
        rates_per_s: tuple[float, ...] = (),
        in_flight: int = 0,
        requests: int,
    ) -> RateRun:
        return RateRun(
            scenario=self.scenario.seeded(number),
            cell=self.cell,
            rates_per_s=rates_per_s,
            in_flight=in_flight,
            requests=requests,
            engine=self.settings.engine,
        )

    def _steady_rates(self) -> list[_Rate]:
        """Return the rates below saturation up to the first one without a steady latency."""
        assert self.saturation is not None
        steady = []
        for rate in self.rates:
            if rate.per_s >= self.saturation.mean or not rate.is_steady:
                break
            if rate.refused is None or self.settings.unchecked:
                steady.append(rate)
        return steady

    def _next_rate(self, saturation: float) -> float | None:
        """Return the middle of the gap to refine next, or None if the curve is fine everywhere."""
        steady = self._steady_rates()
        if not steady:
            return None
        powers = [log(rate.per_s / rate.mean_ns) for rate in steady]
        best = powers.index(max(powers))
        gaps = []
        for index, rate in enumerate(steady):
            after = next(one for one in self.rates if one.per_s > rate.per_s)
            end_per_s = min(after.per_s, saturation)
            width = (end_per_s - rate.per_s) / saturation
            rise = log(after.p99_ns / rate.p99_ns) + log(after.mean_ns / rate.mean_ns)
            score = 0.0
            if width > _WIDTH_MIN and rise > _RISE_MIN:
                score = rise
            crosses = any(
                rate.p99_ns <= bound_ns < after.p99_ns
                for bound_ns in self.p99_bounds_ns
            )
            # Before any gap that only rises, the one that is widest for its purpose.
            if width > _KNEE_WIDTH and index in (best - 1, best):
                score = _FIRST_SCORE + width / _KNEE_WIDTH
            if width > _BOUND_WIDTH and crosses:
                score = max(score, _FIRST_SCORE + width / _BOUND_WIDTH)
            gaps.append((score, (rate.per_s + end_per_s) / 2))
        score, middle = max(gaps)
        if not score:
            return None
        return middle

    def _point(self, rate: _Rate) -> LoadPoint:
        assert self.saturation is not None
        is_past = rate.per_s >= self.saturation.mean
        is_steady = rate.is_steady and not is_past
        measured = rate.measured

        def latency(values_ns: Sequence[float]) -> Interval:
            interval = student_interval(values_ns)
            if not is_steady or interval.low is None or interval.low <= 0:
                return Interval(interval.mean, None, None)
            return interval

        return LoadPoint(
            offered_iops=rate.offered_iops,
            iops=student_interval([one.iops for one in measured]),
            latency_mean_ns=latency([one.latency_mean_ns for one in measured]),
            latency_p50_ns=latency([one.latency_p50_ns for one in measured]),
            latency_p99_ns=latency([one.latency_p99_ns for one in measured]),
            is_past_saturation=is_past,
            is_steady=is_steady,
            requests=rate.requests,
            refused=rate.refused,
        )


def _rate_point(point: LoadPoint) -> RatePoint:
    name = f"{point.offered_iops:,.0f} offered"
    return RatePoint(name, point.iops.mean, point.iops.half or 0.0)


def _knee(steady: Sequence[_Rate]) -> Interval | None:
    """Return the knee of the mean latencies, with the interval of the replications' own knees."""
    knee = knee_of(
        [rate.offered_iops for rate in steady], [rate.mean_ns for rate in steady]
    )
    if knee is None:
        return None
    each = []
    for measured in zip(*(rate.measured for rate in steady), strict=True):
        own = knee_of(
            [one.offered_iops for one in measured],
            [one.latency_mean_ns for one in measured],
        )
        assert own is not None
        each.append(own)
    return _around(knee, each)


def _within(steady: Sequence[_Rate], bound_ns: float) -> RateWithin:
    """Return the highest rate within a bound, with the interval of the replications' own."""
    rates = [rate.offered_iops for rate in steady]
    latencies_ns = [rate.p99_ns for rate in steady]
    if not steady or latencies_ns[0] > bound_ns:
        return RateWithin(p99_ns=bound_ns, iops=None, is_saturation=False)
    crossing = rate_within(rates, latencies_ns, bound_ns)
    if crossing is None:
        highest = Interval(rates[-1], None, None)
        return RateWithin(p99_ns=bound_ns, iops=highest, is_saturation=True)
    each = [
        rate_within(
            [one.offered_iops for one in measured],
            [one.latency_p99_ns for one in measured],
            bound_ns,
        )
        for measured in zip(*(rate.measured for rate in steady), strict=True)
    ]
    known = [one for one in each if one is not None]
    interval = Interval(crossing, None, None)
    if len(known) == len(each):
        interval = _around(crossing, known)
    return RateWithin(p99_ns=bound_ns, iops=interval, is_saturation=False)


def _around(value: float, each: Sequence[float]) -> Interval:
    """Return a value with the interval of its replications, which have a slightly different mean."""
    interval = student_interval(each)
    if interval.low is None or interval.high is None:
        return Interval(value, None, None)
    low = max(0.0, value + interval.low - interval.mean)
    return Interval(value, low, value + interval.high - interval.mean)


def _rises(ratios: Sequence[float], limit: float) -> bool:
    """Return True if ratios exceed a limit on average, and 1 with confidence."""
    growth = student_interval([log(ratio) for ratio in ratios])
    return growth.mean > log(limit) and (growth.low is None or growth.low > 0)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
