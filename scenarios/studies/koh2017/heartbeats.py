"""The pings of the modelled cluster: how often, and how long a message is."""

from __future__ import annotations

from typing import Any, Final

INTERVAL_NS: Final = 6_000_000_000
# Payload: cluster id 16, two map epochs 8, kind 1, peer's state 14, time stamp 8. Envelope of the messenger:
# tag 1, header 53, footer 21. The padding to about 2,000 bytes of later releases had not been added yet.
MESSAGE_BYTES: Final = 16 + 8 + 1 + 14 + 8 + 1 + 53 + 21

PARAMETERS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "heartbeat.interval_ns",
        "value": INTERVAL_NS,
        "unit": "ns",
        "provenance": "given",
        "source": "koh2017-023, section II.A: every six seconds",
        "confidence_interval": None,
    },
    {
        "name": "heartbeat.message_bytes",
        "value": MESSAGE_BYTES,
        "unit": "B",
        "provenance": "code",
        "source": "Ceph, src/messages/MOSDPing.h at head version 2 (before tracker issue 20087 of 2017 added "
        "padding) and the envelope of src/include/msgr.h",
        "confidence_interval": None,
    },
)
