"""Write the self-contained page of a study: ledger, figures, parameters with provenance."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from stripesim.calibration.ledger.verdicts import Entry, Ledger
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.renderer import CaptionedFigure
from stripesim.scenarios.show.page.provenance import parameter_table, pretty
from stripesim.scenarios.show.page.render import figure_blocks, render
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.show.words import moment_text

_VERDICT_SIGNS: Final = {
    "right": "✓ right",
    "wrong": "✗ wrong",
    "not-derivable": "– not derivable",
}
_SECTIONS: Final = (
    ("held-out", "Held out: these count", ("held-out",)),
    ("calibration", "Calibration: seen by the fits", ("calibration",)),
    (
        "others",
        "Shown, not counted",
        ("contradicted", "derived", "not-derivable", "given"),
    ),
)


def report_page(
    *,
    title: str,
    introduction: str,
    ledger: Ledger,
    figures: Mapping[str, CaptionedFigure],
    provenance: Mapping[str, Any],
    tables: Sequence[Table] = (),
) -> str:
    """Return a study's report, an HTML page without scripts. `tables` follow the ledger's summary."""
    summary = ledger.summary()
    sections = [
        (
            key,
            words,
            [_claim(entry) for entry in ledger.entries if entry.claim.role in roles],
        )
        for key, words, roles in _SECTIONS
    ]
    made = [f"stripesim {provenance.get('stripesim', '')}".strip()]
    made += [moment_text(provenance["time"])] if "time" in provenance else []
    worst = summary["worst"]
    return render(
        "study.html.j2",
        kind="Study: a publication's claims compared with the simulation",
        title=title,
        introduction=introduction,
        meta=[" · ".join(made)],
        tiles=_tiles(summary),
        seen=_seen(ledger),
        contents=[
            ("metrics", "Errors by metric"),
            ("figures", "Figures"),
            *((key, words) for key, words, _ in sections),
            ("parameters", "Parameters"),
            ("provenance", "Provenance"),
        ],
        metrics=_metrics(summary),
        worst=""
        if worst is None
        else f"Worst row: {worst['id']} ({100 * worst['error']:+.0f} %).",
        figures=figure_blocks(figures),
        tables=[(table.caption, table) for table in tables],
        sections=sections,
        parameters=parameter_table(ledger.parameters),
        fitted=", ".join(ledger.fitted_parameters),
        fitted_count=len(ledger.fitted_parameters),
        provenance=pretty(provenance),
    )


def _tiles(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    share = summary["share_right"]
    tiles = [
        (f"{summary['right']} of {summary['held_out']}", "held-out claims right"),
        ("–" if share is None else f"{100 * share:.0f} %", "share right"),
        (str(summary["wrong"]), "wrong"),
        (str(summary["not_derivable"]), "not derivable"),
        (str(summary["fitted_parameters"]), "fitted parameters"),
    ]
    if summary["mape_percent"] is not None:
        tiles.append((f"{summary['mape_percent']:.0f} %", "mean absolute error"))
        tiles.append(
            (f"{summary['median_error_percent']:.0f} %", "median absolute error")
        )
    if summary["spearman"] is not None:
        tiles.append((f"{summary['spearman']:.2f}", "rank correlation"))
    return tiles


def seen_by_fits(ledger: Ledger) -> tuple[Entry, ...]:
    """Return held-out claims that a fitted parameter names as a source. They are not predictions."""
    named = {
        claim_id
        for row in ledger.parameters
        if row["name"] in ledger.fitted_parameters
        for claim_id in re.findall(r"[a-z]+\d{4}-\d+", str(row.get("source", "")))
    }
    return tuple(
        e for e in ledger.entries if e.claim.role == "held-out" and e.claim.id in named
    )


def _seen(ledger: Ledger) -> str:
    seen = seen_by_fits(ledger)
    if not seen:
        return ""
    summary = ledger.summary()
    right = summary["right"] - sum(entry.verdict == "right" for entry in seen)
    return (
        "Held out by role, but seen by a fit, according to the parameters below: "
        f"{', '.join(entry.claim.id for entry in seen)}. Without them "
        f"{right} of {summary['held_out'] - len(seen)} are right."
    )


def _metrics(summary: Mapping[str, Any]) -> Table:
    rows = [
        (group, f"{value['mape_percent']:.0f} %", str(value["rows"]))
        for group, value in summary["mape_percent_by_metric"].items()
    ]
    return Table(
        "Errors by metric",
        ("metric", "mean absolute error of held-out claims", "claims"),
        rows,
    )


def _claim(entry: Entry) -> dict[str, Any]:
    """Return a claim and its verdict as texts."""
    claim = entry.claim
    percent = entry.error_kind == "relative"
    return {
        "id": claim.id,
        "locus": claim.locus,
        "role": claim.role,
        "statement": claim.statement,
        "notes": [
            note
            for note in (entry.reason, claim.disputed and f"disputed: {claim.disputed}")
            if note
        ],
        "published": claim.published_words,
        "simulated": _simulated(entry),
        "error": _error_text(entry, percent=percent),
        "allowed": _allowed_text(entry, percent=percent),
        "verdict": entry.verdict,
        "sign": _VERDICT_SIGNS[entry.verdict],
    }


def _error_text(entry: Entry, *, percent: bool) -> str:
    if entry.error is None:
        return "–"
    if percent:
        return f"{100 * entry.error:+.0f} %"
    return f"{entry.error:+.3g}"


def _allowed_text(entry: Entry, *, percent: bool) -> str:
    if entry.tolerance is None or not percent:
        return "–"
    return f"{100 * entry.tolerance:.0f} %"


def _simulated(entry: Entry) -> str:
    if entry.simulated_text is not None:
        return entry.simulated_text
    if entry.simulated is None:
        return "–"
    if isinstance(entry.simulated, tuple):
        return " … ".join(number_text(part) for part in entry.simulated)
    return number_text(entry.simulated)
