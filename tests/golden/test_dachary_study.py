"""The study of Dachary 2013 and 2014: its claims, its scale, its verdicts on the rows that ship."""

import csv
import json
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest

from stripesim.calibration.kernels.against_ceph import ceph_rows
from stripesim.calibration.kernels.buffers import ceph_buffers, fit_buffers
from stripesim.calibration.measured.kernels import ceph_kernels
from stripesim.scenarios.studies import kernels
from stripesim.scenarios.studies.claim_rules import claim_rules
from stripesim.scenarios.studies.dachary2013.study import (
    CAUCHY_GOOD,
    STUDY,
    case_seconds,
)
from stripesim.scenarios.studies.lookup import published
from support.studies import simulated_claims

SHARED = Path(__file__).resolve().parents[2].parent / "shared/data"


@pytest.fixture(scope="module")
def result():
    return STUDY.run()


def test_claims_are_those_fixed_beforehand():
    published = SHARED / "published/claims.csv"
    if not published.exists():
        pytest.skip(f"{published} is not there")
    with published.open(encoding="utf-8", newline="") as file:
        wanted = [
            row for row in csv.DictReader(file) if row["paper"].startswith("dachary")
        ]
    text = (files("stripesim.scenarios.studies.dachary2013") / "claims.csv").read_text(
        "utf-8"
    )
    ours = list(csv.DictReader(text.splitlines()))
    assert [
        {k: v for k, v in row.items() if k != "statement"} for row in ours
    ] == wanted


def test_every_claim_is_computed_or_has_a_reason(result):
    rules = claim_rules(STUDY.name)
    assert {claim.id for claim in STUDY.claims()} == {
        *rules.expressions,
        *rules.not_computed,
    }
    assert not set(rules.expressions) & set(rules.not_computed)
    for entry in result.ledger.entries:
        assert (entry.simulated is None) == (entry.claim.id in rules.not_computed)
        assert entry.simulated is not None or entry.reason


def test_a_case_is_the_reference_times_the_ratio_measured(result):
    values, _ = simulated_claims(STUDY, result.rows)
    unit = published(STUDY.name)["dachary2013-141"]
    decode = case_seconds(result.rows, CAUCHY_GOOD, "rs:6,2", "decode", 2)
    ratio = decode / case_seconds(result.rows, CAUCHY_GOOD, "rs:6,2", "encode", 0)
    assert values["dachary2013-143"] == pytest.approx(unit * ratio)
    assert values["dachary2013-149"] == pytest.approx(1 / (unit * ratio))


def test_twice_as_fast_a_machine_gives_the_same_ledger(result):
    quick = result.rows.with_columns(pl.col("seconds_median") / 2)
    assert simulated_claims(STUDY, quick)[0] == pytest.approx(
        simulated_claims(STUDY, result.rows)[0], nan_ok=True
    )


def test_one_slow_case_is_found_out(result):
    slow = result.rows.with_columns(
        pl.when((pl.col("op") == "decode") & (pl.col("erasures") == 1))
        .then(pl.col("seconds_median") * 3)
        .otherwise(pl.col("seconds_median"))
        .alias("seconds_median")
    )
    before, after = (
        simulated_claims(STUDY, result.rows)[0],
        simulated_claims(STUDY, slow)[0],
    )
    assert after["dachary2013-142"] == pytest.approx(3 * before["dachary2013-142"])
    assert after["dachary2013-143"] == pytest.approx(before["dachary2013-143"])


def test_a_missing_case_is_not_derivable_with_its_name(result):
    values, reasons = simulated_claims(
        STUDY, result.rows.filter(pl.col("backend") != "liberasurecode_rs_vand")
    )
    assert values["dachary2013-144"] is None
    assert (
        reasons["dachary2013-150"]
        == "not measured: liberasurecode_rs_vand rs:2,1 encode 0"
    )


def test_verdicts_of_this_version(result):
    summary = result.ledger.summary()
    assert summary["held_out"] == 9
    assert summary["not_derivable"] == 0
    assert (summary["right"], summary["wrong"]) == (3, 6)


def test_losses_drawn_from_all_chunks_are_cheaper_than_the_plugins(result):
    old = result.rows.filter(pl.col("source") == "ceph16")
    before, after = (
        simulated_claims(STUDY, old)[0],
        simulated_claims(STUDY, result.rows)[0],
    )
    for claim in ("dachary2013-142", "dachary2013-143"):
        assert after[claim] < before[claim]


def test_shipped_rows_of_cephs_plugins_are_those_measured():
    measured = SHARED / "ceph16/kernels.csv"
    if not measured.exists():
        pytest.skip(f"{measured} is not there")
    shipped = ceph_kernels().to_dicts()
    wanted = ceph_rows(measured)
    assert len(shipped) == len(wanted)
    for ours, theirs in zip(shipped, wanted, strict=True):
        assert ours["backend"] == theirs["backend"]
        assert ours["seconds_median"] == pytest.approx(theirs["seconds_median"])


def test_shipped_measurements_were_verified_and_say_what_measured_them():
    rows = kernels.shipped(STUDY.name)
    assert rows["verified"].all()
    assert {"warm", "cold"} == set(rows["buffers"])
    assert rows["cores"].max() > 1
    document = json.loads(
        (files("stripesim.scenarios.studies.dachary2013") / "measured.json").read_text(
            "utf-8"
        )
    )
    assert {"command", "cpu", "date", "versions"} <= set(document)


def test_the_shipped_model_of_buffers_follows_from_the_shipped_rows():
    found, errors = fit_buffers(
        ceph_kernels().to_dicts(), kernels.shipped(STUDY.name).to_dicts()
    )
    shipped = {name: getattr(ceph_buffers(), name) for name in found}
    assert shipped == pytest.approx(found, rel=1e-3)
    # Errors that the README states.
    assert max(map(abs, errors.values())) < 0.20


def test_buffers_predict_a_plugin_that_the_fit_has_not_seen():
    ceph = ceph_kernels().filter(
        (pl.col("backend") == "isa:reed_sol_van") & (pl.col("op") == "encode")
    )
    raw = {
        (row["scheme"], row["size_bytes"] > 1 << 19): row["seconds_median"]
        for row in kernels.shipped(STUDY.name).to_dicts()
        if row["backend"] == "isal_cauchy_avx2" and row["op"] == "encode"
    }
    for row in ceph.iter_rows(named=True):
        k, m = map(int, row["scheme"].removeprefix("rs:").split(","))
        kernel_s = raw[row["scheme"], row["size_bytes"] > 1 << 19]
        predicted = (
            kernel_s + ceph_buffers().duration_ns(row["size_bytes"], k=k, m=m) * 1e-9
        )
        # Times of a shared machine: within a quarter.
        assert predicted == pytest.approx(row["seconds_median"], rel=0.25)


def test_recorded_output_replaces_the_rows_of_ceph(tmp_path):
    recorded = tmp_path / "bench.txt"
    recorded.write_text(
        "seconds KB plugin k m work. iter. size eras.\n"
        "0.103921 1048576 jerasure 6 2 decode 1024 1048576 1\n"
        "0.277644 1048576 jerasure 6 2 decode 1024 1048576 2\n"
        "0.238322 1048576 jerasure 6 2 encode 1024 1048576 0\n",
        encoding="utf-8",
    )
    entries = {
        entry.claim.id: entry for entry in STUDY.run(against=recorded).ledger.entries
    }
    # The source's own output must agree with the source.
    assert entries["dachary2013-142"].error == pytest.approx(0)
    assert entries["dachary2013-143"].verdict == "right"


def test_figures_are_drawn_with_captions(result):
    figures = STUDY.figures(result)
    assert set(figures) == {"roofline", "kernel-and-copies", "operations", "ratios"}
    for figure, caption in figures.values():
        assert figure.axes and caption.endswith(".")


def test_operations_show_one_number_for_each_backend_and_operation(result):
    (axes,) = STUDY.figures(result)["operations"][0].axes
    for line in axes.lines:
        # Given Ceph's plugin and Jerasure's own function of the same name, each has a place of its own.
        places = list(line.get_xdata())
        assert len(places) == len(set(places))
