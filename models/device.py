"""What lies under an object store: a solid state drive or a hard disk."""

from stripesim.models.hdd import HddModel
from stripesim.models.ssd import SsdModel

DeviceModel = SsdModel | HddModel
"""Both have servers, service times by direction and size, a spread, and the pieces of a transfer."""
