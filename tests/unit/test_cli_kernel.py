"""`stripesim kernel`: rows, comparison with Ceph's benchmark, and saved costs, but not their times."""

from __future__ import annotations

import json
import stat

import polars as pl
import pytest

from stripesim.calibration.kernels import bench as kernel_bench
from stripesim.calibration.kernels import isal as kernel_raw
from stripesim.calibration.kernels.codec import available_backends
from stripesim.calibration.kernels.store import default_table
from stripesim.cli.kernel import kernel as timed
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.scenarios.show.figures.kernels import charge_of, draw_kernels

pytestmark = pytest.mark.skipif(
    not available_backends(), reason="pyeclib is not installed"
)
KEYS = {
    "backend", "scheme", "op", "erasures", "size_bytes", "seconds_median", "seconds_p10", "seconds_p90",
    "bytes_per_s", "copy_seconds_median", "verified", "buffers", "cores", "roofline",
}  # fmt: skip
SOURCE_COLUMNS = (
    "seconds",
    "KB",
    "plugin",
    "k",
    "m",
    "workload",
    "iterations",
    "size",
    "erasures",
)
RECORDED = "0.238322\t1048576\tjerasure\t6\t2\tencode\t4096\t262144\t0\n"


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Use little memory and short samples, because tests check only the form."""
    monkeypatch.setattr(kernel_bench, "COLD_BYTES", 1 << 18)


def kernel(capsys, **given):
    options = {
        "schemes": ["rs:4,2"],
        "sizes": ["4k"],
        "backends": ["isa_l_rs_vand"],
        "rounds": 1,
    }
    timed(**{**options, **given}, json_to="-")
    return json.loads(capsys.readouterr().out)


def test_rows_have_buffers_cores_and_the_share_of_the_copy_rate(capsys):
    printed = kernel(capsys, cold=True)
    assert all(set(row) == KEYS for row in printed["rows"])
    found = {(row["op"], row["buffers"]) for row in printed["rows"]}
    assert {
        ("encode", "warm"),
        ("encode", "cold"),
        ("memcpy", "warm"),
        ("memcpy", "cold"),
    } <= found
    assert all(row["verified"] for row in printed["rows"])
    assert all(row["roofline"] > 0 for row in printed["rows"])


def test_the_source_columns_are_those_of_the_source(capsys):
    printed = kernel(capsys)
    assert all(tuple(row) == SOURCE_COLUMNS for row in printed["table"])
    assert all(
        row["KB"] * 1024 == row["iterations"] * row["size"] for row in printed["table"]
    )


@pytest.mark.parametrize(
    "scheme", ["lrc:4,3,2", "lrc-ceph:4,2,3", "shec:4,3,2", "clay:4,2,5"]
)
def test_every_family_of_codes_is_timed_with_cold_buffers_too(capsys, scheme):
    printed = kernel(capsys, schemes=[scheme], backends=None, cold=True)
    cold = [
        row
        for row in printed["rows"]
        if row["buffers"] == "cold" and row["op"] == "encode"
    ]
    assert {row["scheme"] for row in cold} == {scheme}
    assert all(row["verified"] for row in cold)


def test_without_named_cases_a_recorded_output_selects_them(capsys, tmp_path):
    path = tmp_path / "bench.txt"
    path.write_text(RECORDED)
    printed = kernel(capsys, schemes=[], sizes=[], against=path)
    assert printed["against"]["source"] == str(path)
    assert {row["scheme"] for row in printed["rows"]} == {"rs:6,2", "none"}
    (pair,) = [
        one for one in printed["against"]["pairs"] if one["backend"] == "isa_l_rs_vand"
    ]
    assert pair["ceph_bytes_per_s"] == pytest.approx(4096 * 262144 / 0.238322)
    assert pair["ceph_over_ours"] == pytest.approx(
        pair["ceph_bytes_per_s"] / pair["bytes_per_s"]
    )


def test_a_program_is_asked_for_the_same_codes_and_sizes(capsys, tmp_path):
    program = tmp_path / "bench"
    program.write_text('#!/bin/sh\necho "$@" >> "$0.log"\necho 0.5 1024\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    printed = kernel(capsys, against=program)
    asked = (tmp_path / "bench.log").read_text().splitlines()
    assert all("--size 4096" in line and "k=4" in line for line in asked)
    assert {one["ceph_backend"] for one in printed["against"]["pairs"]} >= {
        "ceph isa:cauchy"
    }


def test_without_a_path_the_shipped_measurements_are_compared(capsys):
    printed = kernel(capsys, schemes=["rs:6,2"], sizes=["24k"])
    assert {one["ceph_backend"] for one in printed["against"]["pairs"]} >= {
        "ceph isa:cauchy"
    }
    assert "16.2.15" in printed["against"]["source"]


def test_only_warm_calls_on_one_core_are_kept_as_costs(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    printed = kernel(capsys, sizes=["4k", "16k", "64k"], cold=True, save=True)
    kept = json.loads(
        (tmp_path / "stripesim" / "kernel_tables").glob("*.json").__next__().read_text()
    )
    assert printed["saved"]
    assert "isal_cauchy" not in json.dumps(kept)
    assert "memcpy" not in json.dumps(kept)


def test_files_are_written(capsys, tmp_path):
    kernel(capsys, schemes=["rs:6,2"], sizes=["24k"], out=tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {
        "kernel.csv",
        "kernel.txt",
        "kernel-ceph.csv",
        "kernel-speed-rs6-2.png",
    } <= names
    assert pl.read_csv(tmp_path / "kernel.csv").height > 0


def test_the_figure_shows_what_the_simulator_charges():
    size = 24 << 10
    charge = charge_of("isa_l_rs_cauchy", "rs:6,2", size)
    models = build_models(
        load_scenario("koh2017", sets=["cluster.kernel_backend=isa_l_rs_cauchy"])
    )
    assert sum(charge) * 1e9 == pytest.approx(models.encode_ns("rs:6,2", size))
    row = {
        "backend": "isal_cauchy", "scheme": "rs:6,2", "op": "encode", "erasures": 0, "size_bytes": size,
        "seconds_median": 1e-6, "seconds_p10": 1e-6, "seconds_p90": 1e-6, "bytes_per_s": size / 1e-6,
        "copy_seconds_median": 0.0, "verified": True, "buffers": "warm", "cores": 1, "roofline": 1.0,
    }  # fmt: skip
    figure, caption = draw_kernels([row], [])["kernel-and-copies-rs6-2"]
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert charge[0] * 1e6 in [pytest.approx(height) for height in heights]
    assert charge[1] * 1e6 in [pytest.approx(height) for height in heights]
    assert "RS(6,2)" in caption


def test_buffers_are_charged_with_isa_l_only_and_can_be_left_out():
    def encode_ns(*sets: str) -> float:
        return build_models(load_scenario("koh2017", sets=sets)).encode_ns(
            "rs:6,3", 24576
        )

    for backend, charged in (("isa_l_rs_vand", True), ("jerasure_rs_vand", False)):
        named = f"cluster.kernel_backend={backend}"
        without = encode_ns(named, "cluster.encode_buffers=false")
        cost = default_table().cost(scheme="rs:6,3", op="encode", backend=backend)
        assert without == cost.arithmetic_ns(24576)
        assert (encode_ns(named) > without) is charged


def test_all_cores_of_a_machine_are_used_together(capsys):
    if not kernel_raw.available():
        pytest.skip("ISA-L cannot be called here")
    rows = kernel_bench.cores_rows(
        ["rs:4,2"], [4096], ["isa_l_rs_vand"], cores=2, seconds=0.02
    )
    assert [row["cores"] for row in rows] == [2]
    assert rows[0]["verified"]
