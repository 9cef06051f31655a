"""A disk's service time, term by term, and how it comes into a scenario."""

import numpy as np
import pytest

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.hdd import MEAN_ROOT_DISTANCE, HddModel, HddWithLogModel
from stripesim.models.provenance import Provenance
from stripesim.models.ssd import FACTOR_POINTS
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.scenario import load_scenario

ZERO = {
    "raid0_drives": 1,
    "read_track_seek_ns": 0.0,
    "write_track_seek_ns": 0.0,
    "read_mean_seek_ns": 0.0,
    "write_mean_seek_ns": 0.0,
    "rotation_ns": 1e-9,
    "read_ns_per_byte": 0.0,
    "write_ns_per_byte": 0.0,
    "flush_base_ns": 0.0,
    "run_bytes": 1 << 20,
    "block_bytes": 512,
}


def disk(**numbers):
    values = {**ZERO, **numbers}
    return HddModel(
        **values, provenance=dict.fromkeys(values, Provenance("assumed", "a test"))
    )


@pytest.mark.parametrize(
    ("term", "value", "expected"),
    [
        ("read_mean_seek_ns", 70.0, (70, 0, 0)),
        ("write_mean_seek_ns", 70.0, (0, 70, 70)),
        ("rotation_ns", 70.0, (35, 35, 35)),
        ("read_ns_per_byte", 2.0, (2048, 0, 0)),
        ("write_ns_per_byte", 2.0, (0, 2048, 2048)),
        ("flush_base_ns", 70.0, (0, 0, 70)),
        ("raid0_drives", 3, (0, 0, 0)),
    ],
)
def test_each_term_alone(term, value, expected):
    found = disk(**{term: value})
    assert (
        found.read_ns(1024),
        found.write_ns(1024),
        found.sync_ns(1024),
    ) == pytest.approx(expected, abs=1e-6)


def test_a_disk_serves_one_request_at_a_time_and_a_set_one_for_each_disk():
    assert disk().servers == 1
    assert disk(raid0_drives=4).servers == 4
    assert disk(raid0_drives=4).single().servers == 1


def test_an_extent_is_sought_once_for_each_run():
    found = disk(run_bytes=1000)
    assert found.pieces_bytes(2500) == [1000, 1000, 500]
    assert found.pieces_bytes(1000) == [1000]


def test_a_near_access_costs_a_track_seek_and_half_a_revolution():
    found = disk(
        read_track_seek_ns=3.0,
        read_mean_seek_ns=80.0,
        rotation_ns=10.0,
        read_ns_per_byte=1.0,
    )
    assert found.read_next_ns(512) == 3 + 5 + 512
    assert found.read_ns(512) == 80 + 5 + 512


def test_what_follows_the_previous_request_needs_no_seek():
    found = disk(
        read_mean_seek_ns=80.0,
        write_mean_seek_ns=90.0,
        rotation_ns=10.0,
        read_ns_per_byte=1.0,
        write_ns_per_byte=2.0,
    )
    # The drive reads ahead, but a write waits half a revolution after the flush of the one before it.
    assert found.continued_read_ns(512) == 512
    assert found.continued_write_ns(512) == 5 + 2 * 512


@pytest.mark.parametrize(("count", "root"), [(1, 8 / 15), (2, 8 / 15), (3, 16 / 35)])
def test_a_batch_in_order_of_position_seeks_less(count, root):
    # E[√x] with the density n (1 − x)^(n−1) is B(3/2, n) n: 8/15 for two, 16/35 for three positions.
    found = disk(write_mean_seek_ns=8.0, write_track_seek_ns=1.0, rotation_ns=10.0)
    expected_ns = 1 + (8 - 1) * 15 / 8 * root + 5
    assert found.deferred_write_ns(512, count) == pytest.approx(expected_ns)


@pytest.mark.parametrize("way", ["read", "write"])
def test_the_spread_has_the_mean_and_the_ends_of_seek_and_rotation(way):
    found = disk(
        **{f"{way}_track_seek_ns": 1e6, f"{way}_mean_seek_ns": 8e6, "rotation_ns": 8e6}
    )
    factors = np.array(getattr(found, f"{way}_quantiles"))
    assert len(factors) == FACTOR_POINTS
    assert (np.diff(factors) >= 0).all()
    assert factors.mean() == pytest.approx(1, abs=1e-9)
    # The mean is 12 ms, the least a track seek without rotation, the most a full stroke and a revolution.
    full_ns = 1e6 + (8e6 - 1e6) / (8 / 15)
    assert 1e6 < factors[0] * 12e6 < 3e6
    assert full_ns < factors[-1] * 12e6 < full_ns + 8e6
    # The mean over the drawn times is the data sheet's, so the seek curve was solved the right way round.
    rng = np.random.default_rng(1)
    x = np.abs(rng.random(200_000) - rng.random(200_000))
    drawn = 1e6 + (full_ns - 1e6) * np.sqrt(x) + rng.random(200_000) * 8e6
    assert drawn.mean() == pytest.approx(12e6, rel=0.01)
    assert np.quantile(drawn, [0.25, 0.5, 0.75]) == pytest.approx(
        np.quantile(factors, [0.25, 0.5, 0.75]) * 12e6, rel=0.02
    )


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ({"rotation_ns": 0}, r"rotation_ns: got 0.*0\b"),
        (
            {"read_ns_per_byte": -1},
            r"read_ns_per_byte: got -1.*0\b",
        ),
        (
            {"read_track_seek_ns": 5.0},
            r"read_mean_seek_ns: got 0.0.*read_track_seek_ns.*5.0\b",
        ),
    ],
)
def test_wrong_numbers_are_refused(numbers, says):
    with pytest.raises(ValueError, match=f"^HddModel: {says}"):
        disk(**numbers)


def scenario(*sets):
    return load_scenario(
        "quickstart",
        sets=(
            'schemes=["rep:3"]',
            'workload.ops=["read"]',
            'workload.patterns=["rand"]',
            "workload.block_sizes_bytes=[4096]",
            "workload.requests=400",
            "workload.queue_depth=1",
            *sets,
        ),
    )


def test_any_scenario_runs_on_disks_by_name():
    found = scenario('cluster.drive="hdd-7200"')
    assert isinstance(build_models(found).ssd, HddModel)
    (row,) = run_scenario(found).rows.to_dicts()
    mean_ns = ParameterSet("hdd-7200").device().read_ns(4096)
    # One request at a time: the mean of the disk, within the scatter of 400 draws, plus the path.
    assert mean_ns * 0.93 < row["latency_mean_ns"] < mean_ns * 1.07 + 1e6


def test_one_bare_disk_is_the_disk_alone():
    found = scenario('cluster.drive="hdd-7200"', 'schemes=["none"]')
    (row,) = run_scenario(found).rows.to_dicts()
    mean_ns = ParameterSet("hdd-7200").device().read_ns(4096)
    assert row["latency_mean_ns"] == pytest.approx(mean_ns, rel=0.07)


def test_writes_side_by_side_share_one_seek():
    found = disk(write_mean_seek_ns=90.0, rotation_ns=10.0, write_ns_per_byte=2.0)
    # (90 + 10 / 2) / 5 for the position, then the transfer.
    assert found.adjacent_write_ns(512, 5) == 19 + 2 * 512


def test_a_queue_is_served_in_the_order_in_which_the_head_reaches_it():
    # Given a disk with 8 reads at random positions, simulated one service after another.
    disk = ParameterSet("hdd-7200").model(HddModel, "hdd")
    rng = np.random.default_rng(1)
    stroke_ns = (disk.read_mean_seek_ns - disk.read_track_seek_ns) / MEAN_ROOT_DISTANCE
    head, now_ns, spent_ns, services = 0.5, 0.0, 0.0, 20_000
    places, angles = rng.random((2, 8))
    for _ in range(services):
        seeks_ns = disk.read_track_seek_ns + stroke_ns * np.sqrt(abs(places - head))
        turned = (now_ns + seeks_ns) / disk.rotation_ns
        taken_ns = seeks_ns + (angles - turned) % 1.0 * disk.rotation_ns
        first = int(np.argmin(taken_ns))
        spent_ns += taken_ns[first]
        now_ns += taken_ns[first]
        head = places[first]
        places[first], angles[first] = rng.random(2)
    # Then the model is at most 9 % faster: it leaves out that the others are rather far away.
    sorted_ns = disk.position_factors[8 - 1] * disk.read_position_ns
    assert 0.91 < sorted_ns / (spent_ns / services) < 1
    # One read is not sorted, and the disk has a command queue of 32.
    assert disk.position_factors[0] == 1
    assert len(disk.position_factors) == 32
    assert list(disk.position_factors) == sorted(disk.position_factors, reverse=True)


def test_a_commit_waits_for_the_log_drive_and_its_flush_but_not_for_the_disk():
    of_log = {"log_write_base_ns": 1000.0, "log_write_ns_per_byte": 0.5}
    numbers = {**ZERO, "write_mean_seek_ns": 9e6, "flush_base_ns": 300.0, **of_log}
    origin = dict.fromkeys(numbers, Provenance("assumed", "a test"))
    # 700 bytes are two blocks of 512.
    expected_ns = 1000 + 0.5 * 1024 + 300
    assert HddWithLogModel(**numbers, provenance=origin).sync_ns(700) == expected_ns
