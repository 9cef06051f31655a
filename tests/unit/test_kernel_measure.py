"""Measuring: rows, verification and errors, but not the duration of a call."""

from typing import Any

import pytest

from stripesim.calibration.kernels import measure as kernel
from stripesim.calibration.kernels.codec import Codec, available_backends
from stripesim.calibration.kernels.cost_fit import fit_rows
from stripesim.calibration.kernels.malloc import malloc_effect
from stripesim.calibration.kernels.measure import measure
from stripesim.models.problems import KernelError, SchemeError

needs_isa_l = pytest.mark.skipif(
    "isa_l_rs_cauchy" not in available_backends(),
    reason="pyeclib with isa_l_rs_cauchy is not installed",
)
KEYS = {
    "backend",
    "scheme",
    "op",
    "erasures",
    "size_bytes",
    "seconds_median",
    "seconds_p10",
    "seconds_p90",
    "bytes_per_s",
    "copy_seconds_median",
    "verified",
}


@needs_isa_l
def test_rows_hold_every_operation_verified() -> None:
    rows = measure(
        ["rs:4,2"],
        [4096, 10000],
        ["isa_l_rs_cauchy"],
        rounds=3,
        sample_s=0.0,
        tune_malloc=False,
    )
    assert [(r["size_bytes"], r["op"], r["erasures"]) for r in rows] == [
        (size, op, erasures)
        for size in (4096, 10000)
        for op, erasures in (
            ("encode", 0),
            ("decode", 0),
            ("decode", 1),
            ("decode", 2),
            ("reconstruct", 1),
        )
    ]
    for r in rows:
        assert set(r) == KEYS
        assert r["verified"] is True
        assert 0 < r["seconds_p10"] <= r["seconds_median"] <= r["seconds_p90"]
        assert r["bytes_per_s"] == pytest.approx(r["size_bytes"] / r["seconds_median"])
        assert r["copy_seconds_median"] > 0
    assert len(fit_rows(rows)) == 5


@needs_isa_l
def test_default_sizes_and_backends() -> None:
    rows = measure(["rs:2,1"], rounds=1, sample_s=0.0, tune_malloc=False)
    assert sorted({r["size_bytes"] for r in rows}) == [
        2 * c for c in kernel.DEFAULT_CHUNKS_BYTES
    ]
    # Flat XOR codes do not exist in this shape. They are omitted by default and an error if named.
    assert {r["backend"] for r in rows} == {
        b for b in available_backends() if not b.startswith("flat_xor")
    }
    assert all(r["verified"] for r in rows)


@needs_isa_l
def test_a_kernel_that_returns_wrong_data_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = Codec.decode
    monkeypatch.setattr(
        Codec, "decode", lambda self, fragments: honest(self, fragments)[:-1] + b"?"
    )
    rows = measure(
        ["rs:4,2"],
        [4096],
        ["isa_l_rs_cauchy"],
        rounds=1,
        sample_s=0.0,
        tune_malloc=False,
    )
    assert {r["op"]: r["verified"] for r in rows} == {
        "encode": True,
        "decode": False,
        "reconstruct": True,
    }


@pytest.mark.parametrize(
    ("arguments", "error", "wanted"),
    [
        ({"schemes": ["foo"]}, SchemeError, "got 'foo'"),
        ({"schemes": ["rep:3"]}, SchemeError, "got 'rep:3'"),
        ({"sizes_bytes": [0]}, KernelError, "size: got 0 bytes"),
        (
            {"sizes_bytes": [1 << 40]},
            KernelError,
            "size: got 1099511627776 bytes",
        ),
        ({"rounds": 0}, KernelError, "rounds: got 0"),
        ({"sample_s": -1.0}, KernelError, "sample_s: got -1"),
        ({"backends": ["nonesuch"]}, KernelError, "got 'nonesuch'"),
        ({"schemes": ["rs:40,3"]}, KernelError, "at most 32"),
    ],
)
def test_bad_requests_give_one_clear_line(
    arguments: dict[str, Any], error: type[Exception], wanted: str
) -> None:
    with pytest.raises(error, match=wanted) as caught:
        measure(**arguments)
    assert "\n" not in str(caught.value)


@needs_isa_l
def test_malloc_effect_times_both_in_fresh_interpreters() -> None:
    effect = malloc_effect(2, 1, 4096, "isa_l_rs_cauchy", calls=3)
    assert effect["default_bytes_per_s"] > 0
    assert effect["raised_bytes_per_s"] > 0
