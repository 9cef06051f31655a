"""Columns, units and faults of the delimited text formats, and archives without a trace."""

import gzip
import lzma
import struct
import zipfile
from pathlib import Path

import pytest

from stripesim.models.problems import TraceError
from stripesim.traces import read_trace
from stripesim.traces import source as source_module
from stripesim.traces.lines import BACKWARD_COUNT

# Name, one line, and the expected row: complete - issue, device, offset, length, is_write.
LINES = {
    "spc": ("1,20,3584,W,0.5\n", (None, "1", 10240, 3584, True)),
    "systor": (
        "1455591804.310701000,0.006475000,R,3,512,4096\n",
        (6_475_000, "3", 512, 4096, False),
    ),
    "tencent": ("1538323200,8,16,1,1058\n", (None, "1058", 4096, 8192, True)),
    "alibaba": (
        "419,W,8792731648,16384,1577808000000046\n",
        (None, "419", 8792731648, 16384, True),
    ),
    "cloudphysics": ("1,5633898368802,2a,512,8\n", (None, "0", 4096, 512, True)),
    "blkreplay": (
        "  0.000001 ;  8 ; 64 ; RA ; 0.0 ; 0.0\n",
        (None, "0", 4096, 32768, False),
    ),
    "disksim": ("0.250000 3 8 16 1\n", (None, "3", 4096, 8192, False)),
    "ssdsim": ("938513000 4 8 16 0\n", (None, "4", 4096, 8192, True)),
}


def put(tmp_path: Path, data: str | bytes, name: str = "t") -> Path:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_columns_and_units(tmp_path: Path, name: str, end: str) -> None:
    line, (took, *rest) = LINES[name]
    trace = read_trace(put(tmp_path, line.replace("\n", end) * 3), strict=True)
    assert trace.format == name
    assert len(trace) == 3
    assert trace.requests.row(0)[2:] == (took, *rest)


@pytest.mark.parametrize(
    ("name", "later", "apart_ns"),
    [
        ("spc", "1,20,3584,W,0.500000003\n", 3),
        ("systor", "1455591804.310701007,,R,3,512,4096\n", 7),
        ("tencent", "1538323202,8,16,1,1058\n", 2_000_000_000),
        ("alibaba", "419,W,8792731648,16384,1577808000000049\n", 3_000),
        ("cloudphysics", "1,5633898368803,0x28,512,8\n", 1_000),
        ("blkreplay", "0.000001250;8;64;W;0.0;0.0\n", 250),
        ("disksim", "0.250003 3 8 16 0\n", 3),
        ("ssdsim", "938513001 4 8 16 1\n", 1),
    ],
)
def test_times_are_exact_to_the_last_digit(
    tmp_path: Path, name: str, later: str, apart_ns: int
) -> None:
    trace = read_trace(put(tmp_path, LINES[name][0] + later), strict=True)
    assert trace.requests["issue_ns"].to_list() == [0, apart_ns]
    assert trace.format == name


@pytest.mark.parametrize("name", LINES)
def test_each_kind_of_damage_is_reported_with_its_line(
    tmp_path: Path, name: str
) -> None:
    line = LINES[name][0]
    separator = next(mark for mark in ",; " if mark in line.strip())
    cells = line.strip().split(separator)
    damaged = [
        separator.join(cells[:-2]),
        separator.join([*cells, "1", "2"]),
        "\x00\xff\xfe",
        separator.join("x" if index == 0 else "-5" for index, _ in enumerate(cells)),
        line.strip()[:7],
    ]
    text = "".join(f"{line}{bad}\n" for bad in damaged) + line
    path = put(tmp_path, text.encode("latin-1"))
    trace = read_trace(path, format=name)
    assert len(trace) == len(damaged) + 1
    assert [fault.line for fault in trace.faults.first] == [2, 4, 6, 8, 10]
    assert all(
        str(fault).startswith(f"{path}:{fault.line}: got ")
        for fault in trace.faults.first
    )
    with pytest.raises(TraceError):
        read_trace(path, format=name, strict=True)


@pytest.mark.parametrize("name", ["spc", "blkreplay", "disksim", "ssdsim"])
def test_time_going_backwards_is_a_fault_where_a_format_is_in_order(
    tmp_path: Path, name: str
) -> None:
    late = {"spc": "9.0", "blkreplay": "9.0", "disksim": "9.0", "ssdsim": "999999999"}[
        name
    ]
    line = LINES[name][0].strip()
    first = {
        "spc": "0.5",
        "blkreplay": "0.000001",
        "disksim": "0.250000",
        "ssdsim": "938513000",
    }[name]
    path = put(tmp_path, f"{line}\n{line.replace(first, late)}\n{line}\n{line}\n")
    trace = read_trace(path)
    # The row stays. One step back is one fault, regardless of the following rows.
    assert len(trace) == 4
    (fault,) = trace.faults.first
    assert fault.line == 3
    assert "wanted non-decreasing times" in str(fault)
    assert trace.requests["issue_ns"].is_sorted()


def test_time_going_backwards_is_counted_where_a_format_is_not_in_order(
    tmp_path: Path,
) -> None:
    trace = read_trace(
        put(tmp_path, "1538323200,8,16,1,1\n1538323199,8,16,1,1\n"), strict=True
    )
    assert trace.counts == {BACKWARD_COUNT: 1}


def test_headings_and_preambles_are_counted(tmp_path: Path) -> None:
    systor = "Timestamp,Response,IOType,LUN,Offset,Size\n" + LINES["systor"][0]
    assert read_trace(put(tmp_path, systor), strict=True).counts == {"header lines": 1}
    preamble = "made by hand\n\nstart ; sector; length ; op ; replay_delay=0 ; replay_duration=0\n"
    load = "\n" + preamble + "once more\n" + preamble + LINES["blkreplay"][0]
    trace = read_trace(put(tmp_path, load), strict=True)
    assert trace.format == "blkreplay"
    assert trace.counts == {"blank lines": 1, "preamble lines": 7}
    with pytest.raises(TraceError, match="rows"):
        read_trace(put(tmp_path, "just words\n"), format="blkreplay")


def test_other_scsi_commands_are_counted(tmp_path: Path) -> None:
    text = (
        LINES["cloudphysics"][0] + "1,5633898368803,35,0,0\n" + LINES["cloudphysics"][0]
    )
    trace = read_trace(put(tmp_path, text), strict=True)
    assert len(trace) == 2
    assert trace.counts["commands of other kinds"] == 1


def test_mixed_formats_keep_one_and_report_the_other(tmp_path: Path) -> None:
    text = LINES["spc"][0] * 5 + LINES["alibaba"][0] * 2 + "938513000 4 8 16 0\n"
    trace = read_trace(put(tmp_path, text))
    assert (trace.format, len(trace), trace.faults.count) == ("spc", 5, 3)
    assert [fault.line for fault in trace.faults.first] == [6, 7, 8]


def vscsi(version: int, count: int, opcode: int = 0x2A) -> bytes:
    if version == 1:
        rows = [(i, 4096, 1, opcode, 0x100, 8 * i, 1000 + i) for i in range(count)]
        return b"".join(struct.pack("<IIIHHQQ", *row) for row in rows)
    rows2 = [(opcode, 0x200, i, 4096, 1, 8 * i, 1000 + i, 7) for i in range(count)]
    return b"".join(struct.pack("<HHIIIQQQ", *row) for row in rows2)


@pytest.mark.parametrize("version", [1, 2])
def test_vscsi(tmp_path: Path, version: int) -> None:
    trace = read_trace(put(tmp_path, vscsi(version, 3)), strict=True)
    took = 7_000 if version == 2 else None
    assert trace.format == "vscsi"
    assert trace.requests.row(2) == (
        2_000,
        None,
        None if took is None else 2_000 + took,
        "0",
        8192,
        4096,
        True,
    )


def test_vscsi_faults_are_reported_with_their_record(tmp_path: Path) -> None:
    data = bytearray(vscsi(1, 6) + b"tail!")
    struct.pack_into("<H", data, 32 * 2 + 14, 0x700)
    struct.pack_into("<I", data, 32 * 3 + 4, 0)
    struct.pack_into("<Q", data, 32 * 5 + 24, 1)
    path = put(tmp_path, bytes(data))
    trace = read_trace(path)
    assert len(trace) == 4
    lines = trace.faults.lines()
    assert [fault.line for fault in trace.faults.first] == [3, 4, 6, 7]
    assert lines[0] == f"{path}:record 3: got version 7, wanted version 1 as before"
    assert lines[-1] == f"{path}:record 7: got 5 bytes, wanted a record of 32 bytes"
    with pytest.raises(TraceError, match="got no valid request"):
        read_trace(put(tmp_path, vscsi(1, 4, 0x12)))


def test_zip_and_zstd(tmp_path: Path) -> None:
    text = LINES["spc"][0] * 2
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as archive:
        archive.writestr("t.spc", text)
        archive.writestr("__MACOSX/._t.spc", b"\x00")
    assert len(read_trace(tmp_path / "one.zip", strict=True)) == 2
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a", text)
        archive.writestr("b", text)
    with pytest.raises(TraceError, match=r"got .* 2 files"):
        read_trace(tmp_path / "two.zip")
    zstandard = pytest.importorskip("zstandard")
    whole = zstandard.ZstdCompressor().compress(text.encode() * 5000)
    assert len(read_trace(put(tmp_path, whole + whole, "t.zst"), strict=True)) == 20_000
    cut = read_trace(put(tmp_path, whole + whole[:-3], "cut.zst"))
    assert len(cut) >= 10_000
    assert "breaks off" in cut.faults.first[-1].got


def test_names_do_not_decide(tmp_path: Path) -> None:
    """A plain text called .gz is read as it is; a gz called .txt is unpacked."""
    assert len(read_trace(put(tmp_path, LINES["spc"][0], "t.gz"), strict=True)) == 1
    assert (
        len(
            read_trace(
                put(tmp_path, gzip.compress(LINES["spc"][0].encode()), "t.txt"),
                strict=True,
            )
        )
        == 1
    )


def test_decompression_bombs_are_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "EXPANDED_BYTES_MAX", 1 << 20)
    bomb = put(
        tmp_path, lzma.compress(LINES["spc"][0].encode() + b"\x00" * (8 << 20)), "t.xz"
    )
    trace = read_trace(bomb, format="spc")
    assert len(trace) == 1
    assert any(" MiB " in fault.got for fault in trace.faults.first)
    # The same for a text that compresses as traces do.
    honest = "".join(
        f"{i % 7},{i * 7919 % 100003},3584,w,{i / 8:.6f}\n" for i in range(60_000)
    )
    assert (
        len(read_trace(put(tmp_path, gzip.compress(honest.encode())), strict=True))
        == 60_000
    )
