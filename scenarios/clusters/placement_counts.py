"""Count the placement groups of each OSD, and compare the counts with the cluster's."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from stripesim.models.placement import NONE, OsdMap, PgSets
from stripesim.scenarios.clusters.documents import Documents
from stripesim.scenarios.clusters.osd_map import parse_pg_id
from stripesim.scenarios.schema.units import first_text

#: For each OSD, the groups it acts for, and the groups it is the up primary of.
Counts = Mapping[int, tuple[int, int]]

_LISTED: Final = 8


def computed_counts(osd_map: OsdMap, sets: Mapping[int, PgSets]) -> Counts:
    """Count the groups of each OSD as ``num_pg_by_osd`` does: acting OSDs, but up primaries."""
    size = len(osd_map.exists)
    totals = np.zeros((2, size), dtype=np.int64)
    for pg_sets in sets.values():
        for row, osds in enumerate((pg_sets.acting, pg_sets.up_primary)):
            totals[row] += np.bincount(
                osds[(osds >= 0) & (osds < size)], minlength=size
            )
    known = np.flatnonzero(osd_map.exists | totals.any(axis=0))
    return {int(osd): (int(totals[0, osd]), int(totals[1, osd])) for osd in known}


def reported_counts(documents: Documents) -> Counts | None:
    """Return the groups of each OSD as counted by the cluster, or None if no file has them."""
    if documents.pg_counts is not None:
        return {
            row.osd: (row.num_acting_pg, row.num_primary_pg)
            for row in documents.pg_counts
            if 0 <= row.osd < NONE
        }
    if not documents.pg_rows:
        return None
    rows = [row for row in documents.pg_rows if parse_pg_id(row.pgid) is not None]
    acting = Counter(osd for row in rows for osd in row.acting)
    primary = Counter(row.up_primary for row in rows)
    return {
        osd: (acting[osd], primary[osd]) for osd in acting | primary if 0 <= osd < NONE
    }


def acting_warnings(sets: Mapping[int, PgSets], documents: Documents) -> list[str]:
    """List the groups that a file has on other OSDs than mapped, or that the OSD map lacks."""
    differing = []
    for row in documents.pg_rows:
        number = parse_pg_id(row.pgid)
        if number is None or not row.acting:
            continue
        pool, group = number
        ours: list[int] = []
        if pool in sets and group < len(sets[pool].acting):
            ours = sets[pool].acting[group].tolist()
        if _present(ours) != _present(row.acting):
            differing.append(row.pgid)
    if not differing:
        return []
    return [
        f"pg_stats: {len(differing)} of {len(documents.pg_rows)} placement groups act on other OSDs than "
        f"mapped: {first_text(differing, _LISTED)}. Their data are of another moment, or of another cluster"
    ]


def _present(osds: Iterable[int]) -> list[int]:
    return [osd for osd in osds if 0 <= osd < NONE]


def count_warnings(
    counts: Counts, reported: Counts | None, documents: Documents
) -> list[str]:
    """List the OSDs whose counts differ, with the states of groups that may explain it."""
    if reported is None:
        return [
            "num_pg_by_osd: missing: the placement groups of each OSD are computed but not compared"
        ]
    differing = []
    for osd in sorted({*counts, *reported}):
        ours = counts.get(osd, (0, 0))
        theirs = reported.get(osd, (0, 0))
        if ours != theirs:
            differing.append(
                f"osd.{osd} {ours[0]} and {ours[1]} primary, reported {theirs[0]} and {theirs[1]}"
            )
    if not differing:
        return []
    listed = first_text(differing, _LISTED)
    warning = f"num_pg_by_osd: {len(differing)} OSDs differ: {listed}"
    states = [
        f"{row.num} {row.state}"
        for row in documents.pg_states
        if row.state != "active+clean"
    ]
    if states:
        warning += (
            f", groups in states except active+clean: {', '.join(states[:_LISTED])}"
        )
    return [warning]
