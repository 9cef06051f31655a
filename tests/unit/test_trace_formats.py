"""MSR CSV, fio iologs, compression, detection, and files that cannot be read."""

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from stripesim.models.problems import TraceError
from stripesim.traces import FaultLog, iter_trace, read_trace
from support.messages import states

MSR = "128166385295514663,hm,0,Write,9056014336,2048,2833\n128166385295515175,hm,1,Read,512,4096,10\n"
BLK = "8,0 1 1 0.000000001 9 Q R 8 + 8 [a]\n"
IOLOG3 = (
    "fio version 3 iolog\n5 f add\n9 f open\n10 f write 4096 512\n25 f read 0 4096\n"
    "30 f sync 0 0\n31 f close\n"
)
IOLOG2 = "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 1500 0\nf write 4096 4096\nf close\n"


def write(tmp_path: Path, text: str, name: str = "t") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def test_msr_columns(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, MSR), strict=True)
    assert trace.format == "msr"
    assert trace.commands is None
    assert trace.requests.rows() == [
        (0, None, 283_300, "hm.0", 9056014336, 2048, True),
        (51_200, None, 52_200, "hm.1", 512, 4096, False),
    ]
    # FILETIME in nanoseconds passes 2**63 and must not wrap.
    assert trace.origin_ns == 12816638529551466300


def test_msr_is_sorted_by_issue_with_ties_in_file_order(tmp_path: Path) -> None:
    lines = ["9,h,0,Read,0,512,0", "5,h,0,Read,1024,512,0", "5,h,0,Read,512,512,0"]
    trace = read_trace(write(tmp_path, "\n".join(lines)), strict=True)
    assert trace.requests["offset_bytes"].to_list() == [1024, 512, 0]
    assert trace.requests["issue_ns"].to_list() == [0, 0, 400]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1,h,0,Read,0,512", "got 6 columns"),
        ("1,h,0,Read,0,512,1,7", "got 8 columns"),
        ("1,h,0,Trim,0,512,1", "got type 'Trim'"),
        ("-1,h,0,Read,0,512,1", "got timestamp '-1' ... 0"),
        ("1,h,0,Read,0,0,1", "got size '0' ... 1"),
        ("1,h,0,Read,,512,1", "got offset ''"),
        ("1,h,0,Read,x,512,1", "got offset 'x'"),
        ("1,h,0,Read,9223372036854775807,512,1", "a number out of range"),
        ("1,h,0,Read,0,512,-3", "got response '-3'"),
        ("9223372036854775807,h,0,Read,0,512,3", "73"),
        ("\x00\xff,,", "got 3 columns"),
    ],
)
def test_msr_faults(tmp_path: Path, line: str, said: str) -> None:
    path = write(tmp_path, f"1,h,0,Read,0,512,1\n{line}\n2,h,0,Read,0,512,1\n")
    trace = read_trace(path, format="msr")
    assert len(trace) == 2
    (message,) = trace.faults.lines()
    assert message.startswith(f"{path}:2: got ")
    assert states(message, said)


def test_msr_line_ends_and_blank_lines_and_header(tmp_path: Path) -> None:
    text = (
        "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\r\n\r\n"
        + MSR.replace("\n", "\r\n")
    )
    # One row under the header is enough to tell the format.
    assert (
        len(read_trace(write(tmp_path, text.rsplit("\n", 2)[0], "short"), strict=True))
        == 1
    )
    trace = read_trace(write(tmp_path, text), strict=True)
    assert trace.requests.equals(read_trace(write(tmp_path, MSR, "plain")).requests)
    assert trace.counts == {"blank lines": 1, "header lines": 1}


def test_fio_version_3(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, IOLOG3), strict=True)
    assert trace.format == "fio-iolog"
    assert trace.origin_ns == 10_000
    assert trace.requests.rows() == [
        (0, None, None, "f", 4096, 512, True),
        (15_000, None, None, "f", 0, 4096, False),
    ]
    assert trace.counts == {
        "add actions": 1,
        "close actions": 1,
        "open actions": 1,
        "sync actions": 1,
    }


def test_fio_version_2_adds_up_waits(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, IOLOG2), strict=True)
    assert trace.requests["issue_ns"].to_list() == [0, 1_500_000]


def test_fio_waits_add_up_across_blocks(tmp_path: Path) -> None:
    path = write(tmp_path, "fio version 2 iolog\n" + "f read 0 512\nf wait 3 0\n" * 100)
    chunks = list(iter_trace(path, FaultLog("t"), block_bytes=64))
    assert len(chunks) > 10
    assert [ns for chunk in chunks for ns in chunk.requests["issue_ns"]] == [
        3000 * i for i in range(100)
    ]


@pytest.mark.parametrize(
    "line",
    [
        "7 f write 4096",
        "7 f erase 0 4096",
        "f write 0 4096",
        "7 f read -1 512",
        "7 f read 0 0",
        "7 f add 0 1",
    ],
)
def test_fio_faults(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, IOLOG3 + line + "\n")
    trace = read_trace(path)
    assert len(trace) == 2
    (message,) = trace.faults.lines()
    assert message.startswith(f"{path}:8: got '{line}', wanted 'time_us ")


def test_fio_unknown_version(tmp_path: Path) -> None:
    with pytest.raises(
        TraceError,
        match=r":1: got 'fio version 9 iolog'",
    ):
        read_trace(write(tmp_path, "fio version 9 iolog\n1 f read 0 512\n"))


@pytest.mark.parametrize("text", [MSR, BLK, IOLOG3])
@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_compression_is_detected_from_content(
    tmp_path: Path, text: str, compress: object
) -> None:
    assert callable(compress)
    path = tmp_path / "no-suffix"
    path.write_bytes(compress(text.encode()))
    plain = read_trace(write(tmp_path, text), strict=True)
    assert read_trace(path, strict=True).requests.equals(plain.requests)


def test_a_truncated_gzip_keeps_the_intact_part_and_reports_the_break(
    tmp_path: Path,
) -> None:
    lines = [
        f"{i},h,0,Read,{i * 7919 % 1000003},512,{i * 31 % 977}" for i in range(20_000)
    ]
    whole = gzip.compress("\n".join(lines).encode())
    path = tmp_path / "t.gz"
    path.write_bytes(whole[: len(whole) // 2])
    trace = read_trace(path)
    assert 5_000 < len(trace) < 15_000
    last = trace.faults.first[0]
    assert "breaks off" in last.got
    # The break cuts a line, so it lies on the last good one or just past it.
    assert last.line in (len(trace), len(trace) + 1)
    with pytest.raises(TraceError):
        read_trace(path, strict=True)


def test_a_time_that_the_end_of_a_plain_file_cuts_is_no_request(tmp_path: Path) -> None:
    path = tmp_path / "alibaba.csv"
    lines = "".join(f"1,R,{i * 4096},4096,157780800000000{i}\n" for i in range(3))
    # Cut by the line end alone, and by eight digits of the last time, which would be in January 1970.
    for cut, requests, faults in ((1, 3, 0), (9, 2, 1)):
        path.write_text(lines[:-cut])
        trace = read_trace(path)
        assert (len(trace), len(trace.faults.first)) == (requests, faults)
        assert trace.requests["issue_ns"].max() == (requests - 1) * 1000


def test_blocks_of_any_size_give_the_same_requests(tmp_path: Path) -> None:
    path = write(tmp_path, MSR * 50)
    for block_bytes in (1, 60, 1000, 1 << 20):
        log = FaultLog("t")
        chunks = list(iter_trace(path, log, block_bytes=block_bytes))
        assert sum(chunk.requests.height for chunk in chunks) == 100
        assert [line for chunk in chunks for line in chunk.requests["order"]] == list(
            range(1, 101)
        )
        assert log.count == 0


def test_an_endless_line_is_one_fault(tmp_path: Path) -> None:
    path = write(tmp_path, MSR + "x" * 3_000_000 + "\n" + MSR)
    log = FaultLog("t")
    chunks = list(iter_trace(path, log, format="msr", block_bytes=1 << 16))
    assert sum(chunk.requests.height for chunk in chunks) == 4
    assert log.count == 1
    assert log.first[0].line == 3


@pytest.mark.parametrize(
    ("text", "format_name", "said"),
    [
        ("", None, "got an empty file"),
        ("\n \n", None, "got an empty file"),
        ("hello\nworld\n", None, ":1: got 'hello'"),
        (MSR, "nope", "--format: got 'nope'"),
        (
            MSR,
            "blkparse",
            "got no valid request (nothing of the format)",
        ),
        ("", "msr", "got no valid request"),
        (
            "fio version 3 iolog\n1 f add\n",
            None,
            "got no valid request (1 add actions)",
        ),
        ("8,0 1 1 0.1 9 Q FWS 0 + 0 [a]\n", None, "got no valid request (1 flushes)"),
    ],
)
def test_unusable_files(
    tmp_path: Path, text: str, format_name: str | None, said: str
) -> None:
    with pytest.raises(TraceError) as caught:
        read_trace(write(tmp_path, text), format=format_name)
    assert states(str(caught.value), said)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(TraceError, match="wanted") as caught:
            read_trace(path)
        assert "\n" not in str(caught.value)


def test_messages_are_bounded_and_every_fault_is_counted(tmp_path: Path) -> None:
    path = write(tmp_path, MSR * 40 + "junk\n" * 75 + BLK * 2)
    trace = read_trace(path)
    assert len(trace) == 80
    assert trace.faults.count == 77
    assert len(trace.faults.first) == 20
    with pytest.raises(TraceError) as caught:
        read_trace(path, strict=True)
    lines = str(caught.value).split("\n")
    assert len(lines) == 21
    assert lines[-1] == "… and 57 more faults"
