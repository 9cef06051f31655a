"""Hold chains, combinatorics and splitting against published durability."""

from collections.abc import Sequence

from stripesim.scenarios.studies.base import Setting, Study
from stripesim.scenarios.studies.tasks import Call, Row, Task


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
            SERIES,
            anchors,
            series_rows,
            split_id,
        )

        points: dict[str, list[str]] = {}
        for claim in self.claims():
            found = split_id(claim.id)
            if found is not None:
                points.setdefault(found[0], []).append(found[1])
        curves = [
            Call(
                name, series_rows, (name, tuple(points[name])), weight=len(points[name])
            )
            for name in SERIES
            if name in points
        ]
        return [Call("formulas", anchors), *curves]


STUDY = Durability()
