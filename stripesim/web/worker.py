"""Heavy work in processes of their own, so that a time limit or the end of the server ends it.

The processes are those of `anyio.to_process`: they are used again for the next call, and killed when the task
that waits for them is cancelled.
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
    """Work that has no result: refused with a message for the user, too slow, or dead."""


async def call(
    function: Callable[..., R], *args: Any, limiter: CapacityLimiter, wall_s: float
) -> R:
    """Call a function in a worker process.

    Parameters
    ----------
    function
        A function of a module; what it takes and returns can be pickled.
    *args
        Its arguments.
    limiter
        Bounds the calls that run at the same time; others wait.
    wall_s
        Time for the call and its wait, after which its process is killed [s].

    Returns
    -------
    R
        The result of the function.

    Raises
    ------
    WorkError
        If the function raised `ValueError`, whose text it has, or if time or memory ran out.
    """
    work = partial(_work, function, *args)
    try:
        with anyio.fail_after(wall_s):
            result = await to_process.run_sync(work, cancellable=True, limiter=limiter)
    except TimeoutError:
        raise WorkError(
            f"ended after {wall_s:g} s: ask for a smaller cluster"
        ) from None
    except BrokenWorkerProcess:
        raise WorkError("ended unexpectedly: memory may be short") from None
    if isinstance(result, _Problem):
        raise WorkError(result.text)
    return result


class _Problem(NamedTuple):
    """A problem in words, since not every exception can be pickled."""

    text: str


def _work(function: Callable[..., R], *args: Any) -> R | _Problem:
    _follow_parent()
    try:
        return function(*args)
    except ValueError as error:
        return _Problem(str(error))
    except RecursionError:
        return _Problem("got values nested too deep, wanted fewer")
    except MemoryError:
        return _Problem("out of memory: ask for a smaller cluster")


_following = threading.Event()


def _follow_parent() -> None:
    """End this process with the server, even in the middle of a long call, and leave Ctrl-C to the server."""
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
