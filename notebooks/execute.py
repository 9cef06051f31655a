"""Run the notebooks as Jupyter does, in a kernel: ``python -m stripesim.notebooks.execute [LESSON...]``.

The tests run each lesson as a script; this also shows that tables and figures appear in a notebook. It
needs the extra ``notebooks`` (nbclient and a kernel). Nothing is written: notebooks ship without outputs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from stripesim.notebooks.pairing import lessons

#: No lesson takes so long; a cell that does hangs.
CELL_TIMEOUT_S = 900


def execute(notebook: Path) -> list[dict[str, Any]]:
    """Run a notebook.

    Parameters
    ----------
    notebook : Path
        An ``.ipynb``; it runs in its own folder.

    Returns
    -------
    list of dict
        What its cells put out, as nbformat has it, in order.

    Raises
    ------
    Exception
        nbclient's, with the cell and its traceback, if one fails.
    """
    nbformat, nbclient = import_module("nbformat"), import_module("nbclient")
    document = nbformat.reads(notebook.read_text(encoding="utf-8"), as_version=4)
    resources = {"metadata": {"path": str(notebook.parent)}}
    nbclient.NotebookClient(document, timeout=CELL_TIMEOUT_S, resources=resources).execute()
    return [dict(out) for cell in document.cells if cell.cell_type == "code" for out in cell.outputs]


def pictures(outputs: list[dict[str, Any]]) -> int:
    """Count the outputs that a reader sees as pictures."""
    return sum("image/png" in out.get("data", {}) for out in outputs)


def main(names: list[str]) -> None:
    """Run the named lessons, or all; tell what each put out."""
    for lesson in lessons():
        if names and lesson.stem not in names:
            continue
        outputs = execute(lesson.with_suffix(".ipynb"))
        print(f"{lesson.stem}: {len(outputs)} outputs, {pictures(outputs)} pictures", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
