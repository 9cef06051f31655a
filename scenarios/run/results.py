"""Results of a run: the columns of its rows, the files they are kept in, and the table a person reads."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from stripesim.scenarios.run.columns import COLUMNS, ci_text
from stripesim.scenarios.run.files import first_line
from stripesim.scenarios.schema.units import format_size
from stripesim.sim.observe.limits import NEAR

#: Columns of a result row and their types. Units are in the names; rates are per simulated second.
RESULT_SCHEMA: Final[Mapping[str, type[pl.DataType]]] = MappingProxyType(
    {column.key: column.dtype for column in COLUMNS.values()}
)

_IDENTITY: Final = ("scheme", "op", "pattern", "block_size_bytes")


class ResultsError(ValueError):
    """Results that cannot be shown or kept; the text says why in one line."""


def rows_frame(rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Collect result rows in a data frame."""
    listed = [dict(row) for row in rows]
    further = list(dict.fromkeys(key for row in listed for key in row if key not in RESULT_SCHEMA))
    try:
        frame = pl.DataFrame(
            {
                name: pl.Series(name, [row.get(name) for row in listed], RESULT_SCHEMA.get(name))
                for name in (*RESULT_SCHEMA, *further)
            }
        )
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise ResultsError(
            f"result rows: got {first_line(error)}, wanted the types of RESULT_SCHEMA"
        ) from None
    return frame


def write_results(
    out_dir: str | Path,
    rows: pl.DataFrame,
    provenance: Mapping[str, Any],
    extra: Mapping[str, str | bytes] | None = None,
) -> list[Path]:
    """Keep a run's rows and how they came about.

    Notes
    -----
    Each file is written beside its name and then renamed over it, so a reader sees the old file or the new
    one, never half of one. ``provenance.json`` comes last: where it is new, all the others are.
    """
    missing = [name for name in _IDENTITY if name not in rows.columns]
    if missing:
        raise ResultsError(f"result rows: got no column {', '.join(missing)}, wanted {', '.join(_IDENTITY)}")
    nested = [name for name, dtype in rows.schema.items() if dtype.is_nested()]
    if nested:
        raise ResultsError(f"result rows: got lists in {', '.join(nested)}, wanted one value a cell")
    contents: dict[str, bytes] = {
        "results.parquet": _buffer(rows.write_parquet),
        "results.csv": _buffer(rows.write_csv),
    }
    for name, content in (extra or {}).items():
        if name in (*contents, "provenance.json") or Path(name).name != name:
            raise ResultsError(f"extra file: got {name!r}, wanted a plain file name that is not taken")
        contents[name] = content.encode() if isinstance(content, str) else content
    contents["provenance.json"] = _json_bytes(provenance)
    return write_files(out_dir, contents)


def _buffer(write: Callable[[BytesIO], object]) -> bytes:
    buffer = BytesIO()
    write(buffer)
    return buffer.getvalue()


def _json_bytes(provenance: Mapping[str, Any]) -> bytes:
    def plain(value: object) -> object:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, Path):
            return str(value)
        raise TypeError(f"a {type(value).__name__}")

    try:
        text = json.dumps(dict(provenance), indent=2, ensure_ascii=False, allow_nan=False, default=plain)
    except (TypeError, ValueError) as error:
        raise ResultsError(f"provenance: got {first_line(error)}, wanted JSON values") from None
    return (text + "\n").encode()


def write_files(out_dir: str | Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files so that none is ever seen half written."""
    out_dir = Path(out_dir)
    temporary: dict[Path, Path] = {}
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            handle, path = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=out_dir)
            temporary[Path(path)] = out_dir / name
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            # mkstemp's files are private to the user; results are not.
            Path(path).chmod(0o644)
        for path_from, path_to in temporary.items():
            path_from.replace(path_to)
    except OSError as error:
        raise ResultsError(
            f"{out_dir}: got {error.strerror or error}, wanted a folder results can be written to"
        ) from None
    finally:
        for path_from in temporary:
            path_from.unlink(missing_ok=True)
    return list(temporary.values())


@dataclass(frozen=True)
class _Shown:
    """A column of the table: its header, how a value is written, and when it gives way.

    `rank` orders columns by how much they matter; the highest goes first where the terminal is narrow.
    """

    header: str
    write: Callable[[Mapping[str, Any]], str]
    rank: int = 0
    justify: Literal["left", "right"] = "right"
    no_wrap: bool = True


def _number(key: str, rank: int = 0) -> _Shown:
    column = COLUMNS[key]
    header = f"{column.short or column.words}\n[{column.unit}]"

    def write(row: Mapping[str, Any]) -> str:
        ends = (
            ci_text(row, *column.ci, column.factor) if key == "throughput_bytes_per_s" and column.ci else ""
        )
        return column.text(row, padded=True) + (f" ±{ends}" if ends else "")

    return _Shown(header, write, rank)


def _text(key: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: str(row.get(key) if row.get(key) is not None else "–")


def _block(row: Mapping[str, Any]) -> str:
    size_bytes = row.get("block_size_bytes")
    return "–" if size_bytes is None else format_size(int(size_bytes))


def _bottleneck(row: Mapping[str, Any]) -> str:
    share = row.get("bottleneck_utilisation")
    # A lock is a limit by the line in front of it, however short each one of them is busy.
    return _text("bottleneck")(row) + ("" if share is None or share < NEAR else f" {100 * share:.0f} %")


_SHOWN: Final[Sequence[_Shown]] = (
    *(_Shown(key, _text(key), justify="left") for key in ("scheme", "op", "pattern")),
    _Shown("workload", _text("workload"), justify="left"),
    _Shown("block", _block),
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


#: Phases of a run under faults, as its rows call them and as tables do.
PHASES: Final = {"before": "before", "degraded": "degraded", "recovery": "recovering", "after": "after"}


def with_phases(rows: pl.DataFrame) -> pl.DataFrame:
    """Put the phases of a run under faults below its rows; rows without phases stay as they are."""
    named = [phase for phase in PHASES if f"iops_{phase}" in rows.columns]
    if not named:
        return rows
    listed: list[dict[str, Any]] = []
    for row in rows.iter_rows(named=True):
        listed.append({**row, "phase": "whole run"})
        for phase in named:
            if row[f"iops_{phase}"] is None:
                continue
            own = {
                name: row.get(f"{name.removesuffix('_ns')}_{phase}_ns")
                for name in ("latency_mean_ns", "latency_p50_ns", "latency_p99_ns")
            }
            if row[f"blocked_{phase}"]:
                longest_s = row[f"blocked_longest_{phase}_ns"] / 1e9
                own["blocked"] = f"{row[f'blocked_by_{phase}']}: up to {longest_s:.1f} s"
            if phase == "recovery":
                own["bottleneck"] = row.get("recovery_limited_by")
            identity: dict[str, Any] = {name: row[name] for name in (*_IDENTITY, "workload") if name in row}
            listed.append({**identity, **own, "iops": row[f"iops_{phase}"], "phase": PHASES[phase]})
    return pl.DataFrame(listed, infer_schema_length=None)


def print_table(rows: pl.DataFrame, console: Console, *, width: int | None = None) -> None:
    """Print result rows as a table for people.

    Notes
    -----
    Throughput is in MB/s of 10⁶ bytes, ± half the width of its confidence interval; latency is the mean, and
    p99 the 99th percentile. B/B are bytes moved by devices or by the private network for each byte the client
    asked for. The percentage after the bottleneck is its utilisation; of the phase recovering it is what
    limits the recovery. Requests that peering, leases or `min_size` blocked are apart. A value that is not
    there reads "–".
    """
    rows = with_phases(rows)
    optional = {"workload", "phase", "blocked"} - set(rows.columns)
    columns = [column for column in _SHOWN if column.header not in optional]
    shown = len(columns)
    unlimited = console.options.update(width=10_000)
    width = min(console.width, width or console.width)
    while True:
        table = _table(rows, columns, left_out=shown - len(columns))
        rank = max(column.rank for column in columns)
        if rank == 0 or Measurement.get(console, unlimited, table).maximum <= width:
            break
        columns = [column for column in columns if column.rank != rank]
    console.print(table)


def _table(rows: pl.DataFrame, columns: Sequence[_Shown], left_out: int) -> Table:
    notes = "MB = 10⁶ bytes; latency = mean; B/B = bytes moved per client byte"
    if left_out:
        notes += f"; columns left out: {left_out}, see results.csv or widen the terminal"
    table = Table(
        box=SIMPLE_HEAD, caption=notes, caption_justify="left", pad_edge=False, collapse_padding=True
    )
    for column in columns:
        table.add_column(escape(column.header), justify=column.justify, no_wrap=column.no_wrap)
    previous: tuple[object, ...] | None = None
    for row in rows.iter_rows(named=True):
        group = tuple(row.get(key) for key in ("scheme", "op", "pattern"))
        if previous is not None and group != previous and rows.height > len(rows.unique(_IDENTITY[:3])):
            table.add_section()
        previous = group
        # Brackets in names and units are text, not rich's markup.
        table.add_row(*(escape(column.write(row)) for column in columns))
    return table
