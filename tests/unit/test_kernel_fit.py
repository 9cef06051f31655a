"""The fit finds the line and the knee it was given."""

import numpy as np
import pytest

from stripesim.calibration.kernels.cost_fit import (
    fit_affine,
    fit_rows,
    relative_residuals,
)
from stripesim.models.kernel.cost import AffineKnee

SIZES = np.array([24576.0 * 2**i for i in range(8)])


def durations_s(truth: AffineKnee, sizes: np.ndarray = SIZES) -> np.ndarray:
    return np.array([truth.duration_ns(x) for x in sizes]) / 1e9


def row(size: int, seconds: float, **changes: object) -> dict[str, object]:
    return {
        "backend": "b",
        "scheme": "rs:6,3",
        "op": "encode",
        "erasures": 0,
        "size_bytes": size,
        "seconds_median": seconds,
        "copy_seconds_median": seconds / 2,
        "verified": True,
    } | changes


def test_a_line_is_found_exactly_and_no_knee_invented() -> None:
    fit = fit_affine(SIZES, durations_s(AffineKnee(4000.0, 0.2)))
    assert fit.fixed_ns == pytest.approx(4000.0, rel=1e-6)
    assert fit.per_byte_ns == pytest.approx(0.2, rel=1e-6)
    # A numerically perfect line may have a knee between equal slopes. Only the duration matters.
    assert fit.duration_ns(10**7) == pytest.approx(2_004_000.0, rel=1e-3)


def test_noise_around_a_line_is_no_knee() -> None:
    # Given durations that are alternately 2 % above and below a line, so that a knee hardly improves the fit
    noise = np.where(np.arange(len(SIZES)) % 2, 0.98, 1.02)
    fit = fit_affine(SIZES, noise * durations_s(AffineKnee(4000.0, 0.2)))
    assert fit == AffineKnee(fit.fixed_ns, fit.per_byte_ns)
    assert fit.per_byte_ns == pytest.approx(0.2, rel=0.02)


def test_a_knee_is_found() -> None:
    truth = AffineKnee(2000.0, 0.1, 500_000.0, 0.4)
    fit = fit_affine(SIZES, durations_s(truth))
    assert fit.knee_bytes == pytest.approx(500_000.0, rel=0.02)
    assert fit.per_byte_beyond_ns == pytest.approx(0.4, rel=0.02)
    assert relative_residuals(fit, SIZES, durations_s(truth)).max() < 0.005


def test_noise_on_a_line_stays_within_its_amplitude() -> None:
    noise = 1 + 0.05 * np.random.default_rng(3).standard_normal(SIZES.size)
    seconds = durations_s(AffineKnee(3000.0, 0.15)) * noise
    assert relative_residuals(fit_affine(SIZES, seconds), SIZES, seconds).max() < 0.15


def test_few_points_get_no_knee() -> None:
    seconds = durations_s(AffineKnee(0.0, 0.1, 100_000.0, 1.0))
    assert np.isinf(fit_affine(SIZES[:5], seconds[:5]).knee_bytes)
    assert fit_affine([1000], [1e-6]) == AffineKnee(0.0, 1.0)


def test_coefficients_are_never_negative() -> None:
    fit = fit_affine([1000.0, 2000.0], [1e-6, 3e-6])
    assert fit.fixed_ns == 0.0
    assert fit.per_byte_ns > 0


def test_a_small_difference_is_fitted_relative_to_the_whole() -> None:
    whole = durations_s(AffineKnee(5000.0, 0.1))
    difference = durations_s(AffineKnee(500.0, 0.02))
    fit = fit_affine(SIZES, difference, relative_to_s=whole)
    assert fit.duration_ns(24576) == pytest.approx(500 + 0.02 * 24576, rel=1e-3)
    negative = fit_affine(SIZES, -difference, relative_to_s=whole)
    assert negative.duration_ns(10**6) == 0.0


def test_rows_become_one_cost_for_each_operation() -> None:
    rows = [row(1000, 1e-6), row(2000, 2e-6), row(1000, 3e-6, op="decode", erasures=1)]
    encode, decode = fit_rows(rows)
    assert (encode.op, encode.points, encode.size_min_bytes, encode.size_max_bytes) == (
        "encode",
        2,
        1000,
        2000,
    )
    assert encode.duration_ns(1500) == pytest.approx(1500.0)
    assert encode.arithmetic_ns(1500) == pytest.approx(750.0)
    assert encode.residual_max < 1e-9
    assert (decode.op, decode.erasures) == ("decode", 1)


def test_wrong_results_are_not_fitted() -> None:
    wrong = row(1000, 1e-6, verified=False)
    named = f"{wrong['scheme']}: {wrong['op']} of backend {wrong['backend']}: got"
    with pytest.raises(ValueError, match=named):
        fit_rows([wrong])


@pytest.mark.parametrize(
    ("sizes", "seconds", "wanted"),
    [
        ([], [], "wanted"),
        ([1, 2], [1.0], "wanted"),
        ([0], [1.0], "not positive"),
    ],
)
def test_bad_input_is_refused(
    sizes: list[float], seconds: list[float], wanted: str
) -> None:
    with pytest.raises(ValueError, match=wanted):
        fit_affine(sizes, seconds)
