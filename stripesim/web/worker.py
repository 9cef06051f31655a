"""Run heavy work in separate processes, which end with their time limit or with the server.

`anyio.to_process` manages the processes. It reuses them for later calls, and kills a process when the task
that waits for it is cancelled.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import anyio
from anyio import BrokenWorkerProcess, CapacityLimiter, to_process

R = TypeVar("R")

_PARENT_CHECK_S: Final = 1.0


class WorkError(Exception):
    """Raised if work fails: rejected with a message for the user, too slow, or its process died."""


async def call(
    function: Callable[..., R], *args: Any, limiter: CapacityLimiter, wall_s: float
) -> R:
    """Call a function in a worker process.

    Parameters
    ----------
    function
        A module-level function whose arguments and result can be pickled.
    *args
        Its arguments.
    limiter
        Limits the number of concurrent calls. Further calls wait.
    wall_s
        Time limit for waiting and running, after which the process is killed [s].

    Returns
    -------
    R
        The result of the function.

    Raises
    ------
    WorkError
        If the function raised `ValueError`, whose text the error repeats, or if time or memory ran out.
    """
    work = partial(_work, function, *args)
    try:
        with anyio.fail_after(wall_s):
            result = await to_process.run_sync(work, cancellable=True, limiter=limiter)
    except TimeoutError:
        raise WorkError(
            f"stopped after {wall_s:g} s: simulate a smaller cluster"
        ) from None
    except BrokenWorkerProcess:
        raise WorkError("stopped unexpectedly: memory may be short") from None
    if isinstance(result, _Problem):
        raise WorkError(result.text)
    return result


class _Problem(NamedTuple):
    """The text of an error, because not every exception can be pickled."""

    text: str


def _work(function: Callable[..., R], *args: Any) -> R | _Problem:
    _follow_parent()
    try:
        return function(*args)
    except ValueError as error:
        return _Problem(str(error))
    except RecursionError:
        return _Problem("got values nested too deeply, wanted fewer levels")
    except MemoryError:
        return _Problem("out of memory: simulate a smaller cluster")


_following = threading.Event()


def _follow_parent() -> None:
    """End this process when the server ends, even during a long call, and leave Ctrl-C to the server."""
    if _following.is_set():
        return
    _following.set()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(
        target=_exit_without_parent, args=(os.getppid(),), daemon=True
    ).start()


def _exit_without_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_S)
    os._exit(1)
