"""Hold the later rows of a sweep while a file exists, in every process of its command.

Tests stop a sweep in the middle. A sweep of a fixed length may have ended before the test sees its first rows
on a busy machine. With this folder on ``PYTHONPATH``, Python imports this module when it starts, and rows of
queue depths from ``HELD_FROM`` wait until the file that ``STRIPESIM_HELD_SWEEP`` names is removed.
"""

import os
import sys
import time
from importlib.abc import Loader, MetaPathFinder
from importlib.util import find_spec
from pathlib import Path

TASKS = "stripesim.scenarios.work.attempt"
HELD_FROM = 6


class Finder(MetaPathFinder):
    """Changes the module that runs tasks once it is loaded."""

    def find_spec(self, name, path, target=None):
        if name != TASKS:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        spec.loader = HoldingLoader(spec.loader)
        return spec


class HoldingLoader(Loader):
    """Loads the module that runs tasks, whose later rows wait."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        attempt = module.attempt
        # Each row is stored at once.
        module.BATCH_S = 0.0
        sys.modules["stripesim.scenarios.work.task"].BATCH_S = 0.0

        def attempt_when_released(task):
            if task.swept.get("workload.queue_depth", 0) >= HELD_FROM:
                while Path(os.environ["STRIPESIM_HELD_SWEEP"]).exists():
                    time.sleep(0.02)
            return attempt(task)

        module.attempt = attempt_when_released


sys.meta_path.insert(0, Finder())
