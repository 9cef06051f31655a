"""Write, read, check and merge kernel tables as JSON documents."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from types import NoneType
from typing import Any, Final

from stripesim.models.documents import json_lines
from stripesim.models.kernel.cost import AffineKnee, KernelCost, KernelModel, Op
from stripesim.models.problems import KernelError, file_reason, problems_at

FORMAT = "stripesim-kernel-table-1"

#: Types of fields of costs and fits → the JSON types that their values may have, the usual one first.
_JSON_TYPES: Final[dict[Any, tuple[type, ...]]] = {
    str: (str,),
    Op: (str,),
    int: (int,),
    float: (float, int),
    AffineKnee: (dict,),
    AffineKnee | None: (dict, NoneType),
}
_FIT: Final = {field.name: _JSON_TYPES[field.type] for field in fields(AffineKnee)}
_COST: Final = {field.name: _JSON_TYPES[field.type] for field in fields(KernelCost)}


def table_to_json(table: KernelModel) -> str:
    """Return the table as a JSON document, with an infinite knee as null."""
    head = {"format": FORMAT, "name": table.name, "provenance": dict(table.provenance)}
    costs = (_finite(asdict(cost)) for cost in table.costs)
    return "".join(json_lines(head, "costs", costs))


def parse_table(text: str, *, where: str = "kernel table") -> KernelModel:
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
        name, provenance, costs = _values(
            document, {"name": (str,), "provenance": (dict,), "costs": (list,)}
        )
        return KernelModel(name, provenance, tuple(map(_cost, costs)))
    except KernelError as error:
        raise KernelError(*problems_at(where, error)) from None


def load_table(path: Path) -> KernelModel:
    """Read a table from a file.

    Raises
    ------
    KernelError
        If the file cannot be read or is not a kernel table.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KernelError(f"{path}: cannot read: {file_reason(error)}") from None
    return parse_table(text, where=str(path))


def merge_tables(name: str, tables: Iterable[KernelModel]) -> KernelModel:
    """Merge at least one table. Earlier costs win, and later provenance is kept under ``merged``."""
    ordered = list(tables)
    costs: dict[tuple[str, str, str, int], KernelCost] = {}
    for table in ordered:
        for cost in table.costs:
            costs.setdefault((cost.backend, cost.scheme, cost.op, cost.erasures), cost)
    provenance = dict(ordered[0].provenance)
    if len(ordered) > 1:
        provenance["merged"] = [dict(table.provenance) for table in ordered[1:]]
    return KernelModel(name, provenance, tuple(costs.values()))


def _finite(raw: dict[str, Any]) -> dict[str, Any]:
    for part in ("total", "copy", "net"):
        if raw[part] is not None and math.isinf(raw[part]["knee_bytes"]):
            raw[part]["knee_bytes"] = None
    return raw


def _cost(raw: Any) -> KernelCost:
    """Build a cost from its JSON form, in which two fits and all knees are optional."""
    if isinstance(raw, dict):
        raw = {"copy": None, "net": None, **raw}
    values: Iterator[Any] = (
        _fit(value) if type(value) is dict else value for value in _values(raw, _COST)
    )
    return KernelCost(*values)


def _fit(raw: dict[str, Any]) -> AffineKnee:
    if raw.get("knee_bytes") is None:
        raw = {**raw, "knee_bytes": math.inf}
    return AffineKnee(*_values(raw, _FIT))


def _values(raw: Any, kinds: Mapping[str, tuple[type, ...]]) -> list[Any]:
    """Return the values of a JSON object's fields, of the types that each may have."""
    values = []
    for key, accepted in kinds.items():
        if not isinstance(raw, dict) or key not in raw:
            raise KernelError(f"{key}: missing")
        value = raw[key]
        if type(value) not in accepted:
            wanted = accepted[0].__name__
            raise KernelError(f"{key}: got {value!r}, wanted {wanted}")
        values.append(value)
    return values
