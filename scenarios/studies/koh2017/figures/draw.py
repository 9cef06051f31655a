"""The study's figures: 5 to 20 of the paper, its summary, and the ablations, each beside its claims."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from stripesim.calibration.ledger.verdicts import Entry
from stripesim.scenarios.figures.captions import Overlay, scheme_label, scheme_names
from stripesim.scenarios.figures.panels import LATENCY, THROUGHPUT, Panel
from stripesim.scenarios.figures.results import CaptionedFigure
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.studies.koh2017.cells import BARE, STORAGE
from stripesim.scenarios.studies.koh2017.claims import figures_asked
from stripesim.scenarios.studies.koh2017.figures.ablations import draw_ablations
from stripesim.scenarios.studies.koh2017.figures.claims import claims_caption
from stripesim.scenarios.studies.koh2017.figures.series import (
    draw_figure_19,
    draw_figure_20,
)
from stripesim.scenarios.studies.koh2017.figures.sheet import SheetPanel, draw_sheet
from stripesim.scenarios.studies.koh2017.figures.summary import draw_summary
from stripesim.scenarios.studies.koh2017.paper import FIGURES, PAPER_FIGURES
from stripesim.scenarios.studies.lookup import select

if TYPE_CHECKING:
    from stripesim.scenarios.studies.koh2017.study import KohResult

LATENCY_CI: Final = replace(LATENCY, ci=("latency_ci_low", "latency_ci_high"))
CPU: Final = Panel("cpu_utilisation", "CPU, all storage cores", "%", 100.0)
USER: Final = Panel("cpu_user", "of it in user mode", "%", 100.0)
SWITCHES: Final = Panel("switches_per_byte", "Context switches", "per client byte", 1.0)
READS: Final = Panel(
    "device_read_bytes_per_client_byte", "Device reads", "B per client byte", 1.0
)
WRITES: Final = Panel(
    "device_data_write_bytes_per_client_byte", "Device writes", "B per client byte", 1.0
)
PRIVATE: Final = Panel(
    "private_net_bytes_per_client_byte", "Private network", "B per client byte", 1.0
)
RATIO: Final = Panel(
    "random_over_sequential", "Random over sequential", "throughput ratio", 1.0
)

# Figure → its title and its panels: entry of FIGURES, quantity, words.
SHEETS: Final[dict[str, tuple[str, tuple[tuple[str, Panel, str], ...]]]] = {
    "5": ("Sequential writes", (("5", THROUGHPUT, ""), ("5", LATENCY_CI, ""))),
    "6": ("Sequential reads", (("6", THROUGHPUT, ""), ("6", LATENCY_CI, ""))),
    "7": (
        "Random writes, pristine image",
        (("7", THROUGHPUT, ""), ("7", LATENCY_CI, "")),
    ),
    "8": ("Random reads", (("8", THROUGHPUT, ""), ("8", LATENCY_CI, ""))),
    "9": (
        "CPU under writes",
        (("9a", CPU, "sequential"), ("9b", CPU, "random, pristine")),
    ),
    "10": ("CPU under reads", (("10a", CPU, "sequential"), ("10b", CPU, "random"))),
    "11": (
        "Context switches under writes",
        (("11a", SWITCHES, "sequential"), ("11b", SWITCHES, "random")),
    ),
    "12": (
        "Context switches under reads",
        (("12a", SWITCHES, "sequential"), ("12b", SWITCHES, "random")),
    ),
    "13": ("Device I/O of sequential writes", (("13", READS, ""), ("13", WRITES, ""))),
    "14": (
        "Device I/O of random writes, pristine image",
        (("14", READS, ""), ("14", WRITES, "")),
    ),
    "15": (
        "Device I/O of reads",
        (("15a", READS, "sequential"), ("15b", READS, "random")),
    ),
    "16": (
        "Private network under writes",
        (("16a", PRIVATE, "sequential"), ("16b", PRIVATE, "random, pristine")),
    ),
    "17": ("Private network under random reads", (("17", PRIVATE, ""),)),
}
# Metric of a claim → panel's column and the factor from the claim's unit to the column's.
ABSOLUTE: Final = {
    "throughput_avg": (THROUGHPUT.metric, 1e6),
    "latency_avg": (LATENCY.metric, 1e6),
    "cpu_utilisation": (CPU.metric, 0.01),
    "read_amplification": (READS.metric, 1.0),
}
SCHEME_OF: Final = {"3-rep": "rep:3", "RS(6,3)": "rs:6,3", "RS(10,4)": "rs:10,4"}
PATTERN_OF: Final = {"sequential": "seq", "random": "rand"}


def draw(result: KohResult) -> dict[str, CaptionedFigure]:
    """Draw each figure whose runs are there: ``fig01`` … ``fig20``, then ``ablations``, ``stripe-width``."""
    entries = result.ledger.entries
    drawn: dict[str, CaptionedFigure | None] = {"fig01": draw_summary(entries)}
    rows = with_columns(result.rows)
    for number in PAPER_FIGURES:
        mine, stem = claims_of(number, entries), f"fig{int(number):02d}"
        if number in SHEETS:
            drawn[stem] = _sheet(number, rows, mine)
        elif number == "18":
            drawn[stem] = _figure_18(rows, mine)
        elif number == "19" and result.series.width:
            drawn[stem] = draw_figure_19(result.series, mine)
        elif number == "20" and result.series.width:
            drawn[stem] = draw_figure_20(result.series, mine)
    drawn |= draw_ablations(result.ablations)
    return {stem: figure for stem, figure in drawn.items() if figure is not None}


def with_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Add what figures show and rows hold only in parts."""
    if "cpu_user_fraction" not in rows.columns:
        return rows
    return rows.with_columns(
        (pl.col("context_switches_per_op") / pl.col("block_size_bytes")).alias(
            "switches_per_byte"
        ),
        (pl.col("cpu_utilisation") * pl.col("cpu_user_fraction")).alias("cpu_user"),
    )


def claims_of(number: str, entries: Sequence[Entry]) -> list[Entry]:
    """List the judged claims that belong to a figure: those that name it, else those computed from it."""
    found = []
    for entry in entries:
        named = {
            part
            for text in re.findall(r"Fig\s?([\d,ab]+)", entry.claim.locus)
            for part in re.findall(r"\d+", text)
        }
        asked = {
            re.sub(r"\D.*", "", figure) for figure in figures_asked(entry.claim.id)
        }
        here = number in named if named else asked == {number}
        if here and entry.verdict != "not-derivable":
            found.append(entry)
    return found


def rows_of(
    rows: pl.DataFrame, figure: str, schemes: Sequence[str] = STORAGE
) -> pl.DataFrame:
    """Rows that one entry of `FIGURES` is drawn from, schemes in their order."""
    runs = FIGURES[figure]
    here = select(rows, op=runs.op, pattern=runs.pattern, image=runs.image)
    return pl.concat([select(here, scheme=scheme) for scheme in schemes])


def _sheet(
    number: str, rows: pl.DataFrame, entries: Sequence[Entry]
) -> CaptionedFigure | None:
    title, found = SHEETS[number]
    panels = []
    for figure, panel, words in found:
        mine = rows_of(rows, figure)
        if mine.is_empty():
            return None
        lower = USER if panel is CPU else None
        panels.append(
            SheetPanel(panel, words, mine, _overlays(figure, panel, entries), lower)
        )
    caption = f"Figure {number} of the paper: {title[0].lower()}{title[1:]}. {_means(panels)} "
    return draw_sheet(
        f"Fig {number}  {title}", panels, entries, caption + claims_caption(entries)
    )


def _overlays(figure: str, panel: Panel, entries: Sequence[Entry]) -> list[Overlay]:
    """Published values in the panel's own unit, with their tolerance as a band."""
    found = []
    for entry in entries:
        claim = entry.claim
        metric, factor = ABSOLUTE.get(claim.metric, ("", 1.0))
        scheme = SCHEME_OF.get(claim.scheme)
        if (
            metric != panel.metric
            or scheme is None
            or not isinstance(claim.published, float)
        ):
            continue
        other = PATTERN_OF.get(claim.pattern) != FIGURES[figure].pattern
        if other or claim.role == "derived" or claim.compare != "value":
            continue
        value, slack = claim.published * factor, claim.tolerance or 0.0
        size = {"1KB": 1024, "4KB": 4096}.get(claim.block_size)
        ends = (value * (1 - slack), value * (1 + slack))
        found.append(
            Overlay(scheme, size, value, "published, band = tolerance", metric, *ends)
        )
    return found


def _figure_18(rows: pl.DataFrame, entries: Sequence[Entry]) -> CaptionedFigure | None:
    panels = []
    for op, random, sequential in (("read", "8", "6"), ("write", "7", "5")):
        parts = [
            _ratio(rows_of(rows, random), rows_of(rows, sequential)),
            _ratio(
                rows_of(rows, f"18-bare-rand-{op}", (BARE,)),
                rows_of(rows, f"18-bare-seq-{op}", (BARE,)),
            ),
        ]
        if any(part.is_empty() for part in parts):
            return None
        panels.append(SheetPanel(RATIO, f"{op}s", pl.concat(parts)))
    caption = (
        f"Figure 18 of the paper: random over sequential throughput. {_means(panels)} "
    )
    return draw_sheet(
        "Fig 18  Random over sequential",
        panels,
        entries,
        caption + claims_caption(entries),
    )


def _ratio(random: pl.DataFrame, sequential: pl.DataFrame) -> pl.DataFrame:
    keys = ["scheme", "block_size_bytes"]
    rate = pl.col(THROUGHPUT.metric)
    joined = random.join(sequential, on=keys, suffix="_seq", maintain_order="left")
    return joined.select(
        *keys, (rate / pl.col(f"{THROUGHPUT.metric}_seq")).alias(RATIO.metric)
    )


def _means(panels: Sequence[SheetPanel]) -> str:
    """Say each panel's simulated means over the block sizes."""
    sentences = []
    for panel in panels:
        quantity = panel.panel
        parts = []
        for scheme in scheme_names(panel.rows):
            values = select(panel.rows, scheme=scheme)[quantity.metric].drop_nulls()
            if len(values):
                mean = (
                    float(values.cast(pl.Float64).to_numpy().mean()) * quantity.factor
                )
                parts.append(f"{scheme_label(scheme)} {number_text(mean)}")
        zeros = panel.rows.filter(pl.col(quantity.metric) == 0).height
        words = f" ({panel.words})" if panel.words else ""
        sentences.append(
            f"{quantity.title}{words} [{quantity.unit}], simulated mean: {', '.join(parts)}."
            + (f" {zeros} cells are zero and not drawn." if zeros else "")
        )
    return " ".join(sentences)
