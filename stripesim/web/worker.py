"""Run heavy work in separate processes, which end with their time limit or with the server.

`anyio.to_process` manages the processes. It reuses them for later calls, and kills a process when the task
that waits for it is cancelled.
"""

import json
import os
import secrets
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, TextIO, TypeVar

import anyio
from anyio import BrokenWorkerProcess, CapacityLimiter, to_process

from stripesim.models.documents import json_line
from stripesim.models.problems import WorkError

R = TypeVar("R")

_PARENT_CHECK_S: Final = 1.0
# Processor time after which work that did not stop is told to again [s].
_STOP_AGAIN_S: Final = 1.0
# Interval in which reports of running work are read [s].
_REPORT_CHECK_S: Final = 0.1


async def call(
    function: Callable[..., R],
    *args: Any,
    limiter: CapacityLimiter,
    wall_s: float,
    processor_s: float | None = None,
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
        Time limit for waiting, starting a process and running, after which the process is killed [s].
    processor_s
        Limit of processor time, after which the work ends and its process stays [s]. None: no limit.

    Returns
    -------
    R
        The result of the function.

    Raises
    ------
    WorkError
        If the function raised `ValueError`, whose text the error repeats, or if time or memory ran out.
    """
    work = partial(_work, processor_s, function, *args)
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


class OutOfProcessorTime(BaseException):
    """Work has used its processor time. No handler of `Exception` within the work stops it."""


@contextmanager
def processor_limit(limit_s: float) -> Iterator[None]:
    """Limit the processor time of a block, which ends while its process stays.

    The time that a process waits for a processor on a busy machine does not count. Machine code is not
    interrupted: the limit acts when it returns. Only the main thread of a process may use it.

    Parameters
    ----------
    limit_s
        Processor time of all threads of this process [s].

    Raises
    ------
    OutOfProcessorTime
        Once the time is used up.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise OutOfProcessorTime(f"stopped after {limit_s:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    try:
        # Again each second, because a callback of Numba or a finaliser may swallow the first error.
        signal.setitimer(signal.ITIMER_PROF, limit_s, _STOP_AGAIN_S)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class _Problem(NamedTuple):
    """The text of an error, because not every exception can be pickled."""

    text: str


def _work(
    processor_s: float | None, function: Callable[..., R], *args: Any
) -> R | _Problem:
    _follow_parent()
    limit = nullcontext() if processor_s is None else processor_limit(processor_s)
    try:
        with limit:
            return function(*args)
    except OutOfProcessorTime as error:
        return _Problem(str(error))
    except ValueError as error:
        return _Problem(str(error))
    except RecursionError:
        return _Problem("got values nested too deeply, wanted fewer levels")
    except MemoryError:
        return _Problem("out of memory: simulate a smaller cluster")
    except Exception as error:
        # A defect of one computation must not end the server.
        traceback.print_exc()
        return _Problem(f"internal error: {type(error).__name__}: {error}")


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


class Lease:
    """Permission for work in other processes to continue, which one call ends for all of it.

    It is a folder, into which the work reports and whose removal it notices.
    """

    def __init__(self, above: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=above)

    def new_file(self) -> Path:
        """Return the path of a new file."""
        path = Path(self._folder.name) / secrets.token_hex(8)
        path.touch()
        return path

    def end(self) -> None:
        """End the lease. Further calls do nothing."""
        self._folder.cleanup()


async def stream(
    function: Callable[..., Iterator[Mapping[str, Any]]],
    *args: Any,
    receive: Callable[[dict[str, Any]], None],
    lease: Lease,
    wall_s: float,
) -> None:
    """Call a function in a worker process, and receive what it yields while it runs.

    Parameters
    ----------
    function
        A module-level function that yields dictionaries that JSON can hold. Its keyword argument
        `should_stop` returns True once the lease has ended.
    *args
        Its other arguments.
    receive
        Called in this process for each dictionary, in order.
    lease
        Lease of the work.
    wall_s
        Time limit [s].

    Raises
    ------
    WorkError
        As from `call`.
    """
    path = lease.new_file()
    problem = None
    with path.open(encoding="utf-8") as reports:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_follow, reports, receive)
            work = (function, str(path), *args)
            alone = CapacityLimiter(1)
            try:
                await call(_report, *work, limiter=alone, wall_s=wall_s)
            except WorkError as error:
                # Raised outside the task group, which would wrap it.
                problem = error
            tasks.cancel_scope.cancel()
        _receive_lines(reports, receive)
    if problem is not None:
        raise problem


async def _follow(reports: TextIO, receive: Callable[[dict[str, Any]], None]) -> None:
    while True:
        await anyio.sleep(_REPORT_CHECK_S)
        _receive_lines(reports, receive)


def _receive_lines(reports: TextIO, receive: Callable[[dict[str, Any]], None]) -> None:
    """Receive all complete lines that have come."""
    while True:
        start = reports.tell()
        line = reports.readline()
        if not line.endswith("\n"):
            reports.seek(start)
            return
        receive(json.loads(line))


def _report(
    function: Callable[..., Iterator[Mapping[str, Any]]], path: str, *args: Any
) -> None:
    """Call a function and write what it yields as lines of JSON."""
    with Path(path).open("a", encoding="utf-8") as reports:
        for item in function(*args, should_stop=lambda: not Path(path).exists()):
            reports.write(json_line(item) + "\n")
            reports.flush()
