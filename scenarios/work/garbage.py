"""Make Python collect garbage less often. The command line loads this before anything else."""

import gc

#: New objects after which Python looks for garbage. A command keeps some hundred thousand objects, and
#: neither a command nor a cell of a sweep leaves more than a little garbage.
OBJECTS_PER_COLLECTION = 300_000


def collect_rarely() -> None:
    """Look for garbage after many new objects, in place of some hundred."""
    gc.set_threshold(OBJECTS_PER_COLLECTION)
