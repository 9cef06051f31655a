"""Hold chains, combinatorics and splitting against published durability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stripesim.scenarios.studies.base import Setting, Study, StudyResult
from stripesim.scenarios.studies.tasks import Call, Row, Task

if TYPE_CHECKING:
    import polars as pl


class Durability(Study):
    """Nothing here is fitted: every row follows from its stated parameters."""

    name = "durability"
    summary = (
        "published chains, copysets, Backblaze's window and the curves of mlec-sim"
    )
    title = (
        "Durability: published chains, combinatorics and simulations, computed again"
    )
    introduction = (
        "Mean times to loss, probabilities of losing data in a burst, and nines of clustered and declustered "
        "pools, as published and as computed here by exact chains, combinatorics and multilevel splitting. "
        "No parameter is fitted; every published row is predicted from its stated parameters."
    )

    def parameters(self) -> list[Row]:
        """List the conventions that every row rests on."""
        from stripesim.sim.durability.system import YEAR_S

        source = "mlec-sim, src/failure_generator.py"
        return [
            {
                "name": "year_s",
                "value": YEAR_S,
                "unit": "s",
                "provenance": f"published: {source}",
            },
            {
                "name": "detection_s",
                "value": 0.0,
                "unit": "s",
                "provenance": "published: mlec-sim's default",
            },
        ]

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """One task for the formulas, one for each curve."""
        from stripesim.scenarios.studies.durability.runs import (
            anchors,
            curves,
            series_rows,
        )

        points: dict[str, list[str]] = {}
        for _, curve, x in self._curve_points():
            points.setdefault(curve, []).append(x)
        tasks = [
            Call(
                name, series_rows, (name, tuple(points[name])), weight=len(points[name])
            )
            for name in curves()
            if name in points
        ]
        return [Call("formulas", anchors), *tasks]

    def _curve_points(self) -> list[tuple[str, str, str]]:
        """List the claims that are points of curves: id, curve, x."""
        from stripesim.scenarios.studies.durability.runs import split_id

        points = [(claim.id, split_id(claim.id)) for claim in self.claims()]
        return [(claim, *point) for claim, point in points if point is not None]

    def figure_tables(self, result: StudyResult) -> dict[str, pl.DataFrame]:
        """Return which claims are points of curves, and nines over pace and against capacity."""
        import polars as pl

        from stripesim.scenarios.studies.durability.runs import (
            nines_by_capacity,
            nines_by_pace,
        )

        points = pl.DataFrame(
            self._curve_points(), schema=["id", "curve", "x"], orient="row"
        )
        return {
            "curve_points": points.cast({"x": pl.Float64}),
            "paces": pl.DataFrame(nines_by_pace()),
            "capacities": pl.DataFrame(nines_by_capacity(120)),
        }


STUDY = Durability()
