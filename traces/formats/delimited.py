"""Read delimited text formats in blocks. Each format is defined by a table of columns."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from stripesim.traces.columns import (
    INT64_MAX,
    LENGTH_BYTES_MAX,
    ORDER_COLUMN,
    Chunk,
    request_rows,
)
from stripesim.traces.lines import (
    ClockWatch,
    cells_of,
    clean_cells,
    numbered_lines,
    sound_rows,
    with_cells,
)
from stripesim.traces.problems import FaultLog, columns_text, shown
from stripesim.traces.source import Block, Head, TraceSource

REACH_NS = INT64_MAX // 4
"""Times further than this (73 years) from the first are damage. Differences within it fit into 64 bits."""


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers.

    `unit` is the value of 1 in nanoseconds or bytes. For decimals, `digits` is the number of digits kept
    after the point, and `unit` the value of the last one. `least` is the smallest valid number, before
    multiplication by the unit. An `optional` cell may be empty.
    """

    column: str
    unit: int
    digits: int = 0
    optional: bool = False
    least: int = 0

    def explain(self, cell: str) -> tuple[str, str] | None:
        """Explain why a cell is not a valid number, as (got, wanted), or return None if it is."""
        if self.optional and not cell:
            return None
        kind = "an integer"
        pattern = r"\d+"
        if self.digits:
            kind = "a number"
            pattern = r"\d+(\.\d*)?|\.\d+"
        if re.fullmatch(pattern, cell, re.ASCII) and float(cell) >= self.least:
            return None
        return f"{self.column} {shown(cell)}", f"{kind} of at least {self.least}"


@dataclass(frozen=True)
class DelimitedFormat:
    """A text format with one request per line and a fixed number of columns.

    Polars' CSV reader parses blocks of text without irregularities. If any cell is missing, not a number or
    out of range, each line of the block is parsed separately, so that faults can be reported.
    """

    name: str  #: Name for `--format`
    columns: tuple[str, ...]  #: Names in order, as in the publication
    row: re.Pattern[
        str
    ]  #: Matches a line of this format and of no other. Used only to detect the format.
    #: Columns with these values
    time: NumberColumn
    offset: NumberColumn
    length: NumberColumn
    op: str  #: Column of the operation
    #: Maps the column's expression to true for writes, false for reads, and null otherwise
    is_write: Callable[[pl.Expr], pl.Expr]
    ops: str  #: Allowed operations, for messages
    separator: str = ","  #: `,`, `;` or a blank, which matches any run of blanks
    #: Columns whose cells, joined by a dot, name the device. Empty if there is only one device.
    device: tuple[str, ...] = ()
    response: NumberColumn | None = None  #: Time from issue to completion
    quoted: bool = False  #: True if cells may be quoted, as by CSV writers
    #: True if lines are published in order of time. A line earlier than the previous one is then a fault (and
    #: kept); otherwise it is only counted.
    ordered: bool = True
    #: Pattern of an optional heading in the first line, and of the last line of an optional preamble.
    header: re.Pattern[str] | None = None
    preamble_end: re.Pattern[str] | None = None
    #: Maps the operation's expression to true if a valid row is not a request (counted, not listed)
    skipped: Callable[[pl.Expr], pl.Expr] | None = None

    def sniff(self, head: Head) -> bool:
        """Return True if most of the first lines have the columns of the format."""
        lines = head.lines
        if self.preamble_end is not None and any(
            self.preamble_end.match(line) for line in lines
        ):
            return True
        if lines and self._is_heading(lines[0].strip()):
            return len(lines) == 1 or self._most(lines[1:])
        return self._most(lines)

    def read(self, source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
        """Yield one chunk per block of text."""
        zero: int | None = None
        clock = ClockWatch(log, ordered=self.ordered)
        blocks = source.blocks(log)
        if self.preamble_end is not None:
            blocks = self._after_preamble(blocks, log)
        for block in blocks:
            rows = self._sound_rows(self._without_cut_line(block, log), zero, log)
            if not rows.height:
                continue
            if zero is None:
                zero = int(rows[self.time.column][0])
            if self.skipped is not None:
                skip = rows.select(
                    self.skipped(pl.col(self.op)).alias("skip")
                ).to_series()
                log.tally("commands of other kinds", int(skip.sum()))
                rows = rows.filter(~skip)
            if rows.height:
                requests = self._requests(rows, zero)
                clock.check(requests["issue_ns"], requests[ORDER_COLUMN])
                yield Chunk(requests, zero_ns=zero * self.time.unit)

    def _sound_rows(
        self, block: Block, zero: int | None, log: FaultLog
    ) -> pl.DataFrame:
        good = self._good(zero)
        rows = self._parse_clean(block)
        if rows is not None and rows.select(good.fill_null(False).all()).item():
            return rows
        return sound_rows(self._parse_lines(block, log), good, log, self._explain)

    def _without_cut_line(self, block: Block, log: FaultLog) -> Block:
        """Leave out a last line without its end if its time, a whole number, was cut.

        It then has fewer digits than the time above, and the request would be years before all others.
        """
        if block.data.endswith(b"\n") or self.columns[-1] != self.time.column:
            return block
        above, _, last = block.data.rpartition(b"\n")
        if not above:
            return block
        separator = self.separator.encode()
        before = above.rpartition(b"\n")[2].rpartition(separator)[2].strip()
        time = last.rpartition(separator)[2].strip()
        if not (before.isdigit() and time.isdigit() and len(time) < len(before)):
            return block
        line = block.first_line + above.count(b"\n") + 1
        text = shown(last.decode("utf-8", "replace"))
        log.add(line, f"{text} without a line end, cut in its time", "a complete line")
        return Block(block.first_line, above + b"\n")

    def _is_heading(self, line: str) -> bool:
        return self.header is not None and self.header.match(line) is not None

    def _most(self, lines: tuple[str, ...]) -> bool:
        return 2 * sum(
            self.row.fullmatch(line.strip()) is not None for line in lines
        ) > len(lines)

    @property
    def _numbers(self) -> tuple[NumberColumn, ...]:
        held = (self.time, self.offset, self.length)
        if self.response is None:
            return held
        return (*held, self.response)

    def _after_preamble(
        self, blocks: Iterator[Block], log: FaultLog
    ) -> Iterator[Block]:
        """Yield the text after the preamble, if there is one."""
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
            log.add(
                0,
                "a text without rows",
                f"{self.separator.join(self.columns)!r} before the rows",
            )

    def _step(self, state: str, line: str) -> str:
        """Return the part that a line belongs to: start (only blanks so far), text, end or rows."""
        assert self.preamble_end is not None
        if self.preamble_end.match(line):
            return "end"
        if not line.strip() or state == "text":
            return state
        # A file may contain two preambles in a row. A damaged row still counts as a row.
        if line.count(self.separator) > 1:
            return "rows"
        return "text"

    def _parse_clean(self, block: Block) -> pl.DataFrame | None:
        """Parse with the CSV reader. Return None for any irregularity, which needs line-by-line parsing."""
        data = block.data
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        quoted = self.quoted and b'"' in data
        if not quoted:
            data = _without_blanks(data, self.separator.encode())
        # The reader would drop a blank line silently, or accept it as a row if all cells are text.
        if b"\r" in data or b"\n\n" in data or data[:1] in (b"\n", b""):
            return None
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        integers = {number.column for number in self._numbers if not number.digits}
        kinds = {
            name: pl.Int64() if name in integers else pl.String()
            for name in self.columns
        }
        rows = clean_cells(data, kinds, self.separator, quoted=quoted)
        if rows is None or rows.height != lines:
            return None
        line_numbers = pl.int_range(
            block.first_line, block.first_line + lines, eager=True
        ).alias(ORDER_COLUMN)
        rows = rows.with_columns(
            *self._decimals(), line_numbers, pl.lit(True).alias("whole")
        )
        optional = {number.column for number in self._numbers if number.optional}
        needed = [name for name in self.columns if name not in optional]
        if any(rows.select(needed).null_count().row(0)):
            return None
        return rows

    def _parse_lines(self, block: Block, log: FaultLog) -> pl.DataFrame:
        """Parse each line separately. A missing or non-numeric cell becomes null."""
        lines = numbered_lines(block, log, heading=self._is_heading)
        rows = with_cells(lines, self.columns, self.separator, quoted=self.quoted)
        integers = [number.column for number in self._numbers if not number.digits]
        # An optional cell may be empty but must not contain anything except a number.
        spoiled = [
            pl.col(number.column).is_not_null()
            & pl.col(number.column).cast(_kind(number), strict=False).is_null()
            for number in self._numbers
        ]
        rows = rows.with_columns(
            (pl.col("whole") & ~pl.any_horizontal(spoiled)).alias("whole")
        )
        return rows.with_columns(
            *self._decimals(), pl.col(integers).cast(pl.Int64, strict=False)
        )

    def _decimals(self) -> list[pl.Expr]:
        """Convert decimals exactly to integers in units of their last kept digit, without floats."""
        return [
            pl.col(number.column)
            .cast(_kind(number), strict=False)
            .to_physical()
            .cast(pl.Int64, strict=False)
            .alias(number.column)
            for number in self._numbers
            if number.digits
        ]

    def _good(self, zero: int | None) -> pl.Expr:
        """Return the check for a row: valid cells, and a time within `REACH_NS` of the first."""
        time = pl.col(self.time.column)
        good = pl.col("whole") & (time >= self.time.least) & self._has_extent()
        for name in self.device:
            good &= pl.col(name).is_not_null()
        if self.response is not None:
            response = pl.col(self.response.column)
            sound = response.is_between(0, REACH_NS // self.response.unit)
            if self.response.optional:
                sound |= response.is_null()
            good &= sound
        good = good.fill_null(False)
        first = pl.lit(zero)
        if zero is None:
            first = time.filter(good).first()
        return good & ((time - first).abs() <= REACH_NS // self.time.unit)

    def _has_extent(self) -> pl.Expr:
        """Return the check of offset, length and operation, which rows that are not requests may lack."""
        offset_max = INT64_MAX // max(self.offset.unit, self.length.unit) // 2
        length_max = LENGTH_BYTES_MAX // self.length.unit
        offset = pl.col(self.offset.column).is_between(self.offset.least, offset_max)
        length = pl.col(self.length.column).is_between(self.length.least, length_max)
        op = pl.col(self.op)
        extent = (offset & length & self.is_write(op).is_not_null()).fill_null(False)
        if self.skipped is None:
            return extent
        return extent | self.skipped(op).fill_null(False)

    def _explain(self, text: str) -> tuple[str, str]:
        """Explain the fault of a faulty line, as (got, wanted)."""
        cells = cells_of(text, self.separator, quoted=self.quoted)
        wanted = self.separator.join(self.columns)
        if len(cells) != len(self.columns):
            return (
                f"{columns_text(len(cells))} in {shown(text)}",
                f"{len(self.columns)}: {wanted}",
            )
        row = dict(zip(self.columns, cells, strict=True))
        for number in self._numbers:
            fault = number.explain(row[number.column])
            if fault is not None:
                return fault
        for name in self.device:
            if not row[name]:
                return f"no {name} in {shown(text)}", wanted
        op = pl.DataFrame(
            {"op": [row[self.op] or None]}, schema={"op": pl.String}
        ).select(self.is_write(pl.col("op")).alias("op"))
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
        if self.device:
            device = pl.concat_str(self.device, separator=".")
        else:
            device = pl.lit("0")
        columns = {
            "issue_ns": issue_ns,
            "complete_ns": complete_ns,
            "device": device,
            "offset_bytes": pl.col(self.offset.column) * self.offset.unit,
            "length_bytes": pl.col(self.length.column) * self.length.unit,
            "is_write": self.is_write(pl.col(self.op)),
        }
        return request_rows(rows.select(ORDER_COLUMN, **columns))


def one_of(
    reads: tuple[str, ...], writes: tuple[str, ...]
) -> Callable[[pl.Expr], pl.Expr]:
    """Return an `is_write` that compares with words for reads and writes, ignoring case."""
    words = (*reads, *writes)

    def is_write(cell: pl.Expr) -> pl.Expr:
        word = cell.str.to_lowercase()
        return pl.when(word.is_in(words)).then(word.is_in(writes))

    return is_write


def _kind(number: NumberColumn) -> pl.DataType:
    if number.digits:
        return pl.Decimal(28, number.digits)
    return pl.Int64()


def _without_blanks(data: bytes, separator: bytes) -> bytes:
    """Strip blanks around separators and line ends. Plain replacements are far faster than a regex."""
    if b"\t" in data:
        data = data.replace(b"\t", b" ")
    if b" " not in data:
        return data
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
    if separator != b" ":
        data = data.replace(b" " + separator, separator).replace(
            separator + b" ", separator
        )
    return data
