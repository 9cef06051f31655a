"""Read the output of ``rados bench``, as text or with ``--format json``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from stripesim.models.documents import document_in
from stripesim.models.problems import MeasuredError, Problem
from stripesim.scenarios.answers.calibrate.fio_output import FioLoad

#: Sign of each form: a key of the JSON document, a line of the text.
_JSON_SIGN: Final = "total_time_run"
# The option --show-time puts the time before the lines of the progress, and the first line after them.
_TIME: Final = r"^(?:\d{4}-\d\d-\d\d[T ]\S+ )?"
_TEXT_SIGN: Final = re.compile(rf"{_TIME}Total time run", flags=re.MULTILINE)
#: Line of the text: name, an optional unit and colon, number.
_LINE: Final = re.compile(
    rf"{_TIME}([A-Z][A-Za-z ]+?)(?: *\([^)]*\))?:? +([0-9.]+)\s*$",
    flags=re.MULTILINE,
)
#: Line of the progress table: second, operations in flight, started, finished.
_PROGRESS: Final = re.compile(rf"{_TIME} *\d+ +(\d+) +\d+ +\d+ ", flags=re.MULTILINE)
_MAINTAINING: Final = re.compile(r"Maintaining (\d+) concurrent")


def is_rados_bench(text: str) -> bool:
    """Return True for the output of ``rados bench``."""
    return bool(_TEXT_SIGN.search(text)) or f'"{_JSON_SIGN}"' in text


def read_rados_bench(path: Path, text: str) -> FioLoad:
    """Read what ``rados bench`` measured.

    Its output does not tell sequential reads from random ones: they are random if the file name has ``rand``.

    Raises
    ------
    MeasuredError
        If a number is missing.
    """
    numbers = _numbers(path, text)
    writes = numbers.get("total writes made")
    requests = writes or numbers.get("total reads made")
    duration_s = numbers.get("total time run")
    size_bytes = numbers.get("write size") or numbers.get("read size")
    latency_s = numbers.get("average latency")
    if not (requests and duration_s and size_bytes and latency_s):
        got = "no time, number of requests, size or average latency"
        wanted = "the whole output of rados bench"
        raise MeasuredError(Problem(place=str(path), got=got, wanted=wanted))
    iops = requests / duration_s
    # Reads do not state their concurrency: then it follows from Little's law.
    queue_depth = numbers.get("concurrent") or round(iops * latency_s) or 1
    return FioLoad(
        op="write" if writes else "read",
        pattern="rand" if "rand" in path.stem else "seq",
        block_bytes=int(size_bytes),
        clients=1,
        queue_depth=int(queue_depth),
        measured={"iops": iops, "latency_mean_ms": 1e3 * latency_s},
        # Releases that do not state it have no other than the size of a request.
        object_bytes=int(numbers.get("object size") or size_bytes),
    )


def _numbers(path: Path, text: str) -> dict[str, float]:
    """Return the numbers of the output by name, in lower case."""
    if _TEXT_SIGN.search(text):
        return _numbers_of_text(text)
    try:
        document = document_in(text)
    except (ValueError, RecursionError) as error:
        raise MeasuredError(
            Problem(place=str(path), got=str(error), wanted="the output of rados bench")
        ) from None
    numbers = {
        key.replace("_", " ").rstrip(": "): number
        for key, value in document.items()
        if (number := _number(value)) is not None
    }
    in_flight = numbers.get("concurrent ios") or _most_in_flight(document)
    if in_flight:
        numbers["concurrent"] = in_flight
    return numbers


def _numbers_of_text(text: str) -> dict[str, float]:
    numbers = {
        name.strip().lower(): float(value)
        for name, value in _LINE.findall(text)
        if _number(value) is not None
    }
    stated = _MAINTAINING.search(text)
    in_flight = max((int(count) for count in _PROGRESS.findall(text)), default=0)
    if stated:
        in_flight = int(stated[1])
    if in_flight:
        numbers["concurrent"] = float(in_flight)
    return numbers


def _most_in_flight(document: Mapping[str, Any]) -> float:
    """Return the highest number of operations in flight among the samples of a document."""
    samples = document.get("datas", [])
    counts = [
        _number(sample.get("cur_ops")) or 0.0
        for sample in samples
        if isinstance(sample, dict)
    ]
    return max(counts, default=0.0)


def _number(value: Any) -> float | None:
    """Return a number above or at 0. Releases differ in whether they quote it."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number >= 0 and number != float("inf") else None
