"""The lessons as files: Markdown, the notebooks made of it, and running them.

A lesson is written in Markdown with Python in fences, as jupytext reads it. ``python -m
stripesim.notebooks.files`` rewrites the notebooks; ``… execute`` runs them in a kernel; ``… mark NAME SEED``
prints marking sheets.
"""

import json
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from stripesim.notebooks.teach import Lesson

#: No lesson takes so long; a cell that does is stuck.
CELL_TIMEOUT_S = 900

_FENCE = re.compile(r"^```python\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
_SEED = re.compile(r"(open_lesson\([^)]*seed=)1\)")


def lessons() -> list[Path]:
    """List the lessons, in order."""
    return sorted(Path(__file__).parent.glob("[0-9][0-9]-*.md"))


def name_of(lesson: Path) -> str:
    """Return the name of a lesson: its file's without the number."""
    return lesson.stem.partition("-")[2]


def cells_of(text: str) -> list[tuple[str, str]]:
    r"""Split a lesson into cells: kind (``markdown`` or ``code``) and source.

    >>> cells_of("# A *title*\n\n```python\nx = 1\n```\n")
    [('markdown', '# A *title*'), ('code', 'x = 1')]
    """
    parts = _FENCE.split(text)
    kinds = [("markdown", "code")[at % 2] for at in range(len(parts))]
    return [
        (kind, part.strip("\n"))
        for kind, part in zip(kinds, parts, strict=True)
        if part.strip()
    ]


def notebook_of(text: str) -> dict[str, Any]:
    """Make the notebook document of a lesson (nbformat 4.5), without outputs."""
    cells = []
    for number, (kind, source) in enumerate(cells_of(text)):
        cell: dict[str, Any] = {
            "cell_type": kind,
            "id": f"cell-{number:02}",
            "metadata": {},
        }
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell | {"source": source.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"jupytext": {"formats": "ipynb,md"}, "kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def write_all() -> list[Path]:
    """Write the notebook of each lesson beside it; return the files."""
    written = []
    for lesson in lessons():
        path = lesson.with_suffix(".ipynb")
        document = notebook_of(lesson.read_text(encoding="utf-8"))
        path.write_text(
            json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        written.append(path)
    return written


def solve(lesson: Path, seed: int | str = 1) -> Lesson:
    """Run a lesson's code as a program, in its folder, and return it with what its answers need.

    Raises
    ------
    ValueError
        If the lesson does not open itself with seed 1, exactly once.
    """
    code = "\n".join(
        source
        for kind, source in cells_of(lesson.read_text(encoding="utf-8"))
        if kind == "code"
    )
    code, found = _SEED.subn(rf"\g<1>{seed!r})", code)
    if found != 1:
        raise ValueError(
            f"{lesson.name}: got {found} calls of open_lesson(…, seed=1), wanted one"
        )
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(lesson.parent)
    try:
        exec(compile(code, str(lesson), "exec"), names)
    finally:
        os.chdir(before)
    opened: Lesson = names["lesson"]
    return opened


def execute(notebook: Path) -> list[dict[str, Any]]:
    """Run a notebook as Jupyter does and return what its cells put out, as nbformat has it.

    It needs the extra ``notebooks`` (nbclient and a kernel). Nothing is written.
    """
    nbformat, nbclient = import_module("nbformat"), import_module("nbclient")
    document = nbformat.reads(notebook.read_text(encoding="utf-8"), as_version=4)
    resources = {"metadata": {"path": str(notebook.parent)}}
    nbclient.NotebookClient(
        document, timeout=CELL_TIMEOUT_S, resources=resources
    ).execute()
    return [
        dict(out)
        for cell in document.cells
        if cell.cell_type == "code"
        for out in cell.outputs
    ]


def pictures(outputs: list[dict[str, Any]]) -> int:
    """Count the outputs that a reader sees as pictures."""
    return sum("image/png" in out.get("data", {}) for out in outputs)


def main(words: list[str]) -> None:
    """Rewrite the notebooks, run them, or print marking sheets."""
    match words:
        case []:
            for made in write_all():
                print(f"wrote {made}")
        case ["execute", *names]:
            for lesson in lessons():
                if not names or name_of(lesson) in names:
                    outputs = execute(lesson.with_suffix(".ipynb"))
                    print(
                        f"{lesson.stem}: {len(outputs)} outputs, {pictures(outputs)} pictures",
                        flush=True,
                    )
        case ["mark", name, *seeds] if seeds and name in map(name_of, lessons()):
            (lesson,) = (path for path in lessons() if name_of(path) == name)
            for seed in seeds:
                stdout, sys.stdout = sys.stdout, sys.stderr
                try:
                    opened = solve(lesson, int(seed) if seed.isdecimal() else seed)
                finally:
                    sys.stdout = stdout
                print(opened.marking_sheet(), "\n")
        case _:
            known = ", ".join(map(name_of, lessons()))
            raise SystemExit(
                f"lessons: got {' '.join(words)}, wanted execute [NAME…] or mark NAME SEED…; {known}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
