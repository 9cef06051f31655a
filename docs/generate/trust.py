"""Generate the trust page from the recorded ledgers of the studies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from generate.markdown import code, number, table
from stripesim import studies
from stripesim.calibration.ledger.model_errors import ALL_BANDS, error_bands
from stripesim.scenarios.answers.predict.register import read_register
from stripesim.scenarios.answers.predict.score import score

FOLDER = Path(__file__).resolve().parents[1] / "ledgers"

# Markers in docs/trust/index.md, replaced by tables and the list of wrong claims.
ANSWERS, SUMMARY, WRONG = "<!-- answers -->", "<!-- summary -->", "<!-- wrong -->"
CALIBRATED = "<!-- calibrated -->"

REGISTERS, BANDS = "<!-- registers -->", "<!-- bands -->"

# Registered predictions: a folder for each, with register.json and, once it was measured, measured.csv.
REGISTERS_FOLDER = Path(__file__).resolve().parents[1] / "registers"

# Name of the record of the calibrated example cluster.
CALIBRATION = "calibration"

# A longer list of wrong rows is cut. The study prints all.
ROWS_MAX = 60

# Kinds of answers and the groups of held-out rows that test each: study → groups. No group means all.
KINDS: dict[str, dict[str, tuple[str, ...]]] = {
    "capacity and stored bytes": {
        "erasurebench2016": ("storage (Table I)", "storage_overhead", "base64_overhead"),
    },
    "bytes that devices move": {
        "ceph16": ("device_data_write", "device_read", "device_write"),
        "releases": ("device_data_write", "device_read", "device_write"),
        "s3": ("device_data_write", "device_read", "device_write"),
        "koh2017": ("device traffic",),
        "ecfault2024": ("write amplification",),
    },
    "bytes between hosts": {
        "ceph16": ("private_net",),
        "releases": ("private_net",),
        "s3": ("private_net", "osd_net"),
        "koh2017": ("private network", "private_net_over_overwrite"),
    },
    "latency": {
        "koh2017": ("latency",),
        "exstorus2019": ("step times", "shares"),
        "erasurebench2016": ("write latency (Figure 3)", "median_write_latency_httpd_100nodes"),
        "nvme": ("latency_mean_ms",),
    },
    "p99 past saturation": {"nvme": ("latency_p99_ms",)},
    "throughput": {
        "ceph16": ("first_over_second",),
        "koh2017": ("throughput", "random over sequential", "convergence_time"),
        "erasurebench2016": (
            "throughput (Figure 5)", "httpd written and read (Figure 6)", "replay (Figure 7)",
        ),
        "exstorus2019": ("codes",),
        "nvme": ("iops", "mb_s"),
    },
    "rates by cores per OSD": {"cores": ("iops",)},
    "cores that an OSD uses": {"cores": ("cores_used",)},
    "rates and cores of object gateways": {
        "s3": (
            "throughput", "ratio of throughput",
            "cores per RGW (48 RGWs)", "ratio of cores per RGW (48 RGWs)",
        ),
    },
    "operations and transactions of object requests": {"s3": ("operations", "transactions")},
    "speed of encoding and decoding": {
        "dachary2013": (
            "decode1_time_1GiB", "decode2_time_1GiB", "encode_time_1GiB", "example_decode_rate",
            "example_encode_rate", "recover2_rate_body",
        ),
    },
    "CPU time and context switches": {
        "ceph16": ("cpu_us_per_op", "context_switches_per_op"),
        "releases": ("context_switches_per_op",),
        "koh2017": (
            "CPU utilisation", "context switches", "cpu_lower_than_overwrite",
            "ctx_switch_lower_than_overwrite",
        ),
    },
    "availability after losses": {"erasurebench2016": ("availability (Figure 4)",)},
    "time to recover": {
        "ecfault2024": ("effects on recovery time", "checking_period_share"),
        "recovery": (
            "recovery_rate", "recovery_rate_ratio", "recovery_time", "repair_time_ratio", "repair_time_saved",
        ),
        "changes": ("time until clean",),
    },
    "bytes that a repair moves": {"recovery": ("repair_bytes_ratio", "repair_network_ratio")},
    "bytes that a planned change moves": {"changes": ("bytes of a change", "shards that move")},
    "clients while recovering": {"recovery": ("acknowledgement", "client_iops", "client_latency_mean")},
    "clients' latency ratio in a planned change": {"changes": ("clients during a change",)},
    "nines of durability": {"durability": ()},
}  # fmt: skip

# The system that each study measured.
SYSTEMS = {
    "ceph16": "Ceph 16.2",
    "releases": "Ceph 14.2 to 20.2",
    "koh2017": "Ceph 11.2",
    "ecfault2024": "Ceph with injected faults",
    "exstorus2019": "ExSTorus-FS",
    "erasurebench2016": "key-value store",
    "dachary2013": "codecs of Ceph",
    "durability": "mlec-sim and formulas",
    "recovery": "Ceph 16 to 18 under schedulers",
    "nvme": "Ceph 16 to 20 on NVMe",
    "changes": "Ceph 14.2 to 20.2",
    "s3": "Ceph RGW",
    "cores": "Ceph 16.2 on NVMe, pinned OSDs",
}


def recorded() -> dict[str, dict[str, Any]]:
    """Read the recorded ledgers in the order of the command line."""
    ledgers = {}
    for name in studies():
        path = FOLDER / f"{name}.json"
        if path.exists():
            ledgers[name] = json.loads(path.read_text(encoding="utf-8"))
    return ledgers


def _percent(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f} %" if value < 1 else f"{value:.0f} %"


def summary() -> str:
    """Return a table with one row per study: right held-out claims and fitted numbers."""
    rows: list[tuple[object, ...]] = []
    for name, ledger in recorded().items():
        total = ledger["summary"]
        rank = total["spearman"]
        rows.append((
            f"[{name}](#{name})", f"**{total['right']} of {total['held_out']}**", total["wrong"],
            total["not_derivable"], total["fitted_parameters"], _percent(total["median_error_percent"]),
            _percent(total["mape_percent"]), "–" if rank is None else f"{rank:.2f}",
            f"{ledger['version']}, {ledger['date']}",
        ))  # fmt: skip
    missing = [name for name in studies() if name not in recorded()]
    note = f"\nNot recorded yet: {', '.join(map(code, missing))}.\n" if missing else ""
    heads = ("study", "held-out claims right", "wrong", "not derivable", "fitted numbers", "median error",
             "mean error", "rank correlation", "recorded with")  # fmt: skip
    return table(heads, rows) + note


def calibrated() -> str:
    """Return a table of the rates of the example cluster before and after calibration."""
    path = FOLDER / f"{CALIBRATION}.json"
    if not path.exists():
        return "Not recorded yet.\n"
    document = json.loads(path.read_text(encoding="utf-8"))
    rates = [row for row in document["rows"] if row["id"].endswith((":iops", ":mb_s"))]
    rows = []
    for role, words in (
        ("calibration", "fitted: 2-replication"),
        ("held-out", "held out: RS(2,1)"),
    ):
        own = [row for row in rates if row["role"] == role]
        cells = [words, len(own)]
        for moment in ("before", "after"):
            ratios = [row[moment] / row["published"] for row in own]
            right = sum(abs(ratio - 1) <= 0.25 for ratio in ratios)
            worst = max(ratios, key=lambda ratio: max(ratio, 1 / ratio))
            cells += [f"{right} of {len(own)}", f"{worst:.1f} ×"]
        rows.append(tuple(cells))
    heads = (
        "rates of",
        "rows",
        "within 25 %, before",
        "worst, before",
        "within 25 %, after",
        "worst, after",
    )
    return table(heads, rows)


def bands() -> str:
    """Return a table of the held-out errors that give the intervals of predictions their width."""
    rows = []
    for calibrated, words in ((True, "calibrated"), (False, "never measured before")):
        for error in error_bands(calibrated=calibrated):
            rows.append((
                words, error.kind, "any" if error.band == ALL_BANDS else error.band, error.rows,
                error.clusters, _percent(error.median_error_percent), f"{error.low:.2f} to {error.high:.2f}",
            ))  # fmt: skip
    heads = ("cluster", "kind of row", "busiest resource", "rows", "clusters", "median error",
             "measured over simulated")  # fmt: skip
    return table(heads, rows)


def registers() -> str:
    """Return a table of the registered predictions that ship, with their scores by kind and band."""
    rows: list[tuple[object, ...]] = []
    for folder in sorted(path for path in REGISTERS_FOLDER.iterdir() if path.is_dir()):
        rows += _register_rows(folder)
    heads = ("prediction", "registered", "kind of row", "busiest resource", "in the interval",
             "median error", "worst")  # fmt: skip
    return table(heads, rows)


def scored_registers() -> list[Path]:
    """Return the folders of registered predictions that were measured."""
    return sorted(path.parent for path in REGISTERS_FOLDER.glob("*/measured.csv"))


def _register_rows(folder: Path) -> Iterator[tuple[object, ...]]:
    """Yield the lines of one registered prediction."""
    link = f"[{folder.name}](../registers/{folder.name}.md)"
    register = folder / "register.json"
    measured = folder / "measured.csv"
    if not measured.exists():
        date = read_register(register)["registered"][:10]
        yield (link, date, "", "", "not measured yet", "", "")
        return
    scored = score(register, measured)
    date = scored.register["registered"][:10]
    for line in (scored.total, *scored.lines()):
        yield (
            link, date, line.kind, line.band, f"{line.inside} of {line.values}",
            _percent(line.median_error_percent), _percent(line.worst_error_percent),
        )  # fmt: skip
        link = date = ""


def _groups(kind: str) -> list[tuple[str, float, int]]:
    """Return study, mean error [%] and number of rows of each group that tests a kind of answer."""
    ledgers = recorded()
    groups = []
    for study, names in KINDS[kind].items():
        by_metric = (
            ledgers[study]["summary"]["mape_percent_by_metric"]
            if study in ledgers
            else {}
        )
        for name in names or by_metric:
            if name in by_metric:
                groups.append(
                    (study, by_metric[name]["mape_percent"], by_metric[name]["rows"])
                )
    return groups


def _mean(groups: Sequence[tuple[str, float, int]]) -> str:
    return _percent(
        sum(error * rows for _, error, rows in groups)
        / sum(rows for *_, rows in groups)
    )


def kinds() -> str:
    """Return a table with one row per kind of answer: mean error on held-out rows, also by system."""
    lines: list[tuple[object, ...]] = []
    for kind in KINDS:
        groups = _groups(kind)
        systems = [
            f"{SYSTEMS[study]} {_mean([group for group in groups if group[0] == study])}"
            for study in dict.fromkeys(study for study, *_ in groups)
        ]
        rows = sum(count for *_, count in groups)
        lines.append(
            (kind, _mean(groups) if rows else "not tested", rows, ", ".join(systems))
        )
    return table(("kind of answer", "mean error", "rows", "by system"), lines)


def in_short() -> str:
    """Return a table of mean error and number of rows per kind of answer, for the README."""
    rows = []
    for kind in KINDS:
        groups = _groups(kind)
        if groups:
            rows.append((kind, _mean(groups), sum(count for *_, count in groups)))
    return table(("answer", "mean error", "held-out rows"), rows)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " … ".join(number(part) for part in value)
    return number(value) if isinstance(value, int | float) else str(value or "–")


def _study(name: str, ledger: dict[str, Any]) -> str:
    total = ledger["summary"]
    parts = [f"### {name}\n"]
    by_metric = total["mape_percent_by_metric"]
    if by_metric:
        rows = [
            (metric, row["rows"], _percent(row["mape_percent"]))
            for metric, row in by_metric.items()
        ]
        parts.append("Mean error over held-out rows, by metric:\n")
        parts.append(table(("metric", "rows", "mean error"), rows))
    bad = ledger["not_right"]
    parts.append(f"Held-out claims that are not right: {len(bad)}.\n")
    rows_bad = [
        (
            code(claim["id"]), claim["statement"], claim["published_text"],
            claim["simulated_text"] or _shown(claim["simulated"]), claim["reason"] or claim["verdict"],
        )
        for claim in bad[:ROWS_MAX]
    ]  # fmt: skip
    if rows_bad:
        parts.append(
            table(
                (
                    "claim",
                    "statement of the source",
                    "published",
                    "simulated",
                    "verdict",
                ),
                rows_bad,
            )
        )
    if len(bad) > ROWS_MAX:
        parts.append(f"… and {len(bad) - ROWS_MAX} more: `stripesim study {name}`.\n")
    return "\n".join(parts)


def wrong() -> str:
    """Return, by study, every held-out claim that is wrong or could not be derived."""
    return "\n".join(_study(name, ledger) for name, ledger in recorded().items())


def error(study: str, group: str) -> str:
    """Return the mean error of a study's held-out rows of one group, for the page of a model."""
    ledger = recorded().get(study)
    if ledger is None:
        return f"not recorded (study {code(study)})"
    error_of_group = ledger["summary"]["mape_percent_by_metric"].get(group)
    if error_of_group is None:
        have = ", ".join(ledger["summary"]["mape_percent_by_metric"])
        raise ValueError(
            f"docs: error {study} {group}: got no such group, wanted one of {have}"
        )
    count = error_of_group["rows"]
    rows = f"{count} held-out rows" if count > 1 else "one held-out row"
    error_percent = _percent(error_of_group["mape_percent"])
    return f"mean error {error_percent} over {rows} of [{study}](../trust/index.md#{study})"
