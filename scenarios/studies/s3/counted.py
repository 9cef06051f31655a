"""Rows of counters of a real RADOS gateway: operations and bytes of one S3 request.

Each row is the mean of equal requests, one at a time, on the cluster of study `releases`: 16 OSDs on one machine. The
background of an idle gateway is subtracted.
"""

from __future__ import annotations

from typing import Final, Literal

#: What a row counts for each request, by its column in ``rgw.csv``.
QUANTITIES: Final = (
    "operations",
    "transactions",
    "device_read",
    "device_write",
    "device_data_write",
    "private_net",
    "osd_net",
)
#: Tolerance of all of them.
COUNT_TOLERANCE: Final = 0.05
#: Smallest values that make a claim, because the background of the daemons varies by as much [count, B].
COUNT_MIN: Final = 0.5
BYTES_MIN: Final = 2048


def role_of(scheme: str) -> Literal["calibration", "held-out"]:
    """Return the role of the rows of a scheme, fixed before any of them was simulated.

    All 3-replication is calibration, because its rows were read first. Erasure coding is predicted.
    """
    return "calibration" if scheme.startswith("rep:") else "held-out"
