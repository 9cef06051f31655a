"""The measured cluster under each release: the machine of the study `ceph16` with other numbers and paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stripesim.models.coding import RedundancyScheme, parse_scheme
from stripesim.models.generations import generation
from stripesim.models.provenance import Provenance
from stripesim.scenarios.studies.ceph16 import cluster
from stripesim.scenarios.studies.ceph16.measured import Coded
from stripesim.scenarios.studies.parameters import ParameterFile
from stripesim.scenarios.studies.releases.measured import Pooled
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.pool import Pool

PARAMETERS = ParameterFile("releases")


def models_of(pooled: Pooled, scheme: RedundancyScheme) -> Models:
    """Build the models of a release for one scheme: those of 16.2.15, with the numbers that differ."""
    release = generation(pooled.generation)
    models = cluster.models_for(scheme)
    models = replace(models, store=release.with_log(models.store))
    models = with_numbers(models, PARAMETERS.table(f"v{pooled.major}"))
    if not pooled.is_optimised:
        return replace(models, ec=release.classic_ec)
    return replace(models, ec=release.ec, extent_cache=release.extent_cache())


def with_numbers(models: Models, table: Mapping[str, Mapping[str, Any]]) -> Models:
    """Return the models with the numbers of a table, named ``MODEL.NUMBER``."""
    for name, row in table.items():
        prefix, _, number = name.partition(".")
        model = getattr(models, prefix)
        interval = row.get("confidence_interval")
        origin = Provenance(
            row["provenance"], row["source"], tuple(interval) if interval else None
        )
        changed = model.with_numbers({number: row["value"]}, origin)
        models = replace(models, **{prefix: changed})
    return models


def pool_of(
    pooled: Pooled,
    coded: Coded,
    *,
    models: Models | None = None,
    down: int | None = None,
) -> Pool:
    """Place a row's pool on the cluster. Its images have no object map, so that writes carry hints."""
    scheme = parse_scheme(coded.name)
    return cluster.build_pool(
        coded.name,
        coded.stripe_unit_bytes,
        models=models or models_of(pooled, scheme),
        down=down,
        pool_id=pooled.pool_id,
        hinted_writes=True,
    )
