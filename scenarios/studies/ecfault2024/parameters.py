"""The study's models, from ``parameters.toml``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from stripesim.models.object_store.metadata_cache import BlueStoreCacheModel
from stripesim.models.provenance import MeasuredModel
from stripesim.scenarios.studies.parameters import ParameterFile, model_from

_FILE = ParameterFile("ecfault2024")


@dataclass(frozen=True, kw_only=True)
class StudyModel(MeasuredModel):
    """The source's cluster, and the overheads of a store.

    The logs of an OSD, in use and just started, are the space that it takes on its device without any data.
    """

    positive: ClassVar = (
        "objects_count",
        "object_bytes",
        "stripe_unit_bytes",
        "raw_capacity_bytes",
        "hosts_count",
        "osds_per_host_count",
        "min_alloc_bytes",
        "clay_kernel_factor",
    )
    clay_kernel_factor: float
    objects_count: int
    object_bytes: int
    stripe_unit_bytes: int
    raw_capacity_bytes: float
    hosts_count: int
    osds_per_host_count: int
    osd_log_bytes: int
    osd_log_fresh_bytes: int
    checksum_bytes_per_data_byte: float
    attribute_bytes: int
    min_alloc_bytes: int

    @property
    def osds(self) -> int:
        """OSDs of the cluster [count]."""
        return self.hosts_count * self.osds_per_host_count

    @property
    def written_bytes(self) -> int:
        """Bytes that clients wrote [B]."""
        return self.objects_count * self.object_bytes


@cache
def study_model() -> StudyModel:
    """Return the numbers that ship."""
    return _FILE.model(StudyModel, "study")


def cache_model(scheme: Mapping[str, float | bool]) -> BlueStoreCacheModel:
    """Return the cache of one OSD under one of the source's schemes (shares and ``autotune``)."""
    shares = {name: value for name, value in scheme.items() if name != "autotune"}
    values = {
        name: {
            "value": value,
            "provenance": "published",
            "source": "Han et al. 2024, table of cache schemes",
        }
        for name, value in shares.items()
    }
    table = _FILE.table("cache") | values
    autotune = {"autotune": bool(scheme.get("autotune", False))}
    return model_from(BlueStoreCacheModel, table, "parameters.toml: [cache]", autotune)
