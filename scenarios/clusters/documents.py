"""Recognise files with output of Ceph commands, and combine their parts."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from stripesim.models.problems import MeasuredError, Problem, file_reason
from stripesim.scenarios.clusters.report_schema import (
    CephDf,
    CephReport,
    CephStatus,
    CrushDump,
    IoRate,
    OsdDf,
    OsdMapDump,
    OsdMetadata,
    OsdSums,
    OsdUse,
    PgDump,
    PgRow,
    PgsOfOsd,
    PgState,
    PoolCounters,
    PoolDf,
    PoolStats,
    checked,
    checked_rows,
    printable,
)

# A report of a cluster with 10,000 OSDs has some 100 MB.
_BYTES_MAX: Final = 1 << 30
_KIB: Final = 1024
_LISTED: Final = 6


@dataclass(frozen=True)
class MeasuredRate:
    """Client operations per second, and the command that measured them."""

    read_per_s: float
    write_per_s: float
    command: str


@dataclass
class Documents:
    """The state of a cluster, from a report or from the outputs of several commands."""

    files: list[str] = field(default_factory=list)
    version: str = ""
    osd_map: OsdMapDump | None = None
    osd_map_file: str = ""
    crush: CrushDump | None = None
    crush_file: str = ""
    metadata: dict[int, OsdMetadata] = field(default_factory=dict)
    fsid: str = ""  # of the cluster, empty if no file has it
    osd_use: dict[int, OsdUse] = field(default_factory=dict)
    class_sums: dict[str, OsdSums] = field(default_factory=dict)
    cluster_sum: OsdSums | None = None
    pool_counters: dict[int, PoolCounters] = field(default_factory=dict)
    all_pools: PoolCounters = field(default_factory=PoolCounters)
    pool_keys_bytes: dict[int, int] = field(default_factory=dict)  # by `ceph df detail`
    pool_allocated_bytes: dict[int, int] = field(default_factory=dict)
    pool_rates: dict[int, MeasuredRate] = field(default_factory=dict)
    cluster_rate: MeasuredRate | None = None
    pg_counts: list[PgsOfOsd] | None = (
        None  # groups of each OSD as counted by the cluster
    )
    pg_rows: list[PgRow] = field(default_factory=list)
    pg_states: list[PgState] = field(default_factory=list)


def load_documents(paths: Iterable[Path]) -> Documents:
    """Read files. A `MeasuredError` lists the problems of all of them."""
    documents = Documents()
    problems: list[Problem] = []
    for path in paths:
        try:
            _add(documents, str(path), _decode(path))
        except MeasuredError as problem:
            problems += problem.problems
    if problems:
        raise MeasuredError(*problems)
    return documents


def _decode(path: Path) -> Any:
    """Decode a JSON document, ignoring the lines that ceph prints around it (``report 3484926453``)."""
    text = _text_of(path)
    start = re.search(r"^\s*[\[{]", text, re.MULTILINE)
    if start is None:
        content = "an empty file"
        if text.strip():
            content = f"text that begins {text.strip()[:40]!r}"
        raise MeasuredError(
            f"{path}: got {content}, wanted JSON (add `-f json` to the ceph command)"
        )
    try:
        document, end = json.JSONDecoder().raw_decode(text, start.end() - 1)
    except json.JSONDecodeError as error:
        content = f"broken JSON ({error.msg})"
        if not text[error.pos :].strip() or "Unterminated" in error.msg:
            content = "JSON that ends too early (a truncated file)"
        raise MeasuredError(
            f"{path}:{error.lineno}: got {content}, wanted a whole document"
        ) from None
    except RecursionError:
        raise MeasuredError(
            f"{path}: got JSON nested too deeply, wanted the output of ceph"
        ) from None
    except ValueError:
        # Python does not convert integers of more than 4,300 digits.
        raise MeasuredError(
            f"{path}: got a number of thousands of digits, wanted the output of ceph"
        ) from None
    rest = text[end:].strip()
    # Ceph names its output on the terminal (`report 3484926453`, `dumped all`).
    if rest and not re.fullmatch(r"(\w[\w ]{0,60}\n?){1,3}", rest):
        line = text.count("\n", 0, end) + 1
        raise MeasuredError(
            f"{path}:{line}: got {rest[:40]!r} after the document, wanted its end"
        )
    return document


def _text_of(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > _BYTES_MAX:
            raise MeasuredError(
                f"{path}: got {size:,} bytes, wanted at most {_BYTES_MAX:,}"
            )
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise MeasuredError(
            f"{path}: got {file_reason(error)}, wanted a readable file"
        ) from None
    except UnicodeDecodeError:
        raise MeasuredError(
            f"{path}: got a binary file, wanted JSON (ceph … -f json)"
        ) from None


def _add(documents: Documents, file: str, document: Any) -> None:
    """Check a document and add its parts."""
    documents.files.append(file)
    if isinstance(document, dict):
        if "pgmap" in document and "crushmap" not in document:
            # Its `osdmap` contains only counts.
            _add_status(documents, file, document)
            return
        for keys, add in _OBJECTS:
            if keys & document.keys():
                add(documents, file, document)
                return
    if isinstance(document, list):
        first = next((row for row in document if isinstance(row, dict)), {})
        for key, add_rows in _LISTS:
            if key in first:
                add_rows(documents, file, document)
                return
    held = f"a {type(document).__name__}"
    if isinstance(document, dict):
        held = printable(", ".join(list(document)[:_LISTED])) or "nothing in it"
    raise MeasuredError(
        f"{file}: got a document with {held}, wanted the JSON of ceph report, osd dump, osd crush dump, "
        "osd metadata, osd df, osd tree, pg dump, osd pool stats, df or status"
    )


def _add_report(documents: Documents, file: str, document: Mapping[str, Any]) -> None:
    report = checked(CephReport, document, file)
    if report.osdmap is not None:
        _check_cluster(documents, f"{file}: osdmap.fsid", report.osdmap.fsid)
    documents.version = report.version
    documents.osd_map = report.osdmap
    documents.osd_map_file = file
    documents.crush = report.crushmap
    documents.crush_file = file
    _add_metadata_rows(documents, file, report.osd_metadata, "osd_metadata")
    _add_use(documents, report.osd_stats)
    documents.class_sums = dict(report.osd_sum_by_class)
    documents.cluster_sum = report.osd_sum
    _add_pool_stats(documents, report.pool_stats)
    documents.all_pools = report.pool_sum.stat_sum or PoolCounters()
    documents.pg_counts = report.num_pg_by_osd
    documents.pg_states = report.num_pg_by_state
    if report.pgmap is not None:
        _add_pgs(documents, report.pgmap)


def _check_cluster(documents: Documents, key: str, fsid: str) -> None:
    """Refuse a file of another cluster than the files before."""
    if fsid and documents.fsid and fsid != documents.fsid:
        wanted = f"{documents.fsid!r}, as in the other files: files of one cluster"
        raise MeasuredError(f"{key}: got {fsid!r}, wanted {wanted}")
    documents.fsid = fsid or documents.fsid


def _add_crush(documents: Documents, file: str, document: Mapping[str, Any]) -> None:
    documents.crush = checked(CrushDump, document, file)
    documents.crush_file = file


def _add_osd_map(documents: Documents, file: str, document: Mapping[str, Any]) -> None:
    osd_map = checked(OsdMapDump, document, file)
    _check_cluster(documents, f"{file}: fsid", osd_map.fsid)
    documents.osd_map = osd_map
    documents.osd_map_file = file


def _add_pg_dump(documents: Documents, file: str, document: Mapping[str, Any]) -> None:
    key = "pg_map" if "pg_map" in document else ""
    _add_pgs(documents, checked(PgDump, document.get(key, document), file, key))


def _add_pgs(documents: Documents, dump: PgDump) -> None:
    documents.pg_rows = dump.pg_stats
    if dump.num_pg_by_osd is not None:
        documents.pg_counts = dump.num_pg_by_osd
    _add_pool_stats(documents, dump.pool_stats)
    _add_use(documents, dump.osd_stats)
    delta = dump.pg_stats_delta
    if delta is None or delta.stamp_delta <= 0:
        return
    done = delta.stat_sum
    documents.cluster_rate = MeasuredRate(
        max(0, done.num_read) / delta.stamp_delta,
        max(0, done.num_write) / delta.stamp_delta,
        "pg dump",
    )


def _add_df(documents: Documents, file: str, document: Mapping[str, Any]) -> None:
    df = checked(OsdDf, document, file)
    _add_use(documents, [*df.nodes, *df.stray])


def _add_status(documents: Documents, file: str, document: Mapping[str, Any]) -> None:
    status = checked(CephStatus, document, file)
    _check_cluster(documents, f"{file}: fsid", status.fsid)
    documents.cluster_rate = _measured(status.pgmap, "status")


def _add_ceph_df(documents: Documents, file: str, document: Mapping[str, Any]) -> None:
    df = checked(CephDf, document, file)
    for name, total in df.stats_by_class.items():
        documents.class_sums[name] = OsdSums(
            kb=total.total_bytes // _KIB,
            kb_used=total.total_used_raw_bytes // _KIB,
            kb_avail=total.total_avail_bytes // _KIB,
        )
    for row in df.pools:
        documents.pool_keys_bytes[row.id] = row.stats.stored_omap
    rows = [PoolStats(poolid=row.id, stat_sum=_counters(row.stats)) for row in df.pools]
    _add_pool_stats(documents, rows)


def _counters(df: PoolDf) -> PoolCounters:
    """Convert the counters of `ceph df detail` to those of a report."""
    data_bytes = df.stored
    if data_bytes is not None:
        data_bytes = max(0, data_bytes - df.stored_omap)
    return PoolCounters(
        num_bytes=data_bytes,
        num_omap_bytes=df.stored_omap,
        num_objects=df.objects,
        num_read=df.rd,
        num_read_kb=df.rd_bytes // _KIB,
        num_write=df.wr,
        num_write_kb=df.wr_bytes // _KIB,
    )


def _add_metadata(documents: Documents, file: str, rows: list[Any]) -> None:
    _add_metadata_rows(documents, file, checked_rows(OsdMetadata, rows, file), "")


def _add_metadata_rows(
    documents: Documents, file: str, rows: Iterable[OsdMetadata], key: str
) -> None:
    """Add metadata of OSDs. The first file with an OSD takes precedence."""
    seen = set()
    for number, row in enumerate(rows):
        if row.id in seen:
            path = ".".join(filter(None, (key, str(number), "id")))
            raise MeasuredError(
                f"{file}: {path}: got {row.id} twice, wanted each OSD once"
            )
        seen.add(row.id)
        documents.metadata.setdefault(row.id, row)


def _add_pg_rows(documents: Documents, file: str, rows: list[Any]) -> None:
    documents.pg_rows = checked_rows(PgRow, rows, file)


def _add_rates(documents: Documents, file: str, rows: list[Any]) -> None:
    _add_pool_stats(documents, checked_rows(PoolStats, rows, file))


def _add_pool_stats(documents: Documents, rows: Iterable[PoolStats]) -> None:
    """Add counters and rates of pools. The first file with a pool takes precedence."""
    for row in rows:
        if row.stat_sum is not None:
            documents.pool_counters.setdefault(row.poolid, row.stat_sum)
        if row.store_stats is not None:
            allocated_bytes = row.store_stats.allocated
            documents.pool_allocated_bytes.setdefault(row.poolid, allocated_bytes)
        if row.client_io_rate is not None:
            documents.pool_rates[row.poolid] = _measured(
                row.client_io_rate, "osd pool stats"
            )


def _measured(rate: IoRate, command: str) -> MeasuredRate:
    return MeasuredRate(rate.read_op_per_sec, rate.write_op_per_sec, command)


def _add_use(documents: Documents, rows: Iterable[OsdUse]) -> None:
    """Add sizes of OSDs, skipping OSDs without a size."""
    for row in rows:
        if row.type == "osd" and row.osd >= 0 and row.kb is not None:
            documents.osd_use.setdefault(row.osd, row)


# Keys that identify the kind of a document. The first matching kind counts.
_OBJECTS: Final[
    tuple[tuple[set[str], Callable[[Documents, str, Mapping[str, Any]], None]], ...]
] = (
    ({"osdmap", "crushmap"}, _add_report),
    ({"buckets"}, _add_crush),
    ({"osds"}, _add_osd_map),
    ({"pg_stats", "pg_map"}, _add_pg_dump),
    ({"nodes"}, _add_df),
    ({"pools"}, _add_ceph_df),
)
_LISTS: Final[tuple[tuple[str, Callable[[Documents, str, list[Any]], None]], ...]] = (
    # Lists of upmaps have a pgid, too.
    ("acting", _add_pg_rows),
    ("client_io_rate", _add_rates),
    ("id", _add_metadata),
)
