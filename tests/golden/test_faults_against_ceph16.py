"""One OSD killed or stopped on a real Ceph 16.2: what its clocks decide, and bytes per byte rebuilt."""

from __future__ import annotations

import csv

import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.recovery import SECOND_NS, recovery_model
from stripesim.scenarios.ceph16.cluster import PG_NUM, acting_sets, build_pool, pool_id_of
from stripesim.sim.faults import Failure, FaultPlan
from stripesim.sim.run import simulate
from stripesim.sim.workload import Synthetic

MIB = 1 << 20


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_timeline_of_a_real_repair(data, number):
    with open(data / "ceph16" / "repair.csv", newline="") as file:
        told = list(csv.DictReader(file))[number]
    erasure = int(told["k"]) > 1
    scheme = parse_scheme(f"rs:{told['k']},{told['m']}" if erasure else "rep:3")
    image_bytes = int(told["image_mb"]) * MIB
    pool_id = pool_id_of(scheme)
    plan = FaultPlan(
        failures=[
            Failure(
                osds=(int(told["dead_osd"]),),
                time_ns=0,
                kind="process" if told["how"] == "kill" else "hang",
                back_ns=round(float(told["t_restarted"]) * SECOND_NS),
            )
        ],
        up_sets=lambda out: acting_sets(scheme, pool_id=pool_id, pg_num=PG_NUM, out=out),
        image_objects=image_bytes // (4 * MIB),
        model=recovery_model("pacific").given(
            down_out_interval_ns=int(told["down_out_interval_s"]) * SECOND_NS
        ),
    )
    workload = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=image_bytes,
        read_fraction=1.0,
        requests=1,
        queue_depth=1,
    ).start()
    result = simulate(build_pool(scheme.name, 4096), workload, faults=plan)
    row = result.row
    measured = {key: float(told[key]) for key in ("t_marked_down", "t_marked_out", "t_up_again")}
    # The script looked every half second, and the monitors' log had other entries to wait for.
    tolerance_s = 1.5 if told["how"] == "kill" else 6 + 1.5
    assert row["detection_s"] == pytest.approx(measured["t_marked_down"], abs=tolerance_s)
    # 30 s, and up to one tick of 5 s; both began anywhere in a tick.
    assert row["down_out_s"] == pytest.approx(measured["t_marked_out"] - measured["t_marked_down"], abs=5)
    ups = [event["time_s"] for event in result.timeline["events"] if event["what"] == "up"]
    assert ups[0] == pytest.approx(measured["t_up_again"], abs=1.9)
    assert row["clean_at_end"]
    assert row["recovery_device_read_bytes_per_lost_byte"] == pytest.approx(
        float(told["rd_per_lost"]), rel=0.05
    )
    assert row["recovery_private_net_bytes_per_lost_byte"] == pytest.approx(
        float(told["cl_per_lost"]), rel=0.05
    )
