"""Find the line of each key in a TOML document, and write values as TOML."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

#: A path of table names, keys and list indices: ``("schemes", 1)`` is the second scheme.
KeyPath = tuple[str | int, ...]

#: Maximum length of one part of a key in messages.
KEY_CHARACTERS_MAX: Final = 60

# A multi-line string may end with two quotes of its own before the closing ones. Repetitions advance by
# quotes and escapes, not by characters, because each repetition takes about a hundred bytes.
_STRING: Final = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"{3,5}'
    r"|'''[^']*(?:'(?!'')[^']*)*'{3,5}"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BLANK: Final = re.compile(r"[ \t\r\n]*(?:#[^\n]*[ \t\r\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR: Final = re.compile(r"[^,\]}#\n]*")


def locate_keys(text: str) -> dict[KeyPath, int]:
    r"""Map every key path of a valid TOML document to its line.

    Notes
    -----
    tomllib and tomlkit do not keep positions. tree-sitter-toml returns tokens with positions, but leaves
    dotted keys and arrays of tables unresolved. The time is linear in the length of the text, as long as
    keys have few parts (`stripesim.scenarios.schema.toml_bounds`).

    Examples
    --------
    >>> locate_keys('a = 1\n[b]\nc.d = [1,\n 2]')
    {('a',): 1, ('b',): 2, ('b', 'c'): 3, ('b', 'c', 'd'): 3, ('b', 'c', 'd', 0): 3, ('b', 'c', 'd', 1): 4}
    """
    return _Scanner(text).scan()


class _Scanner:
    """Scan a document that tomllib accepts. Assuming valid TOML 1.0, it only follows the structure."""

    def __init__(self, text: str) -> None:
        # tomllib reads CRLF as LF, too. This keeps the patterns simple and line numbers correct.
        self.text = text.replace("\r\n", "\n")
        self.position = 0
        self.line = 1
        self.line_position = 0
        self.lines: dict[KeyPath, int] = {}
        self.tables_in_array: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip(_BLANK) < len(self.text):
            if self.text.startswith("[[", self.position):
                table = self._array_header()
            elif self.text[self.position] == "[":
                self.position += 1
                table = self._table(self._key())
                self.position = self.text.index("]", self.position) + 1
            else:
                self._pair(table)
        return self.lines

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.position)
        assert match is not None, "patterns that skip match the empty string"
        self.position = match.end()
        return self.position

    def _note(self, path: KeyPath) -> None:
        self.line += self.text.count("\n", self.line_position, self.position)
        self.line_position = self.position
        self.lines.setdefault(path, self.line)

    def _table(self, keys: tuple[str, ...]) -> KeyPath:
        """Resolve a table header to a path. The name of an array of tables refers to its last element."""
        path: KeyPath = ()
        for key in keys:
            path = (*path, key)
            self._note(path)
            if path in self.tables_in_array:
                path = (*path, self.tables_in_array[path])
        return path

    def _array_header(self) -> KeyPath:
        self.position += 2
        keys = self._key()
        array: KeyPath = (*self._table(keys[:-1]), keys[-1])
        self._note(array)
        index = self.tables_in_array.get(array, -1) + 1
        self.tables_in_array[array] = index
        self._note((*array, index))
        self.position = self.text.index("]]", self.position) + 2
        return (*array, index)

    def _key(self) -> tuple[str, ...]:
        """Read a key, which may be dotted, including surrounding space."""
        keys: list[str] = []
        while True:
            self._skip(_SPACE)
            quoted = self.text[self.position] in "\"'"
            match = (_STRING if quoted else _BARE_KEY).match(self.text, self.position)
            assert match is not None, (
                "tomllib accepted this document, so a key stands here"
            )
            keys.append(_unquoted(match[0]) if quoted else match[0])
            self.position = match.end()
            self._skip(_SPACE)
            if self.text[self.position] != ".":
                return tuple(keys)
            self.position += 1

    def _pair(self, table: KeyPath) -> None:
        path = table
        for key in self._key():
            path = (*path, key)
            self._note(path)
        assert self.text[self.position] == "=", (
            "tomllib accepted this document, so a value follows"
        )
        self.position += 1
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._skip(_SPACE)
        string = _STRING.match(self.text, self.position)
        if string is not None:
            self.position = string.end()
        elif self.text[self.position] == "[":
            for index in self._items("]"):
                self._note((*path, index))
                self._value((*path, index))
        elif self.text[self.position] == "{":
            for _ in self._items("}"):
                self._pair(path)
        else:
            self._skip(_SCALAR)

    def _items(self, end: str) -> Iterator[int]:
        """Yield the index of each item of an array or inline table, then skip its end."""
        self.position += 1
        count = 0
        while self.text[self._skip(_BLANK)] != end:
            if self.text[self.position] == ",":
                self.position += 1
                continue
            yield count
            count += 1
        self.position += 1


def _unquoted(written: str) -> str:
    if "\\" not in written or written[0] == "'":
        return written[1:-1]
    # tomllib resolves the escapes of a quoted key.
    key: str = tomllib.loads(f"v = {written}")["v"]
    return key


def key_text(path: KeyPath) -> str:
    """Write a key path with dots, without list indices, which the line number replaces.

    >>> key_text(("workload", "block_sizes_bytes", 2))
    'workload.block_sizes_bytes'
    """
    parts = [
        shorten(part, KEY_CHARACTERS_MAX) for part in path if isinstance(part, str)
    ]
    # A terminal would interpret control characters.
    return ".".join(part if part.isprintable() else repr(part) for part in parts)


def shorten(text: str, characters: int) -> str:
    """Truncate a text to a maximum length, with an ellipsis as its last character.

    >>> shorten("block_sizes_bytes", 6), shorten("hosts", 6)
    ('block…', 'hosts')
    """
    return text if len(text) <= characters else text[: characters - 1] + "…"


def escaped(text: str) -> str:
    r"""Replace characters that a terminal or a file would interpret by escape sequences.

    >>> escaped("rbd\x1b[2J\u202e\n")
    'rbd\\x1b[2J\\u202e\\n'
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


@dataclass(frozen=True, eq=False)
class KeyPlaces:
    """Locations of a document's keys: lines from `locate_keys`, and overrides (``--set``)."""

    label: str = ""
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    overrides: Mapping[KeyPath, str] = field(default_factory=dict)
    has_lines: bool = True  #: False for values from Python

    def __eq__(self, other: object) -> bool:
        """Return True for any two: locations do not affect the equality of scenarios."""
        return isinstance(other, KeyPlaces)

    def __hash__(self) -> int:
        return hash(KeyPlaces)

    def find(self, path: KeyPath) -> tuple[int, str]:
        """Return the location of a key: a number to sort by, and the text."""
        prefixes = range(len(path), -1, -1)
        for length in prefixes:
            # An override hides the lines of all keys below it.
            if path[:length] in self.overrides:
                return 2**62, self.overrides[path[:length]]
        if path and path not in self.lines:
            # A table that exists only through an override of one of its keys is located there.
            for key, place in self.overrides.items():
                if key[: len(path)] == path:
                    return 2**62, place
        for length in prefixes:
            if path[:length] in self.lines:
                return self.lines[
                    path[:length]
                ], f"{self.label}:{self.lines[path[:length]]}"
        return 1, f"{self.label}:1" if self.has_lines else self.label

    def place(self, path: KeyPath) -> str:
        """Return the location of a key as text, empty if there is no document."""
        return self.find(path)[1] if self.label or self.overrides else ""

    def text(self, path: KeyPath) -> str:
        """Write ``place: key``, or only the key if there is no document."""
        return ": ".join(part for part in (self.place(path), key_text(path)) if part)
