"""Load the engine and all that a cell uses, in the server of workers and in the workers of Dask."""

import gc
import sys
from contextlib import suppress

from stripesim.scenarios.work.pool import limit_threads

limit_threads()
# A worker of Dask that starts with this module (``--preload``) has not read this setting yet. Its profiler
# looks at all threads a hundred times a second.
if dask := sys.modules.get("dask"):
    dask.config.set({"distributed.worker.profile.enabled": False})
# Modules that load leave hardly any garbage.
gc.disable()

# A failure shows again in each worker, which reports it.
with suppress(Exception):
    from stripesim.scenarios.schema.keys import WorkloadSpec, cells
    from stripesim.scenarios.schema.scenario import Scenario
    from stripesim.scenarios.work.task import make_task, run_task

    # A task loads all that tasks use, and compiles it if nothing is in the cache.
    _small = Scenario(schemes=("rep:3",), workload=WorkloadSpec(requests=20))
    run_task(make_task(_small, cells(_small)[0], swept={}))

# Workers share this memory as long as no process writes to it, and the collector would. Cells
# leave hardly any garbage.
gc.freeze()
gc.set_threshold(100_000)
gc.enable()
