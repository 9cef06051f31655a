"""Each command of the README runs as written, with smaller sizes where it would take long."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import stripesim
from stripesim.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

# Options that shorten a command without changing its kind.
SMALL = {
    "plan plan": [
        *("--set", "workload.requests=100", "--set", "plan.replications=2"),
        *("--set", "plan.simulated_max=1"),
    ],
    "sweep quickstart": ["--set", "workload.requests=100", "--jobs", "1"],
    "load quickstart": ["--requests", "100", "--jobs", "1"],
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


@pytest.mark.usefixtures("two_replications", "quick_rebuilds")
@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_readme_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = [
        option
        for start, options in SMALL.items()
        if command.startswith(start)
        for option in options
    ]
    done = CliRunner().invoke(app, [*shlex.split(command), *more])
    assert done.exit_code == 0, f"stripesim {command}\n{done.stderr[-2000:]}"
    assert done.stdout.strip(), f"stripesim {command} printed no output"
    outside = re.findall(r"outside the calibrated range.*", done.stderr)
    if command.startswith(("plan ", "load ")):
        # These simulate Poisson arrivals. The README states that closed loops alone were checked.
        assert "Poisson arrivals" in README
        outside = [line for line in outside if "workload.kind" not in line]
    assert outside == []


def test_the_python_example_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    example = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert example is not None and len(example[1].strip().splitlines()) <= 12
    assert '"requests": 20000' in example[1]
    shorter = example[1].replace('"requests": 20000', '"requests": 4000')
    results = []

    def run_and_keep(scenario: stripesim.Scenario) -> stripesim.ScenarioResult:
        results.append(run(scenario))
        return results[-1]

    run = stripesim.run
    monkeypatch.setattr(stripesim, "run", run_and_keep)
    exec(compile(shorter, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.count("rs:4,2") == 3
    # The scenario of the example is inside the calibrated range, too.
    (result,) = results
    assert not result.warnings


def test_files_that_the_readme_names_are_there() -> None:
    named = set(
        re.findall(
            r"`((?:models|sim|scenarios|calibration|traces|docs|notebooks)/[\w./-]+)`",
            README,
        )
    )
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
