"""Write a calibration as a parameter set, with a scenario that uses it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from stripesim.models.documents import toml_lines, toml_text, toml_value
from stripesim.models.hdd import HddModel, HddWithLogModel
from stripesim.models.provenance import MeasuredModel
from stripesim.scenarios.answers.calibrate.calibrate import Calibration
from stripesim.scenarios.cells.models import cluster_set

#: File name of the parameter set. A scenario in the same folder refers to it as ``./parameters.toml``.
FILE: Final = "parameters.toml"
_DIGITS: Final = 6
# Tables of a drive that a calibration leaves unchanged, from the set of the drive if it has one of its own.
_CAPACITY: Final = ("capacity", "endurance", "recovery")
# Models of a cluster whose numbers a calibration changes.
_CHANGED: Final = ("client", "cpu", "threads", "public_nic", "private_nic")


def parameter_text(result: Calibration) -> str:
    """Return the fitted parameter set, for `cluster.parameters` and `cluster.drive`.

    It contains every number of the original set with its provenance, and the drive.
    """
    base = cluster_set(result.scenario)
    lines = [
        f"# Parameter set {result.scenario.name}: {base.name}, {result.source}.",
        "# Written by `stripesim calibrate`. Use it in a scenario next to this file:",
        "#",
        "#     [cluster]",
        f'#     parameters = "./{FILE}"',
        f'#     drive = "./{FILE}"',
        "",
    ]
    device = result.after.ssd
    of_device = _device_table(device)
    for name, table in base.tables():
        if name in (of_device, "calibrated"):
            continue
        if name in _CAPACITY and result.drive_set is not None:
            continue
        if name in _CHANGED:
            model = getattr(result.after, name)
            lines += _model_lines(name, model, table)
        else:
            lines += _copied_lines(name, table)
    lines += _model_lines(of_device, device, device.number_names())
    if result.drive_set is not None:
        for name in _CAPACITY:
            lines += _copied_lines(name, result.drive_set.table(name) or {})
    lines += _range_lines(result)
    return "\n".join(lines)


def scenario_text(result: Calibration) -> str:
    """Return a scenario of the first fitted run with the parameter set and all measured schemes."""
    values = result.scenario.model_dump(mode="json", exclude_unset=True)
    schemes = dict.fromkeys(row.scheme for row in result.rows)
    values |= {"name": "calibrated", "schemes": list(schemes)}
    values["cluster"] |= {"parameters": f"./{FILE}", "drive": f"./{FILE}"}
    return toml_text(values)


def _device_table(device: object) -> str:
    if isinstance(device, HddWithLogModel):
        return "hdd_with_log"
    if isinstance(device, HddModel):
        return "hdd"
    return "ssd"


def _model_lines(
    table: str, model: MeasuredModel, names: Iterable[str]
) -> Iterator[str]:
    """Yield the numbers of a model with their provenance."""
    for name in names:
        value = getattr(model, name)
        origin = model.provenance[name]
        yield f"[{table}.{name}]"
        if isinstance(value, tuple):
            yield f"factors = [{', '.join(f'{factor:.6g}' for factor in value)}]"
        else:
            yield f"value = {_number(value)}"
        yield f'provenance = "{origin.kind}"'
        yield f"source = {toml_value(origin.source)}"
        if origin.confidence_interval:
            low, high = map(_number, origin.confidence_interval)
            yield f"confidence_interval = [{low}, {high}]"
        yield ""


def _copied_lines(table: str, entries: Mapping[str, Any]) -> Iterator[str]:
    """Yield the numbers of a table unchanged."""
    for name, entry in entries.items():
        yield f"[{table}.{name}]"
        yield from toml_lines(entry)
        yield ""


def _range_lines(result: Calibration) -> Iterator[str]:
    """Yield the range of measurements that the set was calibrated to."""
    cluster = result.scenario.cluster
    rows = result.rows
    blocks = [row.block_bytes for row in rows]
    depths = [row.queue_depth for row in rows]
    clients = [row.clients for row in rows]
    spans = {
        "cluster.hosts": [cluster.host_count],
        "cluster.osds_per_host": [cluster.osds_per_host],
        "workload.clients": clients,
        "workload.block_sizes_bytes": blocks,
        "workload.queue_depth": depths,
    }
    yield "[calibrated]"
    yield f"source = {toml_value(result.source)}"
    yield "[calibrated.keys]"
    yield f'"generation" = ["{result.scenario.generation}"]'
    yield f'"schemes" = {toml_value(sorted({row.scheme for row in rows}))}'
    for key, values in spans.items():
        yield f'"{key}" = {{ min = {min(values)}, max = {max(values)} }}'
    yield '"degraded" = []'
    yield ""


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return f"{float(f'{value:.{_DIGITS}g}'):.12g}"
