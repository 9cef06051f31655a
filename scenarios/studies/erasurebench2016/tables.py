"""Tables of the report: storage, encoders beside kernels of today, decoders against the published LRC."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stripesim.scenarios.figures.captions import three_digits
from stripesim.scenarios.studies.erasurebench2016.codes import codes, explanations
from stripesim.scenarios.studies.erasurebench2016.runs import CODES
from stripesim.scenarios.studies.erasurebench2016.sequences import ARCHIVES, MEGABYTE
from stripesim.scenarios.studies.erasurebench2016.source import claims, series

Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def tables(rows: pl.DataFrame) -> dict[str, Table]:
    """Heading → columns and rows of text."""
    return {
        "Table II: encoders then, kernels now": encoder_table(rows),
        "Which decoder would explain the published LRC of Figure 4": decoder_table(rows),
    }


def encoder_table(rows: pl.DataFrame) -> Table:
    """Encode rates of the source beside those of the kernels measured on a machine of today [MB/s]."""
    published = {(c.scheme, c.block_size): c.published for c in claims() if c.metric == "encode_throughput"}
    measured = rows.filter((pl.col("experiment") == "kernels") & (pl.col("op") == "encode"))
    lines = []
    for code in CODES:
        for size in (4, 16, 64):
            here = measured.filter(
                (pl.col("code") == code) & (pl.col("block_size_bytes") == size * MEGABYTE)
            ).sort("throughput_bytes_per_s", descending=True)
            kernels = ", ".join(
                f"{row['backend']} {row['throughput_bytes_per_s'] / MEGABYTE:,.0f}"
                for row in here.iter_rows(named=True)
            )
            lines.append((code, f"{size} MB", f"{published[code, f'{size}MB']}", kernels or "–"))
    return ("code", "data", "source, Java [MB/s]", "measured here [MB/s]"), lines


def decoder_distances(rows: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Largest distance of each decoder's simulated curve from the published LRC, by archive.

    Notes
    -----
    Over the points that the source plots, from 1 % of the nodes killed on.
    """
    mine = rows.filter(pl.col("experiment") == "availability")
    outcome = series().filter((pl.col("figure") == 4) & (pl.col("code") == "LRC"))
    found: dict[str, dict[str, float]] = {}
    for name in ("LRC", *explanations()):
        found[name] = {}
        for archive in ARCHIVES:
            here = mine.filter((pl.col("code") == name) & (pl.col("archive") == archive))
            simulated = dict(zip(here["killed_fraction"].round(2), here["available"], strict=True))
            points = outcome.filter(pl.col("series") == archive)
            found[name][archive] = max(
                abs(simulated[round(x, 2)] - y) for x, y in zip(points["x"], points["y"], strict=True)
            )
    return found


def decoder_table(rows: pl.DataFrame) -> Table:
    """Distances of `decoder_distances`, and how many losses each decoder survives."""
    lines = []
    for name, distances in decoder_distances(rows).items():
        code = codes().get(name) or explanations()[name]
        survived = ", ".join(str(count) for count in code.decodable[2:7])
        words = "any decodable pattern (ours)" if name == "LRC" else name
        lines.append((words, survived, *(three_digits(distances[archive]) for archive in ARCHIVES)))
    heads = [f"largest distance, {archive}" for archive in ARCHIVES]
    return ("decoder", "sets of 2 … 6 losses survived", *heads), lines
