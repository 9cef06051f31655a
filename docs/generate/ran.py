"""Outputs that pages show: commands run again, and what they print takes the place of what they printed.

A block of code below ``<!-- ran -->`` holds commands, each after ``$``, and what they printed. In the mark
``from "TEXT"`` leaves out what comes before the first line with that text, ``lines N`` what comes after N.
The files that a page asks its reader to save are there; other commands than stripesim's are not run.
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

from generate.stage import COLUMNS, DOCS, ROOT, save_files

BLOCK = re.compile(
    r'(<!-- ran(?: from "(?P<start>[^"]+)")?(?: lines (?P<most>\d+))? -->\n```\w*\n)(?P<body>.*?)(?=^```$)',
    flags=re.MULTILINE | re.DOTALL,
)
# What a reader of a page has beside the files that the page holds: its name there, and a sample of it.
_REPORT = ROOT / "tests" / "unit" / "data" / "ceph16-report.json"
SAMPLES = {
    "import.md": {"report.json": _REPORT},
    "howto/plan.md": {"report.json": _REPORT},
}
_COMMAND = re.compile(r"^\$ (?:[^\n]*\\\n)*[^\n]*$", flags=re.MULTILINE)


def printed(command: str, folder: Path) -> list[str]:
    """Run a command as a user types it and return the lines that it prints, those of problems among them."""
    words = f'"{sys.executable}" -m ' + command.removeprefix("$ ")
    done = subprocess.run(
        words, shell=True, cwd=folder, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "COLUMNS": COLUMNS, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    if done.returncode not in (0, 2):
        raise RuntimeError(
            f"docs: {command}: exit status {done.returncode}\n{done.stdout[-1500:]}"
        )
    return [line.rstrip() for line in done.stdout.splitlines() if line.strip()]


def again(found: re.Match[str], folder: Path) -> str:
    """Run the commands of a block and return the block with what they print now."""
    shown = []
    for command in _COMMAND.findall(found["body"]):
        shown.append(command)
        if not command.startswith("$ stripesim "):
            continue
        lines = printed(command, folder)
        if found["start"]:
            lines = lines[
                next(at for at, line in enumerate(lines) if found["start"] in line) :
            ]
        most = int(found["most"] or len(lines))
        shown += [*lines[:most], *(["…"] if len(lines) > most else [])]
    return found[1] + "\n".join(shown) + "\n"


def rewrite_pages(names: list[str]) -> list[Path]:
    """Run the marked blocks of the named pages, or of all; return the pages that changed."""
    changed = []
    for path in sorted(DOCS.rglob("*.md")):
        text, name = path.read_text(encoding="utf-8"), str(path.relative_to(DOCS))
        if not BLOCK.search(text) or (names and name not in names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            save_files(text, Path(folder))
            for file, sample in SAMPLES.get(name, {}).items():
                shutil.copy(sample, Path(folder) / file)
            now = BLOCK.sub(partial(again, folder=Path(folder)), text)
        if now != text:
            path.write_text(now, encoding="utf-8")
            changed.append(path)
    return changed
