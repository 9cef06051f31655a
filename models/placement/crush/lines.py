"""Read the lines of a CRUSH map's text: declarations with their blocks, values and choose_args."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stripesim.models.placement.crush.elements import WEIGHT_ONE, BucketArgs
from stripesim.models.placement.crush.problems import VALUE_MAX, Problems

_BUCKET_WEIGHT_MAX = 65535
_WORD = re.compile(r"[{}]|[^\s{}]+")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")

_TOKEN = re.compile(r"[\[\]]|[^\[\]]+")
_ENDS = {"{": "}", "[": "]"}

Statement = tuple[int, list[str]]


class Declaration(NamedTuple):
    """A line with its words, and the statements of the block that follows it, if any."""

    line: int
    words: list[str]
    body: list[Statement] | None


class Lines(Problems):
    """Read a text. Invalid values are reported and replaced, since the map is rejected in the end."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._seen: dict[tuple[str, object], int] = {}

    def declarations(self, text: str) -> Iterator[Declaration]:
        """Yield declarations, each with its block including nested ones."""
        statements = list(_statements(text))
        if not statements:
            self.add(1, "an empty map", "the text crushtool -d prints")
        position = 0
        while position < len(statements):
            line, words = statements[position]
            position += 1
            if words[0] in ("{", "}"):
                self.add(line, f"a stray {words[0]!r}", "a declaration")
                continue
            body: list[Statement] | None = None
            depth = 0
            if position < len(statements) and statements[position][1] == ["{"]:
                body = []
                depth = 1
                position += 1
            while depth and position < len(statements):
                depth += {"{": 1, "}": -1}.get(statements[position][1][0], 0)
                if body is not None and depth:
                    body.append(statements[position])
                position += 1
            if depth:
                self.add(line, "a block without its end", "a closing '}'")
            yield Declaration(line, words, body)

    def whole(self, text: str, least: int, most: int, noun: str, line: int) -> int:
        """Return a whole number within bounds; for invalid text, a unique number below them."""
        if _INTEGER.fullmatch(text) and least <= int(text) <= most:
            return int(text)
        self.add(line, f"{noun} {text!r}", f"a whole number from {least} to {most}")
        return least - len(self.found)

    def weight(self, text: str, line: int) -> int:
        """Return a weight in 16.16 fixed point, truncated from a 32-bit float as in Ceph's compiler."""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and 0 <= value <= _BUCKET_WEIGHT_MAX):
            self.add(
                line, f"weight {text!r}", f"a number from 0 to {_BUCKET_WEIGHT_MAX}"
            )
            return 0
        return int(float(np.float32(value)) * WEIGHT_ONE)

    def check_name(self, name: str, line: int) -> None:
        """Report a name that Ceph does not allow."""
        if not _NAME.fullmatch(name):
            self.add(line, f"name {name!r}", "letters, digits, '_', '-' and '.'")

    def once(self, noun: str, value: object, line: int) -> None:
        """Report a value that an earlier declaration already uses."""
        if (noun, value) in self._seen:
            first = self._seen[noun, value]
            self.add(
                line,
                f"duplicate {noun} {value}",
                f"a value not used in line {first}",
            )
        self._seen.setdefault((noun, value), line)


def _statements(text: str) -> Iterator[Statement]:
    """Split a text into lines without comments. A brace is a separate statement."""
    for line, content in enumerate(text.split("\n"), start=1):
        words: list[str] = []
        for word in _WORD.findall(content.split("#", 1)[0]):
            if word in ("{", "}"):
                if words:
                    yield line, words
                yield line, [word]
                words = []
            else:
                words.append(word)
        if words:
            yield line, words


class _Node(NamedTuple):
    """A word, or an opening bracket with everything up to its closing one."""

    line: int
    word: str
    content: list[_Node]


def read_choose_args(
    line: int, body: list[Statement], lines: Lines
) -> Iterator[tuple[int, BucketArgs]]:
    """Read the body of ``choose_args N { … }``. Yield each bucket's changes with their first line."""
    for entry in _nested(line, body, lines):
        if entry.word != "{":
            wanted = "'{ bucket_id N weight_set [ [ W … ] … ] ids [ N … ] }'"
            lines.add(entry.line, repr(entry.word), wanted)
            continue
        bucket_id = 0
        ids: tuple[int, ...] = ()
        weight_sets: list[tuple[int, ...]] = []
        content = iter(entry.content)
        for key in content:
            value = next(content, _Node(key.line, "", []))
            match key.word, value.word:
                case "bucket_id", number:
                    bucket_id = lines.whole(
                        number, -VALUE_MAX, -1, "bucket id", value.line
                    )
                case "ids", "[":
                    ids = tuple(
                        lines.whole(n.word, -VALUE_MAX, VALUE_MAX, "id", n.line)
                        for n in value.content
                    )
                case "weight_set", "[":
                    for position in value.content:
                        if position.word != "[":
                            lines.add(
                                position.line,
                                repr(position.word),
                                "'[ W … ]' for each position",
                            )
                        weight_sets.append(
                            tuple(
                                lines.weight(w.word, w.line) for w in position.content
                            )
                        )
                case _:
                    lines.add(
                        key.line,
                        repr(key.word),
                        "'bucket_id N', 'weight_set [ … ]' or 'ids [ … ]'",
                    )
        if bucket_id:
            yield entry.line, BucketArgs(bucket_id, tuple(weight_sets), ids)
        else:
            lines.add(
                entry.line, "choose_args without a bucket", "a line 'bucket_id N'"
            )


def _nested(line: int, body: list[Statement], lines: Lines) -> list[_Node]:
    path = [_Node(line, "", [])]
    tokens = (
        (at, token)
        for at, words in body
        for word in words
        for token in _TOKEN.findall(word)
    )
    for at, token in tokens:
        if token in _ENDS.values():
            if token == _ENDS.get(path[-1].word):
                path.pop()
            else:
                lines.add(at, repr(token), f"{_ENDS.get(path[-1].word, 'a word')!r}")
            continue
        path[-1].content.append(_Node(at, token, []))
        if token in _ENDS:
            path.append(path[-1].content[-1])
    return path[0].content
