"""Record results that the documentation shows, because they take too long to compute in every build.

- ``python docs/record.py [STUDY...]`` runs the named studies, or all, and writes their verdicts to
  docs/ledgers/, with version and date.
- ``python docs/record.py readme`` rewrites the README's table of errors, which recording does as well.
- ``python docs/record.py calibration`` calibrates the example cluster that ships, for the trust page.
- ``python docs/record.py gallery`` sweeps the grid of the gallery's explorer (minutes).
- ``python docs/record.py pages [PAGE...]`` runs the commands whose output the pages and the README show.
"""

from __future__ import annotations

import datetime
import json
import sys
from typing import Any

from generate import gallery
from generate.ran import rewrite_pages
from generate.readme import README, rewritten
from generate.trust import CALIBRATION, FOLDER
from stripesim import __version__, studies, study, sweep
from stripesim.scenarios.answers.calibrate import EXAMPLE
from stripesim.scenarios.answers.calibrate.answer import document_of
from stripesim.scenarios.answers.calibrate.calibrate import calibrate

# Fields of a claim that the page shows; the study's own ledger has the others.
KEPT = ("id", "metric", "role", "statement", "published_text", "unit", "simulated", "simulated_text", "error",
        "verdict", "reason")  # fmt: skip


def _short(value: Any) -> Any:
    """Round to six digits: further digits change with the order of additions."""
    if isinstance(value, list):
        return [_short(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def recorded(name: str) -> dict[str, Any]:
    """Run a study and return the recorded part of its ledger."""
    ledger = study(name).ledger.to_json()
    claims = [{key: _short(claim[key]) for key in KEPT} for claim in ledger["claims"]]
    return {
        "study": name,
        "version": __version__,
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "summary": ledger["summary"],
        "not_right": [
            c for c in claims if c["role"] == "held-out" and c["verdict"] != "right"
        ],
    }


def record_calibration() -> None:
    """Calibrate the example cluster and write its rows before and after."""
    calibration = calibrate(EXAMPLE)
    document = document_of(calibration)
    for row in document["rows"]:
        row |= {key: _short(row[key]) for key in ("before", "after")}
    text = json.dumps({"cluster": EXAMPLE.name, **document}, indent=1)
    path = FOLDER / f"{CALIBRATION}.json"
    path.write_text(f"{text}\n", encoding="utf-8")
    print(f"wrote {path}")


def record_gallery() -> None:
    """Sweep the grid of the gallery's explorer and write its means."""
    result = sweep(gallery.SCENARIO, gallery.OVER, replications=gallery.REPLICATIONS)
    if result.failed or result.warnings:
        raise RuntimeError(f"docs: gallery: {result.failed or result.warnings}")
    gallery.kept(result.aggregated).write_csv(gallery.GRID)
    print(f"wrote {gallery.GRID}")


def main(names: list[str]) -> None:
    """Record the named studies, all studies, or the output that pages show."""
    if names[:1] == ["pages"]:
        for page in rewrite_pages(names[1:]):
            print(f"wrote {page}")
        return
    if names == ["gallery"]:
        record_gallery()
        return
    FOLDER.mkdir(exist_ok=True)
    for name in names or (*studies(), CALIBRATION):
        if name == "readme":
            continue
        if name == CALIBRATION:
            record_calibration()
            continue
        document = recorded(name)
        bad = ",\n".join(
            json.dumps(claim, ensure_ascii=False) for claim in document.pop("not_right")
        )
        head = json.dumps(document, indent=1, ensure_ascii=False).removesuffix("\n}")
        path = FOLDER / f"{name}.json"
        path.write_text(f'{head},\n "not_right": [\n{bad}\n]\n}}\n', encoding="utf-8")
        summary = document["summary"]
        print(
            f"wrote {path}: {summary['right']} of {summary['held_out']} held-out claims right"
        )
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {README}")


if __name__ == "__main__":
    main(sys.argv[1:])
