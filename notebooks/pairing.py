"""The .ipynb beside each lesson: its cells as a notebook without outputs.

A lesson is written as a Python file in the percent format (https://jupytext.readthedocs.io); Jupyter with
jupytext keeps the two in step, and ``python -m stripesim.notebooks.pairing`` rewrites all notebooks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["cells_of", "lessons", "notebook_of", "write_all"]

_MARK = "# %%"
_MARKDOWN = "# %% [markdown]"


def lessons() -> list[Path]:
    """List the lessons, in order."""
    return sorted(Path(__file__).parent.glob("lesson_*.py"))


def cells_of(text: str) -> list[tuple[str, str]]:
    r"""Split a lesson into cells: kind (``markdown`` or ``code``) and source.

    Parameters
    ----------
    text : str
        A Python file in the percent format. A markdown cell is commented, or one string.

    Examples
    --------
    >>> cells_of("# %% [markdown]\n# A *title*\n\n# %%\nx = 1\n")
    [('markdown', 'A *title*'), ('code', 'x = 1')]
    """
    cells: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith(_MARK):
            cells.append(("markdown" if line.startswith(_MARKDOWN) else "code", []))
        elif cells:
            cells[-1][1].append(line)
    found = []
    for kind, lines in cells:
        source = "\n".join(lines).strip("\n")
        if kind == "markdown" and source.startswith('"""'):
            source = source.removeprefix('"""').removesuffix('"""').strip("\n")
        elif kind == "markdown":
            source = "\n".join(line.removeprefix("#").removeprefix(" ") for line in source.splitlines())
        found.append((kind, source))
    return found


def notebook_of(text: str) -> dict[str, Any]:
    """Make the notebook document of a lesson (nbformat 4.5), without outputs."""
    cells = []
    for number, (kind, source) in enumerate(cells_of(text)):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number:02}", "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell | {"source": source.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"jupytext": {"formats": "ipynb,py:percent"}, "kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def write_all() -> list[Path]:
    """Write the notebook of each lesson beside it; return the files."""
    written = []
    for lesson in lessons():
        path = lesson.with_suffix(".ipynb")
        document = notebook_of(lesson.read_text(encoding="utf-8"))
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    for made in write_all():
        print(f"wrote {made}")
