"""Say what `make demo` simulates, and how well it fits the published numbers when they were last judged."""

from __future__ import annotations

import json

import stripesim
from generate.trust import FOLDER

STUDY = "koh2017"


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


if __name__ == "__main__":
    print("\n".join(lines()), flush=True)
