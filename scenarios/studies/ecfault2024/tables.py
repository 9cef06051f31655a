"""Tables of the report: parts of the stored bytes, effect of padding, every profile."""

import polars as pl

from stripesim.models.coding import padded_amplification, parse_scheme
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.studies.ecfault2024.parameters import study_model
from stripesim.scenarios.studies.ecfault2024.profiles import CODES

PERCENT = 100.0


def tables(rows: pl.DataFrame) -> list[Table]:
    """Return all tables."""
    return [mechanism_table(rows), implied_table(), profile_table(rows)]


def mechanism_table(rows: pl.DataFrame) -> Table:
    """Return bytes stored per byte written by mechanism, for the two codes of the source's table."""
    stored = rows.filter(pl.col("experiment") == "amplification").to_dicts()
    names = {
        "redundancy": "n / k",
        "padding": "division and padding",
        "allocation": "allocation units of 4 KiB",
        "checksums": "checksums",
        "attributes": "object info and other attributes",
        "log": "log files of the OSDs, in use",
        "total": "all",
        "total_fresh_log": "all, if every OSD had just been started",
    }
    columns = (
        "bytes stored per byte written",
        *(scheme_label(row["scheme"]) for row in stored),
    )
    lines = [
        (words, *(f"{row[f'stored_{name}']:.4f}" for row in stored))
        for name, words in names.items()
    ]
    heading = "Parts of the stored bytes"
    return Table(heading, columns, lines, form="stack", numeric=False)


def implied_effect(share: float) -> float:
    """Return the time with stripe units of 64 MiB over the time with 4 MiB, from padding alone.

    Parameters
    ----------
    share
        Share of the checking period in the time with 4 MiB, 0 to 1.

    Notes
    -----
    Recovery takes time in proportion to the bytes to rebuild. A shard of a 64 MiB object holds 64 MiB with
    the large unit and 8 MiB with the small one.
    """
    study = study_model()
    scheme = parse_scheme(CODES[0])
    small = padded_amplification(
        scheme, scheme.geometry(study.stripe_unit_bytes), study.object_bytes
    )
    large = padded_amplification(
        scheme, scheme.geometry(study.object_bytes), study.object_bytes
    )
    return share + (1 - share) * float(large / small)


def implied_table() -> Table:
    """Return the effect of the stripe unit for the published shares of the checking period."""
    columns = (
        "checking period's share",
        "time with 64 MiB over that with 4 MiB",
        "published",
    )
    published = "up to 426 %"
    lines = [
        (f"{100 * share:.1f} %", f"{100 * implied_effect(share):.0f} %", published)
        for share in (0.41, 0.537, 0.58)
    ]
    heading = "Effect of padding by the source's own shares"
    return Table(heading, columns, lines, form="stack", numeric=False)


def profile_table(rows: pl.DataFrame) -> Table:
    """Return times and bytes of every profile."""
    columns = (
        "dimension",
        "value",
        "code",
        "checking [s]",
        "recovery [s]",
        "share",
        "rebuilt [GB]",
        "read [B/B]",
        "written [B/B]",
        "sent [B/B]",
    )
    profiles = rows.filter(pl.col("experiment") == "profiles")
    lines = [
        (
            row["dimension"],
            row["label"],
            scheme_label(row["scheme"]),
            *(number_text(row[name]) for name in ("checking_s", "recovery_s")),
            f"{PERCENT * row['checking_share']:.1f} %",
            number_text(row["rebuilt_bytes"] / 1e9),
            *(
                number_text(row[f"{name}_bytes_per_lost_byte"])
                for name in ("read", "written", "sent")
            ),
        )
        for row in profiles.iter_rows(named=True)
    ]
    return Table("Every profile", columns, lines, form="stack", numeric=False)
