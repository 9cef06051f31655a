"""The typed result row and its flat form, which files and JSON hold."""

from dataclasses import fields, replace

from stripesim.scenarios.cells.run import CellRow
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.show.quantities import QUANTITIES, rows_frame
from stripesim.sim.observe.result_row import (
    FaultNumbers,
    PhaseNumbers,
    RecoveryNumbers,
    RepairNumbers,
    ResultRow,
)

ROW = ResultRow(requests=5, iops=2.5, simulated_s=2.0, engine_wall_s=0.1)
CELL = Cell("rep:3", "read", "rand", 4096)
RECOVERY = RecoveryNumbers(
    recovery_operations=0,
    recovery_operations_cut=0,
    recovery_bytes=0,
    recovery_lost_bytes=0,
    recovery_device_read_bytes=0,
    recovery_device_read_bytes_per_lost_byte=None,
    recovery_device_write_bytes=0,
    recovery_device_write_bytes_per_lost_byte=None,
    recovery_private_net_bytes=0,
    recovery_private_net_bytes_per_lost_byte=None,
)
FAULTS = FaultNumbers(
    requests_issued=5,
    requests_failed=0,
    requests_pending=0,
    requests_retried=0,
    retries=0,
    detection_s=0.5,
    down_out_s=None,
    checking_s=None,
    recovery_s=None,
    failure_to_clean_s=None,
    failure_to_seen_clean_s=None,
    clean_at_end=False,
    phases={},
    recovery=RECOVERY,
    pgs_unavailable=0,
    objects_unavailable=0,
    unavailable_pg_s=0.0,
    peering_pg_s=0.0,
    stale_pg_s=0.0,
    pgs_lost=0,
    objects_lost=0,
)
WITHOUT_PHASES = replace(ROW, faults=FAULTS).as_dict().keys()
# Fields that are columns only of rows to which they apply.
SOMETIMES = {"cpu_user_fraction", "faults"}


def test_the_fields_of_a_row_are_the_columns_of_a_table_in_their_order() -> None:
    names = [one.name for one in fields(ResultRow) if one.name not in SOMETIMES]
    assert list(QUANTITIES) == [*Cell._fields, *names]
    assert all(column.meaning for column in QUANTITIES.values())


def test_a_flat_row_fits_the_types_of_a_table() -> None:
    row = CellRow(cell=CELL, image="prefilled", numbers=ROW).as_dict()
    frame = rows_frame([row])
    assert frame.columns == [*QUANTITIES, "image"]
    assert frame.row(0, named=True) == row


def test_columns_without_a_value_are_null_and_further_ones_absent() -> None:
    flat = ROW.as_dict()
    assert flat["offered_iops"] is None
    assert not SOMETIMES & flat.keys()
    assert replace(ROW, cpu_user_fraction=0.75).as_dict()["cpu_user_fraction"] == 0.75


def test_a_row_of_several_workloads_carries_their_name() -> None:
    row = CellRow(cell=CELL, image="prefilled", numbers=ROW, workload="backup")
    assert list(row.as_dict())[-1] == "workload"
    assert row.as_dict()["workload"] == "backup"


def test_a_phase_puts_its_name_before_the_unit() -> None:
    numbers = PhaseNumbers(
        iops=10.0,
        throughput_bytes_per_s=40960.0,
        latency_p99_ns=7.0,
        blocked=1,
        blocked_longest_ns=None,
        blocked_by="peering 1",
    )
    flat = replace(ROW, faults=replace(FAULTS, phases={"recovery": numbers})).as_dict()
    of_phase = {name: flat[name] for name in flat if name not in WITHOUT_PHASES}
    assert of_phase == {
        "iops_recovery": 10.0,
        "throughput_recovery_bytes_per_s": 40960.0,
        "latency_p99_recovery_ns": 7.0,
        "blocked_recovery": 1,
        "blocked_longest_recovery_ns": None,
        "blocked_by_recovery": "peering 1",
    }


def test_fault_columns_follow_where_they_apply() -> None:
    flat = replace(ROW, faults=FAULTS).as_dict()
    assert flat["requests"] == 5
    # Events that never came have a column all the same; what was not asked for has none.
    assert flat["down_out_s"] is None
    absent = {
        "recovery_limited_by",
        "deep_scrubs",
        "repair_objects",
        "repair",
        "phases",
    }
    assert not absent & flat.keys()


def test_a_repair_adds_its_columns() -> None:
    repair = RepairNumbers(
        repair_objects=1, repair_objects_pending=2, repair_lost_bytes=30, repair_s=None
    )
    faults = replace(FAULTS, repair=repair, deep_scrubs=4)
    flat = replace(ROW, faults=faults).as_dict()
    assert flat["deep_scrubs"] == 4
    assert flat["repair_objects_pending"] == 2
    assert flat["repair_s"] is None
    assert "repair_device_read_bytes_per_lost_byte" not in flat
