"""Tables that the study's ``figures.toml`` queries, and the claims of each figure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, Entry
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.captions import (
    kind_words,
    scheme_label,
)
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.studies.claims_panel import claims_caption
from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.koh2017.ablations import (
    ABLATIONS,
    CHANGES,
    KINDS,
    SCHEMES,
)
from stripesim.scenarios.studies.koh2017.cells import BARE, STORAGE
from stripesim.scenarios.studies.koh2017.claims import figures_asked
from stripesim.scenarios.studies.koh2017.paper import FIGURES, PAPER_FIGURES
from stripesim.scenarios.studies.koh2017.series import (
    COMPARED_S,
    PAUSES_NS,
    RUNS,
    course,
    dips_of,
    pause_run,
)
from stripesim.scenarios.studies.lookup import select

#: Metric of a claim → column, and the factor from the claim's unit to the column's.
ABSOLUTE: Final = {
    "throughput_avg": ("throughput_bytes_per_s", 1e6),
    "latency_avg": ("latency_mean_ns", 1e6),
    "latency_max": ("latency_mean_ns", 1e6),
    "cpu_utilisation": ("cpu_utilisation", 0.01),
    "cpu_utilisation_max": ("cpu_utilisation", 0.01),
    "read_amplification": ("device_read_bytes_per_client_byte", 1.0),
    "read_amplification_max": ("device_read_bytes_per_client_byte", 1.0),
    "write_amplification": ("device_data_write_bytes_per_client_byte", 1.0),
    "write_amplification_max": ("device_data_write_bytes_per_client_byte", 1.0),
    "private_net_read_max": ("private_net_bytes_per_client_byte", 1.0),
}
#: Scheme of a claim → series of its published value. The highest of both codes has a series of its own.
SERIES_OF: Final = {
    "3-rep": ("rep:3",),
    "RS(6,3)": ("rs:6,3",),
    "RS(10,4)": ("rs:10,4",),
    "RS": ("codes",),
    "all": STORAGE,
}
PATTERN_OF: Final = {"sequential": "seq", "random": "rand"}
#: Block size of a claim → categories. All others are means over the sizes.
SIZES_OF: Final = {
    "1KB": ("1",),
    "4KB": ("4",),
    ">4KB": ("8", "16", "32", "64", "128"),
}
#: Category of a claim on the highest value over the sizes.
HIGHEST: Final = "max"
#: Claim → quantity in the paper's first figure, and its form relative to 3-replication.
SUMMARY: Final = {
    "koh2017-032": ("read bandwidth", "drop"),
    "koh2017-034": ("write bandwidth", "drop"),
    "koh2017-033": ("read latency", "rise"),
    "koh2017-035": ("write latency", "factor"),
    "koh2017-036": ("CPU time", "factor"),
    "koh2017-104": ("private network", "factor"),
    "koh2017-037": ("device reads", "factor"),
    "koh2017-038": ("device writes", "factor"),
}
#: Lower end of the summary's logarithmic axis.
FLOOR: Final = 1e-3
#: Panels of Figure 20: column, name, unit, factor.
COURSES: Final = (
    ("cpu_utilisation", "CPU, all storage cores", "%", 100.0),
    ("context_switches_per_s", "Context switches", "million per s", 1e-6),
    ("private_net_bytes_per_s", "Private network", "MB/s", 1e-6),
)
COMPARED_MEANS: Final = (
    "throughput_bytes_per_s",
    "latency_mean_ns",
    "private_net_bytes_per_client_byte",
    "cpu_utilisation",
)
ABLATION_KEYS: Final = ("scheme", "op", "pattern", "image")


def claims_of_figures(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return the judged claims of each figure, which name it or are computed from it."""
    judged = [entry for entry in entries if entry.verdict != "not-derivable"]
    return _by_figure(judged)


def _by_figure(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    return {
        paper_stem(number): [entry for entry in entries if _belongs(entry, number)]
        for number in PAPER_FIGURES
        if number != "1"
    }


def paper_stem(number: str) -> str:
    """Return the file stem of a figure of the paper.

    >>> paper_stem("5")
    'fig05'
    """
    return f"fig{int(number):02d}"


def _belongs(entry: Entry, number: str) -> bool:
    named = re.findall(r"Fig\s?([\d,ab]+)", entry.claim.locus)
    if named:
        return number in re.findall(r"\d+", " ".join(named))
    asked = {re.sub(r"\D.*", "", figure) for figure in figures_asked(entry.claim.id)}
    return asked == {number}


def tables_for(
    rows: pl.DataFrame,
    series: pl.DataFrame,
    ablations: pl.DataFrame,
    entries: Sequence[Entry],
) -> dict[str, pl.DataFrame]:
    """Return all tables: sheets, published values on them, summary, courses, ablations, and texts."""
    sheets = sheet_table(rows)
    claims = claims_of_figures(entries)
    texts = [
        {"stem": stem, "text": text, "claims": claims_caption(claims[stem])}
        for stem, text in {**_means(sheets), **_course_texts(series)}.items()
    ]
    factors = compared(ablations)
    texts += _ablation_texts(factors)
    summary = _table(_summary(entries))
    parts = [
        f"{row['x']} {number_text(row['published'])}, simulated {number_text(row['y'])} "
        f"({row['verdict']}, {row['series']})"
        for row in summary.iter_rows(named=True)
    ]
    texts.append({"stem": "fig01", "text": "; ".join(parts)})
    return {
        "sheets": sheets,
        "overlays": _table(_overlays(entries)).join(sheets, on="stem", how="semi"),
        "summary": summary,
        "courses": course_table(series),
        "factors": factors,
        "texts": _table(texts),
    }


_SCHEMA: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("stem", "panel", "series", "text", "claims"), pl.String),
    **dict.fromkeys(("x", "verdict", "ablation"), pl.String),
    **dict.fromkeys(("y", "low", "high", "lower", "published"), pl.Float64),
}


def _table(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Return rows as a table with all columns, even without rows."""
    listed = [{name: row.get(name) for name in _SCHEMA} for row in rows]
    return pl.DataFrame(listed, schema=_SCHEMA)


# --- panels against block size ----------------------------------------------------------------------------


def sheet_table(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the points of Figures 5 to 18: stem, panel, series, block size as x, value and interval."""
    if "cpu_user_fraction" in rows.columns:
        rows = rows.with_columns(
            switches_per_byte=pl.col("context_switches_per_op")
            / pl.col("block_size_bytes"),
            cpu_user=pl.col("cpu_utilisation") * pl.col("cpu_user_fraction"),
        )
    parts = [_table([])]
    sheets = _sheets()
    for stem, entry, column, factor, panel in sheets.iter_rows():
        mine = rows_of(rows, entry)
        if column in mine.columns and mine.height:
            low = f"{column}_low"
            high = f"{column}_high"
            if column == "latency_mean_ns" and "latency_ci_low" in mine.columns:
                low = "latency_ci_low"
                high = "latency_ci_high"
            interval = [low, high] if low in mine.columns else [column, column]
            parts.append(_sheet(mine, stem, panel, [column, *interval], factor))
    for op, random, sequential in (("read", "8", "6"), ("write", "7", "5")):
        ratios = [
            _ratio(rows_of(rows, random), rows_of(rows, sequential)),
            _ratio(
                rows_of(rows, f"18-bare-rand-{op}", (BARE,)),
                rows_of(rows, f"18-bare-seq-{op}", (BARE,)),
            ),
        ]
        if all(ratio.height for ratio in ratios):
            parts.append(_sheet(pl.concat(ratios), "fig18", f"{op}s", ["ratio"] * 3, 1))
    return pl.concat(parts, how="diagonal")


def _sheets() -> pl.DataFrame:
    return pl.read_csv((study_folder("koh2017") / "sheets.csv").read_bytes())


def rows_of(
    rows: pl.DataFrame, entry: str, schemes: Sequence[str] = STORAGE
) -> pl.DataFrame:
    """Return the rows that one entry of `FIGURES` is drawn from, schemes in their order."""
    runs = FIGURES[entry]
    mine = select(rows, op=runs.op, pattern=runs.pattern, image=runs.image)
    return pl.concat([select(mine, scheme=scheme) for scheme in schemes])


def _sheet(
    rows: pl.DataFrame, stem: str, panel: str, columns: Sequence[str], factor: float
) -> pl.DataFrame:
    values = {
        name: pl.col(column).cast(pl.Float64) * factor
        for name, column in zip(("y", "low", "high"), columns, strict=True)
    }
    lower = "cpu_user" if columns[0] == "cpu_utilisation" else None
    return rows.sort("block_size_bytes", maintain_order=True).select(
        stem=pl.lit(stem),
        panel=pl.lit(panel),
        series="scheme",
        x=(pl.col("block_size_bytes") // 1024).cast(pl.String),
        lower=pl.lit(None, pl.Float64) if lower is None else pl.col(lower) * factor,
        **values,
    )


def _ratio(random: pl.DataFrame, sequential: pl.DataFrame) -> pl.DataFrame:
    """Return random over sequential throughput by scheme and block size."""
    keys = ["scheme", "block_size_bytes"]
    rate = "throughput_bytes_per_s"
    joined = random.join(sequential, on=keys, suffix="_seq", maintain_order="left")
    return joined.select(*keys, ratio=pl.col(rate) / pl.col(f"{rate}_seq"))


def _means(sheets: pl.DataFrame) -> dict[str, str]:
    """Return by stem the simulated means over the block sizes, panel by panel."""
    texts: dict[str, str] = {}
    for (stem, panel), mine in sheets.group_by("stem", "panel", maintain_order=True):
        parts = []
        for scheme in mine["series"].unique(maintain_order=True):
            mean = select(mine, series=scheme)["y"].drop_nulls().mean()
            if isinstance(mean, float):
                parts.append(f"{scheme_label(scheme)} {number_text(mean)}")
        zeros = select(mine, y=0.0).height
        not_drawn = f" {zeros} cells are zero and not drawn." if zeros else ""
        text = f"{panel}, simulated mean: {', '.join(parts)}.{not_drawn}"
        texts[str(stem)] = f"{texts.get(str(stem), '')} {text}".strip()
    return texts


def _overlays(entries: Sequence[Entry]) -> Iterable[dict[str, Any]]:
    """Yield all published values on sheets with their verdicts, and the tolerance as a band."""
    claims = _by_figure(entries)
    for stem, entry, column, factor, panel in _sheets().iter_rows():
        for judged in claims[stem]:
            claim = judged.claim
            metric, to_column = ABSOLUTE.get(claim.metric, ("", 1.0))
            patterns = map(PATTERN_OF.get, claim.pattern.split("+"))
            if metric != column or FIGURES[entry].pattern not in patterns:
                continue
            if claim.role == "derived" or not isinstance(claim.published, float):
                continue
            value = claim.published * to_column * factor
            slack = claim.tolerance or 0.0
            # A bound has no lower end.
            low = value if claim.compare == "at-most" else value * (1 - slack)
            for series, x in product(SERIES_OF[claim.scheme], _places(claim)):
                yield {
                    "stem": stem,
                    "panel": panel,
                    "series": series,
                    "x": x,
                    "y": value,
                    "low": low,
                    "high": value * (1 + slack),
                    "verdict": judged.verdict,
                }


def _places(claim: Claim) -> Sequence[str]:
    """Return the categories at which a figure shows a published value."""
    if claim.metric.endswith("_max"):
        return (HIGHEST,)
    return SIZES_OF.get(claim.block_size, ("mean",))


# --- the summary of the paper's first figure --------------------------------------------------------------


def as_factor(value: float, kind: str) -> float:
    """Return RS(10,4) over 3-replication, from a drop or a rise in percent or a factor.

    >>> as_factor(86.0, "drop"), as_factor(50.0, "rise"), as_factor(7.6, "factor")
    (0.14, 1.5, 7.6)
    """
    if kind == "drop":
        return round(1 - value / 100, 12)
    return 1 + value / 100 if kind == "rise" else value


def _summary(entries: Iterable[Entry]) -> Iterable[dict[str, Any]]:
    by_id = {entry.claim.id: entry for entry in entries}
    for claim, (quantity, kind) in SUMMARY.items():
        entry = by_id.get(claim)
        if entry is None or not isinstance(entry.simulated, float):
            continue
        published = entry.claim.published
        assert isinstance(published, float)
        slack = entry.tolerance or 0.0
        # The tolerance belongs to the number as stated, and a drop of 86 % plus 20 % leaves nothing.
        ends = [as_factor(published * end, kind) for end in (1 - slack, 1 + slack)]
        stated = as_factor(published, kind)
        simulated = max(as_factor(entry.simulated, kind), FLOOR)
        yield {
            "x": quantity,
            "published": stated,
            "y": simulated,
            "low": max(min(ends), FLOOR),
            "high": max(*ends, FLOOR),
            "verdict": entry.verdict,
            "series": entry.claim.role,
            "text": f"{entry.verdict}\n{number_text(stated)} → {number_text(simulated)}",
        }


# --- courses in time --------------------------------------------------------------------------------------


def needed_pause_ns(series: pl.DataFrame) -> int | None:
    """Return the shortest tried pause with periodic dips near zero [ns], or None."""
    for pause_ns in PAUSES_NS:
        if dips_of(series, pause_run(pause_ns)).says == "near-zero, periodic":
            return pause_ns
    return None


def course_table(series: pl.DataFrame) -> pl.DataFrame:
    """Return the points of Figures 19 and 20: stem, panel, series, second, value."""
    rows: list[dict[str, Any]] = []

    def add(stem: str, panel: str, name: str, column: str, factor: float) -> None:
        for second, value in enumerate(course(series, name, column), start=1):
            point = {"x": float(second), "y": float(value * factor)}
            rows.append(
                {"stem": stem, "panel": panel, "series": RUNS[name].says, **point}
            )

    if _has(series, "fig19-rs"):
        pause_ns = needed_pause_ns(series) or PAUSES_NS[-1]
        tried = ("fig19-fill-object", pause_run(pause_ns))
        for name in ("fig19-rep", "fig19-rs"):
            add("fig19", "As modelled", name, "throughput_bytes_per_s", 1e-6)
        for name in ("fig19-rs", *tried):
            add("fig19", "RS(6,3), what if", name, "throughput_bytes_per_s", 1e-6)
    if _has(series, "fig20-pristine"):
        for column, title, unit, factor in COURSES:
            for name in ("fig20-pristine", "fig20-overwrite"):
                add("fig20", f"{title} [{unit}]", name, column, factor)
    return pl.DataFrame(rows, schema={**_SCHEMA, "x": pl.Float64})


def _has(series: pl.DataFrame, name: str) -> bool:
    return bool(series.width) and name in series["series"]


def _course_texts(series: pl.DataFrame) -> dict[str, str]:
    texts = {}
    if _has(series, "fig19-rs"):
        texts["fig19"] = _text_of_dips(series)
    if _has(series, "fig20-pristine"):
        parts = []
        for column, title, unit, factor in COURSES:
            first, second = (
                number_text(course(series, name, column)[:COMPARED_S].mean() * factor)
                for name in ("fig20-pristine", "fig20-overwrite")
            )
            parts.append(f"{title} {first} against {second} {unit}")
        texts["fig20"] = "; ".join(parts)
    return texts


def _text_of_dips(series: pl.DataFrame) -> str:
    parts = []
    for name in ("fig19-rs", "fig19-rep", "fig19-fill-object"):
        dips = dips_of(series, name)
        parts.append(
            f"{RUNS[name].says}: {_mean_text(series, name)} MB/s, dips {dips.says}, "
            f"lowest second {number_text(100 * dips.numbers[0])} % of the level between dips"
        )
    entries = int(course(series, "fig19-rs", "pg_log_entries_max")[0])
    text = (
        f"{'; '.join(parts)}. "
        f"Trimming cannot be it: no placement group's log reaches more than {entries:,} entries, "
        "and trimming begins at 3,000."
    )
    pause_ns = needed_pause_ns(series)
    if pause_ns is None:
        return f"{text} None of the pauses tried gives such dips."
    mean = _mean_text(series, pause_run(pause_ns))
    return (
        f"{text} It would take a stall of about {pause_ns / 1e9:g} s at every new object, and then "
        f"the mean is {mean} MB/s: no mechanism among those tried stalls nearly so long."
    )


def _mean_text(series: pl.DataFrame, name: str) -> str:
    return number_text(course(series, name).mean() / 1e6)


# --- ablations --------------------------------------------------------------------------------------------


def compared(ablations: pl.DataFrame) -> pl.DataFrame:
    """Return means over the block sizes of each ablation and kind of run, each also ``_over_baseline``."""
    if not ablations.width:
        return _table([])
    means = ablations.group_by("ablation", *ABLATION_KEYS, maintain_order=True).agg(
        pl.col(COMPARED_MEANS).mean()
    )
    baseline = select(means, ablation="baseline").drop("ablation")
    joined = means.join(
        baseline, on=ABLATION_KEYS, suffix="_baseline", maintain_order="left"
    )
    ratios = {
        f"{name}_over_baseline": pl.col(name) / pl.col(f"{name}_baseline")
        for name in COMPARED_MEANS
    }
    kind = pl.struct("op", "pattern", "image").map_elements(
        lambda run: f"{kind_words(run['op'], run['pattern'])}, {run['image']}",
        return_dtype=pl.String,
    )
    names = pl.col("ablation")
    widths = [name for name, change in CHANGES.items() if change.stripe_bytes]
    return joined.with_columns(
        stem=pl.when(names.is_in(widths))
        .then(pl.lit("stripe-width"))
        .otherwise(pl.lit("ablations")),
        panel=kind,
        series=pl.col("scheme"),
        x=names.replace_strict({name: each.says for name, each in ABLATIONS.items()}),
        y=pl.col("throughput_bytes_per_s") / pl.col("throughput_bytes_per_s_baseline"),
        **ratios,
    ).drop(f"{name}_baseline" for name in COMPARED_MEANS)


def _ablation_texts(factors: pl.DataFrame) -> Iterable[dict[str, str]]:
    changed = factors.filter(pl.col("ablation") != "baseline")
    for (stem,), mine in changed.group_by("stem", maintain_order=True):
        sentences = []
        for (words,), of_change in mine.group_by("x", maintain_order=True):
            parts = [_factors_text(of_change, *kind) for kind in KINDS]
            sentences.append(f"{words}: {', '.join(parts)}.")
        yield {"stem": str(stem), "text": " ".join(sentences)}


def _factors_text(factors: pl.DataFrame, op: str, pattern: str, image: str) -> str:
    texts = []
    for scheme in SCHEMES:
        mine = select(factors, scheme=scheme, op=op, pattern=pattern, image=image)
        texts.append(f"{number_text(mine['y'][0])}×" if mine.height else "–")
    return f"{kind_words(op, pattern).lower()} {' and '.join(texts)}"


def ablation_table(ablations: pl.DataFrame) -> Table:
    """Return means over the block sizes, and throughput over the baseline's."""
    columns = (
        "ablation",
        "scheme",
        "requests",
        "throughput [MB/s]",
        "over baseline",
        "latency [ms]",
        "private net [B/B]",
        "CPU [%]",
    )
    rows = [
        (
            row["x"],
            scheme_label(row["scheme"]),
            row["panel"][0].lower() + row["panel"][1:],
            number_text(row["throughput_bytes_per_s"] / 1e6),
            f"{number_text(row['y'])}×",
            number_text(row["latency_mean_ns"] / 1e6),
            number_text(row["private_net_bytes_per_client_byte"]),
            number_text(100 * row["cpu_utilisation"]),
        )
        for row in compared(ablations).iter_rows(named=True)
    ]
    return Table("Ablations", columns, rows, form="stack", numeric=False)
