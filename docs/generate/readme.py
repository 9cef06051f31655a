"""What is generated in the README: what the demonstration gave, and how far off each kind of answer is."""

from __future__ import annotations

import re
from pathlib import Path

import stripesim
from generate import trust
from generate.markdown import code, number, table

README = Path(__file__).resolve().parents[2] / "README.md"
_BEGIN, _END = (
    "<!-- {name}: written by python docs/record.py readme -->\n",
    "<!-- end -->",
)

# The cells of the demonstration that the README shows.
NO_LOCK = "cluster.pg_lock_scope=none"
SHOWN = (
    'schemes=["rep:3", "rs:6,3"]',
    "workload.block_sizes_bytes=4k",
    'workload.ops=["write"]',
)


def results() -> str:
    """Write the writes of 4 KiB of the scenario koh2017, with the lock of placement groups and without."""
    rows = stripesim.run("koh2017", sets=SHOWN, costs=False).rows.to_dicts()
    free = stripesim.run("koh2017", sets=(*SHOWN, NO_LOCK), costs=False).rows.to_dicts()
    unlocked = {
        (row["pattern"], row["scheme"]): row["throughput_bytes_per_s"] for row in free
    }
    words = {"seq": "sequential", "rand": "random"}
    heads = ("4 KiB writes", "scheme", "MB/s", "MB/s without the lock",
             "written by drives [B/B]", "between hosts [B/B]")  # fmt: skip
    rows_shown = [
        (
            words[row["pattern"]], code(row["scheme"]), number(row["throughput_bytes_per_s"] / 1e6, 3),
            number(unlocked[row["pattern"], row["scheme"]] / 1e6, 3),
            number(row["device_write_bytes_per_client_byte"], 3),
            number(row["private_net_bytes_per_client_byte"], 3),
        )
        for row in sorted(rows, key=lambda row: row["pattern"], reverse=True)
    ]  # fmt: skip
    return table(heads, rows_shown)


TABLES = {"results": results, "trust": trust.in_short}


def rewritten(text: str) -> str:
    """Put both tables in their places in the README's text.

    Raises
    ------
    ValueError
        If a place is missing.
    """
    for name, write in TABLES.items():
        begin = _BEGIN.format(name=name)
        text, found = re.subn(
            re.escape(begin) + ".*?" + re.escape(_END),
            lambda _, begin=begin, write=write: f"{begin}\n{write()}{_END}",  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
        if found != 1:
            raise ValueError(
                f"README.md: got {found} places for {begin.strip()}, wanted 1"
            )
    return text
