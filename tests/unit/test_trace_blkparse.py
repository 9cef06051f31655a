"""blkparse text: events become requests and commands."""

from pathlib import Path

import pytest

from stripesim.models.problems import TraceError
from stripesim.traces import BlockTrace, read_trace
from support.messages import states

US = 1000


def event(
    time_us: float, action: str, rwbs: str, rest: str, device: str = "8,0"
) -> str:
    return f"  {device}   1       17 {time_us / 1e6:5.9f}  4020 {action:>2} {rwbs:>3} {rest}"


def read(tmp_path: Path, *lines: str, strict: bool = True) -> BlockTrace:
    path = tmp_path / "t.txt"
    path.write_text("\n".join(lines) + "\n")
    return read_trace(path, format="blkparse", strict=strict)


def rows(trace: BlockTrace) -> list[tuple[object, ...]]:
    return trace.requests.drop("device").rows()


def test_queue_dispatch_complete(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        event(10, "Q", "R", "100 + 8 [fio]"),
        event(11, "G", "R", "100 + 8 [fio]"),
        event(11, "P", "N", "[fio]"),
        event(11, "U", "N", "[fio] 1"),
        event(12, "I", "RS", "100 + 8 [fio]"),
        event(15, "D", "RS", "100 + 8 [fio]"),
        event(40, "C", "RS", "100 + 8 [0]"),
    )
    assert rows(trace) == [(0, 5 * US, 30 * US, 51200, 4096, False)]
    assert trace.commands is not None
    assert trace.commands.rows() == [(5 * US, 30 * US, "8,0", 51200, 4096, False)]
    assert trace.origin_ns == 10 * US
    assert trace.counts["events of other kinds"] == 4


def test_merged_requests_share_one_command(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        event(1, "Q", "W", "108 + 8 [a]"),
        event(2, "Q", "W", "116 + 8 [a]"),
        event(2, "M", "W", "116 + 8 [a]"),
        event(3, "Q", "W", "100 + 8 [a]"),
        event(3, "F", "W", "100 + 8 [a]"),
        event(5, "D", "W", "100 + 24 [a]"),
        event(9, "C", "W", "100 + 24 [0]"),
    )
    assert [row[:3] for row in rows(trace)] == [
        (0, 4 * US, 8 * US),
        (1 * US, 4 * US, 8 * US),
        (2 * US, 4 * US, 8 * US),
    ]
    assert trace.commands is not None
    assert trace.commands["length_bytes"].to_list() == [24 * 512]
    assert trace.counts["back merges"] == trace.counts["front merges"] == 1


def test_a_split_request_ends_with_its_last_part(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        event(0, "Q", "R", "0 + 16 [a]"),
        event(1, "X", "R", "0 / 8 [a]"),
        # Some kernels queue the rest again, which is not a new request.
        event(1, "Q", "R", "8 + 8 [a]"),
        event(2, "D", "R", "8 + 8 [a]"),
        event(3, "D", "R", "0 + 8 [a]"),
        event(4, "C", "R", "8 + 8 [0]"),
        event(9, "C", "R", "0 + 8 [0]"),
    )
    assert rows(trace) == [(0, 2 * US, 9 * US, 0, 16 * 512, False)]
    assert trace.commands is not None
    assert trace.commands.height == 2


def test_a_dispatch_shorter_than_the_request_without_a_split_event(
    tmp_path: Path,
) -> None:
    trace = read(
        tmp_path,
        event(0, "Q", "R", "0 + 16 [a]"),
        event(2, "D", "R", "0 + 8 [a]"),
        event(4, "C", "R", "0 + 8 [0]"),
        event(5, "D", "R", "8 + 8 [a]"),
        event(7, "C", "R", "8 + 8 [0]"),
    )
    assert rows(trace) == [(0, 2 * US, 7 * US, 0, 16 * 512, False)]


def test_partial_completions_end_a_command_together(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        event(0, "Q", "R", "0 + 16 [a]"),
        event(2, "D", "R", "0 + 16 [a]"),
        event(4, "C", "R", "0 + 8 [0]"),
        event(6, "C", "R", "8 + 8 [0]"),
    )
    assert rows(trace) == [(0, 2 * US, 6 * US, 0, 16 * 512, False)]


def test_a_requeued_request_is_served_from_its_last_dispatch(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        event(0, "Q", "R", "0 + 8 [a]"),
        event(1, "D", "R", "0 + 8 [a]"),
        event(2, "R", "R", "0 + 8 [0]"),
        event(5, "D", "R", "0 + 8 [a]"),
        event(9, "C", "R", "0 + 8 [0]"),
    )
    assert rows(trace) == [(0, 5 * US, 9 * US, 0, 4096, False)]
    assert trace.commands is not None
    assert trace.commands.height == 1


def test_flushes_discards_and_passthrough_are_counted_not_listed(
    tmp_path: Path,
) -> None:
    trace = read(
        tmp_path,
        event(0, "Q", "FWS", "0 + 0 [kv]"),
        event(1, "D", "FF", "0 + 0 [kworker/1:0H]"),
        event(2, "C", "FF", "18446744073709551615 + 0 [ksoftirqd/1]"),
        event(2, "C", "WS", "0 + 0 [ksoftirqd/1]"),
        event(3, "Q", "D", "64 + 8 [trim]"),
        event(3, "D", "FN", "[kworker/0:1H]"),
        event(3, "C", "FN", "0 [0]"),
        event(3, "Q", "R", "36 (12 00 00 00 24 00 ..) [udev]"),
        event(4, "Q", "FWS", "8 + 8 [kv]"),
        event(5, "D", "WS", "8 + 8 [kv (x) y]"),
        event(7, "C", "WS", "8 + 8 (2000) [0]"),
    )
    assert rows(trace) == [(0, 1 * US, 3 * US, 4096, 4096, True)]
    assert trace.counts["flushes"] == 1
    assert trace.counts["discards"] == 1
    assert trace.counts["requests without data"] == 1


def test_directions_and_devices_do_not_mix(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        event(0, "Q", "R", "8 + 8 [a]"),
        event(1, "Q", "W", "8 + 8 [a]"),
        event(2, "Q", "R", "8 + 8 [a]", "8,16"),
        event(3, "D", "R", "8 + 8 [a]", "8,16"),
        event(4, "D", "W", "8 + 8 [a]"),
        event(5, "D", "R", "8 + 8 [a]"),
        event(6, "C", "W", "8 + 8 [0]"),
        event(7, "C", "R", "8 + 8 [0]"),
        event(9, "C", "R", "8 + 8 [0]", "8,16"),
    )
    assert trace.requests.select("dispatch_ns", "complete_ns", "device").rows() == [
        (5 * US, 7 * US, "8,0"),
        (4 * US, 6 * US, "8,0"),
        (3 * US, 9 * US, "8,16"),
    ]


def test_a_stacked_device_completes_without_dispatch(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        event(0, "Q", "R", "8 + 8 [a]", "253,0"),
        event(9, "C", "R", "8 + 8 [0]", "253,0"),
    )
    assert rows(trace) == [(0, None, 9 * US, 4096, 4096, False)]


def test_a_trace_cut_at_both_ends(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        event(0, "C", "R", "800 + 8 [0]"),
        event(1, "D", "R", "100 + 32 [a]"),
        event(2, "Q", "R", "8 + 8 [a]"),
        event(3, "D", "R", "8 + 8 [a]"),
        event(4, "C", "R", "100 + 32 [0]"),
        event(5, "Q", "W", "16 + 8 [a]"),
    )
    assert rows(trace) == [
        (0, 1 * US, None, 4096, 4096, False),
        (3 * US, None, None, 8192, 4096, True),
    ]
    assert trace.commands is not None
    assert trace.commands["dispatch_ns"].to_list() == [-1 * US, 1 * US]
    assert trace.counts["completions without a dispatch"] == 1
    assert trace.counts["dispatches without a request"] == 1
    assert trace.counts["requests never completed"] == 2


def test_a_dispatch_whose_first_part_was_queued_before_the_trace(
    tmp_path: Path,
) -> None:
    trace = read(
        tmp_path,
        event(0, "Q", "R", "108 + 8 [a]"),
        event(1, "D", "R", "100 + 16 [a]"),
        event(4, "C", "R", "100 + 16 [0]"),
    )
    assert rows(trace) == [(0, 1 * US, 4 * US, 108 * 512, 4096, False)]


def test_the_blkparse_summary_is_accepted(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        "Input file sda.blktrace.0 added",
        event(0, "Q", "R", "8 + 8 [a]"),
        "8,0    1        2     0.000000500     0  m   N cfq123 slice expired",
        "CPU0 (sda):",
        " Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB",
        " Read Dispatches:        0,        0KiB\t Write Dispatches:        0,        0KiB",
        " Reads Requeued:         0\t\t Writes Requeued:         0",
        " Reads Completed:        0,        0KiB\t Writes Completed:        0,        0KiB",
        " Read Merges:            0,        0KiB\t Write Merges:            0,        0KiB",
        " Read depth:             1        \t Write depth:             1",
        " PC Reads Queued:        0,        0KiB\t PC Writes Queued:        0,        0KiB",
        " IO unplugs:             0        \t Timer unplugs:           0",
        "",
        "Total (sda):",
        "Throughput (R/W): 0KiB/s / 0KiB/s",
        "Events (sda): 2 entries",
        "Skips: 0 forward (0 -   0.0%)",
    )
    assert len(trace) == 1
    assert trace.counts["summary lines"] == 14
    assert trace.counts["blank lines"] == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (event(1, "Q", "R", "8 + 8"), "wanted"),
        (event(1, "Q", "R", "8 +"), "wanted"),
        (event(1, "Z", "R", "8 + 8 [a]"), "got action 'Z'"),
        (event(1, "X", "R", "8 + 8 [a]"), "wanted"),
        (
            event(1, "Q", "R", "18446744073709551615 + 8 [a]"),
            "2**63",
        ),
        (event(1, "Q", "R", "8 + 4294967295 [a]"), "at most 8388608 sectors"),
        (
            "8,0 1 17 -0.500000000 1 Q R 8 + 8 [a]",
            "got time -0.500000000 s ... 0",
        ),
        ("8,0 1 17 1.5", "wanted"),
        ("\x00\x01junk", "wanted"),
        (
            "128166385295514663,hm,0,Write,9056014336,2048,2833",
            "wanted",
        ),
    ],
)
def test_a_faulty_line_is_located_and_the_rest_is_read(
    tmp_path: Path, line: str, said: str
) -> None:
    lines = (event(0, "Q", "R", "8 + 8 [a]"), line, event(2, "Q", "R", "16 + 8 [a]"))
    trace = read(tmp_path, *lines, strict=False)
    assert len(trace) == 2
    assert trace.faults.count == 1
    (message,) = trace.faults.lines()
    assert message.startswith(f"{tmp_path}/t.txt:2: got ")
    assert states(message, said)
    assert "\n" not in message
    with pytest.raises(TraceError, match=r"t\.txt:2: got "):
        read(tmp_path, *lines, strict=True)


def test_a_completion_before_its_dispatch_is_a_fault(tmp_path: Path) -> None:
    lines = (
        event(0, "Q", "R", "8 + 8 [a]"),
        event(5, "D", "R", "8 + 8 [a]"),
        event(3, "C", "R", "8 + 8 [0]"),
    )
    trace = read(tmp_path, *lines, strict=False)
    assert trace.faults.lines() == [
        f"{tmp_path}/t.txt:3: got a time 0.000002000 s before the previous one, "
        "wanted non-decreasing times"
    ]
    # The request stays, as if it had ended at once.
    assert trace.requests["complete_ns"].to_list() == [5000]
    assert trace.counts["completions put off to their dispatch"] == 1


def test_a_completion_longer_than_all_commands_at_its_sector_ends_the_oldest(
    tmp_path: Path,
) -> None:
    trace = read(
        tmp_path,
        event(0, "Q", "R", "0 + 8 [a]"),
        event(1, "D", "R", "0 + 8 [a]"),
        event(2, "Q", "R", "0 + 4 [a]"),
        event(3, "D", "R", "0 + 4 [a]"),
        event(7, "C", "R", "0 + 16 [0]"),
        event(9, "C", "R", "0 + 4 [0]"),
    )
    assert trace.requests["length_bytes"].to_list() == [8 * 512, 4 * 512]
    assert trace.requests["complete_ns"].to_list() == [7 * US, 9 * US]


def test_a_dispatch_takes_the_longest_request_that_fits(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        event(0, "Q", "R", "0 + 4 [a]"),
        event(1, "Q", "R", "0 + 8 [b]"),
        event(2, "D", "R", "0 + 8 [b]"),
        event(3, "D", "R", "0 + 4 [a]"),
    )
    # It is not a merge of the first four sectors with a part of the other request.
    assert trace.requests["dispatch_ns"].to_list() == [3 * US, 2 * US]


def test_a_part_of_a_request_does_not_complete_it_without_a_dispatch(
    tmp_path: Path,
) -> None:
    trace = read(
        tmp_path,
        event(0, "Q", "R", "0 + 16 [a]"),
        event(1, "X", "R", "0 / 8 [a]"),
        event(5, "C", "R", "0 + 8 [0]"),
    )
    assert trace.requests["complete_ns"].to_list() == [None]
    assert trace.counts["completions without a dispatch"] == 1


def test_a_completion_of_a_stacked_device_before_its_issue_is_put_off(
    tmp_path: Path,
) -> None:
    lines = (event(5, "Q", "R", "8 + 8 [a]"), event(3, "C", "R", "8 + 8 [0]"))
    trace = read(tmp_path, *lines, strict=False)
    assert trace.requests["complete_ns"].to_list() == (
        trace.requests["issue_ns"].to_list()
    )
    assert trace.counts["completions put off to their issue"] == 1
