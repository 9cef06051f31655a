"""Export the parts of the simulator, for programs that simulate their own system and for benchmarks.

The names in `STABLE` stay as they are, like those of `stripesim.api`. Others may change between versions. The
guide is ``docs/howto/own-system.md``.
"""

from stripesim.calibration.kernels.bench import benchmark as benchmark_kernels
from stripesim.calibration.kernels.isal import available as isal_available
from stripesim.calibration.kernels.malloc import malloc_effect
from stripesim.calibration.kernels.measure import measure as measure_kernels
from stripesim.calibration.kernels.software import measure_codes_apart
from stripesim.calibration.kernels.store import shipped_table, shipped_table_names
from stripesim.models.coding import (
    ReedSolomon,
    Replication,
    padded_amplification,
)
from stripesim.models.placement import build_map, map_to_text
from stripesim.models.problems import KernelError
from stripesim.models.provenance import KINDS, unit_of
from stripesim.scenarios.schema.keys import scenario_schema
from stripesim.scenarios.show.quantities import QUANTITIES
from stripesim.sim.ceph.planner import RequestPlanner
from stripesim.sim.ceph.pool import Book
from stripesim.sim.durability.chain import chain_of
from stripesim.sim.durability.histories import exposure_losses
from stripesim.sim.durability.splitting import (
    plain_monte_carlo,
    prepare,
    run_batch,
    split,
)
from stripesim.sim.durability.system import (
    YEAR_S,
    Burst,
    DriveRepair,
    Lifetime,
    System,
    code_of,
)
from stripesim.sim.engine.conditions import completed, idle
from stripesim.sim.engine.distributions import (
    empirical,
    exponential,
    lognormal,
    service_times,
)
from stripesim.sim.engine.draws import (
    FACTOR_ONE,
    FACTOR_POINTS,
    draw_key,
    drawn_factor,
    factor_cells,
    factor_table,
    scaled_ns,
    seed_state,
    splitmix64,
)
from stripesim.sim.engine.graph import (
    ACQUIRE,
    DELAY,
    RELEASE,
    USE,
    IntArray,
    Template,
)
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import (
    BATCH,
    CHUNK,
    FIFO,
    PENDING,
    POOL,
    EngineRun,
    Program,
    RequestChunk,
    Resources,
    StreamRun,
)
from stripesim.sim.run import engine_named, factor_tables
from stripesim.traces import (
    COMMAND_SCHEMA,
    REQUEST_SCHEMA,
    FaultLog,
    iter_trace,
    write_blkparse,
)

#: All names, stable or not.
__all__ = [
    "ACQUIRE",
    "BATCH",
    "CHUNK",
    "COMMAND_SCHEMA",
    "DELAY",
    "FACTOR_ONE",
    "FACTOR_POINTS",
    "FIFO",
    "KINDS",
    "PENDING",
    "POOL",
    "QUANTITIES",
    "RELEASE",
    "REQUEST_SCHEMA",
    "STABLE",
    "USE",
    "YEAR_S",
    "Book",
    "Burst",
    "DriveRepair",
    "EngineRun",
    "FaultLog",
    "GraphBuilder",
    "IntArray",
    "KernelError",
    "Lifetime",
    "Program",
    "ReedSolomon",
    "Replication",
    "RequestChunk",
    "RequestPlanner",
    "Resources",
    "StreamRun",
    "System",
    "Template",
    "benchmark_kernels",
    "build_map",
    "chain_of",
    "code_of",
    "completed",
    "draw_key",
    "drawn_factor",
    "empirical",
    "engine_named",
    "exponential",
    "exposure_losses",
    "factor_cells",
    "factor_table",
    "factor_tables",
    "idle",
    "isal_available",
    "iter_trace",
    "lognormal",
    "malloc_effect",
    "map_to_text",
    "measure_codes_apart",
    "measure_kernels",
    "padded_amplification",
    "plain_monte_carlo",
    "prepare",
    "run_batch",
    "scaled_ns",
    "scenario_schema",
    "seed_state",
    "service_times",
    "shipped_table",
    "shipped_table_names",
    "split",
    "splitmix64",
    "unit_of",
    "write_blkparse",
]

#: Names that programs may rely on.
STABLE = (
    "ACQUIRE",
    "BATCH",
    "DELAY",
    "FACTOR_ONE",
    "FACTOR_POINTS",
    "FIFO",
    "PENDING",
    "POOL",
    "RELEASE",
    "USE",
    "EngineRun",
    "GraphBuilder",
    "Program",
    "RequestChunk",
    "Resources",
    "StreamRun",
    "Template",
    "completed",
    "empirical",
    "engine_named",
    "exponential",
    "factor_table",
    "idle",
    "lognormal",
    "service_times",
)
