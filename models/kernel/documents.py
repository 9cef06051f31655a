"""Write, read, check and merge kernel tables as JSON documents."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, get_type_hints

from stripesim.models.documents import json_lines
from stripesim.models.kernel.cost import AffineKnee, KernelCost, KernelModel
from stripesim.models.problems import KernelError, problems_at

FORMAT = "stripesim-kernel-table-1"

_FIELDS_OF_FIT: Final = tuple(field.name for field in fields(AffineKnee))
_OPTIONAL_FITS: Final = ("copy", "net")
#: Fields of a cost that are no fits, with their types.
_PLAIN_FIELDS: Final = {
    name: str if name == "op" else kind
    for name, kind in get_type_hints(KernelCost).items()
    if name not in ("total", *_OPTIONAL_FITS)
}


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
        costs = tuple(_cost(raw) for raw in _typed(document, "costs", list))
        return KernelModel(
            _typed(document, "name", str), _typed(document, "provenance", dict), costs
        )
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
        raise KernelError(f"{path}: cannot read: {error}") from None
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
    values = {name: _typed(raw, name, kind) for name, kind in _PLAIN_FIELDS.items()}
    values["total"] = _affine(raw, "total")
    for name in _OPTIONAL_FITS:
        values[name] = None if raw.get(name) is None else _affine(raw, name)
    return KernelCost(**values)


def _affine(raw: Any, name: str) -> AffineKnee:
    part = _typed(raw, name, dict)
    if part.get("knee_bytes") is None:
        part = {**part, "knee_bytes": math.inf}
    return AffineKnee(*(_typed(part, field, float) for field in _FIELDS_OF_FIT))
