"""Bytes stored per byte written: the lower bound from padding, and further overheads of a store."""

from collections.abc import Iterator
from fractions import Fraction

from stripesim.models.coding import RedundancyScheme, padded_amplification, parse_scheme
from stripesim.scenarios.studies.ecfault2024.parameters import StudyModel, study_model
from stripesim.scenarios.studies.tasks import Row

MEASURED_CODES = ("rs:9,3", "rs:12,3")
"""RS(12,9) and RS(15,12) of the source, which puts n first."""
UNITS_BYTES = tuple(1 << shift for shift in range(12, 27))
"""Stripe units of the curve, 4 KiB to 64 MiB."""


def mechanisms(scheme: RedundancyScheme, study: StudyModel) -> dict[str, float]:
    """Return bytes stored per byte written, by cause; the parts add up to the total.

    ``redundancy`` is n / k; the others come on top. ``checksums`` and ``attributes`` are kept in the
    key-value store. ``log`` is the space of each OSD's log files, whatever the number of bytes written.
    """
    geometry = scheme.geometry(study.stripe_unit_bytes)
    size = study.object_bytes
    redundancy = Fraction(scheme.width, scheme.k)
    padded = padded_amplification(scheme, geometry, size)
    allocated = padded_amplification(
        scheme, geometry, size, min_alloc_bytes=study.min_alloc_bytes
    )
    return {
        "redundancy": float(redundancy),
        "padding": float(padded - redundancy),
        "allocation": float(allocated - padded),
        "checksums": float(padded) * study.checksum_bytes_per_data_byte,
        "attributes": scheme.width * study.attribute_bytes / size,
        "log": study.osds * study.osd_log_bytes / study.written_bytes,
    }


def amplification_rows() -> Iterator[Row]:
    """Yield the rows of the source's table: theory, lower bound, mechanisms."""
    study = study_model()
    for code in MEASURED_CODES:
        scheme = parse_scheme(code)
        parts = mechanisms(scheme, study)
        fresh = study.osds * study.osd_log_fresh_bytes / study.written_bytes
        yield {
            "experiment": "amplification",
            "scheme": code,
            "stripe_unit_bytes": study.stripe_unit_bytes,
            "object_bytes": study.object_bytes,
            **{f"stored_{name}": value for name, value in parts.items()},
            "stored_padded": parts["redundancy"] + parts["padding"],
            "stored_total": sum(parts.values()),
            "stored_total_fresh_log": sum(parts.values()) - parts["log"] + fresh,
        }
    for code in (*MEASURED_CODES, "clay:9,3,11"):
        scheme = parse_scheme(code)
        for unit in UNITS_BYTES:
            stored = padded_amplification(
                scheme, scheme.geometry(unit), study.object_bytes
            )
            yield {
                "experiment": "padding",
                "scheme": code,
                "stripe_unit_bytes": unit,
                "object_bytes": study.object_bytes,
                "stored_redundancy": scheme.width / scheme.k,
                "stored_padded": float(stored),
            }
