"""Run long work in worker processes, which end at a time limit or with the server.

The processes come from `anyio.to_process`, which reuses them for later calls and kills them when the waiting
task is cancelled.
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
    """Work without a result, because it was refused, too slow, or killed; the message is for the user."""


async def call(
    function: Callable[..., R], *args: Any, limiter: CapacityLimiter, wall_s: float
) -> R:
    """Call a function in a worker process.

    Parameters
    ----------
    function
        A function of a module, with picklable arguments and result.
    *args
        Its arguments.
    limiter
        Limits the number of calls that run at the same time.
    wall_s
        Longest time of the call, including its wait for the limiter [s].

    Returns
    -------
    R
        The result of the function.

    Raises
    ------
    WorkError
        If the function raised `ValueError` (with its message), or if time or memory ran out.
    """
    work = partial(_work, function, *args)
    try:
        with anyio.fail_after(wall_s):
            result = await to_process.run_sync(work, cancellable=True, limiter=limiter)
    except TimeoutError:
        raise WorkError(f"ended after {wall_s:g} s: choose a smaller cluster") from None
    except BrokenWorkerProcess:
        raise WorkError("ended unexpectedly: memory may be short") from None
    if isinstance(result, _Problem):
        raise WorkError(result.text)
    return result


class _Problem(NamedTuple):
    """The text of a problem, since some exceptions cannot be pickled."""

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
        return _Problem("out of memory: choose a smaller cluster")


_following = threading.Event()


def _follow_parent() -> None:
    """End this process with the server, even during a long call, and leave Ctrl-C to the server."""
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
