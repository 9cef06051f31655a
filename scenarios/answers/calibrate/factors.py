"""The four numbers that a calibration may change, and their application to the models."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, TypeVar

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.provenance import MeasuredModel, Provenance
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.cluster import Models

AnyModel = TypeVar("AnyModel", bound=MeasuredModel)

# Spread of a drive without a data sheet.
_UNKNOWN_DRIVE_SPREAD: Final = 1.0
# The beginning of every `source_text`.
_OF_CALIBRATION: Final = re.compile(r"fitted to \d+ rows of replication in ")
# Suffixes of service times in models of drives and disks.
_TIMES: Final = ("_ns", "_ns_per_byte")


@dataclass(frozen=True)
class Factor:
    """A number that a calibration fits."""

    name: str
    unit: str
    meaning: str
    #: Prior value, or None to take it from the models or, of a wake-up, from what was counted.
    start: float | None
    #: Prior standard deviation of its logarithm, estimated from the differences between published clusters
    #: (docs/calibrate.md).
    spread: float


FACTORS: Final = (
    Factor(
        "processor",
        "1",
        "processor time of the same work over that of the shipped parameter set",
        1.0,
        1.0,
    ),
    Factor(
        "drive",
        "1",
        "service time of a drive over that of its data sheet or parameter set",
        1.0,
        0.2,
    ),
    Factor(
        "network",
        "us",
        "one-way latency of a message beyond its bytes: stack, switch and waking up the receiver",
        None,
        0.35,
    ),
    Factor(
        "client",
        "1",
        "time of a request at its client over that of the shipped parameter set",
        1.0,
        0.6,
    ),
)


#: Where OSDs have a CPU limit, it decides instead of drives. A request then costs more at low load, when
#: more threads sleep and fewer transactions share a sync. So this time is fitted in place of the drive's.
WAKE: Final = Factor(
    "wake",
    "us",
    "processor time of waking a thread of an OSD that sleeps, which a busy thread does not pay; a key-value "
    "sync takes the multiple of it that was counted on a real Ceph",
    None,
    1.2,
)
#: Limits are those of containers. Their messages also pass virtual interfaces, and requests of virtual
#: machines the hypervisor, so the latency is known less well.
_VIRTUAL_NETWORK: Final = Factor(
    "network",
    "us",
    "one-way latency of a message beyond its bytes: stack, switch, virtual interfaces, hypervisor and "
    "waking up the receiver",
    100.0,
    1.2,
)
LIMITED_FACTORS: Final = (
    WAKE,
    *(factor for factor in FACTORS if factor.name in ("processor", "client")),
    _VIRTUAL_NETWORK,
)


def factors_for(scenario: Scenario) -> tuple[Factor, ...]:
    """Return the four factors that the rows of a cluster are fitted with."""
    if scenario.cluster.cpu_limit_per_osd is not None:
        return LIMITED_FACTORS
    return FACTORS


def starts(models: Models, factors: Sequence[Factor] = FACTORS) -> dict[str, float]:
    """Return the start of each factor in the search, in its unit."""
    known_us = {
        "network": models.public_nic.latency_ns / 1e3,
        "wake": _counted_ns("wake_ns") / 1e3,
    }
    return {
        factor.name: known_us[factor.name] if factor.start is None else factor.start
        for factor in factors
    }


def unchanged(models: Models, factors: Sequence[Factor] = FACTORS) -> dict[str, float]:
    """Return the value of each factor that leaves the models as they are."""
    values = starts(models, factors)
    values["network"] = models.public_nic.latency_ns / 1e3
    if "wake" in values:
        values["wake"] = models.threads.wake_ns / 1e3
    return values


def spreads_for(
    models: Models, factors: Sequence[Factor] = FACTORS
) -> dict[str, float]:
    """Return the prior spread of each factor, in the sense of `Factor.spread`."""
    spreads = {factor.name: factor.spread for factor in factors}
    if "drive" in spreads and "assumed" in models.ssd.provenance["read_base_ns"].source:
        spreads["drive"] = _UNKNOWN_DRIVE_SPREAD
    return spreads


def with_factors(models: Models, values: Mapping[str, float], source: str) -> Models:
    """Return models with the factors applied.

    Parameters
    ----------
    models
        The models before calibration.
    values
        Value of each factor in its unit, keyed by name.
    source
        Source that the provenance of the changed numbers cites.
    """
    processor = values["processor"]
    latency_ns = {"latency_ns": values["network"] * 1e3}
    threads = _scaled(models.threads, processor, ("_ns",), source)
    if "wake" in values:
        wake_ns = values["wake"] * 1e3
        woken = {"wake_ns": wake_ns, "sync_ns": wake_ns * _wakes_in_sync()}
        threads = _changed(threads, woken, source)
    return replace(
        models,
        cpu=_scaled(models.cpu, processor, ("_ns",), source),
        threads=threads,
        ssd=_scaled(models.ssd, values.get("drive", 1.0), _TIMES, source),
        public_nic=_changed(models.public_nic, latency_ns, source),
        private_nic=_changed(models.private_nic, latency_ns, source),
        client=_scaled(models.client, values["client"], ("_ns",), source),
    )


def source_text(folder: str, rows: Sequence[str]) -> str:
    """Return the source of numbers that are fitted to rows of a folder."""
    return f"fitted to {len(rows)} rows of replication in {folder}: {', '.join(rows)}"


def is_of_calibration(source: str) -> bool:
    """Return True if a source is one that `source_text` returns."""
    return _OF_CALIBRATION.match(source) is not None


def _wakes_in_sync() -> float:
    """Return the processor time of a key-value sync over that of a wake-up, as counted.

    A sync wakes the threads that write and flush the log and collect it. A real Ceph 16 made 3.0 syncs for a
    write of one request in flight and 0.1 for one of 256, and took 2,200 and 390 µs of processor time.
    """
    return _counted_ns("sync_ns") / _counted_ns("wake_ns")


@cache
def _counted_ns(name: str) -> float:
    """Return a number of the threads of an OSD, as counted on a real Ceph 16 [ns]."""
    threads = ParameterSet("pacific").table("threads")
    assert threads is not None
    return float(threads[name]["value"])


def _scaled(
    model: AnyModel, factor: float, endings: tuple[str, ...], source: str
) -> AnyModel:
    """Multiply the numbers of a model whose names have one of these endings."""
    names = [name for name in model.number_names() if name.endswith(endings)]
    return _changed(
        model, {name: getattr(model, name) * factor for name in names}, source
    )


def _changed(model: AnyModel, values: Mapping[str, float], source: str) -> AnyModel:
    """Replace the numbers of a model that differ, along with their provenance."""
    changed = {
        name: value for name, value in values.items() if value != getattr(model, name)
    }
    if not changed:
        return model
    return model.with_numbers(changed, Provenance("fitted", source))
