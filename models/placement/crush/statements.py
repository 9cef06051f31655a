"""First pass over a CRUSH map's text: lines into declarations, each with the line it stands on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import get_args

import numpy as np

from stripesim.models.placement.crush.elements import WEIGHT_ONE, Alg, RuleKind, StepOp

CHOOSE_OPS = {
    ("choose", "firstn"): StepOp.CHOOSE_FIRSTN,
    ("choose", "indep"): StepOp.CHOOSE_INDEP,
    ("chooseleaf", "firstn"): StepOp.CHOOSELEAF_FIRSTN,
    ("chooseleaf", "indep"): StepOp.CHOOSELEAF_INDEP,
}
SET_OPS = {
    "set_choose_tries": StepOp.SET_CHOOSE_TRIES,
    "set_chooseleaf_tries": StepOp.SET_CHOOSELEAF_TRIES,
    "set_choose_local_tries": StepOp.SET_CHOOSE_LOCAL_TRIES,
    "set_choose_local_fallback_tries": StepOp.SET_CHOOSE_LOCAL_FALLBACK_TRIES,
    "set_chooseleaf_vary_r": StepOp.SET_CHOOSELEAF_VARY_R,
    "set_chooseleaf_stable": StepOp.SET_CHOOSELEAF_STABLE,
    "set_msr_descents": StepOp.SET_MSR_DESCENTS,
    "set_msr_collision_tries": StepOp.SET_MSR_COLLISION_TRIES,
}
_TUNABLES = (
    "choose_local_tries",
    "choose_local_fallback_tries",
    "choose_total_tries",
    "chooseleaf_descend_once",
    "chooseleaf_vary_r",
    "chooseleaf_stable",
    "straw_calc_version",
    "msr_descents",
    "msr_collision_tries",
    # Says what Ceph may build, not how a map is read: checked and not kept.
    "allowed_bucket_algs",
)
# Ids index arrays, so that a stray digit must not ask for gigabytes.
_ID_MAX = 1_000_000
_VALUE_MAX = 2**31 - 1
# The product of a few such counts must stay inside a word.
_CHOOSE_MAX = 4096
DEVICE_WEIGHT_MAX = 100
_BUCKET_WEIGHT_MAX = 65535
# The shift of vary_r must stay inside a word.
_VARY_R_MAX = 32
_WORD = re.compile(r"[{}]|[^\s{}]+")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


Statement = tuple[int, list[str]]


class Problems:
    """Gathers problems and reports them in the order of their lines."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[tuple[int, str]] = []

    def add(self, line: int, got: str, wanted: str) -> None:
        """Note a problem on a line (from 1)."""
        self.found.append((line, f"{self.source}:{line}: got {got}, wanted {wanted}"))

    def message(self) -> str:
        """All problems, one a line."""
        return "\n".join(dict.fromkeys(text for _, text in sorted(self.found)))


@dataclass
class NamedNumber:
    """A ``type``: number and name."""

    line: int
    id: int
    name: str


@dataclass
class TunableText:
    """A ``tunable``."""

    line: int
    name: str
    value: int


@dataclass
class DeviceText:
    """A ``device``."""

    line: int
    id: int
    name: str
    device_class: str | None


@dataclass
class ItemText:
    """An ``item`` of a bucket; its weight is 16.16 fixed point."""

    line: int
    name: str
    weight: int
    position: int | None = None


@dataclass
class BucketText:
    """A bucket's block."""

    line: int
    type_name: str
    name: str
    id: int | None = None
    id_line: int = 0
    class_ids: list[tuple[int, str, int]] = field(default_factory=list)
    alg: Alg | None = None
    items: list[ItemText] = field(default_factory=list)


@dataclass
class StepText:
    """A ``step`` of a rule; `name` is the item to take or the type to choose."""

    line: int
    op: StepOp
    count: int = 0
    name: str = ""
    device_class: str | None = None


@dataclass
class RuleText:
    """A rule's block."""

    line: int
    name: str
    id: int | None = None
    id_line: int = 0
    kind: RuleKind = "replicated"
    kind_given: bool = False
    steps: list[StepText] = field(default_factory=list)


@dataclass
class MapText:
    """All declarations of a text."""

    tunables: list[TunableText] = field(default_factory=list)
    devices: list[DeviceText] = field(default_factory=list)
    types: list[NamedNumber] = field(default_factory=list)
    buckets: list[BucketText] = field(default_factory=list)
    rules: list[RuleText] = field(default_factory=list)
    choose_args: list[tuple[str, int, list[Statement]]] = field(default_factory=list)


def _statements(text: str) -> Iterator[Statement]:
    """Split into lines without comments; a brace is a statement of its own."""
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


def read_statements(text: str, problems: Problems) -> MapText:
    """Read all declarations; what cannot be read is reported and left out."""
    declared = MapText()
    statements = list(_statements(text))
    position = 0
    while position < len(statements):
        line, words = statements[position]
        position += 1
        if position < len(statements) and statements[position][1] == ["{"]:
            body, position = _block(statements, position + 1, line, problems)
            _read_block(declared, line, words, body, problems)
        elif words[0] in ("{", "}"):
            problems.add(line, f"a stray {words[0]!r}", "a declaration")
        else:
            _read_declaration(declared, line, words, problems)
    if not statements:
        problems.add(1, "an empty map", "the text crushtool -d prints")
    return declared


def _block(
    statements: list[Statement], position: int, opened_line: int, problems: Problems
) -> tuple[list[Statement], int]:
    """Statements up to the brace that closes the block, nested blocks included."""
    body: list[Statement] = []
    depth = 1
    while position < len(statements):
        line, words = statements[position]
        position += 1
        depth += {"{": 1, "}": -1}.get(words[0], 0)
        if depth == 0:
            return body, position
        body.append((line, words))
    problems.add(opened_line, "a block without its end", "a closing '}'")
    return body, position


def _read_declaration(declared: MapText, line: int, words: list[str], problems: Problems) -> None:
    match words:
        case ["tunable", name, value] if name in _TUNABLES:
            most = _VARY_R_MAX if name == "chooseleaf_vary_r" else _VALUE_MAX
            number = read_integer(value, 0, most, f"tunable {name}", line, problems)
            if number is not None:
                declared.tunables.append(TunableText(line, name, number))
        case ["tunable", name, _]:
            problems.add(line, f"unknown tunable {name!r}", f"one of {', '.join(_TUNABLES)}")
        case ["device", number_text, name, *rest] if not rest or (rest[0] == "class" and len(rest) == 2):
            number = read_integer(number_text, 0, _ID_MAX, "device id", line, problems)
            _check_name(name, line, problems)
            if rest:
                _check_name(rest[1], line, problems)
            if number is not None:
                declared.devices.append(DeviceText(line, number, name, rest[1] if rest else None))
        case ["type", number_text, name]:
            number = read_integer(number_text, 0, _ID_MAX, "type id", line, problems)
            _check_name(name, line, problems)
            if number is not None:
                declared.types.append(NamedNumber(line, number, name))
        case _:
            wanted = (
                "'tunable NAME N', 'device N NAME [class C]', 'type N NAME', a bucket or a rule with its {…}"
            )
            problems.add(line, repr(" ".join(words)), wanted)


def _read_block(
    declared: MapText, line: int, words: list[str], body: list[Statement], problems: Problems
) -> None:
    match words:
        case ["rule", name]:
            _check_name(name, line, problems)
            declared.rules.append(_read_rule(RuleText(line, name), body, problems))
        case ["choose_args", number]:
            declared.choose_args.append((number, line, body))
        case [type_name, name]:
            _check_name(name, line, problems)
            declared.buckets.append(_read_bucket(BucketText(line, type_name, name), body, problems))
        case _:
            problems.add(line, repr(" ".join(words)), "'TYPE NAME {' or 'rule NAME {'")


def _read_bucket(bucket: BucketText, body: list[Statement], problems: Problems) -> BucketText:
    for line, words in body:
        match words:
            case ["id", number_text]:
                number = read_integer(number_text, -_ID_MAX, -1, "bucket id", line, problems)
                if bucket.id is not None:
                    problems.add(line, f"a second id for bucket {bucket.name!r}", "one id")
                bucket.id, bucket.id_line = number, line
            case ["id", number_text, "class", name]:
                number = read_integer(number_text, -_ID_MAX, -1, "bucket id", line, problems)
                if number is not None:
                    bucket.class_ids.append((line, name, number))
            case ["alg", alg]:
                known = {a.name.lower(): a for a in Alg}
                if alg not in known:
                    problems.add(line, f"unsupported alg {alg!r}", f"one of {', '.join(known)}")
                bucket.alg = known.get(alg, Alg.STRAW2)
            case ["hash", kind]:
                if kind not in ("0", "rjenkins1"):
                    problems.add(line, f"unknown hash {kind!r}", "0 (rjenkins1)")
            case ["item", name, "weight", weight_text]:
                bucket.items.append(ItemText(line, name, read_weight(weight_text, line, problems)))
            case ["item", name]:
                bucket.items.append(ItemText(line, name, WEIGHT_ONE))
            case ["item", name, "weight", weight_text, "pos", position_text]:
                place = read_integer(position_text, 0, _ID_MAX, "pos", line, problems)
                bucket.items.append(ItemText(line, name, read_weight(weight_text, line, problems), place))
            case _:
                wanted = "'id N [class C]', 'alg straw2', 'hash 0' or 'item NAME weight W [pos N]'"
                problems.add(line, f"{' '.join(words)!r} in bucket {bucket.name!r}", wanted)
    if bucket.id_line == 0:
        problems.add(bucket.line, f"bucket {bucket.name!r} without an id", "a line 'id N' with N below 0")
    if bucket.alg is None:
        problems.add(bucket.line, f"bucket {bucket.name!r} without an alg", "a line 'alg straw2'")
    return bucket


def _read_rule(rule: RuleText, body: list[Statement], problems: Problems) -> RuleText:
    for line, words in body:
        match words:
            case ["id" | "ruleset", number_text]:
                rule.id, rule.id_line = read_integer(number_text, 0, 255, "rule id", line, problems), line
            case ["type", "replicated" | "erasure" | "msr_firstn" | "msr_indep" as kind]:
                rule.kind = kind
                rule.kind_given = True
            case ["min_size" | "max_size" as word, number_text]:
                # Sizes chose among the rules of a ruleset; a mapping names its rule.
                read_integer(number_text, 0, _VALUE_MAX, word, line, problems)
            case ["step", *step_words]:
                step = _read_step(step_words, line, problems)
                if step is not None:
                    rule.steps.append(step)
            case _:
                kinds = "|".join(get_args(RuleKind))
                wanted = f"'id N', 'type {kinds}', 'min_size N', 'max_size N' or 'step …'"
                problems.add(line, f"{' '.join(words)!r} in rule {rule.name!r}", wanted)
                rule.kind_given |= words[0] == "type"
    if rule.id_line == 0:
        problems.add(rule.line, f"rule {rule.name!r} without an id", "a line 'id N'")
    if not rule.kind_given:
        problems.add(
            rule.line, f"rule {rule.name!r} without a type", "a line 'type replicated' or 'type erasure'"
        )
    return rule


def _read_step(words: list[str], line: int, problems: Problems) -> StepText | None:
    step = None
    match words:
        case ["take", name]:
            step = StepText(line, StepOp.TAKE, name=name)
        case ["take", name, "class", device_class]:
            step = StepText(line, StepOp.TAKE, name=name, device_class=device_class)
        case ["emit"]:
            step = StepText(line, StepOp.EMIT)
        case ["choose" | "chooseleaf" as verb, "firstn" | "indep" as mode, number_text, "type", name]:
            count = read_integer(number_text, -_VALUE_MAX, _VALUE_MAX, "count", line, problems)
            step = StepText(line, CHOOSE_OPS[verb, mode], count or 0, name)
        case ["choosemsr", number_text, "type", name]:
            count = read_integer(number_text, 0, _CHOOSE_MAX, "count", line, problems)
            step = StepText(line, StepOp.CHOOSE_MSR, count or 0, name)
        case [word, number_text] if word in SET_OPS:
            most = _VARY_R_MAX if word == "set_chooseleaf_vary_r" else _VALUE_MAX
            value = read_integer(number_text, 0, most, word, line, problems)
            step = StepText(line, SET_OPS[word], value or 0)
    if step is not None or words == ["noop"]:
        return step
    wanted = (
        "'take NAME [class C]', 'choose|chooseleaf firstn|indep N type T', 'choosemsr N type T', 'emit', "
        "'noop' or one of "
        f"{', '.join(SET_OPS)} with a number"
    )
    problems.add(line, f"step {' '.join(words)!r}", wanted)
    return None


def read_integer(text: str, least: int, most: int, what: str, line: int, problems: Problems) -> int | None:
    """Read a whole number within bounds, or report what stands there."""
    if _INTEGER.fullmatch(text) and least <= int(text) <= most:
        return int(text)
    problems.add(line, f"{what} {text!r}", f"a whole number from {least} to {most}")
    return None


def read_weight(text: str, line: int, problems: Problems) -> int:
    """Read a weight into 16.16 fixed point, through a 32-bit float and cut off, as Ceph's compiler does."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and 0 <= value <= _BUCKET_WEIGHT_MAX):
        problems.add(line, f"weight {text!r}", f"a number from 0 to {_BUCKET_WEIGHT_MAX}")
        return 0
    return int(float(np.float32(value)) * WEIGHT_ONE)


def _check_name(name: str, line: int, problems: Problems) -> None:
    if not _NAME.fullmatch(name):
        problems.add(line, f"name {name!r}", "letters, digits, '_', '-' and '.'")
