"""Compare block traces of simulated devices with those recorded on the real ones."""

from functools import cache
from pathlib import Path

import polars as pl
import pytest

from stripesim.scenarios.studies.ceph16.device_trace import device_traces
from stripesim.scenarios.studies.ceph16.measured import load
from stripesim.scenarios.studies.ceph16.runs import predict_run
from stripesim.traces.columns import BlockTrace
from stripesim.traces.read import read_trace
from stripesim.traces.write import write_blkparse

BLOCK_BYTES = 4096
REAL = Path(__file__).resolve().parents[2].parent / "shared/data/ceph16/block-traces"
# The measured runs and the recorded ones used the same load on images of another size.
CELLS = (
    "ec63-overwrite-rand-4096-q64",
    "ec63-overwrite-rand-16384-q64",
    "rep3-overwrite-rand-4096-q64",
    "rep3-write-seq-4096-q256",
)


def mix_of(traces: list[BlockTrace]) -> dict[str, float]:
    """Describe the commands of all devices together."""
    frames = [trace.commands for trace in traces if trace.commands is not None]
    every = pl.concat(
        [
            frame.select("device", "offset_bytes", "length_bytes", "is_write")
            for frame in frames
        ]
    )
    reads = every.filter(~pl.col("is_write"))
    writes = every.filter(pl.col("is_write"))
    ends: set[tuple[str, int]] = set()
    follows = 0
    for device, offset, length in writes.select(
        "device", "offset_bytes", "length_bytes"
    ).iter_rows():
        follows += (device, offset) in ends
        ends.add((device, offset + length))
    total = float(every["length_bytes"].sum())
    return {
        "read_ratio": reads.height / max(1, every.height),
        "read_bytes_ratio": float(reads["length_bytes"].sum()) / max(1.0, total),
        "bytes_mean_read": float(reads["length_bytes"].sum()) / max(1, reads.height),
        "bytes_mean_write": float(writes["length_bytes"].sum()) / max(1, writes.height),
        "share_4k": every.filter(pl.col("length_bytes") == BLOCK_BYTES).height
        / max(1, every.height),
        "sequential_writes": follows / max(1, writes.height),
    }


@pytest.fixture(scope="module")
def runs():
    return {run.run_id: run for run in load().runs}


@pytest.fixture(scope="module")
def simulated_traces(runs):
    """Return a function that simulates the devices of a run, once for all tests."""
    return cache(lambda run_id: device_traces(runs[run_id]))


@pytest.mark.parametrize("cell", CELLS)
def test_placement_mixes_equally_for_all_devices(simulated_traces, cell):
    files = [
        path
        for path in sorted(REAL.glob(f"{cell}.loop*.txt.gz"))
        if path.stat().st_size > 1000
    ]
    if not files:
        pytest.skip(f"no recorded block traces in {REAL}")
    real = mix_of([read_trace(path) for path in files])
    simulated = mix_of(list(simulated_traces(f"main-{cell}").values()))
    assert simulated["read_ratio"] == pytest.approx(real["read_ratio"], abs=0.06)
    assert simulated["read_bytes_ratio"] == pytest.approx(
        real["read_bytes_ratio"], abs=0.03
    )
    # Four of sixteen devices were recorded, and writes of the log depend on how many transactions share one.
    assert simulated["bytes_mean_write"] == pytest.approx(
        real["bytes_mean_write"], rel=0.3
    )
    assert simulated["share_4k"] == pytest.approx(real["share_4k"], abs=0.12)
    assert simulated["sequential_writes"] == pytest.approx(
        real["sequential_writes"], abs=0.08
    )


def test_the_trace_holds_the_bytes_of_the_run_and_reads_back(
    runs, simulated_traces, tmp_path
):
    run = runs["main-ec63-overwrite-rand-4096-q64"]
    traces = simulated_traces(run.run_id)
    client_bytes = int(run.requests.lengths_bytes.sum())
    read = sum(
        int(t.commands.filter(~t.commands["is_write"])["length_bytes"].sum())
        for t in traces.values()
    )
    row = predict_run(run)
    assert read / client_bytes == pytest.approx(
        row["device_read_bytes_per_client_byte"]
    )
    one = min(traces)
    write_blkparse(traces[one], tmp_path / "osd.txt")
    again = read_trace(tmp_path / "osd.txt", format="blkparse", strict=True)
    assert len(again) == len(traces[one])
    assert mix_of([again])["bytes_mean_write"] == pytest.approx(
        mix_of([traces[one]])["bytes_mean_write"]
    )
