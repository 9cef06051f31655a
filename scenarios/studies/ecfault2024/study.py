"""Run the recoveries that the claims of Han et al. 2024 need, and further ones, and judge the claims."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from stripesim.models.placement.pg_autoscale import pg_autoscale_model
from stripesim.scenarios.answers.run.execute import parameters_of, recovery_parameters
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.studies.base import Setting, Study, StudyResult
from stripesim.scenarios.studies.claim_rules import public_methods
from stripesim.scenarios.studies.ecfault2024.amplification import amplification_rows
from stripesim.scenarios.studies.ecfault2024.parameters import cache_model, study_model
from stripesim.scenarios.studies.ecfault2024.profiles import CODES, profile, profiles
from stripesim.scenarios.studies.ecfault2024.recover import recover
from stripesim.scenarios.studies.ecfault2024.recovery_numbers import EcfaultNumbers
from stripesim.scenarios.studies.ecfault2024.tables import tables
from stripesim.scenarios.studies.parameters import changed_model, changed_models
from stripesim.scenarios.studies.tasks import Row, Task

VOLUMES = (1, 4, 16)
"""Multiples of the source's data; 16 fills about half of the raw capacity."""
SLEEPS_S = (1.0, 3.0, 10.0)
"""Pause between the starts of two recoveries on one OSD [s]."""


def storage_rows(_setting: Setting) -> Iterator[Row]:
    """Compute the bytes stored per byte written."""
    return amplification_rows()


def profile_rows(setting: Setting) -> Iterator[Row]:
    """Recover every profile with each of its codes."""
    for each in profiles():
        for code in each.codes:
            yield {"experiment": "profiles", **recover(each, code, setting.engine)}


def pace_rows(setting: Setting) -> Iterator[Row]:
    """Recover more data, and more slowly: both change the share of the checking period."""
    base = profile("base")
    written = base.scenario(CODES[0]).workload.image_bytes
    points = [(factor, 0.0) for factor in VOLUMES]
    points += [(1, sleep_s) for sleep_s in SLEEPS_S]
    for factor, sleep_s in points:
        sets = {
            "workload.image_bytes": factor * written,
            "faults.recovery_sleep_s": sleep_s,
        }
        row = recover(base, CODES[0], setting.engine, sets=sets)
        yield {
            "experiment": "pace",
            "volume_factor": factor,
            "recovery_sleep_s": sleep_s,
            **row,
        }


def domain_rows(setting: Setting) -> Iterator[Row]:
    """Recover from several failures where shards of one object may share a host."""
    sets = {"cluster.failure_domain_erasure": "osd"}
    for each in profiles():
        if each.dimension == "failures":
            for code in each.codes:
                row = recover(each, code, setting.engine, sets=sets)
                yield {"experiment": "failures, domain osd", **row}


class Ecfault2024(Study):
    """Recovery under configurations of an erasure-coded pool, without a fit to the source."""

    name = "ecfault2024"
    experiments = {  # noqa: RUF012
        "storage": storage_rows,
        "profiles": profile_rows,
        "domain": domain_rows,
        "pace": pace_rows,
    }
    needed = ("storage", "profiles")

    def parameters(self) -> list[Row]:
        """List the numbers of models, device, store, cache, autoscaler and clocks."""
        failure = {"faults.events": [{"osds": [0], "at_s": 0.0}]}
        scenario = profile("base").scenario(CODES[0], failure)
        models = changed_models(build_models(scenario))
        listed = [*study_model().parameters("study."), *parameters_of(models)]
        listed += recovery_parameters(scenario, models)
        for name in ("cache-kv", "cache-data", "cache-autotune"):
            scheme = profile(name).cache
            assert scheme is not None
            # List shared numbers once.
            listed += [
                row
                for row in cache_model(scheme.model_dump()).parameters(f"{name}.")
                if name == "cache-kv" or row["name"].endswith("_fraction")
            ]
        autoscale = changed_model(pg_autoscale_model(), "pg_autoscale")
        return [*listed, *autoscale.parameters("pg_autoscale.")]

    def vocabulary(self, rows: pl.DataFrame) -> Mapping[str, Any]:
        """Return the names that expressions know."""
        return public_methods(EcfaultNumbers(rows))

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the experiments, the seed and the base configuration."""
        base = profile("base").scenario(CODES[0])
        return {
            "experiments": [task.words for task in tasks],
            "seed": base.seed,
            "parameters": "scenarios/studies/ecfault2024/parameters.toml",
            "base": base.model_dump(mode="json"),
            "profiles": "scenarios/studies/ecfault2024/profiles.toml",
        }

    def tables(self, result: StudyResult) -> Sequence[Table]:
        """Return the parts of the stored bytes, the effect of padding, and every profile."""
        return tables(result.rows)


STUDY = Ecfault2024()
