"""Configurations of the pool, read from ``profiles.toml``, and the scenarios that they make."""

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from stripesim.models.coding import RedundancyScheme, padded_amplification, parse_scheme
from stripesim.models.placement.pg_autoscale import pg_autoscale_model
from stripesim.models.problems import MeasuredError, Problem, problems_at
from stripesim.scenarios.schema.scenario import Scenario, load_scenario
from stripesim.scenarios.schema.types import ScenarioTable
from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.ecfault2024.parameters import StudyModel, study_model
from stripesim.scenarios.studies.parameters import changed_model, scenario_changes

STUDY = "ecfault2024"
FILE = "profiles.toml"
CODES = ("rs:9,3", "clay:9,3,11")
"""RS(12,9) and Clay(12,9,11) of the source, which puts n first."""

Fraction = Annotated[float, Field(ge=0, le=1)]


class CacheScheme(ScenarioTable):
    """Shares of an OSD's cache."""

    kv_fraction: Fraction
    meta_fraction: Fraction
    data_fraction: Fraction
    autotune: bool = False


class Failures(ScenarioTable):
    """Simultaneous failures of OSDs on one host or on different hosts."""

    count: Annotated[int, Field(ge=1, le=3)] = 1
    hosts: Literal["same", "different"] = "same"


class Profile(ScenarioTable):
    """One configuration of the erasure-coded pool.

    `dimension` is the row of the source's table that it varies, and `label` its value. `set` changes keys of
    the scenario; the other fields have no such key.
    """

    name: str
    dimension: str
    label: str
    codes: Annotated[tuple[str, ...], BeforeValidator(tuple)] = CODES
    set: dict[str, Any] = Field(default_factory=dict)
    cache: CacheScheme | None = None
    backend: Literal["bluestore", "filestore"] = "bluestore"
    failures: Failures = Failures()
    pg_autoscale: Literal["used", "bulk"] | None = None

    def scenario(self, code: str, sets: Mapping[str, Any] | None = None) -> Scenario:
        """Return the scenario of one code under this profile, with further keys changed."""
        own = {**self.set, "schemes": [code]}
        sets = sets or {}
        scenario = _load({**own, **sets})
        if self.pg_autoscale is None:
            return scenario
        pg_num = profile_pg_num(
            scenario,
            parse_scheme(code),
            study_model(),
            bulk=self.pg_autoscale == "bulk",
        )
        return _load({**own, "cluster.pg_num": pg_num, **sets})


@cache
def profiles() -> tuple[Profile, ...]:
    """Return all profiles that ship, in the order of the file."""
    return parse_profiles((study_folder(STUDY) / FILE).read_text("utf-8"))


def profile(name: str) -> Profile:
    """Return a profile by name."""
    return {profile.name: profile for profile in profiles()}[name]


def parse_profiles(text: str, where: str = FILE) -> tuple[Profile, ...]:
    """Read profiles from TOML.

    Raises
    ------
    MeasuredError
        If the text is not TOML, a key is missing, unknown or of the wrong type, or a name repeats.
    """
    try:
        rows = tomllib.loads(text).get("profile", [])
    except tomllib.TOMLDecodeError as error:
        raise MeasuredError(*problems_at(where, error)) from None
    values: dict[str, Profile] = {}
    for number, row in enumerate(rows, start=1):
        name = f"{where}: profile {number}"
        try:
            parsed = Profile.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise MeasuredError(
                f"{name}: {key}: got {first['input']!r}, {first['msg']}"
            ) from None
        if parsed.name in values:
            raise MeasuredError(
                Problem(
                    place=name,
                    key="name",
                    got=f"{parsed.name!r} a second time",
                    wanted="each once",
                )
            )
        values[parsed.name] = parsed
    return tuple(values.values())


def profile_pg_num(
    scenario: Scenario,
    scheme: RedundancyScheme,
    study: StudyModel,
    *,
    bulk: bool = False,
) -> int:
    """Return the placement groups that the autoscaler gives the pool, starting from the scenario's number."""
    model = changed_model(pg_autoscale_model(), "pg_autoscale")
    cluster = scenario.cluster
    geometry = scheme.geometry(cluster.stripe_unit_bytes)
    stored = (
        padded_amplification(scheme, geometry, cluster.object_bytes)
        * scenario.workload.image_bytes
    )
    used = 1.0 if bulk else min(1.0, float(stored) / study.raw_capacity_bytes)
    osds = cluster.osd_count
    return model.scaled(
        cluster.pg_num,
        model.wanted(raw_used_fraction=used, osds=osds, width=scheme.width),
    )


def _load(sets: Mapping[str, Any]) -> Scenario:
    changes = scenario_changes()
    if "faults.events" not in sets:
        # Without a failure the scenario has no table of faults to change.
        changes = {k: v for k, v in changes.items() if not k.startswith("faults.")}
    base = str(study_folder(STUDY) / "base.toml")
    return load_scenario(base, sets={**changes, **sets})
