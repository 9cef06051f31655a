"""Read CRUSH maps from JSON, as in ``ceph osd crush dump`` and the ``crushmap`` of ``ceph report``."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from stripesim.models.placement.crush.elements import (
    CHOOSE_OPS,
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
from stripesim.models.placement.crush.map import CrushMap
from stripesim.models.placement.crush.problems import (
    COUNT_MAX,
    ID_MAX,
    TUNABLE_MAX,
    VALUE_MAX,
    JsonReader,
    depth_first,
    misfit,
    shown,
)

_KINDS: dict[int, RuleKind] = {
    1: "replicated",
    3: "erasure",
    4: "msr_firstn",
    5: "msr_indep",
}
_ALGS = {alg.name.lower(): alg for alg in Alg}
_STEPS = {op.name.lower(): op for op in StepOp} | {"choosemsr": StepOp.CHOOSE_MSR}
# Releases print steps that they have no name for as numbers: Ceph v16.2.15, src/crush/crush.h
# (crush_opcodes).
_OPCODES = {
    10: StepOp.SET_CHOOSE_LOCAL_TRIES,
    11: StepOp.SET_CHOOSE_LOCAL_FALLBACK_TRIES,
    12: StepOp.SET_CHOOSELEAF_VARY_R,
    13: StepOp.SET_CHOOSELEAF_STABLE,
}
_WEIGHT_MAX = 2**32 - 1


def map_from_dump(
    document: Mapping[str, Any], *, source: str = "<json>", key: str = "crushmap"
) -> CrushMap:
    """Read a CRUSH map in JSON form.

    Parameters
    ----------
    document
        The map, as ``ceph osd crush dump`` prints it.
    source, key
        File name and key of the map in it, for error messages.

    Raises
    ------
    ProblemsError
        If the map is invalid, with one line per problem: ``source: key: got …, wanted …``.
    """
    reader = JsonReader(source)
    named = _devices(reader, key, document)
    types = tuple(
        (reader.whole(row, at, "type_id", 0, ID_MAX), str(row.get("name", "")))
        for at, row in reader.rows(document, key, "types")
    )
    buckets = _with_class_ids(
        [_bucket(reader, at, row) for at, row in reader.rows(document, key, "buckets")]
    )
    devices = named + _nameless_devices(named, buckets)
    known = {device.id for device in devices} | {bucket.id for bucket in buckets}
    _check_items(reader, f"{key}.buckets", buckets, known)
    if len(known) < len(devices) + len(buckets):
        reader.add(
            f"{key}.buckets", "ids that occur twice", "one device or bucket for each id"
        )
    type_ids = {name: number for number, name in types}
    rules = tuple(
        _rule(reader, at, row, type_ids, known)
        for at, row in reader.rows(document, key, "rules")
    )
    tunables = _tunables(reader, f"{key}.tunables", document.get("tunables"))
    choose_args = _choose_args(
        reader, f"{key}.choose_args", document.get("choose_args"), buckets
    )
    reader.finish()
    _check_cycles(reader, f"{key}.buckets", buckets)
    reader.finish()
    return CrushMap(devices, types, buckets, rules, tunables, choose_args)


def _devices(
    reader: JsonReader, key: str, document: Mapping[str, Any]
) -> tuple[Device, ...]:
    return tuple(
        Device(
            reader.whole(row, at, "id", 0, ID_MAX),
            str(row.get("name", "")),
            row.get("class") or None,
        )
        for at, row in reader.rows(document, key, "devices")
    )


def _nameless_devices(
    named: Iterable[Device], buckets: Iterable[Bucket]
) -> tuple[Device, ...]:
    """Return the devices without a name, which appear only in their bucket."""
    named_ids = {device.id for device in named}
    items = {item for bucket in buckets for item in bucket.items if item >= 0}
    return tuple(Device(item, f"osd.{item}") for item in sorted(items - named_ids))


def _check_items(
    reader: JsonReader, key: str, buckets: Iterable[Bucket], known: set[int]
) -> None:
    for bucket in buckets:
        for item in bucket.items:
            if item not in known:
                got = f"item {item} in {bucket.name!r}"
                reader.add(key, got, "the id of a device or bucket")


def _check_cycles(reader: JsonReader, key: str, buckets: Iterable[Bucket]) -> None:
    names = {bucket.id: bucket.name for bucket in buckets}
    below = {bucket.id: bucket.items for bucket in buckets}
    finished: dict[int, None] = {}
    for bucket_id in below:
        for _, item in depth_first(bucket_id, below, finished):
            got = f"{names[item]!r}, which holds itself"
            reader.add(key, got, "a hierarchy without cycles")


def _bucket(reader: JsonReader, key: str, row: Mapping[str, Any]) -> Bucket:
    alg = str(row.get("alg"))
    if alg not in _ALGS:
        reader.add(f"{key}.alg", repr(alg), f"one of {', '.join(_ALGS)}")
    hashed = row.get("hash", "rjenkins1")
    if hashed not in ("rjenkins1", 0):
        reader.add(f"{key}.hash", repr(hashed), "rjenkins1")
    items = []
    weights = []
    for at, item in reader.rows(row, key, "items"):
        items.append(reader.whole(item, at, "id", -ID_MAX, ID_MAX))
        weights.append(reader.whole(item, at, "weight", 0, _WEIGHT_MAX))
    return Bucket(
        reader.whole(row, key, "id", -ID_MAX, -1),
        str(row.get("name", "")),
        reader.whole(row, key, "type_id", 1, ID_MAX),
        tuple(items),
        tuple(weights),
        alg=_ALGS.get(alg, Alg.STRAW2),
    )


def _with_class_ids(buckets: list[Bucket]) -> tuple[Bucket, ...]:
    """Record the shadows of each bucket, which the document lists as buckets named ``bucket~class``."""
    shadows: dict[str, list[tuple[str, int]]] = {}
    for bucket in buckets:
        name, _, device_class = bucket.name.partition("~")
        if device_class:
            shadows.setdefault(name, []).append((device_class, bucket.id))
    return tuple(replace(b, class_ids=tuple(shadows.get(b.name, ()))) for b in buckets)


def _rule(
    reader: JsonReader,
    key: str,
    row: Mapping[str, Any],
    type_ids: Mapping[str, int],
    known: set[int],
) -> Rule:
    kind = row.get("type")
    if kind not in _KINDS:
        reader.add(f"{key}.type", repr(kind), f"one of {', '.join(map(str, _KINDS))}")
    number = reader.whole(row, key, "rule_id", 0, ID_MAX)
    parsed = [
        _step(reader, at, step, type_ids, known)
        for at, step in reader.rows(row, key, "steps")
    ]
    steps = tuple(step for step in parsed if step is not None)
    return Rule(
        number,
        str(row.get("rule_name", number)),
        _KINDS.get(kind or 0, "replicated"),
        steps,
    )


def _step(
    reader: JsonReader,
    key: str,
    row: Mapping[str, Any],
    type_ids: Mapping[str, int],
    known: set[int],
) -> Step | None:
    name = row.get("op")
    op = _STEPS.get(str(name))
    if op is None and row.get("opcode") in _OPCODES:
        first, second = (
            reader.whole(row, key, arg, -VALUE_MAX, VALUE_MAX)
            for arg in ("arg1", "arg2")
        )
        return Step(_OPCODES[row["opcode"]], first, second)
    if op is None:
        if name != "noop":
            reader.add(
                f"{key}.op",
                repr(name or row.get("opcode")),
                f"one of {', '.join(_STEPS)}",
            )
        return None
    if op is StepOp.TAKE:
        item = reader.whole(row, key, "item", -ID_MAX, ID_MAX)
        if item not in known:
            reader.add(f"{key}.item", item, "the id of a device or bucket")
        return Step(op, item)
    if op not in CHOOSE_OPS:
        return Step(
            op, 0 if op is StepOp.EMIT else reader.whole(row, key, "num", 0, VALUE_MAX)
        )
    type_name = str(row.get("type"))
    if type_name not in type_ids:
        reader.add(f"{key}.type", repr(type_name), f"one of {', '.join(type_ids)}")
    count = reader.whole(row, key, "num", -COUNT_MAX, COUNT_MAX)
    return Step(op, count, type_ids.get(type_name, 0))


def _tunables(reader: JsonReader, key: str, value: object) -> Tunables:
    if not isinstance(value, dict):
        reader.add(key, shown(value), "an object with the tunables")
        return Tunables()
    values = {
        f.name: reader.whole(value, key, f.name, 0, TUNABLE_MAX.get(f.name, VALUE_MAX))
        for f in fields(Tunables)
        if f.name in value
    }
    return replace(Tunables(), **values)


def _choose_args(
    reader: JsonReader, key: str, value: object, buckets: Iterable[Bucket]
) -> tuple[tuple[int, tuple[BucketArgs, ...]], ...]:
    by_id = {bucket.id: bucket for bucket in buckets}
    sets = value if isinstance(value, dict) else {}
    choose_args = []
    for name in sets:
        try:
            # The default set has id −1, which some releases print as unsigned.
            index = (int(name) + 2**63) % 2**64 - 2**63
        except ValueError:
            reader.add(f"{key}.{name}", repr(name), "the id of a pool or -1")
            continue
        changes = []
        for at, row in reader.rows(sets, key, name):
            change = _change(reader, at, row)
            bucket = by_id.get(change.bucket_id)
            if bucket is None or bucket.alg is not Alg.STRAW2:
                # Entries of deleted buckets may remain, and other algorithms ignore theirs.
                continue
            if wrong := misfit(change, bucket):
                reader.add(at, *wrong)
            changes.append(change)
        choose_args.append((index, tuple(changes)))
    return tuple(choose_args)


def _change(reader: JsonReader, key: str, row: Mapping[str, Any]) -> BucketArgs:
    sets = []
    for number, weights in enumerate(row.get("weight_set") or ()):
        if not isinstance(weights, list) or not all(
            isinstance(w, (int, float)) and 0 <= w < _WEIGHT_MAX / WEIGHT_ONE
            for w in weights
        ):
            reader.add(f"{key}.weight_set.{number}", repr(weights), "a list of weights")
            continue
        # Weights are printed as decimals. The nearest 16.16 number is the original one.
        sets.append(tuple(round(w * WEIGHT_ONE) for w in weights))
    ids = row.get("ids") or []
    if not all(isinstance(i, int) and abs(i) < VALUE_MAX for i in ids):
        reader.add(f"{key}.ids", repr(ids), "a list of ids")
        ids = []
    return BucketArgs(
        reader.whole(row, key, "bucket_id", -ID_MAX, -1), tuple(sets), tuple(ids)
    )
