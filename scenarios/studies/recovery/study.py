"""Set published recoveries beside simulated ones: schedulers, hung OSDs, what codes save."""

from collections.abc import Sequence
from importlib.resources import files

from stripesim.scenarios.studies.base import Setting, Study
from stripesim.scenarios.studies.tasks import Call, Task


class Recovery(Study):
    """Recovery beside clients; one factor of the host is fitted to the row without recovery."""

    name = "recovery"
    summary = "recovery beside clients under WPQ and mClock, hung OSDs, repair of codes"
    title = "Recovery as clients feel it, published and simulated"
    introduction = (
        "Published rates of clients and of recovery under Ceph's two schedulers, how long a write waits "
        "for a hung OSD, and what codes save in a repair, beside what the simulated cluster does. Roles and "
        "tolerances were fixed before the first run; one factor of the host is fitted."
    )
    scenario = str(files("stripesim.scenarios.studies.recovery") / "base.toml")
    fixed_keys = (
        "schemes",
        "faults.events",
        "cluster.op_queue",
        "cluster.mclock_profile",
    )

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each configuration."""
        from stripesim.scenarios.studies.recovery import runs

        engine = setting.engine
        return [
            *(
                Call(
                    f"{source}: {name}",
                    runs.scheduler_row,
                    (source, name, *rest, engine),
                )
                for source, name, *rest in runs.schedulers()
            ),
            *(Call(name, runs.hung_row, (name, engine)) for name in runs.HUNG),
            *(
                Call(f"repair of {paper}", runs.pair_row, (paper, engine))
                for paper in runs.PAIRS
            ),
        ]


STUDY = Recovery()
