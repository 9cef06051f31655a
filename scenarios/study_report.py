"""A study on one page: ledger, figures, parameters with provenance; nothing is loaded from elsewhere."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Final

from stripesim.calibration.ledger import Entry, Ledger
from stripesim.scenarios.captions import three_digits
from stripesim.scenarios.figures import METADATA, CaptionedFigure, styled

__all__ = ["report_page", "seen_by_fits"]

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1b1b;--soft:#5b5b5b;--page:#fff;--card:#f5f6f8;--line:#d9dce1;
--right:#005a91;--wrong:#b34700}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#a8adb5;--page:#15171a;--card:#1f2226;
--line:#3a3f46;--right:#6fc3f5;--wrong:#ff9a57}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:1rem}
h1{font-size:1.6rem;line-height:1.25}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:.75rem}
.tile{background:var(--card);border-radius:.5rem;padding:.75rem}.tile b{display:block;font-size:1.5rem}
.tile span,.note,figcaption{color:var(--soft);font-size:.9rem}
nav{display:flex;flex-wrap:wrap;gap:.75rem}a{color:var(--right)}
figure{margin:1.5rem 0;background:var(--card);border-radius:.5rem;padding:.75rem}
figure div{overflow-x:auto;background:#fff;border-radius:.35rem}
figure img{display:block;width:100%;min-width:640px;height:auto}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.88rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .5rem;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.right{color:var(--right);font-weight:600}.wrong{color:var(--wrong);font-weight:600}
.not-derivable{color:var(--soft)}code,pre{font-size:.85em}pre{overflow-x:auto}
@media(max-width:640px){table.claims thead{display:none}table.claims tr{display:block;padding:.6rem 0;
border-bottom:1px solid var(--line)}table.claims td{display:block;border:0;padding:.1rem 0;text-align:left}
table.claims td.n::before{content:attr(data-label)": ";color:var(--soft)}}
"""

_VERDICT_SIGNS: Final = {"right": "✓ right", "wrong": "✗ wrong", "not-derivable": "– not derivable"}
_SECTIONS: Final = (
    ("held-out", "Held out: what counts", ("held-out",)),
    ("calibration", "Calibration: seen by the fits", ("calibration",)),
    ("others", "Shown, not counted", ("contradicted", "derived", "not-derivable", "given")),
)


def report_page(
    *,
    title: str,
    introduction: str,
    ledger: Ledger,
    figures: Mapping[str, CaptionedFigure],
    provenance: Mapping[str, Any],
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]] | None = None,
) -> str:
    """Write a study's report.

    Parameters
    ----------
    title, introduction : str
        Plain text.
    ledger : Ledger
    figures : mapping of str to CaptionedFigure
        File stem → figure.
    provenance : mapping
        How the rows came about; JSON values.
    tables : mapping, optional
        Heading → column names and rows of text, shown after the figures.

    Returns
    -------
    str
        An HTML page. Figures are inside it, it runs no script, and every link leads to a place on it.
    """
    summary = ledger.summary()
    parts = [
        f"<h1>{_text(title)}</h1><p>{_text(introduction)}</p>",
        _tiles(summary),
        '<p class="note">The share that counts is right over all held-out claims. A right calibration claim '
        "says that a fit worked, not that a prediction did.</p>",
        '<nav><a href="#metrics">Errors by metric</a><a href="#figures">Figures</a>'
        + "".join(f'<a href="#{key}">{_text(words)}</a>' for key, words, _ in _SECTIONS)
        + '<a href="#parameters">Parameters</a><a href="#provenance">Provenance</a></nav>',
        _seen(ledger),
        _metrics(summary),
        _figures(figures),
        *(
            f"<h2>{_text(heading)}</h2>{_table(columns, rows)}"
            for heading, (columns, rows) in (tables or {}).items()
        ),
        *(_claims(key, words, roles, ledger.entries) for key, words, roles in _SECTIONS),
        _parameters(ledger),
        f'<h2 id="provenance">Provenance</h2><pre>{_text(_pretty(provenance))}</pre>',
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body><main>"
        + "\n".join(parts)
        + "</main></body></html>\n"
    )


def _text(value: object) -> str:
    return html.escape(str(value))


def _pretty(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), indent=1, ensure_ascii=False, default=str)


def _tiles(summary: Mapping[str, Any]) -> str:
    share = summary["share_right"]
    tiles = [
        (f"{summary['right']} of {summary['held_out']}", "held-out claims right"),
        ("–" if share is None else f"{share:.0%}", "share right"),
        (summary["wrong"], "wrong"),
        (summary["not_derivable"], "not derivable"),
        (summary["fitted_parameters"], "fitted parameters"),
    ]
    if summary["mape_percent"] is not None:
        tiles.append((f"{summary['mape_percent']:.0f} %", "mean absolute error"))
        tiles.append((f"{summary['median_error_percent']:.0f} %", "median absolute error"))
    if summary["spearman"] is not None:
        tiles.append((f"{summary['spearman']:.2f}", "rank correlation"))
    return (
        '<div class="tiles">'
        + "".join(f'<div class="tile"><b>{_text(b)}</b><span>{_text(w)}</span></div>' for b, w in tiles)
        + "</div>"
    )


def seen_by_fits(ledger: Ledger) -> tuple[Entry, ...]:
    """Held-out claims that the source of a fitted parameter names: predicted by nobody."""
    named = {
        claim_id
        for row in ledger.parameters
        if row["name"] in ledger.fitted_parameters
        for claim_id in re.findall(r"[a-z]+\d{4}-\d+", str(row.get("source", "")))
    }
    return tuple(e for e in ledger.entries if e.claim.role == "held-out" and e.claim.id in named)


def _seen(ledger: Ledger) -> str:
    seen = seen_by_fits(ledger)
    if not seen:
        return ""
    summary = ledger.summary()
    right = summary["right"] - sum(entry.verdict == "right" for entry in seen)
    return (
        '<p class="note">Held out by role, but seen by a fit as the parameters below say: '
        f"{_text(', '.join(entry.claim.id for entry in seen))}. Without them "
        f"{right} of {summary['held_out'] - len(seen)} are right.</p>"
    )


def _metrics(summary: Mapping[str, Any]) -> str:
    rows = [
        (group, f"{told['mape_percent']:.0f} %", str(told["rows"]))
        for group, told in summary["mape_percent_by_metric"].items()
    ]
    worst = summary["worst"]
    note = "" if worst is None else f"Worst row: {worst['id']} ({worst['error']:+.0%})."
    return (
        '<h2 id="metrics">Errors by metric</h2>'
        + _table(("metric", "mean absolute error of held-out claims", "claims"), rows)
        + f'<p class="note">{_text(note)}</p>'
    )


def _figures(figures: Mapping[str, CaptionedFigure]) -> str:
    parts = ['<h2 id="figures">Figures</h2>']
    for stem, (figure, caption) in figures.items():
        buffer = BytesIO()
        with styled():
            figure.savefig(buffer, format="svg", metadata=METADATA["svg"])
        image = base64.b64encode(buffer.getvalue()).decode()
        parts.append(
            f'<figure id="{_text(stem)}"><div><img alt="{_text(caption)}" '
            f'src="data:image/svg+xml;base64,{image}"></div><figcaption>{_text(caption)}</figcaption></figure>'
        )
    return "".join(parts)


def _claims(key: str, heading: str, roles: Sequence[str], entries: Sequence[Entry]) -> str:
    mine = [entry for entry in entries if entry.claim.role in roles]
    body = []
    for entry in mine:
        claim = entry.claim
        notes = [note for note in (entry.reason, claim.disputed and f"disputed: {claim.disputed}") if note]
        percent = entry.error_kind == "relative"
        error = "–" if entry.error is None else f"{entry.error:+.0%}" if percent else f"{entry.error:+.3g}"
        allowed = "–" if entry.tolerance is None else f"{entry.tolerance:.0%}" if percent else "–"
        said = "".join(f'<div class="note">{_text(note)}</div>' for note in notes)
        body.append(
            f"<tr><td>{_text(claim.id)}"
            f'<div class="note">{_text(claim.locus)} · {_text(claim.role)}</div></td>'
            f"<td>{_text(claim.statement)}{said}</td>"
            f'<td class="n" data-label="published">{_text(claim.published_text)} {_text(claim.unit)}</td>'
            f'<td class="n" data-label="simulated">{_text(_simulated(entry))}</td>'
            f'<td class="n" data-label="error">{_text(error)}</td>'
            f'<td class="n" data-label="allowed">{_text(allowed)}</td>'
            f'<td class="{entry.verdict}">{_text(_VERDICT_SIGNS[entry.verdict])}</td></tr>'
        )
    head = (
        '<tr><th>claim</th><th>statement</th><th class="n">published</th><th class="n">simulated</th>'
        '<th class="n">error</th><th class="n">allowed</th><th>verdict</th></tr>'
    )
    return (
        f'<h2 id="{key}">{_text(heading)}: {len(mine)}</h2><div class="wide"><table class="claims">'
        f"<thead>{head}</thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _simulated(entry: Entry) -> str:
    if entry.simulated_text is not None:
        return entry.simulated_text
    if entry.simulated is None:
        return "–"
    parts = entry.simulated if isinstance(entry.simulated, tuple) else (entry.simulated,)
    return " … ".join(three_digits(part) for part in parts)


def _parameters(ledger: Ledger) -> str:
    rows = []
    for row in ledger.parameters:
        interval = row.get("confidence_interval")
        told = "–" if not interval else " … ".join(f"{end:.4g}" for end in interval)
        rows.append(
            (
                *(
                    str(row["name"]),
                    f"{row['value']:.6g}" if isinstance(row["value"], float) else row["value"],
                ),
                *(row["unit"], row["provenance"], told, row.get("source", "")),
            )
        )
    fitted = ", ".join(ledger.fitted_parameters)
    return (
        f'<h2 id="parameters">Parameters: {len(rows)}, of which {len(ledger.fitted_parameters)} fitted</h2>'
        f'<p class="note">Fitted: {_text(fitted)}.</p>'
        + _table(("name", "value", "unit", "provenance", "95 % interval", "source"), rows)
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{_text(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
