"""Fingerprints of all shipped scenarios on both engines, and of all studies' ledgers.

Run it before and after a change that should not change a number::

    python benchmarks/fingerprint.py --save before.json
    python benchmarks/fingerprint.py --against before.json

It uses only the command line, so it survives changes of the code's structure. ``--quick`` skips the ledgers
and the SimPy engine on the largest scenario.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

SCENARIOS = ("quickstart", "repair", "faults", "koh2017")
STUDIES = (
    "koh2017",
    "dachary2013",
    "ecfault2024",
    "exstorus2019",
    "erasurebench2016",
    "ceph16",
)
# The SimPy engine takes minutes for all of this scenario. A few blocks exercise the same paths.
SMALLER = {
    ("koh2017", "simpy"): [
        "--set",
        "workload.block_sizes_bytes=['16k']",
        "--set",
        "workload.requests=400",
    ]
}


def printed(*words: str) -> dict:
    """Return the JSON document that a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "stripesim", *words, "--json", "-"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(
            f"{' '.join(words)}: exit status {done.returncode}: {done.stderr.strip()}"
        )
    return json.loads(done.stdout)


def claims(document: dict) -> str:
    """Return a hash of a ledger: the simulated value of each claim, to nine digits, and its verdict."""
    rows = [
        [row["id"], rounded(row["simulated"]), row["verdict"]]
        for row in document["claims"]
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


def rounded(value: object) -> object:
    """Round numbers to nine significant digits, so that another BLAS makes no difference."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return [rounded(each) for each in value] if isinstance(value, list) else value


def main() -> None:
    """Collect the fingerprints, and save them or compare them with saved ones."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--quick", action="store_true")
    names = [
        f"run:{scenario}:{engine}"
        for scenario in SCENARIOS
        for engine in ("compiled", "simpy")
    ]
    names += [f"study:{study}" for study in STUDIES]
    parser.add_argument(
        "--only", nargs="+", choices=names, help="some fingerprints instead of all"
    )
    options = parser.parse_args()
    if options.quick:
        names = [
            name
            for name in names
            if not name.startswith("study:") and name != "run:koh2017:simpy"
        ]
    fingerprints: dict[str, str] = {}
    wrong = 0
    before = json.loads(options.against.read_text()) if options.against else {}
    for name in options.only or names:
        kind, subject, *engine = name.split(":")
        if kind == "run":
            smaller = SMALLER.get((subject, engine[0]), [])
            fingerprints[name] = printed(
                "run", subject, "--engine", engine[0], *smaller
            )["completions_sha256"][:16]
        else:
            fingerprints[name] = claims(printed("study", subject))
        verdict = ""
        if name in before:
            is_same = before[name] == fingerprints[name]
            verdict = "same" if is_same else f"was {before[name]}"
            wrong += not is_same
        print(f"{name:28} {fingerprints[name]} {verdict}", flush=True)
    if options.save:
        options.save.write_text(json.dumps(fingerprints, indent=1) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
