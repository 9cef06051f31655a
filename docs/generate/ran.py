"""Re-record the command output that pages and the README show.

A code block below ``<!-- ran -->`` holds commands, each after ``$``, and their output. Options of the mark:
``from "TEXT"`` starts the output at the first line with that text, ``lines N`` keeps N lines, and
``columns N`` sets the width of the terminal. Commands find the files that the page asks its reader to save.
Only ``stripesim`` commands are run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from generate.readme import README
from generate.stage import COLUMNS, DOCS, ROOT, save_files

BLOCK = re.compile(
    r'(<!-- ran(?: from "(?P<start>[^"]+)")?(?: lines (?P<limit>\d+))?(?: columns (?P<columns>\d+))? -->\n'
    r"```\w*\n)(?P<body>.*?)(?=^```$)",
    flags=re.MULTILINE | re.DOTALL,
)
# Files that a page expects its reader to have: the name on the page, and a sample.
_REPORT = ROOT / "tests" / "unit" / "data" / "ceph16-report.json"
SAMPLES = {
    "import.md": {"report.json": _REPORT},
    "howto/failures.md": {"report.json": _REPORT},
    "howto/plan.md": {"report.json": _REPORT},
}
_COMMAND = re.compile(r"^\$ (?:[^\n]*\\\n)*[^\n]*$", flags=re.MULTILINE)


def printed(command: str, folder: Path, columns: str = COLUMNS) -> list[str]:
    """Run a command as a user types it; return the lines of its output, error messages included."""
    words = f'"{sys.executable}" -m ' + command.removeprefix("$ ")
    done = subprocess.run(
        words, shell=True, cwd=folder, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "COLUMNS": columns, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    if done.returncode not in (0, 2):
        raise RuntimeError(
            f"docs: {command}: exit status {done.returncode}\n{done.stdout[-1500:]}"
        )
    return [line.rstrip() for line in done.stdout.splitlines() if line.strip()]


def again(block: re.Match[str], folder: Path) -> str:
    """Run the commands of a block and return the block with their current output."""
    shown = []
    for command in _COMMAND.findall(block["body"]):
        shown.append(command)
        if not command.startswith("$ stripesim "):
            continue
        lines = printed(command, folder, block["columns"] or COLUMNS)
        start = block["start"]
        if start:
            numbers = [number for number, line in enumerate(lines) if start in line]
            if not numbers:
                raise RuntimeError(
                    f"docs: {command}: no line of the output has {start!r}"
                )
            lines = lines[numbers[0] :]
        line_limit = int(block["limit"] or len(lines))
        shown += [*lines[:line_limit], *(["…"] if len(lines) > line_limit else [])]
    return block[1] + "\n".join(shown) + "\n"


def rewrite_pages(names: list[str]) -> list[Path]:
    """Run the marked blocks of the named pages, or of all and the README; return the pages that changed."""
    pages = {README.name: README}
    pages |= {str(path.relative_to(DOCS)): path for path in sorted(DOCS.rglob("*.md"))}
    unknown = [name for name in names if name not in pages]
    if unknown:
        raise ValueError(
            f"pages: got {', '.join(unknown)}, wanted {README.name} or paths in docs/, such as howto/sites.md"
        )
    changed = []
    for name, path in pages.items():
        text = path.read_text(encoding="utf-8")
        if not BLOCK.search(text) or (names and name not in names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            save_files(text, Path(folder))
            for file, sample in SAMPLES.get(name, {}).items():
                shutil.copy(sample, Path(folder) / file)
            updated = BLOCK.sub(partial(again, folder=Path(folder)), text)
        if updated != text:
            path.write_text(updated, encoding="utf-8")
            changed.append(path)
    return changed
