"""Simulate measured rows of NVMe clusters and judge rates and latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stripesim.scenarios.studies.base import (
    Ablation,
    Option,
    Setting,
    Study,
    StudyResult,
)
from stripesim.scenarios.studies.tasks import Row, Task

if TYPE_CHECKING:
    import polars as pl

    from stripesim.calibration.ledger.verdicts import Claim, Ledger


class Nvme(Study):
    """Rates and latencies of today's clusters; any folder of the same form can be judged."""

    name = "nvme"
    summary = "rates and latencies of NVMe clusters, Ceph 16 to 20, classic and fast erasure coding"
    title = "NVMe clusters, measured and simulated"
    introduction = (
        "Published measurements of NVMe clusters beside simulated copies of them. A few rows of "
        "3-replication were fitted; all other rows, and all of erasure coding, are predictions."
    )
    jobs = None
    options = (
        Option(
            name="data",
            flag="--data",
            kind=Path,
            help="Folder with times.csv and clusters.toml in the form of those that ship; left out: those.",
        ),
    )
    ablations: ClassVar[Mapping[str, Ablation]] = {
        "no-work-after-reply": Ablation(
            "nothing is left to do after an answer", ("cpu.after_reply_ns=0",)
        ),
        "no-client-cpu": Ablation(
            "load generators cost no processor time", ("client.processor_ns=0",)
        ),
        "lock-without-thread": Ablation(
            "a client's operation takes its PG before it queues for a thread",
            ("threads.lock_waits_per_thread_count=0",),
        ),
        "whole-cores": Ablation(
            "the threads of a core do not slow each other down",
            ("cpu.paired_slowdown_fraction=0",),
        ),
        "free-messages": Ablation(
            "messages cost no processor time",
            ("cpu.message_base_ns=0", "cpu.message_ns_per_byte=0"),
        ),
    }

    def claims(self) -> tuple[Claim, ...]:
        """Read the measurements that ship; each number of each row is a claim."""
        from stripesim.scenarios.studies.nvme.claims import claims_of
        from stripesim.scenarios.studies.nvme.measured import load

        return claims_of(load()[0])

    def parameters(self) -> list[Row]:
        """List the numbers of the models, on the processor and drive that were fitted."""
        from stripesim.scenarios.run.execute import parameters_of
        from stripesim.scenarios.studies.nvme import measured, runs
        from stripesim.scenarios.studies.nvme.hardware import hardware_of
        from stripesim.scenarios.studies.parameters import ParameterFile

        rows, clusters = measured.load()
        hardware = hardware_of(rows[0], clusters, "clusters.toml")
        listed = parameters_of(
            runs.models_of(runs.scenario_of(rows[0], hardware), rows[0], hardware)
        )
        return [*listed, *ParameterFile(self.name).listed()]

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each run.

        Raises
        ------
        NvmeDataError
            If the folder cannot be used; one line for each problem.
        """
        from stripesim.scenarios.studies.nvme.measured import load
        from stripesim.scenarios.studies.nvme.runs import tasks_for

        data = setting.options.get("data")
        rows, clusters = load(data)
        file = "clusters.toml" if data is None else str(Path(data) / "clusters.toml")
        return tasks_for(rows, clusters, setting.engine, file)

    def ledger(self, setting: Setting, rows: pl.DataFrame) -> Ledger:
        """Judge result rows against measured ones."""
        from stripesim.scenarios.studies.nvme.claims import ledger_for
        from stripesim.scenarios.studies.nvme.measured import load

        measured = load(setting.options.get("data"))[0]
        return ledger_for(measured, rows.iter_rows(named=True), self.parameters())

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the parameter set, the folder of measurements, and how many of its rows are simulated."""
        from stripesim.scenarios.studies.nvme.measured import load
        from stripesim.scenarios.studies.nvme.runs import PARAMETERS

        data = setting.options.get("data")
        counted = sum(row.role != "not-derivable" for row in load(data)[0])
        return {
            "parameters": PARAMETERS,
            "data": "shipped" if data is None else str(data),
            "rows": counted,
        }

    def figure_tables(self, result: StudyResult) -> dict[str, pl.DataFrame]:
        """Return the measured rows."""
        from stripesim.scenarios.studies.nvme.measured import load, measured_table

        data = result.provenance["data"]
        folder = None if data == "shipped" else Path(data)
        return {"measured": measured_table(load(folder)[0])}


STUDY = Nvme()
