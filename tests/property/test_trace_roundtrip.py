"""Traces survive writing and reading; no input whatever ends in anything but a trace or a TraceError."""

import tempfile
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stripesim.models.problems import TraceError
from stripesim.traces import (
    COMMAND_SCHEMA,
    FORMATS,
    REQUEST_SCHEMA,
    BlockTrace,
    FaultLog,
    convert,
    info,
    iter_trace,
    read_trace,
    write_blkparse,
)

BLKPARSE_LINE = "8,0    1       17     0.000012345  4020  {}   R 282624 + 8 [java]"
SEEDS = [
    *(BLKPARSE_LINE.format(action) for action in "QDCRXMP"),
    "128166385295514663,hm,0,Write,9056014336,2048,2833",
    "128166385295514700,hm,0,Read,0,512,0",
    "1,20,3584,w,0.5",
    "1455591804.310701000,0.006475000,R,3,512,4096",
    "1455591804.210701000,,W,3,512,4096",
    "1538323200,8,16,1,1058",
    "419,W,8792731648,16384,1577808000000046",
    "1,5633898368802,2a,512,8",
    "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0",
    "  0.000001 ;  8 ; 64 ; R ; 0.0 ; 0.0",
    "0.250000 3 8 16 1",
    "938513000  4 8 16 0",
    "fio version 2 iolog",
    "fio version 3 iolog",
    "5 f write 0 4096",
    "f read 0 4096",
    "f wait 100 0",
    "",
    "CPU0 (sda):",
    "issue_ns,dispatch_ns,complete_ns,device,offset_bytes,length_bytes,is_write",
    '5,7,9,"8,0",4096,512,true',
    "5,,,sda,4096,512,false",
]


NAMES = [form.name for form in FORMATS]
# Binary.
NOT_IN_BLOCKS = ("blktrace", "vscsi")
TEXT_NAMES = [name for name in NAMES if name not in NOT_IN_BLOCKS]


@st.composite
def traces(draw: st.DrawFn) -> BlockTrace:
    """Draw requests on separate extents, each served by one command or still in flight at the end."""
    count = draw(st.integers(1, 12))
    gaps = draw(st.lists(st.integers(0, 10**7), min_size=count, max_size=count))
    slots = draw(st.permutations(range(count)))
    issue_ns = 0
    requests, commands = [], []
    for index in range(count):
        issue_ns += gaps[index] if index else 0
        device = draw(st.sampled_from(["8,0", "259,2"]))
        is_write = draw(st.booleans())
        offset, length = slots[index] * 512 * 64, 512 * draw(st.integers(1, 64))
        waited = draw(st.none() | st.integers(0, 10**6))
        dispatch_ns = None if waited is None else issue_ns + waited
        served = None if waited is None else draw(st.none() | st.integers(0, 10**6))
        complete_ns = (
            None if served is None or dispatch_ns is None else dispatch_ns + served
        )
        requests.append(
            (issue_ns, dispatch_ns, complete_ns, device, offset, length, is_write)
        )
        if dispatch_ns is not None:
            commands.append(
                (dispatch_ns, complete_ns, device, offset, length, is_write)
            )
    return BlockTrace(
        pl.DataFrame(requests, schema=REQUEST_SCHEMA, orient="row"),
        pl.DataFrame(commands, schema=COMMAND_SCHEMA, orient="row").sort("dispatch_ns"),
        "blkparse",
        "made",
    )


def canonical(frame: pl.DataFrame | None) -> list[tuple[object, ...]]:
    assert frame is not None
    return sorted(frame.rows(), key=repr)


@given(trace=traces())
def test_blkparse_round_trip(trace: BlockTrace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.txt"
        write_blkparse(trace, path)
        again = read_trace(path, strict=True)
    assert canonical(again.requests) == canonical(trace.requests)
    assert canonical(again.commands) == canonical(trace.commands)
    assert again.requests["issue_ns"].is_sorted()
    found, expected = info(again), info(trace)
    for key in (
        "requests",
        "read_ratio",
        "footprint_bytes",
        "service_mean_us",
        "duration_s",
    ):
        assert found[key] == expected[key], key


@given(trace=traces(), suffix=st.sampled_from([".csv", ".parquet"]))
def test_columns_round_trip(trace: BlockTrace, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t{suffix}"
        convert(trace, path)
        again = read_trace(path, strict=True)
    assert again.requests.rows() == trace.requests.rows()
    assert canonical(again.commands) == canonical(trace.commands)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Lines of all formats, cut, spoiled, mixed."""
    lines = []
    for line in draw(st.lists(st.sampled_from(SEEDS), max_size=15)):
        text = line.encode()
        if text and draw(st.integers(0, 3)) == 0:
            at = draw(st.integers(0, len(text) - 1))
            insert = draw(
                st.binary(max_size=3) | st.sampled_from([b"-", b"9" * 25, b",", b" "])
            )
            text = text[:at] + insert + text[at + draw(st.integers(0, 9)) :]
        lines.append(text)
    return draw(st.sampled_from([b"\n", b"\r\n"])).join(lines)


@given(data=damaged() | st.binary(max_size=300), name=st.sampled_from([None, *NAMES]))
def test_any_input_gives_a_trace_or_one_line_per_problem(
    data: bytes, name: str | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_bytes(data)
        try:
            trace = read_trace(path, format=name)
        except TraceError as error:
            lines = str(error).split("\n")
            assert 1 <= len(lines) <= 22
            assert all(
                "got" in line and "wanted" in line
                for line in lines
                if not line.startswith("…")
            )
            return
        summary = info(trace)
        assert summary["requests"] >= 1
        assert trace.requests["issue_ns"][0] == 0
        assert trace.requests["issue_ns"].is_sorted()
        assert int(trace.requests["length_bytes"].min()) > 0  # type: ignore[arg-type]
        if trace.faults.count:
            assert trace.faults.lines()
            try:
                read_trace(path, format=name, strict=True)
            except TraceError:
                return
            raise AssertionError("strict reading passed over a fault")


@given(data=damaged(), block_bytes=st.integers(1, 200))
def test_chunking_changes_nothing(data: bytes, block_bytes: int) -> None:
    """The same requests, faults and counts whatever the block size, for each format."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_bytes(data)
        for name in TEXT_NAMES:
            seen = []
            for size in (block_bytes, 1 << 20):
                log = FaultLog("t")
                rows = [
                    (row, chunk.zero_ns)
                    for chunk in iter_trace(path, log, format=name, block_bytes=size)
                    for row in chunk.requests.rows()
                ]
                seen.append((rows, log.close(), log.counts))
            assert seen[0] == seen[1]


@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 2**53), st.sampled_from(["Read", "Write"]), st.integers(0, 2**53),
            st.integers(1, 2**31), st.integers(0, 10**9),
        ),
        min_size=1,
        max_size=20,
    )
)  # fmt: skip
def test_msr_values_come_through_on_the_fast_and_the_careful_path(
    rows: list[tuple[int, str, int, int, int]],
) -> None:
    lines = [
        f"{time},h,3,{op},{offset},{size},{response}"
        for time, op, offset, size, response in rows
    ]
    first = min(row[0] for row in rows)
    wanted = [
        (
            (t - first) * 100,
            None,
            (t - first + r) * 100,
            "h.3",
            offset,
            size,
            op == "Write",
        )
        for t, op, offset, size, r in sorted(rows, key=lambda row: row[0])
    ]
    with tempfile.TemporaryDirectory() as folder:
        for end in ("\n", "\r\n"):
            # A carriage return keeps the reader off its fast path.
            path = Path(folder) / "t"
            path.write_bytes(end.join(lines).encode())
            trace = read_trace(path, format="msr", strict=True)
            assert trace.requests.rows() == wanted
            assert trace.origin_ns == first * 100
