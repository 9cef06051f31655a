"""The text form of CRUSH maps: statements into a map, a map into text.

A map is read in two passes: `statements` turns lines into declarations, each with the line it stands
on; here they are resolved against each other. Problems of both passes are gathered and raised together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path

from stripesim.models.placement.crush.choose_args import (
    choose_args_lines,
    read_choose_args,
    resolve_choose_args,
)
from stripesim.models.placement.crush.elements import (
    WEIGHT_ONE,
    Alg,
    Bucket,
    CrushMapError,
    Device,
    Rule,
    Step,
    StepOp,
    Tunables,
)
from stripesim.models.placement.crush.map import CrushMap
from stripesim.models.placement.crush.shadow import add_shadow_buckets, shadow_name
from stripesim.models.placement.crush.statements import (
    CHOOSE_OPS,
    DEVICE_WEIGHT_MAX,
    SET_OPS,
    BucketText,
    ItemText,
    MapText,
    Problems,
    StepText,
    read_statements,
)


def load_map(path: str | Path) -> CrushMap:
    """Read a map's text from a file; raises as `parse_map`, also where the file cannot be read."""
    try:
        # Editors on Windows put a byte order mark first.
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CrushMapError(f"{path}: got {error.strerror}, wanted a readable CRUSH map") from None
    except UnicodeDecodeError:
        raise CrushMapError(
            f"{path}: got a binary file, wanted text (crushtool -d turns a compiled map into it)"
        ) from None
    return parse_map(text, source=str(path))


def parse_map(text: str, *, source: str = "<string>") -> CrushMap:
    """Read the text form of a map, as ``crushtool -d`` prints it.

    Parameters
    ----------
    text : str
        The map.
    source : str
        Name to give in messages.

    Returns
    -------
    CrushMap
        The map.

    Raises
    ------
    CrushMapError
        With every problem found, each as ``source:line: got …, wanted …``.
    """
    problems = Problems(source)
    declared = read_statements(text, problems)
    _check_unique(declared, problems)
    type_ids = {entry.name: entry.id for entry in declared.types}
    buckets = _resolve_buckets(declared, type_ids, problems)
    _check_cycles(declared, buckets, problems)
    if problems.found:
        # Shadow trees and rules are read against a sound hierarchy; with a broken one only rules' own words
        # can be judged, and their references against the declared names.
        _resolve_rules(declared, type_ids, _declared_ids(declared), problems)
        raise CrushMapError(problems.message())
    devices = tuple(Device(d.id, d.name, d.device_class) for d in declared.devices)
    buckets = add_shadow_buckets(devices, buckets)
    ids = {device.name: device.id for device in devices} | {bucket.name: bucket.id for bucket in buckets}
    rules = _resolve_rules(declared, type_ids, ids, problems)
    args = [read_choose_args(*block, problems) for block in declared.choose_args]
    choose_args = resolve_choose_args([a for a in args if a is not None], buckets, problems)
    if problems.found:
        raise CrushMapError(problems.message())
    return CrushMap(
        devices=devices,
        types=tuple((entry.id, entry.name) for entry in declared.types),
        buckets=buckets,
        rules=tuple(rules),
        tunables=_tunables(declared),
        choose_args=choose_args,
    )


def _tunables(declared: MapText) -> Tunables:
    known = {f.name for f in fields(Tunables)}
    given = {t.name: t.value for t in declared.tunables if t.name in known}
    return replace(Tunables.legacy(), **given)


def _check_unique(declared: MapText, problems: Problems) -> None:
    """Names of devices and buckets share one space; so do ids of buckets and of their shadows."""
    items = [(d.line, d.name) for d in declared.devices] + [(b.line, b.name) for b in declared.buckets]
    _check_distinct("item name", items, problems)
    _check_distinct("device id", [(d.line, d.id) for d in declared.devices], problems)
    bucket_ids: list[tuple[int, object]] = []
    for bucket in declared.buckets:
        if bucket.id is not None:
            bucket_ids.append((bucket.id_line, bucket.id))
        bucket_ids.extend((line, shadow_id) for line, _, shadow_id in bucket.class_ids)
    _check_distinct("bucket id", bucket_ids, problems)
    _check_distinct("type id", [(t.line, t.id) for t in declared.types], problems)
    _check_distinct("type name", [(t.line, t.name) for t in declared.types], problems)
    _check_distinct("rule id", [(r.id_line, r.id) for r in declared.rules if r.id is not None], problems)
    _check_distinct("rule name", [(r.line, r.name) for r in declared.rules], problems)
    _check_distinct("tunable", [(t.line, t.name) for t in declared.tunables], problems)


def _check_distinct(what: str, entries: Sequence[tuple[int, object]], problems: Problems) -> None:
    seen: dict[object, int] = {}
    for line, value in entries:
        if value in seen:
            problems.add(line, f"duplicate {what} {value}", f"one that line {seen[value]} does not have")
        else:
            seen[value] = line


def _declared_ids(declared: MapText) -> dict[str, int]:
    """Ids by name as far as they are given; a bucket without an id still counts as known."""
    ids = {device.name: device.id for device in declared.devices}
    classes = {d.device_class for d in declared.devices if d.device_class is not None}
    for bucket in declared.buckets:
        ids[bucket.name] = bucket.id if bucket.id is not None else 0
        ids |= {shadow_name(bucket.name, name): 0 for name in classes}
    return ids


def _resolve_buckets(declared: MapText, type_ids: dict[str, int], problems: Problems) -> tuple[Bucket, ...]:
    """Turn names into ids; an item that cannot be resolved is reported and left out."""
    ids = _declared_ids(declared)
    devices = {d.name for d in declared.devices}
    names = devices | {b.name for b in declared.buckets}
    resolved = []
    for bucket in declared.buckets:
        type_id = type_ids.get(bucket.type_name)
        if type_id is None:
            wanted = f"a type, one of {_listed(name for name, i in type_ids.items() if i > 0)}"
            problems.add(bucket.line, f"unknown type {bucket.type_name!r}", wanted)
        elif type_id == 0:
            problems.add(bucket.line, f"type {bucket.type_name!r} (of devices)", "a bucket's type, above 0")
        items: list[int] = []
        weights: list[int] = []
        seen: set[str] = set()
        for item in _in_place(bucket, problems):
            if item.name not in names:
                wanted = "the name of a device or bucket"
                problems.add(item.line, f"unknown item {item.name!r} in bucket {bucket.name!r}", wanted)
            elif item.name in seen:
                problems.add(
                    item.line, f"item {item.name!r} twice in bucket {bucket.name!r}", "each item once"
                )
            else:
                seen.add(item.name)
                if item.name in devices and item.weight > DEVICE_WEIGHT_MAX * WEIGHT_ONE:
                    got = f"weight {item.weight / WEIGHT_ONE:g} of device {item.name!r}"
                    problems.add(item.line, got, f"at most {DEVICE_WEIGHT_MAX}, Ceph's limit")
                items.append(ids[item.name])
                weights.append(item.weight)
        class_ids = tuple((name, shadow_id) for _, name, shadow_id in bucket.class_ids)
        bucket_id = bucket.id if bucket.id is not None else 0
        resolved.append(
            Bucket(
                bucket_id,
                bucket.name,
                type_id or 0,
                tuple(items),
                tuple(weights),
                class_ids,
                bucket.alg or Alg.STRAW2,
            )
        )
    return tuple(resolved)


def _in_place(bucket: BucketText, problems: Problems) -> list[ItemText]:
    """Items in the order of the places they name; those that name none fill the gaps."""
    placed = {item.position: item for item in bucket.items if item.position is not None}
    others = [item for item in bucket.items if item.position is None]
    if len(placed) + len(others) < len(bucket.items) or any(p >= len(bucket.items) for p in placed):
        problems.add(bucket.line, f"places of items in bucket {bucket.name!r}", "each 'pos' once, from 0 on")
        return bucket.items
    rest = iter(others)
    return [placed[p] if p in placed else next(rest) for p in range(len(bucket.items))]


def _check_cycles(declared: MapText, buckets: tuple[Bucket, ...], problems: Problems) -> None:
    """Report each item that leads from a bucket back to one of its ancestors (without recursion)."""
    texts = {text.name: text for text in declared.buckets}
    finished: set[str] = set()
    for start in texts:
        path: list[tuple[str, int]] = [(start, 0)]
        on_path = {start}
        while path:
            name, position = path.pop()
            if name in finished or position == len(texts[name].items):
                finished.add(name)
                on_path.discard(name)
                continue
            path.append((name, position + 1))
            item = texts[name].items[position]
            if item.name in on_path:
                got = f"a cycle: bucket {name!r} holds {item.name!r}, which holds it"
                problems.add(item.line, got, "a hierarchy without cycles")
            elif item.name in texts and item.name not in finished:
                path.append((item.name, 0))
                on_path.add(item.name)


def _resolve_rules(
    declared: MapText, type_ids: dict[str, int], ids: dict[str, int], problems: Problems
) -> list[Rule]:
    rules = []
    for text in declared.rules:
        steps = [_resolve_step(step, type_ids, ids, problems) for step in text.steps]
        rules.append(Rule(text.id or 0, text.name, text.kind, tuple(s for s in steps if s is not None)))
    return rules


def _resolve_step(
    step: StepText, type_ids: dict[str, int], ids: dict[str, int], problems: Problems
) -> Step | None:
    if step.op is StepOp.TAKE:
        name = step.name if step.device_class is None else shadow_name(step.name, step.device_class)
        if name in ids:
            return Step(step.op, ids[name])
        if step.name not in ids:
            problems.add(step.line, f"unknown item {step.name!r}", "the name of a bucket or device")
        else:
            wanted = "a class that a device of the map has, and a bucket to take"
            problems.add(step.line, f"{step.name!r} with unknown device class {step.device_class!r}", wanted)
        return None
    if step.op in CHOOSE_OPS.values() or step.op is StepOp.CHOOSE_MSR:
        if step.name not in type_ids:
            problems.add(step.line, f"unknown type {step.name!r}", f"a type, one of {_listed(type_ids)}")
            return None
        return Step(step.op, step.count, type_ids[step.name])
    return Step(step.op, step.count)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none (the map declares no such types)"


def map_to_text(crush: CrushMap) -> str:
    """Write a map in the form that `parse_map` and ``crushtool -c`` read."""
    lines = ["# begin crush map"]
    plain = Tunables()
    for f in fields(Tunables):
        value = getattr(crush.tunables, f.name)
        # Compilers before Ceph 19 do not know the tunables of MSR rules.
        if not f.name.startswith("msr_") or value != getattr(plain, f.name):
            lines.append(f"tunable {f.name} {value}")
    lines += ["", "# devices"]
    for device in crush.devices:
        suffix = f" class {device.device_class}" if device.device_class is not None else ""
        lines.append(f"device {device.id} {device.name}{suffix}")
    type_names = dict(crush.types)
    lines += ["", "# types", *(f"type {number} {name}" for number, name in crush.types), "", "# buckets"]
    names = {device.id: device.name for device in crush.devices}
    names |= {bucket.id: bucket.name for bucket in crush.buckets}
    shadows = {shadow_id for bucket in crush.buckets for _, shadow_id in bucket.class_ids}
    for bucket in crush.buckets:
        if bucket.id not in shadows:
            lines += _bucket_lines(bucket, type_names, names)
    lines += ["", "# rules"]
    for rule in crush.rules:
        lines += [f"rule {rule.name} {{", f"\tid {rule.id}", f"\ttype {rule.kind}"]
        # Sizes are written for older compilers, which want them, and mean nothing to a mapping.
        lines += ["\tmin_size 1", "\tmax_size 100"]
        lines += [f"\tstep {_step_text(step, type_names, names)}" for step in rule.steps]
        lines.append("}")
    for index, changes in crush.choose_args:
        lines += ["", *choose_args_lines(index, changes)]
    return "\n".join([*lines, "", "# end crush map", ""])


def _bucket_lines(bucket: Bucket, type_names: dict[int, str], names: dict[int, str]) -> list[str]:
    lines = [f"{type_names[bucket.type_id]} {bucket.name} {{", f"\tid {bucket.id}"]
    lines += [f"\tid {shadow_id} class {name}" for name, shadow_id in bucket.class_ids]
    lines += [f"\talg {bucket.alg.name.lower()}", "\thash 0\t# rjenkins1"]
    for item, weight in zip(bucket.items, bucket.weights, strict=True):
        # Ten places hold a 16.16 number's decimals closely enough to come back to the same bits.
        lines.append(f"\titem {names[item]} weight {weight / WEIGHT_ONE:.10f}")
    return [*lines, "}"]


def _step_text(step: Step, type_names: dict[int, str], names: dict[int, str]) -> str:
    if step.op is StepOp.TAKE:
        name, _, device_class = names[step.count].partition("~")
        return f"take {name} class {device_class}" if device_class else f"take {name}"
    if step.op is StepOp.EMIT:
        return "emit"
    if step.op is StepOp.CHOOSE_MSR:
        return f"choosemsr {step.count} type {type_names[step.type_id]}"
    for words, op in CHOOSE_OPS.items():
        if op is step.op:
            return f"{words[0]} {words[1]} {step.count} type {type_names[step.type_id]}"
    return next(f"{word} {step.count}" for word, op in SET_OPS.items() if op is step.op)
