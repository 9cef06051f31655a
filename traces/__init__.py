"""Read block traces and failure traces into one columnar form each.

Start with `columns` for the form of block traces, then read `read` for the steps from a file to it. Each
format is a module in `formats` or `failures`. Traces import only `stripesim.models` from other packages.
"""

from stripesim.models.problems import TraceError
from stripesim.traces.columns import COMMAND_SCHEMA, REQUEST_SCHEMA, BlockTrace
from stripesim.traces.failures.columns import EVENT_SCHEMA, SPAN_SCHEMA, FailureTrace
from stripesim.traces.failures.statistics import correlated_share, failure_info
from stripesim.traces.problems import FaultLog
from stripesim.traces.read import (
    FAILURE_FORMATS,
    FORMATS,
    describe,
    iter_trace,
    load,
    read_failures,
    read_trace,
)
from stripesim.traces.statistics import info
from stripesim.traces.write import convert, write_blkparse

__all__ = [
    "COMMAND_SCHEMA",
    "EVENT_SCHEMA",
    "FAILURE_FORMATS",
    "FORMATS",
    "REQUEST_SCHEMA",
    "SPAN_SCHEMA",
    "BlockTrace",
    "FailureTrace",
    "FaultLog",
    "TraceError",
    "convert",
    "correlated_share",
    "describe",
    "failure_info",
    "info",
    "iter_trace",
    "load",
    "read_failures",
    "read_trace",
    "write_blkparse",
]
