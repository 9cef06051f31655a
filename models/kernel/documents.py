"""Write, read, check and merge kernel tables as JSON documents."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from stripesim.models.documents import json_lines
from stripesim.models.kernel.cost import AffineKnee, KernelCost, KernelTable
from stripesim.models.problems import KernelError, problems_at

FORMAT = "stripesim-kernel-table-1"

_NAMES_OF_PARTS = tuple(field.name for field in fields(AffineKnee))


def table_to_json(table: KernelTable) -> str:
    """Return the table as a JSON document, with an infinite knee as null."""
    head = {"format": FORMAT, "name": table.name, "provenance": dict(table.provenance)}
    costs = (_finite(asdict(cost)) for cost in table.costs)
    return "".join(json_lines(head, "costs", costs))


def parse_table(text: str, *, where: str = "kernel table") -> KernelTable:
    """Parse a table written by `table_to_json`.

    Parameters
    ----------
    text
        JSON document.
    where
        Name of the document for error messages.

    Raises
    ------
    KernelError
        If the document is not a kernel table. The message names `where` and the problem.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise KernelError(f"{where}:{error.lineno}: not JSON: {error.msg}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        if isinstance(document, dict):
            got = document.get("format")
        else:
            got = type(document).__name__
        raise KernelError(f"{where}: format: got {got!r}, wanted {FORMAT!r}")
    try:
        costs = tuple(_cost(raw) for raw in _typed(document, "costs", list))
        return KernelTable(
            _typed(document, "name", str), _typed(document, "provenance", dict), costs
        )
    except KernelError as error:
        raise KernelError(*problems_at(where, error)) from None


def load_table(path: Path) -> KernelTable:
    """Read a table from a file.

    Raises
    ------
    KernelError
        If the file cannot be read or is not a kernel table.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KernelError(f"{path}: cannot read: {error}") from None
    return parse_table(text, where=str(path))


def merge_tables(name: str, tables: Iterable[KernelTable]) -> KernelTable:
    """Merge at least one table. Earlier costs win, and later provenance is kept under ``merged``."""
    ordered = list(tables)
    costs: dict[tuple[str, str, str, int], KernelCost] = {}
    for table in ordered:
        for cost in table.costs:
            costs.setdefault((cost.backend, cost.scheme, cost.op, cost.erasures), cost)
    provenance = dict(ordered[0].provenance)
    if len(ordered) > 1:
        provenance["merged"] = [dict(table.provenance) for table in ordered[1:]]
    return KernelTable(name, provenance, tuple(costs.values()))


def _finite(raw: dict[str, Any]) -> dict[str, Any]:
    for part in ("total", "copy", "net"):
        if raw[part] is not None and math.isinf(raw[part]["knee_bytes"]):
            raw[part]["knee_bytes"] = None
    return raw


def _typed(raw: Any, key: str, kind: type) -> Any:
    """Return a value of the expected type, accepting an int for a float."""
    if not isinstance(raw, dict) or key not in raw:
        raise KernelError(f"{key}: missing")
    value = raw[key]
    accepted = (int, float) if kind is float else (kind,)
    if not isinstance(value, accepted) or isinstance(value, bool):
        raise KernelError(f"{key}: got {value!r}, wanted {kind.__name__}")
    return value


def _cost(raw: Any) -> KernelCost:
    """Build a cost from its JSON form, in which knees are optional."""
    values: dict[str, Any] = {}
    for name, kind in _kinds_of_cost().items():
        if kind in (str, int, float):
            values[name] = _typed(raw, name, kind)
        elif name == "op":
            values[name] = _typed(raw, name, str)
        elif name == "total" or raw.get(name) is not None:
            part = {k: v for k, v in _typed(raw, name, dict).items() if v is not None}
            knee = {"knee_bytes": math.inf} | part
            values[name] = AffineKnee(
                **{
                    name_of_part: _typed(knee, name_of_part, float)
                    for name_of_part in _NAMES_OF_PARTS
                }
            )
        else:
            values[name] = None
    return KernelCost(**values)


@cache
def _kinds_of_cost() -> dict[str, Any]:
    """Return the type of each field of a cost. A table has hundreds of costs."""
    return get_type_hints(KernelCost)
