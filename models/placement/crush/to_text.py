"""Write CRUSH maps in their text form."""

from dataclasses import fields

from stripesim.models.placement.crush.elements import (
    CHOOSE_OPS,
    WEIGHT_ONE,
    Bucket,
    BucketArgs,
    Device,
    Rule,
    Step,
    StepOp,
    Tunables,
)
from stripesim.models.placement.crush.map import CrushMap


def map_to_text(crush: CrushMap) -> str:
    """Write a map in the form that `parse_map` and ``crushtool -c`` read."""
    type_names = dict(crush.types)
    names = {device.id: device.name for device in crush.devices}
    names |= {bucket.id: bucket.name for bucket in crush.buckets}
    shadows = {
        shadow_id for bucket in crush.buckets for _, shadow_id in bucket.class_ids
    }
    lines = ["# begin crush map", *_tunable_lines(crush.tunables)]
    lines += ["", "# devices", *map(_device_line, crush.devices)]
    lines += ["", "# types"]
    lines += [f"type {number} {name}" for number, name in crush.types]
    lines += ["", "# buckets"]
    for bucket in crush.buckets:
        if bucket.id not in shadows:
            lines += _bucket_lines(bucket, type_names, names)
    lines += ["", "# rules"]
    for rule in crush.rules:
        lines += _rule_lines(rule, type_names, names)
    for index, changes in crush.choose_args:
        lines += ["", f"choose_args {index} {{"]
        for change in changes:
            lines += _change_lines(change)
        lines.append("}")
    return "\n".join([*lines, "", "# end crush map", ""])


def _tunable_lines(tunables: Tunables) -> list[str]:
    plain = Tunables()
    lines = []
    for f in fields(Tunables):
        value = getattr(tunables, f.name)
        # Compilers before Ceph 19 do not know the tunables of MSR rules.
        if not f.name.startswith("msr_") or value != getattr(plain, f.name):
            lines.append(f"tunable {f.name} {value}")
    return lines


def _device_line(device: Device) -> str:
    line = f"device {device.id} {device.name}"
    if device.device_class is None:
        return line
    return f"{line} class {device.device_class}"


def _rule_lines(
    rule: Rule, type_names: dict[int, str], names: dict[int, str]
) -> list[str]:
    lines = [f"rule {rule.name} {{", f"\tid {rule.id}", f"\ttype {rule.kind}"]
    # Older compilers require sizes, which have no effect on mappings.
    lines += ["\tmin_size 1", "\tmax_size 100"]
    lines += [f"\tstep {_step_text(step, type_names, names)}" for step in rule.steps]
    return [*lines, "}"]


def _bucket_lines(
    bucket: Bucket, type_names: dict[int, str], names: dict[int, str]
) -> list[str]:
    lines = [f"{type_names[bucket.type_id]} {bucket.name} {{", f"\tid {bucket.id}"]
    lines += [f"\tid {shadow_id} class {name}" for name, shadow_id in bucket.class_ids]
    lines += [f"\talg {bucket.alg.name.lower()}", "\thash 0\t# rjenkins1"]
    for item, weight in zip(bucket.items, bucket.weights, strict=True):
        # Ten decimals represent a 16.16 number precisely enough to restore its bits.
        lines.append(f"\titem {names[item]} weight {weight / WEIGHT_ONE:.10f}")
    return [*lines, "}"]


def _step_text(step: Step, type_names: dict[int, str], names: dict[int, str]) -> str:
    if step.op is StepOp.TAKE:
        name, _, device_class = names[step.count].partition("~")
        if device_class:
            return f"take {name} class {device_class}"
        return f"take {name}"
    if step.op is StepOp.EMIT:
        return "emit"
    if step.op is StepOp.CHOOSE_MSR:
        return f"choosemsr {step.count} type {type_names[step.type_id]}"
    if step.op in CHOOSE_OPS:
        verb, mode = step.op.name.lower().split("_")
        return f"{verb} {mode} {step.count} type {type_names[step.type_id]}"
    return f"{step.op.name.lower()} {step.count}"


def _change_lines(change: BucketArgs) -> list[str]:
    lines = ["  {", f"    bucket_id {change.bucket_id}"]
    if change.weight_sets:
        rows = (
            " ".join(f"{w / WEIGHT_ONE:.10f}" for w in weights)
            for weights in change.weight_sets
        )
        lines += ["    weight_set [", *(f"      [ {row} ]" for row in rows), "    ]"]
    if change.ids:
        lines.append(f"    ids [ {' '.join(map(str, change.ids))} ]")
    return [*lines, "  }"]
