"""The answer of `stripesim kernel`: times of erasure-coding kernels here, and next to Ceph's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stripesim.calibration.kernels.against_ceph import (
    ceph_rows_against,
    is_program,
    side_by_side,
)
from stripesim.calibration.kernels.bench import benchmark, format_table, table_rows
from stripesim.calibration.kernels.codec import library_versions
from stripesim.calibration.kernels.store import (
    cpu_description,
    save_table,
    table_of_this_machine,
)
from stripesim.calibration.measured.kernels import ceph_kernels
from stripesim.models.documents import json_text
from stripesim.scenarios.schema.units import size_text
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import csv_text
from stripesim.scenarios.show.tables import Table
from stripesim.sim.observe.progress import OnStep, silent

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

Rows = Sequence[dict[str, Any]]

#: Codes to time by default.
_SCHEMES: Final = ("rs:6,3", "rs:10,4")
#: Data per call in Ceph's benchmark [B].
_CEPH_BYTES: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class KernelTimes:
    """Times of kernels on this machine, and those of Ceph's benchmark."""

    rows: Rows  # One for each case, copies of memory included.
    ceph: Rows
    source: str  # Where the times of Ceph are from.

    @property
    def codes(self) -> list[dict[str, Any]]:
        """The rows of codes, without copies of memory."""
        return [row for row in self.rows if row["op"] != "memcpy"]

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """Cases that both measured, side by side."""
        return side_by_side(self.codes, self.ceph)


def time_kernels(
    schemes: Sequence[str],
    sizes_bytes: Sequence[int],
    backends: Sequence[str] | None,
    *,
    sweep: bool,
    cold: bool,
    all_cores: bool,
    rounds: int,
    against: Path | None,
    progress: OnStep = silent,
) -> KernelTimes:
    """Time kernels on this machine, and run or read Ceph's benchmark.

    Parameters
    ----------
    schemes, sizes_bytes
        Codes and data sizes [B]. Empty for those of recorded output, or the default.
    backends, sweep, cold, rounds
        As for `stripesim.calibration.kernels.bench.benchmark`.
    all_cores
        Also time one process per core.
    against
        Ceph's benchmark or its recorded output. None compares with the shipped results.
    progress
        Called before each part.
    """
    # Read recorded output first, because it supplies the default schemes and sizes. Run a program last.
    ceph: Rows | None = None
    if against is not None and not is_program(against):
        ceph = ceph_rows_against(against)
    recorded = dict.fromkeys(row["scheme"] for row in ceph or ())
    names = [*schemes] or [*recorded] or [*_SCHEMES]
    sizes = _sizes_bytes(sizes_bytes, ceph, one_call=against is not None and not sweep)
    rows = benchmark(
        names,
        sizes,
        backends,
        sweep=sweep,
        cold=cold,
        cores=None if all_cores else 0,
        rounds=rounds,
        progress=progress,
    )
    if against is None:
        return KernelTimes(
            rows=rows, ceph=_shipped(), source="Ceph 16.2.15, processor unknown"
        )
    if ceph is None:
        progress("Ceph's benchmark")
        # Ceph's benchmark supports only Reed-Solomon codes.
        known = [name for name in names if name.startswith("rs:")]
        ceph = ceph_rows_against(
            against, schemes=known, sizes_bytes=sizes or [_CEPH_BYTES]
        )
    return KernelTimes(rows=rows, ceph=ceph, source=str(against))


def _sizes_bytes(
    sizes_bytes: Sequence[int], ceph: Rows | None, *, one_call: bool
) -> list[int] | None:
    """Return the sizes to time [B]: the requested sizes, those of the recorded output, or Ceph's own."""
    if sizes_bytes:
        return [*sizes_bytes]
    if ceph is not None:
        return sorted({row["size_bytes"] for row in ceph})
    if one_call:
        return [_CEPH_BYTES]
    return None


def answer_of_kernels(timed: KernelTimes, *, as_ceph: bool, save: bool) -> Answer:
    """Return the answer of timed kernels.

    Parameters
    ----------
    timed
        The times.
    as_ceph
        True for a table in the layout of Ceph's benchmark.
    save
        True to store the costs for runs on this machine.
    """
    saved = _save(timed.rows) if save else None
    document = {
        "rows": timed.rows,
        "table": table_rows(timed.codes),
        "against": {"source": timed.source, "pairs": timed.pairs},
        "saved": None if saved is None else str(saved),
    }
    shown: list[str | Table] = [
        format_table(timed.codes) if as_ceph else _times_table(timed.rows)
    ]
    if timed.pairs:
        shown.append(_compared_table(timed))

    def figures() -> Mapping[str, CaptionedFigure]:
        from stripesim.scenarios.show.figures.kernels import draw_kernels

        return draw_kernels(timed.rows, timed.ceph)

    return Answer(
        document=document,
        shown=shown,
        warnings=[*_warnings(timed)],
        notes=[] if saved is None else [_saved_words(saved)],
        files=lambda: _files(timed),
        figures=figures,
    )


def _warnings(timed: KernelTimes) -> Iterator[str]:
    if not timed.pairs:
        yield "no comparison with Ceph's benchmark: no scheme and size in common"
    for row in timed.rows:
        if row["verified"] is False:
            yield f"{row['backend']} {row['scheme']} {row['op']}: wrong result"


def _saved_words(saved: Path) -> str:
    return (
        f"saved {saved}: runs use it for codes that their kernel table lacks; "
        f"--set cluster.kernel_table={saved.stem} uses it for all"
    )


def _shipped() -> list[dict[str, Any]]:
    """Measurements of Ceph's plugins that ship."""
    return [
        row | {"backend": f"ceph {row['backend']}"} for row in ceph_kernels().to_dicts()
    ]


def _save(rows: Rows) -> Path:
    """Store the costs of library calls with warm buffers on one core."""
    calls = [row for row in rows if row["buffers"] == "warm" and row["cores"] == 1]
    return save_table(
        table_of_this_machine([row for row in calls if row["copy_seconds_median"]])
    )


def _files(timed: KernelTimes) -> dict[str, bytes]:
    """Return the rows, the table in Ceph's layout, the machine, and the comparison."""
    made = {"cpu": cpu_description(), "versions": library_versions()}
    files = {
        "kernel.csv": csv_text(timed.rows).encode(),
        "kernel.txt": (format_table(timed.codes) + "\n").encode(),
        "kernel-machine.json": json_text(made, is_ascii=True).encode(),
    }
    if timed.pairs:
        files["kernel-ceph.csv"] = csv_text(timed.pairs).encode()
    return files


def _compared_table(timed: KernelTimes) -> Table:
    """Return one line per case and Ceph plugin, with the fastest library call and the bare kernel."""
    of_case = itemgetter("scheme", "op", "erasures", "ceph_backend", "ceph_bytes_per_s")
    cases: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for pair in timed.pairs:
        cases.setdefault(of_case(pair), []).append(pair)
    rows = []
    for (scheme, op, erasures, plugin, speed), of_one_case in cases.items():
        call = _fastest(of_one_case, alone=False)
        row = {
            "scheme": scheme,
            "operation": f"{op}, {erasures} lost" if erasures else op,
            "Ceph's plugin": plugin.removeprefix("ceph "),
            "data": size_text(of_one_case[0]["size_bytes"]),
            "Ceph": _gb_per_s(speed),
            "call": _gb_per_s(call),
            "alone": _gb_per_s(_fastest(of_one_case, alone=True)),
            "Ceph / call": "",
        }
        if call is not None:
            row["Ceph / call"] = f"{speed / call:.2f}"
        rows.append(row)
    note = "GB/s of data. call = fastest library call, copies included. alone = ISA-L without a library"
    title = f"Compared with Ceph ({timed.source})"
    return Table.of(title, rows, words=(1, 2), caption_shown=True, note=note)


def _gb_per_s(bytes_per_s: float | None) -> str:
    if bytes_per_s is None:
        return ""
    return f"{bytes_per_s / 1e9:.2f}"


def _fastest(pairs: Rows, *, alone: bool) -> float | None:
    """Return the speed of the fastest library call, or of ISA-L without a library if `alone` [B/s]."""
    speeds = [
        pair["bytes_per_s"]
        for pair in pairs
        if pair["backend"].startswith("isal_") is alone
    ]
    return max(speeds, default=None)


def _times_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the rows that `stripesim.calibration.kernels.bench.benchmark` returns as a table."""
    lines = []
    for row in sorted(rows, key=_kernel_order):
        operation = row["op"]
        scheme = row["scheme"]
        backend = row["backend"]
        if operation == "memcpy":
            scheme = ""
            backend = ""
        if operation == "decode":
            operation += f", {row['erasures']} lost"
        line = {
            "scheme": scheme,
            "operation": operation,
            "backend": backend,
            "buffers": row["buffers"],
            "cores": f"{row['cores']}",
            "data": size_text(row["size_bytes"]),
            "time [µs]": f"{row['seconds_median'] * 1e6:.1f}",
            "p10…p90 [µs]": _span_us(row["seconds_p10"], row["seconds_p90"]),
            "copy [µs]": _known(row["copy_seconds_median"], 1e6, ".1f"),
            "[GB/s]": f"{row['bytes_per_s'] / 1e9:.2f}",
            "roof": _known(row["roofline"], 1.0, ".2f"),
        }
        lines.append(line)
    note = (
        "time = median of a call; copy = the same call with the null code; GB = 10⁹ bytes of data; roof = "
        "bytes read and written per second relative to memcpy; isal_… = ISA-L without library, headers and "
        "copies"
    )
    return Table.of("Times", lines, words=(1, 2, 3), note=note)


def _span_us(low_s: float, high_s: float) -> str:
    """Format a range in microseconds, or return "" if its ends are equal."""
    if low_s == high_s:
        return ""
    return f"{low_s * 1e6:.1f}…{high_s * 1e6:.1f}"


def _known(value: float | None, factor: float, form: str) -> str:
    """Format a value times `factor`, or return "" if it is unknown."""
    if value is None:
        return ""
    return f"{value * factor:{form}}"


def _kernel_order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    case = (row[key] for key in ("scheme", "op", "erasures", "size_bytes", "cores"))
    return (row["op"] == "memcpy", *case, row["buffers"] == "cold", row["backend"])
