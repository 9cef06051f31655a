"""Values written as TOML, for what the program itself hands to the loader or to a user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def toml_value(value: Any) -> str:
    """Write a value as TOML does inside a line; what is None in a table is left out.

    >>> toml_value({"hosts": 8, "ssd": "nvme-tlc", "ratios": [0.5, None]})
    '{"hosts" = 8, "ssd" = "nvme-tlc", "ratios" = [0.5]}'
    """
    if isinstance(value, Mapping):
        parts = (f"{json.dumps(str(key))} = {toml_value(v)}" for key, v in value.items() if v is not None)
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(part) for part in value if part is not None)}]"
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)


def toml_document(values: Mapping[str, Any]) -> str:
    """Write a document: plain keys first, then a table each; what is None or an empty list is left out."""
    shown = {key: value for key, value in values.items() if value not in (None, [])}
    tables = {key: value for key, value in shown.items() if isinstance(value, Mapping)}
    lines = [f"{key} = {toml_value(value)}" for key, value in shown.items() if key not in tables]
    for name, table in tables.items():
        lines += ["", f"[{name}]"]
        lines += [f"{key} = {toml_value(value)}" for key, value in table.items() if value not in (None, [])]
    return "\n".join(lines) + "\n"
