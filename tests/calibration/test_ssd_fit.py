"""The SSD fit finds known parameters again, and keeps its stated error on the half it never saw."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from stripesim.calibration.ssd import line as line_module
from stripesim.calibration.ssd.concurrency import fit_concurrency
from stripesim.calibration.ssd.interference import times_alone
from stripesim.calibration.ssd.line import fit_line
from stripesim.calibration.ssd.time_fit import factor_table, fit_times, model_times
from stripesim.models.problems import TraceError
from stripesim.scenarios.show.figures.screen import screen_files
from stripesim.scenarios.show.figures.service_fit import draw_fit
from stripesim.traces import COMMAND_SCHEMA, REQUEST_SCHEMA, BlockTrace, read_trace

DATA = Path(__file__).resolve().parents[2].parent / "shared/data/block-traces"
REAL = DATA / "blkparse_evelii_nvme_read.txt.gz"
needs_data = pytest.mark.skipif(
    not REAL.is_file(),
    reason=f"real trace {REAL.name} is missing next to the repository",
)


def trace_of(start: np.ndarray, end: np.ndarray, size: np.ndarray) -> BlockTrace:
    rows = [
        (int(s), int(e), "259,0", 0, int(z), False)
        for s, e, z in zip(start, end, size, strict=True)
    ]
    commands = pl.DataFrame(rows, schema=COMMAND_SCHEMA, orient="row").sort(
        "dispatch_ns"
    )
    requests = commands.with_columns(pl.col("dispatch_ns").alias("issue_ns")).select(
        REQUEST_SCHEMA.keys()
    )
    return BlockTrace(requests, commands, "blkparse", "made")


def queue(
    rng: np.random.Generator, *, servers: int, service_ns: np.ndarray, gap_ns: float
) -> tuple[np.ndarray, np.ndarray]:
    """Poisson arrivals at a device of equal servers, first come first served: starts and ends."""
    arrival = np.cumsum(rng.exponential(gap_ns, len(service_ns)))
    free = np.zeros(servers)
    end = np.empty(len(service_ns))
    for index, (at, takes) in enumerate(zip(arrival, service_ns, strict=True)):
        server = int(np.argmin(free))
        free[server] = end[index] = max(at, free[server]) + takes
    return arrival, end


def made(seed: int = 3, count: int = 3000) -> BlockTrace:
    rng = np.random.default_rng(seed)
    size = rng.choice([4096, 16384, 65536, 131072], count)
    factor = rng.lognormal(-(0.3**2) / 2, 0.3, count)
    times = (90_000 + 0.5 * size) * factor
    start = np.cumsum(rng.exponential(400_000, count))
    return trace_of(start, start + times, size)


def test_known_line_and_distribution_are_found() -> None:
    fit = fit_times(made(), bootstrap=60)
    # Within the interval, and the interval narrow enough to mean something.
    assert fit.line.base_ns_ci95[0] <= 90_000 <= fit.line.base_ns_ci95[1]
    assert fit.line.ns_per_byte_ci95[0] <= 0.5 <= fit.line.ns_per_byte_ci95[1]
    assert np.ptp(fit.line.base_ns_ci95) < 10_000
    assert np.ptp(fit.line.ns_per_byte_ci95) < 0.15
    assert np.mean(fit.factor_table) == pytest.approx(1, abs=1e-12)
    assert np.std(np.log(fit.factor_table)) == pytest.approx(0.3, rel=0.1)
    lognormal, gamma = fit.candidates
    assert lognormal.aic < gamma.aic
    assert lognormal.shape == pytest.approx(0.3, rel=0.1)
    # The held-out half is a fresh draw of the model: it stays below twice the 5 % point.
    assert fit.held_out.ks < 2 * fit.held_out.ks_critical_5_percent
    assert abs(fit.held_out.mean_error) < 0.03


def test_an_outlier_moves_the_mean_but_not_the_slope() -> None:
    base = made()
    assert base.commands is not None
    late = base.commands.with_columns(
        pl.when(pl.int_range(pl.len()) == 5)
        .then(pl.col("complete_ns") + 50_000_000)
        .otherwise("complete_ns")
        .alias("complete_ns")
    )
    clean, spoiled = (
        fit_times(base, bootstrap=20),
        fit_times(BlockTrace(base.requests, late, "blkparse", "made"), bootstrap=20),
    )
    ratio = (
        spoiled.line.ns_per_byte
        / spoiled.line.base_ns
        / (clean.line.ns_per_byte / clean.line.base_ns)
    )
    assert ratio == pytest.approx(1, abs=0.02)
    assert spoiled.slowest_share > 0.1 > clean.slowest_share


def test_a_drift_between_the_halves_shows_in_the_held_out_score_only() -> None:
    base = made()
    assert base.commands is not None
    span = pl.col("complete_ns") - pl.col("dispatch_ns")
    slower = base.commands.with_columns(
        (
            pl.col("dispatch_ns")
            + span * pl.when(pl.int_range(pl.len()) >= 1500).then(2).otherwise(1)
        ).alias("complete_ns")
    )
    fit = fit_times(BlockTrace(base.requests, slower, "blkparse", "made"), bootstrap=20)
    assert fit.train.ks < 0.02
    assert fit.held_out.ks > 0.5
    assert fit.held_out.mean_error == pytest.approx(-0.5, abs=0.03)


@pytest.mark.parametrize("servers", [1, 2, 4])
def test_channels_of_a_known_queue_are_found(servers: int) -> None:
    rng = np.random.default_rng(servers)
    service = rng.exponential(100_000, 6000)
    start, end = queue(
        rng, servers=servers, service_ns=service, gap_ns=100_000 / servers / 0.8
    )
    found = fit_concurrency(trace_of(start, end, np.full(6000, 4096)))
    assert found.channels is not None
    assert found.channels_ci95 is not None
    # A 95 % interval may miss, but an error of half a channel may not occur.
    assert found.channels == pytest.approx(servers, abs=0.5)
    assert found.channels_ci95[0] <= found.channels <= found.channels_ci95[1]
    # Over seeds the estimate has a standard deviation of 2.5 %, and no bias: four of them.
    assert found.service_ns == pytest.approx(100_000, rel=0.1)
    assert sum(found.level_completions) == 6000
    # Little's law on the device: time-average in flight = completions x mean time in the device / span.
    in_flight = sum(level * s for level, s in enumerate(found.level_seconds, 1))
    assert in_flight == pytest.approx(
        float((end - start).astype(np.int64).sum()) / 1e9, rel=1e-4
    )


@pytest.mark.parametrize(
    ("servers", "spread", "load"),
    [(1, 0.1, 0.2), (1, 0.5, 0.5), (2, 0.1, 0.3), (4, 0.5, 0.7)],
)
def test_channels_are_found_whatever_the_spread_of_times(
    servers: int, spread: float, load: float
) -> None:
    # With times that hardly vary, completions per level are no Poisson process: taken as one, they show
    # 1.8 servers for one and 2.7 to 5 for two.
    covered = 0
    estimates = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sigma = np.sqrt(np.log(1 + spread**2))
        service = 100_000 * rng.lognormal(-(sigma**2) / 2, sigma, 3000)
        start, end = queue(
            rng, servers=servers, service_ns=service, gap_ns=100_000 / servers / load
        )
        found = fit_concurrency(trace_of(start, end, np.full(3000, 4096)))
        assert found.channels is not None
        assert found.channels_ci95 is not None
        estimates.append(found.channels)
        low, high = found.channels_ci95
        covered += low <= servers + 1e-6 and servers <= high
    # Of 20 intervals of 95 %, 16 or fewer cover once in 60 sets of seeds. These are fixed.
    assert covered >= 17
    assert np.median(estimates) == pytest.approx(servers, rel=0.1)


def test_times_alone_are_no_selection_of_short_ones() -> None:
    # The longer a command takes, the more likely another comes meanwhile. Those that no other joined
    # are shorter: with exponential times at half load, 1 / (1 + 0.5) of the mean.
    rng = np.random.default_rng(5)
    service = rng.exponential(100_000, 6000)
    start, end = queue(rng, servers=2, service_ns=service, gap_ns=100_000)
    fit = fit_times(trace_of(start, end, np.full(6000, 4096)), bootstrap=20)
    assert fit.isolated_line is not None
    assert fit.isolated_line.base_ns == pytest.approx(100_000, rel=0.08)
    assert fit.isolated_factors is not None
    # Spread of an exponential distribution, without the waits of the others.
    assert np.std(fit.isolated_factors) == pytest.approx(1, abs=0.1)


def test_a_command_beside_one_that_never_completes_is_not_alone() -> None:
    # Given one command every 100 ns that takes 50 ns, of which the third never completes
    rows = [
        (100 * number, 100 * number + 50, "8,0", 0, 4096, False) for number in range(5)
    ]
    rows[2] = (200, None, "8,0", 0, 4096, False)
    commands = pl.DataFrame(rows, schema=COMMAND_SCHEMA, orient="row")

    sizes, times_ns = times_alone(commands, is_write=False)

    # Then only the two before it found the drive idle and completed.
    assert (sizes.tolist(), times_ns.tolist()) == ([4096, 4096], [50, 50])


def test_no_overlap_no_channels() -> None:
    start = np.arange(100) * 1_000_000
    found = fit_concurrency(trace_of(start, start + 100_000, np.full(100, 4096)))
    assert found.channels is None
    assert found.in_flight_max == 1
    assert found.busy_share == pytest.approx(0.1, rel=0.01)


def test_one_size_leaves_the_slope_open() -> None:
    start = np.arange(200) * 1_000_000
    fit = fit_times(
        trace_of(start, start + 100_000 + np.arange(200), np.full(200, 4096)),
        bootstrap=20,
    )
    assert not fit.line.slope_identified
    assert fit.line.ns_per_byte == 0


def test_the_table_keeps_the_mean() -> None:
    factor = np.random.default_rng(0).pareto(2.5, 1000) + 0.1
    table = factor_table(factor) * factor.mean()
    assert table.mean() == pytest.approx(factor.mean(), rel=1e-12)
    assert np.all(np.diff(table) >= 0)


def test_the_distribution_of_the_model_is_that_of_every_factor_at_every_size() -> None:
    rng = np.random.default_rng(2)
    size = rng.choice([4096, 16384, 131072], 500)
    line = fit_times(made(), bootstrap=20).line
    table = factor_table(rng.lognormal(0, 0.4, 1000), 256)
    times = line.mean_ns(size) * rng.lognormal(0, 0.5, 500)
    model = model_times(line, table, size)
    # The long way: a time for each of 500 sizes and 256 factors.
    listed = np.sort(np.outer(line.mean_ns(size), table), axis=None)
    assert model.mean_ns == pytest.approx(listed.mean())
    levels = [0.01, 0.5, 0.9, 0.99, 1.0]
    wanted = np.quantile(listed, levels, method="inverted_cdf")
    assert model.quantile_ns(levels) == pytest.approx(wanted)
    wanted = stats.ks_2samp(times, listed, method="asymp").statistic
    assert model.distance(times) == pytest.approx(wanted)


def test_intervals_of_long_traces_are_scaled_from_shorter_resamplings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(4)
    size = rng.choice([4096.0, 131072.0], 4000)
    times = (90_000 + 0.5 * size) * rng.lognormal(-0.02, 0.2, 4000)
    whole = fit_line(size, times, 1, 200)
    monkeypatch.setattr(line_module, "_ROWS_MAX", 1000)
    quarter = fit_line(size, times, 1, 200)
    assert quarter.base_ns == whole.base_ns
    # Unscaled, a quarter of the rows would give twice the width. 200 resamplings give it to about a tenth.
    ratio = np.ptp(quarter.base_ns_ci95) / np.ptp(whole.base_ns_ci95)
    assert ratio == pytest.approx(1, abs=0.3)


def test_same_seed_same_fit() -> None:
    assert fit_times(made(), bootstrap=20) == fit_times(made(), bootstrap=20)


def test_impossible_fits_are_reported() -> None:
    few = made(count=30)
    with pytest.raises(
        TraceError,
        match=r"^made: got 30 completed reads.*64\b",
    ):
        fit_times(few)
    with pytest.raises(TraceError, match="got 0 completed writes"):
        fit_times(made(), operation="write")
    with pytest.raises(TraceError, match=r"bootstrap: got 3.*20\b"):
        fit_times(made(), bootstrap=3)


def test_times_of_zero_are_left_out_and_counted() -> None:
    """A clock of 1 ms records exponential times of 1 ms, cut to whole ticks: 1 - 1/e of them are 0."""
    rng = np.random.default_rng(8)
    start = np.arange(2000) * 10_000_000
    ticks = np.floor(rng.exponential(1, 2000)).astype(np.int64)
    trace = trace_of(start, start + ticks * 1_000_000, np.full(2000, 4096))
    fit = fit_times(trace, quantity="response", bootstrap=20)
    assert fit.zeros == pytest.approx(2000 * (1 - np.exp(-1)), rel=0.05)
    assert fit.zeros + fit.train.commands + fit.held_out.commands == 2000
    # Those that are left have a mean of 1 / (1 - 1/e) = 1.58 ticks, all of them 0.58.
    assert fit.line.mean_ns(np.array([4096.0]))[0] == pytest.approx(1.58e6, rel=0.1)
    assert f"{fit.zeros} of 2000 times are 0" in fit.summary()


@needs_data
def test_response_times_are_not_taken_for_service_times() -> None:
    trace = read_trace(DATA / "msr-cambridge1-sample.csv")
    with pytest.raises(TraceError, match="service times"):
        fit_times(trace)
    fit = fit_times(trace, operation="read", quantity="response", bootstrap=20)
    assert fit.quantity == "response"
    assert fit.concurrency is None
    assert fit.isolated_line is None
    assert fit.train.commands + fit.held_out.commands == 508


@needs_data
def test_nvme_reads_held_out_error_stays_inside_its_stated_bound() -> None:
    trace = read_trace(REAL, strict=True)
    fit = fit_times(trace)
    assert fit.train.commands == fit.held_out.commands == 847
    # Measured: KS 0.092, p50 -4.0 %, p90 -4.6 %, mean +11.4 % (one 13 ms read, 9 % of the first half's
    # mean, has no like in the second half). The bounds leave a quarter for other versions of the optimiser.
    assert fit.held_out.ks < 0.115
    assert abs(fit.held_out.p50_error) < 0.05
    assert abs(fit.held_out.p90_error) < 0.06
    assert abs(fit.held_out.mean_error) < 0.145
    assert fit.slowest_share == pytest.approx(0.0912, abs=0.001)
    assert fit.train.ks < 0.01
    # The table beats both parametric families on data none of them saw.
    assert fit.held_out.ks < min(candidate.ks_held_out for candidate in fit.candidates)
    assert fit.concurrency is not None
    assert fit.concurrency.channels == pytest.approx(2.57, abs=0.1)
    plain = json.loads(json.dumps(fit.to_json()))
    assert plain["provenance"]["source"] == REAL.name
    assert len(plain["factor_table"]) == 256
    pictures = screen_files("fit", draw_fit(fit, trace).figure)
    assert pictures["fit.svg"].count(b"<svg") == 1
    assert pictures["fit.png"].startswith(b"\x89PNG")


def slowed(factor: float) -> BlockTrace:
    """Return a trace whose second half is slower by `factor`."""
    trace = made()
    assert trace.commands is not None
    late = pl.int_range(pl.len()) >= trace.commands.height // 2
    taken = pl.col("complete_ns") - pl.col("dispatch_ns")
    slower = (pl.col("dispatch_ns") + taken * factor).cast(pl.Int64)
    return BlockTrace(
        trace.requests,
        trace.commands.with_columns(
            complete_ns=pl.when(late).then(slower).otherwise("complete_ns")
        ),
        "blkparse",
        "made",
    )


def test_a_fit_that_misses_the_unseen_half_is_called_poor() -> None:
    # The model is of the first half: against twice its times it is 1/2 - 1 = 50 % too low.
    poor = fit_times(slowed(2), bootstrap=20)
    words = poor.held_out.poor()
    assert words is not None
    assert "poor fit: mean is 5" in words
    assert "too low" in words
    assert words in poor.summary()
    assert poor.to_json()["poor"] == words
    good = fit_times(made(), bootstrap=20)
    assert good.held_out.poor() is None
    assert "poor" not in good.summary()


def test_every_estimate_is_inside_its_interval() -> None:
    # Heavy tails and two sizes: the bootstrap's percentiles need not contain the estimate.
    for seed in range(6):
        rng = np.random.default_rng(seed)
        size = rng.choice([4096, 131072], 150, p=[0.97, 0.03])
        times = 90_000 * rng.pareto(1.1, 150) + 20_000
        start = np.cumsum(rng.exponential(400_000, 150))
        line = fit_times(trace_of(start, start + times, size), bootstrap=20).line
        assert line.base_ns_ci95[0] <= line.base_ns <= line.base_ns_ci95[1]
        low, high = line.ns_per_byte_ci95
        assert low <= line.ns_per_byte <= high
