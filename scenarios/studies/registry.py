"""All studies, by name. A new one is imported here and added to the list; nothing else names it."""

from collections.abc import Mapping

from stripesim.scenarios.studies.base import Study
from stripesim.scenarios.studies.ceph16.study import STUDY as CEPH16
from stripesim.scenarios.studies.changes.study import STUDY as CHANGES
from stripesim.scenarios.studies.dachary2013.study import STUDY as DACHARY2013
from stripesim.scenarios.studies.durability.study import STUDY as DURABILITY
from stripesim.scenarios.studies.ecfault2024.study import STUDY as ECFAULT2024
from stripesim.scenarios.studies.erasurebench2016.study import STUDY as ERASUREBENCH2016
from stripesim.scenarios.studies.exstorus2019.study import STUDY as EXSTORUS2019
from stripesim.scenarios.studies.koh2017.study import STUDY as KOH2017
from stripesim.scenarios.studies.nvme.study import STUDY as NVME
from stripesim.scenarios.studies.recovery.study import STUDY as RECOVERY

_LISTED: tuple[Study, ...] = (
    KOH2017,
    CEPH16,
    EXSTORUS2019,
    DACHARY2013,
    ERASUREBENCH2016,
    ECFAULT2024,
    DURABILITY,
    RECOVERY,
    NVME,
    CHANGES,
)

STUDIES: Mapping[str, Study] = {study.name: study for study in _LISTED}


def study_named(name: str) -> Study:
    """Return a study; a ValueError lists those that there are."""
    if name not in STUDIES:
        raise ValueError(f"study: got {name!r}, wanted one of {', '.join(STUDIES)}")
    return STUDIES[name]
