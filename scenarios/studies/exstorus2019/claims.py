"""The claims of Kim et al. 2019: which result rows each is computed from, and how.

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

from collections.abc import Mapping

import polars as pl

from stripesim.calibration.ledger.verdicts import Simulated
from stripesim.scenarios.studies.exstorus2019 import source
from stripesim.scenarios.studies.lookup import CONFIGURATION, groups_by_metric, select
from stripesim.sim.systems.striped_fs.write import STEP_NAMES, STEPS

PERCENT = 100.0
CORES_SHOWN = 4
CORES_MODELLED = 8

METRIC_GROUPS: Mapping[str, str] = groups_by_metric(
    {
        "step times": [f"time_50000_writes: {name}" for name in STEP_NAMES.values()],
        "codes": (
            "throughput_drop",
            "throughput_drop_avx2",
            "parity_share_of_io",
            "cpu_delta",
        ),
        "shares": [
            f"share {name}"
            for name in (
                "Data Distribution",
                "Client Overhead max",
                "Parity Calculation max",
            )
        ],
    }
)

NOT_COMPUTED: Mapping[str, str] = {
    f"exstorus-{number}": CONFIGURATION for number in range(188, 197)
}


def simulate_claims(
    rows: pl.DataFrame,
) -> tuple[dict[str, Simulated], Mapping[str, str]]:
    """Compute every claim that is no input from result rows; return values, and why there is none."""
    by_step = {
        (row["network_gbit_per_s"], row["block_size_bytes"]): row
        for row in select(rows, experiment="steps").iter_rows(named=True)
    }
    by_code = {
        (row["code"], row["files"]): row
        for row in select(rows, experiment="codes").iter_rows(named=True)
    }

    def time_ns(
        step: str, gbit_per_s: float, record_bytes: int = source.LARGE_BYTES
    ) -> float:
        return float(by_step[gbit_per_s, record_bytes][f"{step}_ns"])

    def share(
        step: str, gbit_per_s: float, record_bytes: int = source.LARGE_BYTES
    ) -> float:
        total = sum(time_ns(other, gbit_per_s, record_bytes) for other in STEPS)
        return PERCENT * time_ns(step, gbit_per_s, record_bytes) / total

    def growth(gbit_per_s: float, *steps: str) -> float:
        factors = [
            time_ns(step, gbit_per_s) / time_ns(step, gbit_per_s, source.SMALL_BYTES)
            for step in steps
        ]
        return sum(factors) / len(factors)

    def drop(code: str, threads: int) -> float:
        rates = [
            by_code[name, threads]["throughput_bytes_per_s"] for name in (code, "NONE")
        ]
        return float(PERCENT * (1 - rates[0] / rates[1]))

    def cpu_delta(code: str, threads: int) -> float:
        """What a code adds to the master's use of four cores, in points."""
        used = [by_code[name, threads]["cpu_utilisation"] for name in (code, "NONE")]
        return float(PERCENT * (used[0] - used[1]) * CORES_MODELLED / CORES_SHOWN)

    coded = [
        (code, threads)
        for code in ("AVX2:CRS", "LIB", "CRS", "RS")
        for threads in (1, 10)
    ]
    numbered: dict[int, Simulated] = {
        262: drop("LIB", 1),
        263: drop("CRS", 1),
        264: drop("RS", 1),
        265: (drop("AVX2:CRS", 1), drop("RS", 1)),
        266: cpu_delta("RS", 1),
        267: (drop("AVX2:CRS", 10), drop("RS", 10)),
        268: max(drop(*each) for each in coded),
        269: max(cpu_delta(*each) for each in coded),
        270: drop("AVX2:CRS", 1),
        271: growth(1, "client", "slave"),
        272: growth(1, "master", "parity"),
        273: growth(1, "distribution"),
        274: share("distribution", 1),
        275: share("client", 1),
        276: share("parity", 1),
        277: growth(10, "client", "slave"),
        278: growth(10, "master", "parity"),
        279: growth(10, "distribution"),
        280: share("distribution", 10, source.SMALL_BYTES),
        281: share("client", 10),
        282: share("parity", 10),
        283: share("distribution", 40),
        284: share("client", 40),
        285: share("parity", 40),
        286: share("distribution", 100),
        287: share("client", 100),
        288: share("parity", 100),
        289: share("client", 100) / share("client", 1),
        290: time_ns("client", 100) / time_ns("distribution", 100),
    }
    values: dict[str, Simulated] = {
        cell.claim: time_ns(cell.step, cell.gbit_per_s, cell.record_bytes)
        * source.WRITES
        / source.NS_PER_S
        for cell in source.cells()
    }
    return values | {
        f"exstorus-{claim}": value for claim, value in numbered.items()
    }, NOT_COMPUTED
