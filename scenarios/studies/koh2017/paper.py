"""Which runs each figure of Koh et al. 2017 is taken from, and the groups its errors are averaged in."""

from __future__ import annotations

from collections.abc import Mapping

from stripesim.scenarios.studies.koh2017.reducers import Runs

FIGURES: Mapping[str, Runs] = {
    "5": Runs("write", "seq", "prefilled", "steady"),
    "6": Runs("read", "seq", "prefilled", "steady"),
    "7": Runs("write", "rand", "pristine", "time"),
    "8": Runs("read", "rand", "prefilled", "steady"),
    "9a": Runs("write", "seq", "prefilled", "steady"),
    "9b": Runs("write", "rand", "pristine", "time"),
    "10a": Runs("read", "seq", "prefilled", "steady"),
    "10b": Runs("read", "rand", "prefilled", "steady"),
    "11a": Runs("write", "seq", "prefilled", "steady"),
    "11b": Runs("write", "rand", "pristine", "time"),
    "12a": Runs("read", "seq", "prefilled", "steady"),
    "12b": Runs("read", "rand", "prefilled", "steady"),
    "13": Runs("write", "seq", "prefilled", "steady"),
    "14": Runs("write", "rand", "pristine", "time"),
    "15a": Runs("read", "seq", "prefilled", "steady"),
    "15b": Runs("read", "rand", "prefilled", "steady"),
    "16a": Runs("write", "seq", "pristine", "steady"),
    "16b": Runs("write", "rand", "pristine", "time"),
    "17": Runs("read", "rand", "prefilled", "steady"),
    "18-bare-seq-read": Runs("read", "seq", "prefilled", "steady"),
    "18-bare-rand-read": Runs("read", "rand", "prefilled", "steady"),
    "18-bare-seq-write": Runs("write", "seq", "prefilled", "steady"),
    "18-bare-rand-write": Runs("write", "rand", "prefilled", "steady"),
    "20-overwrite": Runs("write", "rand", "prefilled", "steady"),
}
"""Figure → runs. The README of this study gives the evidence for each image state."""

PAPER_FIGURES: Mapping[str, tuple[str, ...]] = {
    "1": ("5", "6", "8", "10b", "14", "15b", "16b"),
    "5": ("5",),
    "6": ("6",),
    "7": ("7",),
    "8": ("8",),
    "9": ("9a", "9b"),
    "10": ("10a", "10b"),
    "11": ("11a", "11b"),
    "12": ("12a", "12b"),
    "13": ("13",),
    "14": ("14",),
    "15": ("15a", "15b"),
    "16": ("16a", "16b"),
    "17": ("17",),
    "18": ("5", "6", "7", "8", *(f"18-bare-{p}-{op}" for op in ("read", "write") for p in ("seq", "rand"))),
    "19": (),
    "20": ("20-overwrite", "7"),
}
"""A figure of the paper → the entries of `FIGURES` it is drawn from; 19 and 20 are time series as well."""

METRIC_GROUPS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("throughput_avg", "throughput_ratio_worse", "throughput_drop", "bandwidth_drop"),
            *("random_over_sequential_bw", "overwrite_over_new_write_throughput"),
        ),
        "throughput",
    ),
    **dict.fromkeys(
        ("latency", "latency_avg", "latency_max", "latency_ratio", "latency_reduction_random_vs_seq"),
        "latency",
    ),
    **dict.fromkeys(
        ("cpu_utilisation", "cpu_utilisation_max", "cpu_ratio", "user_mode_share"), "CPU utilisation"
    ),
    **dict.fromkeys(
        ("relative_ctx_switches", "relative_ctx_switches_read_vs_write_drop", "ctx_switch_ratio_max"),
        "context switches",
    ),
    **dict.fromkeys(
        (
            *("read_amplification", "read_amplification_max", "read_amplification_ratio", "read_io_ratio"),
            *("write_amplification", "write_amplification_max", "write_amplification_vs_rep_max"),
        ),
        "device traffic",
    ),
    **dict.fromkeys(
        (
            *("primary_tx_over_rx", "private_net_write_ratio", "private_net_write_ratio_max"),
            "private_net_read_max",
        ),
        "private network",
    ),
    **dict.fromkeys(
        ("random_over_sequential_throughput", "random_seq_ratio_vs_bare_ssd", "random_seq_ratio_vs_rep"),
        "random over sequential",
    ),
}
"""Metric → the group its errors are averaged in."""
