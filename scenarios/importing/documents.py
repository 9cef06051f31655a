"""Files that Ceph's commands printed: which kind each is, and the parts that they make together."""

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
    """The parts of a cluster's state, from one report or from several outputs of ``ceph``."""

    sources: list[str] = field(default_factory=list)  # files read
    osd_map: Json | None = None  # as in osd dump
    crush: Json | None = None  # as in osd crush dump
    metadata: Sequence[Json] = ()  # as in osd metadata
    pg_counts: Sequence[Json] | None = None  # groups of each OSD as the cluster counts them (num_pg_by_osd)
    pg_stats: Sequence[Json] = ()  # single groups, as in pg dump
    osd_stats: Sequence[Json] = ()  # sizes and use of OSDs: osd df or pg dump
    pool_stats: Sequence[Json] = ()  # bytes and objects of pools
    head: Json = field(default_factory=dict)  # the rest of a report: version, totals, health


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
    where = str(path)
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise ClusterImportError(f"{path}: got {path.stat().st_size} bytes, wanted at most {_BYTES_MAX}")
        text = path.read_text(encoding="utf-8-sig")
        start = re.search(r"^\s*[\[{]", text, re.MULTILINE)
        if start is None:
            got = "an empty file" if not text.strip() else f"text that begins {text.strip()[:40]!r}"
            raise ClusterImportError(f"{path}: got {got}, wanted JSON (add `-f json` to the ceph command)")
        document, end = json.JSONDecoder().raw_decode(text, start.end() - 1)
        rest = text[end:].strip()
        # Ceph says on the terminal what it printed (`report 3484926453`, `dumped all`).
        if not rest or re.fullmatch(r"(\w[\w ]{0,60}\n?){1,3}", rest):
            return document
        where += f":{text.count(chr(10), 0, end) + 1}"
        got, wanted = f"{rest[:40]!r} after the document", "its end"
    except OSError as error:
        got, wanted = f"{error.strerror}", "a readable file"
    except UnicodeDecodeError:
        got, wanted = "a binary file", "JSON (ceph … -f json)"
    except json.JSONDecodeError as error:
        cut = not text[error.pos :].strip() or "Unterminated" in error.msg
        got = "JSON that ends too early (a truncated file)" if cut else f"broken JSON ({error.msg})"
        where, wanted = f"{path}:{error.lineno}", "a whole document"
    except RecursionError:
        got, wanted = "JSON nested too deeply", "what ceph prints"
    raise ClusterImportError(f"{where}: got {got}, wanted {wanted}")


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
    else:
        return False
    return True


def _object(value: Any, otherwise: Any = None) -> Any:
    return value if isinstance(value, dict) else otherwise


def _rows(value: Any) -> list[dict[str, Any]]:
    """Objects of a list; anything else is nothing."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
