"""The folder that Sphinx builds from: the written pages, and the generated ones among them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from generate import api, commands, parameters, results, scenario, trust
from stripesim import __version__

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent

# Blocks whose commands are run while the documentation is built, so that what they print is true.
RUN_BLOCK = re.compile(r"^```\{run\}\n(.*?)^```\n", flags=re.MULTILINE | re.DOTALL)
# Longer output is cut: a page shows what to look for.
OUTPUT_LINES_MAX = 28
# As wide as the widest table of results.
COLUMNS = "160"

# A line in a table of contents: the pages of the folder that the others do not name.
REST = "<!-- rest -->"

# A file that a page asks the reader to save, for the commands below it.
SAVED = re.compile(
    r"[Ss]ave this as `([\w-]+\.toml)`.*?^```toml\n(.*?)^```",
    flags=re.MULTILINE | re.DOTALL,
)

# What the page of a model says of measured errors: study, then group of metrics.
ERROR = re.compile(r"<!-- error (\S+) (.+?) -->")


def generated() -> dict[str, str]:
    """Return the pages that are made from the code: path under docs/ → markdown."""
    return {
        "reference/cli.md": commands.page(),
        "reference/scenario.md": scenario.page(__version__),
        "reference/parameters.md": parameters.page(),
        "reference/api.md": api.page(),
    }


def filled(text: str) -> str:
    """Put generated tables in the place of their markers."""
    markers = {
        results.MARKER: results.columns, trust.ANSWERS: trust.kinds, trust.SUMMARY: trust.summary,
        trust.WRONG: trust.wrong,
    }  # fmt: skip
    for marker, write in markers.items():
        if marker in text:
            text = text.replace(marker, write())
    return ERROR.sub(lambda found: trust.error(found[1], found[2]), text)


def with_the_rest(path: Path, text: str) -> str:
    """List, where a table of contents says so, the pages of its folder that it does not name."""
    lines = text.splitlines()
    rest = sorted(
        page.stem
        for page in path.parent.glob("*.md")
        if page.stem not in [*lines, "index"]
    )
    return text.replace(REST, "\n".join(rest))


def save_files(text: str, folder: Path) -> None:
    """Write the files that a page asks its reader to save."""
    for found in SAVED.finditer(text):
        (folder / found[1]).write_text(found[2], encoding="utf-8")


def run_commands(block: str, folder: Path) -> str:
    """Run the commands of a block in a folder and show them with what they print.

    Parameters
    ----------
    block : str
        One command per line, as a user types it; a backslash carries on.
    folder : Path
        Where they run: files that one writes are there for the next.

    Raises
    ------
    RuntimeError
        If a command fails.
    """
    shown = []
    for line in block.replace("\\\n", " ").strip().splitlines():
        words = f'"{sys.executable}" -m ' + line.strip().removeprefix("$ ")
        done = subprocess.run(
            words, shell=True, cwd=folder, capture_output=True, text=True, check=False,
            env={**os.environ, "COLUMNS": COLUMNS},
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(
                f"docs: {line}: exit status {done.returncode}\n{done.stderr[-1500:]}"
            )
        printed = [text.rstrip() for text in done.stdout.strip("\n").splitlines()]
        if len(printed) > OUTPUT_LINES_MAX:
            more = len(printed) - OUTPUT_LINES_MAX
            printed = [*printed[:OUTPUT_LINES_MAX], f"… and {more} more lines"]
        output = "\n".join(printed)
        shown.append(f"$ {' '.join(line.split()).removeprefix('$ ')}\n{output}\n")
    # No language: output has signs that would be taken for prompts.
    return "```text\n" + "\n".join(shown) + "```\n"


def stage(target: Path, *, run: bool = True) -> None:
    """Write everything that Sphinx reads into a folder, which is emptied first.

    Parameters
    ----------
    target : Path
    run : bool
        Whether the commands of ``{run}`` blocks run; otherwise they are shown alone.
    """
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(
        DOCS,
        target,
        ignore=shutil.ignore_patterns("__pycache__", "generate", "ledgers", "build.py"),
    )
    for name, text in generated().items():
        (target / name).write_text(text, encoding="utf-8")
    # A study's own page on what is right, what is wrong and why stands beside its code.
    notes = target / "studies"
    notes.mkdir(exist_ok=True)
    for path in sorted((ROOT / "scenarios").glob("studies/*/README.md")):
        (notes / f"{path.parent.name}.md").write_text(
            path.read_text(encoding="utf-8"), encoding="utf-8"
        )
    shutil.copy(ROOT / "CHANGELOG.md", target / "reference" / "changelog.md")
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(target.rglob("*.md")):
            text = with_the_rest(path, filled(path.read_text(encoding="utf-8")))
            save_files(text, Path(folder))
            text = RUN_BLOCK.sub(
                lambda found: (
                    run_commands(found[1], Path(folder))
                    if run
                    else f"```console\n{found[1]}```\n"
                ),
                text,
            )
            path.write_text(text, encoding="utf-8")
