"""Files that Ceph's commands printed: which kind each is, and the parts that they make together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]

# A cluster of 10,000 OSDs prints a report of some 100 MB.
_BYTES_MAX = 1 << 30


class ClusterImportError(ValueError):
    """A file that cannot be imported; one line a problem, ``file: key: got …, wanted …``."""


@dataclass
class Documents:
    """The parts of a cluster's state, from one report or from several outputs.

    sources: files read; osd_map, crush: as in ``ceph osd dump`` and ``ceph osd crush dump``; metadata: as in
    ``ceph osd metadata``; pg_counts: groups of each OSD as the cluster counts them: ``num_pg_by_osd`` of a
    report; pg_stats: single groups, as in ``ceph pg dump``; osd_stats: sizes and use of OSDs: ``ceph osd df``
    or ``ceph pg dump``; pool_stats: bytes and objects of pools; nodes: as in ``ceph osd tree``; head: the
    rest of a report: version, totals, health.
    """

    sources: list[str] = field(default_factory=list)
    osd_map: Json | None = None
    crush: Json | None = None
    metadata: Sequence[Json] = ()
    pg_counts: Sequence[Json] | None = None
    pg_stats: Sequence[Json] = ()
    osd_stats: Sequence[Json] = ()
    pool_stats: Sequence[Json] = ()
    nodes: Sequence[Json] = ()
    head: Json = field(default_factory=dict)


def load_documents(paths: Iterable[Path]) -> Documents:
    """Read files and sort their parts by kind."""
    documents = Documents()
    problems = []
    for path in paths:
        try:
            _add(documents, path, _decode(path))
        except ClusterImportError as problem:
            problems.append(str(problem))
    if problems:
        raise ClusterImportError("\n".join(problems))
    return documents


def _decode(path: Path) -> Any:
    """Decode a JSON document, past the lines that ceph prints before and after it (``report 3484926453``)."""
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise ClusterImportError(f"{path}: got {path.stat().st_size} bytes, wanted at most {_BYTES_MAX}")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ClusterImportError(f"{path}: got {error.strerror}, wanted a readable file") from None
    except UnicodeDecodeError:
        raise ClusterImportError(f"{path}: got a binary file, wanted JSON (ceph … -f json)") from None
    start = re.search(r"^\s*[\[{]", text, re.MULTILINE)
    if start is None:
        got = "an empty file" if not text.strip() else f"text that begins {text.strip()[:40]!r}"
        raise ClusterImportError(f"{path}: got {got}, wanted JSON (add `-f json` to the ceph command)")
    try:
        document, end = json.JSONDecoder().raw_decode(text, start.end() - 1)
    except json.JSONDecodeError as error:
        cut = not text[error.pos :].strip() or "Unterminated" in error.msg
        got = "JSON that ends too early (a truncated file)" if cut else f"broken JSON ({error.msg})"
        raise ClusterImportError(f"{path}:{error.lineno}: got {got}, wanted a whole document") from None
    except RecursionError:
        raise ClusterImportError(f"{path}: got JSON nested too deeply, wanted what ceph prints") from None
    rest = text[end:].strip()
    # Ceph says on the terminal what it printed (`report 3484926453`, `dumped all`).
    if rest and not re.fullmatch(r"(\w[\w ]{0,60}\n?){1,3}", rest):
        line = text.count("\n", 0, end) + 1
        raise ClusterImportError(f"{path}:{line}: got {rest[:40]!r} after the document, wanted its end")
    return document


def _add(documents: Documents, path: Path, document: Any) -> None:
    """Put a document's parts in their places."""
    documents.sources.append(str(path))
    if isinstance(document, list):
        if document and all(isinstance(row, dict) and "id" in row for row in document):
            documents.metadata = document
            return
    elif isinstance(document, dict) and _add_object(documents, document):
        return
    keys = ", ".join(list(document)[:6]) if isinstance(document, dict) else f"a {type(document).__name__}"
    raise ClusterImportError(
        f"{path}: got a document with {keys or 'nothing in it'}, wanted the JSON of ceph report, osd dump, "
        "osd crush dump, osd metadata, osd df, osd tree or pg dump"
    )


def _add_object(documents: Documents, document: dict[str, Any]) -> bool:
    if "osdmap" in document or "crushmap" in document:
        documents.head = document
        documents.osd_map = _object(document.get("osdmap"))
        documents.crush = _object(document.get("crushmap"))
        documents.metadata = _rows(document.get("osd_metadata"))
        counts = document.get("num_pg_by_osd", _object(document.get("pgmap"), {}).get("num_pg_by_osd"))
        documents.pg_counts = None if counts is None else _rows(counts)
        documents.pool_stats = _rows(document.get("pool_stats"))
        documents.osd_stats = [row for row in _rows(document.get("osd_stats")) if "kb" in row]
        documents.pg_stats = _rows(_object(document.get("pgmap"), {}).get("pg_stats"))
    elif "buckets" in document and "rules" in document:
        documents.crush = document
    elif "pools" in document and "osds" in document:
        documents.osd_map = document
    elif "pg_stats" in document or "pg_map" in document:
        pg_map = _object(document.get("pg_map"), document)
        documents.pg_stats = _rows(pg_map.get("pg_stats"))
        documents.pool_stats = documents.pool_stats or _rows(pg_map.get("pool_stats"))
        documents.osd_stats = documents.osd_stats or _rows(pg_map.get("osd_stats"))
    elif "nodes" in document:
        rows = _rows(document["nodes"]) + _rows(document.get("stray"))
        if "summary" in document:
            documents.osd_stats = [row for row in rows if row.get("type", "osd") == "osd"]
        documents.nodes = documents.nodes or rows
    else:
        return False
    return True


def _object(value: Any, otherwise: Any = None) -> Any:
    return value if isinstance(value, dict) else otherwise


def _rows(value: Any) -> list[dict[str, Any]]:
    """Objects of a list; anything else is nothing."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
