"""Disks under a store: deferred writes, and requests that follow one another, against hand calculations."""

import pytest

from stripesim import Scenario, run
from stripesim.calibration.parameters.sets import ParameterSet
from support.messages import states

DISK = "hdd-7200-nvme-db"
MODEL = ParameterSet(DISK).device()
KIB = 1024
MIB = 1024 * KIB


def result_of(
    op,
    pattern,
    size_bytes,
    *,
    queue_depth,
    cluster=None,
    generation="reef",
    unchecked=False,
    **workload,
):
    """Run one load on three copies, with one disk on each of three hosts."""
    keys = {
        "hosts": 3,
        "osds_per_host": 1,
        "pg_num": 32,
        "parameters": "nvme",
        "drive": DISK,
        "public_gbit_per_s": 100,
        "private_gbit_per_s": 100,
    }
    scenario = Scenario(
        schemes=["rep:3"],
        generation=generation,
        cluster=keys | (cluster or {}),
        workload={
            "ops": [op], "patterns": [pattern], "block_sizes_bytes": [size_bytes], "queue_depth": queue_depth,
            "image": "prefilled", "image_bytes": "4GiB",
        } | workload,
    )  # fmt: skip
    return run(scenario, costs=False, unchecked=unchecked)


def row_of(*load, **keys):
    """Return the result row of one load."""
    return result_of(*load, **keys).rows.to_dicts()[0]


def burst_of(*load, **keys):
    """Return the row of a load that time bounds, so that it is not lengthened to what disks sustain."""
    bound = {"duration_s": 0.02, "unchecked": True}
    return result_of(*load, **keys, **bound).rows.to_dicts()[0]


def test_a_small_write_waits_for_the_log_and_not_for_the_disk():
    # The disk takes 8.2 ms to seek and 4.2 ms to turn, the log 0.05 ms, processors and network the rest.
    # There is room for 64 writes that wait for each disk.
    row = burst_of("write", "rand", 4 * KIB, queue_depth=1)
    assert row["latency_mean_ns"] < 1e6
    # Three copies of 4 KiB, once on the log and once on the disk, with metadata.
    assert row["device_write_bytes_per_client_byte"] > 6


def test_a_write_of_the_deferral_size_waits_for_the_disk():
    # 64 KiB is not below bluestore_prefer_deferred_size_hdd.
    row = row_of("write", "rand", 64 * KIB, queue_depth=1, requests=150)
    assert row["latency_mean_ns"] > MODEL.write_ns(64 * KIB)


def test_kraken_defers_no_whole_writes():
    cluster = {"parameters": "kraken", "cores_per_host": 24}
    latency_ns = {
        release: burst_of(
            "write",
            "rand",
            4 * KIB,
            queue_depth=1,
            cluster=cluster,
            generation=release,
        )["latency_mean_ns"]
        for release in ("kraken", "pacific")
    }
    assert latency_ns["kraken"] > MODEL.write_ns(4 * KIB)
    assert latency_ns["pacific"] < MODEL.write_ns(4 * KIB) / 3


def test_the_disk_limits_a_lasting_load_of_deferred_writes():
    # A batch of 64 in order of position: E[√x] = Γ(1.5) Γ(65) / Γ(65.5) = 0.1101. A seek takes
    # 0.32 + (8.2 − 0.32) · 15/8 · 0.1101 = 1.947 ms, half a revolution 4.165 ms, 4 KiB 0.023 ms: 6.135 ms.
    write_ns = MODEL.deferred_write_ns(4 * KIB, 64)
    assert write_ns == pytest.approx(6.135e6, rel=1e-3)
    # All three disks take every write: 163 per second. 64 wait without delaying others.
    requests = 3000
    row = row_of("write", "rand", 4 * KIB, queue_depth=16, requests=requests)
    lasting = 1e9 / write_ns
    assert 0.95 * lasting < row["iops"] < 1.02 * lasting * requests / (requests - 64)


def test_a_rate_above_what_disks_sustain_is_called_a_burst():
    # Of 150 writes each store has room for 64, so that its disk limits only the others.
    bound = {"duration_s": 0.05, "unchecked": True}
    burst = result_of("write", "rand", 4 * KIB, queue_depth=16, **bound)
    assert states(burst.holes[-1], "burst ... drives ... 163")
    # Reads are not deferred.
    reads = result_of("read", "rand", 4 * KIB, queue_depth=16, requests=150)
    assert not any("burst" in line for line in reads.holes)


@pytest.mark.parametrize(
    ("size_bytes", "queue_depth"), [(64 * KIB, 1), (64 * KIB, 64), (MIB, 1)]
)
def test_sequential_reads_seek_once_per_object(size_bytes, queue_depth):
    # Of the 4 MiB / size reads of an object, the first one seeks and turns: 7.4 + 4.165 = 11.565 ms. All of
    # them transfer at 5.556 ns/B: 4 MiB in 23.3 ms.
    seek_ns = 7.4e6 + 8.33e6 / 2
    object_ns = seek_ns + 5.556 * 4 * MIB
    row = row_of(
        "read",
        "seq",
        size_bytes,
        queue_depth=queue_depth,
        requests=40 * 4 * MIB // size_bytes,
    )
    rate_per_disk = 4 * MIB / size_bytes / object_ns * 1e9
    if queue_depth == 1:
        # Processors and network add well under a millisecond per MiB to each read.
        assert 0.6 * rate_per_disk < row["iops"] < rate_per_disk
    else:
        # 64 reads in flight are on one or two objects, so on one or two disks.
        assert 0.95 * rate_per_disk < row["iops"] < 2 * rate_per_disk


def test_random_reads_still_seek():
    row = row_of("read", "rand", 64 * KIB, queue_depth=1, requests=300)
    # Mean 11.565 ms and 0.364 ms of transfer. 300 draws of a spread of a third: ± 2 % per standard error.
    assert row["latency_mean_ns"] == pytest.approx(MODEL.read_ns(64 * KIB), rel=0.1)


def test_two_streams_on_one_disk_seek_from_one_another():
    # Two clients read their own images in turn, so the disk goes to and fro between them.
    one_disk = {"hosts": 3, "pg_num": 1}
    row = row_of(
        "read",
        "seq",
        64 * KIB,
        queue_depth=1,
        requests=400,
        cluster=one_disk,
        clients=2,
    )
    assert row["iops"] < 1.1e9 / MODEL.read_ns(64 * KIB)
