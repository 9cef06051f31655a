"""Kernels of LRC and Clay: measured rows are verified, the shipped table has them, errors are clear."""

import pytest

from stripesim.calibration.kernels.codes import (
    CLAY_BACKEND,
    LRC_BACKEND,
    clay_size_bytes,
)
from stripesim.calibration.kernels.cost_fit import fit_rows
from stripesim.calibration.kernels.measure import measure
from stripesim.calibration.kernels.store import default_table
from stripesim.models.coding import Clay, parse_scheme
from stripesim.models.coding.clay_coder import ClayCoder
from stripesim.models.problems import KernelError

try:
    from pyeclib.ec_iface import VALID_EC_TYPES
except ImportError:
    VALID_EC_TYPES = []
needs_lrc = pytest.mark.skipif(
    LRC_BACKEND not in VALID_EC_TYPES, reason="pyeclib with isa_l_rs_lrc is absent"
)


@needs_lrc
def test_lrc_rows_hold_every_operation_verified():
    rows = measure(["lrc:10,6,5"], [40960], rounds=2, sample_s=0.0, tune_malloc=False)
    # Any four erasures can be decoded, of more only some.
    ops = [
        ("encode", 0),
        *(("decode", erasures) for erasures in range(5)),
        ("reconstruct", 1),
    ]
    assert [(row["op"], row["erasures"]) for row in rows] == ops
    assert {(row["backend"], row["scheme"], row["verified"]) for row in rows} == {
        (LRC_BACKEND, "lrc:10,6,5", True)
    }
    assert len(fit_rows(rows)) == 7


def test_clay_rows_hold_every_operation_verified_in_whole_sub_chunks():
    rows = measure(
        ["clay:4,2,5"], [16384, 20000], rounds=2, sample_s=0.0, tune_malloc=False
    )
    ops = [
        ("encode", 0),
        *(("decode", erasures) for erasures in range(3)),
        ("reconstruct", 1),
    ]
    assert [(row["size_bytes"], row["op"], row["erasures"]) for row in rows] == [
        (size, *op) for size in (16384, 20480) for op in ops
    ]
    assert {(row["backend"], row["verified"]) for row in rows} == {(CLAY_BACKEND, True)}
    assert len(fit_rows(rows)) == 5


def test_clay_sizes_are_those_of_its_stripes():
    code = Clay(k=9, m=3, d=11)
    assert clay_size_bytes(code, 36864) == code.geometry(4096).stripe_bytes == 46656


def test_a_kernel_that_returns_wrong_data_is_found_out(monkeypatch):
    honest = ClayCoder.repair
    monkeypatch.setattr(
        ClayCoder, "repair", lambda self, lost, helpers: honest(self, lost, helpers) ^ 1
    )
    rows = measure(["clay:4,2,5"], [1024], rounds=1, sample_s=0.0, tune_malloc=False)
    assert {row["op"]: row["verified"] for row in rows} == {
        "encode": True,
        "decode": True,
        "reconstruct": False,
    }


@pytest.mark.parametrize(
    ("scheme", "backend", "wanted"),
    [
        (
            "lrc:10,6,5",
            "isa_l_rs_vand",
            "backend of lrc:10,6,5: got 'isa_l_rs_vand'.*isa_l_rs_lrc",
        ),
        (
            "clay:9,3,11",
            "isa_l_rs_lrc",
            "backend of clay:9,3,11: got 'isa_l_rs_lrc'.*numpy_clay",
        ),
    ],
)
def test_a_wrong_backend_gives_one_clear_line(scheme, backend, wanted):
    with pytest.raises(KernelError, match=wanted):
        measure([scheme], backends=[backend], rounds=1)


@needs_lrc
def test_a_shape_that_the_library_does_not_offer_gives_one_clear_line():
    with pytest.raises(KernelError, match=r"got lrc:4,5,1.*32.*2\b"):
        measure(["lrc:4,5,1"], rounds=1)


@pytest.mark.parametrize(
    "text",
    ["lrc:10,6,5", "lrc-ceph:4,2,3", "clay:9,3,11", "clay:4,2,5", "clay:12,3,14"],
)
def test_the_shipped_table_serves_every_operation(text):
    table, code = default_table(), parse_scheme(text)
    data_bytes = code.geometry(4096).stripe_bytes
    assert table.cost(scheme=text, op="encode").arithmetic_ns(data_bytes) > 0
    for erasures in range(1, code.m + 1):
        assert table.decode_ns(data_bytes, scheme=text, erasures=erasures) > 0
