"""Set the claims of Dachary 2013 and 2014 beside measured kernels, and judge them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from stripesim.scenarios.studies.base import Ablation, Option, Setting, Study, StudyResult, study_provenance
from stripesim.scenarios.studies.tasks import Call, Row, Task

if TYPE_CHECKING:
    from stripesim.scenarios.figures.results import CaptionedFigure


class Dachary2013(Study):
    """Measured, not simulated: a setting changes what the simulator charges around a kernel."""

    name = "dachary2013"
    summary = "Ceph's erasure-code kernels, timed in 2013 and 2014 and today"
    title = "Dachary 2013 and 2014: Ceph's erasure-code kernels, timed again"
    introduction = (
        "How long L. Dachary’s benchmarks of 2013 and 2014 took for encoding and decoding, case beside "
        "case, and how long the same cases take on a present processor."
    )
    options = (
        Option(
            name="measure",
            flag="--measure",
            kind=bool,
            help="Time this machine's kernels (three minutes) instead of taking the rows that ship.",
        ),
        Option(
            name="against",
            flag="--against-ceph",
            kind=Path,
            help="Ceph's own benchmark, or a recorded output of it, instead of the rows of Ceph that ship.",
        ),
    )
    ablations: ClassVar[Mapping[str, Ablation]] = {
        "no-buffers": Ablation(
            "no cost of buffers around an encode call",
            ("encode_buffers.shard_ns=0", "encode_buffers.output_ns_per_byte=0"),
        )
    }

    def parameters(self) -> list[Row]:
        """List the numbers that the simulator charges around a kernel."""
        from stripesim.scenarios.studies.dachary2013.runs import buffers

        return list(buffers().parameters("encode_buffers."))

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """Read or measure Ceph's plugins, and this machine's kernels."""
        from stripesim.scenarios.studies.dachary2013.runs import ceph_rows, kernel_rows

        return [
            Call("Ceph's plugins", ceph_rows, (setting.options.get("against"),)),
            Call("kernels", kernel_rows, (bool(setting.options.get("measure")),)),
        ]

    def result(self, setting: Setting, tasks: Sequence[Task], rows: Sequence[list[Row]]) -> StudyResult:
        """Judge the claims."""
        from stripesim.scenarios.studies.dachary2013.claims import ledger_for
        from stripesim.scenarios.studies.dachary2013.runs import (
            frame_of_cases,
            provenance_here,
            shipped_provenance,
        )

        frame = frame_of_cases(rows)
        against = setting.options.get("against")
        return StudyResult(
            ledger=ledger_for(frame, self.parameters()),
            rows=frame,
            provenance=study_provenance(
                self.name,
                setting.engine,
                kernels=provenance_here() if setting.options.get("measure") else shipped_provenance(),
                ceph=str(against) if against is not None else "ceph16/kernels.csv, Ceph 16.2.15",
            ),
        )

    def figures(self, result: StudyResult) -> Mapping[str, CaptionedFigure]:
        """Draw speed by size, kernel and copies, operations, and the published ratios."""
        from stripesim.scenarios.studies.dachary2013.figures import draw

        return draw(result.rows)


STUDY = Dachary2013()
