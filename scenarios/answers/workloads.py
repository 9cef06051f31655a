"""The answers of `stripesim import fio` and `cbt`: measured workloads as tables of scenarios."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stripesim.scenarios.show.answer import Answer


def answer_of_workloads(
    rows: Sequence[Mapping[str, Any]], refused: Sequence[str] = ()
) -> Answer:
    """Return the answer of measured workloads, as `stripesim.scenarios.clusters.workload` imports them.

    Parameters
    ----------
    rows
        The workloads.
    refused
        Why files are left out, one sentence each.
    """
    warnings = list(refused)
    for row in rows:
        warnings += [line for line in row["warnings"] if line not in warnings]
    workloads = [
        {key: value for key, value in row.items() if key != "warnings"} for row in rows
    ]
    return Answer(
        document={"workloads": workloads, "warnings": warnings},
        warnings=warnings,
        shown=[line for row in rows for line in _lines(row)],
    )


def _lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was measured as a comment, then the table of the workload."""
    measured = row["measured"]
    line = f"# {row.get('file', row['job'])}: {row['op']}, measured {measured['iops']:.0f} requests/s"
    for name in ("mean", "p99"):
        latency_ns = measured[f"latency_{name}_ns"]
        if latency_ns is not None:
            line += f", {name} {latency_ns / 1e6:.3f} ms"
    yield line
    yield "[workload]"
    for key, value in row["workload"].items():
        yield f"{key} = {value!r}".replace("'", '"')
