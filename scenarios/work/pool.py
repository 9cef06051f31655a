"""Run items on worker processes, and retry the item of a worker that dies.

It uses no library because pebble (5.2) shares one pipe and one lock among workers, so that a worker killed at
the wrong moment stops the sweep permanently, and in loky (3.7) one death fails all items. Here each worker
has a pipe.

Workers are forks of a process that has loaded the engine's modules. They so start in some hundredths of a
second, and a kernel without machine code compiles once. A process with one thread forks itself. Others, such
as those that have loaded Polars, would lose their threads in a fork: they start a server, which loads the
engine and forks workers (``server.py``). So do all processes on systems that do not tell the number of
threads.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from stripesim.scenarios.work.garbage import collect_rarely

if TYPE_CHECKING:
    # Python in a browser cannot import it.
    from multiprocessing import connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

    from stripesim.models.problems import Problem

T = TypeVar("T")
R = TypeVar("R")

#: Deaths of workers after which an item fails.
ATTEMPTS_MAX: Final = 3
#: Consecutive deaths of workers before they are ready that end the pool.
_FALSE_STARTS_MAX: Final = 3
_STOP_TIMEOUT_S: Final = 5.0
#: Variables that limit a worker to one thread, since each core has a worker.
_ONE_THREAD: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
_PRELOAD: Final = "stripesim.scenarios.work.server"
#: Held while a process starts, since that changes what all threads see: `__main__` and the environment.
_starting: Final = threading.Lock()
#: Where Linux lists the threads of this process, also those of libraries.
_THREADS: Final = Path("/proc/self/task")
#: Variable that keeps a new interpreter's current folder out of its module path.
_SAFE_PATH: Final = "PYTHONSAFEPATH"


class Death(NamedTuple):
    """The failure of an item whose workers died."""

    reason: str


class RaisedProblems(NamedTuple):
    """The problems of an item that failed, because not every exception can be sent between processes."""

    problems: tuple[Problem, ...]


class _Attempt(NamedTuple, Generic[T]):
    """An item and the number of workers that died while they ran it."""

    item: T
    deaths: int


def limit_threads() -> None:
    """Set the variables that limit libraries to one thread, unless the user has set them."""
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")


def keep_objects() -> None:
    """Exempt present objects from garbage collection, and make it rarer."""
    # Workers share the memory of old ones as long as no process writes to it, and the collector would.
    gc.freeze()
    collect_rarely()


def _work(
    pipe: connection.Connection[Any, Any], pickled: bytes, environment: dict[str, str]
) -> None:
    """Send None when ready, then a result for each item until the pipe closes."""
    # Only the parent reacts to Ctrl-C; it ends workers with SIGTERM, which waits until here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    keep_objects()
    # The server has the environment of the time when it started.
    os.environ.clear()
    os.environ.update(environment)
    limit_threads()
    end_with_parent()
    do: Callable[[Any], Any] = pickle.loads(pickled)
    with contextlib.suppress(EOFError, ConnectionError):
        pipe.send(None)
        while True:
            pipe.send(do(pipe.recv()))


@contextlib.contextmanager
def without_script() -> Iterator[None]:
    """Start processes that do not run the caller's script.

    multiprocessing makes a new process run the file of `__main__` first. Workers need nothing of it. It may
    have no guard (``if __name__ == "__main__":``), and no file (``python -``).
    """
    with _starting:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = script


def end_with_parent() -> None:
    """End this process when its parent is killed, even during a long item."""
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    from multiprocessing import connection

    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


class _Worker(Generic[T]):
    """A process, the pipe to it, and its current job."""

    def __init__(self, pickled: bytes) -> None:
        context = _context()
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            target=_work, args=(theirs, pickled, dict(os.environ)), daemon=True
        )
        # A fork has the handlers of this process until it sets its own.
        with held(signal.SIGINT, signal.SIGTERM), without_script():
            self.process.start()
        # Close our copy, so that the pipe ends when the worker dies.
        theirs.close()
        self.ready = False
        self.job: _Attempt[T] | None = None

    def give(self, job: _Attempt[T]) -> None:
        self.job = job
        # If the worker has died in the meantime, `answer` notices.
        with contextlib.suppress(ConnectionError):
            self.pipe.send(job.item)

    def answer(self) -> tuple[Any] | None:
        """Return the worker's message, or None if it died, even within a message."""
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


def _context() -> BaseContext:
    """Return what starts workers: this process, with the engine compiled, or the server."""
    if _has_one_thread():
        from stripesim.scenarios.work.attempt import compile_engine

        compile_engine()
        if _has_one_thread():
            return multiprocessing.get_context("fork")
    from multiprocessing import forkserver, resource_tracker

    multiprocessing.set_forkserver_preload([_PRELOAD])
    # The server's start would start the tracker, which unblocks the signal.
    resource_tracker.ensure_running()
    # Ctrl-C reaches every process of the terminal. The server and its workers inherit the blocked signal
    # from their first instruction on; this process receives it once it is unblocked.
    with held(signal.SIGINT), _safe_path():
        forkserver.ensure_running()
    return multiprocessing.get_context("forkserver")


def _has_one_thread() -> bool:
    """Return True if this process has one thread. Only Linux says so."""
    try:
        return len(list(_THREADS.iterdir())) == 1
    except OSError:
        return False


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """Keep a process that starts within from importing what lies in the current folder.

    A folder `stripesim` there, such as another checkout's, would otherwise simulate in place of this package.
    """
    with _starting:
        before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SAFE_PATH]
            else:
                os.environ[_SAFE_PATH] = before


@contextlib.contextmanager
def held(*signals: signal.Signals) -> Iterator[None]:
    """Hold back signals until a part of the work is done as a whole. In a browser there are none."""
    if not has_processes():
        yield
        return
    came: list[int] = []
    handlers = {}
    # A blocked signal still reaches another thread, and its handler then runs in the main one.
    if threading.current_thread() is threading.main_thread():
        for number in signals:
            handlers[number] = signal.signal(
                number, lambda number, _: came.append(number)
            )
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


@cache
def has_processes() -> bool:
    """Return False if Python cannot start processes, as in a browser."""
    try:
        return find_spec("_multiprocessing") is not None
    except ImportError:
        return False


def may_start_processes() -> bool:
    """Return False in a browser, and in a daemonic process such as a worker of `multiprocessing.Pool`."""
    return has_processes() and not multiprocessing.current_process().daemon


def cores_usable() -> int:
    """Return the number of processors that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def workers_wanted(jobs: int | None) -> int:
    """Return the number of worker processes that a user asks for, by default one for each processor.

    Raises
    ------
    WorkError
        If the number is below 1.
    """
    if jobs is None:
        return cores_usable()
    if jobs < 1:
        from stripesim.models.problems import Problem, WorkError

        raise WorkError(Problem(place="--jobs", got=str(jobs), wanted="at least 1"))
    return jobs


def run_pool(
    do: Callable[[T], R],
    items: Iterable[T],
    *,
    jobs: int,
    attempts_max: int = ATTEMPTS_MAX,
) -> Generator[tuple[T, R | Death], None, None]:
    """Yield each item with the result of `do`, in order of completion, or with a `Death`.

    Closing the iterator, or an exception such as KeyboardInterrupt, stops all workers immediately. Unfinished
    items are lost. Where no process may start, this process runs the items one after the other.

    Parameters
    ----------
    do
        A function of a module that workers can import. It must not raise.
    items
        Arguments of the function; they must be picklable. The consumer may append to a deque while it
        iterates.
    jobs
        Number of worker processes.
    attempts_max
        Deaths of workers after which an item fails.

    Raises
    ------
    WorkError
        If several workers in a row die before they are ready, or the system has no room for another one.
    """
    if may_start_processes():
        yield from _run_in_workers(do, items, jobs, attempts_max)
    else:
        yield from _in_this_process(do, items)


def results(
    do: Callable[[T], R], items: Iterable[T], *, jobs: int, place: str
) -> Generator[tuple[T, R], None, None]:
    """Yield each item with its result as `run_pool` does, or raise the first error.

    Parameters
    ----------
    do, items
        As for `run_pool`, but the function may raise.
    jobs
        Number of worker processes. 1 runs the items in this process.
    place
        Where an error happens that no user causes, as messages name it.

    Raises
    ------
    AnswerError
        If an item fails, with its problems.
    WorkError
        If the workers of an item die, or none can start.
    """
    from stripesim.models.problems import AnswerError, Problem, WorkError

    attempt = partial(_attempt, do, place)
    attempts: Generator[tuple[T, R | RaisedProblems | Death], None, None]
    if jobs > 1:
        attempts = run_pool(attempt, items, jobs=jobs)
    else:
        attempts = _in_this_process(attempt, items)
    with contextlib.closing(attempts):
        for item, result in attempts:
            if isinstance(result, Death):
                raise WorkError(Problem(place=place, detail=result.reason))
            if isinstance(result, RaisedProblems):
                raise AnswerError(*result.problems)
            yield item, result


def _attempt(do: Callable[[T], R], place: str, item: T) -> R | RaisedProblems:
    from stripesim.models.problems import Problem, first_problem, problems_of

    try:
        return do(item)
    except (ValueError, OSError) as error:
        return RaisedProblems(problems_of(error))
    except Exception as error:
        detail = f"{type(error).__name__}: {first_problem(error)}"
        return RaisedProblems((Problem(place=place, detail=detail),))


def _in_this_process(
    do: Callable[[T], R], items: Iterable[T]
) -> Generator[tuple[T, R], None, None]:
    # The consumer may append to its deque.
    waiting = items if isinstance(items, deque) else deque(items)
    while waiting:
        item = waiting.popleft()
        yield item, do(item)


def _run_in_workers(
    do: Callable[[T], R], items: Iterable[T], jobs: int, attempts_max: int
) -> Generator[tuple[T, R | Death], None, None]:
    queue = _Queue(items, attempts_max)
    workers: list[_Worker[T]] = []
    false_starts = 0
    # Sent as bytes, since workers set their environment before they load the function.
    pickled = pickle.dumps(do)
    try:
        while queue or any(worker.job for worker in workers):
            queue.give_all(workers)
            busy = sum(worker.job is not None for worker in workers)
            while len(workers) < min(jobs, busy + len(queue)):
                workers.append(_started(pickled, len(workers)))
            for worker in _with_answers(workers):
                job = worker.job
                answer = worker.answer()
                if answer is not None:
                    worker.job = None
                    worker.ready = True
                    false_starts = 0
                    queue.give_all([worker])
                    if job is not None:
                        yield job.item, answer[0]
                    continue
                workers.remove(worker)
                cause = worker.cause_of_death()
                worker.stop()
                if not worker.ready:
                    false_starts += 1
                    _check_false_starts(false_starts, cause)
                elif job is not None and (death := queue.retry(job, cause)):
                    yield job.item, death
    finally:
        _stop_all(workers)


def _with_answers(workers: Sequence[_Worker[T]]) -> list[_Worker[T]]:
    """Wait for a worker that has an answer or has died, and return all of these."""
    from multiprocessing import connection

    ready = connection.wait([worker.pipe for worker in workers])
    return [worker for worker in workers if worker.pipe in ready]


def _started(pickled: bytes, workers_count: int) -> _Worker[T]:
    """Start another worker.

    Raises
    ------
    WorkError
        If the system has no room for it (processes, memory or open files), or the server of workers belongs
        to the process that this one was forked from.
    """
    from stripesim.models.problems import Problem, WorkError

    try:
        return _Worker(pickled)
    except ChildProcessError:
        got = "a fork of a process that has started workers itself"
        wanted = "one job, or a process that was spawned"
        raise WorkError(Problem(key="workers", got=got, wanted=wanted)) from None
    except OSError as error:
        raise WorkError(
            Problem(
                key="workers",
                got=f"{error.strerror or error} after {workers_count} of them had started",
                wanted="fewer jobs, or higher limits (ulimit)",
            )
        ) from None


def _stop_all(workers: Iterable[_Worker[T]]) -> None:
    # Terminate all before waiting, so that they end in parallel.
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.stop()


def _check_false_starts(false_starts: int, cause: str) -> None:
    if false_starts >= _FALSE_STARTS_MAX:
        from stripesim.models.problems import Problem, WorkError

        raise WorkError(
            Problem(
                key="workers",
                got=f"{cause} before they were ready",
                wanted="them to start",
            )
        )


class _Queue(Generic[T]):
    """Items that wait for a worker: first those whose workers died."""

    def __init__(self, items: Iterable[T], attempts_max: int) -> None:
        # The consumer may append to its deque.
        self.fresh = items if isinstance(items, deque) else deque(items)
        self.retried: deque[_Attempt[T]] = deque()
        self.attempts_max = attempts_max

    def __len__(self) -> int:
        return len(self.retried) + len(self.fresh)

    def give_all(self, workers: Iterable[_Worker[T]]) -> None:
        """Give the next items, as far as there are any, to workers that are ready and have none."""
        for worker in workers:
            if not worker.ready or worker.job is not None:
                continue
            if self.retried:
                worker.give(self.retried.popleft())
            elif self.fresh:
                worker.give(_Attempt(self.fresh.popleft(), 0))

    def retry(self, job: _Attempt[T], cause: str) -> Death | None:
        """Queue an item whose worker died again, or return its `Death` after the last attempt."""
        if job.deaths + 1 < self.attempts_max:
            self.retried.appendleft(_Attempt(job.item, job.deaths + 1))
            return None
        return Death(f"{self.attempts_max} workers died over it, the last {cause}")
