"""Study cores reads load and cluster from words, fixes roles by rules, and judges rows by their id."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stripesim.models.problems import MeasuredError
from stripesim.scenarios.studies.cores.fit import rows as fitted_rows
from stripesim.scenarios.studies.cores.measured import CALIBRATION, load
from stripesim.scenarios.studies.cores.runs import (
    models_of,
    scenario_of,
    simulate_rows,
)
from stripesim.scenarios.studies.registry import study_named
from stripesim.scenarios.studies.staged_fit import fit_stages

ROWS = {row.id: row for row in load()}


def test_rows_state_cluster_and_load() -> None:
    row = ROWS["cpu_power-024"]
    assert (row.osds, row.hosts, row.cores_per_osd) == (1, 10, 16)
    assert (row.is_read, row.block_bytes, row.queue_depth) == (False, 4096, 128)
    assert row.claim_id == "cpu_power-024:iops"
    assert ROWS["cpu_power-031"].claim_id == "cpu_power-031:cores_used"
    many = replace(row, hardware=row.hardware.replace("1 OSD", "60 OSDs"))
    scenario = scenario_of(replace(many, scheme="rep:3"))
    assert (scenario.cluster.hosts, scenario.cluster.osds_per_host) == (10, 6)
    # 60 OSDs × 273 groups; ten hosts with four clients each.
    assert scenario.cluster.pg_num == 16_384
    assert scenario.workload.clients == 40
    assert scenario.cluster.cores_per_osd == 16


def test_fits_see_only_rows_for_calibration() -> None:
    roles = {row.id: row.role for row in ROWS.values()}
    calibration = {name for name, role in roles.items() if role == "calibration"}
    assert calibration == CALIBRATION
    seen = {name for stage in fit_stages("cores") for name in stage.rows}
    assert seen == set(fitted_rows())
    assert seen - set(ROWS) == {"upstream-mako-10x6-029"}


def test_one_osd_and_a_cluster_differ_from_the_set_as_the_readme_says() -> None:
    alone = ROWS["cpu_power-024"]
    many = replace(alone, hardware=alone.hardware.replace("1 OSD", "60 OSDs"))
    one, all_of_them = (models_of(scenario_of(row), row).cpu for row in (alone, many))
    assert one.paired_slowdown_fraction == 0
    assert all_of_them.paired_slowdown_fraction > 0
    assert one.op_prepare_ns == pytest.approx(0.538 * all_of_them.op_prepare_ns)
    # Preparing a transaction: 0.538 × 2.145 = 1.154.
    ratio = one.store_transaction_ns / all_of_them.store_transaction_ns
    assert ratio == pytest.approx(1.154, abs=0.001)
    # 11,800 ns × 1.54.
    assert all_of_them.kv_transaction_ns == pytest.approx(18_172, rel=0.001)


def test_rates_of_one_osd_follow_its_cores_and_then_its_drive() -> None:
    few, most = (simulate_rows([ROWS[f"cpu_power-{n}"]])[0] for n in ("017", "024"))
    assert few["cores_used"] == pytest.approx(2, rel=0.01)
    # The drive's sheet says 50,000 writes of 4 KiB a second.
    assert most["value"] == pytest.approx(50_000, rel=0.01)
    assert most["bottleneck"] == "ssd.write"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"hardware": "10x hosts"},
            "hardware: got '10x hosts', wanted words such as '60 OSDs'",
        ),
        ({"hardware": "60 OSDs"}, "wanted words such as '10x R6515'"),
        (
            {"threads": "all"},
            "threads: got 'all', wanted words such as '4 cores per OSD'",
        ),
        ({"op": "mixed"}, "neither"),
        ({"block": "some"}, "some"),
    ],
)
def test_a_row_that_states_too_little_says_what_is_missing(change, says) -> None:
    (found,) = simulate_rows([replace(ROWS["cpu_power-024"], **change)])
    assert found["value"] is None
    assert says in found["reason"]


def test_a_file_without_columns_is_refused(tmp_path) -> None:
    with pytest.raises(MeasuredError, match=r"cores\.csv"):
        load(tmp_path)
    (tmp_path / "cores.csv").write_text("id,value\n1,2\n", encoding="utf-8")
    with pytest.raises(MeasuredError, match="got no column system"):
        load(tmp_path)


def test_the_study_has_a_claim_for_each_row() -> None:
    claims = study_named("cores").claims()
    assert len(claims) == len(ROWS) == 31
    assert {claim.tolerance for claim in claims} == {0.25}
