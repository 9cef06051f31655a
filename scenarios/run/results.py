"""Show and store the results of a run: columns, files and the table on the terminal."""

import csv
import html
import json
import secrets
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO, StringIO
from pathlib import Path
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from stripesim.scenarios.cells.files import first_line
from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.sim.observe.limits import LATENCY, NEAR, resource_name
from stripesim.sim.observe.result_row import ResultRow


@dataclass(frozen=True)
class Column:
    """A column of the result rows, and how reports show it."""

    key: str  # Name in the rows, with the unit.
    dtype: type[pl.DataType]
    meaning: str  # Text of the reference.
    words: str = ""  # Name in reports, empty if they do not show it.
    short: str = ""  # Name in narrow tables, empty if it is the same.
    unit: str = ""  # Unit in reports.
    factor: float = 1.0  # From the unit of the column to that of reports.
    better: Literal["less", "more"] = "less"
    ci: tuple[str, str] | None = None  # Columns with the ends of its 95 % interval.

    @property
    def heading(self) -> str:
        """Name and unit."""
        return self._with_unit(self.words)

    @property
    def short_heading(self) -> str:
        """Name and unit for a narrow table."""
        return self._with_unit(self.short or self.words)

    def _with_unit(self, name: str) -> str:
        if not self.unit:
            return name
        return f"{name} [{self.unit}]"

    def text(self, row: Mapping[str, Any]) -> str:
        """Write the value of a row in the unit of reports."""
        return number_text(row.get(self.key), self.factor)

    def half_text(self, row: Mapping[str, Any], ci: tuple[str, str] | None) -> str:
        """Write half the width of an interval given by two columns, or nothing without an interval."""
        if ci is None:
            return ""
        low, high = (row.get(end) for end in ci)
        if low is None or high is None:
            return ""
        return number_text((high - low) / 2, self.factor, digits=2, padded=True)

    def padded_text(
        self, row: Mapping[str, Any], ci: tuple[str, str] | None = None
    ) -> str:
        """Write the value with trailing zeros, for a column of numbers, and half of its interval."""
        half = self.half_text(row, ci)
        value = number_text(row.get(self.key), self.factor, padded=True)
        if not half:
            return value
        return f"{value} ±{half}"


#: Columns that identify a row, with their types and meaning.
_IDENTITY: Final[Mapping[str, tuple[type[pl.DataType], str]]] = {
    "scheme": (pl.String, "redundancy scheme"),
    "op": (pl.String, "`read`, `write`, `mixed` (a read fraction), or `trace`"),
    "pattern": (pl.String, "`seq`, `rand`, or `trace`"),
    "block_size_bytes": (
        pl.Int64,
        "bytes of one client request; null where a trace decides",
    ),
}

_DTYPES: Final[Mapping[type, type[pl.DataType]]] = {
    str: pl.String,
    int: pl.Int64,
    float: pl.Float64,
    bool: pl.Boolean,
}


def _numbers() -> Iterator[tuple[str, tuple[type[pl.DataType], str]]]:
    """List the annotated fields of `ResultRow` with their types and meaning."""
    for name, hint in get_type_hints(ResultRow, include_extras=True).items():
        if get_origin(hint) is not Annotated:
            continue
        kind, meaning = get_args(hint)
        # An optional type lists None last.
        yield name, (_DTYPES[(get_args(kind) or (kind,))[0]], meaning)


def _columns() -> Iterator[Column]:
    """Combine the definition of each column with the way in which reports show it."""
    text = files(__package__).joinpath("columns.toml").read_text(encoding="utf-8")
    shown = tomllib.loads(text)
    for key, (dtype, meaning) in {**_IDENTITY, **dict(_numbers())}.items():
        entry = shown.pop(key, {})
        if "ci" in entry:
            entry["ci"] = tuple(entry["ci"])
        yield Column(key, dtype, meaning, **entry)
    assert not shown, f"columns.toml: {', '.join(shown)}: not a column of ResultRow"


#: Every column of a result row by its key, in the order of the rows.
COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {column.key: column for column in _columns()}
)

#: Types of the columns of a result row.
RESULT_SCHEMA: Final[Mapping[str, type[pl.DataType]]] = MappingProxyType(
    {column.key: column.dtype for column in COLUMNS.values()}
)


class ResultsError(ValueError):
    """Results that cannot be shown or stored; the message has one line."""


def rows_frame(rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Collect result rows in a data frame."""
    listed = list(rows)
    names = dict.fromkeys((*RESULT_SCHEMA, *(key for row in listed for key in row)))
    columns = {name: [row.get(name) for row in listed] for name in names}
    try:
        return pl.DataFrame(
            [
                pl.Series(name, of, RESULT_SCHEMA.get(name))
                for name, of in columns.items()
            ]
        )
    except (TypeError, pl.exceptions.PolarsError) as error:
        wanted = "wanted the types of RESULT_SCHEMA"
        raise ResultsError(f"result rows: got {first_line(error)}, {wanted}") from None


def write_results(
    out_dir: str | Path,
    rows: pl.DataFrame,
    provenance: Mapping[str, Any],
    extra: Mapping[str, str | bytes] | None = None,
) -> list[Path]:
    """Write the rows of a run and its provenance; ``provenance.json`` is the last file."""
    missing = [name for name in _IDENTITY if name not in rows.columns]
    if missing:
        raise ResultsError(
            f"result rows: got no column {', '.join(missing)}, wanted {', '.join(_IDENTITY)}"
        )
    nested = [name for name, dtype in rows.schema.items() if dtype.is_nested()]
    if nested:
        raise ResultsError(
            f"result rows: got lists in {', '.join(nested)}, wanted one value a cell"
        )
    parquet = BytesIO()
    csv_file = BytesIO()
    rows.write_parquet(parquet)
    rows.write_csv(csv_file)
    contents = {
        "results.parquet": parquet.getvalue(),
        "results.csv": csv_file.getvalue(),
    }
    for name, content in (extra or {}).items():
        if name in (*contents, "provenance.json") or Path(name).name != name:
            raise ResultsError(
                f"extra file: got {name!r}, wanted a plain file name that is not taken"
            )
        contents[name] = content.encode() if isinstance(content, str) else content
    contents["provenance.json"] = _json_bytes(provenance)
    return write_files(out_dir, contents)


def _json_bytes(provenance: Mapping[str, Any]) -> bytes:
    def plain(value: object) -> object:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, Path):
            return str(value)
        raise TypeError(f"a {type(value).__name__}")

    try:
        text = json.dumps(
            dict(provenance),
            indent=2,
            ensure_ascii=False,
            allow_nan=False,
            default=plain,
        )
    except (TypeError, ValueError) as error:
        raise ResultsError(
            f"provenance: got {first_line(error)}, wanted JSON values"
        ) from None
    return (text + "\n").encode()


def csv_text(rows: Iterable[Mapping[str, object]]) -> str:
    """Write mappings as CSV, one per line. The columns are all keys, in the order of their first use."""
    listed = list(rows)
    names = list(dict.fromkeys(key for row in listed for key in row))
    text = StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    return text.getvalue()


def write_files(out_dir: str | Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files atomically, with permissions that follow the umask."""
    out_dir = Path(out_dir)
    temporary: dict[Path, Path] = {}
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            path = out_dir / name
            # tempfile ignores the umask and makes files private to the user.
            temporary[path] = out_dir / f".{name}.{secrets.token_hex(8)}.tmp"
            with temporary[path].open("xb") as file:
                file.write(content)
        for path, written in temporary.items():
            written.replace(path)
    except OSError as error:
        got = error.strerror or error
        raise ResultsError(
            f"{out_dir}: got {got}, wanted a folder results can be written to"
        ) from None
    finally:
        for written in temporary.values():
            written.unlink(missing_ok=True)
    return list(temporary)


# Rows that differ in these are separated in a table.
_GROUP: Final = ("scheme", "op", "pattern")


class _Shown(NamedTuple):
    """A column of the table; a narrow terminal leaves out columns of the highest `rank` first."""

    header: str
    write: Callable[[Mapping[str, Any]], str]
    rank: int = 0
    justify: Literal["left", "right"] = "right"
    no_wrap: bool = True


def _number(key: str, rank: int = 0) -> _Shown:
    column = COLUMNS[key]
    ci = column.ci if key == "throughput_bytes_per_s" else None
    header = f"{column.short or column.words}\n[{column.unit}]"
    return _Shown(header, lambda row: column.padded_text(row, ci), rank)


def _text(key: str) -> Callable[[Mapping[str, Any]], str]:
    def write(row: Mapping[str, Any]) -> str:
        value = row.get(key)
        return "–" if value is None else str(value)

    return write


def block_text(row: Mapping[str, Any]) -> str:
    """Write the request size of a row, or a dash if it has several."""
    size_bytes = row.get("block_size_bytes")
    if size_bytes is None:
        return "–"
    return format_size(int(size_bytes))


def _bottleneck(row: Mapping[str, Any]) -> str:
    """Name the bottleneck of a row. A row that the audit refuses names the check."""
    refused = row.get("refused")
    if refused is None:
        return _limit(row)
    check = refused.partition(":")[0]
    if row.get("iops") is None:
        return f"refused: {check}"
    return f"{_limit(row)} (unchecked: {check})"


def _limit(row: Mapping[str, Any]) -> str:
    """Name the bottleneck, with the utilisation of its busiest member if that is high."""
    name = resource_name(_text("bottleneck")(row))
    if name == LATENCY:
        return f"latency (most at {resource_name(row['latency_at'])})"
    highest = row.get("bottleneck_utilisation")
    mean = row.get("bottleneck_mean_utilisation")
    # A lock is a bottleneck because of its queue, even at a low utilisation.
    if highest is None or highest < NEAR:
        return name
    if mean is not None and mean < NEAR:
        name += " hot spot"
    return f"{name} {100 * highest:.0f} %"


_SHOWN: Final[Sequence[_Shown]] = (
    *(
        _Shown(key, _text(key), justify="left")
        for key in ("scheme", "op", "pattern", "workload")
    ),
    _Shown("block", block_text),
    _Shown("phase", _text("phase"), justify="left"),
    _number("iops", rank=4),
    _number("throughput_bytes_per_s"),
    _number("latency_mean_ns"),
    _number("latency_p99_ns", rank=1),
    _number("device_read_bytes_per_client_byte", rank=3),
    _number("device_write_bytes_per_client_byte", rank=3),
    _number("private_net_bytes_per_client_byte", rank=5),
    _number("cpu_ns_per_op", rank=6),
    _number("context_switches_per_op", rank=7),
    _Shown("blocked", _text("blocked"), rank=2, justify="left", no_wrap=False),
    _Shown("bottleneck", _bottleneck, justify="left", no_wrap=False),
)


#: Phases of a run under faults: name in the rows → name in tables.
PHASES: Final = {
    "before": "before",
    "slow": "slow drive",
    "degraded": "degraded",
    "recovery": "recovering",
    "after": "after",
}


def with_phases(rows: pl.DataFrame) -> pl.DataFrame:
    """Insert the phases of runs under faults as additional rows."""
    named = [phase for phase in PHASES if f"iops_{phase}" in rows.columns]
    if not named:
        return rows
    listed: list[dict[str, Any]] = []
    for row in rows.iter_rows(named=True):
        listed.append({**row, "phase": "whole run"})
        for phase in named:
            if row[f"iops_{phase}"] is None:
                continue
            own: dict[str, Any] = {
                name: row[name] for name in (*_IDENTITY, "workload") if name in row
            }
            for part in ("mean", "p50", "p99"):
                own[f"latency_{part}_ns"] = row.get(f"latency_{part}_{phase}_ns")
            if row[f"blocked_{phase}"]:
                longest_s = row[f"blocked_longest_{phase}_ns"] / 1e9
                own["blocked"] = (
                    f"{row[f'blocked_by_{phase}']}: up to {longest_s:.1f} s"
                )
            if phase == "recovery":
                own["bottleneck"] = row.get("recovery_limited_by")
            listed.append({**own, "iops": row[f"iops_{phase}"], "phase": PHASES[phase]})
    return pl.DataFrame(listed, infer_schema_length=None)


def print_table(rows: pl.DataFrame, console: Console) -> None:
    """Print result rows as a table.

    The percentage after the bottleneck is its utilisation. In the phase "recovering" the bottleneck is the
    limit of the recovery. Requests blocked by peering, leases or `min_size` have their own column. Missing
    values show as "–".
    """
    rows = with_phases(rows)
    optional = {"workload", "phase", "blocked"} - set(rows.columns)
    columns = every = [column for column in _SHOWN if column.header not in optional]
    unlimited = console.options.update(width=10_000)
    while True:
        table = _table(rows, columns, left_out=len(every) - len(columns))
        rank = max(column.rank for column in columns)
        if (
            rank == 0
            or Measurement.get(console, unlimited, table).maximum <= console.width
        ):
            break
        columns = [column for column in columns if column.rank != rank]
    console.print(table)


def html_table(rows: pl.DataFrame, sentence: str) -> str:
    """Write result rows as a sentence and an HTML table, for notebooks."""
    rows = with_phases(rows)
    optional = {"workload", "phase", "blocked"} - set(rows.columns)
    columns = [column for column in _SHOWN if column.header not in optional]
    heads = "".join(f"<th>{html.escape(column.header)}</th>" for column in columns)
    lines = [
        "".join(f"<td>{html.escape(column.write(row))}</td>" for column in columns)
        for row in rows.iter_rows(named=True)
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<p>{html.escape(sentence)}</p><table><tr>{heads}</tr>{body}</table>"


def _table(rows: pl.DataFrame, columns: Sequence[_Shown], left_out: int) -> Table:
    notes = "MB = 10⁶ bytes; latency = mean; B/B = bytes moved per client byte"
    if left_out:
        notes += (
            f"; columns left out: {left_out}, see results.csv or widen the terminal"
        )
    table = Table(
        box=SIMPLE_HEAD,
        caption=notes,
        caption_justify="left",
        pad_edge=False,
        collapse_padding=True,
    )
    for column in columns:
        table.add_column(
            escape(column.header), justify=column.justify, no_wrap=column.no_wrap
        )
    previous: tuple[object, ...] | None = None
    for row in rows.iter_rows(named=True):
        group = tuple(row.get(key) for key in _GROUP)
        if (
            previous is not None
            and group != previous
            and rows.height > len(rows.unique(_GROUP))
        ):
            table.add_section()
        previous = group
        # Brackets in names and units are text, not rich's markup.
        table.add_row(*(escape(column.write(row)) for column in columns))
    return table
