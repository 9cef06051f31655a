"""Lines of a block of text as cells, with the faulty ones reported."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stripesim.traces.columns import ORDER_COLUMN
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import Block


def split_lines(
    block: Block,
    columns: tuple[str, ...],
    separator: str,
    log: FaultLog,
    *,
    comment: str | None = None,
    heading: Callable[[str], bool] | None = None,
) -> pl.DataFrame:
    """Return the cells of each line that has the right number of them, as text; other lines are faults.

    Lines that start with `comment`, and a first one that `heading` accepts, are counted and left out. A
    separator of one blank stands for any run of blanks. The result has `ORDER_COLUMN`, `text` (the line) and a
    column of text per cell, null where empty.
    """
    lines = pl.DataFrame({"text": pl.Series(block.lines(), dtype=pl.String)}).with_columns(
        pl.int_range(pl.len()).add(block.first_line).alias(ORDER_COLUMN),
        pl.col("text").str.strip_chars(),
    )
    if separator == " ":
        lines = lines.with_columns(pl.col("text").str.replace_all(r"[ \t]+", " "))
    drop = lines["text"] == ""
    log.tally("blank lines", int(drop.sum()))
    if comment is not None:
        remarks = lines["text"].str.starts_with(comment)
        log.tally("comment lines", int(remarks.sum()))
        drop = drop | remarks
    if heading is not None and block.first_line == 1 and lines.height and heading(lines["text"][0]):
        log.tally("header lines")
        drop = drop | (lines[ORDER_COLUMN] == 1)
    lines = lines.filter(~drop)
    last = len(columns) - 1
    whole = lines.select(
        (pl.col("text").str.count_matches(separator, literal=True) == last).alias("whole")
    ).to_series()
    wanted = f"{len(columns)} columns: {separator.join(columns)}"
    odd = lines.filter(~whole)
    log.add_lines(
        zip(odd[ORDER_COLUMN], odd["text"], strict=True),
        lambda text: (f"{text.count(separator) + 1} columns in {shown(text)}", wanted),
    )
    cells = pl.col("text").str.split_exact(separator, last).struct.rename_fields(list(columns))
    rows = lines.filter(whole).with_columns(cells.alias("cells")).unnest("cells")
    stripped = pl.col(columns).str.strip_chars()
    return rows.with_columns(pl.when(stripped != "").then(stripped))
