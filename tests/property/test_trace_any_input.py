"""No bytes whatever end in anything but a trace or a TraceError: binary block traces and failure traces."""

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripesim.models.problems import TraceError
from stripesim.traces import (
    FAILURE_FORMATS,
    FORMATS,
    BlockTrace,
    describe,
    load,
    read_failures,
)

BLKTRACE = struct.pack(
    "<IIQQIIIIIHH",
    0x65617407,
    1,
    10**12,
    8,
    4096,
    1 | 0x10 << 16 | 1 << 16,
    7,
    8 << 20,
    0,
    0,
    0,
)
VSCSI_1 = struct.pack("<IIIHHQQ", 1, 4096, 1, 0x2A, 0x100, 8, 1000)
VSCSI_2 = struct.pack("<HHIIIQQQ", 0x28, 0x200, 1, 4096, 1, 8, 1000, 7)
FAILURE_LINES = [
    b"# event_id component_id node_id",
    b"1 0 1 5 n1 1 160 900 4022",
    b"2 0 1 5 n1 0 900 1000 NULL",
    b"model,failure_time,failure,app,disk_id,node_id,rack_id",
    b"A1,2018-01-02 00:00:30,1,WS,7,70,700",
    b"date,serial_number,model,capacity_bytes,failure",
    b"2023-01-01,S1,M,1,1",
    b"System,nodes,nodenumz,node prod,node decom,Prob Started,Prob Fixed,"
    b"Facilities,Hardware,Human Error,Network,Undetermined,Software",
    b"2,49,0,5-Jun,current,6/21/2005 10:00,6/21/2005 11:00,,CPU,,,,",
]


@st.composite
def spoilt(draw: st.DrawFn, pieces: list[bytes], joint: bytes) -> bytes:
    data = joint.join(draw(st.lists(st.sampled_from(pieces), max_size=12)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data = (
            data[:at]
            + draw(st.binary(max_size=9))
            + data[at + draw(st.integers(0, 9)) :]
        )
    return data


def check(data: bytes, name: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_bytes(data)
        try:
            trace = load(path, format=name)
        except TraceError as error:
            lines = str(error).split("\n")
            assert 1 <= len(lines) <= 22
            assert all(
                "got" in line and "wanted" in line
                for line in lines
                if not line.startswith("…")
            )
            return
        summary = describe(trace)
        assert summary["faults"] == trace.faults.count
        if isinstance(trace, BlockTrace):
            assert summary["requests"] >= 1
            assert trace.requests["issue_ns"].is_sorted()
        else:
            assert summary["events"] >= 1
            assert trace.events["time_s"].is_sorted()
            assert trace.spans is None or bool(
                (trace.spans["stop_s"] >= trace.spans["start_s"]).all()
            )
        if trace.faults.count:
            with pytest.raises(TraceError):
                load(path, format=name, strict=True)


@given(
    data=spoilt([BLKTRACE, VSCSI_1, VSCSI_2], b"") | st.binary(max_size=300),
    name=st.sampled_from([None, *(form.name for form in FORMATS)]),
)
def test_binary_block_traces(data: bytes, name: str | None) -> None:
    check(data, name)


@given(
    data=spoilt(FAILURE_LINES, b"\n"),
    name=st.sampled_from([None, *(form.name for form in FAILURE_FORMATS)]),
)
def test_failure_traces(data: bytes, name: str | None) -> None:
    check(data, name)


@given(data=spoilt(FAILURE_LINES, b"\r\n"))
def test_failures_are_read_equally_with_either_line_end(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        seen = []
        for index, text in enumerate((data, data.replace(b"\r\n", b"\n"))):
            path = Path(folder) / f"t{index}"
            path.write_bytes(text)
            try:
                trace = read_failures(path)
            except TraceError:
                seen.append(None)
            else:
                seen.append((trace.format, trace.events.rows(), trace.faults.count))
        assert seen[0] == seen[1]
