"""A calibration states its error by utilisation, the noise of repeats, and what a further run would gain."""

import numpy as np
import pytest

from stripesim.calibration.fitting import fit_parameters
from stripesim.scenarios.answers.calibrate.accuracy import (
    JudgedValue,
    error_lines,
    left_out,
    repeat_noise,
)
from stripesim.scenarios.answers.calibrate.calibrate import gains_of
from stripesim.scenarios.answers.calibrate.rows import CalibrationRow


def value(
    number, ratio, *, role="held-out", metric="iops", utilisation=0.9, alone=None
):
    """Return a judged value: 100 measured, and `ratio` times as much simulated."""
    return JudgedValue(
        id=f"r{number}:{metric}",
        role=role,
        metric=metric,
        load="",
        measured=100.0,
        before=200.0,
        after=100.0 * ratio,
        utilisation=utilisation,
        left_out=alone,
    )


def row(name, measured, **more):
    """Return a measured row of one load."""
    keys = {"op": "read", "queue_depth": 1, **more}
    return CalibrationRow(
        id=name, role="held-out", scheme="rep:3", pattern="rand", block_bytes=4096,
        clients=1, measured=measured, **keys,
    )  # fmt: skip


def test_errors_are_those_of_held_out_values_by_kind_and_band():
    lines = error_lines(
        [
            value(1, 1.1),
            value(2, 0.5),
            value(3, 1.2, utilisation=0.3),
            value(4, 1.3, metric="latency_p99_ms"),
            value(5, 9.0, role="calibration", alone=900.0),
        ]
    )
    said = {
        (line.kind, line.band): (line.values, line.within_25_percent) for line in lines
    }
    assert said == {
        ("rate", "above 80 %"): (2, 1),
        ("rate", "below 50 %"): (1, 1),
        ("p99", "above 80 %"): (1, 0),
    }
    assert {line.basis for line in lines} == {"held-out"}
    high = next(line for line in lines if line.values == 2)
    # Errors of 10 and 50 %, and of 100 % before.
    assert high.median_error_percent == pytest.approx(30)
    assert high.median_error_percent_before == pytest.approx(100)


def test_without_held_out_values_each_fitted_one_is_left_out():
    (line,) = error_lines(
        [
            value(1, 1.0, role="calibration", alone=120.0),
            value(2, 1.0, role="calibration"),
        ]
    )
    assert (line.basis, line.values) == ("leave-one-out", 1)
    assert line.median_error_percent == pytest.approx(20)


def test_a_row_left_out_is_predicted_as_a_fit_without_it_would():
    # given: one factor, with a value proportional to it, and three rows
    published = {"a": 100.0, "b": 120.0, "c": 90.0}

    def fit(rows):
        return fit_parameters(
            lambda values: dict.fromkeys(rows, 100.0 * values["factor"]),
            start={"factor": 1.0},
            published={name: published[name] for name in rows},
            tolerance=dict.fromkeys(rows, 0.2),
        )

    whole = fit(("a", "b", "c"))
    without = fit(("a", "c"))
    # when
    simulated = 100.0 * whole.parameters[0].value
    alone = left_out(published["b"], simulated, whole.leverages["b"])
    # then: a row decides a third of a mean of three
    assert whole.leverages["b"] == pytest.approx(1 / 3, rel=1e-3)
    assert alone == pytest.approx(100.0 * without.parameters[0].value, rel=1e-3)


def test_repeats_of_one_load_give_its_noise():
    rows = [
        row("a", {"iops": 90.0}),
        row("b", {"iops": 110.0}),
        row("c", {"iops": 500.0}, queue_depth=16),
        # Reads and writes of one mixed load, and runs under different limits
        row("d", {"iops": 1.0}, op="mixed", part="read"),
        row("e", {"iops": 9.0}, op="mixed", part="write"),
        row("f", {"iops": 2.0}, op="write", run=(2.0,)),
        row("g", {"iops": 4.0}, op="write", run=(4.0,)),
    ]
    (noise,) = repeat_noise(rows)
    # The standard deviation of 90 and 110 is 10 √2, over a mean of 100.
    assert (noise.kind, noise.loads) == ("rate", 1)
    assert noise.noise_percent == pytest.approx(10 * 2**0.5)


def test_the_gain_of_a_run_is_that_of_one_more_measurement():
    # given: a factor known to 0.2, as a row is, and three that the rate does not depend on
    covariance = np.diag([0.04, 0.09, 0.01, 0.25])
    names = ("processor", "drive", "network", "client")
    gains = gains_of(names, np.array([1.0, 0.0, 0.0, 0.0]), covariance)
    # then: two equal measurements have 1/√2 of the deviation of one
    assert gains[0].factor == "processor"
    assert gains[0].spread_before == pytest.approx(0.2)
    assert gains[0].spread_after == pytest.approx(0.2 / 2**0.5)
    assert all(one.spread_after == one.spread_before for one in gains[1:])


def test_a_latency_is_fitted_at_low_load_and_a_rate_at_high_load():
    both = row("a", {"iops": 1000.0, "latency_mean_ms": 1.0})
    assert both.fitted_at(0.2) == "latency_mean_ms"
    assert both.fitted_at(0.5) == "iops"
    assert row("b", {"iops": 1000.0}).fitted_at(0.2) == "iops"


def test_runs_of_a_mixed_load_are_repeats_of_its_parts():
    # Given the 99th percentiles of writes in two runs of 32 machines, and of reads in one of them
    parts = [("write", 384.0), ("read", 283.116), ("write", 263.193)]
    rows = [
        row(
            str(number),
            {"latency_p99_ms": p99},
            op="mixed",
            part=part,
            read_fraction=0.7,
        )
        for number, (part, p99) in enumerate(parts)
    ]
    (noise,) = repeat_noise(rows)
    # The standard deviation of two values is their difference over √2: 120.8 / 1.414 = 85.4, over 323.6.
    assert (noise.kind, noise.loads) == ("p99", 1)
    assert noise.noise_percent == pytest.approx(26.4, abs=0.05)
    assert rows[0].load_text == "rep:3 70 % reads 4 KiB rand, 1 × 1, writes"
