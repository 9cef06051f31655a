"""What the server of workers loads once, before it forks them: the engine and all that a cell uses.

`pool` names this module to the server. Nothing else imports it.
"""

import gc
from contextlib import suppress

from stripesim.scenarios.sweep.pool import limit_threads

limit_threads()
# Modules that load leave hardly any garbage.
gc.disable()

# A failure shows again in each worker, which reports it.
with suppress(Exception):
    from stripesim.scenarios.cells.run import run_cell
    from stripesim.scenarios.schema.keys import cells
    from stripesim.scenarios.schema.loader import scenario_from
    from stripesim.scenarios.sweep import task

    assert task
    # A run loads all that cells use, and compiles it if nothing is in the cache.
    _small = scenario_from({"schemes": ["rep:3"], "workload": {"requests": 20}})
    run_cell(_small, cells(_small)[0], "compiled")

# Workers share this memory as long as no process writes to it, and the collector would.
gc.freeze()
gc.enable()
