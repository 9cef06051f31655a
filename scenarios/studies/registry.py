"""The names of all studies. Add a new one here. No other file lists them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from stripesim.models.problems import AnswerError, Problem

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
    AnswerError
        If no study has this name.
    """
    if name not in STUDIES:
        wanted = f"one of {', '.join(STUDIES)}"
        raise AnswerError(Problem(key="study", got=repr(name), wanted=wanted))
    study: Study = import_module(f"{__package__}.{name}.study").STUDY
    return study
