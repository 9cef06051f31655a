"""Where and when a result came about: part of every provenance."""

from __future__ import annotations

import datetime
import platform


def where_and_when() -> dict[str, str]:
    """Tell Python's version, the machine's architecture and the moment, in UTC."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
