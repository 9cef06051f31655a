"""What the delimited text formats have in common: a format is a table of columns, read in blocks."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from stripesim.traces.clock import ClockWatch
from stripesim.traces.columns import INT64_MAX, LENGTH_BYTES_MAX, ORDER_COLUMN, REQUEST_SCHEMA, Chunk
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import Block, TraceSource

_REACH_NS = INT64_MAX // 4
"""Times further than this (73 years) from the first are damage; differences within it fit 64 bits."""


@dataclass(frozen=True)
class Number:
    """A column that holds a number.

    Parameters
    ----------
    column : str
        Its name in `DelimitedFormat.columns`.
    unit : int
        What one stands for, in nanoseconds or bytes; for decimals the value of their last digit kept.
    digits : int
        Digits kept after the decimal point; 0 for integers.
    optional : bool
        Whether the cell may be empty.
    least : int
        Smallest value allowed, before the unit.
    """

    column: str
    unit: int
    digits: int = 0
    optional: bool = False
    least: int = 0


@dataclass(frozen=True)
class DelimitedFormat:
    """A text format of one request per line with a fixed number of columns.

    Parameters
    ----------
    name : str
        Name for `--format`.
    columns : tuple of str
        Names, in order, as the publication has them.
    separator : str
        `,`, `;` or a blank, which stands for any run of blanks.
    row : re.Pattern
        Matches a line of this format and of no other; only used to tell formats apart.
    time, offset, length : Number
        The columns that hold them.
    op : str
        Column that holds the operation.
    is_write : callable
        Takes the column's expression; true for writes, false for reads, null for anything else.
    ops : str
        What the operation may be, for messages.
    device : tuple of str
        Columns whose cells, joined by a dot, name the device; empty when there is but one.
    response : Number, optional
        Time from issue to completion.
    ordered : bool
        Whether lines are published in order of time. Where they are, a line earlier than the one above it is
        a fault (and kept); where they are not, it is counted.
    header : re.Pattern, optional
        Matches a heading that may stand as first line.
    preamble_end : re.Pattern, optional
        Matches the last line of a text that may stand before the rows.
    skipped : callable, optional
        Takes the operation's expression; true where a row is sound but no request (counted, not listed).

    Notes
    -----
    A block of text in which nothing is odd is parsed by Polars' CSV reader; as soon as a cell is missing or
    no number, each of the block's lines is looked at by itself, so that the faulty ones can be reported.
    """

    name: str
    columns: tuple[str, ...]
    separator: str
    row: re.Pattern[str]
    time: Number
    offset: Number
    length: Number
    op: str
    is_write: Callable[[pl.Expr], pl.Expr]
    ops: str
    device: tuple[str, ...] = ()
    response: Number | None = None
    ordered: bool = True
    header: re.Pattern[str] | None = None
    preamble_end: re.Pattern[str] | None = None
    skipped: Callable[[pl.Expr], pl.Expr] | None = None

    def sniff(self, lines: tuple[str, ...], data: bytes) -> bool:
        """Whether most of the first lines have the format's columns."""
        if self.preamble_end is not None and any(self.preamble_end.match(line) for line in lines):
            return True
        if lines and self.header is not None and self.header.match(lines[0].strip()):
            return len(lines) == 1 or self._most(lines[1:])
        return self._most(lines)

    def chunks(self, source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
        """Yield one chunk per block of text."""
        zero: int | None = None
        clock = ClockWatch(log, ordered=self.ordered)
        blocks = source.blocks(log)
        if self.preamble_end is not None:
            blocks = self._after_preamble(blocks, log)
        for block in blocks:
            rows = self._parse_clean(block)
            if rows is None:
                rows = self._parse_lines(block, log)
            good = self._good(rows)
            if zero is None and good.any():
                zero = int(rows.filter(good)[self.time.column][0])
            if zero is not None:
                good = good & self._near(rows, zero)
            if not good.all():
                faulty = rows.filter(~good)
                text = faulty["text"] if "text" in rows.columns else self._joined(faulty)
                log.add_lines(zip(faulty[ORDER_COLUMN], text, strict=True), self._explain)
                rows = rows.filter(good)
            if rows.height and self.skipped is not None:
                skip = rows.select(self.skipped(pl.col(self.op)).alias("skip")).to_series()
                log.tally("commands of other kinds", int(skip.sum()))
                rows = rows.filter(~skip)
            if rows.height:
                assert zero is not None
                requests = self._requests(rows, zero)
                clock.check(requests["issue_ns"], requests[ORDER_COLUMN])
                yield Chunk(requests, zero_ns=zero * self.time.unit)

    def _most(self, lines: tuple[str, ...]) -> bool:
        return 2 * sum(self.row.fullmatch(line.strip()) is not None for line in lines) > len(lines)

    @property
    def _numbers(self) -> tuple[Number, ...]:
        held = (self.time, self.offset, self.length)
        return held if self.response is None else (*held, self.response)

    def _after_preamble(self, blocks: Iterator[Block], log: FaultLog) -> Iterator[Block]:
        """Yield what follows the preamble, if there is one."""
        assert self.preamble_end is not None
        state = "start"
        for block in blocks:
            if state == "rows":
                yield block
                continue
            lines = block.lines()
            blanks = preamble = 0
            for line in lines:
                state = self._step(state, line)
                if state == "rows":
                    break
                blanks += state == "start"
                preamble += state != "start"
            log.tally("blank lines", blanks)
            log.tally("preamble lines", preamble)
            at = blanks + preamble
            if state == "rows":
                yield Block(block.first_line + at, block.data.split(b"\n", at)[at])
        if state == "text":
            log.add(0, "a text without rows", f"{self.separator.join(self.columns)!r} before the rows")

    def _step(self, state: str, line: str) -> str:
        """Return where in a preamble a line stands: start (only blanks so far), text, end or rows."""
        assert self.preamble_end is not None
        if self.preamble_end.match(line):
            return "end"
        if not line.strip() or state == "text":
            return state
        # A file may hold two preambles in a row; a row that is damaged is a row nevertheless.
        return "rows" if line.count(self.separator) > 1 else "text"

    def _parse_clean(self, block: Block) -> pl.DataFrame | None:
        """Parse with the CSV reader; None when anything at all is odd, so that each line is looked at."""
        data = block.data
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        data = _without_blanks(data, self.separator.encode())
        # A blank line would be dropped unseen, or pass for a row where all cells are text.
        if b"\r" in data or b"\n\n" in data or data[:1] in (b"\n", b""):
            return None
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        integers = {number.column for number in self._numbers if not number.digits}
        try:
            rows = pl.read_csv(
                io.BytesIO(data),
                has_header=False,
                schema={name: pl.Int64() if name in integers else pl.String() for name in self.columns},
                separator=self.separator,
                quote_char=None,
                truncate_ragged_lines=False,
            )
        except pl.exceptions.PolarsError:
            return None
        if rows.height != lines:
            return None
        places = pl.int_range(block.first_line, block.first_line + lines, eager=True).alias(ORDER_COLUMN)
        rows = rows.with_columns(self._decimals()).with_columns(places)
        optional = {number.column for number in self._numbers if number.optional}
        needed = [name for name in self.columns if name not in optional]
        return None if any(rows.select(needed).null_count().row(0)) else rows

    def _parse_lines(self, block: Block, log: FaultLog) -> pl.DataFrame:
        """Parse each line by itself; a cell that is missing or no number becomes null."""
        lines = pl.DataFrame({"text": pl.Series(block.lines(), dtype=pl.String)}).with_columns(
            pl.int_range(pl.len()).add(block.first_line).alias(ORDER_COLUMN),
            pl.col("text").str.strip_chars(),
        )
        if self.separator == " ":
            lines = lines.with_columns(pl.col("text").str.replace_all(r"[ \t]+", " "))
        blank = lines["text"] == ""
        log.tally("blank lines", int(blank.sum()))
        drop = blank
        if self.header is not None and block.first_line == 1 and lines.height:
            heading = self.header.match(lines["text"][0]) is not None
            log.tally("header lines", int(heading))
            drop = drop | ((lines[ORDER_COLUMN] == 1) & heading)
        lines = lines.filter(~drop)
        last = len(self.columns) - 1
        # A row with a cell too many must not pass on its first ones.
        whole = pl.col("text").str.count_matches(self.separator, literal=True) == last
        cells = pl.col("text").str.split_exact(self.separator, last).struct.rename_fields(list(self.columns))
        rows = lines.with_columns(cells.alias("cells"), whole.alias("whole")).unnest("cells")
        stripped = pl.col(self.columns).str.strip_chars()
        rows = rows.with_columns(pl.when(pl.col("whole") & (stripped != "")).then(stripped))
        integers = [number.column for number in self._numbers if not number.digits]
        # An optional cell may be empty, but it may not hold anything else than a number.
        spoiled = [
            pl.col(number.column).is_not_null()
            & pl.col(number.column).cast(_kind(number), strict=False).is_null()
            for number in self._numbers
        ]
        rows = rows.with_columns((pl.col("whole") & ~pl.any_horizontal(spoiled)).alias("whole"))
        rows = rows.with_columns(pl.col(integers).cast(pl.Int64, strict=False))
        return rows.with_columns(self._decimals())

    def _decimals(self) -> list[pl.Expr]:
        """Decimals become integers of their last digit kept: exact, where a float would not be."""
        return [
            pl.col(number.column)
            .cast(_kind(number), strict=False)
            .to_physical()
            .cast(pl.Int64, strict=False)
            .alias(number.column)
            for number in self._numbers
            if number.digits
        ]

    def _good(self, rows: pl.DataFrame) -> pl.Series:
        offset, length = pl.col(self.offset.column), pl.col(self.length.column)
        most = INT64_MAX // max(self.offset.unit, self.length.unit) // 2
        tests = [
            pl.col(self.time.column) >= self.time.least,
            offset.is_between(self.offset.least, most),
            length.is_between(self.length.least, LENGTH_BYTES_MAX // self.length.unit),
        ]
        op = self.is_write(pl.col(self.op)).is_not_null()
        if self.skipped is not None:
            # What is no request need not have an extent.
            skip = self.skipped(pl.col(self.op)).fill_null(False)
            tests = [tests[0], skip | (tests[1] & tests[2] & op)]
        else:
            tests.append(op)
        tests += [pl.col(name).is_not_null() for name in self.device]
        if self.response is not None:
            response = pl.col(self.response.column)
            sound = response.is_between(0, _REACH_NS // self.response.unit)
            tests.append(sound | response.is_null() if self.response.optional else sound)
        if "whole" in rows.columns:
            tests.append(pl.col("whole"))
        return rows.select(
            pl.all_horizontal(*(test.fill_null(False) for test in tests)).alias("good")
        ).to_series()

    def _near(self, rows: pl.DataFrame, zero: int) -> pl.Series:
        """Whether times lie so near the first that the difference fits 64 bits of nanoseconds."""
        reach = _REACH_NS // self.time.unit
        near = pl.col(self.time.column).is_between(max(zero - reach, 0), min(zero + reach, INT64_MAX))
        return rows.select(near.fill_null(False).alias("near")).to_series()

    def _joined(self, rows: pl.DataFrame) -> pl.Series:
        cells = [
            _decimal_text(pl.col(name), self._digits(name))
            if self._digits(name)
            else pl.col(name).cast(pl.String)
            for name in self.columns
        ]
        joined = pl.concat_str([cell.fill_null("") for cell in cells], separator=self.separator)
        return rows.select(joined.alias("text")).to_series()

    def _digits(self, column: str) -> int:
        return next((number.digits for number in self._numbers if number.column == column), 0)

    def _explain(self, text: str) -> tuple[str, str]:
        """Say what is wrong with a line that is known to be faulty."""
        cells = [cell.strip() for cell in text.split(self.separator)]
        wanted = self.separator.join(self.columns)
        if len(cells) != len(self.columns):
            return f"{len(cells)} columns in {shown(text)}", f"{len(self.columns)}: {wanted}"
        row = dict(zip(self.columns, cells, strict=True))
        for number in self._numbers:
            cell = row[number.column]
            if number.optional and not cell:
                continue
            pattern = r"\d+(\.\d*)?|\.\d+" if number.digits else r"\d+"
            small = re.fullmatch(pattern, cell, re.ASCII) is None or float(cell) < number.least
            if small:
                kind = "a number" if number.digits else "an integer"
                return f"{number.column} {shown(cell)}", f"{kind} of at least {number.least}"
        for name in self.device:
            if not row[name]:
                return f"no {name} in {shown(text)}", wanted
        op = pl.DataFrame({"op": [row[self.op] or None]}, schema={"op": pl.String}).select(
            self.is_write(pl.col("op")).alias("op")
        )
        if op["op"][0] is None:
            return f"{self.op} {shown(row[self.op])}", self.ops
        return (
            f"a number out of range in {shown(text)}",
            "times within 73 years of the first, offsets below 2**62 bytes, sizes of at most 1 TiB",
        )

    def _requests(self, rows: pl.DataFrame, zero: int) -> pl.DataFrame:
        issue_ns = (pl.col(self.time.column) - zero) * self.time.unit
        complete_ns = pl.lit(None, pl.Int64)
        if self.response is not None:
            complete_ns = issue_ns + pl.col(self.response.column) * self.response.unit
        device = pl.concat_str(self.device, separator=".") if self.device else pl.lit("0")
        return rows.select(
            pl.col(ORDER_COLUMN).cast(pl.Int64),
            issue_ns.alias("issue_ns"),
            pl.lit(None, pl.Int64).alias("dispatch_ns"),
            complete_ns.alias("complete_ns"),
            device.alias("device"),
            (pl.col(self.offset.column) * self.offset.unit).alias("offset_bytes"),
            (pl.col(self.length.column) * self.length.unit).alias("length_bytes"),
            self.is_write(pl.col(self.op)).alias("is_write"),
        ).select(ORDER_COLUMN, *REQUEST_SCHEMA)


def one_of(reads: tuple[str, ...], writes: tuple[str, ...]) -> Callable[[pl.Expr], pl.Expr]:
    """Return the usual `DelimitedFormat.is_write`: words for reads and for writes, in any case."""
    words = (*reads, *writes)

    def is_write(cell: pl.Expr) -> pl.Expr:
        word = cell.str.to_lowercase()
        return pl.when(word.is_in(words)).then(word.is_in(writes))

    return is_write


def _kind(number: Number) -> pl.DataType:
    return pl.Decimal(28, number.digits) if number.digits else pl.Int64()


def _decimal_text(value: pl.Expr, digits: int) -> pl.Expr:
    """Give a decimal back its point; only for messages."""
    sign = pl.when(value < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    unit = 10**digits
    fraction = (value.abs() % unit).cast(pl.String).str.zfill(digits)
    return pl.concat_str([sign, (value.abs() // unit).cast(pl.String), pl.lit("."), fraction])


def _without_blanks(data: bytes, separator: bytes) -> bytes:
    """Take blanks away around separators and line ends; plain replacements are far faster than a pattern."""
    if b"\t" in data:
        data = data.replace(b"\t", b" ")
    if b" " not in data:
        return data
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
    if separator != b" ":
        data = data.replace(b" " + separator, separator).replace(separator + b" ", separator)
    return data
