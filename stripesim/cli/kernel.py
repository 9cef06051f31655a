"""What `stripesim kernel` does between reading options and printing."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stripesim.cli.output import console, list_written, progress, write_json

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["KernelOptions", "kernel"]

#: Codes that are timed where none are named.
_SCHEMES = ("rs:6,3", "rs:10,4")
#: Data of one call of Ceph's benchmark [B].
_CEPH_BYTES = 1 << 20
_SHIPPED = "Ceph 16.2.15, measured on a processor that is not stated"


@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """Options of ``stripesim kernel``, as they were given."""

    schemes: Sequence[str]
    sizes: Sequence[str]
    backends: Sequence[str] | None
    cold: bool
    all_cores: bool
    sweep: bool
    rounds: int
    against: Path | None
    source_columns: bool
    save: bool
    out: Path | None


def kernel(options: KernelOptions, json_to: str | None) -> None:
    """Time kernels, set them beside Ceph's, write what is to be written, print the rest.

    Raises
    ------
    ValueError
        If an option is wrong, or Ceph's benchmark cannot be run or read.
    """
    from stripesim.calibration.kernels.against_ceph import side_by_side
    from stripesim.calibration.kernels.bench import benchmark, table_rows

    ceph = None if options.against is None else _recorded(options.against)
    schemes, sizes = _asked(options, ceph)
    with progress("kernel", None) as step:
        rows = benchmark(
            schemes, sizes, options.backends, sweep=options.sweep, cold=options.cold,
            cores=None if options.all_cores else 0, rounds=options.rounds, progress=step,
        )  # fmt: skip
        if options.against is not None and ceph is None:
            step("Ceph's benchmark")
            ceph = _run(options.against, schemes, sizes)
    source = _SHIPPED if options.against is None else str(options.against)
    pairs = side_by_side(_codes(rows), _shipped() if ceph is None else ceph)
    saved = _save(rows) if options.save else None
    written = [] if options.out is None else _write(options.out, rows, pairs, ceph or _shipped())
    document = {
        "rows": rows,
        "table": table_rows(_codes(rows)),
        "against": {"source": source, "pairs": pairs},
        "saved": None if saved is None else str(saved),
    }
    if write_json(json_to, document):
        return
    _print(rows, pairs, source, source_columns=options.source_columns)
    if saved is not None:
        print(f"saved {saved}; use it with --set cluster.kernel_table={saved.stem}", file=sys.stderr)
    list_written(written)


def _asked(
    options: KernelOptions, ceph: Sequence[Mapping[str, Any]] | None
) -> tuple[list[str], list[int] | None]:
    """Return the codes and sizes [B] to time; those of a recorded output where none are named."""
    from stripesim.scenarios.schema.units import parse_size_bytes

    schemes = list(options.schemes) or list(dict.fromkeys(row["scheme"] for row in ceph or ())) or [*_SCHEMES]
    if options.sizes:
        return schemes, [parse_size_bytes(size) for size in options.sizes]
    if ceph is not None:
        return schemes, sorted({row["size_bytes"] for row in ceph})
    if options.against is not None and not options.sweep:
        return schemes, [_CEPH_BYTES]
    return schemes, None


def _recorded(path: Path) -> list[dict[str, Any]] | None:
    """Read a recorded output of Ceph's benchmark; None if the path is a program, which runs later."""
    from stripesim.calibration.kernels.against_ceph import ceph_rows_against, is_program

    return None if is_program(path) else ceph_rows_against(path)


def _run(path: Path, schemes: Sequence[str], sizes: Sequence[int] | None) -> list[dict[str, Any]]:
    """Run Ceph's benchmark on the Reed-Solomon codes among what is asked."""
    from stripesim.calibration.kernels.against_ceph import ceph_rows_against

    known = [name for name in schemes if name.startswith("rs:")]
    return ceph_rows_against(path, schemes=known, sizes_bytes=sizes or [_CEPH_BYTES])


def _shipped() -> list[dict[str, Any]]:
    """What was measured of Ceph's plugins and ships."""
    from stripesim.scenarios.studies.dachary2013.runs import shipped_rows

    rows = shipped_rows("ceph16.csv").to_dicts()
    return [row | {"backend": f"ceph {row['backend']}"} for row in rows]


def _codes(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what is no code: the machine's copy."""
    return [row for row in rows if row["op"] != "memcpy"]


def _save(rows: Sequence[Mapping[str, Any]]) -> Path:
    """Keep the cost table of the calls through libraries, warm, on one core."""
    from stripesim.calibration.kernels.store import save_table, table_of_this_machine

    calls = [
        row for row in rows if row["buffers"] == "warm" and row["cores"] == 1 and row["copy_seconds_median"]
    ]
    return save_table(table_of_this_machine(calls))


def _write(
    out: Path,
    rows: Sequence[dict[str, Any]],
    pairs: Sequence[dict[str, Any]],
    ceph: Sequence[Mapping[str, Any]],
) -> list[Path]:
    """Write rows, the source's columns, the comparison and the figures."""
    import polars as pl

    from stripesim.calibration.kernels.bench import format_table
    from stripesim.calibration.kernels.codec import library_versions
    from stripesim.calibration.kernels.store import cpu_description
    from stripesim.scenarios.figures.kernels import draw_kernels
    from stripesim.scenarios.figures.results import save_figures
    from stripesim.scenarios.run.results import write_files

    made = {"cpu": cpu_description(), "versions": library_versions()}
    contents = {
        "kernel.csv": pl.DataFrame(rows, infer_schema_length=None).write_csv().encode(),
        "kernel.txt": (format_table(_codes(rows)) + "\n").encode(),
        "kernel-machine.json": (json.dumps(made, indent=1) + "\n").encode(),
    }
    if pairs:
        contents["kernel-ceph.csv"] = pl.DataFrame(pairs, infer_schema_length=None).write_csv().encode()
    return write_files(out, contents) + save_figures(draw_kernels(rows, ceph), out)


def _print(
    rows: Sequence[dict[str, Any]], pairs: Sequence[dict[str, Any]], source: str, *, source_columns: bool
) -> None:
    from stripesim.calibration.kernels.bench import format_table

    terminal = console()
    if source_columns:
        print(format_table(_codes(rows)))
    else:
        from stripesim.cli.tables import kernel_table

        terminal.print(kernel_table(rows))
    if pairs:
        terminal.print(_against_table(pairs, source))
    else:
        print("nothing here was timed by Ceph's benchmark too: no scheme and size in common", file=sys.stderr)
    wrong = [row for row in rows if row["verified"] is False]
    for row in wrong:
        print(f"warning: {row['backend']} {row['scheme']} {row['op']}: wrong result", file=sys.stderr)


def _against_table(pairs: Sequence[Mapping[str, Any]], source: str) -> Table:
    """A line for each case and plugin of Ceph, beside it the fastest call from here and the kernel alone."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from stripesim.scenarios.schema.units import format_size

    table = Table(
        title=f"Beside Ceph ({source})", title_justify="left", box=SIMPLE_HEAD, pad_edge=False,
        caption="GB/s of data; call = the fastest through a library, with its copies; alone = ISA-L without",
        caption_justify="left",
    )  # fmt: skip
    for heading in ("scheme", "operation", "Ceph's plugin"):
        table.add_column(heading)
    for heading in ("data", "Ceph", "call", "alone", "Ceph / call"):
        table.add_column(heading, justify="right")
    cases: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for pair in pairs:
        key = (pair["scheme"], pair["op"], pair["erasures"], pair["ceph_backend"], pair["ceph_bytes_per_s"])
        cases.setdefault(key, []).append(pair)

    def text(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    for (scheme, op, erasures, plugin, speed), mine in cases.items():
        calls = [pair for pair in mine if not pair["backend"].startswith("isal_")]
        alone = [pair["bytes_per_s"] / 1e9 for pair in mine if pair["backend"].startswith("isal_")]
        best = max((pair["bytes_per_s"] for pair in calls), default=None)
        ceph_over_best = None if best is None else speed / best
        table.add_row(
            scheme, op if not erasures else f"{op}, {erasures} lost", plugin.removeprefix("ceph "),
            format_size(mine[0]["size_bytes"]), text(speed / 1e9), text(None if best is None else best / 1e9),
            text(max(alone, default=None)), text(ceph_over_best),
        )  # fmt: skip
    return table
