"""Write the results of any command: JSON, file lists, progress bars and tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from stripesim.models.problems import Problem
    from stripesim.scenarios.show.answer import Answer


#: What `--json` wants.
_JSON_FILE: Final = "a file that can be written, or -"


def write_json(target: str | None, document: Mapping[str, Any] | Iterable[str]) -> bool:
    """Write a document, or the parts of its text, if requested. Return True if it went to standard output."""
    if target is None:
        return False
    from stripesim.models.documents import json_text

    parts = document
    if isinstance(document, Mapping):
        parts = [json_text(document, is_ascii=True)]
    if target == "-":
        sys.stdout.writelines(parts)
        return True
    try:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        with Path(target).open("w", encoding="utf-8") as file:
            file.writelines(parts)
    except OSError as error:
        from stripesim.models.problems import AnswerError, Problem, file_reason

        got = f"{target} ({file_reason(error)})"
        raise AnswerError(Problem(place="--json", got=got, wanted=_JSON_FILE)) from None
    return False


def check_json(target: str | None) -> None:
    """Reject a file of a JSON document that cannot be written, before any work starts."""
    if target is None or target == "-":
        return
    from stripesim.scenarios.show import files

    files.check_file("--json", Path(target), _JSON_FILE, is_replaced=False)


def console(width: int = 160) -> Console:
    """Return a console as wide as the terminal or COLUMNS, or `width` columns wide for a pipe or file."""
    from rich.console import Console

    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return Console()
    return Console(width=width)


def check_out(out: Path | None, *, report: bool = False) -> None:
    """Reject an unusable output folder, or a report without one."""
    if report and out is None:
        raise ValueError(
            "--report: got no --out, wanted the folder to write report.html into"
        )
    if out is None:
        return
    from stripesim.scenarios.show import files

    files.check_folder("--out", out)


def check_file(option: str, path: Path | None, wanted: str) -> None:
    """Reject a path to which no file can be written, before any work starts."""
    if path is None:
        return
    from stripesim.scenarios.show import files

    files.check_file(option, path, wanted)


def _quieten_matplotlib() -> None:
    """Keep Matplotlib from warning of a home folder that may not be written: it draws without a cache."""
    from logging import ERROR, getLogger

    getLogger("matplotlib").setLevel(ERROR)


@dataclass(frozen=True)
class Destination:
    """Destinations of an answer other than the terminal, checked before any work starts."""

    out: Path | None  # Folder of files and figures.
    page: Path | None  # File of the report or another page.
    width_inch: float | None  # Width of figures for a paper.
    json_to: str | None  # File of the JSON document, or "-".


def destination(
    out: Path | None,
    json_to: str | None,
    *,
    report: bool = False,
    page: Path | None = None,
    width: str | None = None,
) -> Destination:
    """Check the options that say where an answer goes.

    A `report` is a page in the folder. `page` names a file elsewhere.

    Raises
    ------
    AnswerError
        If the folder or the JSON document cannot be written, a report has no folder, or a width is wrong.
    """
    from stripesim.cli.options import width_inch
    from stripesim.models.problems import AnswerError, noted

    paper_width_inch = None
    problems: list[Problem] = []
    with noted(problems):
        check_out(out, report=report)
    with noted(problems):
        check_json(json_to)
    with noted(problems):
        paper_width_inch = width_inch(width, out)
    if problems:
        raise AnswerError(*problems)
    if report and out is not None:
        page = out / REPORT
    if out or page:
        _quieten_matplotlib()
    return Destination(out, page, paper_width_inch, json_to)


def deliver(answer: Answer, to: Destination, *, unchecked: bool = False) -> None:
    """Print an answer or write its JSON document, then write its files, and end with its exit status.

    Numbers that the audit refuses end the command with status 3, unless they are shown `unchecked`.
    """
    warn_refused(answer.refusals, unchecked=unchecked)
    for line in answer.alerts:
        print(line, file=sys.stderr)
    try:
        if not write_json(to.json_to, answer.to_json()):
            _print(answer, to)
        # The answer first: figures and reports take longer than a decision may wait.
        sys.stdout.flush()
    finally:
        # A reader such as `head` may close the pipe early. The files are wanted all the same.
        written = answer.save(to.out, page=to.page, width_inch=to.width_inch)
    # A program that reads the document knows what it asked for.
    if to.json_to != "-":
        list_written(written)
    # An answer that is not complete says so, whether or not the audit refuses a part of it.
    status = answer.status or audited_status(answer.refusals, unchecked=unchecked)
    if status:
        raise typer.Exit(status)


def _print(answer: Answer, to: Destination) -> None:
    """Print warnings on standard error, then sentences and tables."""
    from stripesim.scenarios.show.tables import Table, terminal_table

    warn_outside(answer.outside, page=to.page)
    outside = set(map(str, answer.outside))
    for line in answer.warnings:
        if line not in outside:
            print(f"warning: {line}", file=sys.stderr)
    for part in answer.shown:
        if isinstance(part, str):
            print(part)
        elif isinstance(part, Table):
            terminal = console()
            terminal.print(terminal_table(part, terminal.width))
        else:
            terminal = console(part.file_width)
            terminal.print(part.lay_out(terminal), crop=False)
    for line in answer.notes:
        print(line, file=sys.stderr)


#: Up to this many files are listed on standard error, more in a file of their folder.
_LISTED_MAX: Final = 12
MANIFEST: Final = "files.txt"
#: Suffixes of pictures, those that most viewers show first.
_PICTURES: Final = (".png", ".pdf", ".svg")


def list_written(paths: list[Path]) -> None:
    """List the files that were written on standard error; of many, their folder and first picture."""
    if not paths:
        return
    folder = Path(os.path.commonpath([path.parent for path in paths]))
    _warn_of_older(folder, paths)
    if len(paths) <= _LISTED_MAX:
        for path in paths:
            print(f"wrote {path}", file=sys.stderr)
        return
    names = "".join(f"{path.relative_to(folder)}\n" for path in paths)
    (folder / MANIFEST).write_text(names, encoding="utf-8")
    line = f"wrote {len(paths)} files into {folder} (listed in {MANIFEST})"
    picture = _first_picture(paths)
    if picture is not None:
        line += f"; the first picture is {picture}"
    print(line, file=sys.stderr)


def _warn_of_older(folder: Path, paths: Sequence[Path]) -> None:
    """Warn of files that an earlier answer left in the folder, such as figures of other schemes."""
    try:
        listed = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    older = [
        name
        for name in listed
        if folder / name not in paths and (folder / name).is_file()
    ]
    if older:
        from stripesim.scenarios.schema.units import counted_text

        counted = counted_text(len(older), "file")
        print(
            f"warning: {folder} still holds {counted} of an earlier answer, such as {older[0]}",
            file=sys.stderr,
        )


def _first_picture(paths: Sequence[Path]) -> Path | None:
    """Return the first picture of the kind that most viewers show, or None without one."""
    for suffix in _PICTURES:
        for path in paths:
            if path.suffix == suffix:
                return path
    return None


#: Name of the page of a command that writes into a folder of its own.
REPORT: Final = "report.html"


def warn_outside(outside: Sequence[Problem], *, page: Path | None = None) -> None:
    """Warn in one line about values outside the calibrated range and name the page with the details."""
    if not outside:
        return
    if len(outside) == 1:
        print(f"warning: outside the calibrated range: {outside[0]}", file=sys.stderr)
        return
    named = ", ".join(
        dict.fromkeys(problem.key or problem.place for problem in outside)
    )
    where = page or "--out DIR --report, or --json -"
    print(
        f"warning: outside the calibrated range in {len(outside)} respects: {named}; in full: {where}",
        file=sys.stderr,
    )


def warn_refused(refusals: Iterable[str], *, unchecked: bool) -> None:
    """Print a line for each row that the audit refuses."""
    label = "unchecked" if unchecked else "refused"
    for line in refusals:
        print(f"{label}: {line}", file=sys.stderr)


def audited_status(refusals: Sequence[str], *, unchecked: bool) -> int:
    """Return the exit status of a command after its audit: 3 if numbers are withheld."""
    if not refusals or unchecked:
        return 0
    from stripesim.models.problems import RefusedError

    return RefusedError.exit_status


class progress:  # noqa: N801 - used as a function in `with`
    """Show a progress bar on standard error if that is a terminal."""

    def __init__(self, title: str, total: int | None) -> None:
        self._title = title
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            from stripesim.models.jit.prebuilt import has_library

            # A bar of known length has nothing to show before the first step. Without a thread until then,
            # this process can fork workers.
            self._bar = _progress_bar(is_alive=total is None)
            # Without the built kernels, a first run compiles them for a minute before its first step.
            first = "starting" if has_library() else "a first run compiles the engine"
            self._task = self._bar.add_task(f"{title}: {first}", total=total)

    def __enter__(self) -> progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, sentence: str) -> None:
        """Print a sentence above the bar that stays there, such as an answer that is known early."""
        if self._bar is not None:
            self._bar.console.print(sentence, markup=False, highlight=False)

    def __call__(self, words: str, total: int | None = None) -> None:
        """Advance one step and show a short description. `total` sets the number of steps if now known."""
        if self._bar is None:
            return
        if not self._bar.live.auto_refresh:
            self._bar.stop()
            self._bar.live.auto_refresh = True
            self._bar.start()
        known: dict[str, Any] = {} if total is None else {"total": total}
        task = self._bar.tasks[self._task]
        if total is None and task.total and task.completed + 1 > task.total:
            # More steps than were expected: at least the one that begins is left.
            known["total"] = task.completed + 2
        # Cut the description so that the remaining time fits on a narrow terminal.
        self._bar.update(
            self._task, advance=1, description=f"{self._title}: {words}"[:44], **known
        )


def _progress_bar(*, is_alive: bool) -> Progress:
    """Return a bar without tasks. Only a terminal needs Rich, which takes time to load.

    A bar that is alive has a thread that draws it again and again.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=is_alive,
        # The answer follows: nothing of the bar stays on the screen.
        transient=True,
    )
