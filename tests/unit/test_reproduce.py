"""`stripesim cite RUN_DIR --verify` repeats an answer and compares its rows or values by a hash."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import stripesim
from stripesim._version import __version__
from stripesim.scenarios.answers.load import curves
from stripesim.scenarios.answers.load.rate_runs import (
    RateMeasurement,
    RateRun,
    measure_rate,
)
from stripesim.scenarios.answers.rehearse import samples
from support.messages import states

pytestmark = pytest.mark.usefixtures("quick_figures")

Command = Callable[..., tuple[int, str, str]]
LOAD = (
    "requests = 64\nops = ['write']\npatterns = ['rand']\nblock_sizes_bytes = [4096]\n"
)
# Short enough queues for the audit, so that no run is lengthened.
SHALLOW = f"{LOAD}queue_depth = 4\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "paper.toml"
    path.write_text(f"schemes = ['rep:3']\nseed = 7\n[workload]\n{SHALLOW}")
    return path


def test_a_run_is_reproduced_with_its_seed_and_engine(
    scenario: Path, tmp_path: Path, command: Command
) -> None:
    out = tmp_path / "out"
    command("run", scenario, "--out", out, "--engine", "simpy")
    status, printed, _ = command("cite", out, "--verify", "--json", "-")
    document = json.loads(printed)
    assert status == 0
    assert document["equal"]
    assert document["sha256"]["stored"] == document["sha256"]["again"]
    assert document["rows"] == 1


def test_a_sweep_is_reproduced_with_its_points(
    scenario: Path, tmp_path: Path, command: Command
) -> None:
    out = tmp_path / "out"
    over = "workload.queue_depth=1,2"
    zipped = ["--zip=cluster.pg_num=8,16", "--zip=cluster.osds_per_host=2,3"]
    command("sweep", scenario, "--over", over, *zipped, "--jobs", 1, "--out", out)
    status, printed, _ = command("cite", out, "--verify")
    assert status == 0
    assert "the rows are equal (4)" in printed


def test_a_changed_seed_beside_the_configuration_is_named(
    scenario: Path, tmp_path: Path, command: Command
) -> None:
    # Given a run with seed 7, whose provenance states another one
    out = tmp_path / "out"
    command("run", scenario, "--no-costs", "--out", out)
    file = out / "provenance.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"seed": 8}))
    # When it is repeated with the seed of its configuration
    status, printed, _ = command("cite", out, "--verify")
    # Then the rows are equal, and the other seed is named.
    assert status == 0
    assert states(printed, "seed: ... states 8 ... 7")


def test_a_sweep_over_listed_points_is_reproduced(
    scenario: Path, tmp_path: Path, command: Command
) -> None:
    points = [{"workload.queue_depth": 1}, {"workload.queue_depth": 2}]
    stripesim.sweep(scenario, list=points, jobs=1, out=tmp_path / "out")
    status, printed, err = command("cite", tmp_path / "out", "--verify")
    assert status == 0, printed + err


def test_a_run_with_a_code_of_ones_own_is_reproduced_where_its_file_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "cauchy.py").write_text(
        """\
from stripesim.codes import cauchy_matrix


class Cauchy:
    form = "cauchy:k,m"
    costs_as = "rs:4,2"

    def __init__(self, k, m):
        self.k, self.m = k, m

    def generator(self):
        return cauchy_matrix(self.k, self.m)
"""
    )
    own = f"schemes = ['cauchy:2,1']\ncodes = ['cauchy.py']\n[workload]\n{LOAD}"
    (tmp_path / "own.toml").write_text(own)

    def asked(*words: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        # A process of its own: this one would know the code from the first command.
        arguments = [sys.executable, "-m", "stripesim", *words]
        return subprocess.run(
            arguments, cwd=folder, capture_output=True, text=True, check=False
        )

    asked("run", "own.toml", "--no-costs", "--out", "out")
    repeated = asked("cite", "out", "--verify")
    elsewhere = asked("cite", ".", "--verify", folder=tmp_path / "out")
    with (tmp_path / "cauchy.py").open("a") as file:
        file.write("\n# Another content\n")
    changed = asked("cite", "out", "--verify")

    assert "the rows are equal (1)" in repeated.stdout
    assert "cauchy.py" not in repeated.stdout
    assert "cauchy.py has changed" in changed.stdout
    assert elsewhere.returncode == 2
    assert "codes: got cauchy.py, wanted a file where it was" in elsewhere.stderr


def test_a_table_that_a_spreadsheet_has_saved_is_the_same(
    scenario: Path, tmp_path: Path, command: Command
) -> None:
    # Given rows with a byte order mark and other ends of lines
    out = tmp_path / "out"
    command("run", scenario, "--out", out)
    table = out / "results.csv"
    lines = table.read_text().splitlines()
    table.write_text("\r\n".join(lines), encoding="utf-8-sig", newline="")
    # When they are simulated again, then they are equal.
    status, printed, _ = command("cite", out, "--verify", "--json", "-")
    assert (status, json.loads(printed)["equal"]) == (0, True)


def test_a_changed_number_is_found(
    scenario: Path, tmp_path: Path, command: Command
) -> None:
    out = tmp_path / "out"
    command("run", scenario, "--out", out)
    table = out / "results.csv"
    head, row = table.read_text().splitlines()
    place = head.split(",").index("iops")
    values = row.split(",")
    values[place] = "12345"
    table.write_text(f"{head}\n{','.join(values)}\n")
    status, printed, _ = command("cite", out, "--verify")
    assert status == 1
    assert "row 0: iops: stored 12345, again " in printed
    assert "pip install" not in printed
    # Given rows of another version, which is not wrong because it differs
    provenance = out / "provenance.json"
    text = provenance.read_text("utf-8")
    older = text.replace(f'"stripesim": "{__version__}"', '"stripesim": "0.3.0"')
    provenance.write_text(older, "utf-8")
    # Then the answer names the version to compare with
    _, printed, _ = command("cite", out, "--verify")
    assert "pip install stripesim==0.3.0" in printed


DURABILITY = """
schemes = ["rs:4,2"]
[durability]
placement = "clustered"
drives = 60
drive_bytes = "4TB"
afr = 0.02
repair_bytes_per_s = "100MB"
"""
REHEARSAL = """
schemes = ["rep:3"]
[cluster]
hosts = 4
osds_per_host = 1
pg_num = 8
drive_bytes = "1TB"
stored_bytes = "10GB"
[workload]
kind = "open"
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
image_bytes = "1GiB"
rate_per_s = 50
[[changes]]
kind = "out"
osds = [0]
"""
PLAN = """
schemes = ["rep:3"]
[cluster]
pg_num = 32
drive_bytes = "1TB"
[workload]
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
requests = 200
image_bytes = "1GiB"
[plan]
hosts = [4]
osds_per_host = [2]
usable_bytes = "1TB"
rate_per_s = 100.0
p99_ms = 20.0
simulated_max = 1
replications = 2
[plan.prices]
host = 9000.0
drive_per_tb = 95.0
"""
VMS = f"schemes = ['rep:3']\n[workload]\nvms = 1\nvm_queue_depth = 1\n{LOAD}"
ANSWERS = {
    "vms": (VMS, ["--vms", "--p99", "400us", "--jobs", 1]),
    "load": (f"schemes = ['rep:3']\n[workload]\n{SHALLOW}", ["--requests", 100, "--p99", "5ms", "--jobs", 1]),
    "plan": (PLAN, []),
    "rehearse": (REHEARSAL, []),
    "durability": (DURABILITY, ["--method", "splitting", "--walks", 20]),
}  # fmt: skip


def answered(name: str, tmp_path: Path, command: Command) -> Path:
    text, options = ANSWERS[name]
    path = tmp_path / "asked.toml"
    path.write_text(text)
    out = tmp_path / "out"
    command("load" if name == "vms" else name, path, *options, "--out", out)
    return out


@pytest.mark.usefixtures("two_replications")
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_reproduced(
    name: str, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "SHARDS_MAX", 200)
    out = answered(name, tmp_path, command)
    status, printed, err = command("cite", out, "--verify")
    assert status == 0, printed + err
    assert "values are equal" in printed
    # Then it can be cited, too.
    status, printed, err = command("cite", out)
    assert status == 0, printed + err
    assert "@misc{stripesim," in printed


@pytest.mark.usefixtures("two_replications")
def test_load_curves_from_python_are_reproduced_with_their_requests(
    scenario: Path, tmp_path: Path, command: Command
) -> None:
    listed = stripesim.load_curves(scenario, requests=100, jobs=1)
    listed.answer.save(tmp_path / "out")
    status, printed, err = command("cite", tmp_path / "out", "--verify")
    assert status == 0, printed + err


@pytest.mark.usefixtures("two_replications")
@pytest.mark.parametrize("most_per_s", [0, 100_000])
@pytest.mark.parametrize("unchecked", [False, True])
def test_load_curves_with_refused_points_are_reproduced(
    unchecked: bool,
    most_per_s: float,
    scenario: Path,
    tmp_path: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given an audit that refuses all open runs past some rate, in this process
    def measure(run: RateRun) -> RateMeasurement:
        measured = measure_rate(run)
        is_refused = sum(run.rates_per_s) > most_per_s
        return replace(measured, refused="too fast" if is_refused else None)

    monkeypatch.setattr(curves, "measure_rate", measure)
    monkeypatch.setattr(curves, "workers_wanted", lambda _: 1)
    stored = stripesim.load_curves(scenario, requests=100, unchecked=unchecked).answer
    assert stored.refusals
    stored.save(tmp_path / "out")
    status, printed, err = command("cite", tmp_path / "out", "--verify")
    assert status == 0, printed + err


def test_a_changed_value_of_an_answer_is_found(
    tmp_path: Path, command: Command
) -> None:
    out = answered("durability", tmp_path, command)
    stored = out / "durability.json"
    document = json.loads(stored.read_text())
    document["rows"][0]["mttdl_hours"] = 1
    stored.write_text(json.dumps(document))
    status, printed, _ = command("cite", out, "--verify")
    assert status == 1
    assert "\nrows[0].mttdl_hours: stored 1, again " in printed


@pytest.mark.usefixtures("two_replications")
@pytest.mark.parametrize("name", ["load", "durability"])
def test_an_answer_of_a_version_without_an_audit_is_computed_again(
    name: str, tmp_path: Path, command: Command
) -> None:
    out = answered(name, tmp_path, command)
    stored = out / f"{name}.json"
    document = json.loads(stored.read_text())
    # As 0.3.0 wrote it: no refusals
    document["provenance"]["stripesim"] = "0.3.0"
    document.pop("refusals", None)
    for row in document.get("rows", ()):
        del row["refused"]
    stored.write_text(json.dumps(document))
    status, printed, err = command("cite", out, "--verify")
    assert err == ""
    assert "(stored, stripesim 0.3.0)" in printed
    if name == "durability":
        assert status == 1
        assert "rows[0].refused: stored none, again null" in printed
    # A document without its answer is none.
    del document["rows" if name == "durability" else "curves"]
    stored.write_text(json.dumps(document))
    status, printed, err = command("cite", out, "--verify")
    assert (status, printed) == (2, "")
    assert "got a document without" in err


def test_refuses_a_folder_without_rows_and_one_of_another_command(
    tmp_path: Path, command: Command
) -> None:
    status, _, err = command("cite", "--verify")
    assert status == 2 and "got no RUN_DIR" in err
    status, _, err = command("cite", tmp_path, "--verify")
    assert status == 2 and "got no provenance.json" in err
    (tmp_path / "provenance.json").write_text('{"stripesim": "0.3.0"}')
    (tmp_path / "results.csv").write_text("")
    status, _, err = command("cite", tmp_path, "--verify")
    assert status == 2 and "provenance of another command" in err
