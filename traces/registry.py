"""The formats that can be read, and how a file's format is recognised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from stripesim.traces.columns import Chunk
from stripesim.traces.formats.alibaba import ALIBABA
from stripesim.traces.formats.blkparse import BlkparseFormat
from stripesim.traces.formats.blkreplay import BLKREPLAY
from stripesim.traces.formats.blktrace import BlktraceFormat
from stripesim.traces.formats.cloudphysics import CLOUDPHYSICS
from stripesim.traces.formats.disksim import DISKSIM
from stripesim.traces.formats.fio_iolog import FioIologFormat
from stripesim.traces.formats.msr import MSR
from stripesim.traces.formats.spc import SPC
from stripesim.traces.formats.ssdsim import SSDSIM
from stripesim.traces.formats.systor import SYSTOR
from stripesim.traces.formats.tencent import TENCENT
from stripesim.traces.formats.vscsi import VscsiFormat
from stripesim.traces.problems import FaultLog, TraceError, shown
from stripesim.traces.source import BYTE_ORDER_MARK, HEAD_BYTES, TraceSource

SNIFFED_LINES = 64
"""How many lines a format sees to tell whether a file is its own."""


@dataclass(frozen=True)
class Head:
    """The start of a file.

    Parameters
    ----------
    data : bytes
        First decompressed bytes, for binary formats.
    lines : tuple of str
        First lines that are not blank, for text formats.
    """

    data: bytes
    lines: tuple[str, ...]


class TraceFormat(Protocol):
    """What a format must offer; one file per format."""

    @property
    def name(self) -> str:
        """Its name for `--format`."""

    def sniff(self, lines: tuple[str, ...], data: bytes) -> bool:
        """Tell from the first lines (text) or bytes (binary) whether a file is of this format."""

    def chunks(self, source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
        """Yield the file's requests in bounded parts, noting faults in `log`."""


FORMATS: tuple[TraceFormat, ...] = (
    BlktraceFormat(),
    BlkparseFormat(),
    MSR,
    FioIologFormat(),
    SPC,
    SYSTOR,
    ALIBABA,
    # Before Tencent's, whose columns are numbers too but for the operation code.
    CLOUDPHYSICS,
    TENCENT,
    BLKREPLAY,
    DISKSIM,
    SSDSIM,
    VscsiFormat(),
)
"""All formats, in the order in which they are asked."""


def head_of(source: TraceSource) -> Head:
    """Read the start of a file."""
    data = source.head()
    text = data.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    lines = [line for line in text.split("\n") if line.strip()]
    # The last line of a full head is cut anywhere and would only mislead.
    complete = lines[:-1] if len(data) == HEAD_BYTES and len(lines) > 1 else lines
    return Head(data, tuple(complete[:SNIFFED_LINES]))


def by_name(name: str) -> TraceFormat:
    """Return the format called `name`."""
    for candidate in FORMATS:
        if candidate.name == name:
            return candidate
    raise TraceError(f"--format: got {shown(name)}, wanted one of {_names()}")


def detect(source: TraceSource) -> TraceFormat:
    """Tell a file's format from how it starts."""
    head = head_of(source)
    if not head.data.strip():
        raise TraceError(f"{source.path}: got an empty file, wanted a block trace")
    for candidate in FORMATS:
        if candidate.sniff(head.lines, head.data):
            return candidate
    first = head.lines[0] if head.lines else ""
    raise TraceError(
        f"{source.path}:1: got {shown(first)}, wanted a block trace ({_names()}); --format forces one"
    )


def _names() -> str:
    return ", ".join(candidate.name for candidate in FORMATS)
