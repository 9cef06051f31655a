"""Read CRUSH maps from their text form.

Declarations are read kind by kind, so that buckets and rules can refer to any name. All problems are recorded
with their lines and raised together.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import NamedTuple, get_args

from stripesim.models.placement.crush.elements import (
    WEIGHT_ONE,
    Alg,
    Bucket,
    BucketArgs,
    Device,
    Rule,
    RuleKind,
    Step,
    StepOp,
    Tunables,
)
from stripesim.models.placement.crush.lines import (
    Declaration,
    Lines,
    Statement,
    read_choose_args,
)
from stripesim.models.placement.crush.map import CrushMap
from stripesim.models.placement.crush.problems import (
    COUNT_MAX,
    ID_MAX,
    TUNABLE_MAX,
    VALUE_MAX,
    depth_first,
    misfit,
)
from stripesim.models.placement.crush.shadow import add_shadow_buckets, shadow_name
from stripesim.models.problems import ProblemsError, file_reason

_SET_OPS = {op.name.lower(): op for op in StepOp if op.name.startswith("SET_")}
_ALGS = {alg.name.lower(): alg for alg in Alg}
# The last tunable restricts what Ceph may build, not how a map is read. It is checked but not kept.
_TUNABLES = (*(f.name for f in fields(Tunables)), "allowed_bucket_algs")
_DEVICE_WEIGHT_MAX = 100


class _BucketItem(NamedTuple):
    """An item of a bucket, with its weight in 16.16 fixed point."""

    line: int
    name: str
    weight: int
    position: int | None


@dataclass
class _Block:
    """The block of a bucket, with its items by name."""

    line: int
    type_name: str
    name: str
    id: int = 0
    class_ids: list[tuple[str, int]] = field(default_factory=list)
    alg: Alg = Alg.STRAW2
    items: list[_BucketItem] = field(default_factory=list)


def load_map(path: str | Path) -> CrushMap:
    """Read a CRUSH map from a text file.

    Raises
    ------
    ProblemsError
        If the file cannot be read or the map is invalid, with one line per problem.
    """
    try:
        # Editors on Windows may write a byte order mark.
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ProblemsError(
            f"{path}: got {file_reason(error)}, wanted a readable CRUSH map"
        ) from None
    except UnicodeDecodeError:
        raise ProblemsError(
            f"{path}: got a binary file, wanted text (crushtool -d decompiles a compiled map)"
        ) from None
    return parse_map(text, source=str(path))


def parse_map(text: str, *, source: str = "<string>") -> CrushMap:
    """Read a CRUSH map in text form, as ``crushtool -d`` prints it.

    Parameters
    ----------
    text
        The map.
    source
        Name of the file for error messages.

    Raises
    ------
    ProblemsError
        If the map is invalid, with one line per problem.
    """
    return _Reader(source).read(text)


class _Reader(Lines):
    """Read one map."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.tunables: dict[str, int] = {}
        self.devices: list[Device] = []
        self.type_ids: dict[str, int] = {}
        self.ids: dict[str, int] = {}

    def read(self, text: str) -> CrushMap:
        blocks: list[Declaration] = []
        for declaration in self.declarations(text):
            if declaration.body is not None:
                blocks.append(declaration)
            else:
                self._declare(declaration.line, declaration.words)
        buckets = self._buckets(blocks)
        rules = [
            self._rule(line, words[1], body or [])
            for line, words, body in blocks
            if words[0] == "rule" and len(words) == 2
        ]
        self.finish()
        types = tuple((number, name) for name, number in self.type_ids.items())
        choose_args = self._choose_args(blocks, buckets)
        self.finish()
        return CrushMap(
            tuple(self.devices),
            types,
            buckets,
            tuple(rules),
            self._known_tunables(),
            choose_args,
        )

    def _declare(self, line: int, words: list[str]) -> None:
        """Record a declaration of one line: a tunable, device or type."""
        match words:
            case ["tunable", name, value]:
                self._tunable(line, name, value)
            case ["device", number, name]:
                self._device(line, number, name, None)
            case ["device", number, name, "class", device_class]:
                self._device(line, number, name, device_class)
            case ["type", number, name]:
                self.check_name(name, line)
                self.type_ids[name] = self.whole(number, 0, ID_MAX, "type id", line)
                self.once("type id", self.type_ids[name], line)
                self.once("type name", name, line)
            case _:
                wanted = "'tunable NAME N', 'device N NAME [class C]', 'type N NAME', a bucket or a rule"
                self.add(line, repr(" ".join(words)), f"{wanted} with its {{…}}")

    def _tunable(self, line: int, name: str, value: str) -> None:
        if name not in _TUNABLES:
            self.add(
                line, f"unknown tunable {name!r}", f"one of {', '.join(_TUNABLES)}"
            )
            return
        most = TUNABLE_MAX.get(name, VALUE_MAX)
        self.tunables[name] = self.whole(value, 0, most, f"tunable {name}", line)
        self.once("tunable", name, line)

    def _known_tunables(self) -> Tunables:
        kept = {
            name: value
            for name, value in self.tunables.items()
            if name != "allowed_bucket_algs"
        }
        return replace(Tunables.legacy(), **kept)

    def _device(
        self, line: int, number: str, name: str, device_class: str | None
    ) -> None:
        device_id = self.whole(number, 0, ID_MAX, "device id", line)
        self.check_name(name, line)
        if device_class is not None:
            self.check_name(device_class, line)
        self.devices.append(Device(device_id, name, device_class))
        self.once("item name", name, line)
        self.once("device id", device_id, line)

    def _buckets(self, declared: list[Declaration]) -> tuple[Bucket, ...]:
        """Return the hierarchy with its shadow buckets. Devices and buckets share one name space."""
        blocks = self._blocks(declared)
        device_ids = {device.name: device.id for device in self.devices}
        self.ids = device_ids | {block.name: block.id for block in blocks}
        buckets = tuple(self._resolved(block, set(device_ids)) for block in blocks)
        self._check_cycles(blocks)
        if self.found:
            # Shadow trees need a valid hierarchy. Declare their names anyway, so that rules can be checked.
            self._declare_shadow_names(buckets)
            return buckets
        buckets = add_shadow_buckets(tuple(self.devices), buckets)
        self.ids |= {bucket.name: bucket.id for bucket in buckets}
        return buckets

    def _blocks(self, declared: list[Declaration]) -> list[_Block]:
        blocks = []
        for line, words, body in declared:
            match words:
                case ["rule" | "choose_args", _]:
                    continue
                case [type_name, name]:
                    self.check_name(name, line)
                    blocks.append(
                        self._block(_Block(line, type_name, name), body or [])
                    )
                case _:
                    self.add(
                        line, repr(" ".join(words)), "'TYPE NAME {' or 'rule NAME {'"
                    )
        return blocks

    def _check_cycles(self, blocks: list[_Block]) -> None:
        finished: dict[str, None] = {}
        below = {block.name: [item.name for item in block.items] for block in blocks}
        lines = {
            (block.name, item.name): item.line
            for block in blocks
            for item in block.items
        }
        for name in below:
            for holder, item in depth_first(name, below, finished):
                got = f"a cycle: bucket {holder!r} holds {item!r}, which holds it"
                self.add(lines[holder, item], got, "a hierarchy without cycles")

    def _declare_shadow_names(self, buckets: tuple[Bucket, ...]) -> None:
        for device_class in {device.device_class for device in self.devices}:
            if device_class is not None:
                self.ids |= {shadow_name(b.name, device_class): 0 for b in buckets}

    def _block(self, bucket: _Block, body: list[Statement]) -> _Block:
        self.once("item name", bucket.name, bucket.line)
        keys: set[str] = set()
        for line, words in body:
            if words[0] == "id" and len(words) == 2 and "id" in keys:
                self.add(line, f"a second id for bucket {bucket.name!r}", "one id")
            self._block_line(bucket, line, words)
            keys.add("class" if len(words) == 4 and words[0] == "id" else words[0])
        for word, wanted in (
            ("id", "a line 'id N' with N below 0"),
            ("alg", "a line 'alg straw2'"),
        ):
            if word not in keys:
                self.add(
                    bucket.line, f"bucket {bucket.name!r} without an {word}", wanted
                )
        return bucket

    def _block_line(self, bucket: _Block, line: int, words: list[str]) -> None:
        match words:
            case ["id", number]:
                bucket.id = self.whole(number, -ID_MAX, -1, "bucket id", line)
                self.once("bucket id", bucket.id, line)
            case ["id", number, "class", name]:
                shadow_id = self.whole(number, -ID_MAX, -1, "bucket id", line)
                bucket.class_ids.append((name, shadow_id))
                self.once("bucket id", shadow_id, line)
            case ["alg", alg]:
                if alg not in _ALGS:
                    wanted = f"one of {', '.join(_ALGS)}"
                    self.add(line, f"unsupported alg {alg!r}", wanted)
                bucket.alg = _ALGS.get(alg, Alg.STRAW2)
            case ["hash", "0" | "rjenkins1"]:
                pass
            case ["hash", kind]:
                self.add(line, f"unknown hash {kind!r}", "0 (rjenkins1)")
            case (
                ["item", name]
                | ["item", name, "weight", _]
                | ["item", name, "weight", _, "pos", _]
            ):
                bucket.items.append(self._bucket_item(line, name, words[2:]))
            case _:
                wanted = "'id N [class C]', 'alg straw2', 'hash 0' or 'item NAME weight W [pos N]'"
                got = f"{' '.join(words)!r} in bucket {bucket.name!r}"
                self.add(line, got, wanted)

    def _bucket_item(self, line: int, name: str, words: list[str]) -> _BucketItem:
        """Return an item with the weight and position that ``weight W pos N`` states, each if it is there."""
        values = dict(zip(words[::2], words[1::2], strict=True))
        weight = WEIGHT_ONE
        position = None
        if "weight" in values:
            weight = self.weight(values["weight"], line)
        if "pos" in values:
            position = self.whole(values["pos"], 0, ID_MAX, "pos", line)
        return _BucketItem(line, name, weight, position)

    def _resolved(self, block: _Block, devices: set[str]) -> Bucket:
        """Resolve names to ids. Items that cannot be resolved are reported and left out."""
        type_id = self.type_ids.get(block.type_name)
        if type_id is None:
            wanted = f"a type, one of {_listed(name for name, i in self.type_ids.items() if i > 0)}"
            self.add(block.line, f"unknown type {block.type_name!r}", wanted)
        elif type_id == 0:
            got = f"type {block.type_name!r} (of devices)"
            self.add(block.line, got, "a bucket's type, above 0")
        weights: dict[str, int] = {}
        for line, name, weight, _ in self._in_place(block):
            if name not in self.ids:
                got = f"unknown item {name!r} in bucket {block.name!r}"
                self.add(line, got, "the name of a device or bucket")
            elif name in weights:
                self.add(
                    line,
                    f"item {name!r} twice in bucket {block.name!r}",
                    "each item once",
                )
            else:
                weights[name] = weight
                if name in devices and weight > _DEVICE_WEIGHT_MAX * WEIGHT_ONE:
                    got = f"weight {weight / WEIGHT_ONE:g} of device {name!r}"
                    self.add(line, got, f"at most {_DEVICE_WEIGHT_MAX}, Ceph's limit")
        items = tuple(self.ids[name] for name in weights)
        class_ids = tuple(block.class_ids)
        kept = tuple(weights.values())
        return Bucket(
            block.id, block.name, type_id or 0, items, kept, class_ids, block.alg
        )

    def _in_place(self, block: _Block) -> list[_BucketItem]:
        """Return the items ordered by their stated positions, with the others filling the gaps."""
        count = len(block.items)
        placed = {
            item.position: item for item in block.items if item.position is not None
        }
        unplaced = [item for item in block.items if item.position is None]
        if len(placed) + len(unplaced) < count or not all(
            0 <= place < count for place in placed
        ):
            got = f"positions of items in bucket {block.name!r}"
            self.add(block.line, got, "each 'pos' once, from 0 on")
            return block.items
        rest = iter(unplaced)
        return [
            placed[place] if place in placed else next(rest) for place in range(count)
        ]

    def _rule(self, line: int, name: str, body: list[Statement]) -> Rule:
        self.check_name(name, line)
        self.once("rule name", name, line)
        rule_id = 0
        id_line = 0
        kind: RuleKind = "replicated"
        keys = set()
        steps = []
        for at, words in body:
            keys.add("id" if words[0] == "ruleset" else words[0])
            match words:
                case ["id" | "ruleset", number]:
                    rule_id = self.whole(number, 0, 255, "rule id", at)
                    id_line = at
                case [
                    "type",
                    "replicated" | "erasure" | "msr_firstn" | "msr_indep" as word,
                ]:
                    kind = word
                case ["min_size" | "max_size", number]:
                    # Sizes selected one rule of a ruleset, but a mapping names its rule.
                    self.whole(number, 0, VALUE_MAX, words[0], at)
                case ["step", "noop"]:
                    continue
                case ["step", *rest]:
                    steps.append(self._step(rest, at))
                case _:
                    kinds = "|".join(get_args(RuleKind))
                    wanted = f"'id N', 'type {kinds}', 'min_size N', 'max_size N' or 'step …'"
                    self.add(at, f"{' '.join(words)!r} in rule {name!r}", wanted)
        if "id" not in keys:
            self.add(line, f"rule {name!r} without an id", "a line 'id N'")
        if "type" not in keys:
            wanted = "a line 'type replicated' or 'type erasure'"
            self.add(line, f"rule {name!r} without a type", wanted)
        if id_line:
            self.once("rule id", rule_id, id_line)
        return Rule(rule_id, name, kind, tuple(steps))

    def _step(self, words: list[str], line: int) -> Step:
        match words:
            case ["take", name] | ["take", name, "class", _]:
                return Step(StepOp.TAKE, self._taken(line, name, words[3:]))
            case ["emit"]:
                return Step(StepOp.EMIT)
            case [
                "choose" | "chooseleaf" as verb,
                "firstn" | "indep" as mode,
                number,
                "type",
                name,
            ]:
                count = self.whole(number, -VALUE_MAX, VALUE_MAX, "count", line)
                return Step(
                    StepOp[f"{verb}_{mode}".upper()], count, self._type_id(line, name)
                )
            case ["choosemsr", number, "type", name]:
                count = self.whole(number, 0, COUNT_MAX, "count", line)
                return Step(StepOp.CHOOSE_MSR, count, self._type_id(line, name))
            case [word, number] if word in _SET_OPS:
                most = TUNABLE_MAX.get(word.removeprefix("set_"), VALUE_MAX)
                return Step(_SET_OPS[word], self.whole(number, 0, most, word, line))
        wanted = (
            "'take NAME [class C]', 'choose|chooseleaf firstn|indep N type T', 'choosemsr N type T', 'emit', "
            f"'noop' or one of {', '.join(_SET_OPS)} with a number"
        )
        self.add(line, f"step {' '.join(words)!r}", wanted)
        return Step(StepOp.EMIT)

    def _taken(self, line: int, name: str, device_class: list[str]) -> int:
        full = shadow_name(name, *device_class) if device_class else name
        if name not in self.ids:
            self.add(line, f"unknown item {name!r}", "the name of a bucket or device")
        elif full not in self.ids:
            wanted = "a class of a device in the map, and a bucket to take"
            self.add(
                line, f"{name!r} with unknown device class {device_class[0]!r}", wanted
            )
        return self.ids.get(full, 0)

    def _type_id(self, line: int, name: str) -> int:
        if name not in self.type_ids:
            self.add(
                line,
                f"unknown type {name!r}",
                f"a type, one of {_listed(self.type_ids)}",
            )
        return self.type_ids.get(name, 0)

    def _choose_args(
        self, declared: list[Declaration], buckets: tuple[Bucket, ...]
    ) -> tuple[tuple[int, tuple[BucketArgs, ...]], ...]:
        """Return the sets of choose_args, each entry checked against its bucket."""
        by_id = {bucket.id: bucket for bucket in buckets}
        sets = []
        for line, words, body in declared:
            if words[0] != "choose_args":
                continue
            index = self.whole(words[1], -1, VALUE_MAX, "choose_args id", line)
            changes = []
            for at, change in read_choose_args(line, body or [], self):
                bucket = by_id.get(change.bucket_id)
                if bucket is None:
                    self.add(
                        at,
                        f"bucket_id {change.bucket_id}",
                        "the id of a bucket of the map",
                    )
                elif wrong := misfit(change, bucket):
                    self.add(at, *wrong)
                changes.append(change)
            sets.append((index, tuple(changes)))
        return tuple(sets)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none (the map declares no such types)"
