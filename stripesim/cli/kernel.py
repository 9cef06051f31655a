"""`stripesim kernel`: time erasure-coding kernels on this machine."""

import json
import sys
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from stripesim.cli.options import (
    CodeOption,
    JsonOption,
    OutOption,
    load_codes,
    size_bytes,
)
from stripesim.cli.output import console, list_written, progress, table_of, write_json

#: Codes to time by default.
_SCHEMES = ("rs:6,3", "rs:10,4")
#: Data per call in Ceph's benchmark [B].
_CEPH_BYTES = 1 << 20

Rows = Sequence[dict[str, Any]]


def kernel(
    schemes: Annotated[
        list[str] | None,
        typer.Option(
            "--scheme",
            help="Code to time, such as rs:6,3, lrc:8,4,4, lrc-ceph:8,4,3, shec:8,4,3 or clay:8,4,11. "
            "Repeatable. Default: rs:6,3 and rs:10,4.",
        ),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", help="Data size such as 24k. Repeatable."),
    ] = None,
    backends: Annotated[
        list[str] | None,
        typer.Option(
            "--backend", help="pyeclib backend. Repeatable. Default: all available."
        ),
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Also time buffers that are not in cache.")
    ] = False,
    all_cores: Annotated[
        bool,
        typer.Option(
            "--all-cores", help="Also time one process per core, all at the same time."
        ),
    ] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Imply --cold and --all-cores, with sizes from 4 KiB × k to 64 MiB. Takes minutes.",
        ),
    ] = False,
    code: CodeOption = None,
    rounds: Annotated[int, typer.Option(help="Samples per case.")] = 9,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against-ceph",
            help="Ceph's benchmark, or its recorded output. Default: shipped results for Ceph 16.2.15.",
        ),
    ] = None,
    columns: Annotated[
        Literal["full", "source"],
        typer.Option(
            help="full, or source: seconds, KB, plugin, k, m, … in the layout of Ceph's benchmark."
        ),
    ] = "full",
    save: Annotated[
        bool,
        typer.Option(
            "--save",
            help="Store the costs. Runs use them for codes that their kernel table lacks.",
        ),
    ] = False,
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Time encode, decode and reconstruct on this machine, against memory bandwidth and Ceph."""
    from stripesim.calibration.kernels.against_ceph import (
        ceph_rows_against,
        is_program,
        side_by_side,
    )
    from stripesim.calibration.kernels.bench import benchmark, format_table, table_rows

    load_codes(code)
    # Read recorded output first, because it supplies the default schemes and sizes. Run a program last.
    ceph = None
    if against is not None and not is_program(against):
        ceph = ceph_rows_against(against)
    names = (
        schemes
        or list(dict.fromkeys(row["scheme"] for row in ceph or ()))
        or [*_SCHEMES]
    )
    sizes_bytes = _sizes_bytes(
        sizes or (), ceph, one_call=against is not None and not full
    )
    with progress("kernel", None) as step:
        rows = benchmark(
            names,
            sizes_bytes,
            backends,
            sweep=full,
            cold=cold or full,
            cores=None if all_cores or full else 0,
            rounds=rounds,
            progress=step,
        )
        if against is not None and ceph is None:
            step("Ceph's benchmark")
            # Ceph's benchmark supports only Reed-Solomon codes.
            known = [name for name in names if name.startswith("rs:")]
            ceph = ceph_rows_against(
                against, schemes=known, sizes_bytes=sizes_bytes or [_CEPH_BYTES]
            )
    source = str(against)
    if against is None:
        source = "Ceph 16.2.15, processor unknown"
    if ceph is None:
        ceph = _shipped()
    # The memory copy is not a code.
    codes = [row for row in rows if row["op"] != "memcpy"]
    pairs = side_by_side(codes, ceph)
    saved = _save(rows) if save else None
    written = []
    if out is not None:
        written = _write(out, rows, pairs, ceph, format_table(codes))
    document = {
        "rows": rows,
        "table": table_rows(codes),
        "against": {"source": source, "pairs": pairs},
        "saved": None if saved is None else str(saved),
    }
    if write_json(json_to, document):
        return
    if columns == "source":
        print(format_table(codes))
    else:
        from stripesim.cli.tables import kernel_table

        console().print(kernel_table(rows))
    _print_pairs(pairs, source)
    for row in rows:
        if row["verified"] is False:
            print(
                f"warning: {row['backend']} {row['scheme']} {row['op']}: wrong result",
                file=sys.stderr,
            )
    if saved is not None:
        print(
            f"saved {saved}: runs use it for codes that their kernel table lacks; "
            f"--set cluster.kernel_table={saved.stem} uses it for all",
            file=sys.stderr,
        )
    list_written(written)


def _sizes_bytes(
    sizes: Sequence[str], ceph: Rows | None, *, one_call: bool
) -> list[int] | None:
    """Return the sizes to time [B]: the requested sizes, those of the recorded output, or Ceph's own."""
    if sizes:
        return [size_bytes("--size", size) for size in sizes]
    if ceph is not None:
        return sorted({row["size_bytes"] for row in ceph})
    if one_call:
        return [_CEPH_BYTES]
    return None


def _shipped() -> list[dict[str, Any]]:
    """What was measured of Ceph's plugins and ships."""
    from stripesim.scenarios.studies.kernels import shipped

    return [
        row | {"backend": f"ceph {row['backend']}"}
        for row in shipped("dachary2013", "ceph16.csv").to_dicts()
    ]


def _save(rows: Rows) -> Path:
    """Store the costs of library calls with warm buffers on one core."""
    from stripesim.calibration.kernels.store import save_table, table_of_this_machine

    calls = [row for row in rows if row["buffers"] == "warm" and row["cores"] == 1]
    return save_table(
        table_of_this_machine([row for row in calls if row["copy_seconds_median"]])
    )


def _write(out: Path, rows: Rows, pairs: Rows, ceph: Rows, text: str) -> list[Path]:
    """Write the rows, the table in Ceph's layout, the comparison and the figures."""
    import polars as pl

    from stripesim.calibration.kernels.codec import library_versions
    from stripesim.calibration.kernels.store import cpu_description
    from stripesim.scenarios.show.figures.kernels import draw_kernels
    from stripesim.scenarios.show.figures.results import save_figures
    from stripesim.scenarios.show.files import write_files

    made = {"cpu": cpu_description(), "versions": library_versions()}
    contents = {
        "kernel.csv": pl.DataFrame(rows, infer_schema_length=None).write_csv().encode(),
        "kernel.txt": (text + "\n").encode(),
        "kernel-machine.json": (json.dumps(made, indent=1) + "\n").encode(),
    }
    if pairs:
        contents["kernel-ceph.csv"] = (
            pl.DataFrame(pairs, infer_schema_length=None).write_csv().encode()
        )
    return write_files(out, contents) + save_figures(draw_kernels(rows, ceph), out)


def _print_pairs(pairs: Rows, source: str) -> None:
    """Print one line per case and Ceph plugin, with the fastest library call and the bare kernel."""
    from stripesim.scenarios.schema.units import format_size

    if not pairs:
        print(
            "no comparison with Ceph's benchmark: no scheme and size in common",
            file=sys.stderr,
        )
        return
    of_case = itemgetter("scheme", "op", "erasures", "ceph_backend", "ceph_bytes_per_s")
    cases: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for pair in pairs:
        cases.setdefault(of_case(pair), []).append(pair)
    rows = []
    for (scheme, op, erasures, plugin, speed), of_one_case in cases.items():
        call = _fastest(of_one_case, alone=False)
        row = {
            "scheme": scheme,
            "operation": f"{op}, {erasures} lost" if erasures else op,
            "Ceph's plugin": plugin.removeprefix("ceph "),
            "data": format_size(of_one_case[0]["size_bytes"]),
            "Ceph": _gb_per_s(speed),
            "call": _gb_per_s(call),
            "alone": _gb_per_s(_fastest(of_one_case, alone=True)),
            "Ceph / call": "",
        }
        if call is not None:
            row["Ceph / call"] = f"{speed / call:.2f}"
        rows.append(row)
    caption = "GB/s of data. call = fastest library call, copies included. alone = ISA-L without a library"
    title = f"Compared with Ceph ({source})"
    console().print(table_of(rows, numbers=range(3, 8), title=title, caption=caption))


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
