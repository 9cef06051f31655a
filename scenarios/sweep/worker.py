"""What a worker process of a sweep does. Light to import: it sets the environment before others load."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, Final

#: A worker for each core: more threads inside them would only get in each other's way.
_ONE_THREAD: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)


def work(pipe: Connection[Any, Any], pickled: bytes) -> None:
    """Say that all is loaded, then answer each item with a result until the pipe ends."""
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    # The parent alone decides what a Ctrl-C means; it ends workers with SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()
    do: Callable[[Any], Any] = pickle.loads(pickled)
    try:
        pipe.send(None)
        while True:
            pipe.send(do(pipe.recv()))
    except (EOFError, ConnectionError):
        return


def _follow_parent() -> None:
    """End with the parent, even in the middle of a long task, should it be killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
