"""The project's CSV and Parquet files are read back unchanged, and other CSV files with `--columns`."""

from pathlib import Path

import polars as pl
import pytest

from stripesim.cli.app import app
from stripesim.models.problems import TraceError
from stripesim.traces import (
    COMMAND_SCHEMA,
    EVENT_SCHEMA,
    REQUEST_SCHEMA,
    SPAN_SCHEMA,
    BlockTrace,
    FailureTrace,
    convert,
    load,
)

#: Issue, dispatch, complete, device, offset, length, write: with quotes in a name, times below 0 and nulls.
REQUESTS = [
    (0, None, None, "8,0", 0, 512, False),
    (5, 7, None, 'a "b", c', 2**61, 1, True),
    (5, -3, 90, "8,0", 4096, 4096, True),
]
COMMANDS = [(-3, 90, "8,0", 4096, 4096, True), (7, None, 'a "b", c', 0, 1, False)]
EVENTS = [
    (10, "n1.0", "n1", None, False, "Hardware: CPU, board"),
    (20, "n1.0", "n1", None, True, None),
]
SPANS = [(10, 20, "n1.0", "n1", None, False, "Hardware: CPU, board", False, True, 7)]
FORMATS = [".csv", ".parquet"]


def block_trace(commands: bool = True) -> BlockTrace:
    table = pl.DataFrame(COMMANDS, schema=COMMAND_SCHEMA, orient="row")
    requests = pl.DataFrame(REQUESTS, schema=REQUEST_SCHEMA, orient="row")
    return BlockTrace(requests, table if commands else None, "made", "made")


def put(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize("commands", [True, False])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_converted_block_trace_is_read_back(
    tmp_path: Path, suffix: str, commands: bool
) -> None:
    written = block_trace(commands)
    convert(written, tmp_path / f"t{suffix}")
    again = load(tmp_path / f"t{suffix}", strict=True)
    assert isinstance(again, BlockTrace)
    assert again.requests.rows() == written.requests.rows()
    assert (again.commands is None) == (not commands)
    if again.commands is not None:
        assert again.commands.rows() == COMMANDS


@pytest.mark.parametrize("spans", [True, False])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_converted_failure_trace_is_read_back(
    tmp_path: Path, suffix: str, spans: bool
) -> None:
    events = pl.DataFrame(EVENTS, schema=EVENT_SCHEMA, orient="row")
    table = pl.DataFrame(SPANS, schema=SPAN_SCHEMA, orient="row") if spans else None
    convert(FailureTrace(events, table, "made", "made"), tmp_path / f"t{suffix}")
    again = load(tmp_path / f"t{suffix}", strict=True)
    assert isinstance(again, FailureTrace)
    assert again.events.rows() == EVENTS
    assert (again.spans is None) == (not spans)
    if again.spans is not None:
        assert again.spans.rows() == SPANS


def test_columns_that_are_not_needed_may_be_missing_and_others_present(
    tmp_path: Path,
) -> None:
    text = (
        "note,is_write,length_bytes,offset_bytes,issue_ns,order\nx,true,512,1024,7,9\n"
    )
    (row,) = load(put(tmp_path, text), strict=True).requests.rows()
    assert row == (0, None, None, "0", 1024, 512, True)


def test_damaged_rows_of_converted_files_are_located(tmp_path: Path) -> None:
    path, commands = convert(block_trace(), tmp_path / "t.csv")
    with path.open("a") as file:
        # One cell too few, a length of 0, unbalanced quotes, and a completion that is not a number.
        file.write('9,,,8,0\n9,,,a,0,0,true\n9,,,"a,0,512,true\n9,,x,a,0,512,true\n')
    with commands.open("a") as file:
        file.write("9,,a,0,512,maybe\n")
    trace = load(path)
    assert len(trace) == len(REQUESTS)
    assert [(Path(f.source).name, f.line) for f in trace.faults.first] == [
        (commands.name, 4),
        *((path.name, line) for line in (5, 6, 7, 8)),
    ]


def test_rows_of_parquet_out_of_range_are_located(tmp_path: Path) -> None:
    rows = [
        *REQUESTS,
        (9, None, None, "a", -1, 512, True),
        (None, None, None, "a", 0, 1, True),
    ]
    pl.DataFrame(rows, schema=REQUEST_SCHEMA, orient="row").write_parquet(
        tmp_path / "t"
    )
    trace = load(tmp_path / "t")
    assert len(trace) == len(REQUESTS)
    assert [(fault.unit, fault.line) for fault in trace.faults.first] == [
        ("row", 4),
        ("row", 5),
    ]


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_parquet_that_is_cut_is_refused_in_one_line(
    tmp_path: Path, kept: float
) -> None:
    (path,) = convert(block_trace(commands=False), tmp_path / "t.parquet")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    for name in (None, "columns", "events"):
        with pytest.raises(TraceError) as error:
            load(path, format=name)
        assert "\n" not in str(error.value)


def test_parquet_of_other_types_is_refused_with_the_column(tmp_path: Path) -> None:
    frame = pl.DataFrame(REQUESTS, schema=REQUEST_SCHEMA, orient="row")
    frame.with_columns(pl.col("issue_ns").cast(pl.Float64)).write_parquet(
        tmp_path / "t"
    )
    with pytest.raises(TraceError, match=r"issue_ns: got .*'Float64'"):
        load(tmp_path / "t")


def test_a_conversion_removes_commands_of_another_trace(
    tmp_path: Path,
) -> None:
    convert(block_trace(), tmp_path / "t.csv")
    with pytest.raises(TraceError, match=r"t\.commands\.csv: got commands of another"):
        convert(block_trace(commands=False), tmp_path / "t.csv")


ROLES = {"time_us": "ts", "offset": "lba", "size": "bytes", "op": "rw"}
PLAIN = 'id,ts,"lba",bytes,rw\n1,1.5,4096,512,R\n2,4,8192,1024,"Write"\n'
#: Times relative to the first, 1.5 µs: 4 - 1.5 µs = 2500 ns.
ROWS = [
    (0, None, None, "0", 4096, 512, False),
    (2500, None, None, "0", 8192, 1024, True),
]


@pytest.mark.parametrize("separator", [",", ";", "\t", "  "])
def test_any_csv_is_read_by_the_names_of_its_columns(
    tmp_path: Path, separator: str
) -> None:
    path = put(tmp_path, PLAIN.replace(",", separator))
    assert load(path, columns=ROLES, strict=True).requests.rows() == ROWS


def test_columns_without_headings_are_numbered(tmp_path: Path) -> None:
    path = put(tmp_path, PLAIN.partition("\n")[2])
    roles = {"time_us": "2", "offset": "3", "size": "4", "op": "5"}
    assert load(path, columns=roles, strict=True).requests.rows() == ROWS


@pytest.mark.parametrize(
    ("roles", "row", "wanted"),
    [
        # 2 s = 2 × 10⁹ ns after the first, a sector is 512 bytes, 0.25 s until the response.
        (
            "time_s,offset_sectors,size_sectors,is_write,response_s,device",
            "2,3,4,1,0.25,d",
            (2 * 10**9, None, 2_250_000_000, "d", 1536, 2048, True),
        ),
        (
            "time_ms,offset,size,is_read",
            "2,3,4,0",
            (2_000_000, None, None, "0", 3, 4, True),
        ),
        ("time_ns,offset,size,op", "2,3,4,rd", (2, None, None, "0", 3, 4, False)),
    ],
)
def test_units_are_those_of_the_roles(
    tmp_path: Path, roles: str, row: str, wanted: tuple[object, ...]
) -> None:
    first = "0," + row.partition(",")[2]
    path = put(tmp_path, f"{roles}\n{first}\n{row}\n")
    columns = {role: role for role in roles.split(",")}
    assert load(path, columns=columns, strict=True).requests.rows()[1] == wanted


def test_a_time_takes_its_unit_from_the_end_of_its_column(tmp_path: Path) -> None:
    path = put(tmp_path, PLAIN.replace("ts", "issue_us"))
    columns = {"time": "issue_us", **{k: v for k, v in ROLES.items() if k != "time_us"}}
    assert load(path, columns=columns).requests.rows() == ROWS


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({**ROLES, "offset": "none"}, "none (offset)"),
        ({"time_us": "ts", "op": "rw"}, "a size"),
        ({**ROLES, "time_ns": "id"}, "time_us and time_ns"),
        ({**ROLES, "colour": "id"}, "colour"),
        ({**ROLES, "op": "ts"}, "time_us and op"),
        ({"time": "ts", "offset": "lba", "size": "bytes", "op": "rw"}, "time_us"),
        ({"time_us": "9", "offset": "1", "size": "2", "op": "3"}, "9 (time_us)"),
    ],
)
def test_columns_that_cannot_be_are_refused_in_one_line(
    tmp_path: Path, columns: dict[str, str], named: str
) -> None:
    with pytest.raises(TraceError) as error:
        load(put(tmp_path, PLAIN), columns=columns)
    text = str(error.value)
    assert "\n" not in text
    assert named in text
    assert "got" in text
    assert "wanted" in text


def test_an_unknown_csv_is_refused_with_the_columns_it_lacks(tmp_path: Path) -> None:
    path = put(tmp_path, "issue_ns,lba,length_bytes,rw\n1,2,3,R\n")
    with pytest.raises(TraceError) as error:
        load(path)
    assert "without the columns offset_bytes, is_write" in str(error.value)
    assert "--columns" in str(error.value)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_an_unknown_csv_without_commas_is_referred_to_columns(
    tmp_path: Path, separator: str
) -> None:
    path = put(tmp_path, separator.join(("rw", "bytes", "lba", "ts")) + "\n")
    with pytest.raises(TraceError, match=r"without commas.* --columns time_us=NAME"):
        load(path)


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_text_in_utf_16_is_named_as_such(tmp_path: Path, order: str) -> None:
    path = tmp_path / "exported.csv"
    path.write_bytes(f"\ufeff{PLAIN}".encode(order))
    with pytest.raises(TraceError, match=r"got text in UTF-16, wanted .* in UTF-8"):
        load(path)


@pytest.mark.parametrize("folder", [".", "..", "traces"])
def test_a_folder_is_refused_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / "traces").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TraceError, match="wanted a readable file"):
        load(folder)


def test_the_command_line_reads_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path, PLAIN)
    columns = ",".join(f"{role}={name}" for role, name in ROLES.items())
    app(
        ["trace", "info", str(path), "--columns", columns, "--json", "-"],
        standalone_mode=False,
    )
    assert '"requests": 2' in capsys.readouterr().out
    for odd in ("time_us", "time_us=", "op=a,op=b"):
        with pytest.raises(ValueError, match="--columns: got"):
            app(["trace", "info", str(path), "--columns", odd], standalone_mode=False)
