"""Bytes stored per byte written: the lower bound of division and padding, and what else a store takes."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from stripesim.models.coding import RedundancyScheme, padded_amplification, parse_scheme
from stripesim.scenarios.studies.ecfault2024.parameters import StudyModel, study_model

Row = dict[str, Any]

MEASURED_CODES = ("rs:9,3", "rs:12,3")
"""RS(12,9) and RS(15,12) of the source, which puts n first."""
UNITS_BYTES = tuple(1 << shift for shift in range(12, 27))
"""Stripe units of the curve, 4 KiB to 64 MiB."""


def mechanisms(scheme: RedundancyScheme, study: StudyModel) -> dict[str, float]:
    """Bytes stored per byte written, separated by what asks for them.

    ``redundancy`` (n / k), then what comes on top; they add up to what is stored. ``checksums`` and
    ``attributes`` lie in the key-value store; ``log`` is the space that each OSD's log files take, whatever
    is written.
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
    """Rows of the source's table: theory, lower bound, mechanisms."""
    study = study_model()
    for code in MEASURED_CODES:
        scheme = parse_scheme(code)
        found = mechanisms(scheme, study)
        fresh = study.osds * study.osd_log_fresh_bytes / study.written_bytes
        yield {
            "experiment": "amplification",
            "scheme": code,
            "stripe_unit_bytes": study.stripe_unit_bytes,
            "object_bytes": study.object_bytes,
            **{f"stored_{name}": value for name, value in found.items()},
            "stored_padded": found["redundancy"] + found["padding"],
            "stored_total": sum(found.values()),
            "stored_total_fresh_log": sum(found.values()) - found["log"] + fresh,
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
