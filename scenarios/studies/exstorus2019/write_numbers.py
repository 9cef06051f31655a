"""Times and shares of steps, and costs of codes, that the expressions in ``claims.toml`` call."""

from typing import Final

import polars as pl

from stripesim.scenarios.studies.exstorus2019 import source
from stripesim.scenarios.studies.lookup import select
from stripesim.sim.systems.striped_fs.write import STEPS

PERCENT: Final = 100.0
CORES_SHOWN: Final = 4
CORES_MODELLED: Final = 8


class WriteNumbers:
    """Numbers from result rows. Expressions call the public methods."""

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
        """Return the simulated value of a number in Tables 1 to 3 [s per 50,000 records]."""
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
        """Return the time at 128 KiB relative to 4 KiB, averaged over steps."""
        factors = [
            self.time_ns(step, gbit_per_s)
            / self.time_ns(step, gbit_per_s, source.SMALL_BYTES)
            for step in steps
        ]
        return sum(factors) / len(factors)

    def drop(self, code: str, threads: int) -> float:
        """Return the throughput lost to a code [%]."""
        rate = self._by_code[code, threads]["throughput_bytes_per_s"]
        uncoded = self._by_code["NONE", threads]["throughput_bytes_per_s"]
        return float(PERCENT * (1 - rate / uncoded))

    def cpu_delta(self, code: str, threads: int) -> float:
        """Return the increase of the master's use of four cores under a code [points]."""
        used = self._by_code[code, threads]["cpu_utilisation"]
        uncoded = self._by_code["NONE", threads]["cpu_utilisation"]
        return float(PERCENT * (used - uncoded) * CORES_MODELLED / CORES_SHOWN)
