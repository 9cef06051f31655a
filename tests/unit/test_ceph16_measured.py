"""Reading folders of measured counts: the shipped folder, and one line for each kind of fault."""

import gzip
import shutil
from pathlib import Path

import pytest

from stripesim.models.problems import MeasuredError
from stripesim.scenarios.studies.ceph16.claims import (
    CPU_TOLERANCES,
    calibration_runs,
    claims_of,
)
from stripesim.scenarios.studies.ceph16.measured import load
from support.messages import states

SHIPPED = Path(__file__).resolve().parents[2] / "scenarios/studies/ceph16/data"
RUN = "main-ec63-read-rand-4096-q64"


def folder_with(tmp_path, *run_ids, change=None):
    """Make a folder with some of the shipped runs, with changed cells."""
    header, *lines = (SHIPPED / "runs.csv").read_text().splitlines()
    names = header.split(",")
    kept = [line.split(",") for line in lines if line.split(",")[0] in run_ids]
    for column, value in (change or {}).items():
        for cells in kept:
            cells[names.index(column)] = value
    (tmp_path / "runs.csv").write_text(
        "\n".join([header, *(",".join(cells) for cells in kept)]) + "\n"
    )
    (tmp_path / "iolog").mkdir(exist_ok=True)
    for run_id in run_ids:
        shutil.copy(SHIPPED / "iolog" / f"{run_id}.log.gz", tmp_path / "iolog")
    return tmp_path


def test_the_shipped_data_is_complete():
    measured = load()
    assert (len(measured.runs), len(measured.repairs), len(measured.degraded)) == (
        150,
        3,
        6,
    )
    by_id = {run.run_id: run for run in measured.runs}
    run = by_id[RUN]
    assert (run.coded.name, run.coded.stripe_unit_bytes, run.queue_depth) == (
        "rs:6,3",
        4096,
        64,
    )
    assert run.measured["device_read"] == 5.9717
    assert len(run.requests) == 600
    assert not run.requests.is_write.any()
    assert by_id["main-rep3-write-seq-4096-q256"].coded.name == "rep:3"
    # The number of offsets equals the counted operations.
    for one in measured.runs:
        assert (one.requests.lengths_bytes == one.block_bytes).all()
        assert (one.requests.offsets_bytes + one.block_bytes <= one.image_bytes).all()


def test_claims_bear_the_ids_that_others_rely_on():
    claims = {claim.id: claim for claim in claims_of(load())}
    assert len(claims) == 150 * (4 + 2) + 3 * 3 + 6 * 2 + 20
    assert claims[f"{RUN}:private_net"].published == 6.205
    assert claims["repair:ec63:kill:device_read"].published == 5.992
    assert claims["degraded:ec63:4096:private_net"].published == 6.206
    assert claims[f"{RUN}:cpu_us_per_op"].unit == "us"
    assert claims[f"{RUN}:context_switches_per_op"].tolerance == 0.2
    seen = {
        timed: {
            claim_id.rpartition(":")[0]
            for claim_id, claim in claims.items()
            if claim.role == "calibration" and (claim.metric in CPU_TOLERANCES) == timed
        }
        for timed in (False, True)
    }
    assert seen == {
        processors: set(calibration_runs(processors=processors))
        for processors in (False, True)
    }
    assert not [run for run in calibration_runs(processors=True) if "read" in run]


@pytest.mark.parametrize("change", [{"N_cl_net_per_client_byte": "6.3"}, {"k": "4"}])
def test_a_row_measured_differently_is_held_out_despite_its_name(tmp_path, change):
    folder = folder_with(tmp_path, RUN, change=change)
    assert {claim.role for claim in claims_of(load(folder))} == {"held-out"}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"k": "six"}, "runs.csv:2: k: got 'six' ... 1"),
        (
            {"op": "trim"},
            "runs.csv:2: op: got 'trim'",
        ),
        (
            {"stripe_unit_bytes": "1000"},
            "runs.csv:2: stripe_unit_bytes: got '1000' ... 512",
        ),
        (
            {"N_dev_rd_per_client_byte": "nan"},
            "runs.csv:2: N_dev_rd_per_client_byte: got 'nan'",
        ),
        ({"op": "write"}, f"{RUN}.log.gz:4: got "),
    ],
)
def test_a_bad_cell_is_reported_with_its_position(tmp_path, change, found):
    with pytest.raises(MeasuredError) as caught:
        load(folder_with(tmp_path, RUN, change=change))
    assert states(str(caught.value), found)


def test_all_faults_are_reported_together(tmp_path):
    folder = folder_with(tmp_path, RUN, change={"k": "0", "qd": ""})
    (folder / "iolog" / f"{RUN}.log.gz").write_bytes(b"no gzip")
    with pytest.raises(MeasuredError) as caught:
        load(folder)
    assert len(str(caught.value).splitlines()) == 3


def test_a_missing_column_and_a_missing_folder(tmp_path):
    with pytest.raises(MeasuredError, match="wanted"):
        load(tmp_path / "nowhere")
    (tmp_path / "runs.csv").write_text("run_id,scheme\nx,ec63\n")
    with pytest.raises(MeasuredError, match=r"runs\.csv:1: got no column k, m"):
        load(tmp_path)


def test_an_empty_log_is_a_fault(tmp_path):
    folder = folder_with(tmp_path, RUN)
    (folder / "iolog" / f"{RUN}.log.gz").write_bytes(
        gzip.compress(b"fio version 3 iolog\n")
    )
    with pytest.raises(MeasuredError, match="got no read"):
        load(folder)


def test_repeated_passes_count_once_with_their_median(tmp_path):
    # Given three runs of one cell, whose first passes have 0.5, 0.7 and 0.9 of the rate of the second
    folder = folder_with(tmp_path, RUN)
    shutil.copy(SHIPPED / "iolog" / "passes.log.gz", folder / "iolog")
    columns = (
        "scheme,k,m,stripe_unit_bytes,features,qd,bs,image_mb,first_iops,second_iops"
    )
    cell = "rep3,1,2,4096,default,64,4096,2048"
    rates = ("500,1000", "900,1000", "1400,2000")
    lines = [columns, *(f"{cell},{rate}" for rate in rates)]
    (folder / "passes.csv").write_text("\n".join([*lines, ""]))
    # When the folder is read
    (passes,) = load(folder).passes
    # Then the cell has the median, and a claim says how many runs it stands for
    assert passes.measured == {"first_over_second": 0.7}
    assert passes.runs_count == 3
    notes = [claim.note for claim in claims_of(load(folder))]
    assert "median of 3 runs; 512 writes into 321 objects" in notes
