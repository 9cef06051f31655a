"""The study of Kim et al. 2019: the rows of its fit, the fitted values and the verdicts."""

import csv
from importlib.resources import files
from itertools import islice
from pathlib import Path

import pytest

from stripesim.models.problems import ParameterSetError
from stripesim.scenarios.show.quantities import rows_frame
from stripesim.scenarios.studies.base import Setting
from stripesim.scenarios.studies.claim_rules import claim_rules
from stripesim.scenarios.studies.exstorus2019 import fit, runs, source
from stripesim.scenarios.studies.exstorus2019.parameters import (
    kernel_factors,
    kernel_ratios,
    system_at,
    write_model,
)
from stripesim.scenarios.studies.exstorus2019.study import STUDY
from stripesim.scenarios.studies.lookup import published
from stripesim.scenarios.studies.parameters import model_from
from stripesim.sim.systems.striped_fs.costs import SlaveDiskModel
from support.studies import figures_of, simulated_claims

PUBLISHED = (
    Path(__file__).resolve().parents[2].parent / "shared/data/published/claims.csv"
)
ISSUE_TARGETS = {
    "exstorus-249": 0.15,
    "exstorus-252": 0.10,
    "exstorus-255": 0.10,
    "exstorus-258": 0.15,
    "exstorus-261": 0.10,
}


@pytest.fixture(scope="module")
def fits():
    return fit.fit_all()


@pytest.fixture(scope="module")
def result(fits):
    def fitted(engine):
        assert engine == "compiled"
        return fits

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "fit_all", fitted)
        return STUDY.run(experiments=["steps", "codes"])


@pytest.fixture(scope="module")
def entries(result):
    return {entry.claim.id: entry for entry in result.ledger.entries}


def test_claims_are_those_fixed_beforehand():
    if not PUBLISHED.exists():
        pytest.skip(f"{PUBLISHED} is not there")
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        wanted = [row for row in csv.DictReader(file) if row["paper"] == "exstorus"]
    text = (files("stripesim.scenarios.studies.exstorus2019") / "claims.csv").read_text(
        "utf-8"
    )
    ours = list(csv.DictReader(text.splitlines()))
    assert [
        {k: v for k, v in row.items() if k != "statement"} for row in ours
    ] == wanted


def test_the_fit_sees_tables_1_and_2_and_nothing_held_out():
    seen = source.calibration_cells()
    assert len(seen) == 50
    assert {cell.role for cell in seen} == {"calibration"}
    assert {cell.gbit_per_s for cell in seen} == {1.0, 10.0}
    # Of each step there are ten numbers.
    assert {len([c for c in seen if c.step == step]) for step in fit.STEPS} == {10}


def test_shipped_parameters_equal_the_fit(fits):
    rows = {row["name"]: row for row in write_model().parameters()}
    fitted = {name for each in fits for name in each.values}
    assert fitted == {
        name for name, row in rows.items() if row["provenance"] == "fitted"
    }
    for each in fits:
        for name, value in each.values.items():
            # The search stops at negligible improvements, so its last digits are noise.
            assert rows[name]["value"] == pytest.approx(value, rel=1e-3), name
            assert rows[name]["confidence_interval"] == pytest.approx(
                list(each.confidence_intervals[name]), rel=1e-2
            )
            low, high = each.confidence_intervals[name]
            assert low < value < high


def test_a_shift_of_the_tables_shifts_the_fit(monkeypatch):
    # The fit must hang on the numbers: with all times doubled its constants double.
    doubled = tuple(
        c._replace(time_ns=2 * c.time_ns) for c in source.calibration_cells()
    )
    before = fit.fit_step("slave", write_model())
    monkeypatch.setattr(fit, "calibration_cells", lambda: doubled)
    after = fit.fit_step("slave", write_model())
    assert after.values["slave_base_ns"] == pytest.approx(
        2 * before.values["slave_base_ns"], rel=1e-3
    )
    assert after.values["slave_growth_exponent"] == pytest.approx(
        before.values["slave_growth_exponent"], rel=1e-2
    )


def test_forty_gigabits_are_predicted_within_the_targets(entries):
    errors = {claim: entries[claim].error for claim in ISSUE_TARGETS}
    assert all(abs(errors[claim]) <= bound for claim, bound in ISSUE_TARGETS.items()), (
        errors
    )
    total = sum(entries[claim].simulated for claim in ISSUE_TARGETS)
    published = sum(entries[claim].claim.published for claim in ISSUE_TARGETS)
    assert total == pytest.approx(published, rel=0.10)


def test_verdicts_of_this_version(result, entries):
    summary = result.ledger.summary()
    assert (summary["held_out"], summary["right"], summary["not_derivable"]) == (
        15,
        11,
        0,
    )
    assert summary["fitted_parameters"] == 13
    wrong = {
        key
        for key, e in entries.items()
        if e.claim.role == "held-out" and e.verdict == "wrong"
    }
    assert wrong == {"exstorus-262", "exstorus-263", "exstorus-266", "exstorus-267"}


def test_every_claim_is_computed_or_has_a_reason(result, entries):
    not_computed = claim_rules(STUDY.name).not_computed
    for key, entry in entries.items():
        assert (entry.simulated is None) == (key in not_computed)
        if entry.simulated is None:
            assert entry.claim.role == "given"


def test_shares_are_those_of_the_times(result):
    simulated, _ = simulated_claims(STUDY, result.rows)
    times = [simulated[f"exstorus-{number}"] for number in (249, 252, 255, 258, 261)]
    assert simulated["exstorus-283"] == pytest.approx(100 * times[3] / sum(times))
    assert simulated["exstorus-285"] == pytest.approx(100 * times[2] / sum(times))


def test_source_extrapolates_below_what_pure_transfer_allows():
    stated = published("exstorus2019")
    total_s = stated["exstorus-255"] / (stated["exstorus-288"] / 100)
    distribution_s = total_s * stated["exstorus-286"] / 100
    assert distribution_s < stated["exstorus-258"] * 40 / 100


def test_intervals_hold_the_prediction_and_widen_with_coverage():
    fits = fit.fit_all()
    system = system_at(100.0, write_model())
    (base,) = fit.step_times(system, [131072])
    narrow, wide = (
        fit.prediction_intervals(fits, system, 131072, level=level)
        for level in (0.5, 0.9)
    )
    for step, value in (*base.items(), ("total", sum(base.values()))):
        assert wide[step][0] < narrow[step][0] < value < narrow[step][1] < wide[step][1]


def test_engines_give_the_same_rows():
    listed = [
        list(islice(STUDY.experiments["codes"](Setting(engine=engine)), 5, 7))
        for engine in ("compiled", "simpy")
    ]
    for rows in listed:
        for row in rows:
            del row["engine_wall_s"]
    assert listed[0] == listed[1]


def test_kernel_ratios_have_a_source():
    assert {"basis", "command", "cpu", "date"} <= set(kernel_ratios()["provenance"])
    assert kernel_factors()["NONE"] == 0 and kernel_factors()["AVX2:CRS"] == 1
    names = {row["name"] for row in STUDY.parameters()}
    assert {
        f"kernel_factor.{code}" for code in kernel_factors() if code != "NONE"
    } <= names


@pytest.mark.parametrize("name", ["layout", "short records", "disks", "geometry"])
def test_experiments_beyond_the_claims(name):
    rows = list(STUDY.experiments[name](Setting()))
    assert all(
        row["experiment"] == name and row["throughput_bytes_per_s"] > 0 for row in rows
    )
    if name == "disks":
        by = {
            (row["code"], row["network_gbit_per_s"]): row["throughput_bytes_per_s"]
            for row in rows
        }
        assert (
            by["disk, no memory", 40.0]
            < by["disk, memory full", 40.0]
            < by["memory only", 40.0]
        )
    if name == "short records":
        assert rows[0]["stored_bytes_per_client_byte"] == 12
    if name == "geometry":
        # A faster network never makes a record slower.
        for scheme in {row["scheme"] for row in rows}:
            mine = [
                r["total_ns"]
                for r in rows
                if r["scheme"] == scheme and r["encode_at"] == "master"
            ]
            fast = mine[1:]
            assert fast == sorted(fast, reverse=True)


def test_figures_need_only_the_rows_that_are_there(result):
    figures = STUDY.figures(result)
    assert set(figures) == {
        "steps-by-size",
        "steps-shares",
        "steps-by-network",
        "codes",
    }
    for figure, caption in figures.values():
        assert figure.axes and caption.endswith(".")


def test_layout_zeros_and_disks_are_drawn_as_they_came_out():
    names = ("layout", "short records", "disks")
    rows = rows_frame(
        [row for name in names for row in STUDY.experiments[name](Setting())]
    )
    figure, caption = figures_of(STUDY, rows)["layout-zeros-disks"]
    files, zeros, disks = figure.axes
    values = {
        row["code"]: row["throughput_bytes_per_s"] * 1e-6
        for row in rows.to_dicts()
        if row["code"]
    }
    drawn = [bar.get_height() for bar in files.patches]
    assert drawn == pytest.approx(
        [values[f"file {index} together"] for index in range(1, 5)]
    )
    # Half a KiB fills an eighth of an encoding unit, and the code stores 1.5 units.
    assert zeros.lines[0].get_ydata()[0] == 12
    assert len(disks.patches) == 9
    assert caption.endswith(".")


def test_unknown_and_missing_experiments_are_refused():
    with pytest.raises(ValueError, match="--experiment: got steps"):
        STUDY.run(experiments=["steps"])


def test_a_wrong_parameter_file_is_reported_in_one_line():
    with pytest.raises(ParameterSetError, match=r"parameters\.toml: ") as caught:
        model_from(
            SlaveDiskModel,
            {"disks_count": {"value": 1.0, "provenance": "assumed"}},
            "parameters.toml: [hdd]",
        )
    assert "\n" not in str(caught.value)
