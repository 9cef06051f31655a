"""Format a rehearsal as table rows."""

from collections.abc import Mapping
from typing import Any

from stripesim.scenarios.schema.units import bytes_text


def table_of_changes(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a table row for each change and profile of a rehearsal."""
    return [
        _cells(change, profile)
        for change in document["changes"]
        for profile in change["profiles"]
    ]


def _cells(change: Mapping[str, Any], profile: Mapping[str, Any]) -> dict[str, str]:
    cells = {
        "change": change["kind"],
        "PGs": f"{change['pgs_moved']:,}",
        "shards": f"{change['shards_moved']:,}",
        "moved": bytes_text(change["bytes_moved"]),
    }
    for name in ("device_read", "device_write", "private_net"):
        cells[name.replace("_", " ")] = bytes_text(change[f"{name}_bytes"])
    cells["time [s]"] = _number(profile["duration_s"], ".1f")
    cells["peak used"] = _number(change["peak_used_ratio"], ".1%")
    cells["ratio reached"] = change["full_ratio_reached"] or "none"
    cells["profile"] = profile["profile"]
    cells["IOPS"] = _number(profile.get("iops"), ",.0f")
    p99_ns = profile.get("latency_p99_ns")
    cells["p99 [ms]"] = "–" if p99_ns is None else f"{p99_ns / 1e6:.2f}"
    return cells


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"
