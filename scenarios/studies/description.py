"""The texts, options and ablations of a study, from its ``study.toml``.

Nothing heavy is imported here, because the command line reads the descriptions of all studies.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

#: Kinds of options, with the types of their values.
KINDS: Final[Mapping[str, type]] = {
    "text": str,
    "path": Path,
    "switch": bool,
    "whole number": int,
}


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option that only one study has."""

    name: str  #: Keyword argument of `Study.run`
    flag: str  #: The same on the command line
    help: str
    kind: str = "text"  #: A key of `KINDS`
    several: bool = False  #: If true, it may be repeated and its value is a sequence
    selects: bool = (
        False  #: If true, it leaves out runs, so that other claims are not computed
    )


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """A mechanism that is switched off, or a rule that is changed."""

    says: str  #: The change, in words
    sets: Mapping[str, Any] = field(default_factory=dict)  #: As `Study.run` takes them
    #: Changes in cells that only the ablation runs, in the study's own terms
    cells: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StudyDescription:
    """Title, options and ablations of a study."""

    summary: str  #: One line for ``stripesim study --help``
    title: str  #: Of its report
    introduction: str
    options: Sequence[Option] = ()
    ablations: Mapping[str, Ablation] = field(default_factory=dict)
    scenario: str | None = None  #: Name or path of a scenario with changeable keys
    #: Keys without which the scenario cannot be checked, with values
    scenario_sets: Mapping[str, Any] = field(default_factory=dict)
    fixed_keys: Sequence[str] = ()  #: Beginnings of keys that the study's runs set
    all_processors: bool = False  #: Use all of them by default, otherwise one


def study_folder(study: str) -> Traversable:
    """Return the folder of a study."""
    return files(__package__) / study


@cache
def shipped_toml(study: str, name: str) -> dict[str, Any]:
    """Return a TOML file of a study's folder."""
    return tomllib.loads((study_folder(study) / name).read_text(encoding="utf-8"))


@cache
def study_description(study: str) -> StudyDescription:
    """Read ``study.toml`` of a study."""
    table = dict(shipped_toml(study, "study.toml"))
    table["options"] = [Option(**option) for option in table.get("options", ())]
    table["ablations"] = {
        name: Ablation(**ablation)
        for name, ablation in table.get("ablations", {}).items()
    }
    scenario = table.get("scenario", "")
    if scenario.endswith(".toml"):
        table["scenario"] = str(study_folder(study) / scenario)
    return StudyDescription(**table)
