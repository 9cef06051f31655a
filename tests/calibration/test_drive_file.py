"""A drive fitted to a trace and written to a file is one that a scenario runs on."""

import re
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stripesim.api import (
    Scenario,
    TraceFit,
    fit_trace,
    load_scenario,
    load_trace,
    run,
    write_fit,
)
from stripesim.scenarios.answers.trace import answer_of_fit
from stripesim.traces import COMMAND_SCHEMA, REQUEST_SCHEMA, BlockTrace
from support.messages import states

pytestmark = pytest.mark.usefixtures("quick_figures")

DATA = Path(__file__).resolve().parents[2].parent / "shared/data/block-traces"
REAL = DATA / "blkparse_evelii_nvme_read.txt.gz"
needs_data = pytest.mark.skipif(
    not REAL.is_file(),
    reason=f"real trace {REAL.name} is missing next to the repository",
)
BASE_NS, NS_PER_BYTE = 60_000.0, 1.0
SCENARIO = """schemes = ["none"]
[cluster]
drive = "./drive.toml"
[workload]
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["16k", "128k"]
queue_depth = 1
requests = 4000
image = "prefilled"
image_bytes = "1GiB"
"""


def trace_of(
    sizes: np.ndarray,
    sigma: float,
    base_ns: float = BASE_NS,
    ns_per_byte: float = NS_PER_BYTE,
) -> BlockTrace:
    """Commands of a drive of known service times, each alone on it."""
    rng = np.random.default_rng(1)
    factor = np.exp(rng.normal(-sigma * sigma / 2, sigma, len(sizes)))
    taken = np.rint((base_ns + ns_per_byte * sizes) * factor).astype(np.int64)
    start = np.cumsum(np.concatenate(([0], taken[:-1] + 10_000)))
    rows = pl.DataFrame(
        {
            "issue_ns": start,
            "dispatch_ns": start,
            "complete_ns": start + taken,
            "device": ["8,0"] * len(sizes),
            "offset_bytes": np.arange(len(sizes)) * 131_072,
            "length_bytes": sizes,
            "is_write": [False] * len(sizes),
        },
        schema=REQUEST_SCHEMA,
    )
    return BlockTrace(rows, rows.select(COMMAND_SCHEMA.keys()), "blkparse", "own.txt")


@pytest.mark.parametrize("sizes", [(4096, 16_384), (16_384, 131_072)])
def test_a_scenario_on_the_written_drive_takes_the_times_of_the_trace(
    tmp_path: Path, sizes: tuple[int, int]
) -> None:
    trace = trace_of(np.random.default_rng(2).choice(np.array(sizes), 4000), 0.3)
    write_fit(fit_trace(trace), trace, tmp_path)
    (tmp_path / "own.toml").write_text(SCENARIO)
    scenario = load_scenario(tmp_path / "own.toml")
    rows = {
        row["block_size_bytes"]: row
        for row in run(scenario, costs=False).rows.to_dicts()
    }
    for size in sizes:
        if size in rows:
            # With 4,000 draws at a spread of 0.3, fit and run each deviate by half a percent.
            wanted_ns = BASE_NS + NS_PER_BYTE * size
            assert rows[size]["latency_mean_ns"] == pytest.approx(wanted_ns, rel=0.03)


@pytest.fixture(scope="module")
def one_size() -> tuple[TraceFit, BlockTrace]:
    """Return the fit of a small trace of one size, and the trace."""
    trace = trace_of(np.full(400, 4096), 0.2)
    return fit_trace(trace), trace


def test_a_drive_off_the_fitted_line_is_warned_of() -> None:
    # 20 µs and 4 ns per byte: 151 µs for 32 KiB. Channels serve 64 and 128 KiB in parts of 32 KiB, side by
    # side, while the drive of the trace takes two and four times as long.
    sizes = np.repeat([4096, 16_384, 32_768, 65_536, 131_072], 800)
    np.random.default_rng(3).shuffle(sizes)
    for chosen, is_warned in ((sizes, True), (sizes[sizes <= 16_384], False)):
        trace = trace_of(chosen, 0.05, base_ns=20_000.0, ns_per_byte=4.0)
        warnings = answer_of_fit(fit_trace(trace), trace).warnings
        assert bool(warnings) == is_warned
        assert all("KiB takes" in line for line in warnings)


def test_parameters_missing_from_the_trace_are_marked_assumed(
    one_size: tuple[TraceFit, BlockTrace], tmp_path: Path
) -> None:
    write_fit(*one_size, tmp_path, like="sata-tlc")
    (tmp_path / "own.toml").write_text(SCENARIO)
    listed = {
        row["name"]: row for row in run(load_scenario(tmp_path / "own.toml")).parameters
    }
    assert listed["ssd.read_base_ns"]["provenance"] == "fitted"
    assert listed["ssd.write_base_ns"]["provenance"] == "assumed"
    assert "sata-tlc" in listed["ssd.write_base_ns"]["source"]


def test_a_drive_given_inline_replaces_numbers_of_the_preset() -> None:
    keys = {
        "schemes": ["none"],
        "workload": {
            "ops": ["read"], "patterns": ["rand"], "block_sizes_bytes": [4096], "queue_depth": 1,
            "requests": 200, "image": "prefilled", "image_bytes": "64MiB",
        },
    }  # fmt: skip
    drive = {"read_base_ns": 1_000_000, "link_ns_per_byte": 0, "read_sigma": 0}
    result = run(
        Scenario(cluster={"drive": "sata-tlc", "drive_numbers": drive}, **keys)
    )
    assert result.rows["latency_mean_ns"][0] == pytest.approx(1_000_000, rel=1e-6)
    listed = {row["name"]: row for row in result.parameters}
    assert listed["ssd.read_base_ns"]["provenance"] == "given"
    assert listed["ssd.write_base_ns"]["provenance"] == "datasheet"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'drive = "./none.toml"',
            "own.toml:3: cluster.drive: got ./none.toml (no such file)",
        ),
        ('drive = "./own.toml"', "cluster.drive"),
        (
            "[cluster.drive_numbers]\nread_base_ns = -1",
            "own.toml:4: cluster.drive_numbers.read_base_ns: got -1",
        ),
        ("[cluster.drive_numbers]\nread_base = 1", "cluster.drive_numbers.read_base"),
        (
            'drive = "hdd-7200"\n[cluster.drive_numbers]\nchannels = 2',
            "channels with hdd-7200, a disk; wanted none: these are numbers of SSDs",
        ),
        (
            'drive = "hdd-7200"\n[cluster.drive_numbers]\nread_sigma = 0.3',
            "got read_sigma with hdd-7200",
        ),
    ],
)
def test_a_wrong_drive_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "own.toml").write_text(f'schemes = ["none"]\n[cluster]\n{text}\n')
    with pytest.raises(ValueError, match=r"own\.toml") as problem:
        run(load_scenario(tmp_path / "own.toml", sets=["workload.requests=10"]))
    assert states(str(problem.value), said)
    assert str(problem.value).startswith(f"{tmp_path}/own.toml:")
    assert "\n" not in str(problem.value)


def test_a_changed_drive_file_is_another_task(
    one_size: tuple[TraceFit, BlockTrace], tmp_path: Path
) -> None:
    from stripesim.scenarios.answers.sweep.plan import plan_sweep

    write_fit(*one_size, tmp_path)
    (tmp_path / "own.toml").write_text(SCENARIO)

    def task() -> str:
        return (
            plan_sweep(tmp_path / "own.toml", over=["workload.queue_depth=1"])
            .tasks[0]
            .task_id
        )

    first = task()
    path = tmp_path / "drive.toml"
    path.write_text(
        path.read_text().replace(
            "[ssd.channels]\nvalue = ", "[ssd.channels]\nvalue = 1"
        )
    )
    assert task() != first


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Text of a drive's file, which tests damage."""
    # Sizes up to 32 KiB are one part, so base and slope have separate intervals.
    trace = trace_of(
        np.random.default_rng(2).choice(np.array([4096, 16_384]), 400), 0.2
    )
    folder = tmp_path_factory.mktemp("drive")
    write_fit(fit_trace(trace), trace, folder)
    return (folder / "drive.toml").read_text()


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (
            r"(\[ssd.channels\]\nvalue = )\S+",
            r"\g<1>2.5",
            "channels: got 2.5",
        ),
        (
            r"(\[ssd.read_base_ns\]\nvalue = )\S+",
            r"\g<1>inf",
            "read_base_ns: value: got inf",
        ),
        (
            r"(\[ssd.read_base_ns\]\nvalue = )\S+",
            r"\g<1>1e15",
            "1e+15 ... 1e+12",
        ),
        (
            r"lognormal_sigma = \S+",
            "lognormal_sigma = 1e9",
            "got 1000000000.0 ... 0 ... 5",
        ),
        (r"factors = .*", 'factors = "abc"', "factors"),
        (r"factors = .*", "factors = [1, 2]", "256 ... 1"),
        (
            r"confidence_interval = .*",
            "confidence_interval = 3",
            "'int' object is not iterable",
        ),
        (r"\A", "a = " + "[" * 5000 + "]" * 5000 + "\n", "recursion"),
    ],
)
def test_a_damaged_drive_file_is_one_line_with_its_place(
    tmp_path: Path, fitted: str, was: str, now: str, said: str
) -> None:
    (tmp_path / "drive.toml").write_text(re.sub(was, now, fitted, count=1))
    (tmp_path / "own.toml").write_text(SCENARIO)
    with pytest.raises(ValueError, match=r"own\.toml") as problem:
        run(load_scenario(tmp_path / "own.toml"))
    assert states(str(problem.value), said)
    assert str(problem.value).startswith(
        f"{tmp_path}/own.toml:3: cluster.drive: drive.toml: "
    )
    assert "\n" not in str(problem.value)


@needs_data
def test_the_published_trace_gives_a_drive_with_values_in_their_intervals(
    tmp_path: Path,
) -> None:
    trace = load_trace(REAL)
    assert isinstance(trace, BlockTrace)
    written = write_fit(fit_trace(trace), trace, tmp_path)
    assert tmp_path / "drive.toml" in written
    drive = tomllib.loads((tmp_path / "drive.toml").read_text())["ssd"]
    for entry in drive.values():
        if "confidence_interval" in entry:
            low, high = entry["confidence_interval"]
            assert low <= entry["value"] <= high
    # One read of 13 ms among 733 that found the drive idle leaves the work of the others open by a tenth: 2.6
    # channels, 1.5 to the 15 in flight.
    assert drive["channels"]["value"] == 3
    assert drive["channels"]["confidence_interval"] == [1, 15]
    assert "with no upper limit" in drive["channels"]["source"]
