"""The answer of `stripesim durability`: nines of each scheme and method, and how data is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from stripesim.scenarios.schema.units import counted_text
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import frame_of, result_files
from stripesim.scenarios.show.quantities import rows_frame
from stripesim.scenarios.show.tables import Table
from stripesim.sim.observe.audit import failed_check

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

Row = Mapping[str, Any]


def answer_of_durability(document: Mapping[str, Any]) -> Answer:
    """Return the answer of an estimated durability.

    Parameters
    ----------
    document
        What `stripesim.scenarios.answers.durability.durability.estimate_durability` returns.
    """
    rows = document["rows"]
    flat_rows = [_flat(row) for row in rows]

    def figures() -> Mapping[str, CaptionedFigure]:
        from stripesim.scenarios.show.figures.faults import draw_nines

        return {"nines": draw_nines(rows)}

    return Answer(
        document=document,
        frame=partial(frame_of, flat_rows),
        shown=[
            Table.of("Durability", [_cells(row) for row in rows], words=(1,)),
            *(line for row in rows for line in _sentences(row)),
            *(f"note: {line}" for line in document["notes"]),
            *(f"left out: {line}" for line in document["skipped"]),
            *(
                f"recommended for {scheme}: {choice['method']}, because {choice['reason']}"
                for scheme, choice in document["recommended"].items()
            ),
        ],
        refusals=document["refusals"],
        saved_as="durability.json",
        files=lambda: result_files(rows_frame(flat_rows), document["provenance"], {}),
        figures=figures,
    )


def _flat(row: Row) -> dict[str, Any]:
    return {key: value for key, value in row.items() if not isinstance(value, list)}


def _cells(row: Row) -> dict[str, str]:
    return {
        "scheme": row["scheme"],
        "method": row["method"],
        "nines": _number(row["nines"], ".3f"),
        "95 % interval": _interval(row),
        "P(any loss)": _number(row["loss_probability"]),
        "MTTDL [h]": _number(row["mttdl_hours"]),
        "lost [B/year]": _number(row["bytes_lost_per_year"]),
        "unavailable": _number(row["unavailability"]),
        "walks": f"{row['trajectories']:,}",
        "time [s]": f"{row['wall_s']:.2f}",
    }


def _interval(row: Row) -> str:
    """Write the interval of the nines, or why there is none."""
    if row["refused"] is not None:
        return f"refused: {failed_check(row['refused'])}"
    if row["nines_low"] == row["nines_high"]:
        return "exact" if row["exact"] else "approximation"
    return f"{_number(row['nines_low'], '.3f')} … {_number(row['nines_high'], '.3f')}"


def _number(value: float | None, form: str = ".3g") -> str:
    return "–" if value is None else f"{value:{form}}"


def _sentences(row: Row) -> Iterator[str]:
    """Describe how data is lost, and list the assumptions."""
    where = f"{row['scheme']} {row['method']}"
    if row["nines"] is None and row["nines_low"] is not None:
        least = row["nines_low"]
        yield (
            f"{where}: no loss seen: less than {10**-least:.1e} within the horizon, {least:.1f} nines or more"
        )
    elif row["dominant_path"] is not None:
        yield f"{where}: {row['dominant_path']}"
    for burst in row["bursts"]:
        yield (
            f"{where}: burst {burst['name']} ({_struck(burst)}, {burst['per_year']:g} a year) "
            f"loses data with probability {burst['loss_probability']:.4g}"
        )
    yield f"{where}: assumes: {' '.join(row['assumptions'])}"


def _struck(burst: Row) -> str:
    return counted_text(burst["units"], burst["unit"])
