"""What the expressions of ``claims.toml`` call: times and shares of steps, and what a code costs."""

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from stripesim.scenarios.studies.claim_rules import public_methods
from stripesim.scenarios.studies.exstorus2019 import source
from stripesim.scenarios.studies.exstorus2019.parameters import CODES
from stripesim.scenarios.studies.lookup import select
from stripesim.sim.systems.striped_fs.write import STEPS

PERCENT: Final = 100.0
CORES_SHOWN: Final = 4
CORES_MODELLED: Final = 8


def vocabulary(rows: pl.DataFrame) -> Mapping[str, Any]:
    """Return the names that expressions know."""
    return {
        "CODED": CODES[1:],
        "SMALL_BYTES": source.SMALL_BYTES,
        **public_methods(WriteNumbers(rows)),
    }


class WriteNumbers:
    """Numbers from result rows; the public methods are words of expressions."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self._by_step = {
            (row["network_gbit_per_s"], row["block_size_bytes"]): row
            for row in select(rows, experiment="steps").iter_rows(named=True)
        }
        self._by_code = {
            (row["code"], row["files"]): row
            for row in select(rows, experiment="codes").iter_rows(named=True)
        }

    def table_entry(self, claim_id: str) -> float:
        """Return what a number of Tables 1 to 3 is here: seconds for as many records."""
        entry = next(cell for cell in source.cells() if cell.claim == claim_id)
        time_ns = self.time_ns(entry.step, entry.gbit_per_s, entry.record_bytes)
        return time_ns * source.WRITES / source.NS_PER_S

    def time_ns(
        self, step: str, gbit_per_s: float, record_bytes: int = source.LARGE_BYTES
    ) -> float:
        """Return the time of a step of one record [ns]."""
        return float(self._by_step[gbit_per_s, record_bytes][f"{step}_ns"])

    def share(
        self, step: str, gbit_per_s: float, record_bytes: int = source.LARGE_BYTES
    ) -> float:
        """Return a step's share of a record's time [%]."""
        total = sum(self.time_ns(each, gbit_per_s, record_bytes) for each in STEPS)
        return PERCENT * self.time_ns(step, gbit_per_s, record_bytes) / total

    def growth(self, gbit_per_s: float, *steps: str) -> float:
        """Return the time at 128 KiB over that at 4 KiB, the mean of steps."""
        factors = [
            self.time_ns(step, gbit_per_s)
            / self.time_ns(step, gbit_per_s, source.SMALL_BYTES)
            for step in steps
        ]
        return sum(factors) / len(factors)

    def drop(self, code: str, threads: int) -> float:
        """Return the throughput that a code loses [%]."""
        rate = self._by_code[code, threads]["throughput_bytes_per_s"]
        uncoded = self._by_code["NONE", threads]["throughput_bytes_per_s"]
        return float(PERCENT * (1 - rate / uncoded))

    def cpu_delta(self, code: str, threads: int) -> float:
        """Return what a code adds to the master's use of four cores [points]."""
        used = self._by_code[code, threads]["cpu_utilisation"]
        uncoded = self._by_code["NONE", threads]["cpu_utilisation"]
        return float(PERCENT * (used - uncoded) * CORES_MODELLED / CORES_SHOWN)
