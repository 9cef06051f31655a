"""Generate the reference of parameter sets and kernel tables: every number with its provenance."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generate.markdown import code, number, table
from stripesim.blocks import KINDS, shipped_table, shipped_table_names, unit_of

ROOT = Path(__file__).resolve().parents[2]

INTRODUCTION = """\
# Parameter sets

Generated from the shipped sets. A scenario names its sets by `cluster.parameters`, `cluster.drive` and
`cluster.kernel_table`. `parameters.json` of a run lists the numbers it used. The page of each model under
[background](../background/index.md) explains its numbers.

Kinds of provenance: *measured* (command and machine), *code* (a constant of the modelled system),
*datasheet*, *published* (source and position), *fitted* (rows, with a 95 % interval), *given* (configuration
of the modelled cluster), *assumed* (no source found, with the reason for the value). **An assumed number is a
guess.**

"""


def sets() -> dict[str, Path]:
    """Return the parameter files by name: the shipped sets, then those of studies."""
    shipped = sorted((ROOT / "calibration" / "parameters").glob("*.toml"))
    studies = sorted((ROOT / "scenarios").glob("studies/*/parameters.toml"))
    return {path.stem: path for path in shipped} | {
        f"{path.parent.name} (of its study)": path for path in studies
    }


def numbers(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the dotted name and the table of each number of a set."""

    def walk(
        node: Mapping[str, Any], prefix: str
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for name, value in node.items():
            if not isinstance(value, Mapping):
                continue
            if "provenance" in value:
                yield f"{prefix}{name}", value
            else:
                yield from walk(value, f"{prefix}{name}.")

    yield from walk(tomllib.loads(path.read_text(encoding="utf-8")), "")


def _value(row: Mapping[str, Any]) -> str:
    if "value" in row:
        value = row["value"]
        return number(value) if isinstance(value, int | float) else str(value)
    for key, words in (("lognormal_sigma", "lognormal, σ = "), ("file", "table ")):
        if key in row:
            return f"{words}{row[key]}"
    return "see the file"


def _interval(row: Mapping[str, Any]) -> str:
    ends = row.get("confidence_interval")
    return f"{number(ends[0])} to {number(ends[1])}" if ends else ""


def _introduction(path: Path) -> str:
    """Return the comment at the head of a set."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)


def page() -> str:
    """Return the page of all sets."""
    parts = [INTRODUCTION]
    for name, path in sets().items():
        named_numbers = list(numbers(path))
        kinds = Counter(str(row["provenance"]) for _, row in named_numbers)
        counted = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind])
        parts.append(
            f"## {name}\n\n{_introduction(path)}\n\n{len(named_numbers)} numbers: {counted}.\n"
        )
        rows = [
            (code(key), _value(row), row.get("unit") or unit_of(key.rpartition(".")[2]), row["provenance"],
             _interval(row), row["source"])
            for key, row in named_numbers
        ]  # fmt: skip
        parts.append(
            table(("number", "value", "unit", "kind", "95 % interval", "source"), rows)
        )
    return "\n".join([*parts, _kernel_tables()])


def _kernel_tables() -> str:
    parts = ["## Kernel tables\n\nMeasured times of encode, decode and reconstruct; see "
             "[kernel costs](../background/kernel-costs.md).\n"]  # fmt: skip
    for name in shipped_table_names():
        kernel_table = shipped_table(name)
        provenance = kernel_table.provenance
        cpu = provenance["cpu"]
        cpu_name = cpu.get("name", cpu) if isinstance(cpu, Mapping) else cpu
        parts.append(
            f"### {name}\n\n{cpu_name}; {provenance['basis']}, {provenance['date']}.\n\n"
            + table(
                ("backend", "schemes"),
                [
                    (code(backend), ", ".join(kernel_table.schemes(backend)))
                    for backend in kernel_table.backends
                ],
            )
        )
    return "\n".join(parts)
