"""Errors of durations of planned changes, and the intervals that they give."""

from importlib.resources import files
from math import exp, log, sqrt

import pytest

import stripesim.calibration.ledger
from stripesim.calibration.ledger.duration_errors import (
    FILE,
    DurationError,
    coverage,
    duration_errors,
    duration_errors_text,
    duration_interval,
)
from stripesim.scenarios.studies.changes.timed import claims_of_times, load_timed


def row(name, ratio, role="calibration"):
    return DurationError(name, role, ratio)


# Logarithms of -0.1, 0 and 0.1: mean 0, deviation 0.1.
THREE = [row("a", exp(-0.1)), row("b", 1.0), row("c", exp(0.1))]


def test_the_interval_is_student_s_of_the_logarithms_for_a_further_row():
    low_s, high_s = duration_interval(10.0, errors=THREE)
    # Within ± 1.886 lie 80 % of Student's t with 2 degrees of freedom.
    half = 1.8856 * 0.1 * sqrt(1 + 1 / 3)
    assert log(high_s / 10) == pytest.approx(half, rel=1e-4)
    assert low_s * high_s == pytest.approx(100)


def test_held_out_rows_take_no_part_and_the_simulation_s_own_interval_adds_in_squares():
    errors = [*THREE, row("d", 5.0, "held-out")]
    assert duration_interval(10.0, errors=errors) == duration_interval(10, errors=THREE)
    half = log(duration_interval(1.0, errors=THREE)[1])
    _, wider = duration_interval(1.0, half=0.3, errors=THREE)
    assert log(wider) == pytest.approx(sqrt(half**2 + log(1.3) ** 2))


def test_a_calibration_row_does_not_decide_its_own_interval():
    far = [*THREE, row("far", 3.0), row("near", 1.05, "held-out")]
    # Of "far" alone, the other three would have to hold log 3 = 1.1, eleven deviations off.
    counts = coverage(far)
    assert counts["held-out"] == {"rows": 1, "within": 1}
    assert counts["calibration"] == {"rows": 4, "within": 3}


def test_the_errors_that_ship_are_those_of_all_timed_changes():
    claims = {
        claim.id: claim.role
        for claim in claims_of_times(load_timed())
        if claim.metric == "time_until_clean_s"
    }
    assert {error.id: error.role for error in duration_errors()} == claims


def test_intervals_hold_four_of_five_on_the_release_that_gives_them():
    """All calibration changes are of 20.2.4."""
    newest = [error for error in duration_errors() if error.id.startswith("timed20:")]
    roles = [error.role for error in duration_errors()]
    assert [error.role for error in newest].count("calibration") == roles.count(
        "calibration"
    )
    counts = coverage(newest)["held-out"]
    assert counts["within"] / counts["rows"] >= 0.8


def test_intervals_hold_fewer_changes_of_older_releases_as_the_pages_say():
    """Seven of eight times outside are of 16.2.15: on a busy machine too short, on a quiet one too long."""
    counts = coverage(
        [
            error
            for error in duration_errors()
            if error.role == "calibration" or not error.id.startswith("timed20:")
        ]
    )
    assert counts["held-out"] == {"rows": 60, "within": 52}


def test_the_file_is_what_the_writer_writes():
    shipped = files(stripesim.calibration.ledger) / FILE
    assert duration_errors_text(duration_errors()) == shipped.read_text("utf-8")
