"""The reference of result columns: those of every row, with what each means."""

from __future__ import annotations

from generate.markdown import code, table
from stripesim.scenarios.run.results import RESULT_SCHEMA

# The marker in docs/reference/json.md that the table takes the place of.
MARKER = "<!-- columns -->"

MEANINGS = {
    "scheme": "redundancy scheme",
    "op": "`read`, `write`, `mixed` (a read fraction), or `trace`",
    "pattern": "`seq`, `rand`, or `trace`",
    "block_size_bytes": "bytes of one client request; null where a trace decides",
    "requests": "client requests completed",
    "iops": "requests completed per simulated second, in the steady window",
    "throughput_bytes_per_s": "client bytes per simulated second, in the steady window",
    "throughput_ci_low": "lower end of the 95 % interval of throughput [B/s], by batch means",
    "throughput_ci_high": "its upper end [B/s]",
    "latency_mean_ns": "mean time from a request's issue to its completion, in the steady window",
    "latency_ci_low": "lower end of the 95 % interval of the mean latency [ns], by batch means",
    "latency_ci_high": "its upper end [ns]",
    "latency_p50_ns": "median latency",
    "latency_p95_ns": "95th percentile of latency",
    "latency_p99_ns": "99th percentile of latency",
    "latency_max_ns": "largest latency in the window",
    "device_read_bytes_per_client_byte": "bytes that all devices read, over the client's bytes, whole run",
    "device_write_bytes_per_client_byte": "bytes that all devices write, log and metadata included",
    "device_data_write_bytes_per_client_byte": "the same without log and metadata",
    "private_net_bytes_per_client_byte": "bytes between storage hosts, TCP and IP headers included",
    "public_net_bytes_per_client_byte": "bytes between client and hosts, headers included",
    "cpu_ns_per_op": "processor time of all storage hosts for one client request",
    "cpu_utilisation": "that time at the measured rate, over all cores of all hosts, 0 to 1",
    "context_switches_per_op": "hand-offs between threads for one request, times switches per hand-off",
    "bottleneck": "class of resources that requests waited for longest, all waiting added up; `none`",
    "bottleneck_utilisation": "utilisation of the busiest member of that class, 0 to 1",
    "steady_state_start_s": "where the steady window begins [s]: the end of the transient by MSER-5",
    "simulated_s": "simulated time of the whole run",
    "engine_wall_s": "real time inside the engine; the one column that differs from run to run",
}


def columns() -> str:
    """Write the table of columns.

    Raises
    ------
    ValueError
        If a column has no meaning here.
    """
    absent = [name for name in RESULT_SCHEMA if name not in MEANINGS]
    if absent:
        raise ValueError(f"docs/generate/results.py: MEANINGS: got none for {', '.join(absent)}, wanted one")
    return table(("column", "type", "meaning"), [
        (code(name), kind.__name__, MEANINGS[name]) for name, kind in RESULT_SCHEMA.items()
    ])  # fmt: skip
