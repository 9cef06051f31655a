"""Describe what `make demo` simulates, and draw how well it fits the published numbers.

``python docs/demo.py`` prints the scenario and the recorded verdicts of its study. With a folder, it draws
the paper's means beside those of the run there, as its headline.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl

import stripesim
from generate.trust import FOLDER
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.screen import screen_files
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    series_style,
)

STUDY = "koh2017"
SCHEMES = ("rep:3", "rs:6,3", "rs:10,4")
# Claims that state a mean over the block sizes [MB/s], in the order of the schemes.
MEANS = {
    "seq": ("koh2017-040", "koh2017-041", "koh2017-042"),
    "rand": ("koh2017-126", "koh2017-124", "koh2017-125"),
}
# Claims that state how far a code's mean is below that of 3-replication [%].
DROPS = ("koh2017-049", "koh2017-050")
PAPER = "#222222"


def lines() -> list[str]:
    """Return one line on the scenario, and one on the recorded verdicts of its study."""
    scenario = stripesim.load_scenario(STUDY)
    cluster = scenario.cluster
    load = scenario.workload
    kinds = len(load.ops) * len(load.patterns) * len(load.block_sizes_bytes)
    count = len(scenario.schemes) * kinds
    recorded = json.loads((FOLDER / f"{STUDY}.json").read_text(encoding="utf-8"))
    summary = recorded["summary"]
    verdicts = f"{summary['right']} of {summary['held_out']} held-out claims are right"
    error = f"a median error of {summary['median_error_percent']:.0f} %"
    when = f"recorded {recorded['date']} with {recorded['version']}"
    return [
        f"Simulating {scenario.description}: {count} cells on {cluster.host_count} hosts "
        f"with {cluster.osds_per_host} OSDs each.",
        f"Fit to the paper: {verdicts}, with {error} ({when}; `stripesim study {STUDY}` judges anew).",
    ]


def published() -> dict[str, float]:
    """Return the published value of each claim that states one, by its number."""
    return {
        claim.id: float(claim.published)
        for claim in stripesim.claims(STUDY)
        if isinstance(claim.published, int | float)
    }


def means(rows: pl.DataFrame, op: str, pattern: str) -> list[float]:
    """Return the mean throughput over the block sizes of each scheme [MB/s], as the paper takes it."""
    own = rows.filter((pl.col("op") == op) & (pl.col("pattern") == pattern))
    by_scheme = own.group_by("scheme").agg(pl.col("throughput_bytes_per_s").mean())
    found = dict(by_scheme.iter_rows())
    return [found[scheme] / 1e6 for scheme in SCHEMES]


def fit_figure(rows: pl.DataFrame) -> CaptionedFigure:
    """Draw the paper's means beside the simulated ones."""
    stated = published()
    reads = means(rows, "read", "seq")
    panels = [
        _panel(
            f"{words} writes",
            "mean throughput [MB/s]",
            means(rows, "write", pattern),
            [stated[claim] for claim in MEANS[pattern]],
            SCHEMES,
        )
        for pattern, words in (("seq", "Sequential"), ("rand", "Random"))
    ]
    panels.append(
        _panel(
            "Sequential reads",
            "mean over 3-replication's",
            [mean / reads[0] for mean in reads[1:]],
            [1 - stated[claim] / 100 for claim in DROPS],
            SCHEMES[1:],
        )
    )
    caption = (
        "Means over block sizes of 1 to 128 KiB: simulated (bars) and, in brackets, published (lines), Koh "
        "et al. 2017, Figures 5 to 7. Those of random writes follow from its ratios. One was used to "
        "calibrate: sequential writes of 3-replication."
    )
    return drawn(FigureSpec(size=(11.5, 4.2), panels=panels, caption=caption))


def _panel(
    title: str,
    label: str,
    simulated: list[float],
    paper: list[float],
    schemes: tuple[str, ...],
) -> PanelSpec:
    """Specify a bar for each simulated mean and a line across it for the published one."""
    layers = []
    for index, (scheme, value) in enumerate(zip(schemes, simulated, strict=True)):
        look = {"color": series_style(SCHEMES.index(scheme))["color"], "thick": 0.6}
        layers.append(LayerSpec(mark="bars", x=[index], y=[value], style=look))
    places = list(range(len(schemes)))
    style = {"color": PAPER, "marker": "_", "markersize": 44, "markeredgewidth": 2.6}
    name = "published mean" if title.startswith("Sequential writes") else ""
    layers.append(LayerSpec(mark="points", x=places, y=paper, label=name, style=style))
    pairs = list(zip(simulated, paper, strict=True))
    texts = [f"{number_text(mine)} ({number_text(theirs)})" for mine, theirs in pairs]
    tops = [max(pair) for pair in pairs]
    layers.append(LayerSpec(mark="text", x=places, y=tops, texts=texts))
    return PanelSpec(
        title=title,
        layers=layers,
        x=AxisSpec(
            ticks=places,
            names=[scheme_label(scheme) for scheme in schemes],
            low=-0.6,
            high=len(schemes) - 0.4,
        ),
        y=AxisSpec(label=label, low=0, high=1.15 * max(tops)),
    )


def draw(folder: Path) -> None:
    """Draw the headline of a run's folder again, with the paper's means."""
    rows = pl.read_parquet(folder / "results.parquet")
    figure, caption = fit_figure(rows)
    for name, content in screen_files("headline", figure).items():
        (folder / name).write_bytes(content)
    print(f"{folder}/headline.svg: {caption}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]))
    else:
        print("\n".join(lines()), flush=True)
