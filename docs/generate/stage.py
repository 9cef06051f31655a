"""Stage the folder that Sphinx builds from: written and generated pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from generate import (
    api,
    audit,
    commands,
    gallery,
    parameters,
    results,
    scenario,
    trust,
)
from stripesim import __version__

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent

# Blocks whose commands run during the build, so that their output is current.
RUN_BLOCK = re.compile(r"^```\{run\}\n(.*?)^```\n", flags=re.MULTILINE | re.DOTALL)
# Longer output is cut.
OUTPUT_LINES_MAX = 28
# Width of the widest table of results.
COLUMNS = "160"

# A line in a table of contents, replaced by the pages of the folder that it does not name.
REST = "<!-- rest -->"

# A file that a page asks the reader to save, for the commands below it.
SAVED = re.compile(
    r"[Ss]ave this as\s`([\w-]+\.(?:toml|py))`.*?^```(?:toml|python)\n(.*?)^```",
    flags=re.MULTILINE | re.DOTALL,
)

# Sources of generated pages. A link to one leads to it in the checkout, and to its page in the built site.
_SOURCES = {
    "scenarios/schema.json": "reference/scenario.md",
    "calibration/parameters": "reference/parameters.md",
    "calibration/kernels/tables": "reference/parameters.md#kernel-tables",
}
_SOURCE_LINK = re.compile(
    rf"\]\((?:\.\./)+({'|'.join(_SOURCES)})(?:/([\w-]+)\.toml)?\)"
)

# Marker for a measured error on the page of a model: study, then group of metrics.
ERROR = re.compile(r"<!-- error (\S+) (.+?) -->")


def generated() -> dict[str, str]:
    """Return the generated pages: path under docs/ → Markdown."""
    return {
        "reference/cli.md": commands.page(),
        "reference/scenario.md": scenario.page(__version__),
        "reference/parameters.md": parameters.page(),
        "reference/api.md": api.page(),
    }


def filled(text: str) -> str:
    """Replace markers by generated tables."""
    markers = {
        results.MARKER: results.columns, trust.ANSWERS: trust.kinds, trust.SUMMARY: trust.summary,
        trust.CALIBRATED: trust.calibrated, gallery.MARKER: gallery.links,
        gallery.LESSONS: gallery.lesson_links,
        trust.WRONG: trust.wrong, audit.MARKER: audit.catalogue, trust.REGISTERS: trust.registers,
        trust.BANDS: trust.bands,
    }  # fmt: skip
    for marker, write in markers.items():
        if marker in text:
            text = text.replace(marker, write())
    return ERROR.sub(lambda marker: trust.error(marker[1], marker[2]), text)


def with_the_rest(path: Path, text: str) -> str:
    """Replace the marker in a table of contents by the pages of its folder that it does not name."""
    lines = text.splitlines()
    rest = sorted(
        page.stem
        for page in path.parent.glob("*.md")
        if page.stem not in [*lines, "index"]
    )
    return text.replace(REST, "\n".join(rest))


def with_generated_links(text: str, page: Path) -> str:
    """Replace links to the sources of generated pages by links to these pages.

    Parameters
    ----------
    text : str
        The text of a page.
    page : Path
        Its path under docs/.
    """

    def link(found: re.Match[str]) -> str:
        target = os.path.relpath(_SOURCES[found[1]], page.parent)
        anchor = f"#{found[2]}" if found[2] else ""
        return f"]({target}{anchor})"

    return _SOURCE_LINK.sub(link, text)


def save_files(text: str, folder: Path) -> None:
    """Write the files that a page asks its reader to save."""
    for saved in SAVED.finditer(text):
        (folder / saved[1]).write_text(saved[2], encoding="utf-8")


def run_commands(block: str, folder: Path) -> str:
    """Run the commands of a block in a folder and return them with their output.

    Parameters
    ----------
    block : str
        One command per line, as a user types it. A backslash continues a line.
    folder : Path
        Working directory. Files written by a command are available to the next.

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
    # No language: a highlighter would take signs in the output for prompts.
    return "```text\n" + "\n".join(shown) + "```\n"


def stage(target: Path, *, run: bool = True) -> None:
    """Empty a folder and write everything that Sphinx reads into it.

    Parameters
    ----------
    target : Path
    run : bool
        Run the commands of ``{run}`` blocks. If False, show them without output.
    """
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(
        DOCS,
        target,
        ignore=shutil.ignore_patterns(
            "__pycache__", "generate", "ledgers", "gallery", "build.py"
        ),
    )
    for name, text in generated().items():
        (target / name).write_text(text, encoding="utf-8")
    # Each study keeps its own page next to its code.
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
            text = with_generated_links(text, path.relative_to(target))
            save_files(text, Path(folder))
            text = RUN_BLOCK.sub(
                lambda block: (
                    run_commands(block[1], Path(folder))
                    if run
                    else f"```console\n{block[1]}```\n"
                ),
                text,
            )
            path.write_text(text, encoding="utf-8")
