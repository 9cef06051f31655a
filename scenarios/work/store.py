"""Store the rows of a sweep on disk as they complete, in files of JSON lines that are merged regularly.

JSON needs no Polars, whose threads would keep the sweep from forking its workers (``pool.py``).
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from stripesim.models.documents import json_line
from stripesim.models.problems import AnswerError, Problem, file_reason
from stripesim.scenarios.show.files import write_files
from stripesim.scenarios.work.task import SweepTask

#: Number of files at which they are merged into one.
_FILES_MAX: Final = 256

_MERGED: Final = "merged-"
_SUFFIX: Final = ".jsonl.gz"


class PartStore:
    """The folder ``parts`` of a sweep's output, held by one process at a time.

    Files are written under a temporary name and then renamed, and their names end in the SHA-256 of their
    bytes, so that incomplete and corrupt files are detected. Damaged files are renamed to ``*.damaged`` and
    counted, and their tasks run again.
    """

    def __init__(self, out_dir: Path, *, resume: bool) -> None:
        self.out_dir = out_dir
        self._folder = out_dir / "parts"
        self.rows: dict[str, dict[str, Any]] = {}
        self.damaged = 0
        #: True if the folder had rows before, if only of another version
        self.had_rows = False
        # Files that are not merged yet.
        self._files_count = 0
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise AnswerError(
                Problem(
                    place="--out",
                    key=str(out_dir),
                    got=file_reason(error),
                    wanted="a folder results can be written to",
                )
            ) from None
        try:
            self._open(out_dir, resume=resume)
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> PartStore:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    def add(self, ended: Sequence[tuple[SweepTask, dict[str, Any]]]) -> None:
        """Store the rows of tasks that have ended together in one file, and keep the rows themselves."""
        if not ended:
            return
        first, _ = ended[0]
        lines = [
            _line({"task": task.task_id, "swept": dict(task.swept), "row": row})
            for task, row in ended
        ]
        self._write(first.task_id, lines)
        self.rows |= {task.task_id: row for task, row in ended}
        self._files_count += 1
        if self._files_count >= _FILES_MAX:
            self._merge()

    def _open(self, out_dir: Path, *, resume: bool) -> None:
        """Lock the folder and read the rows in it."""
        try:
            # The system releases the lock whenever the process ends.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise AnswerError(
                Problem(
                    place="--out",
                    key=str(out_dir),
                    got="a folder that another sweep is writing to",
                    wanted="a separate folder",
                )
            ) from None
        files = self._files()
        # A folder may hold rows of an earlier version, in other files.
        self.had_rows = any(self._folder.glob("[!.]*"))
        if self.had_rows and not resume:
            raise AnswerError(
                Problem(
                    place="--out",
                    key=str(out_dir),
                    got="a folder with rows of a sweep",
                    wanted="--resume to continue it, or another folder",
                )
            )
        for stale in self._folder.glob(".*.tmp"):
            stale.unlink(missing_ok=True)
        for path in files:
            self._read(path)
        self._merge()

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(f"*{_SUFFIX}"))

    def _write(self, stem: str, lines: Sequence[str]) -> None:
        # Without a time, equal rows give equal files.
        content = gzip.compress("".join(lines).encode(), mtime=0)
        write_files(self._folder, {f"{stem}.{_digest(content)}{_SUFFIX}": content})

    def _read(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except OSError:
            content = b""
        if path.name.removesuffix(_SUFFIX).split(".")[-1] != _digest(content):
            self.damaged += 1
            path.rename(path.with_suffix(".damaged"))
            return
        for line in _lines_in(content):
            stored = json.loads(line)
            self.rows[stored["task"]] = stored["row"]

    def _merge(self) -> None:
        """Merge small files into one; no row is lost if the process ends in the middle."""
        small = [path for path in self._files() if not path.name.startswith(_MERGED)]
        self._files_count = len(small)
        if self._files_count < _FILES_MAX:
            return
        lines = [line for path in small for line in _lines_in(path.read_bytes())]
        self._write(f"{_MERGED}{len(lines)}", lines)
        for path in small:
            path.unlink(missing_ok=True)
        self._files_count = 0


def _line(stored: Mapping[str, Any]) -> str:
    return json_line(stored) + "\n"


def _lines_in(content: bytes) -> list[str]:
    return gzip.decompress(content).decode().splitlines(keepends=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
