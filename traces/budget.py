"""Limit the memory that a trace may take, while it is being read."""

from stripesim.models.memory_limit import MemoryUse, memory_limit
from stripesim.models.problems import TraceError

REQUEST_BYTES = 225
"""Peak memory of one request: read, sorted and summarised [B] (measured; seven columns are kept)."""

PENDING_BYTES = 800
"""Peak memory of one request or command in flight while events are matched [B] (measured)."""

FAILURE_BYTES = 1000
"""Peak memory of one event of a failure trace, including its cells as text [B] (measured)."""

# Memory of threads and of one block of text, in addition to rows (measured).
_WORKING = MemoryUse(
    address_space_bytes=1100 << 20, resident_bytes=150 << 20, data_bytes=250 << 20
)


class RowBudget:
    """The rows of a trace that fit into the memory available when reading starts.

    Parameters
    ----------
    source
        Name of the file for messages.
    row_bytes
        Memory of one row [B].
    noun
        Plural name of the rows for messages.
    """

    def __init__(self, source: str, row_bytes: int, noun: str) -> None:
        self._source = source
        self._row_bytes = row_bytes
        self._noun = noun
        self._limit = memory_limit(reserved=_WORKING)
        self._rows = 0

    def add(self, rows: int) -> None:
        """Count further rows.

        Raises
        ------
        TraceError
            If the rows counted so far do not fit.
        """
        self._rows += rows
        self.check(self._rows)

    def check(self, rows: int) -> None:
        """Raise `TraceError` if this number of rows does not fit."""
        rows_max = self._limit.left_bytes // self._row_bytes
        if rows <= rows_max:
            return
        left = f"{self._limit.left_bytes / 1e9:.3g} GB"
        raise TraceError(
            f"{self._source}: got more than {rows_max:,} {self._noun}, wanted a trace that fits in "
            f"the {left} that the {self._limit.source} leaves ({self._row_bytes} bytes each)"
        )
