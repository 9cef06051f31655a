"""Run items on worker processes that may die; another worker takes the item of a dead one.

Importing this is cheap, since a worker sets its environment before it loads its function. The pools of pebble
and loky were tried: pebble's workers (5.2) share one pipe and one lock, so that one killed at a bad moment
stops the sweep for good, and one death fails all items of loky (3.7). Here each worker has its own pipe.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any, Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: Deaths of workers after which an item is given up.
ATTEMPTS_MAX: Final = 3
#: Deaths before any worker is ready after which no more are started.
_FALSE_STARTS_MAX: Final = 3
_STOP_TIMEOUT_S: Final = 5.0
#: Variables that limit a worker to one thread, since there is a worker for each core.
_ONE_THREAD: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)


class PoolError(ValueError):
    """Worker processes cannot be started; the text says why in one line."""


class Death(NamedTuple):
    """An item was given up because its workers died."""

    reason: str


class _Job(NamedTuple, Generic[T]):
    """An item and how many workers died over it."""

    item: T
    deaths: int


def _work(pipe: connection.Connection[Any, Any], pickled: bytes) -> None:
    """Send None once all is loaded, then answer each item with a result until the pipe ends."""
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    # Only the parent reacts to Ctrl-C; it ends workers with SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()
    do: Callable[[Any], Any] = pickle.loads(pickled)
    with contextlib.suppress(EOFError, ConnectionError):
        pipe.send(None)
        while True:
            pipe.send(do(pipe.recv()))


def _follow_parent() -> None:
    """Exit with the parent, even in the middle of a long item, if it is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


class _Worker(Generic[T]):
    """A process, the pipe to it, and its current job."""

    def __init__(self, pickled: bytes) -> None:
        # Numba's and Polars' threads do not survive a fork, so a fresh interpreter is started.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_work, args=(theirs, pickled), daemon=True
        )
        # A Ctrl-C reaches every process of the terminal. Blocked here, the signal is blocked in the child
        # from its first instruction, and reaches this process right afterwards.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # With this copy closed, the death of the worker shows as the end of the pipe.
        theirs.close()
        self.ready = False
        self.job: _Job[T] | None = None

    def give(self, job: _Job[T]) -> None:
        self.job = job
        # A worker that has died meanwhile is noticed when its answer is awaited.
        with contextlib.suppress(ConnectionError):
            self.pipe.send(job.item)

    def answer(self) -> tuple[Any] | None:
        """Return what the worker sent; None if it has died, perhaps in the middle of a message."""
        try:
            return (self.pipe.recv(),)
        except (EOFError, OSError):
            return None

    def stop(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join(_STOP_TIMEOUT_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()

    def cause_of_death(self) -> str:
        self.process.join(_STOP_TIMEOUT_S)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exit status {code}"


def cores_usable() -> int:
    """Count the processors this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_pool(
    do: Callable[[T], R],
    items: Iterable[T],
    *,
    jobs: int,
    attempts_max: int = ATTEMPTS_MAX,
) -> Generator[tuple[T, R | Death], None, None]:
    """Yield each item with the result of `do`, in order of completion, or with a `Death`.

    `do` is a function of a module that workers can import, and must not raise. Closing the iterator, or an
    exception in it such as KeyboardInterrupt, stops all workers at once; unfinished items are lost.

    Raises
    ------
    PoolError
        If several workers in a row die before they are ready.
    """
    waiting = deque(_Job(item, 0) for item in items)
    workers: list[_Worker[T]] = []
    false_starts = 0
    # Workers set their environment first and load this afterwards, so it travels as bytes.
    pickled = pickle.dumps(do)
    try:
        while waiting or any(worker.job for worker in workers):
            busy = sum(worker.job is not None for worker in workers)
            while len(workers) < min(jobs, busy + len(waiting)):
                workers.append(_Worker(pickled))
            ready = connection.wait([worker.pipe for worker in workers])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                answer = worker.answer()
                job = worker.job
                if answer is not None:
                    worker.job = None
                    worker.ready = True
                    false_starts = 0
                    if waiting:
                        worker.give(waiting.popleft())
                    if job is not None:
                        yield job.item, answer[0]
                    continue
                workers.remove(worker)
                cause = worker.cause_of_death()
                worker.stop()
                if not worker.ready:
                    false_starts += 1
                    if false_starts >= _FALSE_STARTS_MAX:
                        raise PoolError(
                            f"workers: got {cause} before they were ready, wanted them to start"
                        )
                elif job is not None and job.deaths + 1 < attempts_max:
                    waiting.appendleft(_Job(job.item, job.deaths + 1))
                elif job is not None:
                    reason = f"{attempts_max} workers died over it, the last {cause}"
                    yield job.item, Death(reason)
    finally:
        # Terminate all first, so that they end in parallel.
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.stop()
