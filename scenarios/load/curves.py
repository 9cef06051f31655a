"""Simulate latency over throughput, from a tenth of saturation to past it.

A curve first finds the saturation of its cell, then simulates a few rates, and then refines where the curve
bends. Curves are independent, so that worker processes compute them side by side; each is a generator of
runs that receives their measurements.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import log
from typing import Final, NamedTuple

from stripesim.scenarios.cells.build import check_schemes
from stripesim.scenarios.cells.files import first_line
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.load.analysis import knee_of, rate_within
from stripesim.scenarios.load.rate_runs import (
    RateMeasurement,
    RateRun,
    measure_rate,
    scenario_of,
)
from stripesim.scenarios.planning.bound import Bound, bounds_of_cell
from stripesim.scenarios.schema.failure_checks import stands_alone
from stripesim.scenarios.schema.geometry import loads_with_keys
from stripesim.scenarios.schema.keys import Cell, Scenario, cells
from stripesim.scenarios.sweep.pool import Death, cores_usable, run_pool
from stripesim.sim.observe.intervals import Interval, student_interval

#: Largest number of curves of one scenario.
CURVES_MAX: Final = 24
#: Runs of each point, with different seeds.
REPLICATIONS: Final = 5
#: Points of one curve.
POINTS_MAX: Final = 14

# Rates that every curve has, as parts of saturation.
_FIRST_PARTS: Final = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95)
_PAST_PARTS: Final = (1.05, 1.25)

# Requests of one run: for each OSD, at least, and at most.
_REQUESTS_PER_OSD: Final = 250
_REQUESTS_MIN: Final = 6000
_REQUESTS_MAX: Final = 20_000
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
# Requests of a closed loop for each request in flight, at least.
_ROUNDS: Final = 12

# Part of the arrivals that a steady point serves, at least. The rest queues.
_SERVED_MIN: Final = 0.99
# Growth of the mean latency, and of the 99th percentile, from the first half of a window to the second one,
# above which a point has no steady state.
_GROWTH_MAX: Final = 1.15
_TAIL_GROWTH_MAX: Final = 1.3
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


@dataclass(frozen=True, kw_only=True)
class LoadPoint:
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
    """

    offered_iops: float
    iops: Interval
    latency_mean_ns: Interval
    latency_p50_ns: Interval
    latency_p99_ns: Interval
    is_past_saturation: bool
    is_steady: bool
    requests: int


@dataclass(frozen=True, kw_only=True)
class RateWithin:
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


@dataclass(frozen=True, kw_only=True)
class LoadCurve:
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
        steady points. See `stripesim.scenarios.load.analysis.knee_of`.
    within
        Highest rate within each latency bound.
    replications
        Runs of each point [count].
    option
        Index of its scenario, of several.
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
    option: int = 0


OnPoint = Callable[[LoadCurve, LoadPoint], None]


def load_curves(
    scenario: Scenario | Sequence[Scenario],
    *,
    seed: int | None = None,
    engine: str = "compiled",
    p99_bounds_s: Sequence[float] = (),
    replications: int = REPLICATIONS,
    requests: int | None = None,
    points_max: int = POINTS_MAX,
    jobs: int | None = None,
    on_point: OnPoint | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[LoadCurve]:
    """Simulate the load curve of each scheme and kind of request of a scenario.

    Parameters
    ----------
    scenario
        The scenario, or several to compare. Queue depth, rate and length are replaced: arrivals are Poisson
        at each rate. Several workloads keep their shares of the requests.
    seed
        Seed that replaces the scenario's. Replications add 0, 1, … to it, for all schemes alike.
    engine
        ``compiled`` or ``simpy``.
    p99_bounds_s
        Bounds of the 99th percentile [s] to find the highest rate for. That of ``[plan]`` is added.
    replications
        Runs of each point with different seeds [count], at least 2.
    requests
        Requests of each run [count]. Default: 6,000 to 20,000, by the number of OSDs. Runs near and past
        saturation have three times as many, or nine if the latency still rises.
    points_max
        Points of each curve [count].
    jobs
        Worker processes [count]. None uses all cores. 1 runs everything in this process.
    on_point
        Called in this process with the curve so far and its new point.
    should_stop
        Asked after each run. If it returns True, the curves so far are returned.

    Returns
    -------
    list of LoadCurve
        One for each cell of each scenario, in order; fewer if stopped.

    Raises
    ------
    ValueError
        If the scenario has no steady load (traces, faults, changes, repairs), too many cells, or a scheme
        does not fit on the cluster. The message names the key.
    """
    scenarios = [scenario] if isinstance(scenario, Scenario) else list(scenario)
    builders = []
    for option, asked in enumerate(scenarios):
        check_load(asked)
        seeded = asked
        if seed is not None:
            seeded = asked.model_copy(update={"seed": seed})
        check_schemes(seeded, build_models(seeded))
        settings = _Settings(
            option=option,
            engine=engine,
            p99_bounds_ns=_bounds_ns(seeded, p99_bounds_s),
            replications=replications,
            requests=requests or _requests_of(seeded),
            points_max=points_max,
            on_point=on_point or (lambda curve, point: None),
        )
        builders += [_CurveBuilder(seeded, cell, settings) for cell in cells(seeded)]
    _compute(builders, jobs or cores_usable(), should_stop or (lambda: False))
    return [builder.curve() for builder in builders if builder.is_begun]


def _bounds_ns(scenario: Scenario, p99_bounds_s: Sequence[float]) -> tuple[float, ...]:
    """Return the latency bounds [ns], with that of a plan."""
    bounds_s = set(p99_bounds_s)
    if scenario.plan is not None and scenario.plan.p99_ms is not None:
        bounds_s.add(scenario.plan.p99_ms / 1e3)
    return tuple(bound_s * 1e9 for bound_s in sorted(bounds_s))


def _requests_of(scenario: Scenario) -> int:
    """Return the requests of a run, more for a larger cluster."""
    wanted = _REQUESTS_PER_OSD * scenario.cluster.osd_count
    return min(_REQUESTS_MAX, max(_REQUESTS_MIN, wanted))


def check_load(scenario: Scenario) -> None:
    """Refuse a scenario without a load that can be simulated at any rate in a steady state.

    Raises
    ------
    ValueError
        With one line that names the key.
    """
    if stands_alone(scenario):
        raise scenario.problem("workload", "nothing", "a table [workload]")
    for place, load in loads_with_keys(scenario):
        if load.kind == "trace":
            wanted = (
                'closed or open: a trace has one rate; "stripesim sweep --over workload.speed=…" '
                "replays it faster"
            )
            raise scenario.problem(f"{place}.kind", "trace", wanted)
    wanted = (
        "none: a load curve needs a steady state; [degraded] keeps OSDs down throughout"
    )
    if scenario.faults is not None:
        raise scenario.problem("faults", "faults during the run", wanted)
    if scenario.repair is not None:
        raise scenario.problem("repair", "a rebuild during the run", wanted)
    if scenario.changes:
        raise scenario.problem("changes", "changes during the run", wanted)
    count = len(cells(scenario))
    if count > CURVES_MAX:
        wanted = (
            f"at most {CURVES_MAX}: fewer schemes, ops, patterns or block_sizes_bytes"
        )
        raise scenario.problem("workload", f"{count} curves", wanted)


class _Settings(NamedTuple):
    option: int
    engine: str
    p99_bounds_ns: tuple[float, ...]
    replications: int
    requests: int
    points_max: int
    on_point: OnPoint


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

    @property
    def is_steady(self) -> bool:
        """True unless the latency rises through the window, or arrivals are not served."""
        served = _mean([one.iops / one.offered_iops for one in self.measured])
        if served < _SERVED_MIN:
            return False
        rises = _rises([one.growth for one in self.measured], _GROWTH_MAX)
        tail_rises = _rises(
            [one.tail_growth for one in self.measured], _TAIL_GROWTH_MAX
        )
        return not (rises or tail_rises)


Batch = Generator[list[RateRun], list[RateMeasurement], None]


@dataclass
class _CurveBuilder:
    """Choose the rates of one curve."""

    scenario: Scenario
    cell: Cell
    settings: _Settings
    rates: list[_Rate] = field(default_factory=list)
    saturation: Interval | None = None
    is_searched: bool = False
    limited_by: str | None = None
    bound: Bound | None = None

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
            yield from self._saturate()
            yield from self._extend(shares)
        assert self.saturation is not None
        saturation = self.saturation.mean
        for part in (*_FIRST_PARTS, *_PAST_PARTS):
            yield from self._simulate(shares, part * saturation)
        while len(self.rates) < self.settings.points_max:
            per_s = self._next_rate(saturation)
            if per_s is None:
                return
            yield from self._simulate(shares, per_s)

    def curve(self) -> LoadCurve:
        """Return the curve so far."""
        assert self.saturation is not None
        steady = self._steady_rates()
        return LoadCurve(
            cell=self.cell,
            points=tuple(self._point(rate) for rate in self.rates),
            saturation_iops=self.saturation,
            is_searched=self.is_searched,
            limited_by=self.limited_by,
            bound=self.bound,
            knee_iops=_knee(steady),
            within=tuple(
                _within(steady, bound_ns) for bound_ns in self.settings.p99_bounds_ns
            ),
            replications=self.settings.replications,
            option=self.settings.option,
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

    def _saturate(self) -> Batch:
        """Find the rate of a closed loop with so many requests in flight that more do not help."""
        in_flight = _IN_FLIGHT_PER_OSD * self.scenario.cluster.osd_count
        in_flight = max(_IN_FLIGHT_MIN, min(in_flight, _IN_FLIGHT_MAX // 4))
        best = yield from self._batch([self._closed(in_flight, 0)])
        while 2 * in_flight <= _IN_FLIGHT_MAX:
            more = yield from self._batch([self._closed(2 * in_flight, 0)])
            gain = more[0].iops / best[0].iops
            if gain > 1:
                best = more
                in_flight *= 2
            if gain < _GAIN_MIN:
                break
        others = [
            self._closed(in_flight, number)
            for number in range(1, self.settings.replications)
        ]
        measured = best + (yield from self._batch(others))
        self.saturation = student_interval([one.iops for one in measured])
        self.limited_by = best[0].bottleneck

    def _extend(self, shares: Sequence[float]) -> Batch:
        """Search further where open loops are steady past the closed loop, as sequential streams can be."""
        assert self.saturation is not None
        past = _PAST_PARTS[-1] * self.saturation.mean
        rate = yield from self._measure(shares, past)
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
            rate = yield from self._measure(shares, middle, longer=_LONGER)
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
            longer = (
                max(below, default=self.settings.requests) // self.settings.requests
            )
            rate = yield from self._measure(shares, per_s, longer=longer)
            while not rate.is_steady and longer < _LONGER_MAX:
                longer *= _LONGER
                rate = yield from self._measure(shares, per_s, longer=longer)
        self.rates.append(rate)
        self.rates.sort(key=lambda one: one.per_s)
        self.settings.on_point(self.curve(), self._point(rate))

    def _measure(
        self, shares: Sequence[float], per_s: float, *, longer: int = 1
    ) -> Generator[list[RateRun], list[RateMeasurement], _Rate]:
        """Run all replications of one rate."""
        requests = longer * self.settings.requests
        rates_per_s = tuple(share * per_s for share in shares)
        runs = [
            self._run(number, rates_per_s=rates_per_s, requests=requests)
            for number in range(self.settings.replications)
        ]
        measured = yield from self._batch(runs)
        return _Rate(per_s, requests, tuple(measured))

    def _batch(
        self, runs: list[RateRun]
    ) -> Generator[list[RateRun], list[RateMeasurement], list[RateMeasurement]]:
        return (yield runs)

    def _closed(self, in_flight: int, number: int) -> RateRun:
        requests = max(_LONGER * self.settings.requests, _ROUNDS * in_flight)
        return self._run(number, in_flight=in_flight, requests=requests)

    def _run(
        self,
        number: int,
        *,
        rates_per_s: tuple[float, ...] = (),
        in_flight: int = 0,
        requests: int,
    ) -> RateRun:
        seed = self.scenario.seed + number
        return RateRun(
            scenario=self.scenario.model_copy(update={"seed": seed}),
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
                for bound_ns in self.settings.p99_bounds_ns
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
        )


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


class _Slot(NamedTuple):
    """A run with its curve, and its place in the batch that the curve waits for."""

    curve: int
    number: int
    run: RateRun


class _Failed(NamedTuple):
    """The text of an error, because not every exception can be sent between processes."""

    text: str


def _attempt(slot: _Slot) -> RateMeasurement | _Failed:
    try:
        return measure_rate(slot.run)
    except (ValueError, OSError) as error:
        return _Failed(str(error))
    except Exception as error:
        return _Failed(f"load: {type(error).__name__}: {first_line(error)}")


def _compute(
    builders: Sequence[_CurveBuilder], jobs: int, should_stop: Callable[[], bool]
) -> None:
    """Run the batches of all curves side by side until all are complete."""
    curves = [builder.runs() for builder in builders]
    waiting: deque[_Slot] = deque()
    pending: list[dict[int, RateMeasurement]] = [{} for _ in builders]
    sizes = [0] * len(builders)

    def queue(curve: int, batch: list[RateRun]) -> None:
        sizes[curve] = len(batch)
        pending[curve] = {}
        waiting.extend(_Slot(curve, number, run) for number, run in enumerate(batch))

    for index, runs in enumerate(curves):
        queue(index, next(runs))
    with closing(_answers(waiting, jobs)) as answers:
        for slot, answer in answers:
            if isinstance(answer, Death):
                raise ValueError(f"load: {answer.reason}")
            if isinstance(answer, _Failed):
                raise ValueError(answer.text)
            if should_stop():
                return
            measured = pending[slot.curve]
            measured[slot.number] = answer
            if len(measured) < sizes[slot.curve]:
                continue
            try:
                batch = curves[slot.curve].send(
                    [measured[number] for number in range(len(measured))]
                )
            except StopIteration:
                continue
            queue(slot.curve, batch)


def _answers(
    waiting: deque[_Slot], jobs: int
) -> Generator[tuple[_Slot, RateMeasurement | _Failed | Death], None, None]:
    """Yield measurements, in this process or from workers. The queue may grow meanwhile."""
    if jobs > 1:
        yield from run_pool(_attempt, waiting, jobs=jobs)
        return
    while waiting:
        slot = waiting.popleft()
        yield slot, _attempt(slot)
