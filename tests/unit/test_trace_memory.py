"""A trace that does not fit in the memory that is left is refused in one line, before it takes it."""

import gzip
from pathlib import Path

import polars as pl
import pytest

from stripesim.models.memory_limit import MemoryLimit
from stripesim.models.problems import TraceError
from stripesim.traces import REQUEST_SCHEMA, budget, load
from stripesim.traces.budget import FAILURE_BYTES, PENDING_BYTES, REQUEST_BYTES

ROWS = 1000


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch):
    """Leave this many bytes to the process."""

    def leave(left_bytes: int) -> None:
        limit = MemoryLimit(left_bytes, "limit RLIMIT_AS")
        monkeypatch.setattr(budget, "memory_limit", lambda reserved: limit)

    return leave


def spc(folder: Path) -> Path:
    path = folder / "t.gz"
    path.write_bytes(gzip.compress(b"0,20941264,8192,W,0.5\n" * ROWS))
    return path


def parquet(folder: Path) -> Path:
    row = (0, None, None, "d", 0, 512, False)
    frame = pl.DataFrame([row] * ROWS, schema=REQUEST_SCHEMA, orient="row")
    frame.write_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def blkparse(folder: Path) -> Path:
    # All at one place, none of them completed.
    path = folder / "t.txt"
    path.write_text("8,0 1 1 0.5 4020 Q R 8 + 8 [j]\n" * ROWS)
    return path


def fta(folder: Path) -> Path:
    path = folder / "t.tab"
    path.write_text("1 0 1 5 n1 1 160 900 4022\n" * ROWS)
    return path


def backblaze(folder: Path) -> Path:
    rows = "".join(f"2023-01-01,S{index},M,0\n" for index in range(ROWS))
    path = folder / "t.csv"
    path.write_text("date,serial_number,model,failure\n" + rows)
    return path


@pytest.mark.parametrize(
    ("make", "row_bytes"),
    [
        (spc, REQUEST_BYTES),
        (parquet, REQUEST_BYTES),
        (blkparse, PENDING_BYTES),
        (fta, FAILURE_BYTES),
        (backblaze, FAILURE_BYTES),
    ],
)
def test_the_bound_counts_rows(tmp_path: Path, left, make, row_bytes: int) -> None:
    path = make(tmp_path)
    left(ROWS * row_bytes)
    # A change of state begins each of the failure traces' spans.
    assert len(load(path)) == ROWS
    left(ROWS * row_bytes - 1)
    with pytest.raises(TraceError) as error:
        load(path)
    text = str(error.value)
    assert text.startswith(f"{path}: got more than {ROWS - 1:,} ")
    assert "that the limit RLIMIT_AS leaves" in text
    assert "\n" not in text


def test_the_bound_is_that_of_the_process() -> None:
    # A machine that runs these tests has room for a thousand requests, and not for 10**15.
    of_process = budget.RowBudget("t", REQUEST_BYTES, "requests")
    of_process.add(ROWS)
    with pytest.raises(TraceError, match="GB that the"):
        of_process.add(10**15)
