"""The documentation is complete, its links lead somewhere, and the commands that it shows are commands."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stripesim import __version__, api, teach
from stripesim.cli import app as cli
from stripesim.models.problems import RefusedError
from stripesim.scenarios.schema.keys import ClusterSpec, WorkloadSpec
from stripesim.scenarios.schema.scenario import Scenario, load_scenario, parse_scenario
from stripesim.scenarios.show.quantities import QUANTITIES
from stripesim.sim.observe.audit import CHECKS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
STUDY_NOTES = sorted((ROOT / "scenarios").glob("*/README.md"))

if str(DOCS) not in sys.path:
    sys.path.append(str(DOCS))
from generate import (  # noqa: E402
    audit,
    commands,
    parameters,
    ran,
    readme,
    results,
    scenario,
    stage,
    trust,
)


def cells(page: str) -> set[str]:
    """Return the code in the first column of a page's tables."""
    return set(re.findall(r"^\| `([^`]+)`", page, flags=re.MULTILINE))


def test_every_scenario_key_is_in_the_reference() -> None:
    page = scenario.page("0")
    found = cells(page)
    for table in (Scenario, ClusterSpec, WorkloadSpec):
        tables = {
            name
            for name, field in table.model_fields.items()
            if "Spec" in str(field.annotation)
        }
        assert set(table.model_fields) - tables <= found
        assert all(
            any(f"{before}{name}]" in page for before in "[.") for name in tables
        )
    # Each key has a meaning, and defaults are there.
    assert all(key.get("description") for _, key in scenario.all_keys())
    assert re.search(
        r"\| `hosts` \| whole number ≥ 1, ≤ [\de+]+ or list of: table \| `4` \|", page
    )


def test_every_check_of_the_audit_is_in_its_catalogue() -> None:
    page = stage.filled((DOCS / "trust" / "audit.md").read_text(encoding="utf-8"))
    assert audit.MARKER not in page
    for check in CHECKS:
        assert f"### {check.name}\n" in page
        assert check.equation in page
        assert check.tolerance in page


def test_every_command_and_option_is_in_the_reference() -> None:
    page = commands.page()
    found = dict(commands.commands())
    assert {"stripesim run", "stripesim trace info", "stripesim crush"} <= set(found)
    for path, command in found.items():
        section = page.split(f"## {path}\n", 1)[1].split("\n## ", 1)[0]
        options = [
            name
            for parameter in command.params
            for name in parameter.opts
            if name.startswith("-")
        ]
        assert options
        assert [name for name in options if f"`{name}`" not in section] == []


def test_every_parameter_is_in_the_reference_with_its_source() -> None:
    page = parameters.page()
    for name, path in parameters.sets().items():
        section = page.split(f"## {name}\n", 1)[1].split("\n## ", 1)[0]
        found = list(parameters.numbers(path))
        assert (
            len(found) == path.read_text(encoding="utf-8").count("\nprovenance =") > 0
        )
        for key, outcome in found:
            assert f"| `{key}` |" in section
            assert " ".join(outcome["source"].split()).replace("|", "\\|") in section


def test_every_column_of_a_result_has_a_meaning() -> None:
    assert cells(results.columns()) == set(QUANTITIES)


def test_every_public_name_is_in_the_reference() -> None:
    page = stage.generated()["reference/api.md"]
    names = {*api.__all__, *(f"teach.{name}" for name in teach.__all__)}
    assert [
        name
        for name in names
        if f"### {name}\n" not in page and f"`{name}`" not in page
    ] == []


def test_the_count_of_each_recorded_ledger_is_on_the_page() -> None:
    assert trust.recorded(), "python docs/record.py"
    for name, ledger in trust.recorded().items():
        found = ledger["summary"]
        assert f"**{found['right']} of {found['held_out']}**" in trust.summary()
        # The page lists all claims that are not right.
        assert len(ledger["not_right"]) == found["wrong"] + found["not_derivable"]
        assert f"### {name}\n" in trust.wrong()
        assert (
            found["right"] + found["wrong"] + found["not_derivable"]
            == found["held_out"]
        )


def test_each_group_of_held_out_rows_tests_one_kind_of_answer() -> None:
    named = [
        (study, group)
        for kind in trust.KINDS.values()
        for study, groups in kind.items()
        for group in groups
    ]
    whole = {
        study
        for kind in trust.KINDS.values()
        for study, groups in kind.items()
        if not groups
    }
    recorded = {
        (study, group)
        for study, ledger in trust.recorded().items()
        if study not in whole
        for group in ledger["summary"]["mape_percent_by_metric"]
    }
    assert len(named) == len(set(named))
    assert set(named) == recorded, "docs/generate/trust.py: KINDS"
    page = trust.kinds()
    assert all(f"| {kind} |" in page for kind in trust.KINDS)
    # The table's rows are those of the ledgers, none twice and none left out.
    rows = sum(
        int(line.split("|")[3].replace(",", ""))
        for line in page.strip().splitlines()[2:]
    )
    assert rows == sum(
        group["rows"]
        for ledger in trust.recorded().values()
        for group in ledger["summary"]["mape_percent_by_metric"].values()
    )


STATED_COUNT = re.compile(r"(\d+) of (\d+) (?:held-out )?claims are right")


@pytest.mark.parametrize("study", sorted(trust.recorded()))
def test_pages_of_a_study_state_the_counts_of_its_ledger(study: str) -> None:
    summary = trust.recorded()[study]["summary"]
    notes = [
        DOCS / f"{study}.md",
        ROOT / "scenarios" / "studies" / study / "README.md",
    ]
    for page in notes:
        if not page.exists():
            continue
        for right, held_out in STATED_COUNT.findall(page.read_text(encoding="utf-8")):
            # A part of a study, such as the bytes of `changes`, has its own count.
            if int(held_out) == summary["held_out"]:
                assert int(right) == summary["right"], page


def test_a_ledger_that_takes_a_second_is_what_was_recorded() -> None:
    from stripesim.scenarios.studies.registry import study_named

    now = study_named("dachary2013").run().ledger
    bad = {
        e.claim.id
        for e in now.entries
        if e.claim.role == "held-out" and e.verdict != "right"
    }
    recorded = trust.recorded()["dachary2013"]
    assert bad == {claim["id"] for claim in recorded["not_right"]}, (
        "python docs/record.py dachary2013"
    )


def test_the_tables_of_the_readme_equal_simulation_and_ledgers() -> None:
    text = readme.README.read_text(encoding="utf-8")
    assert readme.rewritten(text) == text, "python docs/record.py readme"


def test_the_citation_names_the_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in text


def headings(page: str) -> set[str]:
    """Anchors that MyST gives to a page's headings."""
    titles = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page, flags=re.M | re.S), flags=re.M
    )
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles
    }


def staged(tmp_path: Path) -> Path:
    stage.stage(tmp_path / "source", run=False)
    return tmp_path / "source"


def test_every_link_leads_to_a_page_and_a_heading(tmp_path: Path) -> None:
    source = staged(tmp_path)
    texts = {
        path.resolve(): path.read_text(encoding="utf-8")
        for path in source.rglob("*.md")
    }
    assert len(texts) > 30
    wrong, seen = [], 0
    for path, text in texts.items():
        for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", text):
            if re.match(r"https?:", target):
                continue
            seen += 1
            name, _, anchor = target.partition("#")
            page = (path.parent / name).resolve() if name else path
            if page not in texts or (anchor and anchor not in headings(texts[page])):
                wrong.append(f"{path.relative_to(source)}: {target}")
    assert seen > 60
    assert wrong == []


def test_every_link_of_a_page_leads_to_a_file_of_the_checkout() -> None:
    wrong = []
    for page in PAGES:
        code = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)
        text = code.sub("", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text):
            name = target.partition("#")[0]
            if re.match(r"https?:", target) or not name:
                continue
            if not (page.parent / name).exists():
                wrong.append(f"{page.relative_to(ROOT)}: {target}")
    assert wrong == []


def test_a_page_that_is_new_is_taken_up(tmp_path: Path) -> None:
    for folder in ("howto", "background"):
        text = (DOCS / folder / "index.md").read_text(encoding="utf-8")
        (tmp_path / "something-new.md").write_text("# New\n", encoding="utf-8")
        assert "\nsomething-new\n" in stage.with_the_rest(tmp_path / "index.md", text)
    listed = (DOCS / "reference" / "index.md").read_text(encoding="utf-8").splitlines()
    written = {path.stem for path in (DOCS / "reference").glob("*.md")} - {"index"}
    made = {Path(name).stem for name in stage.generated()}
    assert written | made | {"changelog"} <= set(listed)


SHOWN = sorted(
    {
        command
        for path in [*PAGES, *STUDY_NOTES]
        for command in commands.in_page(path.read_text("utf-8"))
    }
)


def test_a_page_that_does_not_exist_is_not_recorded_silently() -> None:
    with pytest.raises(ValueError, match=r"got docs/howto/sites\.md"):
        ran.rewrite_pages(["docs/howto/sites.md"])


def test_the_pages_show_commands() -> None:
    assert len(SHOWN) > 20


@pytest.mark.parametrize("command", [one for one in SHOWN if "…" not in one])
def test_a_command_that_a_page_shows_is_one(command: str) -> None:
    commands.parse(command)


@pytest.mark.parametrize(
    "command", ["run x --no-such-option", "no-such-command", "study no-such-study"]
)
def test_invalid_commands_are_detected(command: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|no command|not one of|invalid"):
        commands.parse(command)


def test_the_tutorial_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (DOCS / "tutorial" / "index.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    stage.save_files(text, tmp_path)
    assert (tmp_path / "mine.toml").exists()
    blocks = stage.RUN_BLOCK.findall(text)
    assert len(blocks) >= 6
    for block in blocks:
        for line in block.strip().splitlines():
            done = CliRunner().invoke(
                cli.app, shlex.split(line.removeprefix("$ stripesim "))
            )
            assert done.exit_code == 0, f"{line}\n{done.output[-1500:]}"
            assert done.stdout.strip()


def test_scenarios_that_pages_show_are_scenarios(tmp_path: Path) -> None:
    (tmp_path / "my-trace.csv").write_text(
        "128166372000000000,host,0,Read,0,4096,1000\n", encoding="utf-8"
    )
    for path in PAGES:
        stage.save_files(path.read_text(encoding="utf-8"), tmp_path)
    found = sorted(tmp_path.glob("*.toml"))
    assert len(found) >= 3
    for path in found:
        assert load_scenario(str(path)).schemes


def test_documented_errors_are_current() -> None:
    text = (DOCS / "howto" / "cluster.md").read_text(encoding="utf-8")
    shown = re.search(
        r"```console\n\$ stripesim (run cluster.toml .*?)\n(.*?)```", text, flags=re.S
    )
    assert shown is not None
    saved = stage.SAVED.search(text)
    assert saved is not None
    words = shlex.split(shown[1])
    sets = [value for flag, value in pairwise(words) if flag == "--set"]
    with pytest.raises(ValueError, match="wanted") as caught:
        parse_scenario(saved[2], sets=sets)
    assert str(caught.value).splitlines() == shown[2].strip().splitlines()


#: Run Sphinx without looking for garbage or indexing the words of pages, which takes a third of the time.
BUILD = """
import gc, sys
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.cmd.build import main
gc.disable()
StandaloneHTMLBuilder.search = False
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("sphinx") is None,
    reason="Sphinx is not installed: make docs",
)
def test_sphinx_builds_without_a_warning(tmp_path: Path) -> None:
    source = staged(tmp_path)
    # The theme takes a third of the time. `make docs` builds with it.
    options = ["-W", "--keep-going", "-q", "-D", "html_theme=basic"]
    done = subprocess.run(
        [sys.executable, "-c", BUILD, *options, str(source), str(tmp_path / "html")],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    page = (tmp_path / "html" / "background" / "ssd.html").read_text(encoding="utf-8")
    assert "<math" in page
    # Nothing is loaded from anywhere else.
    outside = re.compile(r"""<(?:script|link|img)[^>]+(?:src|href)=["']https?:""")
    assert [
        p.name
        for p in (tmp_path / "html").rglob("*.html")
        if outside.search(p.read_text("utf-8"))
    ] == []


FOLDERS = "models|sim|scenarios|calibration|traces|notebooks|stripesim|tests|benchmarks"


def test_every_file_that_a_page_names_exists() -> None:
    pages = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    named = {
        (page.name, path)
        for page in pages
        for path in re.findall(
            rf"`((?:{FOLDERS})/[\w./-]+)`", page.read_text(encoding="utf-8")
        )
    }
    assert len(named) > 100
    assert [name for name in sorted(named) if not (ROOT / name[1]).exists()] == []


def test_the_reference_lists_the_exit_status_of_refused_numbers() -> None:
    assert f"\n| {RefusedError.exit_status} |" in commands.INTRODUCTION
