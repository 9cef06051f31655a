"""Every reader on published files, compared with separately counted statistics; skipped without the files."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from stripesim.traces import BlockTrace, load, read_trace

DATA = Path(__file__).resolve().parents[2].parent / "shared/data"
BLOCK = DATA / "block-traces"
CEPH = DATA / "ceph16"

pytestmark = pytest.mark.skipif(
    not (BLOCK / "stats.json").exists(), reason=f"no published traces in {BLOCK}"
)

FORMATS = {
    "linux-mysql.load.gz": "blkreplay",
    "linux-webserver-2.load.gz": "blkreplay",
    "windows-mssql.load.gz": "blkreplay",
    "cloudphysics_w_sample.vscsi.gz": "vscsi",
    "msr-cambridge1-sample.csv": "msr",
    "systor17-additional-sample.csv.gz": "systor",
    "systor17-traces-sample.csv.gz": "systor",
    "tencent_cloud_storage-sample.csv.gz": "tencent",
    "umass_financial1_first10000.spc.gz": "spc",
    "ms_DTRS100M.ssdsim.trace.gz": "ssdsim",
    "mqsim_tpcc-small.trace.gz": "ssdsim",
    "mqsim_wsrch-small.trace.gz": "ssdsim",
    "blkparse_evelii_nvme_read.txt.gz": "blkparse",
}


@pytest.mark.parametrize("name", FORMATS)
def test_format_counts_ratios_and_sizes_agree_with_the_published_statistics(
    name: str,
) -> None:
    stats: dict[str, Any] = json.loads((BLOCK / "stats.json").read_text())[name]
    trace = load(BLOCK / name, strict=True)
    assert isinstance(trace, BlockTrace)
    assert trace.format == FORMATS[name]
    requests = trace.requests
    assert requests.height == stats["requests"]
    # The file gives four or five digits, of sizes one decimal.
    assert 1 - requests["is_write"].sum() / requests.height == pytest.approx(
        stats["read_ratio"], abs=6e-5
    )
    sizes = requests["length_bytes"]
    assert float(sizes.mean()) == pytest.approx(stats["size_mean"], abs=0.06)  # type: ignore[arg-type]
    assert sizes.max() == stats["size_max"]
    # Gigabytes with four decimals.
    for key, written in (("read_GB", False), ("write_GB", True)):
        moved = requests.filter(requests["is_write"] == written)["length_bytes"].sum()
        assert moved / 1e9 == pytest.approx(stats[key], abs=6e-5)
    assert requests["device"].n_unique() == stats["devices"]
    seconds = (requests["issue_ns"][-1] - requests["issue_ns"][0]) / 1e9
    assert seconds == pytest.approx(stats["duration_s"], abs=6e-3)
    for size, count in stats["top_sizes"]:
        assert int((sizes == size).sum()) == count
    if stats["resp_mean_ms"] is not None:
        response = (requests["complete_ns"] - requests["issue_ns"]).mean()
        assert float(response) / 1e6 == pytest.approx(stats["resp_mean_ms"], abs=6e-4)  # type: ignore[arg-type]


def ceph_cells() -> list[tuple[Path, dict[str, int]]]:
    cells = []
    for meta in sorted((CEPH / "block-traces").glob("*.meta.json")):
        document = json.loads(meta.read_text())
        for device, checks in document["check"].items():
            stem = meta.name.removesuffix(".meta.json")
            (path,) = (CEPH / "block-traces").glob(f"{stem}.{device}.*.txt.gz")
            cells.append((path, checks))
    return cells


def test_device_commands_of_our_own_cluster_agree_with_its_counters() -> None:
    cells = ceph_cells()
    assert len(cells) > 30
    for path, checks in cells:
        with gzip.open(path, "rt") as file:
            data = sum(" C " in line and " + " in line for line in file)
        if not data:
            continue
        trace = read_trace(path, strict=True)
        assert trace.commands is not None
        reads = trace.commands.filter(~trace.commands["is_write"])
        # The counter holds dispatches of reads, served or not; a read in flight at the end has no completion.
        assert reads.height == checks["D_read"], path.name
        done = trace.commands.drop_nulls("complete_ns")
        for key, written in (("C_read_bytes", False), ("C_write_bytes", True)):
            assert (
                done.filter(done["is_write"] == written)["length_bytes"].sum()
                == checks[key]
            ), path.name


def test_iologs_of_our_cluster_contain_the_requested_load() -> None:
    logs = sorted((CEPH / "block-traces").glob("*.fio_iolog.gz"))
    assert logs
    for path in logs:
        size = int(path.name.split("-")[3])
        trace = read_trace(path, strict=True)
        assert set(trace.requests["length_bytes"].unique()) == {size}
        assert trace.requests["is_write"].all() == ("-read-" not in path.name)
