"""Convert the lessons from Markdown to notebooks, and run them.

A lesson is a Markdown file with fenced Python code, a format that jupytext reads.

- ``python -m stripesim.notebooks.files`` rewrites the notebooks.
- ``python -m stripesim.notebooks.files execute [NAME…]`` runs them in a kernel.
- ``python -m stripesim.notebooks.files pages FOLDER`` writes the lessons that run in a page.
- ``python -m stripesim.notebooks.files mark NAME SEED…`` prints marking sheets.
"""

import contextlib
import io
import itertools
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from stripesim.models.documents import json_text
from stripesim.models.problems import file_reason
from stripesim.notebooks.teach import Lesson

#: Time limit for a cell [s].
CELL_TIMEOUT_S = 900

_FENCE = re.compile(r"^```python\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
_SEED = re.compile(r"(open_lesson\([^)]*seed=)1\)")


def lessons() -> list[Path]:
    """Return the files of all lessons, in order."""
    return sorted(Path(__file__).parent.glob("[0-9][0-9]-*.md"))


def name_of(lesson: Path) -> str:
    """Return the name of a lesson: its file name without the number."""
    return lesson.stem.partition("-")[2]


def cells_of(text: str) -> list[tuple[str, str]]:
    r"""Split a lesson into cells, each a kind (``markdown`` or ``code``) and a source.

    >>> cells_of("# A *title*\n\n```python\nx = 1\n```\n")
    [('markdown', '# A *title*'), ('code', 'x = 1')]
    """
    kinds = itertools.cycle(("markdown", "code"))
    return [
        (kind, part.strip("\n"))
        for kind, part in zip(kinds, _FENCE.split(text), strict=False)
        if part.strip()
    ]


def notebook_of(text: str) -> dict[str, Any]:
    """Return the notebook document of a lesson (nbformat 4.5), without outputs."""
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
    """Write the notebook of each lesson next to it, and return the notebook files."""
    written = []
    for lesson in lessons():
        path = lesson.with_suffix(".ipynb")
        document = notebook_of(lesson.read_text(encoding="utf-8"))
        path.write_text(json_text(document), encoding="utf-8")
        written.append(path)
    return written


def solve(lesson: Path, seed: int | str = 1) -> Lesson:
    """Run the code of a lesson as a program and return the lesson with the data for its answers.

    Parameters
    ----------
    lesson
        Markdown file of the lesson. The code runs in its folder.
    seed
        Seed that replaces the lesson's own.

    Returns
    -------
    Lesson
        The lesson after all its questions have been asked.

    Raises
    ------
    ValueError
        If the lesson does not call ``open_lesson`` with seed 1 exactly once.
    """
    cells = cells_of(lesson.read_text(encoding="utf-8"))
    code = "\n".join(source for kind, source in cells if kind == "code")
    # A function, because a template would take the backslashes of a seed for its own.
    code, count = _SEED.subn(lambda call: f"{call[1]}{seed!r})", code)
    if count != 1:
        raise ValueError(
            f"{lesson.name}: got {count} calls of open_lesson(…, seed=1), wanted one"
        )
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(lesson.parent):
        exec(compile(code, str(lesson), "exec"), names)
    opened: Lesson = names["lesson"]
    return opened


def execute(notebook: Path) -> list[dict[str, Any]]:
    """Run a notebook in a kernel and return the outputs of its cells, in nbformat.

    This needs the extra ``notebooks`` (nbclient and a kernel) and writes no files.
    """
    nbformat = import_module("nbformat")
    nbclient = import_module("nbclient")
    document = nbformat.reads(notebook.read_text(encoding="utf-8"), as_version=4)
    resources = {"metadata": {"path": str(notebook.parent)}}
    client = nbclient.NotebookClient(
        document, timeout=CELL_TIMEOUT_S, resources=resources
    )
    client.execute()
    return [dict(out) for cell in document.cells for out in cell.get("outputs", ())]


def pictures(outputs: list[dict[str, Any]]) -> int:
    """Count the pictures among the outputs."""
    return sum("image/png" in out.get("data", {}) for out in outputs)


def main(arguments: list[str]) -> None:
    """Rewrite the notebooks, run them, write pages, or print marking sheets."""
    by_name = {name_of(lesson): lesson for lesson in lessons()}
    match arguments:
        case []:
            for path in write_all():
                print(f"wrote {path}")
        case ["execute", *names] if by_name.keys() >= set(names):
            for name in names or by_name:
                _execute(by_name[name])
        case ["pages", folder]:
            # Only this needs the simulator.
            from stripesim.notebooks.page_lessons import write_pages

            try:
                for path in write_pages(Path(folder)):
                    print(f"wrote {path}")
            except OSError as error:
                raise SystemExit(
                    f"{folder}: got {file_reason(error)}, wanted a folder to write to"
                ) from None
        case ["mark", name, *seeds] if seeds and name in by_name:
            _mark(by_name[name], seeds)
        case _:
            raise SystemExit(
                f"lessons: got {' '.join(arguments)}, wanted execute [NAME…], pages FOLDER "
                f"or mark NAME SEED…; "
                f"{', '.join(by_name)}"
            )


def _execute(lesson: Path) -> None:
    outputs = execute(lesson.with_suffix(".ipynb"))
    counts = f"{len(outputs)} outputs, {pictures(outputs)} pictures"
    print(f"{lesson.stem}: {counts}", flush=True)


def _mark(lesson: Path, seeds: list[str]) -> None:
    # A seed is text: 0815 draws other numbers than 815.
    for seed in seeds:
        with contextlib.redirect_stdout(io.StringIO()):
            opened = solve(lesson, seed)
        print(opened.marking_sheet(), "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
