"""One claim per measured row and metric, with roles and tolerances fixed before the first comparison."""

from typing import Final

#: Tolerances, the same for all releases and schemes.
TOLERANCES: Final = {
    "device_read": 0.2,
    "device_data_write": 0.1,
    "device_write": 0.25,
    "private_net": 0.1,
    "context_switches_per_op": 0.2,
}
