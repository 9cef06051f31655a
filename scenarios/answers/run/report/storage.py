"""Build the tables of usable capacity and of rebuilds."""

from stripesim.scenarios.answers.run.report.contents import Row, RunReport
from stripesim.scenarios.forms.rebuild import Rebuild
from stripesim.scenarios.schema.units import bytes_text, duration_text, number_text
from stripesim.scenarios.show.figures.captions import in_sentence, scheme_label
from stripesim.scenarios.show.tables import Table, TableCell
from stripesim.scenarios.show.words import row_words


def storage_tables(report: RunReport) -> list[Table]:
    """Return the tables of usable capacity and simulated rebuilds."""
    return [_capacity_table(report), _waterfall_table(report), _rebuild_table(report)]


def storage_notes(report: RunReport) -> list[str]:
    """Explain the assumptions of these tables."""
    drives = report.drives
    fill = report.drives.fill
    notes = []
    if drives.capacity is None:
        notes.append(
            f"The parameter set {report.scenario.cluster.drive} has no drive capacity. Set "
            "cluster.drive_bytes in the scenario to see capacity in bytes, rebuild times of an OSD and drive "
            "writes per day."
        )
    elif fill is not None:
        notes.append(
            f"Drives of {bytes_text(drives.capacity.drive_bytes)}, {drives.per_osd} per OSD. Usable, "
            f"full: client data when the fullest OSD reaches {100 * fill.full_ratio:.0f} %, where Ceph "
            f"refuses writes (the full ratio). Usable, safe: when it reaches {100 * fill.nearfull_ratio:.0f} "
            "% (nearfull) after the loss of the largest failure domain. Metadata, the log and other pools "
            "are not included."
        )
    if drives.endurance is None:
        notes.append(
            "The rated endurance of these drives is unknown, so wear is not compared with a rating."
        )
    filled = ""
    if fill is not None:
        filled = f" at {100 * fill.nearfull_ratio:.0f} %, where Ceph warns (the nearfull ratio)"
    notes.append(
        "Rebuild: the simulator loses one OSD of this cluster and rebuilds a sample of its objects. The last "
        f"column extrapolates the rate to the data of an OSD{filled}. Brackets give the rate of a sample "
        "half "
        "as large, which shows how much it depends on the size of the sample. Time starts with the first "
        "object. Before that, Ceph must detect the failure and mark the OSD out, by default after a delay."
    )
    return notes


def _capacity_table(report: RunReport) -> Table:
    rows = [
        {
            "scheme": scheme_label(scheme),
            "stored per client byte": number_text(held.stored_per_client_byte),
            "of raw": f"{100 / held.stored_per_client_byte:.0f} %",
            "raw": bytes_text(held.raw_bytes),
            "fullest OSD": f"{held.imbalance:.3f} × the mean",
            "usable, full": bytes_text(held.usable_bytes_full),
            "usable, safe": bytes_text(held.usable_bytes_safe),
        }
        for scheme, held in report.capacities.items()
    ]
    return Table.of("Usable capacity", rows, form="stack")


def _waterfall_table(report: RunReport) -> Table:
    """Return the steps from raw to usable capacity, for each scheme."""
    held = [report.capacities[scheme].steps for scheme in report.schemes]
    rows: list[Row] = [
        [
            steps[0].name,
            *(TableCell(bytes_text(step.left_bytes), step.why) for step in steps),
        ]
        for steps in zip(*held, strict=False)
    ]
    columns = report.columns("left after")
    return Table("From raw to usable, with room to heal", columns, rows, form="stack")


def _rebuild_table(report: RunReport) -> Table:
    rows: list[Row] = []
    for scheme in report.schemes:
        rebuilds = [("idle cluster", report.rebuilds[scheme])]
        for row, rebuild in report.measured_rebuilds(scheme):
            load = row_words(row)
            rebuilds.append((f"in the scenario, under {in_sentence(load)}", rebuild))
        for under, rebuild in rebuilds:
            rows.append(
                [
                    TableCell(scheme_label(scheme), under),
                    *_rebuild_cells(report, rebuild),
                ]
            )
    osd_bytes = report.rebuild_bytes
    end = "a whole OSD"
    if osd_bytes is not None:
        end = f"an OSD that holds {bytes_text(osd_bytes)}"
    columns = [
        "scheme",
        "sample",
        "simulated time",
        "rate [MB/s]",
        "network [B per lost B]",
        end,
    ]
    return Table("Rebuild of one OSD", columns, rows, form="stack")


def _rebuild_cells(report: RunReport, rebuild: Rebuild) -> list[str | TableCell]:
    if rebuild.reason is not None:
        return [TableCell("–", rebuild.reason.partition(";")[0]), "–", "–", "–", "–"]
    sample = TableCell(bytes_text(rebuild.lost_bytes), f"{rebuild.objects:,} objects")
    if rebuild.seconds is None:
        return [sample, "not finished", "–", "–", "–"]
    rate = number_text(rebuild.bytes_per_s, 1e-6)
    if rebuild.half_bytes_per_s is not None:
        rate += f" ({number_text(rebuild.half_bytes_per_s, 1e-6)})"
    held = report.rebuild_bytes
    osd_cell = TableCell("–")
    if held is not None:
        ends = rebuild.seconds_interval(held)
        note = f"limited by {rebuild.limited_by or 'throttles: no resource is near its limit'}"
        if ends is not None:
            note = f"{duration_text(ends[0])} to {duration_text(ends[1])}; {note}"
        osd_cell = TableCell(f"about {duration_text(rebuild.seconds_for(held))}", note)
    network = number_text(rebuild.network_bytes_per_lost_byte)
    return [sample, duration_text(rebuild.seconds), rate, network, osd_cell]
