"""What the study runs: each experiment gives rows, and most are profiles recovered by both codes."""

from collections.abc import Callable, Iterator
from typing import Any

from stripesim.models.placement.pg_autoscale import pg_autoscale_model
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.run.execute import parameters_of, recovery_parameters
from stripesim.scenarios.studies.base import Setting
from stripesim.scenarios.studies.ecfault2024.amplification import amplification_rows
from stripesim.scenarios.studies.ecfault2024.parameters import cache_model, study_model
from stripesim.scenarios.studies.ecfault2024.profiles import CODES, profile, profiles
from stripesim.scenarios.studies.ecfault2024.recover import recover
from stripesim.scenarios.studies.parameters import changed_model, changed_models

Row = dict[str, Any]

VOLUMES = (1, 4, 16)
"""Times the data that were written; sixteen times fill about half of the raw capacity."""
SLEEPS_S = (1.0, 3.0, 10.0)
"""Pause between the starts of two objects on one OSD [s]."""


def profile_rows(setting: Setting) -> Iterator[Row]:
    """Recover every profile with each of its codes."""
    for one in profiles():
        for code in one.codes:
            yield {"experiment": "profiles", **recover(one, code, setting.engine)}


def pace_rows(setting: Setting) -> Iterator[Row]:
    """Recover more data, and more slowly: what the share of the checking period depends on."""
    base = profile("base")
    written = base.scenario(CODES[0]).workload.image_bytes
    points = [(factor, 0.0) for factor in VOLUMES] + [
        (1, sleep_s) for sleep_s in SLEEPS_S
    ]
    for factor, sleep_s in points:
        sets = (
            f"workload.image_bytes={factor * written}",
            f"faults.recovery_sleep_s={sleep_s}",
        )
        row = recover(base, CODES[0], setting.engine, sets=sets)
        yield {
            "experiment": "pace",
            "volume_factor": factor,
            "recovery_sleep_s": sleep_s,
            **row,
        }


def domain_rows(setting: Setting) -> Iterator[Row]:
    """Let several OSDs fail where shards of one object may share a host."""
    for one in (one for one in profiles() if one.dimension == "failures"):
        for code in one.codes:
            row = recover(
                one,
                code,
                setting.engine,
                sets=('cluster.failure_domain_erasure="osd"',),
            )
            yield {"experiment": "failures, domain osd", **row}


EXPERIMENTS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "storage": lambda _: amplification_rows(),
    "profiles": profile_rows,
    "domain": domain_rows,
    "pace": pace_rows,
}
NEEDED = ("storage", "profiles")
"""What the ledger is computed from."""


def parameters() -> list[dict[str, Any]]:
    """List every number of the study: models, device, store, cache, autoscaler, clocks."""
    scenario = profile("base").scenario(
        CODES[0], "faults.events=[{osds=[0], at_s=0.0}]"
    )
    models = changed_models(build_models(scenario))
    listed = [*study_model().parameters("study."), *parameters_of(models)]
    listed += recovery_parameters(scenario, models)
    for name in ("cache-kv", "cache-data", "cache-autotune"):
        scheme = profile(name).cache
        assert scheme is not None
        rows = list(cache_model(scheme.model_dump()).parameters(f"{name}."))
        # What the schemes share is listed once.
        listed += [
            row
            for row in rows
            if name == "cache-kv" or row["name"].endswith("_fraction")
        ]
    return [
        *listed,
        *changed_model(pg_autoscale_model(), "pg_autoscale").parameters(
            "pg_autoscale."
        ),
    ]
