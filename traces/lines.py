"""Split lines of text into rows of cells, and report faulty lines and decreasing times."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping

import polars as pl

from stripesim.traces.columns import ORDER_COLUMN
from stripesim.traces.problems import FaultLog, columns_text, shown
from stripesim.traces.source import Block, Head, TraceSource

_OWN_COLUMNS = (ORDER_COLUMN, "text", "whole", "cells")


def numbered_lines(
    block: Block,
    log: FaultLog,
    *,
    comment: str | None = None,
    heading: Callable[[str], bool] | None = None,
) -> pl.DataFrame:
    """Return `ORDER_COLUMN` and `text` of lines with data, without blanks, comments and heading."""
    lines = pl.DataFrame(
        {"text": pl.Series(block.lines(), dtype=pl.String)}
    ).with_columns(
        pl.int_range(pl.len()).add(block.first_line).alias(ORDER_COLUMN),
        pl.col("text").str.strip_chars(),
    )
    rest = lines.filter(lines["text"] != "")
    log.tally("blank lines", lines.height - rest.height)
    if comment is not None:
        remarks = rest["text"].str.starts_with(comment)
        log.tally("comment lines", int(remarks.sum()))
        rest = rest.filter(~remarks)
    if (
        heading is not None
        and rest.height
        and rest[ORDER_COLUMN][0] == 1
        and heading(rest["text"][0])
    ):
        log.tally("header lines")
        rest = rest.slice(1)
    return rest


def cells_of(text: str, separator: str, *, quoted: bool = False) -> list[str]:
    """Return the cells of a line, or an empty list if quotes are unbalanced.

    Examples
    --------
    >>> cells_of('1,"8,0",R', ",", quoted=True)
    ['1', '8,0', 'R']
    """
    if separator == " ":
        text = " ".join(text.split())
    if not quoted:
        return [cell.strip() for cell in text.split(separator)]
    try:
        cells = next(csv.reader([text], delimiter=separator, strict=True), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in cells]


def with_cells(
    lines: pl.DataFrame,
    columns: tuple[str, ...],
    separator: str,
    *,
    quoted: bool = False,
) -> pl.DataFrame:
    """Split `text` into cells, null if empty. `whole` marks lines with the right number of cells."""
    if quoted and lines["text"].str.contains('"', literal=True).any():
        return _with_quoted_cells(lines, columns, separator)
    if separator == " ":
        lines = lines.with_columns(pl.col("text").str.replace_all(r"[ \t]+", " "))
    last = len(columns) - 1
    # A row with too many cells must not pass on its first ones.
    is_complete = pl.col("text").str.count_matches(separator, literal=True) == last
    cells = (
        pl.col("text")
        .str.split_exact(separator, last)
        .struct.rename_fields(list(columns))
    )
    rows = lines.with_columns(is_complete.alias("whole"), cells.alias("cells")).unnest(
        "cells"
    )
    stripped = pl.col(columns).str.strip_chars()
    return rows.with_columns(pl.when(pl.col("whole") & (stripped != "")).then(stripped))


def _with_quoted_cells(
    lines: pl.DataFrame, columns: tuple[str, ...], separator: str
) -> pl.DataFrame:
    data = "\n".join(lines["text"]).encode()
    kinds = dict.fromkeys(columns, pl.String())
    table = clean_cells(data, kinds, separator, quoted=True)
    is_complete = pl.lit(True)
    # A line with too few cells lacks its last one.
    if table is None or table.height != lines.height or table[columns[-1]].null_count():
        cells = [cells_of(text, separator, quoted=True) for text in lines["text"]]
        right = [len(row) == len(columns) for row in cells]
        nothing = [None] * len(columns)
        rows = [row if ok else nothing for row, ok in zip(cells, right, strict=True)]
        table = pl.DataFrame(rows, schema=kinds, orient="row")
        is_complete = pl.lit(pl.Series(right, dtype=pl.Boolean))
    stripped = pl.col(columns).str.strip_chars()
    filled = table.with_columns(pl.when(stripped != "").then(stripped))
    return lines.hstack(filled).with_columns(whole=is_complete)


def clean_cells(
    data: bytes, kinds: Mapping[str, pl.DataType], separator: str, *, quoted: bool
) -> pl.DataFrame | None:
    """Parse lines into columns of these types. Return None if the CSV reader rejects a line."""
    try:
        return pl.read_csv(
            io.BytesIO(data),
            has_header=False,
            schema=kinds,
            separator=separator,
            quote_char='"' if quoted else None,
        )
    except pl.exceptions.PolarsError:
        return None


def sound_rows(
    rows: pl.DataFrame,
    good: pl.Expr,
    log: FaultLog,
    explain: Callable[[str], tuple[str, str]],
) -> pl.DataFrame:
    """Return the good rows and report the others, explaining their `text` as (got, wanted)."""
    mask = rows.select(good.fill_null(False).alias("good")).to_series()
    odd = rows.filter(~mask)
    log.add_lines(zip(odd[ORDER_COLUMN], odd["text"], strict=True), explain)
    return rows.filter(mask)


def split_lines(
    block: Block,
    columns: tuple[str, ...],
    separator: str,
    log: FaultLog,
    *,
    comment: str | None = None,
    heading: Callable[[str], bool] | None = None,
    quoted: bool = False,
) -> pl.DataFrame:
    """Return the cells of lines with the right number of cells, and report other lines as faults."""
    lines = numbered_lines(block, log, comment=comment, heading=heading)
    wanted = f"{len(columns)} columns: {separator.join(columns)}"

    def explain(text: str) -> tuple[str, str]:
        count = len(cells_of(text, separator, quoted=quoted))
        if not count:
            return f"unbalanced quotes in {shown(text)}", "quotes in pairs"
        return f"{columns_text(count)} in {shown(text)}", wanted

    rows = with_cells(lines, columns, separator, quoted=quoted)
    return sound_rows(rows, pl.col("whole"), log, explain)


def has_columns(head: Head, needed: tuple[str, ...]) -> bool:
    """Return True if the first line is a heading with all of these comma-separated names."""
    return bool(head.lines) and set(needed) <= set(
        cells_of(head.lines[0], ",", quoted=True)
    )


def rows_under_heading(
    source: TraceSource, needed: tuple[str, ...], log: FaultLog, *, quoted: bool = False
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a comma-separated file by the names in its first line, block by block."""
    columns: tuple[str, ...] | None = None
    for block in source.blocks(log):
        if columns is None:
            first = block.lines()[0].strip()
            names = cells_of(first, ",", quoted=quoted)
            if not set(needed) <= set(names) or len(set(names)) != len(names):
                log.add(
                    1,
                    shown(first),
                    f"a heading with {', '.join(needed)}, each name once",
                )
                return
            columns = tuple(
                f"column {place}" if name in _OWN_COLUMNS else name
                for place, name in enumerate(names, 1)
            )
        yield split_lines(block, columns, ",", log, heading=first.__eq__, quoted=quoted)


BACKWARD_COUNT = "lines earlier than the line above"
"""Key in `BlockTrace.counts` for formats that are published out of order."""


class ClockWatch:
    """Compare the time of each row with the previous one, across the chunks of a file.

    A decrease is a fault if rows are in order of time, and is counted otherwise. The row stays in the trace,
    which is sorted in the end. Comparing with the previous row rather than the latest time so far prevents
    one time far in the future from making all later rows faulty.
    """

    def __init__(self, log: FaultLog, *, ordered: bool) -> None:
        self._log = log
        self._ordered = ordered
        self._last_ns: int | None = None

    def check(self, times_ns: pl.Series, places: pl.Series) -> None:
        """Check one chunk: times [ns] in file order, and the line or record of each."""
        if not len(times_ns):
            return
        above = times_ns.shift(
            1, fill_value=times_ns[0] if self._last_ns is None else self._last_ns
        )
        self._last_ns = int(times_ns[-1])
        back = times_ns < above
        if not back.any():
            return
        if not self._ordered:
            self._log.tally(BACKWARD_COUNT, int(back.sum()))
            return
        for place, step_ns in zip(
            places.filter(back), (above - times_ns).filter(back), strict=True
        ):
            self._log.add(
                int(place),
                f"a time {step_ns / 1e9:.9f} s before the previous one",
                "non-decreasing times",
            )
