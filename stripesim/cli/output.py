"""What every command does with its outcome: JSON, files written, progress, a console of the right width."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "NO_FOLDER_FOR_REPORT",
    "check_out",
    "console",
    "list_written",
    "progress",
    "warn_outside",
    "write_json",
]

#: What is said to ``--report`` without ``--out``.
NO_FOLDER_FOR_REPORT = "--report: got no --out, wanted the folder to write report.html into"


def write_json(target: str | None, document: dict[str, Any]) -> bool:
    """Write a JSON document where asked; say whether it took standard output."""
    if target is None:
        return False
    text = json.dumps(document, indent=1, allow_nan=False, default=_plain)
    if target == "-":
        print(text)
        return True
    Path(target).write_text(text + "\n", encoding="utf-8")
    return False


def _plain(value: object) -> object:
    """Convert what the json module does not know: NumPy scalars and arrays, tuples of them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"no JSON form for {type(value).__name__}")


def console() -> Any:
    """Return a console as wide as the terminal."""
    from rich.console import Console

    # Into a pipe or a file a table needs a width of its own: rich would assume 80 columns.
    return Console(width=None if sys.stdout.isatty() else 160)


def check_out(out: Path | None) -> None:
    """Refuse a folder for results that cannot be one, before anything runs.

    Raises
    ------
    ValueError
        If a file stands there, or above it.
    """
    for path in () if out is None else (out, *out.parents):
        if path.exists() and not path.is_dir():
            raise ValueError(f"--out: {out}: got the file {path}, wanted a folder")


def list_written(paths: list[Path]) -> None:
    """Say on standard error which files were written."""
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)


def warn_outside(warnings: Sequence[str], *, report: Path | None = None) -> None:
    """Say on standard error, in one line, what lies outside the range that the models were calibrated in.

    Parameters
    ----------
    warnings : sequence of str
        Each begins with a key, or a parameter set, and a colon.
    report : Path, optional
        Folder of the report that has them in full; left out: none was written.
    """
    if not warnings:
        return
    if len(warnings) == 1:
        print(f"warning: outside the calibrated range: {warnings[0]}", file=sys.stderr)
        return
    named = ", ".join(dict.fromkeys(line.split(":")[0] for line in warnings))
    where = "--out DIR --report, or --json -" if report is None else str(report / "report.html")
    print(
        f"warning: outside the calibrated range in {len(warnings)} respects: {named}; in full: {where}",
        file=sys.stderr,
    )


class progress:  # noqa: N801 - used as a function in `with`
    """A progress bar on a terminal's standard error; nothing anywhere else."""

    def __init__(self, title: str, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._title = title
        # Until something is done it may be compiling, which takes a minute, once.
        self._task = self._bar.add_task(f"{title}: a first run compiles the engine", total=total)

    def __enter__(self) -> progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, words: str, total: int | None = None) -> None:
        """Go one step on, with a few words about it, and `total` steps in all if that is known now."""
        # The words are cut so that the time left stays on a narrow terminal.
        description = f"{self._title}: {words}"[:44]
        if total is None:
            self._bar.update(self._task, advance=1, description=description)
        else:
            self._bar.update(self._task, advance=1, description=description, total=total)
