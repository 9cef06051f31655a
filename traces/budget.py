"""A bound on the memory that a trace may take, checked while the trace is read."""

from stripesim.models.memory_limit import MemoryUse, memory_limit
from stripesim.traces.problems import TraceError

REQUEST_BYTES = 225
"""Memory of one request at its peak: read, sorted and summarised (measured; seven columns of it are kept)."""

PENDING_BYTES = 800
"""Memory of one request or command in flight while events are matched (measured)."""

FAILURE_BYTES = 1000
"""Memory of one event of a failure trace at its peak, with its cells as text (measured)."""

# Memory of threads and of one block of text, in addition to rows (measured).
_WORKING = MemoryUse(
    address_space_bytes=1100 << 20, resident_bytes=150 << 20, data_bytes=250 << 20
)


class RowBudget:
    """Rows of a trace that fit in the memory that is left to this process when reading begins.

    Parameters
    ----------
    source : str
        File, for messages.
    row_bytes : int
        Memory of one row [bytes].
    noun : str
        What a row is, in the plural, for messages.
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
            If all rows counted do not fit.
        """
        self._rows += rows
        self.check(self._rows)

    def check(self, rows: int) -> None:
        """Refuse a number of rows that does not fit."""
        rows_max = self._limit.left_bytes // self._row_bytes
        if rows <= rows_max:
            return
        left = f"{self._limit.left_bytes / 1e9:.3g} GB"
        raise TraceError(
            f"{self._source}: got more than {rows_max:,} {self._noun}, wanted a trace that fits in "
            f"the {left} that the {self._limit.source} leaves ({self._row_bytes} bytes each)"
        )
