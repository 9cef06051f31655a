"""The text form of choose_args: weight sets and ids that stand in for those of straw2 buckets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stripesim.models.placement.crush.elements import WEIGHT_ONE, Alg, Bucket, BucketArgs
from stripesim.models.placement.crush.statements import Problems, Statement, read_integer, read_weight

_POSITIONS_MAX = 255
_ID_MAX = 2**31 - 1
_TOKEN = re.compile(r"[\[\]]|[^\[\]]+")


@dataclass
class _Entry:
    """One bucket's part of a set."""

    line: int
    bucket_id: int | None = None
    weight_sets: list[list[int]] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)


class _Tokens:
    """Words with their lines, brackets apart; the end is an empty word."""

    def __init__(self, body: list[Statement], end_line: int) -> None:
        self._words: list[tuple[int, str]] = [
            (line, token) for line, words in body for word in words for token in _TOKEN.findall(word)
        ]
        self._next = 0
        self.line = end_line

    def take(self) -> str:
        if self._next == len(self._words):
            return ""
        self.line, word = self._words[self._next]
        self._next += 1
        return word

    def peek(self) -> str:
        return self._words[self._next][1] if self._next < len(self._words) else ""

    def until(self, end: str) -> Iterator[str]:
        """Words up to the one that closes."""
        while (word := self.take()) not in ("", end):
            yield word


def read_choose_args(
    number: str, line: int, body: list[Statement], problems: Problems
) -> tuple[int, int, list[_Entry]] | None:
    """Read the block ``choose_args N { … }`` into its line, number and entries."""
    index = read_integer(number, -1, 2**31 - 1, "choose_args id", line, problems)
    tokens = _Tokens(body, line)
    entries = []
    while word := tokens.take():
        if word != "{":
            problems.add(tokens.line, repr(word), "'{ bucket_id N weight_set [ [ W … ] … ] ids [ N … ] }'")
            return None
        entries.append(_read_entry(tokens, problems))
    return None if index is None else (line, index, entries)


def _read_entry(tokens: _Tokens, problems: Problems) -> _Entry:
    entry = _Entry(tokens.line)
    for word in tokens.until("}"):
        if word == "bucket_id":
            entry.bucket_id = read_integer(tokens.take(), -_ID_MAX, -1, "bucket id", tokens.line, problems)
        elif word == "ids" and tokens.take() == "[":
            for number in tokens.until("]"):
                found = read_integer(number, -_ID_MAX, _ID_MAX, "id", tokens.line, problems)
                entry.ids.append(found or 0)
        elif word == "weight_set" and tokens.take() == "[":
            for bracket in tokens.until("]"):
                if bracket != "[":
                    problems.add(tokens.line, repr(bracket), "'[ W … ]' for each position")
                    break
                entry.weight_sets.append([read_weight(w, tokens.line, problems) for w in tokens.until("]")])
        else:
            problems.add(tokens.line, repr(word), "'bucket_id N', 'weight_set [ … ]' or 'ids [ … ]'")
    if entry.bucket_id is None:
        problems.add(entry.line, "choose_args without a bucket", "a line 'bucket_id N'")
    return entry


def resolve_choose_args(
    texts: Sequence[tuple[int, int, list[_Entry]]], buckets: Sequence[Bucket], problems: Problems
) -> tuple[tuple[int, tuple[BucketArgs, ...]], ...]:
    """Check entries against the buckets they are for."""
    by_id = {bucket.id: bucket for bucket in buckets}
    resolved = []
    for _, index, entries in texts:
        changes = []
        for entry in entries:
            bucket = by_id.get(entry.bucket_id or 0)
            if bucket is None:
                problems.add(entry.line, f"bucket_id {entry.bucket_id}", "the id of a bucket of the map")
                continue
            change = BucketArgs(bucket.id, tuple(map(tuple, entry.weight_sets)), tuple(entry.ids))
            wrong = misfit(change, bucket)
            if wrong:
                problems.add(entry.line, *wrong)
            else:
                changes.append(change)
        resolved.append((index, tuple(changes)))
    return tuple(resolved)


def misfit(change: BucketArgs, bucket: Bucket) -> tuple[str, str] | None:
    """Say what does not fit a bucket (got, wanted), or None."""
    size = len(bucket.items)
    for numbers in (*change.weight_sets, *((change.ids,) if change.ids else ())):
        if len(numbers) != size:
            return f"{len(numbers)} numbers for bucket {bucket.name!r}", f"{size}, one for each of its items"
    if bucket.alg is not Alg.STRAW2:
        return f"choose_args for bucket {bucket.name!r} of alg {bucket.alg.name.lower()}", "a straw2 bucket"
    if len(change.weight_sets) > _POSITIONS_MAX:
        return f"{len(change.weight_sets)} positions", f"at most {_POSITIONS_MAX}"
    return None


def choose_args_lines(index: int, changes: Sequence[BucketArgs]) -> list[str]:
    """Write a set in the form that `read_choose_args` reads."""
    lines = [f"choose_args {index} {{"]
    for change in changes:
        lines += ["  {", f"    bucket_id {change.bucket_id}"]
        if change.weight_sets:
            lines.append("    weight_set [")
            for weights in change.weight_sets:
                lines.append(f"      [ {' '.join(f'{w / WEIGHT_ONE:.10f}' for w in weights)} ]")
            lines.append("    ]")
        if change.ids:
            lines.append(f"    ids [ {' '.join(map(str, change.ids))} ]")
        lines.append("  }")
    return [*lines, "}"]
