"""What Python in a browser has suffices: no Numba, no machine code, no processes and no threads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stripesim

#: Modules that Pyodide lacks, and libraries without a version for it.
MISSING = [
    *("numba", "llvmlite", "pyeclib", "dask", "distributed", "_multiprocessing"),
    *("curses", "fcntl", "pwd", "resource", "syslog", "termios"),
]
SETS = {"schemes": ["rs:4,2"], "workload.requests": 100}
DEPTHS = [1, 2]
STATEMENTS = f"""
import json, os, subprocess, sys, threading
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {MISSING!r}:
            raise ModuleNotFoundError(name)

def refuse(*_, **__):
    raise RuntimeError("this Python has no processes and no threads")

sys.meta_path.insert(0, Missing())
os.fork = subprocess.Popen = threading.Thread.start = refuse

import stripesim

result = stripesim.run("quickstart", sets={SETS!r}, engine="simpy")
swept = stripesim.sweep(
    "quickstart", {{"workload.queue_depth": {DEPTHS!r}}}, sets={SETS!r}, engine="simpy"
)
try:
    stripesim.run("quickstart", sets={SETS!r})
except ValueError as error:
    refused = str(error)
answers = [result.completions_sha256, swept.rows["iops"].to_list(), refused]
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers():
    # A browser has no prebuilt kernels either.
    done = subprocess.run(
        [sys.executable, "-c", STATEMENTS],
        env={**os.environ, "STRIPESIM_KERNELS": "compile"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_run_without_machine_code_completes_at_the_same_nanoseconds(answers):
    compiled = stripesim.run("quickstart", sets=SETS)
    assert answers[0] == compiled.completions_sha256


def test_a_sweep_without_processes_has_the_same_rows(answers):
    alone = [
        stripesim.run("quickstart", sets={**SETS, "workload.queue_depth": depth})
        for depth in DEPTHS
    ]
    rates = [rate for one in alone for rate in one.rows["iops"].to_list()]
    assert sorted(answers[1]) == pytest.approx(sorted(rates), rel=1e-12)


def test_the_compiled_engine_says_what_it_lacks(answers):
    assert answers[2].startswith("numba: got no installation")
    assert "engine simpy" in answers[2]


def test_the_guide_names_the_engine_of_a_browser():
    page = Path(__file__).resolve().parents[2] / "docs/howto/pyodide.md"
    assert 'engine="simpy"' in page.read_text("utf-8")
