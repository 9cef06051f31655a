"""What Python in a browser has suffices: no Numba, no machine code, no processes and no threads."""

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
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


def test_the_page_of_the_guide_shows_rates_and_latencies():
    guide = Path(__file__).resolve().parents[2] / "docs/howto/pyodide.md"
    page = guide.read_text("utf-8")
    (text,) = re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)
    (code,) = re.findall(r"runPython\(`(.*?)`\)", page, re.DOTALL)
    assert 'engine="simpy"' in code
    *statements, answer = ast.parse(textwrap.dedent(code)).body
    names = {"text": text}
    exec(compile(ast.Module(statements, []), "page", "exec"), names)
    # Pyodide returns the last expression.
    shown = eval(compile(ast.Expression(answer.value), "page", "eval"), names)
    # Two schemes, sequential and random writes: all columns are whole and none is left out.
    assert "…" not in shown
    for column in ("iops", "latency_mean_ns", "latency_p99_ns", "bottleneck"):
        assert column in shown
    for rate in names["run"].rows["iops"]:
        assert f"{rate:.6f}" in shown
