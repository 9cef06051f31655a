"""Classes of drives are the measured drive, scaled to a data sheet."""

from dataclasses import fields

import pytest

from stripesim import Scenario, run
from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.ssd import numbers_of_sheet

MEASURED = "samsung-pm983"
# 4 KiB reads/s, latency of one [µs], large reads [MB/s], 4 KiB writes/s, large writes [MB/s].
SHEETS = {
    MEASURED: (540_000, 85, 3000, 50_000, 1900),
    "nvme-tlc": (540_000, 85, 3000, 50_000, 1900),
    "nvme-qlc": (971_000, 110, 7000, 120_000, 3000),
    "sata-tlc": (72_000, 110, 500, 33_000, 490),
}


def numbers(sheet):
    """Return the numbers of a drive with these figures."""
    read_iops, latency_us, read_mb_s, write_iops, write_mb_s = sheet
    return numbers_of_sheet(
        read_4k_iops=read_iops,
        read_latency_ns=latency_us * 1e3,
        read_bytes_per_s=read_mb_s * 1e6,
        write_4k_iops=write_iops,
        write_bytes_per_s=write_mb_s * 1e6,
    )


@pytest.mark.parametrize("name", SHEETS)
def test_numbers_follow_from_the_data_sheet(name):
    drive = ParameterSet(name).device()
    for key, value in numbers(SHEETS[name]).items():
        # Sets hold whole nanoseconds, and four digits of slopes.
        assert getattr(drive, key) == pytest.approx(value, rel=1e-3, abs=0.5), key
    # Every other number is that of the measured drive.
    measured = ParameterSet(MEASURED).device()
    others = {field.name for field in fields(drive)} - numbers(SHEETS[name]).keys()
    for key in others - {"provenance"}:
        assert getattr(drive, key) == getattr(measured, key), key


@pytest.mark.parametrize("name", SHEETS)
def test_an_idle_drive_answers_as_its_data_sheet_says(name):
    read_iops, latency_us, read_mb_s, write_iops, write_mb_s = SHEETS[name]
    drive = ParameterSet(name).device()

    def read_ns(size_bytes):
        return drive.read_ns(size_bytes) + drive.link_ns_per_byte * size_bytes

    assert read_ns(4096) == pytest.approx(latency_us * 1e3, rel=1e-3)
    # The further 61,440 B of 64 KiB take only their time on the link, such as 20 µs at 3,000 MB/s.
    larger_ns = latency_us * 1e3 + 61_440 * 1e3 / read_mb_s
    assert read_ns(65_536) == pytest.approx(larger_ns, rel=1e-3)
    assert drive.write_ns(4096) == pytest.approx(1e9 / write_iops, rel=1e-3)
    large_ns = drive.write_ns(1 << 20) - drive.write_ns(4096)
    assert large_ns * write_mb_s * 1e-3 == pytest.approx((1 << 20) - 4096, rel=1e-3)
    assert drive.servers / drive.read_base_ns * 1e9 == pytest.approx(read_iops, rel=0.1)


LOADS = [
    ("read", 4096, 1),
    ("read", 65_536, 1),
    ("read", 16_384, 32),
    ("write", 16_384, 16),
]


@pytest.fixture(scope="module")
def latencies():
    """Mean and p99 of rep:3 and RS(4,2) with both sets of one drive, under several loads."""

    def of(drive, op, size_bytes, depth):
        scenario = Scenario(
            schemes=["rep:3", "rs:4,2"],
            generation="reef",
            cluster={"hosts": 7, "parameters": "nvme", "drive": drive},
            workload={
                "ops": [op], "patterns": ["rand"], "block_sizes_bytes": [size_bytes], "queue_depth": depth,
                "requests": 1500, "image": "prefilled", "image_bytes": "4GiB",
            },
        )  # fmt: skip
        rows = run(scenario, costs=False).rows
        return rows["latency_mean_ns"].to_list() + rows["latency_p99_ns"].to_list()

    return {
        (drive, load): of(drive, *load)
        for drive in (MEASURED, "nvme-tlc")
        for load in LOADS
    }


@pytest.mark.parametrize("load", LOADS)
def test_two_sets_of_one_drive_rank_schemes_alike(latencies, load):
    measured, generic = latencies[MEASURED, load], latencies["nvme-tlc", load]
    for first in (0, 2):
        of_measured = measured[first] < measured[first + 1]
        assert of_measured == (generic[first] < generic[first + 1])
    assert generic == pytest.approx(measured, rel=0.1)
