"""Run the simulations that the claims of Koh et al. 2017 need, and judge them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from stripesim.calibration.ledger.verdicts import Entry
from stripesim.scenarios.answers.run.execute import parameters_of, provenance_of
from stripesim.scenarios.show.quantities import rows_frame
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.studies.base import Setting, Study, StudyResult
from stripesim.scenarios.studies.koh2017.cells import CellNumbers
from stripesim.scenarios.studies.koh2017.claims import vocabulary
from stripesim.scenarios.studies.koh2017.runs import (
    Simulation,
    base_models,
    chosen_figures,
    tasks_for,
)
from stripesim.scenarios.studies.tasks import Row, Task


class Koh2017(Study):
    """Erasure coding on SSD arrays under Ceph. Ablations run their own cells."""

    name = "koh2017"
    prints_tables = True

    def parameters(self) -> list[Row]:
        """List the numbers of the cluster's models, the run's length and the heartbeats."""
        return [*parameters_of(base_models()[1]), *super().parameters()]

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List the simulations of the requested figures. Other claims are not computed."""
        return tasks_for(
            figures=setting.options.get("figures"),
            ablations=setting.ablate,
            engine=setting.engine,
        )

    def result(
        self, setting: Setting, tasks: Sequence[Task], rows: Sequence[list[Row]]
    ) -> StudyResult:
        """Judge the claims."""
        by_kind: dict[str, list[Row]] = {}
        for task, part in zip(tasks, rows, strict=True):
            assert isinstance(task, Simulation)
            by_kind.setdefault(task.kind, []).extend(part)
        cells = rows_frame(by_kind.get("cell", []))
        if "image" not in cells.columns:
            cells = cells.with_columns(image=pl.lit(None, dtype=pl.String))
        series = pl.DataFrame(by_kind.get("series", []), infer_schema_length=None)
        ablations = pl.DataFrame()
        if "ablation" in by_kind:
            ablations = rows_frame(by_kind["ablation"])
        heartbeat_bytes_per_s = None
        for row in by_kind.get("heartbeat", []):
            heartbeat_bytes_per_s = row["heartbeat_private_bytes_per_s"]
        names = vocabulary(
            CellNumbers(cells), series if series.width else None, heartbeat_bytes_per_s
        )
        return StudyResult(
            ledger=self.judged(names),
            frame=lambda: cells,
            # One row per second of each time series, and one per cell and ablation.
            frames={"series": series, "ablations": ablations},
            fields={"ablations": ablations.to_dicts()},
            provenance=provenance_of(*base_models(), setting.engine),
        )

    def figure_stems(self, result: StudyResult) -> Collection[str]:
        """Return the figures that were asked for, although their runs allow others too."""
        from stripesim.scenarios.studies.figure_description import figure_specs
        from stripesim.scenarios.studies.koh2017.figure_tables import paper_stem
        from stripesim.scenarios.studies.koh2017.paper import PAPER_FIGURES

        setting = result.setting
        asked = chosen_figures(setting.options.get("figures"), setting.ablate)
        not_asked = set(PAPER_FIGURES).difference(asked)
        return set(figure_specs(self.name)).difference(map(paper_stem, not_asked))

    def figure_tables(self, result: StudyResult) -> dict[str, pl.DataFrame]:
        """Return the tables behind the paper's figures, the time series and the ablations."""
        from stripesim.scenarios.studies.koh2017.figure_tables import tables_for

        frames = result.frames
        entries = result.ledger.entries
        return tables_for(result.rows, frames["series"], frames["ablations"], entries)

    def figure_claims(self, result: StudyResult) -> Mapping[str, Sequence[Entry]]:
        """Return the claims that each figure of the paper answers."""
        from stripesim.scenarios.studies.koh2017.figure_tables import claims_of_figures

        return claims_of_figures(result.ledger.entries)

    def tables(self, result: StudyResult) -> Sequence[Table]:
        """Return measurements of a real Ceph where this study is wrong, and the ablations."""
        from stripesim.scenarios.studies.koh2017.figure_tables import ablation_table
        from stripesim.scenarios.studies.koh2017.witness import witness_table

        tables = [witness_table(result.ledger)]
        ablations = result.frames["ablations"]
        if ablations.width:
            tables.append(ablation_table(ablations))
        return tables


STUDY = Koh2017()
