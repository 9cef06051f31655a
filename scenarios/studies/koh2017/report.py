"""The study's page: what it is, in a few words, around its ledger and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stripesim.scenarios.figures.captions import OP_WORDS, PATTERN_WORDS, scheme_label, three_digits
from stripesim.scenarios.figures.results import CaptionedFigure
from stripesim.scenarios.report.study import report_page
from stripesim.scenarios.studies.koh2017.ablations import ABLATIONS

if TYPE_CHECKING:
    from stripesim.scenarios.studies.koh2017.study import KohResult

TITLE = "Koh et al. 2017: online erasure coding on SSD arrays, simulated"
INTRODUCTION = (
    "Every number that S. Koh et al., “Understanding System Characteristics of Online Erasure Coding on "
    "Scalable, Distributed and Large-Scale SSD Array Systems” (IISWC 2017), states, beside what the "
    "simulated cluster does. Erasure coding is predicted, apart from the rows that fitted parameters name."
)


def report(result: KohResult, figures: Mapping[str, CaptionedFigure]) -> str:
    """Write the page of a study's result."""
    tables = {"Ablations": ablation_table(result)} if result.ablations.width else {}
    return report_page(
        title=TITLE,
        introduction=INTRODUCTION,
        ledger=result.ledger,
        figures=figures,
        provenance=result.provenance,
        tables=tables,
    )


def ablation_table(result: KohResult) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Column names and rows: means over the block sizes, and throughput over the baseline's."""
    from stripesim.scenarios.studies.koh2017.draw_ablations import compare

    columns = (
        *("ablation", "scheme", "requests", "throughput [MB/s]", "over baseline"),
        *("latency [ms]", "private net [B/B]", "CPU [%]"),
    )
    rows = [
        (
            ABLATIONS[row["ablation"]].says,
            scheme_label(row["scheme"]),
            f"{PATTERN_WORDS[row['pattern']].lower()} {OP_WORDS[row['op']]}, {row['image']}",
            three_digits(row["throughput_bytes_per_s"] / 1e6),
            f"{three_digits(row['throughput_bytes_per_s_over_baseline'])}×",
            three_digits(row["latency_mean_ns"] / 1e6),
            three_digits(row["private_net_bytes_per_client_byte"]),
            three_digits(100 * row["cpu_utilisation"]),
        )
        for row in compare(result.ablations).iter_rows(named=True)
    ]
    return columns, rows
