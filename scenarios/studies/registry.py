"""The names of all studies. Add a new one here. No other file lists them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from stripesim.scenarios.studies.base import Study

STUDIES: Final = (
    "koh2017",
    "ceph16",
    "releases",
    "exstorus2019",
    "dachary2013",
    "erasurebench2016",
    "ecfault2024",
    "durability",
    "recovery",
    "nvme",
    "s3",
    "cores",
    "changes",
)


def study_named(name: str) -> Study:
    """Import a study and return it.

    Raises
    ------
    ValueError
        If no study has this name.
    """
    if name not in STUDIES:
        raise ValueError(f"study: got {name!r}, wanted one of {', '.join(STUDIES)}")
    study: Study = import_module(f"{__package__}.{name}.study").STUDY
    return study
