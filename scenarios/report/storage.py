"""What a run's report says of capacity and repair, and what those numbers rest on."""

from __future__ import annotations

from typing import Any

from stripesim.scenarios.figures.captions import scheme_label
from stripesim.scenarios.planning.rebuild import Rebuild
from stripesim.scenarios.report.data import RunReport
from stripesim.scenarios.report.page.render import Cell, Table
from stripesim.scenarios.report.words import bytes_text, duration_text, request_words
from stripesim.scenarios.run.columns import number_text

Row = list[str | Cell]


def storage_tables(report: RunReport) -> list[Table]:
    """Show usable capacity and the repairs that were simulated."""
    return [_capacity_table(report), _waterfall_table(report), _repair_table(report)]


def storage_notes(report: RunReport) -> list[str]:
    """Say what the tables rest on."""
    drives, fill, notes = report.drives, report.drives.fill, []
    if drives.capacity is None:
        notes.append(
            f"The parameter set {report.scenario.cluster.ssd} does not give the capacity of a drive, so "
            "there is no capacity in bytes, no repair time of a whole OSD and no drive writes per day: set "
            "cluster.drive_bytes in the scenario."
        )
    elif fill is not None:
        notes.append(
            f"Drives of {bytes_text(drives.capacity.drive_bytes)}, {drives.per_osd} to an OSD. Usable, "
            f"evenly full: client data with every OSD at {fill.full_ratio:.0%}, where Ceph refuses writes "
            "(the full ratio). As placed: when the OSD that CRUSH gives most to gets there, without a "
            "balancer. Metadata, the log and other pools are not counted; a healthy cluster stays below, so "
            "that repair has room."
        )
    if drives.endurance is None:
        notes.append("No rated endurance is known for these drives, so wear is not set against a rating.")
    filled = "" if fill is None else f" at {fill.nearfull_ratio:.0%}, where Ceph warns (the nearfull ratio),"
    notes.append(
        "Repair: the simulator loses one OSD of this cluster and rebuilds a sample of its objects. The last "
        f"column is an extrapolation: what an OSD holds{filled} over the rate of the sample. In brackets the "
        "rate of a sample half as large, to show how little it depends on the sample. Time counts from the "
        "first object; before that the failure must be noticed and the OSD counted as out, which Ceph by "
        "default puts off."
    )
    return notes


def _capacity_table(report: RunReport) -> Table:
    rows: list[Row] = []
    for scheme in report.schemes:
        held = report.capacities[scheme]
        rows.append(
            [
                scheme_label(scheme),
                number_text(held.stored_per_client_byte),
                f"{1 / held.stored_per_client_byte:.0%}",
                bytes_text(held.raw_bytes),
                bytes_text(held.usable_bytes),
                bytes_text(held.usable_as_placed_bytes),
            ]
        )
    columns = ["scheme", "stored per client byte", "of raw", "raw", "usable, evenly full"]
    return Table("Usable capacity", [*columns, "usable, as placed"], rows, form="stack")


def _waterfall_table(report: RunReport) -> Table:
    """Show the steps from raw to usable capacity, for each scheme."""
    held = [report.capacities[scheme] for scheme in report.schemes]
    rows: list[Row] = []
    for steps in zip(*(one.steps for one in held), strict=False):
        rows.append([steps[0].name, *(Cell(bytes_text(step.left_bytes), step.why) for step in steps)])
    columns = ["what is left after", *(scheme_label(scheme) for scheme in report.schemes)]
    return Table("From raw to usable, with room to heal", columns, rows, form="stack")


def _repair_table(report: RunReport) -> Table:
    rows: list[Row] = []
    for scheme in report.schemes:
        rows.append(
            [Cell(scheme_label(scheme), "idle cluster"), *_repair_cells(report, report.rebuilds[scheme])]
        )
        for row, rebuild in report.measured_rebuilds(scheme):
            under = Cell(scheme_label(scheme), f"as the scenario says, under {_load(row)}")
            rows.append([under, *_repair_cells(report, rebuild)])
    whole = report.rebuild_bytes
    end = "a whole OSD" if whole is None else f"an OSD that holds {bytes_text(whole)}"
    columns = ["scheme", "sample", "simulated time", "rate [MB/s]", "network [B per lost B]", end]
    return Table("Repair of one OSD", columns, rows, form="stack")


def _load(row: dict[str, Any]) -> str:
    size = row["block_size_bytes"]
    words = request_words(row["op"], row["pattern"], [] if size is None else [size])
    return words[0].lower() + words[1:]


def _range(rebuild: Rebuild, held: float) -> str:
    """Write the interval of an extrapolation and what limits the rebuild."""
    ends = rebuild.seconds_interval(held)
    words = "" if ends is None else f"{duration_text(ends[0])} to {duration_text(ends[1])}; "
    return words + f"limited by {rebuild.limited_by or 'throttles: no resource is near its limit'}"


def _repair_cells(report: RunReport, rebuild: Rebuild) -> list[str | Cell]:
    if rebuild.reason is not None:
        return [Cell("–", rebuild.reason.partition(";")[0]), "–", "–", "–", "–"]
    sample = Cell(bytes_text(rebuild.lost_bytes), f"{rebuild.objects:,} objects")
    if rebuild.seconds is None:
        return [sample, "not finished", "–", "–", "–"]
    half = "" if rebuild.half_bytes_per_s is None else f" ({number_text(rebuild.half_bytes_per_s, 1e-6)})"
    held = report.rebuild_bytes
    return [
        sample,
        duration_text(rebuild.seconds),
        f"{number_text(rebuild.bytes_per_s, 1e-6)}{half}",
        number_text(rebuild.network_bytes_per_lost_byte),
        "–"
        if held is None
        else Cell(f"about {duration_text(rebuild.seconds_for(held))}", _range(rebuild, held)),
    ]
