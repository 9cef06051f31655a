"""Every command that answers a question, on inputs that take a second or less."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from support.reports import report, write_report

_SMALL_CLUSTER = """
name = "{name}"
schemes = ["rs:4,2"]
generation = "quincy"
[cluster]
hosts = 8
osds_per_host = 2
pg_num = 32
cores_per_host = 16
drive_bytes = "100GB"
stored_bytes = "4GB"
op_queue = "fifo"
[workload]
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
image_bytes = "1GiB"
queue_depth = 2
"""

#: An OSD leaves, under a client load.
_CHANGES = """
duration_s = 5
[[changes]]
kind = "out"
osds = [5]
"""

#: Ten writes and reads of a disk, in the format of Koh et al.'s published traces.
_TRACE = "".join(
    f"{128166372003061629 + 10_000 * row},host,0,{op},{8192 * row},4096,{500 + row}\n"
    for row, op in enumerate(("Write", "Read") * 5)
)

#: fio's output of two jobs, each with two random reads in flight.
_FIO = {
    "jobs": [
        {
            "job options": {"rw": "randread", "bs": "4k", "iodepth": "2", "numjobs": "2"},
            "read": {"iops": 9000.0, "lat_ns": {"mean": 4.4e5}},
        }
    ]
}  # fmt: skip
#: A register that ships, and what was measured later.
_REGISTER = Path(__file__).parents[2] / "docs" / "registers" / "micron-and-sepia"

#: The names of all questions.
QUESTIONS = (
    "run",
    "run-faults",
    "sweep",
    "load",
    "plan",
    "durability",
    "rehearse",
    "explain",
    "trace-info",
    "import",
    "cite",
    "study",
    "predict",
    "score",
    "check",
)


@dataclass(frozen=True)
class Question:
    """The arguments of a command, and whether it takes ``--out`` and ``--report``."""

    words: tuple[str, ...]
    has_out: bool = True
    has_report: bool = False


def questions(folder: Path) -> dict[str, Question]:
    """Write the inputs into a folder and return one question for each command, by name."""
    changes = folder / "changes.toml"
    changes.write_text(
        _SMALL_CLUSTER.format(name="changes") + _CHANGES, encoding="utf-8"
    )
    trace = folder / "trace.csv"
    trace.write_text(_TRACE, encoding="utf-8")
    cluster = write_report(folder, report())
    small = folder / "small.toml"
    small.write_text(_SMALL_CLUSTER.format(name="small"), encoding="utf-8")
    measured = folder / "randread.json"
    measured.write_text(json.dumps(_FIO), encoding="utf-8")
    few = ("--set", "workload.requests=200")
    return {
        "run": Question(("run", "quickstart", *few), has_report=True),
        "run-faults": Question(
            ("run", "faults", "--set", "schemes=['rep:3']", "--no-costs"),
        ),
        "sweep": Question(
            (
                *("sweep", "quickstart", *few, "--jobs", "1"),
                *("--over", "workload.queue_depth=1,4"),
            ),
            has_report=True,
        ),
        "load": Question(
            (
                *("load", "quickstart", "--set", "schemes=['rep:3']"),
                *("--set", "workload.ops=write", "--requests", "200"),
                *("--jobs", "1", "--p99", "5ms"),
            ),
            has_report=True,
        ),
        "plan": Question(
            (
                *("plan", "plan", "--set", "plan.hosts=[6,8]"),
                *("--set", "schemes=['rep:3','rs:4,2']"),
                *("--set", "workload.requests=300", "--set", "plan.simulated_max=1"),
            ),
        ),
        "durability": Question(("durability", "durability", "--method", "markov")),
        "rehearse": Question(("rehearse", str(changes)), has_report=True),
        "explain": Question(
            ("explain", "write", "--scheme", "rs:4,2", "--size", "4k"),
            has_out=False,
        ),
        "trace-info": Question(("trace", "info", str(trace)), has_out=False),
        "import": Question(("import", "ceph-report", str(cluster)), has_out=False),
        "cite": Question(("cite",), has_out=False),
        "study": Question(("study", "dachary2013")),
        "predict": Question(
            (
                *("predict", str(small), *few),
                *("--register", str(folder / "register.json")),
            ),
        ),
        "score": Question(
            ("score", str(_REGISTER / "register.json"), str(_REGISTER / "measured.csv"))
        ),
        "check": Question(("check", str(small), str(measured))),
    }
