"""Bytes read for each byte lost: Reed-Solomon k, LRC the locality, Clay d / (d - k + 1), exactly."""

from fractions import Fraction

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.paths import repair_path
from stripesim.sim.run import simulate

KIB = 1024

# Scheme, and for each shard what one lost byte of it costs in reads.
THEORY = {
    "rs:6,3": [Fraction(6)] * 9,
    "rs:10,4": [Fraction(10)] * 14,
    # Sathiamoorthy et al. 2013: any block, also a Reed-Solomon parity, is mended from 5 others.
    "lrc:10,6,5": [Fraction(5)] * 16,
    # Groups of 4, 4 and 4; the Reed-Solomon parities from two others and three local parities.
    "lrc:12,6,4": [Fraction(4)] * 12 + [Fraction(5)] * 3 + [Fraction(4)] * 3,
    # Seven data shards in groups of 4 and 3; the implied group of two and two is the cheaper for parities.
    "lrc:7,4,4": [Fraction(4)] * 4 + [Fraction(3)] * 7,
    "lrc-ceph:4,2,3": [Fraction(3)] * 8,
    "lrc-ceph:8,4,6": [Fraction(6)] * 14,
    # A full row of four and two halves: halves mend data and themselves.
    "shec:4,3,2": [Fraction(2)] * 4 + [Fraction(4), Fraction(2), Fraction(2)],
    # Dimakis et al. 2010, the minimum-storage point: d / (d - k + 1).
    "clay:4,2,5": [Fraction(5, 2)] * 6,
    "clay:9,3,11": [Fraction(11, 3)] * 12,
    "clay:8,4,10": [Fraction(10, 3)] * 12,
    "clay:8,3,10": [Fraction(10, 3)] * 11,
}


@pytest.mark.parametrize("text", THEORY)
def test_plans_read_the_theoretical_bytes(text):
    code = parse_scheme(text)
    geometry = code.geometry(4096)
    for shard, ratio in enumerate(THEORY[text]):
        plan = code.plan_repair(
            lost=frozenset({shard}),
            object_size_bytes=3 * geometry.stripe_bytes,
            geometry=geometry,
        )
        lost_bytes = 3 * geometry.stripe_unit_bytes
        assert sum(extent.length_bytes for extent in plan.writes) == lost_bytes
        assert (
            Fraction(sum(extent.length_bytes for extent in plan.reads), lost_bytes)
            == ratio
        )


@pytest.mark.parametrize("text", ["lrc:10,6,5", "clay:9,3,11", "clay:4,2,5"])
def test_no_code_reads_less_than_the_cut_set_allows(text):
    """Dimakis et al. 2010: from d helpers at least d / (d - k + 1) for a code that stores the minimum.

    An LRC stores more than the minimum and may read less than its k; it reads no less than a code of its
    storage overhead could: one byte.
    """
    code = parse_scheme(text)
    for shard in range(code.width):
        geometry = code.geometry(4096)
        plan = code.plan_repair(
            lost=frozenset({shard}),
            object_size_bytes=geometry.stripe_bytes,
            geometry=geometry,
        )
        helpers = len({extent.shard for extent in plan.reads})
        read = Fraction(
            sum(extent.length_bytes for extent in plan.reads),
            geometry.stripe_unit_bytes,
        )
        if text.startswith("clay"):
            assert read == Fraction(helpers, helpers - code.k + 1)
        else:
            assert read == helpers < code.k


@pytest.mark.parametrize(
    ("text", "unit"),
    # Sub-chunks are whole allocation units, so only the needed bytes are read.
    [
        ("rs:6,3", 4 * KIB),
        ("lrc:10,6,5", 4 * KIB),
        ("lrc-ceph:4,2,3", 4 * KIB),
        ("clay:4,2,5", 32 * KIB),
        ("clay:9,3,11", 81 * 4 * KIB),
    ],
)
def test_devices_read_the_theoretical_bytes(models, make_context, counted, text, unit):
    code = parse_scheme(text)
    for shard, ratio in enumerate(THEORY[text]):
        primary = 1 if shard == 0 else 0
        context = make_context(models, text, unit_bytes=unit, primary=primary)
        size = 2 * context.geometry.stripe_bytes
        found = counted(
            repair_path(context, lost=[shard], sizes_bytes=[size]), code.width
        )
        assert Fraction(found["device_read_bytes"], 2 * unit) == ratio
        assert found["encode_bytes"] == ratio * 2 * unit


def test_separate_runs_are_separate_reads(models, make_context, counted):
    """Same bytes for every lost shard, but 2 reads of a helper for column 0 and 54 for column 3."""
    reads = []
    for shard in (0, 3, 6, 9):
        context = make_context(
            models, "clay:9,3,11", unit_bytes=81 * 4 * KIB, primary=1
        )
        path = repair_path(
            context, lost=[shard], sizes_bytes=[2 * context.geometry.stripe_bytes]
        )
        found = counted(path, 12)
        assert found["device_read_bytes"] == 11 * 2 * 27 * 4 * KIB
        reads.append(found["device_read_ops"])
    assert reads == [11 * 2 * runs for runs in (1, 3, 9, 27)]


def test_sub_chunks_below_an_allocation_unit_save_the_device_nothing(
    models, make_context, counted
):
    """A stripe unit of 4 KiB gives sub-chunks of 64 bytes: the device reads nearly the whole chunk."""
    context = make_context(models, "clay:9,3,11", unit_bytes=4 * KIB, primary=1)
    size = 80 * context.geometry.stripe_bytes
    found = counted(repair_path(context, lost=[9], sizes_bytes=[size]), 12)
    shard_bytes = 80 * 5184
    blocks_bytes = -(-shard_bytes // 4096) * 4096
    assert found["device_read_bytes"] == 11 * blocks_bytes
    # The wire still carries a third of each chunk; the primary is a helper itself.
    payload = 10 * shard_bytes // 3 + shard_bytes
    assert payload < found["private_net_bytes"] < 1.2 * payload


def workload():
    return Synthetic(
        pattern="rand",
        block_bytes=4 * KIB,
        image_bytes=16 << 20,
        read_fraction=1.0,
        requests=10,
        queue_depth=2,
    ).start()


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
@pytest.mark.parametrize(
    ("text", "unit"),
    [("lrc:10,6,5", 4 * KIB), ("clay:4,2,5", 32 * KIB), ("rs:4,2", 4 * KIB)],
)
def test_a_simulated_repair_reads_the_theoretical_bytes(
    models, make_pool, engine, text, unit
):
    """Each group loses another shard, so all kinds of shards are rebuilt."""
    code = parse_scheme(text)
    width = code.width
    whole = [
        [(group + shard) % width for shard in range(width)] for group in range(width)
    ]
    # OSD 0 is lost; a spare takes its place.
    targets = [[width if osd == 0 else osd for osd in row] for row in whole]
    pool = make_pool(
        models,
        text,
        osds=width + 1,
        acting=whole,
        unit_bytes=unit,
        object_bytes=4 * unit * code.k,
    )
    plan = FaultPlan(
        lost_osds=(0,),
        up_sets=lambda weights: np.array(
            targets if weights.out else whole, dtype=np.int64
        ),
        image_objects=4 * width,
        model=recovery_model("pacific").given(recovery_max_active_count=2),
    )
    row = simulate(pool, workload(), faults=plan, engine=engine).row.as_dict()
    ratio = {"lrc:10,6,5": 5, "clay:4,2,5": 2.5, "rs:4,2": 4}[text]
    assert row["repair_objects"] == 4 * width
    assert row["repair_device_read_bytes_per_lost_byte"] == ratio


def test_a_scenario_gives_the_same_answer():
    """The shipped repair scenario, smaller, with a stripe unit whose sub-chunks fill allocation units."""
    sets = [
        'schemes=["rs:10,4", "lrc:10,6,5", "clay:4,2,5"]',
        "workload.image_bytes=256000000",
        "workload.requests=50",
        'cluster.stripe_unit_bytes="32k"',
        "cluster.object_bytes=2621440",
        "cluster.pg_num=64",
    ]
    text = """
        name = "repair"
        schemes = ["rep:3"]
        [cluster]
        hosts = 4
        osds_per_host = 6
        failure_domain_erasure = "osd"
        [workload]
        ops = ["read"]
        patterns = ["rand"]
        block_sizes_bytes = ["16k"]
        queue_depth = 8
        [repair]
        lost_osds = [7]
    """
    scenario = parse_scenario(text, sets=sets)
    rows = run_scenario(scenario).rows.to_dicts()
    values = {
        row["scheme"]: row["repair_device_read_bytes_per_lost_byte"] for row in rows
    }
    assert values == {"rs:10,4": 10, "lrc:10,6,5": 5, "clay:4,2,5": 2.5}
    assert build_models(scenario).kernel.schemes("numpy_clay")
