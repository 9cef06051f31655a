"""Each command of the README runs as written, with smaller sizes where it would take long."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

# Options that shorten a command without changing its kind.
SMALL = {
    "plan plan": [
        *("--set", "workload.requests=100", "--set", "plan.replications=2"),
        *("--set", "plan.simulated_max=1"),
    ],
    "sweep quickstart": ["--set", "workload.requests=100", "--jobs", "1"],
    "run faults": [
        *("--set", "workload.duration_s=5", "--set", "workload.image_bytes=1GiB"),
        *("--set", "faults.events=[{hosts=[2], at_s=2}]"),
    ],
}


def commands() -> list[str]:
    lines = re.findall(r"^(?: {4}|\$ )stripesim (.+)$", README, flags=re.MULTILINE)
    return [re.sub(r"\s+#.*$", "", line) for line in lines]


def test_the_readme_has_commands() -> None:
    assert len(commands()) >= 5


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_readme_runs(command: str, tmp_path: Path) -> None:
    more = [
        option
        for start, options in SMALL.items()
        if command.startswith(start)
        for option in options
    ]
    done = subprocess.run(
        [sys.executable, "-m", "stripesim", *shlex.split(command), *more],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"stripesim {command}\n{done.stderr[-2000:]}"
    assert done.stdout.strip()
    outside = re.findall(r"outside the calibrated range.*", done.stderr)
    if command.startswith("plan "):
        # A plan simulates Poisson arrivals. The README states that closed loops alone were checked.
        assert "Poisson arrivals" in README
        outside = [line for line in outside if "workload.kind" not in line]
    assert outside == []


def test_the_python_example_of_the_readme_runs(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert found is not None and len(found[1].strip().splitlines()) <= 12
    script = tmp_path / "example.py"
    # Its answer is inside of what the parameters were calibrated on.
    script.write_text(
        f"{found[1]}assert not stripesim.run(scenario).warnings\n", encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("rs:4,2") == 3


def test_files_that_the_readme_names_are_there() -> None:
    named = set(
        re.findall(
            r"`((?:models|sim|scenarios|calibration|traces|docs|notebooks)/[\w./-]+)`",
            README,
        )
    )
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
