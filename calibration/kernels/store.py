"""Find and save kernel tables: those that ship and those measured on this machine."""

import datetime
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from stripesim.calibration.kernels.codec import library_versions
from stripesim.models.documents import write_whole
from stripesim.models.kernel.cost import KernelModel
from stripesim.models.kernel.documents import (
    load_table,
    merge_tables,
    parse_table,
    table_to_json,
)
from stripesim.models.problems import KernelError, file_reason

#: Default table of pyeclib's kernels. It is the same everywhere, so that scenarios give the same results.
DEFAULT_TABLE = "amd-epyc-family25-model17"
#: Table of Ceph's own plugins.
CEPH_TABLE = "ceph-16.2.15"

_FLAGS = ("ssse3", "avx", "avx2", "avx512f", "avx512bw", "gfni")


def cpu_description() -> dict[str, Any]:
    """Describe this processor: name, family and model (None if unknown), and SIMD extensions."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    lines = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    first = {key.strip(): value.strip() for key, _, value in lines}
    flags = set(first.get("flags", "").split())
    return {
        "name": first.get("model name")
        or platform.processor()
        or platform.machine()
        or "unknown",
        "family": first.get("cpu family"),
        "model": first.get("model"),
        "extensions": [flag for flag in _FLAGS if flag in flags],
    }


def table_name(cpu: Mapping[str, Any]) -> str:
    """Return a file stem for a processor. It includes family and model, because VMs report generic names."""
    slug = re.sub(r"[^a-z0-9]+", "-", str(cpu["name"]).lower()).strip("-")
    parts = [f"{key}{cpu[key]}" for key in ("family", "model") if cpu.get(key)]
    return "-".join([slug, *parts])


def table_of_this_machine(rows: Iterable[Mapping[str, Any]]) -> KernelModel:
    """Fit rows measured on this machine into a table named after the processor, with its provenance."""
    # SciPy loads here, because simulations only read tables.
    from stripesim.calibration.kernels.cost_fit import table_from_rows

    cpu = cpu_description()
    provenance = {
        "basis": "measured",
        "command": "stripesim.calibration.kernels.measure.measure",
        "cpu": cpu,
        "versions": {**library_versions(), "python": platform.python_version()},
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }
    return table_from_rows(rows, name=table_name(cpu), provenance=provenance)


def user_table_dir() -> Path:
    """Return the folder of tables measured here, ``$XDG_DATA_HOME/stripesim/kernel_tables``."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "stripesim" / "kernel_tables"


def user_table_path() -> Path:
    """Return the file of the costs of this machine's processor."""
    return user_table_dir() / f"{table_name(cpu_description())}.json"


def save_table(table: KernelModel, directory: Path | None = None) -> Path:
    """Save a table, keeping further costs of an existing file.

    Parameters
    ----------
    table
        Costs to save.
    directory
        Folder of the file. The default is `user_table_dir`.

    Raises
    ------
    KernelError
        If the existing file cannot be read or the new one cannot be written.
    """
    directory = user_table_dir() if directory is None else directory
    path = directory / f"{table.name}.json"
    if path.exists():
        table = merge_tables(table.name, [table, load_table(path)])
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_whole(path, table_to_json(table))
    except OSError as error:
        raise KernelError(f"{path}: cannot write: {file_reason(error)}") from None
    return path


def shipped_table_names() -> tuple[str, ...]:
    """Return the names of the shipped tables."""
    folder = resources.files("stripesim.calibration.kernels.tables")
    return tuple(
        sorted(
            f.name.removesuffix(".json")
            for f in folder.iterdir()
            if f.name.endswith(".json")
        )
    )


def named_table(name: str) -> KernelModel:
    """Return a table by name. Tables measured here take precedence over shipped ones.

    Raises
    ------
    KernelError
        If there is no such table, or it cannot be read.
    """
    own = user_table_dir() / f"{name}.json"
    if own.exists():
        # Take costs that were not measured here from the shipped table.
        return merge_tables(name, [load_table(own), default_table()])
    return shipped_table(name)


def costs_measured_here(scheme: str) -> KernelModel | None:
    """Return the costs of a code that ``stripesim kernel --save`` stored for this processor, or None."""
    path = user_table_dir() / f"{table_name(cpu_description())}.json"
    if not path.exists():
        return None
    table = load_table(path)
    costs = tuple(cost for cost in table.costs if cost.scheme == scheme)
    if costs:
        return replace(table, costs=costs)
    return None


@lru_cache(maxsize=4)
def shipped_table(name: str) -> KernelModel:
    """Return a shipped table by name.

    Raises
    ------
    KernelError
        If there is no such table.
    """
    if name not in shipped_table_names():
        raise KernelError(
            f"kernel table: got {name!r}, wanted one of {', '.join(shipped_table_names())}"
        )
    text = (
        resources.files("stripesim.calibration.kernels.tables") / f"{name}.json"
    ).read_text(encoding="utf-8")
    return parse_table(text, where=f"{name}.json")


def default_table() -> KernelModel:
    """Return the default table, which is the same on every machine, with or without pyeclib."""
    return shipped_table(DEFAULT_TABLE)
