"""What a run says in sentences, for the terminal and the report: whether it kept up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stripesim.scenarios.run.columns import number_text


def subject(row: Mapping[str, Any]) -> str:
    """Name a row in a sentence: its scheme and, of several workloads, which."""
    workload = row.get("workload")
    return str(row["scheme"]) if workload is None else f"{row['scheme']}, {workload}"


def load_sentences(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Say of each open loop that the cluster did not keep up with how much it served.

    Examples
    --------
    >>> load_sentences([{"scheme": "rep:3", "saturated": True, "iops": 41000.0, "offered_iops": 60000.0}])
    ['rep:3: saturated: serves 41,000 of 60,000 requests a second']
    """
    return [
        f"{subject(row)}: saturated: serves {number_text(row['iops'])} of {number_text(row['offered_iops'])} "
        "requests a second"
        for row in rows
        if row.get("saturated")
    ]
