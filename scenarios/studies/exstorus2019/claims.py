"""The claims of Kim et al. 2019: which result rows each is computed from, and how.

Notes
-----
Decisions on the source's words, made once:

1. The tables' unit is seconds for 50,000 writes (section 4.1), so a record's time is multiplied by that.
2. "Growth" is the time at 128 KiB over that at 4 KiB; where one number is given for two steps, the mean of
   the two.
3. A share is a step's time over the sum of the five.
4. A drop is one less the throughput over that without encoding, in percent; "the parity calculation
   accounts for 4 to 29 %" names the drops of the fastest and the slowest code.
5. CPU utilisation is that of four cores, as the caption of Figure 7 says; a difference is in points.
6. The experiments with several codes state no record size for one thread; 128 KiB is taken, the one that is
   stated for many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Ledger, judge
from stripesim.scenarios.studies.exstorus2019.source import NS_PER_S, WRITES, cells, claims
from stripesim.sim.systems.striped_fs.write import STEPS

PERCENT = 100.0
CORES_SHOWN = 4
CORES_MODELLED = 8
SMALL_BYTES, LARGE_BYTES = 4 << 10, 128 << 10

METRIC_GROUPS: Mapping[str, str] = {
    **{
        f"time_50000_writes: {name}": "step times"
        for name in (
            "Client Overhead",
            "Master Process",
            "Parity Calculation",
            "Data Distribution",
            "Slave Process",
        )
    },
    **dict.fromkeys(("throughput_drop", "throughput_drop_avx2", "parity_share_of_io", "cpu_delta"), "codes"),
    **{
        f"share {name}": "shares"
        for name in ("Data Distribution", "Client Overhead max", "Parity Calculation max")
    },
}

_CONFIGURATION = "part of the configuration: an input to the simulation, not a result of it"
NOT_COMPUTED: Mapping[str, str] = {f"exstorus-{number}": _CONFIGURATION for number in range(188, 197)}


class Lookup:
    """Numbers from result rows, by what they are."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self._steps = {
            (row["network_gbit_per_s"], row["block_size_bytes"]): row
            for row in rows.filter(pl.col("experiment") == "steps").iter_rows(named=True)
        }
        self._codes = {
            (row["files"], row["code"]): row
            for row in rows.filter(pl.col("experiment") == "codes").iter_rows(named=True)
        }

    def time_ns(self, step: str, gbit_per_s: float, record_bytes: int) -> float:
        """Time of one step of one record [ns]."""
        return float(self._steps[gbit_per_s, record_bytes][f"{step}_ns"])

    def share(self, step: str, gbit_per_s: float, record_bytes: int) -> float:
        """A step's share of the time of a record [%]."""
        total = sum(self.time_ns(other, gbit_per_s, record_bytes) for other in STEPS)
        return PERCENT * self.time_ns(step, gbit_per_s, record_bytes) / total

    def growth(self, gbit_per_s: float, *steps: str) -> float:
        """Time at 128 KiB over that at 4 KiB, mean over the steps named."""
        factors = [
            self.time_ns(step, gbit_per_s, LARGE_BYTES) / self.time_ns(step, gbit_per_s, SMALL_BYTES)
            for step in steps
        ]
        return sum(factors) / len(factors)

    def drop(self, code: str, threads: int) -> float:
        """Throughput that a code costs [%]."""
        rate = "throughput_bytes_per_s"
        left = self._codes[threads, code][rate] / self._codes[threads, "NONE"][rate]
        return float(PERCENT * (1 - left))

    def cpu_delta(self, code: str, threads: int) -> float:
        """CPU utilisation of the master that a code adds, in points of four cores."""
        of = "cpu_utilisation"
        difference = self._codes[threads, code][of] - self._codes[threads, "NONE"][of]
        return float(PERCENT * difference * CORES_MODELLED / CORES_SHOWN)


def simulate_claims(rows: pl.DataFrame) -> dict[str, float | tuple[float, ...] | None]:
    """Compute every claim from result rows; None where a row is an input."""
    look = Lookup(rows)
    values: dict[str, float | tuple[float, ...] | None] = dict.fromkeys(NOT_COMPUTED)
    for cell in cells():
        time_ns = look.time_ns(cell.step, cell.gbit_per_s, cell.record_bytes)
        values[cell.claim] = time_ns * WRITES / NS_PER_S
    coded = ("AVX2:CRS", "LIB", "CRS", "RS")
    numbered: dict[int, float | tuple[float, ...]] = {
        262: look.drop("LIB", 1),
        263: look.drop("CRS", 1),
        264: look.drop("RS", 1),
        265: (look.drop("AVX2:CRS", 1), look.drop("RS", 1)),
        266: look.cpu_delta("RS", 1),
        267: (look.drop("AVX2:CRS", 10), look.drop("RS", 10)),
        268: max(look.drop(code, threads) for code in coded for threads in (1, 10)),
        269: max(look.cpu_delta(code, threads) for code in coded for threads in (1, 10)),
        270: look.drop("AVX2:CRS", 1),
        271: look.growth(1, "client", "slave"),
        272: look.growth(1, "master", "parity"),
        273: look.growth(1, "distribution"),
        274: look.share("distribution", 1, LARGE_BYTES),
        275: look.share("client", 1, LARGE_BYTES),
        276: look.share("parity", 1, LARGE_BYTES),
        277: look.growth(10, "client", "slave"),
        278: look.growth(10, "master", "parity"),
        279: look.growth(10, "distribution"),
        280: look.share("distribution", 10, SMALL_BYTES),
        281: look.share("client", 10, LARGE_BYTES),
        282: look.share("parity", 10, LARGE_BYTES),
        283: look.share("distribution", 40, LARGE_BYTES),
        284: look.share("client", 40, LARGE_BYTES),
        285: look.share("parity", 40, LARGE_BYTES),
        286: look.share("distribution", 100, LARGE_BYTES),
        287: look.share("client", 100, LARGE_BYTES),
        288: look.share("parity", 100, LARGE_BYTES),
        289: look.share("client", 100, LARGE_BYTES) / look.share("client", 1, LARGE_BYTES),
        290: look.time_ns("client", 100, LARGE_BYTES) / look.time_ns("distribution", 100, LARGE_BYTES),
    }
    return values | {f"exstorus-{number}": value for number, value in numbered.items()}


def ledger_for(rows: pl.DataFrame, parameters: Iterable[Mapping[str, Any]]) -> Ledger:
    """Judge the study's claims against result rows."""
    return judge(
        claims(),
        simulate_claims(rows),
        reasons=NOT_COMPUTED,
        parameters=parameters,
        groups=METRIC_GROUPS,
    )
