"""Simulate one failure and its recovery under a profile."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache as remember
from typing import Any

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.models.object_store.metadata_cache import (
    BlueStoreCacheModel,
    MetadataLookup,
)
from stripesim.models.object_store.store import FileStoreModel
from stripesim.scenarios.cells.build import build_pool
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.studies.ecfault2024.parameters import cache_model, study_model
from stripesim.scenarios.studies.ecfault2024.profiles import Failures, Profile
from stripesim.scenarios.studies.kernels import scaled_table
from stripesim.scenarios.studies.parameters import changed_models
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.pool import Pool

FAILS_AT_S = 0.0
TAKEN = ("detection_s", "down_out_s", "checking_s", "recovery_s")
"""Columns of a run's row that the study keeps."""


def models_of(profile: Profile, scenario: Scenario) -> Models:
    """Return the scenario's models with the profile's store and cache, and Clay's kernel scaled to Ceph's."""
    cache = None if profile.cache is None else cache_model(profile.cache.model_dump())
    return _models(
        scenario, profile.backend, None if cache is None else lookup_of(cache, scenario)
    )


def _models(scenario: Scenario, backend: str, lookup: MetadataLookup | None) -> Models:
    models = changed_models(build_models(scenario))
    factor = study_model().clay_kernel_factor
    models = replace(
        models, kernel=scaled_table(models.kernel, "clay", factor), lookup=lookup
    )
    if backend == "filestore":
        # Its journal takes every write, whatever its size.
        models = replace(models, store=FileStoreModel.of(models.store), deferral=None)
    return models


def lookup_of(cache: BlueStoreCacheModel, scenario: Scenario) -> MetadataLookup | None:
    """Return the reads for a shard's metadata on an OSD with its share of the data, or None."""
    cluster = scenario.cluster
    scheme = parse_scheme(scenario.schemes[0])
    geometry = scheme.geometry(cluster.stripe_unit_bytes)
    shard_bytes = geometry.shard_size_bytes(cluster.object_bytes)
    objects = scenario.workload.image_bytes / cluster.object_bytes
    shards = objects * scheme.width / cluster.osd_count
    missed = cache.miss_fraction(shards, shard_bytes)
    return MetadataLookup(missed, cache.lookup_bytes(shard_bytes)) if missed else None


def failing_osds(pool: Pool, failures: Failures) -> list[int]:
    """Choose OSDs to fail such that the pool loses shards with any number of placement groups.

    The first holds the middle shard of placement group 0. The next ones hold the following shards on other
    hosts, or are the other OSDs of the first host, by number.

    Raises
    ------
    ValueError
        If the host, or the placement group, has too few.
    """
    hosts = pool.cluster.osd_hosts
    row = pool.cluster.acting[0]
    start = len(row) // 2
    first = int(row[start])
    if failures.hosts == "same":
        candidates = np.flatnonzero(hosts == hosts[first]).tolist()
    else:
        candidates = np.roll(row, -start).tolist()
    osds = [first]
    for osd in candidates:
        new_host = hosts[osd] not in hosts[osds]
        if osd not in osds and new_host == (failures.hosts == "different"):
            osds.append(int(osd))
    if len(osds) < failures.count:
        raise ValueError(
            f"failures: got {failures.count} on {failures.hosts} hosts, "
            f"wanted at most {len(osds)}, the OSDs that qualify"
        )
    return osds[: failures.count]


@remember
def _run(
    scenario: Scenario, engine: str, backend: str, lookup: MetadataLookup | None
) -> Row:
    """Run one scenario with failures, once for all profiles that lead to it."""
    (cell,) = cells(scenario)
    models = _models(scenario, backend, lookup)
    # Bytes are compared, no rates.
    result = run_cell(scenario, cell, engine, models, unchecked=True)
    row = result.accepted_counts().row
    assert row.faults is not None and row.faults.clean_at_end, "a recovery did not end"
    return row.as_dict()


def recover(
    profile: Profile, code: str, engine: str, *, sets: Mapping[str, Any] | None = None
) -> Row:
    """Simulate a failure under a profile until all placement groups are clean.

    ``checking_s`` runs from the failure to the first recovery operation, ``recovery_s`` from then until all
    groups are clean, ``total_s`` is their sum. `sets` changes the scenario.
    """
    sets = sets or {}
    # Without a failure the scenario has no table of faults.
    scenario = profile.scenario(
        code, {k: v for k, v in sets.items() if not k.startswith("faults.")}
    )
    models = models_of(profile, scenario)
    pool = build_pool(scenario, parse_scheme(code), models)
    osds = failing_osds(pool, profile.failures)
    # Detaching a virtual disk ends the daemon on it, and peers see the connection refused.
    failure = {"osds": osds, "at_s": FAILS_AT_S, "kind": "process"}
    # Such a pool takes whole stripes only: `rados put` rounds its objects up by a second write.
    failing = profile.scenario(
        code, {"faults.object_writes": 2, **sets, "faults.events": [failure]}
    )
    row = _run(failing, engine, profile.backend, models.lookup)
    lost = np.isin(pool.cluster.acting, osds).sum(axis=1)
    return {
        **{name: row[name] for name in TAKEN},
        "total_s": row["failure_to_clean_s"],
        "checking_share": row["checking_s"] / row["failure_to_clean_s"],
        "rebuilt_bytes": row["recovery_bytes"],
        "operations": row["recovery_operations"],
        "objects_lost": row["objects_lost"],
        "read_bytes_per_lost_byte": row["recovery_device_read_bytes_per_lost_byte"],
        "written_bytes_per_lost_byte": row["recovery_device_write_bytes_per_lost_byte"],
        "sent_bytes_per_lost_byte": row["recovery_private_net_bytes_per_lost_byte"],
        "scheme": code,
        "profile": profile.name,
        "dimension": profile.dimension,
        "label": profile.label,
        "failures": profile.failures.count,
        "failure_hosts": profile.failures.hosts,
        "pg_num": scenario.cluster.pg_num,
        "stripe_unit_bytes": scenario.cluster.stripe_unit_bytes,
        "object_bytes": scenario.cluster.object_bytes,
        "pgs_hurt": int((lost > 0).sum()),
        "pgs_hurt_more_than_once": int((lost > 1).sum()),
    }
