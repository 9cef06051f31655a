"""The TOML blocks of the how-to pages load, and the commands of marked blocks run.

A block that the page asks its reader to save is a scenario. An HTML comment above any other TOML block says
what it is:

- ``<!-- scenario: whole -->``: a scenario.
- ``<!-- scenario: add to NAME -->``: keys of a scenario of the page, of a sample, or of a shipped one.
- ``<!-- scenario: calibrate -->``: the scenario beside measurements for `stripesim calibrate`.
- ``<!-- parameter set: like NAME -->``: numbers of a parameter set, the others as in a shipped one.
- ``<!-- pyproject.toml -->``: keys of a Python package.

``<!-- runs -->`` above a block of commands runs them in a folder with the page's files and samples;
``<!-- runs with OPTIONS -->`` adds options, such as fewer requests. `test_docs.py` parses all commands.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stripesim.cli import app as cli
from stripesim.models.coding import own_files
from stripesim.scenarios.answers.calibrate.fio_output import fio_runs
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.clusters.cluster import import_cluster
from stripesim.scenarios.clusters.scenario import (
    chosen_pools,
    scenario_of,
    write_scenario,
)
from stripesim.scenarios.schema.loader import shipped_scenarios
from stripesim.scenarios.schema.scenario import scenario_from

pytestmark = pytest.mark.usefixtures("quick_rebuilds")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted((DOCS / "howto").glob("*.md"))
SHIPPED = ROOT / "scenarios"
SETS = ROOT / "calibration" / "parameters"
REPORT = ROOT / "tests" / "unit" / "data" / "ceph16-report.json"

if str(DOCS) not in sys.path:
    sys.path.append(str(DOCS))
from generate import commands, stage  # noqa: E402

TOML = re.compile(
    r"(?:<!-- ([^\n]+) -->\n)?^```toml\n(.*?)^```", flags=re.MULTILINE | re.DOTALL
)
RUNS = re.compile(
    r"<!-- runs(?: with ([^\n]+))? -->\n\n?((?:    [^\n]*\n)+|```console\n.*?^```)",
    flags=re.MULTILINE | re.DOTALL,
)
TOML_BLOCKS = [
    pytest.param(page, *block.groups(), id=f"{page.stem}:{number}")
    for page in PAGES
    for number, block in enumerate(TOML.finditer(page.read_text("utf-8")), start=1)
]
RUN_BLOCKS = [
    pytest.param(page, *block.groups(), id=f"{page.stem}:{number}")
    for page in PAGES
    for number, block in enumerate(RUNS.finditer(page.read_text("utf-8")), start=1)
]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that pages expect their reader to have."""
    folder = tmp_path_factory.mktemp("samples")
    # Ten reads of a Windows trace, 1 ms apart.
    lines = (
        f"{128166372000000000 + 10000 * n},host,0,Read,{4096 * n},4096,1000\n"
        for n in range(10)
    )
    (folder / "my-trace.csv").write_text("".join(lines), encoding="utf-8")
    shutil.copy(SETS / "nvme-tlc.toml", folder / "drive.toml")
    cluster = import_cluster([REPORT])
    (pool,) = chosen_pools(cluster, ["reps"])
    imported = scenario_of(cluster, pool, "mine.crush.txt")
    write_scenario(imported, folder / "mine.toml")
    # As `stripesim calibrate` writes it: the set and its drive in one file.
    drive = (SETS / "samsung-pm983.toml").read_text("utf-8")
    whole = joined((SETS / "nvme.toml").read_text("utf-8"), drive)
    (folder / "parameters.toml").write_text(whole, encoding="utf-8")
    shutil.copy(SETS / "nvme_read_factors.csv", folder)
    return folder


@pytest.fixture
def folder(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the samples. Codes of other files are forgotten."""
    for name in ("_families", "_loaded"):
        monkeypatch.setattr(own_files, name, {})
    monkeypatch.setattr(own_files, "_noted", [])
    shutil.copytree(samples, tmp_path, dirs_exist_ok=True)
    return tmp_path


def joined(first: str, second: str) -> str:
    """Join two sets whose tables differ: keys before the first table of the second are left out."""
    tables = second[second.index("\n[") :]
    names = set(re.findall(r"^\[([\w.]+)\]", first, flags=re.MULTILINE))
    assert not names & set(re.findall(r"^\[([\w.]+)\]", tables, flags=re.MULTILINE))
    return first + tables


def merged(base: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Merge tables, key by key. Other values of the second replace those of the first."""
    result = dict(base)
    for key, value in added.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def file_named(name: str, folder: Path) -> Path:
    """Return a file of the page or a sample, or else a shipped scenario."""
    if (folder / name).exists():
        return folder / name
    assert name in shipped_scenarios(), name
    return SHIPPED / f"{name}.toml"


@pytest.mark.parametrize(("page", "mark", "body"), TOML_BLOCKS)
def test_a_toml_block_is_what_the_page_says(
    folder: Path, page: Path, mark: str | None, body: str
) -> None:
    text = page.read_text("utf-8")
    stage.save_files(text, folder)
    values = tomllib.loads(body)
    is_saved = body in [saved[2] for saved in stage.SAVED.finditer(text)]
    kind, _, what = (mark or "").partition(": ")
    name = what.removeprefix("add to ").partition(",")[0]
    if is_saved or what.startswith("whole"):
        scenario_from(values, base_dir=folder)
    elif mark == "scenario: calibrate":
        check_calibrates(folder / "measured", body)
    elif kind == "scenario" and what.startswith("add to "):
        # A page may add to a scenario that another page describes.
        stage.save_files((DOCS / "howto" / "cluster.md").read_text("utf-8"), folder)
        base = tomllib.loads(file_named(name, folder).read_text("utf-8"))
        build_models(scenario_from(merged(base, values), base_dir=folder))
    elif kind == "parameter set":
        check_parameters(folder, what.removeprefix("like "), values)
    else:
        assert mark == "pyproject.toml", "say in a comment what the block is"


def check_calibrates(measured: Path, scenario: str) -> None:
    """Check that a scenario can be calibrated by a fio output of each of its schemes."""
    measured.mkdir()
    (measured / "cluster.toml").write_text(scenario, encoding="utf-8")
    options = {"rw": "randread", "bs": "4k", "iodepth": "1", "numjobs": "1"}
    read = {"iops": 3000.0, "lat_ns": {"mean": 1e9 / 3000}}
    output = json.dumps({"jobs": [{"job options": options, "read": read}]})
    for scheme in tomllib.loads(scenario)["schemes"]:
        name = re.sub(r"\W", "-", scheme)
        (measured / f"{name}-randread.json").write_text(output, encoding="utf-8")
    for run in fio_runs(measured):
        row = run.simulate(lambda models: models, rounds=2)[run.row.id]
        assert row.metrics["iops"] > 0


def check_parameters(folder: Path, like: str, values: Mapping[str, Any]) -> None:
    """Check that numbers replace those of a shipped set of drives."""
    shipped = tomllib.loads((SETS / f"{like}.toml").read_text("utf-8"))
    assert values["ssd"].keys() <= shipped["ssd"].keys()
    for number in values["ssd"].values():
        assert number.keys() >= {"value", "provenance", "source"}


def test_every_command_of_the_pages_is_parsed_and_some_run() -> None:
    shown = [text for page in PAGES for text in commands.in_page(page.read_text())]
    assert len(shown) > 30
    assert len(RUN_BLOCKS) >= 6


@pytest.mark.usefixtures("quick_figures")
@pytest.mark.parametrize(("page", "options", "block"), RUN_BLOCKS)
def test_a_marked_block_runs(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    page: Path,
    options: str | None,
    block: str,
) -> None:
    stage.save_files(page.read_text("utf-8"), folder)
    monkeypatch.chdir(folder)
    runs = commands.in_page(block)
    assert runs
    for command in runs:
        words = shlex.split(f"{command} {options or ''}")
        done = CliRunner().invoke(cli.app, words)
        assert done.exit_code == 0, f"{command}\n{done.output[-1500:]}"


def test_the_dask_commands_of_the_cluster_page_are_parsed_by_dask() -> None:
    scheduler = pytest.importorskip("distributed.cli.dask_scheduler")
    worker = pytest.importorskip("distributed.cli.dask_worker")
    text = (DOCS / "howto" / "dask-cluster.md").read_text("utf-8")
    lines = re.sub(r" *\\\n\s*", " ", text).splitlines()
    # In a terminal, as a step of Slurm, and in the container of a pod.
    shown = [
        shlex.split(line.removesuffix("&"))
        for line in lines
        if re.match(r"(\$ |srun .*)?dask (scheduler|worker) ", line)
    ]
    (manifest,) = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    objects = list(pytest.importorskip("yaml").safe_load_all(manifest))
    deployments = [one["spec"] for one in objects if one["kind"] == "Deployment"]
    for spec in deployments:
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
        (container,) = spec["template"]["spec"]["containers"]
        shown.append(container["args"])
    assert len(shown) == 6
    programs = {"scheduler": scheduler.main, "worker": worker.main}
    for words in shown:
        start = words.index("dask")
        name, *arguments = words[start + 1 :]
        parsed = programs[name].make_context(name, arguments).params
        assert name == "scheduler" or parsed["nthreads"] == 1
