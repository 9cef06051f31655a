"""`stripesim kernel`: time erasure-coding kernels on this machine."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from stripesim.cli import options, output


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
    code: options.CodeOption = None,
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
    out: options.OutOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Time encode, decode and reconstruct on this machine, against memory bandwidth and Ceph."""
    to = output.destination(out, json_to)
    if save:
        _check_saving()
    from stripesim.scenarios.answers.kernel import answer_of_kernels, time_kernels
    from stripesim.scenarios.schema.units import size_bytes_at

    options.load_codes(code)
    sizes_bytes = [size_bytes_at("--size", size) for size in sizes or ()]
    with output.progress("kernel", None) as step:
        timed = time_kernels(
            schemes or (),
            sizes_bytes,
            backends,
            sweep=full,
            cold=cold or full,
            all_cores=all_cores or full,
            rounds=rounds,
            against=against,
            progress=step,
        )
    answer = answer_of_kernels(timed, as_ceph=columns == "source", save=save)
    output.deliver(answer, to)


def _check_saving() -> None:
    """Reject stored costs that cannot be read or written, before any code is timed."""
    from stripesim.calibration.kernels.store import user_table_path
    from stripesim.models.kernel.documents import load_table
    from stripesim.scenarios.show.files import check_folder

    path = user_table_path()
    check_folder("--save", path.parent)
    if path.exists():
        # The new costs join those that are there.
        load_table(path)
