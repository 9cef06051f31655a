"""Statistics of a trace, against hand-made cases and against those published with the real files."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from stripesim.traces import BlockTrace, info, read_trace
from stripesim.traces.columns import REQUEST_SCHEMA
from stripesim.traces.statistics import footprint_bytes, sequential_fraction

DATA = Path(__file__).resolve().parents[2].parent / "shared/data"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(),
    reason=f"real traces not found: {DATA.name} is missing next to the repository",
)


def frame(*rows: tuple[int, str, int, int]) -> pl.DataFrame:
    full = [
        (issue, None, None, device, offset, length, False)
        for issue, device, offset, length in rows
    ]
    return pl.DataFrame(full, schema=REQUEST_SCHEMA, orient="row")


def test_sequential_is_judged_per_device() -> None:
    requests = frame(
        (0, "a", 0, 10),
        (1, "b", 10, 5),
        (2, "a", 10, 10),
        (3, "b", 15, 5),
        (4, "a", 0, 1),
    )
    assert sequential_fraction(requests) == 2 / 5


def test_footprint_is_the_union_per_device() -> None:
    requests = frame(
        (0, "a", 0, 100),
        (1, "a", 10, 10),
        (2, "a", 90, 20),
        (3, "a", 200, 1),
        (4, "b", 0, 7),
    )
    assert footprint_bytes(requests) == 110 + 1 + 7


def test_missing_recordings_are_null() -> None:
    trace = BlockTrace(frame((0, "a", 0, 512)), None, "fio-iolog", "x")
    summary = info(trace)
    assert (
        summary["service_mean_us"]
        is summary["service_p99_us"]
        is summary["response_p50_us"]
        is summary["iops"]
        is None
    )
    assert summary["duration_s"] == 0
    json.dumps(summary)


@needs_data
@pytest.mark.parametrize(
    "name", ["blkparse_evelii_nvme_read.txt.gz", "msr-cambridge1-sample.csv"]
)
def test_published_statistics(name: str) -> None:
    wanted = json.loads((DATA / "block-traces/stats.json").read_text())[name]
    trace = read_trace(DATA / "block-traces" / name, strict=True)
    summary = info(trace)
    requests = trace.requests
    lengths = requests["length_bytes"]
    assert summary["requests"] == wanted["requests"]
    assert summary["devices"] == wanted["devices"]
    # Published values are rounded. The tolerance is half a unit of the last place.
    assert summary["duration_s"] == pytest.approx(wanted["duration_s"], abs=5e-4)
    assert summary["iops"] == pytest.approx(wanted["iops"], abs=5e-3)
    assert summary["read_ratio"] == pytest.approx(wanted["read_ratio"], abs=5e-5)
    assert summary["bytes_mean"] == pytest.approx(wanted["size_mean"], abs=0.05)
    assert summary["sequential_fraction"] == pytest.approx(wanted["seq_frac"], abs=5e-5)
    for part in ("p50", "p90", "p99"):
        assert summary[f"bytes_{part}"] == wanted[f"size_{part}"]
    assert lengths.max() == wanted["size_max"]
    moved = {
        w: int(lengths.filter(requests["is_write"] == w).sum()) / 1e9
        for w in (False, True)
    }
    assert moved[False] == pytest.approx(wanted["read_GB"], abs=5e-5)
    assert moved[True] == pytest.approx(wanted["write_GB"], abs=5e-5)
    counts = dict(lengths.value_counts().rows())
    assert {size: counts[size] for size, _ in wanted["top_sizes"]} == dict(
        wanted["top_sizes"]
    )
    assert int((requests["offset_bytes"] + lengths).max()) / 1e9 == pytest.approx(
        wanted["max_offset_GB"], rel=1e-3
    )  # type: ignore[arg-type]
    if wanted["resp_mean_ms"] is not None:
        assert summary["response_mean_us"] / 1e3 == pytest.approx(
            wanted["resp_mean_ms"], abs=5e-4
        )
        assert summary["response_p50_us"] / 1e3 == pytest.approx(
            wanted["resp_p50_ms"], abs=5e-4
        )


@needs_data
def test_cluster_traces_agree_with_the_kernels_counters() -> None:
    """Commands and bytes as the block device's own counters had them while the trace was taken."""
    checked = 0
    for meta_path in sorted((DATA / "ceph16/block-traces").glob("*.meta.json")):
        meta = json.loads(meta_path.read_text())
        for device, wanted in meta["check"].items():
            (path,) = meta_path.parent.glob(
                meta_path.name.replace(".meta.json", f".{device}.*.txt.gz")
            )
            if not gzip.decompress(path.read_bytes()).strip():
                continue
            trace = read_trace(path, strict=True)
            assert trace.commands is not None
            commands = trace.commands.drop_nulls("complete_ns")
            reads, writes = (
                commands.filter(~commands["is_write"]),
                commands.filter(commands["is_write"]),
            )
            assert reads["length_bytes"].sum() == wanted["C_read_bytes"]
            assert writes["length_bytes"].sum() == wanted["C_write_bytes"]
            assert writes.height == wanted["C_write_with_data"]
            assert (
                trace.counts.get("back merges", 0)
                == meta["stat_delta"][device]["wr_merges"]
            )
            # Requests merged into commands move the same bytes.
            done = trace.requests.drop_nulls("complete_ns")
            assert done["length_bytes"].sum() == commands["length_bytes"].sum()
            checked += 1
    assert checked >= 40


@needs_data
def test_every_iolog_reads_without_fault() -> None:
    paths = sorted((DATA / "ceph16/iolog").glob("*.log.gz"))
    assert len(paths) == 150
    runs = pl.read_csv(DATA / "ceph16/runs.csv", infer_schema_length=None)
    ops = dict(runs.select("run_id", "ops").rows())
    for path in paths:
        trace = read_trace(path, strict=True)
        assert len(trace) == ops[path.name.removesuffix(".log.gz")]
