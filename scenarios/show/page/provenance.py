"""Show the provenance of an answer on its page: what it was made from, and every parameter."""

from collections.abc import Mapping, Sequence
from typing import Any

from stripesim.models.documents import json_text
from stripesim.scenarios.show.tables import Table


def pretty(value: Mapping[str, Any]) -> str:
    """Return indented JSON."""
    return json_text(dict(value)).rstrip()


def provenance_text(source: Mapping[str, Any]) -> str:
    """Return the provenance of a run as indented JSON, without its scenario."""
    return pretty({k: v for k, v in source.items() if k != "configuration"})


def parameter_table(parameters: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of parameters with their provenance."""
    rows = []
    for row in parameters:
        value = row["value"]
        interval = row.get("confidence_interval") or ()
        written = f"{value:.6g}" if isinstance(value, float) else str(value)
        ends = " … ".join(f"{end:.4g}" for end in interval) or "–"
        kind = (str(row[key]) for key in ("unit", "provenance"))
        rows.append(
            (str(row["name"]), written, *kind, ends, str(row.get("source", "")))
        )
    columns = ("name", "value", "unit", "provenance", "95 % interval", "source")
    return Table("Parameters", columns, rows, form="stack", numeric=False)
