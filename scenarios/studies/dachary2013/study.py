"""Set the claims of Dachary 2013 and 2014 beside measured kernels, and judge them."""

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
from stripesim.scenarios.studies.tasks import Call, Row, Task

if TYPE_CHECKING:
    import polars as pl

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

    def frame(self, rows: Sequence[list[Row]]) -> pl.DataFrame:
        """Put the measured cases in one table."""
        from stripesim.scenarios.studies.dachary2013.runs import frame_of_cases

        return frame_of_cases(rows)

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return what measured the kernels, and where the rows of Ceph's plugins are from."""
        from stripesim.scenarios.studies.dachary2013.runs import provenance

        return provenance(
            bool(setting.options.get("measure")), setting.options.get("against")
        )

    def figures(self, result: StudyResult) -> Mapping[str, CaptionedFigure]:
        """Add the figure of copies, which `stripesim kernel` draws too."""
        from stripesim.scenarios.figures.kernels import draw_copies
        from stripesim.scenarios.studies.dachary2013.runs import buffers

        measured = result.rows["source"] == "measured"
        copies = draw_copies(
            result.rows.filter(measured),
            result.rows.filter(~measured),
            scheme="rs:6,2",
            sizes_bytes=[24 << 10, 1 << 20],
            buffers=buffers(),
        )
        return {**super().figures(result), "kernel-and-copies": copies}


STUDY = Dachary2013()
