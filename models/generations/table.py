"""Read the table of Ceph releases from ``generations.toml``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Literal

from stripesim.models.coding.optimised.extent_cache import ExtentCacheModel
from stripesim.models.coding.policy import WHOLE_STRIPES, EcPolicy, Reads
from stripesim.models.object_store.store import DeferralModel, ObjectStoreModel
from stripesim.models.provenance import MeasuredModel, Provenance
from stripesim.models.recovery import GraceFrom, RecoveryModel
from stripesim.models.throttle import ThrottleModel

#: ``hybrid``: a disk with its log and database on a drive that does not rotate
Device = Literal["ssd", "hdd", "hybrid"]
OpQueueName = Literal["wpq", "mclock_scheduler"]
# Tables of numbers of a release.
_PARTS = ("recovery", "op_threads", "throttle", "deferral", "extent_cache", "log")


@dataclass(frozen=True, kw_only=True)
class OpThreads(MeasuredModel):
    """Threads of one OSD that process operations."""

    positive: ClassVar = ("shards_count", "threads_per_shard_count")
    shards_count: int  #: Operation queues. Each placement group belongs to one.
    threads_per_shard_count: int


@dataclass(frozen=True)
class ReleaseDefault:
    """Default value of a setting in a release, by kind of device, with its provenance."""

    value: Any
    hdd: Any
    hybrid: Any
    provenance: Provenance


@dataclass(frozen=True, kw_only=True)
class Generation:
    """Behaviour and defaults of a Ceph release."""

    #: Name in scenarios, version whose code was read, and special features.
    name: str
    version: str
    summary: str
    op_queue: OpQueueName  #: Default op queue
    pg_lock_scope: str  #: See `stripesim.models.pg_lock.PgLockModel`
    grace_from: GraceFrom  #: See `stripesim.models.recovery.RecoveryModel`
    #: True if a class method that reads and writes an object locks it until the write is complete on all
    #: replicas, so that such operations on one object run one after another
    exclusive_class_writes: bool
    ec: EcPolicy  #: Read and write policy of erasure-coded pools
    classic_reads: Reads  #: What pools without the release's optimisations read
    numbers: Mapping[
        str, Mapping[str, ReleaseDefault]
    ]  #: Defaults by table (such as ``recovery`` and ``op_threads``) and name

    def recovery(
        self, device: Device = "ssd", op_queue: OpQueueName | None = None
    ) -> RecoveryModel:
        """Return the detection and recovery settings for a kind of device and an op queue.

        Parameters
        ----------
        device
            Kind of device.
        op_queue
            Op queue of the OSDs, None for the release's default.
        """
        model = RecoveryModel(
            grace_from=self.grace_from, **self._numbers("recovery", device)
        )
        if (op_queue or self.op_queue) != "mclock_scheduler":
            return model
        origin = Provenance("code", "mclock_scheduler sets every sleep to 0")
        return model.with_numbers(
            {"recovery_sleep_ns": 0, "delete_sleep_ns": 0}, origin
        )

    def op_threads(self, device: Device = "ssd") -> OpThreads:
        """Return the operation threads of an OSD for this kind of device."""
        return OpThreads(**self._numbers("op_threads", device))

    def deferral(self, device: Device = "ssd") -> DeferralModel | None:
        """Return how stores on this kind of device defer small writes, or None if they do not."""
        numbers = self._numbers("deferral", device)
        if not numbers["prefer_deferred_bytes"]:
            return None
        return DeferralModel(**numbers)

    @property
    def classic_ec(self) -> EcPolicy:
        """Read and write policy of erasure-coded pools without the release's optimisations."""
        if not self.ec.optimised:
            return self.ec
        return replace(WHOLE_STRIPES, reads=self.classic_reads)

    def extent_cache(self) -> ExtentCacheModel:
        """Return the cache of pages at the primaries of optimised pools."""
        return ExtentCacheModel(**self._numbers("extent_cache", "ssd"))

    def with_log(self, store: ObjectStoreModel) -> ObjectStoreModel:
        """Return a store whose log writes what a sync of the release writes."""
        numbers = self._numbers("log", "ssd")
        origin = numbers.pop("provenance")
        return store.with_numbers(numbers, origin)

    def throttle(self) -> ThrottleModel:
        """Return the limit on client requests that an OSD admits."""
        return ThrottleModel(**self._numbers("throttle", "ssd"))

    def _numbers(self, table: str, device: Device) -> dict[str, Any]:
        numbers = self.numbers[table]
        field = "value" if device == "ssd" else device
        values = {name: getattr(one, field) for name, one in numbers.items()}
        return {
            **values,
            "provenance": {name: one.provenance for name, one in numbers.items()},
        }


@cache
def generations() -> dict[str, Generation]:
    """Return all releases by name, oldest first."""
    text = (files("stripesim.models.generations") / "generations.toml").read_text(
        "utf-8"
    )
    tables = tomllib.loads(text)
    common = tables.pop("common")
    releases: dict[str, Generation] = {}
    for name, table in tables.items():
        releases[name] = _read(name, table, releases.get(table.get("from", "")), common)
    return releases


def generation(name: str) -> Generation:
    """Return a release by name.

    Parameters
    ----------
    name
        Name in ``generations.toml``, such as ``squid``.

    Raises
    ------
    ValueError
        If there is no such release.

    Examples
    --------
    >>> generation("squid").ec.writes, generation("tentacle").ec.writes
    ('stripes', 'shards')
    """
    release = generations().get(name)
    if release is None:
        raise ValueError(
            f"generation: got {name!r}, wanted one of {', '.join(generations())}"
        )
    return release


def recovery_model(
    name: str = "pacific",
    *,
    device: Device = "ssd",
    op_queue: OpQueueName | None = None,
) -> RecoveryModel:
    """Return the detection and recovery settings of a release for one kind of device and op queue.

    Raises
    ------
    ValueError
        If there is no such release.

    Examples
    --------
    >>> recovery_model("pacific").recovery_max_active_count, recovery_model("kraken").grace_from
    (10, 'last_reply')
    """
    return generation(name).recovery(device, op_queue)


def _read(
    name: str, table: dict[str, Any], base: Generation | None, common: dict[str, Any]
) -> Generation:
    """Build one release from its own entries and those inherited from an earlier release."""
    version = table["version"]
    ec = table.get("ec", {})
    if base is None:
        entries = table
        policy = EcPolicy(**ec)
        numbers = {part: _numbers(common.get(part, {}), version) for part in _PARTS}
    else:
        entries = {**vars(base), **table}
        policy = EcPolicy(**{**vars(base.ec), **ec})
        numbers = {
            part: {key: _taken_over(number, base) for key, number in of_base.items()}
            for part, of_base in base.numbers.items()
        }
    for part, inherited in numbers.items():
        inherited.update(_numbers(table.get(part, {}), version))
    return Generation(
        name=name,
        version=version,
        summary=table["summary"],
        op_queue=entries["op_queue"],
        pg_lock_scope=entries["pg_lock_scope"],
        grace_from=entries["grace_from"],
        exclusive_class_writes=entries["exclusive_class_writes"],
        ec=policy,
        classic_reads=entries.get("classic_reads", "stripes"),
        numbers=numbers,
    )


def _numbers(table: dict[str, Any], version: str) -> dict[str, ReleaseDefault]:
    numbers = {}
    for key, entry in table.items():
        kind = entry.get("provenance", "code")
        source = entry["source"]
        origin = Provenance(
            kind, f"Ceph {version}: {source}" if kind == "code" else source
        )
        hdd = entry.get("hdd", entry["value"])
        hybrid = entry.get("hybrid", hdd)
        numbers[key] = ReleaseDefault(entry["value"], hdd, hybrid, origin)
    return numbers


def _taken_over(number: ReleaseDefault, base: Generation) -> ReleaseDefault:
    """Inherit a number from a release, marking it as assumed because this release's code was not read."""
    origin = number.provenance
    if origin.kind == "code":
        origin = Provenance("assumed", f"as in {base.name}: {origin.source}")
    return replace(number, provenance=origin)
