"""Read a trace file as a stream of bytes, plain or compressed, in blocks of whole lines.

The standard library decompresses gz, xz, bz2 and zip. fsspec cannot replace this module: it recognises
compression by name, reads only the first of several files in a zip, and ends a truncated zstd stream without
an error. A trace must never lose data silently.
"""

import bz2
import codecs
import gzip
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import zstandard

from stripesim.models.problems import TraceError
from stripesim.traces.problems import FaultLog

BLOCK_BYTES = 4 << 20
"""Amount of text held at a time [B]. Streaming needs a small multiple of it, independent of file size."""

LINE_BYTES_MAX = 1 << 16
"""Longer lines are not trace lines. The limit detects binary data without holding all of it [B]."""

BYTE_ORDER_MARK = codecs.BOM_UTF8
"""Some editors write it before UTF-8 text. It belongs to no cell."""

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""The first bytes of text in UTF-16, which some spreadsheets export."""

HEAD_BYTES = 1 << 16
HEAD_LINES = 64
"""Limits on the part of a file that is used to detect its format [B, lines]."""

EXPANDED_BYTES_MAX = 64 << 20
"""Any compressed file may expand to this size [B], and beyond it to `EXPANSION_MAX` times its own size."""

EXPANSION_MAX = 200
"""Traces compress by factors of 3 to 100. A file that expands further could exhaust memory.

200 kB yield at most 64 MiB of text, whose requests take less than 1 GB.
"""

_PIECE_BYTES = 1 << 20
_ZSTD_PIECE_BYTES = 1 << 10

_BROKEN: tuple[type[Exception], ...] = (
    EOFError,
    OSError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
)


class ByteStream(Protocol):
    """Interface of an open file, as used by the formats."""

    def read1(self, size: int, /) -> bytes:
        """Return up to `size` bytes, b'' at the end."""

    def close(self) -> None:
        """Close the file."""


@dataclass(frozen=True)
class Head:
    """The start of a file: its first decompressed bytes, its first non-blank lines, and its path."""

    data: bytes
    lines: tuple[str, ...]
    path: Path


@dataclass(frozen=True)
class Block:
    """Consecutive whole lines of a text file, numbered from 1. The last one may lack its newline."""

    first_line: int
    data: bytes

    def lines(self) -> list[str]:
        """Return the lines without line ends. Bytes that are not UTF-8 become U+FFFD."""
        text = self.data.decode("utf-8", "replace")
        if text:
            return text.removesuffix("\n").split("\n")
        return []


def _open(path: Path) -> ByteStream:
    with path.open("rb") as file:
        magic = file.read(6)
    for start, opener in _OPENERS.items():
        if magic.startswith(start):
            return opener(path)
    return path.open("rb")


def _open_zip(path: Path) -> ByteStream:
    try:
        with zipfile.ZipFile(path) as archive:
            # Ignore files that macOS adds.
            names = [m for m in archive.infolist() if not m.is_dir()]
            members = [m for m in names if not m.filename.startswith("__MACOSX/")]
            if len(members) != 1:
                raise TraceError(
                    f"{path}: got a zip archive of {len(members)} files, wanted one file in it"
                )
            # The open member keeps the archive open.
            return archive.open(members[0])  # type: ignore[return-value]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise TraceError(
            f"{path}: got a zip archive that cannot be opened ({error}), wanted an intact one"
        ) from None


class _Zstd:
    """A zstd stream that raises the same exceptions as other streams."""

    def __init__(self, path: Path) -> None:
        self._decompressor = zstandard.ZstdDecompressor()
        self._frame = self._decompressor.decompressobj()
        self._file = path.open("rb")
        self._begun = False
        self._ready = b""

    def read1(self, size: int, /) -> bytes:
        while not self._ready:
            # Read small pieces, because a few bytes may expand to 128 KiB.
            data = self._frame.unused_data if self._frame.eof else b""
            data = data or self._file.read(_ZSTD_PIECE_BYTES)
            if self._frame.eof:
                self._frame = self._decompressor.decompressobj()
                self._begun = False
            if not data:
                if self._begun:
                    raise EOFError("the last frame is not complete")
                return b""
            self._begun = True
            try:
                self._ready = self._frame.decompress(data)
            except zstandard.ZstdError as error:
                raise OSError(str(error)) from None
        piece = self._ready[:size]
        self._ready = self._ready[size:]
        return piece

    def close(self) -> None:
        self._file.close()


_OPENERS: dict[bytes, Callable[[Path], ByteStream]] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"BZh": bz2.open,
    b"PK\x03\x04": _open_zip,
    b"\x28\xb5\x2f\xfd": _Zstd,
}


def companion(path: Path, word: str) -> Path:
    """Return the name of the file with the second table of a trace.

    Examples
    --------
    >>> companion(Path("t.csv.gz"), "commands").name
    't.commands.csv.gz'
    """
    match = re.fullmatch(r"(.*?)((\.(csv|parquet)(\.\w+)?)?)", path.name, re.DOTALL)
    assert match is not None
    return path.with_name(f"{match[1]}.{word}{match[2]}")


@dataclass(frozen=True)
class Break:
    """Reason why a stream ends prematurely, with the fields of a `Fault`."""

    got: str
    wanted: str


@dataclass(frozen=True)
class TraceSource:
    """A trace file, read in blocks of `block_bytes`. Compression is detected by content, not by name."""

    path: Path
    block_bytes: int = BLOCK_BYTES

    def open(self) -> ByteStream:
        """Open the decompressed stream."""
        try:
            return _open(self.path)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise TraceError(
                f"{self.path}: got {reason!r}, wanted a readable file"
            ) from None

    def head(self) -> Head:
        """Return the start of the file, at most `HEAD_BYTES` and `HEAD_LINES`."""
        data = b""
        # The readable part suffices to detect the format. Reading the whole file locates a break.
        with closing(self.open()) as stream, suppress(*_BROKEN):
            while len(data) < HEAD_BYTES and (
                piece := stream.read1(HEAD_BYTES - len(data))
            ):
                data += piece
        text = data.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
        lines = [line for line in text.split("\n") if line.strip()]
        # The last line of a full head is cut at an arbitrary position.
        if len(data) == HEAD_BYTES and len(lines) > 1:
            complete = lines[:-1]
        else:
            complete = lines
        return Head(data, tuple(complete[:HEAD_LINES]), self.path)

    def pieces(self, piece_bytes: int = _PIECE_BYTES) -> Iterator[bytes | Break]:
        """Yield the decompressed bytes, with a `Break` as the last item if they end prematurely."""
        with closing(self.open()) as stream:
            packed = self.path.stat().st_size
            most = max(EXPANDED_BYTES_MAX, EXPANSION_MAX * packed)
            total = 0
            while True:
                try:
                    piece = stream.read1(piece_bytes)
                except _BROKEN as error:
                    problem = f"a compressed stream that breaks off ({error or type(error).__name__})"
                    yield Break(problem, "a complete stream")
                    return
                if not piece:
                    return
                total += len(piece)
                if total > most:
                    yield Break(
                        f"more than {most >> 20} MiB from a compressed file of {packed:,} bytes",
                        f"at most {EXPANSION_MAX} times its size (or {EXPANDED_BYTES_MAX >> 20} MiB): "
                        "reading stops here, decompress a genuine trace first",
                    )
                    return
                yield piece

    def blocks(self, log: FaultLog) -> Iterator[Block]:
        """Yield the text in blocks of whole lines."""
        line = 1
        rest = b""
        begun = False
        for piece in self.pieces(min(_PIECE_BYTES, self.block_bytes)):
            if isinstance(piece, Break):
                log.add(line + rest.count(b"\n"), piece.got, piece.wanted)
                break
            rest += piece
            if not begun and len(rest) >= len(BYTE_ORDER_MARK):
                rest = rest.removeprefix(BYTE_ORDER_MARK)
                begun = True
            if len(rest) < self.block_bytes:
                continue
            cut = rest.rfind(b"\n") + 1
            if cut:
                yield Block(line, rest[:cut])
                line += rest.count(b"\n", 0, cut)
                rest = rest[cut:]
            elif len(rest) > self.block_bytes + LINE_BYTES_MAX:
                # A single endless line: keep only enough to report it as a fault.
                rest = rest[:LINE_BYTES_MAX]
        if rest:
            yield Block(line, rest)


Result = TypeVar("Result")


@dataclass(frozen=True)
class TraceFormat(Generic[Result]):
    """A format. Readers of block formats yield chunks; those of failure formats return a whole trace."""

    name: str  #: Name for ``--format``
    sniff: Callable[
        [Head], bool
    ]  #: Returns True if a file with this start has the format
    read: Callable[[TraceSource, FaultLog], Result]  #: Reads a file and reports faults
