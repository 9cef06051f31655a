"""Load curves: a queue with a known curve, adaptive points, bounds by hand, refusals."""

from dataclasses import replace
from itertools import pairwise
from math import exp, factorial, log

import pytest

from stripesim.scenarios.answers.load.analysis import knee_of, rate_within
from stripesim.scenarios.answers.load.answer import answer_of_load
from stripesim.scenarios.answers.load.curve_builder import (
    CurveBuilder,
    CurveSettings,
)
from stripesim.scenarios.answers.load.curves import (
    curve_builders,
    load_curves,
    new_points,
)
from stripesim.scenarios.answers.load.figure import load_figures
from stripesim.scenarios.answers.load.rate_runs import (
    RateMeasurement,
    RateRun,
    scenario_of,
)
from stripesim.scenarios.answers.load.words import (
    rounded_rate,
    sentence_of,
    table_of,
)
from stripesim.scenarios.cells.notes import client_notes
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario
from stripesim.scenarios.show.figures.specification import series_style
from support.messages import states

# Drives that serve one read at a time, each in exactly 1 ms.
MILLISECOND_DRIVES = """\
[cluster.drive_numbers]
channels = 1
read_base_ns = 1000000
read_ns_per_byte = 0
read_sigma = 0
"""
# With one of them and Poisson arrivals: M/D/1.
ONE_DRIVE = f"""\
schemes = ["none"]
[cluster]
hosts = 1
osds_per_host = 1
pg_num = 1
parameters = "kraken"
{MILLISECOND_DRIVES}
[workload]
ops = ["read"]
patterns = ["rand"]
requests = 1000
image_bytes = "64MiB"
"""
SERVICE_MS = 1.0
PER_S = 1000.0
# Half width of intervals that tests ask for.
ASKED_PERCENT = 20


@pytest.fixture(scope="module")
def queue_curve():
    """The load curve of the drive, with bounds of 2 and 5 ms."""
    scenario = parse_scenario(ONE_DRIVE)
    return load_curves(scenario, CurveSettings(p99_bounds_s=[0.002, 0.005]), jobs=1)[0]


def half_fraction(interval):
    return (interval.high - interval.low) / 2 / interval.mean


def test_points_run_until_their_intervals_are_as_narrow_as_asked(queue_curve):
    # Given five runs of each point, which leave the 99th percentile near saturation wider than ± 20 %.
    steady = [one for one in queue_curve.points if one.latency_p99_ns.low is not None]
    assert (
        max(half_fraction(one.latency_p99_ns) for one in steady) > ASKED_PERCENT / 100
    )

    scenario = parse_scenario(
        ONE_DRIVE, sets=[f"plan.interval_percent={ASKED_PERCENT}"]
    )
    curve = load_curves(scenario, CurveSettings(p99_bounds_s=[0.002, 0.005]), jobs=1)[0]

    steady = [one for one in curve.points if one.latency_p99_ns.low is not None]
    # The first seeds choose the same rates.
    assert [one.offered_iops for one in steady] == pytest.approx(
        [one.offered_iops for one in queue_curve.points[: len(steady)]], rel=0.05
    )
    assert 5 < curve.replications <= 50
    for point in steady:
        assert half_fraction(point.latency_p99_ns) <= ASKED_PERCENT / 100
        assert half_fraction(point.latency_mean_ns) <= ASKED_PERCENT / 100
    assert curve.knee_iops.low < curve.knee_iops.mean < curve.knee_iops.high
    assert not answer_of_load(scenario, [curve], CurveSettings()).warnings


def test_points_with_intervals_wider_than_asked_are_counted(queue_curve):
    steady = [one for one in queue_curve.points if one.latency_p99_ns.low is not None]
    wide = [
        one for one in steady if half_fraction(one.latency_p99_ns) > ASKED_PERCENT / 100
    ]
    assert wide

    scenario = parse_scenario(
        ONE_DRIVE, sets=[f"plan.interval_percent={ASKED_PERCENT}"]
    )
    answer = answer_of_load(scenario, [queue_curve], CurveSettings())

    (line,) = (line for line in answer.warnings if "interval_percent" in line)
    assert states(
        line,
        f"{len(wide)} of {len(steady)} ... plan.interval_percent ({ASKED_PERCENT})",
    )


def waits_at_most(rate, wait):
    """Return the probability that M/D/1 with a service time of 1 makes a request wait at most `wait`.

    Crommelin, "Delay probability formulae", 1933: (1 - r) sum over j up to t of
    (-r (t - j))^j / j! exp(r (t - j)).
    """
    terms = [
        (-rate * (wait - j)) ** j / factorial(j) * exp(rate * (wait - j))
        for j in range(int(wait) + 1)
    ]
    return (1 - rate) * sum(terms)


def p99_ms(rate):
    """Return the 99th percentile of latency of M/D/1 [ms], by bisection."""
    low = 0.0
    high = 30.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        if waits_at_most(rate, middle) < 0.99:
            low = middle
        else:
            high = middle
    return SERVICE_MS * (1 + low)


def test_the_knee_of_m_d_1_is_at_two_minus_the_root_of_two():
    # Given M/D/1 with a service time of 1: T = 1 + r / (2 (1 - r)), whose power r / T is highest where
    # r^2 - 4 r + 2 = 0, at r = 2 - sqrt(2) = 0.586.
    rates = [0.1, 0.3, 0.5, 0.55, 0.6, 0.65, 0.85, 0.95]

    knee = knee_of(rates, [1 + rate / (2 * (1 - rate)) for rate in rates])

    assert knee == pytest.approx(0.586, abs=0.005)


def test_a_latency_that_never_rises_has_its_knee_at_the_last_point():
    assert knee_of([10.0, 20.0, 30.0], [1.0, 1.0, 1.0]) == 30.0


def test_two_points_have_no_knee():
    assert knee_of([10.0, 20.0], [1.0, 2.0]) is None


def test_the_rate_within_a_bound_is_interpolated_in_the_logarithm():
    # From 2 ms at 1,000/s to 32 ms at 2,000/s the latency doubles four times. 4 ms is one doubling: 1,250/s.
    assert rate_within([1000.0, 2000.0], [2.0, 32.0], 4.0) == pytest.approx(1250.0)


def test_the_first_crossing_counts_where_a_latency_falls_again():
    rates = [1.0, 2.0, 3.0, 4.0]

    assert rate_within(rates, [1.0, 4.0, 1.0, 16.0], 2.0) == pytest.approx(1.5)


@pytest.mark.parametrize("bound", [0.5, 8.0])
def test_no_rate_is_within_a_bound_below_or_above_all_points(bound):
    assert rate_within([1.0, 2.0], [1.0, 4.0], bound) is None


def test_a_drive_of_one_millisecond_saturates_at_a_thousand_requests_a_second(
    queue_curve,
):
    saturation = queue_curve.saturation_iops

    assert saturation.mean == pytest.approx(PER_S, rel=1e-3)
    assert not queue_curve.is_searched
    assert queue_curve.limited_by == "ssd"
    assert queue_curve.bound.resource == "drives"
    assert saturation.mean <= queue_curve.bound.iops * 1.001


def test_a_saturation_above_the_bound_is_measured_over_a_longer_run():
    # Twelve rounds of 1,024 requests on these 12 OSDs serve a tenth more than the bound, because requests
    # pile up at the busiest OSD. Three times as many serve 4 % more, nine times as many 1 %.
    scenario = parse_scenario(
        """\
schemes = ["rep:3"]
[cluster]
hosts = 6
osds_per_host = 2
pg_num = 256
[workload]
ops = ["write"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
requests = 1000
"""
    )
    settings = CurveSettings(replications=3, requests=1000, points_max=1)
    (curve,) = load_curves(scenario, settings, jobs=1)

    assert 1.0 < curve.saturation_iops.mean / curve.bound.iops < 1.02


def test_the_saturation_of_an_object_store_is_not_above_the_bound_either():
    # At first, PUTs collect at the busiest OSD, and the others serve 10 % more than the bound. Without
    # patterns, a load on buckets was taken for a sequential one, which has no exact bound.
    scenario = parse_scenario(
        """\
schemes = ["rep:3"]
[cluster]
hosts = 6
osds_per_host = 2
pg_num = 64
[cluster.gateways]
count = 12
[workload]
kind = "s3"
ops = ["put"]
object_sizes_bytes = ["4k"]
objects = 100_000
buckets = 16
requests = 1000
"""
    )
    settings = CurveSettings(replications=2, requests=1000, points_max=1)
    (curve,) = load_curves(scenario, settings, jobs=1)

    assert 0.97 < curve.saturation_iops.mean / curve.bound.iops < 1.02


def test_the_simulated_knee_is_that_of_m_d_1(queue_curve):
    # 2 - sqrt(2) = 0.586 of saturation. The power there is within 1 % of its maximum from 0.54 to 0.63.
    knee = queue_curve.knee_iops

    assert knee.mean == pytest.approx(0.586 * PER_S, rel=0.05)
    assert knee.low < 0.586 * PER_S < knee.high


def test_latencies_are_those_of_m_d_1(queue_curve):
    # Up to 0.72 of saturation, where 5 runs of 4,800 requests know the percentile within a tenth.
    known = [point for point in queue_curve.points if point.offered_iops < 720]

    assert len(known) >= 6
    for point in known:
        expected = p99_ms(point.offered_iops / PER_S)
        assert point.latency_p99_ns.mean / 1e6 == pytest.approx(expected, rel=0.1)


def test_points_are_closest_at_the_knee_and_where_latency_grows(queue_curve):
    steady = [point for point in queue_curve.points if point.is_steady]
    rates = [point.offered_iops / PER_S for point in steady]
    powers = [point.offered_iops / point.latency_mean_ns.mean for point in steady]
    best = powers.index(max(powers))
    gaps = [after - before for before, after in pairwise(rates)]

    # The grid that every curve starts from has gaps of 0.2 there.
    assert max(gaps[best - 1], gaps[best]) < 0.08
    assert rates[0] == pytest.approx(0.1, rel=0.05)
    assert len(queue_curve.points) == 14


def test_the_rate_within_a_bound_follows_from_the_points_by_hand(queue_curve):
    document = queue_curve.to_json()
    bound = document["p99_bounds"][1]
    points = document["points"]
    before, after = next(
        (one, other)
        for one, other in pairwise(points)
        if one["latency_p99_ns"] <= 5e6 < other["latency_p99_ns"]
    )
    part = log(5e6 / before["latency_p99_ns"]) / log(
        after["latency_p99_ns"] / before["latency_p99_ns"]
    )
    gap = after["offered_iops"] - before["offered_iops"]

    assert bound["latency_p99_ns"] == 5e6
    assert bound["iops"] == pytest.approx(before["offered_iops"] + part * gap)
    assert bound["iops_low"] < bound["iops"] < bound["iops_high"]
    # M/D/1 reaches 5 ms at 0.557 of saturation.
    assert p99_ms(0.557) == pytest.approx(5.0, rel=0.01)
    assert bound["iops"] == pytest.approx(557, rel=0.03)


def test_points_past_saturation_are_marked_and_have_no_interval(queue_curve):
    past = [point for point in queue_curve.points if point.is_past_saturation]

    assert [point.offered_iops > PER_S for point in past] == [True, True]
    for point in past:
        assert not point.is_steady
        assert point.latency_p99_ns.low is None
        # The drive serves what it can.
        assert point.iops.mean == pytest.approx(PER_S, rel=0.01)


def test_past_saturation_a_longer_run_has_a_higher_latency():
    # At 1.25 of saturation the queue grows by 0.25 requests a millisecond: a run three times as long ends
    # with a queue three times as long.
    scenario = parse_scenario(ONE_DRIVE)
    settings = CurveSettings(replications=2, points_max=8)

    (few,) = load_curves(scenario, settings._replace(requests=1000), jobs=1)
    (many,) = load_curves(scenario, settings._replace(requests=3000), jobs=1)
    short, long = few.points[-1], many.points[-1]

    ratio = long.latency_p99_ns.mean / short.latency_p99_ns.mean
    assert ratio == pytest.approx(3, rel=0.2)


def test_a_curve_without_an_accepted_point_is_not_drawn(queue_curve):
    assert load_figures([replace(queue_curve, points=())]) == {}


def bound_labels(curve):
    """Return the place and the alignment of the text at each bound."""
    (figure,) = load_figures([curve]).values()
    texts = [layer for layer in figure.panels[0].layers if layer.mark == "text"]
    labels = [layer for layer in texts if layer.texts[0].startswith("≤ ")]
    return [(layer.x[0], layer.style["ha"]) for layer in labels]


def test_the_label_of_a_bound_is_inside_the_panel(queue_curve):
    # From an edge inwards: outwards, a figure of 3.5 inches cuts it off.
    assert set(bound_labels(queue_curve)) <= {(0, "left"), (1, "right")}


def test_the_label_of_a_bound_is_where_no_curve_is(queue_curve):
    # Given a curve that starts at 1 ms and then rises
    (bound, *_) = queue_curve.within
    (high,) = bound_labels(
        replace(queue_curve, within=(replace(bound, p99_ns=4_000_000),))
    )
    (low,) = bound_labels(
        replace(queue_curve, within=(replace(bound, p99_ns=1_050_000),))
    )
    assert (high, low) == ((0, "left"), (1, "right"))


def test_the_caption_says_what_rings_and_ticks_are(queue_curve):
    (figure,) = load_figures([queue_curve]).values()
    marks = {layer.style.get("marker") for layer in figure.panels[0].layers}
    # A ring at the knee, and a tick where the curve crosses the bound.
    assert {"o", "|"} <= marks
    knee = f"{rounded_rate(queue_curve.knee_iops.mean)}/s (one device)"
    for part in (f"knee at {knee}", "Rings", "Ticks", "Dotted"):
        assert part in figure.caption
    # Without a bound, there are no ticks.
    (unbounded,) = load_figures([replace(queue_curve, within=())]).values()
    assert "Ticks" not in unbounded.caption


def test_a_scheme_has_the_mark_that_other_figures_of_a_page_give_it(queue_curve):
    marks = ["rep:2", queue_curve.cell.scheme]
    (alone,) = load_figures([queue_curve]).values()
    (beside,) = load_figures([queue_curve], schemes=marks).values()
    for figure, number in ((alone, 0), (beside, 1)):
        line = figure.panels[0].layers[0]
        assert line.style["color"] == series_style(number)["color"]


def test_the_sentence_names_the_knee_the_saturation_and_the_bounds(queue_curve):
    sentence = sentence_of(queue_curve)

    for part in (
        "one device",
        "knee",
        "1,000 requests/s",
        "drives",
        "p99 ≤ 5 ms up to 5",
    ):
        assert part in sentence


def test_schemes_get_the_same_arrivals():
    # With one seed, arrivals at the same part of saturation differ only in their time scale. Points come
    # from the lowest rate on.
    small = {
        "schemes": ["rep:3", "rs:2,1"],
        "cluster.hosts": 4,
        "cluster.osds_per_host": 1,
    }
    scenario = load_scenario("quickstart", sets={"workload.ops": "read", **small})

    curves = load_curves(
        scenario, CurveSettings(replications=2, requests=400, points_max=1), jobs=1
    )

    parts = [
        curve.points[0].offered_iops / curve.saturation_iops.mean for curve in curves
    ]
    assert parts[0] == pytest.approx(parts[1], rel=1e-4)


TWINS = """\
schemes = ["rep:3"]
[cluster]
hosts = 4
osds_per_host = 2
pg_num = 64
[workload]
kind = "open"
ops = ["read"]
patterns = ["rand"]
requests = 500
image_bytes = "1GiB"
[[workloads]]
name = "one"
rate_per_s = 600
[[workloads]]
name = "other"
rate_per_s = 600
"""


def test_several_workloads_keep_their_shares():
    # Given three quarters and one quarter of the requests, when the rate becomes 8,000/s.
    scenario = parse_scenario(TWINS)
    run = RateRun(scenario, cells(scenario)[0], (6000.0, 2000.0), 0, 4000, "compiled")

    loads = scenario_of(run).loads

    assert [load.rate_per_s for load in loads] == [6000.0, 2000.0]
    assert [load.requests for load in loads] == [3000, 1000]


def test_a_search_with_several_workloads_finds_the_saturation_of_a_closed_loop():
    # Given two workloads that are alike, and one that is the same as both.
    several = parse_scenario(TWINS + MILLISECOND_DRIVES)
    alone = several.model_copy(
        update={
            "workloads": (),
            # The images of both, and a client for each.
            "workload": several.workload.model_copy(
                update={"clients": 2, "rate_per_s": 1200.0}
            ),
        }
    )
    # Reads of equal length leave the closed loop an interval of ± 5 %.
    settings = CurveSettings(replications=3, requests=4000, points_max=1)

    searched = load_curves(several, settings, jobs=1)[0]
    closed = load_curves(alone, settings, jobs=1)[0]

    assert searched.is_searched
    assert searched.saturation_iops.mean == pytest.approx(
        closed.saturation_iops.mean, rel=0.07
    )


def queue(offered, capacity_per_s, *, rises, refused=None):
    """Measure a queue of known capacity."""
    latency_ns = 1e6 / max(0.01, 1 - offered / capacity_per_s)
    return RateMeasurement(
        offered_iops=offered,
        iops=min(offered, capacity_per_s),
        latency_mean_ns=latency_ns,
        latency_p50_ns=latency_ns,
        latency_p99_ns=5 * latency_ns,
        growth=1.5 if rises else 1.0,
        tail_growth=1.0,
        bottleneck="ssd",
        refused=refused,
    )


def misjudged(run, *, capacity_per_s, first_seed):
    """Measure a queue whose latency seems to rise at each rate with the first two seeds."""
    offered = sum(run.rates_per_s) or capacity_per_s
    is_first = run.scenario.seed < first_seed + 2
    rises = offered >= capacity_per_s or (bool(run.rates_per_s) and is_first)
    return queue(offered, capacity_per_s, rises=rises)


def unsettled(run, *, settles_up_to, gain):
    """Measure a queue of 900 requests/s whose deep closed loops are refused, and serve a little more."""
    if run.rates_per_s:
        offered = sum(run.rates_per_s)
        return queue(offered, 900.0, rises=offered > 900.0)
    if run.in_flight <= settles_up_to:
        return queue(900.0, 900.0, rises=False)
    refused = "Little's law: got another number"
    return queue(900.0 * gain, 900.0 * gain, rises=False, refused=refused)


def curve_of(text, measure):
    """Return the curve that a function of a run measures."""
    scenario = parse_scenario(text)
    settings = CurveSettings(replications=2, requests=1000, points_max=12)
    builder = CurveBuilder(scenario, cells(scenario)[0], settings)
    batches = builder.runs()
    batch = next(batches)
    while True:
        measured = [measure(run) for run in batch]
        try:
            batch = batches.send(measured)
        except StopIteration:
            return builder.curve()


def misjudged_curve(text, capacity_per_s):
    """Return the curve of a queue of known capacity that is misjudged at each rate once."""
    first_seed = parse_scenario(text).seed
    return curve_of(
        text,
        lambda run: misjudged(
            run, capacity_per_s=capacity_per_s, first_seed=first_seed
        ),
    )


def test_a_rate_misjudged_once_does_not_end_a_curve():
    curve = misjudged_curve(ONE_DRIVE, PER_S)

    below = [point for point in curve.points if not point.is_past_saturation]
    assert len(below) >= 6
    assert all(point.is_steady for point in below)
    assert curve.knee_iops is not None


def slow_to_settle(run):
    """Measure a queue of 900 requests/s above half of which the latency grows in a run of 1,000 requests."""
    offered = sum(run.rates_per_s) or 900.0
    measured = queue(offered, 900.0, rises=offered > 900.0)
    if 450 < offered <= 900 and run.requests <= 1000:
        # By less than what would end the curve, and equally under both seeds but for a trace.
        growth = 1.1 + 0.001 * (run.scenario.seed % 2)
        return replace(measured, growth=growth)
    return measured


def test_a_point_whose_latency_still_grows_a_little_runs_for_longer():
    curve = curve_of(ONE_DRIVE, slow_to_settle)

    below = [point for point in curve.points if not point.is_past_saturation]
    assert all(point.is_steady for point in below)
    requests = {point.offered_iops <= 450: point.requests for point in below}
    assert requests == {True: 1000, False: 3000}


def test_a_rate_misjudged_once_does_not_end_the_search_for_saturation():
    # The search stops at a bracket of 2 %.
    curve = misjudged_curve(TWINS, 100 * PER_S)

    assert curve.is_searched
    assert curve.saturation_iops.mean == pytest.approx(100 * PER_S, rel=0.02)


def test_a_deeper_closed_loop_that_does_not_settle_is_not_taken_for_a_gain_within_one_percent():
    curve = curve_of(
        ONE_DRIVE, lambda run: unsettled(run, settles_up_to=512, gain=1.005)
    )

    assert not curve.is_searched
    assert curve.saturation_iops.mean == pytest.approx(900.0)


def test_open_loops_find_the_saturation_if_no_closed_loop_settles():
    curve = curve_of(ONE_DRIVE, lambda run: unsettled(run, settles_up_to=0, gain=1.0))

    assert curve.is_searched
    # The search stops at a bracket of 2 %.
    assert curve.saturation_iops.mean == pytest.approx(900.0, rel=0.02)


def test_a_closed_loop_at_the_bound_is_not_made_deeper():
    depths = set()

    def measure(run):
        depths.add(run.in_flight)
        measured = misjudged(run, capacity_per_s=PER_S, first_seed=0)
        # Half a per cent below the bound of one read per millisecond.
        return replace(measured, iops=0.995 * measured.iops)

    curve_of(ONE_DRIVE, measure)

    # Apart from open loops.
    assert depths - {0} == {512}


def test_both_engines_give_the_same_curve():
    scenario = parse_scenario(ONE_DRIVE)
    settings = CurveSettings(replications=2, requests=200, points_max=8)

    assert load_curves(
        scenario, settings._replace(engine="simpy"), jobs=1
    ) == load_curves(scenario, settings, jobs=1)


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("[[faults.events]]\nosds = [0]\nat_s = 1\n", "faults"),
        ("[repair]\nlost_osds = [0]\n", "repair"),
        ('[[changes]]\nkind = "out"\nosds = [0]\n', "changes"),
    ],
)
def test_a_scenario_without_a_steady_state_is_refused(more, key):
    shared = TWINS.partition("[[workloads]]")[0].replace('kind = "open"', "")
    scenario = parse_scenario(shared + more)

    with pytest.raises(ValueError, match=rf"^.*{key}: got .*, wanted "):
        load_curves(scenario)


def test_too_many_curves_are_refused():
    scenario = load_scenario("koh2017")

    with pytest.raises(ValueError, match="workload: got 96 curves, wanted at most 24"):
        load_curves(scenario)


def test_points_come_one_by_one_until_the_caller_stops():
    # Given a caller that stops after three points
    scenario = load_scenario("quickstart", sets=["workload.ops=read", "schemes=rep:3"])
    points = []
    (builder,) = curve_builders(scenario, CurveSettings(replications=2, requests=500))

    for new in new_points([builder], jobs=1, should_stop=lambda: len(points) >= 3):
        points.append(new.point)

    assert len(points) == 3
    assert builder.curve().points == tuple(points)


def test_progress_is_reported_before_the_first_point():
    # Runs that look for the saturation are the longest: of large objects, they take minutes.
    scenario = load_scenario("quickstart", sets=["workload.ops=read", "schemes=rep:3"])
    said = []

    (curve,) = load_curves(
        scenario,
        CurveSettings(replications=2, requests=500, points_max=8),
        jobs=1,
        progress=lambda words, total=None: said.append(words),
    )

    searched = [words for words in said if words == "rep:3: saturation"]
    # At least two loops of different depth, and their replications.
    assert len(searched) >= 3
    assert said[: len(searched)] == searched
    assert len(said) - len(searched) == len(curve.points)


def test_the_pool_answers_items_that_are_appended_while_it_works():
    # Covered by the curves of two workers: each batch depends on the answers to the one before.
    scenario = parse_scenario(
        ONE_DRIVE.replace("requests", "queue_depth = 1\nrequests")
    )
    settings = CurveSettings(replications=2, requests=300, points_max=9)

    alone = load_curves(scenario, settings, jobs=1)
    together = load_curves(scenario, settings, jobs=2)

    assert alone == together


WIRES = """\
schemes = ["rep:3"]
[cluster]
hosts = 4
osds_per_host = 2
pg_num = 256
public_gbit_per_s = 10.0
[workload]
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["256k"]
requests = 1000
image_bytes = "4GiB"
"""


@pytest.mark.parametrize("stated", [False, True])
def test_clients_limit_a_curve_only_where_they_are_stated(stated):
    # Given 10 Gb/s at each of four hosts: 1.25 GB/s at one client, and up to four times as much at none.
    sets = ["workload.clients=1"] if stated else []
    scenario = parse_scenario(WIRES, sets=sets)

    (curve,) = load_curves(
        scenario, CurveSettings(replications=2, requests=400, points_max=8), jobs=1
    )

    # Each frame of 1,448 bytes has 90 more on the wire.
    one_client_per_s = 1.25e9 / (2**18 * (1 + 90 / 1448))
    over_one_client = curve.saturation_iops.mean / one_client_per_s
    words = "limited by the network of the clients that you stated"
    if stated:
        assert over_one_client == pytest.approx(1, rel=0.05)
        assert words in sentence_of(curve)
        assert client_notes(scenario) == []
    else:
        assert 2 < over_one_client < 4
        assert "clients" not in sentence_of(curve)
        assert "states no clients" in client_notes(scenario)[0]


def test_curves_of_objects_state_bytes_per_second_as_well(queue_curve):
    # Given the same curve, as one of GETs of 1 MB.
    cell = queue_curve.cell._replace(op="get", block_size_bytes=1_000_000)
    of_objects = replace(queue_curve, cell=cell)
    rows = table_of(of_objects).rows
    columns = list(table_of(of_objects).columns)
    served = columns.index("served [1/s]")
    assert columns[served + 1] == "served [MB/s]"
    assert all(row[served] == row[served + 1] for row in rows)
    # 1,000 requests of 1 MB each second.
    assert "requests/s" in sentence_of(of_objects)
    assert "MB/s" in sentence_of(of_objects)
    assert "MB/s" not in sentence_of(queue_curve)
    assert "served [MB/s]" not in table_of(queue_curve).columns
