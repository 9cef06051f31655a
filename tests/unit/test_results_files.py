"""Results survive the way to disk and back, are replaced whole, and are readable on a terminal."""

import json
import os
import re
import stat
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from stripesim.cli import output
from stripesim.models.problems import AnswerError
from stripesim.scenarios.show.files import result_files, write_files
from stripesim.scenarios.show.quantities import QUANTITIES, complete_rows, rows_frame
from stripesim.scenarios.show.result_table import Rows, result_table

#: Types of the columns, as Polars names them.
SCHEMA = {name: getattr(pl, quantity.dtype) for name, quantity in QUANTITIES.items()}


def row(**changes: Any) -> dict[str, Any]:
    filled: dict[str, Any] = {
        name: {float: 1.0, int: 1, bool: True}.get(quantity.kind, "x")
        for name, quantity in QUANTITIES.items()
    }
    return (
        filled
        | {
            "scheme": "rs:6,3",
            "op": "write",
            "pattern": "rand",
            "block_size_bytes": 4096,
        }
        | changes
    )


def printed(rows: Rows, width: int) -> str:
    console = Console(
        width=width, file=StringIO(), color_system=None, legacy_windows=False
    )
    console.print(result_table(rows, console))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def write_results(
    folder: Path,
    rows: pl.DataFrame,
    provenance: dict[str, Any],
    extra: Mapping[str, str | bytes] | None = None,
) -> list[Path]:
    return write_files(folder, result_files(rows, provenance, extra or {}))


def test_rows_have_the_columns_in_order_and_nulls_for_unknown_values() -> None:
    frame = rows_frame(
        [{"op": "read", "scheme": "rep:3", "iops": 5, "own_column": 3}, row()]
    )
    assert frame.columns == [*QUANTITIES, "own_column"]
    assert frame.drop("own_column").schema == SCHEMA
    assert frame["iops"].to_list() == [5.0, 1.0]
    assert frame["bottleneck"].to_list() == [None, "x"]
    assert rows_frame([]).schema == SCHEMA


def test_rows_have_numbers_of_python_and_one_type_per_column() -> None:
    rows = complete_rows(
        [row(iops=np.int64(5), own=np.float64(0.5)), row(requests=np.int64(2), own=1)]
    )
    assert [type(one["iops"]) for one in rows] == [float, float]
    assert [type(one["own"]) for one in rows] == [float, float]
    assert type(rows[1]["requests"]) is int


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"iops": "many"},
            "result rows: iops: got 'many', wanted a value of type float",
        ),
        (
            {"requests": 1.5},
            "result rows: requests: got 1.5, wanted a value of type int",
        ),
        ({"own": [1]}, "result rows: got "),
    ],
)
def test_rows_of_the_wrong_type_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(AnswerError, match="^" + re.escape(said)):
        rows_frame([row(own=1), row(**wrong)])


def test_files_hold_the_given_rows(tmp_path: Path) -> None:
    rows = rows_frame(
        [row(iops=1 / 3), row(block_size_bytes=None, throughput_ci_low=None)]
    )
    provenance = {
        "seed": np.int64(3),
        "share": np.float64(0.5),
        "path": Path("a/b"),
        "name": "é",
    }
    paths = write_results(
        tmp_path / "new" / "out",
        rows,
        provenance,
        {"report.html": "<p>é</p>", "raw.bin": b"\x00"},
    )
    assert [path.name for path in paths] == [
        "results.parquet",
        "results.csv",
        "report.html",
        "raw.bin",
        "provenance.json",
    ]
    assert pl.read_parquet(paths[0]).equals(rows)
    assert pl.read_csv(paths[1], schema=SCHEMA).equals(rows)
    assert paths[2].read_text(encoding="utf-8") == "<p>é</p>"
    assert json.loads(paths[4].read_text(encoding="utf-8")) == {
        "seed": 3,
        "share": 0.5,
        "path": "a/b",
        "name": "é",
    }
    assert sorted(path.name for path in paths[0].parent.iterdir()) == sorted(
        path.name for path in paths
    )


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    rows = rows_frame([row()])
    first, second = (write_results(tmp_path / name, rows, {"seed": 1}) for name in "ab")
    assert [path.read_bytes() for path in first] == [
        path.read_bytes() for path in second
    ]


@pytest.mark.parametrize("name", ["taken", "taken/below"])
def test_a_file_in_place_of_the_folder_is_called_a_file(tmp_path, name):
    (tmp_path / "taken").write_text("")
    with pytest.raises(AnswerError, match="got a file, wanted a folder"):
        write_files(tmp_path / name, {"a.txt": b"new"})


def test_a_partial_write_leaves_all_files_unchanged(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.txt": b"old"})
    with pytest.raises(AnswerError, match="wanted a folder"):
        write_files(tmp_path, {"a.txt": b"new", "no/such/folder.txt": b""})
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_bytes() == b"old"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize("umask", [0o077, 0o022, 0o002])
def test_files_have_the_permissions_that_the_umask_leaves(
    tmp_path: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        (written,) = write_files(tmp_path, {"a.txt": b"new"})
    finally:
        os.umask(before)
    assert stat.S_IMODE(written.stat().st_mode) == 0o666 & ~umask


def test_a_file_in_the_way_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("", encoding="utf-8")
    with pytest.raises(AnswerError) as caught:
        write_results(tmp_path / "out", rows_frame([row()]), {})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "provenance", "extra", "said"),
    [
        (
            pl.DataFrame({"scheme": ["x"]}),
            {},
            {},
            "got no column op, pattern, block_size_bytes",
        ),
        (rows_frame([row(series=[1, 2])]), {}, {}, "got lists in series"),
        (rows_frame([row()]), {"x": {1, 2}}, {}, "provenance: got a set"),
        (rows_frame([row()]), {"x": float("nan")}, {}, "provenance: got "),
        (rows_frame([row()]), {}, {"../x": ""}, "extra file: got '../x'"),
        (rows_frame([row()]), {}, {"results.csv": ""}, "extra file: got 'results.csv'"),
    ],
)
def test_unwritable_columns_are_refused_before_writing(
    tmp_path: Path,
    rows: pl.DataFrame,
    provenance: dict[str, Any],
    extra: dict[str, str],
    said: str,
) -> None:
    with pytest.raises(AnswerError, match=re.escape(said)):
        write_results(tmp_path, rows, provenance, extra)
    assert not list(tmp_path.iterdir())


def test_the_table_scales_units_and_names_the_bottleneck() -> None:
    rows = complete_rows(
        [
            row(
                throughput_bytes_per_s=36.84e6,
                throughput_ci_low=35.84e6,
                throughput_ci_high=37.84e6,
                latency_mean_ns=544.2e6,
                latency_p99_ns=1.5e9,
                iops=8994.0,
                cpu_ns_per_op=123_400.0,
                bottleneck="pg_lock [x]",
                bottleneck_utilisation=0.987,
            )
        ]
    )
    text = printed(rows, 200)
    body = text.splitlines()[4 if not text.splitlines()[0].strip() else 3]
    for part in (
        "rs:6,3",
        "4 KiB",
        "36.8 ±1.0",
        "544",
        "1,500",
        "8,994",
        "123",
        "pg_lock [x] 99 %",
    ):
        assert part in body
    for unit in ("[MB/s]", "[ms]", "[B/B]", "[µs/op]", "[IOPS]"):
        assert unit in text
    assert "left out" not in text


def test_missing_values_read_as_such_and_zero_as_zero() -> None:
    rows = complete_rows(
        [
            {
                "scheme": "rep:3",
                "op": "trace",
                "pattern": "trace",
                "iops": 0.0,
                "latency_mean_ns": np.nan,
            }
        ]
    )
    assert re.search(r"rep:3 +trace +trace +– +0 +– +– ", printed(rows, 200))


def test_a_narrow_table_omits_columns_and_lists_them() -> None:
    rows = complete_rows(
        [row(bottleneck="private network", bottleneck_utilisation=0.9)]
    )
    text = printed(rows, 80)
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
    assert "columns left out: " in " ".join(text.split())
    assert "private network 90 %" in text
    assert "…" not in text


@pytest.mark.parametrize(("columns", "width"), [("72", 72), (None, 100)])
def test_a_pipe_is_as_wide_as_the_shell_says(
    monkeypatch: pytest.MonkeyPatch, columns: str | None, width: int
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert output.console(100).width == width
