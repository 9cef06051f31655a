"""Format a rehearsal as table rows."""

from collections.abc import Mapping
from typing import Any

from stripesim.scenarios.schema.units import bytes_text, duration_text, number_text


def table_of_changes(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a table row for each change of a rehearsal: what moves, for how long, and the fullest OSD."""
    return [_of_change(change) for change in document["changes"]]


def table_of_durations(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a table row for each change and profile whose duration has parts that are known."""
    return [
        _of_parts(change, profile)
        for change in document["changes"]
        for profile in change["profiles"]
        if profile.get("movement_s") is not None
    ]


def table_of_settings(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a table row for each change and profile of a rehearsal: duration and clients."""
    return [
        _of_profile(change, profile)
        for change in document["changes"]
        for profile in change["profiles"]
    ]


def _of_change(change: Mapping[str, Any]) -> dict[str, str]:
    cells = {
        "change": change["kind"],
        "PGs": f"{change['pgs_moved']:,}",
        "shards": f"{change['shards_moved']:,}",
        "moved": bytes_text(change["bytes_moved"]),
    }
    for name in ("device_read", "device_write", "private_net"):
        cells[name.replace("_", " ")] = bytes_text(change[f"{name}_bytes"])
    cells["time"] = _time_text(change)
    peak = change["peak_used_ratio"]
    cells["peak used"] = "–" if peak is None else f"{100 * peak:.1f} %"
    fullest = change["fullest_osd"]
    cells["fullest"] = "–" if fullest is None else f"osd.{fullest}"
    cells["ratio reached"] = change["full_ratio_reached"] or "none"
    return cells


def _of_parts(change: Mapping[str, Any], profile: Mapping[str, Any]) -> dict[str, str]:
    cells = {"change": change["kind"], "profile": profile["profile"]}
    for part in ("commands", "peering", "movement"):
        cells[part] = duration_text(profile[f"{part}_s"])
    cells["time"] = _time_text(profile)
    cells["interval"] = interval_text(profile)
    return cells


def _of_profile(
    change: Mapping[str, Any], profile: Mapping[str, Any]
) -> dict[str, str]:
    before = profile.get("before") or {}
    after = profile.get("after") or {}
    cells = {
        "change": change["kind"],
        "profile": profile["profile"],
        "time": _time_text(profile),
        "interval": interval_text(profile),
    }
    for name, values in (("before", before), ("during", profile), ("after", after)):
        cells[f"IOPS {name}"] = number_text(values.get("iops"))
    for name, values in (("before", before), ("during", profile), ("after", after)):
        cells[f"p99 {name} [ms]"] = number_text(values.get("latency_p99_ns"), 1e-6)
    return cells


def _time_text(values: Mapping[str, Any]) -> str:
    """Write a duration, or that it is unknown. A warning says why."""
    if values["duration_s"] is None:
        return "unknown"
    return duration_text(values["duration_s"])


def interval_text(values: Mapping[str, Any]) -> str:
    """Write the interval of a duration, with one end if the other is cut at 0 s, or a dash without one."""
    low_s = values.get("duration_low_s")
    high_s = values.get("duration_high_s")
    if low_s is None or high_s is None:
        return "–"
    if low_s <= 0:
        return f"up to {duration_text(high_s)}"
    return f"{duration_text(low_s)} to {duration_text(high_s)}"
