"""Load the engine and all that a cell uses, in the server of workers and in the workers of Dask."""

import gc
import sys

from stripesim.scenarios.work.pool import keep_objects, limit_threads

limit_threads()
# A worker of Dask that starts with this module (``--preload``) has not read this setting yet. Its profiler
# looks at all threads a hundred times a second.
if dask := sys.modules.get("dask"):
    dask.config.set({"distributed.worker.profile.enabled": False})
# Modules that load leave hardly any garbage.
gc.disable()

from stripesim.scenarios.work.attempt import load_engine  # noqa: E402 - after the settings above

load_engine()
keep_objects()
gc.enable()
