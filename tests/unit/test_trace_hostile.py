"""Traces and names that broke a reader, a table or a figure: one small case each."""

import gzip
import os
import tracemalloc
import warnings
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from stripesim.models.problems import TraceError
from stripesim.scenarios.answers.trace import summary_tables
from stripesim.scenarios.show.figures.screen import screen_files
from stripesim.scenarios.show.figures.trace_sheet import draw_trace
from stripesim.scenarios.show.tables import terminal_table
from stripesim.traces import convert, describe, load
from stripesim.traces import source as source_module
from support.messages import states

MSR_ROWS = "".join(
    f"{128166372003061629 + 5000 * i},usr,0,{'Read' if i % 2 else 'Write'},{4096 * i},4096,{i + 1}\n"
    for i in range(40)
)


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("link", ["none", "symbolic", "hard"])
@pytest.mark.parametrize("suffix", [".csv", ".txt"])
def test_a_trace_is_never_converted_onto_its_source(
    tmp_path: Path, suffix: str, link: str
) -> None:
    target = tmp_path / f"t{suffix}"
    source = target if link == "none" else tmp_path / "source"
    put(tmp_path, source.name, MSR_ROWS)
    if link == "symbolic":
        target.symlink_to(source)
    elif link == "hard":
        os.link(source, target)
    with pytest.raises(TraceError, match=r"got the file"):
        convert(load(source), target)
    assert source.read_text() == MSR_ROWS


def test_a_converted_file_may_be_written_twice(tmp_path: Path) -> None:
    trace = load(put(tmp_path, "source", MSR_ROWS))
    assert (
        convert(trace, tmp_path / "t.csv")
        == convert(trace, tmp_path / "t.csv")
        == [tmp_path / "t.csv"]
    )


def test_a_bomb_of_valid_lines_is_read_in_part_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "EXPANDED_BYTES_MAX", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"0,20941264,8192,W,0.551706\n" * 1_000_000))
    most = max(1 << 20, source_module.EXPANSION_MAX * path.stat().st_size)
    tracemalloc.start()
    source = source_module.TraceSource(path)
    kept = sum(len(piece) for piece in source.pieces() if isinstance(piece, bytes))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The stream is held in pieces of 1 MiB, whatever it expands to.
    assert most - (1 << 20) <= kept <= most
    assert peak < 8 << 20
    last = list(source.pieces())[-1]
    assert isinstance(last, source_module.Break)
    assert " MiB " in last.got


def test_a_byte_order_mark_does_not_belong_to_the_first_cell(tmp_path: Path) -> None:
    marked = load(put(tmp_path, "marked.csv", "\ufeff" + MSR_ROWS))
    plain = load(put(tmp_path, "plain.csv", MSR_ROWS))
    assert marked.faults.count == 0
    assert describe(marked) | {"source": ""} == describe(plain) | {"source": ""}


@pytest.mark.parametrize("size", [2**62, 2**62 - 1, 2**61, 2**41])
def test_sizes_that_no_request_has_are_faults_and_no_overflow(
    tmp_path: Path, size: int
) -> None:
    rows = MSR_ROWS + f"128166372003261629,usr,0,Read,0,{size},3\n"
    iolog = (
        "fio version 2 iolog\nf add\nf open\n"
        + "f write 4096 4096\n" * 9
        + f"f write 0 {size}\nf close\n"
    )
    for name, text, sound in (("t.csv", rows, 40), ("t.log", iolog, 9)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trace = load(put(tmp_path, name, text))
            summary = describe(trace)
        assert (summary["requests"], summary["faults"]) == (sound, 1)


@pytest.mark.parametrize("name", ["$x^{.csv", "a$b$c^ 100 %_\\alpha.csv"])
def test_a_name_is_drawn_as_it_is(tmp_path: Path, name: str) -> None:
    rows = MSR_ROWS.replace("usr", "$u^") + MSR_ROWS
    trace = load(put(tmp_path, name, rows))
    pictures = screen_files("sheet", draw_trace(trace).figure)
    assert all(pictures.values())


def test_the_summary_is_tables_of_at_most_100_columns(tmp_path: Path) -> None:
    # 40 requests in 2 s, so that windows of 100 ms fit twenty times.
    rows = "".join(
        f"{128166372003061629 + 500_000 * i},usr,0,Read,{4096 * i},4096,9\n"
        for i in range(40)
    )
    summary = describe(load(put(tmp_path, "t.csv", rows)))
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    for table in summary_tables(summary):
        console.print(terminal_table(table, console.width))
    text = console.export_text()
    assert "{" not in text
    for words in ("requests", "hit ratio", "window [s]", "4,096"):
        assert words in text


def test_what_a_trace_does_not_have_is_left_out_of_its_table(tmp_path):
    tables = summary_tables(describe(load(put(tmp_path, "t.csv", MSR_ROWS))))
    (names, values) = zip(*tables[0].rows, strict=True)
    # The trace records response times, and no service times of a device.
    assert "response_mean_us" in names
    assert "service_mean_us" not in names
    assert "–" not in values


def test_a_parquet_file_without_its_end_is_damaged_not_without_columns(tmp_path):
    whole = tmp_path / "whole.parquet"
    columns = {"issue_ns": [1], "offset_bytes": [0], "length_bytes": [4096]}
    pl.DataFrame({**columns, "is_write": [True]}).write_parquet(whole)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(TraceError) as caught:
        load(cut)
    assert states(str(caught.value), "cut.parquet: got a damaged ... issue_ns")


def test_a_panic_inside_polars_is_one_line(tmp_path, monkeypatch, capfd):
    path = tmp_path / "damaged.parquet"
    columns = {"issue_ns": [1], "offset_bytes": [0], "length_bytes": [4096]}
    pl.DataFrame({**columns, "is_write": [True]}).write_parquet(path)

    def panic(*_):
        # Rust writes to the process's standard error, past Python's.
        os.write(2, b"thread 'polars-0' panicked at reader.rs\n")
        raise pl.exceptions.PanicException("index out of bounds\nmore")

    monkeypatch.setattr(pl.LazyFrame, "collect", panic)
    with pytest.raises(TraceError) as caught:
        load(path)
    assert states(str(caught.value), "damaged.parquet: got ... index out of bounds")
    os.write(2, b"our own line\n")
    assert capfd.readouterr().err == "our own line\n"
