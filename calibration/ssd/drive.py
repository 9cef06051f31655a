"""Write a drive's parameter set from fitted service times, for use as ``cluster.drive``."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.calibration.ssd.result import POOR_ERROR, Floats, ServiceFit
from stripesim.calibration.ssd.time_fit import sample_of
from stripesim.models.documents import toml_lines
from stripesim.models.problems import TraceError
from stripesim.models.ssd import PART_BYTES, TRANSFER_MAX_BYTES, SsdModel
from stripesim.traces import BlockTrace

LIKE = "nvme-tlc"
"""Preset that supplies numbers that the trace does not show."""

#: Entries of a parameter set by their keys.
_Entries = dict[str, dict[str, Any]]

_INSIDE = {"value": 0, "provenance": "fitted"}
# A fit has no queue besides the channels.
_NO_QUEUES: dict[str, _Entries] = {
    "read": {
        "link_ns_per_byte": {**_INSIDE, "source": "inside the times of reads"},
    },
    "write": {
        "write_servers_count": {**_INSIDE, "source": "writes share the channels"},
    },
}


def drive_toml(
    service: Sequence[ServiceFit], trace: BlockTrace, like: str = LIKE
) -> str:
    """Write fitted service times as a parameter set, taking other numbers from a preset.

    Parameters
    ----------
    service
        Fits of reads and writes.
    trace
        The fitted trace.
    like
        Preset for numbers that the trace does not show.

    Returns
    -------
    str
        TOML document whose sources state which numbers were fitted.

    Raises
    ------
    TraceError
        If no fit is of service times, or the preset is a hard disk.

    Notes
    -----
    Base, slope and spread are those of commands that found the device idle, if there were enough: the others
    include waits for channels, which the drive model adds itself. It spreads a request over its channels in
    parts (`SsdModel.parts_bytes`), each with its own time. Base and slope are therefore chosen for the parts
    such that the mean of the slowest part is nearest to the fitted line at the sizes in the trace.
    """
    preset = ParameterSet(like)
    model = preset.device()
    table = preset.table("ssd")
    if not isinstance(model, SsdModel) or table is None:
        raise TraceError(f"--like: got {like}, a disk; wanted a set of an SSD")
    fits = [fit for fit in service if fit.quantity == "service"]
    if not fits:
        raise TraceError(
            f"{trace.source}: got no service times, wanted those of a drive"
        )
    entries = _preset_entries(table, model, like)
    # The trace is from one device, whatever number an OSD has.
    entries["raid0_drives"] = {
        "value": 1,
        "provenance": "given",
        "source": "one device was traced",
    }
    fitted_channels = _channels_entry(fits[0])
    if fitted_channels is not None:
        entries["channels"] = fitted_channels
    channels = _channels(fits[0], model)
    for fit in fits:
        sizes = sample_of(trace, fit.operation, "service").size_bytes
        entries |= _line_entries(fit, sizes, channels)
        entries |= _NO_QUEUES[fit.operation]
    return "\n".join(_heading(fits, like) + _toml_lines(entries)) + "\n"


def drive_warnings(
    service: Sequence[ServiceFit], trace: BlockTrace, like: str = LIKE
) -> list[str]:
    """Warn of requests that the written drive serves in other times than the fitted lines.

    Parameters are those of `drive_toml`. The limit is that of a poor fit.
    """
    fits = [fit for fit in service if fit.quantity == "service"]
    model = ParameterSet(like).device() if fits else None
    if not isinstance(model, SsdModel):
        return []
    channels = _channels(fits[0], model)
    warnings = []
    for fit in fits:
        sizes = sample_of(trace, fit.operation, "service").size_bytes
        in_parts = _line_of_parts(fit, sizes, channels)
        worst = int(np.argmax(np.abs(in_parts.errors)))
        error = float(in_parts.errors[worst])
        if abs(error) > POOR_ERROR["mean"]:
            longer = "longer" if error > 0 else "shorter"
            warnings.append(
                f"{trace.source}: on the drive of drive.toml, an idle {fit.operation} of "
                f"{sizes[worst] / 1024:g} KiB takes {100 * abs(error):.0f} % {longer} than the fitted line: "
                "the model serves large requests in parts, on several channels at a time"
            )
    return warnings


def _preset_entries(
    table: Mapping[str, dict[str, Any]], model: SsdModel, like: str
) -> _Entries:
    """Return the preset's numbers, marked as assumed."""
    entries = {}
    for key, entry in table.items():
        taken = {
            name: value
            for name, value in entry.items()
            if name not in ("file", "confidence_interval")
        }
        if "file" in entry:
            taken["factors"] = _rounded(getattr(model, key))
        source = f"not in the trace: as {like} ({entry['source']})"
        entries[key] = {**taken, "provenance": "assumed", "source": source}
    return entries


def _channels_entry(fit: ServiceFit) -> dict[str, Any] | None:
    """Return the fitted number of whole channels, or None if the trace does not show it."""
    concurrency = fit.concurrency
    if concurrency is None or concurrency.channels is None:
        return None
    source = f"{fit.source}: work done by commands in flight"
    if concurrency.channels_at_bound:
        source += ", with no upper limit: too few were in flight to show one"
    interval = concurrency.channels_ci95
    if interval is not None:
        interval = (math.floor(interval[0]), math.ceil(interval[1]))
    channels = max(1, round(concurrency.channels))
    return _fitted(channels, f"{source}; whole channels", interval)


def _channels(fit: ServiceFit, preset: SsdModel) -> int:
    """Return the fitted number of channels, or else that of the preset."""
    entry = _channels_entry(fit)
    return preset.channels if entry is None else int(entry["value"])


def _heading(fits: Sequence[ServiceFit], like: str) -> list[str]:
    """Return comments that state the source of the numbers and which fits are poor."""
    lines = [
        f"# Drive fitted by `stripesim trace fit` to {fits[0].source}.",
        f"# Numbers that the trace does not show are those of the preset {like}.",
    ]
    for fit in fits:
        if poor := fit.held_out.poor():
            lines.append(f"# {fit.operation}s: {poor}")
    return lines


def _toml_lines(entries: _Entries) -> list[str]:
    lines = []
    for key, entry in entries.items():
        lines += ["", f"[ssd.{key}]", *toml_lines(entry)]
    return lines


def _line_entries(fit: ServiceFit, sizes: Floats, channels: int) -> _Entries:
    """Return base, slope and spread of one direction."""
    line, factors = fit.drive_times
    in_parts = _line_of_parts(fit, sizes, channels)
    split = in_parts.is_split
    if fit.isolated_line:
        company = "found the device idle"
    else:
        company = "may have waited for others inside the device"
    commands = f"{fit.source}: {line.commands} {fit.operation}s that {company}"
    source = f"{commands}, soft L1 of log(time / line)"
    if split:
        off = float(np.abs(in_parts.errors).max())
        source += f"; for the parts that channels serve, off the line by at most {100 * off:.0f} %"
    if not line.slope_identified:
        source += "; all of one size, so that no slope could be found"
    return {
        f"{fit.operation}_base_ns": _fitted(
            in_parts.base_ns, source, None if split else line.base_ns_ci95
        ),
        f"{fit.operation}_ns_per_byte": _fitted(
            in_parts.ns_per_byte, source, None if split else line.ns_per_byte_ci95
        ),
        f"{fit.operation}_quantiles": {
            "factors": _rounded(factors),
            "provenance": "fitted",
            "source": f"{commands}, time / line",
        },
    }


class _LineOfParts(NamedTuple):
    """Time of a part of a request on its channel, as a line over its size."""

    base_ns: float
    ns_per_byte: float
    errors: Floats  #: Time of an idle request over that of the fitted line, less 1, shape (commands,)
    is_split: bool  #: True if channels serve parts of any request


def _line_of_parts(fit: ServiceFit, sizes: Floats, channels: int) -> _LineOfParts:
    """Return the line over parts whose slowest part is nearest to the fitted line."""
    line, factors = fit.drive_times
    together, parts = _parts(sizes, channels)
    if not (together > 1).any():
        return _LineOfParts(
            line.base_ns, line.ns_per_byte, np.zeros(len(sizes)), is_split=False
        )
    design = (
        np.column_stack((np.ones(len(parts)), parts))
        * _slowest(factors, together)[:, None]
    )
    (base_ns, ns_per_byte), _ = scipy.optimize.nnls(design, line.mean_ns(sizes))
    errors = design @ (base_ns, ns_per_byte) / line.mean_ns(sizes) - 1
    return _LineOfParts(float(base_ns), float(ns_per_byte), errors, is_split=True)


def _parts(sizes: Floats, channels: int) -> tuple[Floats, Floats]:
    """Return the channels that serve an otherwise idle request, and the bytes on each, as in `SsdModel`."""
    pieces = np.ceil(sizes / TRANSFER_MAX_BYTES)
    parts = np.clip(sizes // PART_BYTES, 1, channels)
    together = np.where(pieces > 1, np.minimum(pieces, channels), parts)
    each = np.where(
        pieces > 1, np.ceil(pieces / channels) * TRANSFER_MAX_BYTES, sizes / parts
    )
    return together, each


def _slowest(table: Sequence[float], together: Floats) -> Floats:
    """Return the mean of the largest of `together` draws from equally likely ascending factors."""
    below = np.arange(len(table) + 1) / len(table)
    means = {
        count: float(np.diff(below**count) @ np.asarray(table))
        for count in np.unique(together)
    }
    return np.array([means[count] for count in together])


def _fitted(
    value: float, source: str, interval: tuple[float, float] | None
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "value": _rounded([value])[0],
        "provenance": "fitted",
        "source": source,
    }
    if interval is None:
        return entry
    return {**entry, "confidence_interval": _rounded(interval)}


def _rounded(values: Sequence[float]) -> list[float]:
    return [
        value if isinstance(value, int) else float(f"{value:.6g}") for value in values
    ]
