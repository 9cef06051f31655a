"""Tables on terminals of any width lose no digit."""

from io import StringIO

import pytest
from rich.console import Console

from stripesim.scenarios.answers.run.cost_table import cost_parts
from stripesim.scenarios.show.result_table import result_table
from stripesim.scenarios.show.tables import Table, terminal_table
from stripesim.sim.observe.critical_path import COST_KEYS

TABLE = Table.of(
    "Rates",
    [
        {
            "candidate": "3-replication, 6 × 4",
            "p99 [ms]": "0.548 ± 0.0059",
            "rate [1/s]": "113,427",
            "lost [B/year]": "3.08e+09",
            "at most": "422,068/s, processors",
        },
        {
            "candidate": "RS(4,2), 8 × 4",
            "p99 [ms]": "–",
            "rate [1/s]": "54,348",
            "lost [B/year]": "1.93e-05",
            "at most": "–",
        },
    ],
    note="B = bytes",
)


def printed(part: object, console: Console) -> str:
    console.print(part)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def terminal(width: int) -> Console:
    return Console(
        width=width, file=StringIO(), color_system=None, legacy_windows=False
    )


@pytest.mark.parametrize("width", [40, 50, 60, 80, 100, 200])
def test_no_word_or_number_is_broken_at_any_width(width: int) -> None:
    text = printed(terminal_table(TABLE, width), terminal(width))
    assert max(map(len, text.splitlines())) <= width
    for row in TABLE.body:
        for cell in row:
            for word in cell.text.split():
                assert word in text.split()


def test_a_narrow_terminal_lists_each_row() -> None:
    lines = printed(terminal_table(TABLE, 40), terminal(40)).splitlines()
    assert "rate [1/s]     113,427" in [line.rstrip() for line in lines]
    assert sum(line.startswith("candidate") for line in lines) == 2
    assert "B = bytes" in [line.rstrip() for line in lines]


def test_a_wide_terminal_keeps_each_row_on_one_line() -> None:
    text = printed(terminal_table(TABLE, 200), terminal(200))
    (line,) = [line for line in text.splitlines() if "113,427" in line]
    assert "0.548 ± 0.0059" in line


@pytest.mark.parametrize("width", [40, 60])
def test_results_on_a_narrow_terminal_have_all_digits(width: int) -> None:
    row = {
        "scheme": "rep:3",
        "op": "write",
        "pattern": "rand",
        "block_size_bytes": 4096,
        "iops": 123_854.0,
        "throughput_bytes_per_s": 276e6,
        "latency_mean_ns": 477_000.0,
        "latency_p99_ns": 1_104_000.0,
        "bottleneck": "client.submit",
        "bottleneck_utilisation": 0.744,
        "bottleneck_mean_utilisation": 0.744,
    }
    console = terminal(width)
    text = printed(result_table([row], console), console)
    assert {"123,854", "276", "0.477", "1.10"} <= {*text.split()}
    assert "client.submit 74 %" in text
    assert "…" not in text


def test_costs_on_a_narrow_terminal_have_all_digits() -> None:
    # Each part is 61.3 of 477 µs, 12.85 %.
    row = dict.fromkeys(COST_KEYS, 61_300.0)
    row |= {"cost_latency_mean_ns": 477_000.0}
    cell = {"scheme": "rep:3", "op": "write", "pattern": "rand"}
    (costs,) = cost_parts([row | cell | {"block_size_bytes": 4096}])
    console = terminal(40)
    text = printed(costs.lay_out(console), console)
    shares = [word for word in text.split() if word.strip("*") == "13"]
    assert len(shares) == len(COST_KEYS)
    assert "0.477" in text.split()
    assert "…" not in text
