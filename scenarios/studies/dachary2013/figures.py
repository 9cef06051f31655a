"""The study's figures: each turns measured rows into a picture and a caption, and does nothing else."""

import polars as pl
from matplotlib.ticker import FuncFormatter

from stripesim.scenarios.figures.kernels import draw_copies
from stripesim.scenarios.figures.panels import COLOURS, log_axis
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.scenarios.studies.dachary2013.claims import STUDY, TIMES, simulate_claims
from stripesim.scenarios.studies.dachary2013.runs import buffers as charged_buffers
from stripesim.scenarios.studies.drawing import grouped_bars, legend_above, look, panels
from stripesim.scenarios.studies.lookup import claims_of, published, select

SMALL_BYTES, LARGE_BYTES = 24 << 10, 1 << 20
SCHEME = "rs:6,2"


def draw(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw every figure; see the functions."""
    with styled():
        return {
            "roofline": draw_roofline(rows),
            "kernel-and-copies": draw_copies(
                rows.filter(pl.col("source") == "measured"),
                rows.filter(pl.col("source") != "measured"),
                scheme=SCHEME,
                sizes_bytes=[SMALL_BYTES, LARGE_BYTES],
                buffers=charged_buffers(),
            ),
            "operations": draw_operations(rows),
            "ratios": draw_ratios(rows),
        }


def draw_roofline(rows: pl.DataFrame) -> CaptionedFigure:
    """Encode speed by data size: kernel alone and through pyeclib, under what copying allows."""
    kinds = ("warm", "cold")
    figure, places = panels(
        (12.5, 5.4), [f"{kind} buffers" for kind in kinds], sharey=True
    )
    lines = (
        ("the machine's copy, memcpy", "memcpy", "memcpy"),
        ("ISA-L alone", "isal_cauchy", "encode"),
        ("ISA-L through pyeclib", "isa_l_rs_cauchy", "encode"),
        ("liberasurecode through pyeclib", "liberasurecode_rs_vand", "encode"),
    )
    sizes: set[int] = set()
    for axes, kind in zip(places, kinds, strict=True):
        for index, (label, backend, op) in enumerate(lines):
            mine = select(
                rows, source="measured", backend=backend, op=op, buffers=kind, cores=1
            )
            mine = mine.filter(pl.col("scheme").is_in([SCHEME, "none"])).sort(
                "size_bytes"
            )
            x = mine["size_bytes"].to_list()
            axes.plot(x, mine["bytes_per_s"] * 1e-9, label=label, **look(index))
            low, high = (
                mine["size_bytes"] / mine[name] * 1e-9
                for name in ("seconds_p90", "seconds_p10")
            )
            axes.vlines(x, low, high, color=COLOURS[index], linewidth=1.6)
            sizes.update(x if backend == "memcpy" else ())
        axes.set_xlabel("data of one call")
    for backend, marker in (("isa:cauchy", "P"), ("jerasure:reed_sol_van", "X")):
        mine = select(rows, op="encode", scheme=SCHEME, backend=backend).filter(
            pl.col("source") != "measured"
        )
        places[0].plot(
            mine["size_bytes"],
            mine["bytes_per_s"] * 1e-9,
            marker=marker,
            linestyle="none",
            color="#222222",
            markersize=9,
            label=f"Ceph's plugin, {backend}",
        )
    shown = sorted(sizes - {LARGE_BYTES, 24 << 20})
    for axes in places:
        log_axis(axes, "x", shown, [format_size(size) for size in shown])
        axes.tick_params(axis="x", labelrotation=30)
    speeds = [0.5, 1, 2, 5, 10, 20, 50, 100]
    log_axis(places[0], "y", speeds, [f"{speed:g}" for speed in speeds])
    places[0].set_ylabel("data encoded, copied [GB/s]")
    legend_above(figure, 3)
    alone = select(rows, source="measured", backend="isal_cauchy", op="encode", cores=1)
    shares = sorted(alone["roofline"].drop_nulls().to_list())
    return CaptionedFigure(
        figure,
        "Encoding with 6 + 2 on one core. Counting every byte read and written, ISA-L alone runs at "
        f"{number_text(shares[0])} to {number_text(shares[-1])} times the speed of copying: "
        "memory is what it waits for. Through pyeclib the copies and headers cost several times "
        "the kernel. Whiskers: 10th to 90th percentile.",
    )


def draw_operations(rows: pl.DataFrame) -> CaptionedFigure:
    """Encode, decode and reconstruct of 1 MiB by every backend."""
    figure = new_figure((12.5, 5.2))
    axes = figure.subplots()
    # Nearly 1 MiB: plugins and chunks round it up.
    here = select(rows, scheme=SCHEME, buffers="warm", cores=1).filter(
        pl.col("size_bytes").is_between(LARGE_BYTES, int(1.2 * LARGE_BYTES)),
        ~pl.col("backend").str.contains("isal_cauchy_"),
    )
    backends = here["backend"].unique(maintain_order=True).to_list()
    speeds: dict[str, list[float | None]] = {}
    for op, erasures in (
        ("encode", 0),
        ("decode", 1),
        ("decode", 2),
        ("reconstruct", 1),
    ):
        words = f"{op}, {erasures} lost" if op == "decode" else op
        mine = dict(
            select(here, op=op, erasures=erasures)
            .select("backend", "bytes_per_s")
            .iter_rows()
        )
        speeds[words] = [
            mine[name] * 1e-9 if name in mine else None for name in backends
        ]
    grouped_bars(
        axes,
        [name.replace(":", ":\n").replace("_rs_", "\nrs_") for name in backends],
        speeds,
    )
    axes.tick_params(axis="x", labelsize=11)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylabel("data [GB/s]")
    legend_above(figure, 4)
    return CaptionedFigure(
        figure,
        "One core, 1 MiB in 6 + 2, warm buffers. Names with a colon: Ceph 16.2.15's plugins, but "
        "cauchy_good, where this machine has Jerasure, its own function with losses drawn from all "
        "chunks; isal_cauchy: the kernel alone; the others through pyeclib, copies and headers included. "
        "Results were compared with what they must be, except in the plugins' rows.",
    )


def draw_ratios(rows: pl.DataFrame) -> CaptionedFigure:
    """Time of each of the source's cases over encoding with 6 + 2: published and measured."""
    figure = new_figure((11.5, 4.6))
    axes = figure.subplots()
    claims = {claim.id: claim for claim in claims_of(STUDY)}
    stated, (values, _) = published(STUDY), simulate_claims(rows)
    labels, right = [], 0
    bars: dict[str, list[float | None]] = {"source": [], "measured here": []}
    for key, (case, reference) in TIMES.items():
        year = "2014" if "2014" in key else "2013"
        labels.append(f"{year}\n{claims[key].scheme}\n{case.op} {case.erasures or ''}")
        value = values[key]
        bars["source"].append(stated[key] / stated[reference])
        bars["measured here"].append(
            None if value is None else value / stated[reference]
        )
        right += value is not None and abs(value / stated[key] - 1) <= (
            claims[key].tolerance or 0.0
        )
    grouped_bars(axes, labels, bars, (COLOURS[4], COLOURS[0]))
    axes.axhline(1, color="#444444", linewidth=1)
    axes.set_ylabel("time over encoding 6 + 2")
    legend_above(figure, 2)
    return CaptionedFigure(
        figure,
        "Each of the source's cases as a multiple of its encoding with 6 + 2 (cauchy_good, packet size "
        f"3072), on its machine of 2012 and as measured now. {right} of {len(TIMES)} ratios agree within "
        "the tolerance.",
    )
