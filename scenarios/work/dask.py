"""Run the tasks of a sweep on a Dask cluster."""

import hashlib
import importlib
import json
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from stripesim.models.problems import AnswerError, Problem, WorkError, first_problem
from stripesim.scenarios.work.task import (
    Batch,
    Batches,
    CompletedBatch,
    EndedTask,
    SweepTask,
    code_sha256,
)

_CONNECT_TIMEOUT_S: Final = 20

#: Time that a sweep waits for workers once all are gone [s].
TIMEOUT_S: Final = 300.0
_LOOK_EVERY_S: Final = 10.0

#: Batches that the scheduler holds for each thread of its workers [count]. They take seconds, so workers do
#: not wait for more and the scheduler's memory does not grow with the sweep.
_BATCHES_PER_THREAD: Final = 32

#: States of a future whose worker died after the task had ended. The scheduler runs the task again.
_TO_COME_AGAIN: Final = ("lost", "pending")

_SCHEMES: Final = ("tcp", "tls", "ws", "wss", "ucx", "inproc")


Result = TypeVar("Result")


def run_dask(
    tasks: Sequence[SweepTask], address: str, timeout_s: float = TIMEOUT_S
) -> Iterator[list[EndedTask]]:
    """Run tasks on a Dask cluster, and yield those that have ended together.

    Workers need the traces and maps at the paths in the scenario.
    """
    distributed = _distributed()
    client = _connect(distributed, address)
    # Dask also logs a traceback if the scheduler goes away; the errors below take one line.
    log = logging.getLogger("distributed.client")
    level_before = log.level
    log.setLevel(logging.CRITICAL)
    futures: dict[Any, Batch] = {}
    watch = _Watch(client, futures, timeout_s)
    try:
        _check_workers(client, address)
        watch.threads = sum(client.nthreads().values())
        watch.start()
        batches = Batches(tasks, watch.threads)
        waiting = deque(batches.first)
        completed = distributed.as_completed(loop=client.loop)

        def submit_waiting() -> None:
            while waiting and len(futures) < _BATCHES_PER_THREAD * watch.threads:
                batch = waiting.popleft()
                future = client.submit(
                    _attempt_batch, batch, key=_key(batch), pure=True
                )
                futures[future] = batch
                completed.add(future)

        submit_waiting()
        for future in completed:
            if future.status in _TO_COME_AGAIN:
                completed.add(future)
                continue
            batch = futures.pop(future)
            if future.status == "finished":
                answer = future.result()
                yield answer.outcomes(batch)
                waiting.extend(batches.rest_after(answer.duration_s))
            elif future.status == "error":
                reason = first_problem(future.exception())
                outcomes, more = batches.after_death(batch, reason)
                yield outcomes
                waiting.extend(more)
            else:
                raise _cut_off(address, timeout_s, has_scheduler=watch.gave_up)
            # Otherwise the cluster keeps every row until the end.
            future.release()
            submit_waiting()
    except (OSError, distributed.CancelledError) as error:
        raise _lost(address, error) from None
    finally:
        watch.stop()
        if futures and client.status == "running":
            client.cancel(list(futures), force=True)
        client.close(timeout=5)
        log.setLevel(level_before)


def _cut_off(address: str, timeout_s: float, *, has_scheduler: bool) -> WorkError:
    """Return the error for a cluster that ran no worker for too long, or whose scheduler is gone."""
    got = "a scheduler that went away"
    wanted = "it to stay"
    if has_scheduler:
        got = f"no worker for {timeout_s:g} s"
        wanted = "one or more; --resume goes on from here"
    return WorkError(Problem(place="--dask", key=address, got=got, wanted=wanted))


def map_dask(
    address: str, work: Callable[[int], Result], numbers: Iterable[int]
) -> list[Result]:
    """Apply a pure function to numbers on a Dask cluster.

    Raises
    ------
    AnswerError
        If the cluster cannot be reached, or has no workers of this version.
    WorkError
        If the cluster goes away.
    """
    client = _connect(_distributed(), address)
    try:
        _check_workers(client, address)
        futures = client.map(work, list(numbers), pure=False)
        results: list[Result] = client.gather(futures)
        return results
    except OSError as error:
        raise _lost(address, error) from None
    finally:
        client.close(timeout=5)


def _attempt_batch(batch: Batch) -> CompletedBatch:
    """Run a batch on a worker. The command loads no engine."""
    from stripesim.scenarios.work.attempt import attempt_batch

    return attempt_batch(batch)


def _key(batch: Batch) -> str:
    """Return a key that identifies the content, so that Dask may return an earlier result of the same key."""
    names = "".join(task.task_id for task in batch)
    return f"stripesim-{hashlib.sha256(names.encode()).hexdigest()}"


def _lost(address: str, error: Exception) -> WorkError:
    return WorkError(
        Problem(
            place="--dask",
            key=address,
            got=first_problem(error),
            wanted="a scheduler that stays",
        )
    )


def _distributed() -> Any:
    try:
        # Imported by name, so that type checkers do not require an optional dependency.
        return importlib.import_module("distributed")
    except ImportError:
        raise AnswerError(
            Problem(
                place="--dask",
                got="no dask.distributed in this Python",
                wanted="it: pip install 'stripesim[cluster]'",
            )
        ) from None


class _Watch(threading.Thread):
    """Checks regularly that there are workers, and cancels all tasks if there are none for too long.

    `threads` is the number of their threads at the last look that found some.
    """

    def __init__(
        self, client: Any, futures: dict[Any, Batch], timeout_s: float
    ) -> None:
        super().__init__(daemon=True)
        self._client = client
        self._futures = futures
        self._timeout_s = timeout_s
        self._look_every_s = min(_LOOK_EVERY_S, timeout_s)
        self._ended = threading.Event()
        self.gave_up = False
        self.threads = 0

    def run(self) -> None:
        missed_s = 0.0
        while not self._ended.wait(self._look_every_s):
            try:
                workers = self._client.nthreads()
            except Exception:
                # If the scheduler went away, the tasks fail with that error.
                return
            if workers:
                missed_s = 0.0
                self.threads = sum(workers.values())
                continue
            missed_s += self._look_every_s
            print(
                f"--dask: no worker for {missed_s:.0f} s, waiting up to {self._timeout_s:g} s",
                file=sys.stderr,
                flush=True,
            )
            if missed_s >= self._timeout_s:
                self.gave_up = True
                self._client.cancel(list(self._futures), force=True)
                return

    def stop(self) -> None:
        self._ended.set()


def _connect(distributed: Any, address: str) -> Any:
    wanted = "the address of a Dask scheduler, such as tcp://127.0.0.1:8786"
    scheme, separator, _ = address.partition("://")
    if separator and scheme not in _SCHEMES:
        # The client also refuses it, but then takes most of a minute to close the connection.
        raise AnswerError(
            Problem(
                place="--dask", key=address, got=f"the scheme {scheme}", wanted=wanted
            )
        )
    option = "address"
    if Path(address).is_file():
        option = "scheduler_file"
        if not _is_scheduler_file(Path(address)):
            # The client would retry for most of a minute.
            raise AnswerError(
                Problem(
                    place="--dask",
                    key=address,
                    got="a file that no scheduler wrote",
                    wanted=wanted,
                )
            )
    try:
        return distributed.Client(
            **{option: address}, timeout=_CONNECT_TIMEOUT_S, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise AnswerError(
            Problem(
                place="--dask", key=address, got=first_problem(error), wanted=wanted
            )
        ) from None


def _is_scheduler_file(path: Path) -> bool:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, OSError):
        return False
    return isinstance(content, dict) and isinstance(content.get("address"), str)


def _load_worker() -> str:
    """Load the engine on a worker, and return the hash of its source.

    All workers load it at the same time, before anything measures how long a task takes. A module that the
    call returned would also load here.
    """
    importlib.import_module("stripesim.scenarios.work.preload")
    return code_sha256()


def _check_workers(client: Any, address: str) -> None:
    """Require workers, all with the source of this process."""
    try:
        client.wait_for_workers(1, timeout=_CONNECT_TIMEOUT_S)
        code_of_workers = client.run(_load_worker)
    except TimeoutError:
        raise AnswerError(
            Problem(
                place="--dask",
                key=address,
                got="a scheduler without workers",
                wanted="one or more",
            )
        ) from None
    except ImportError as error:
        reason = first_problem(error)
        raise AnswerError(
            Problem(
                place="--dask",
                key=address,
                got=f"workers without stripesim ({reason})",
                wanted="it installed",
            )
        ) from None
    own_code = code_sha256()
    differing = sorted(
        worker for worker, code in code_of_workers.items() if code != own_code
    )
    if differing:
        raise AnswerError(
            Problem(
                place="--dask",
                key=address,
                got=f"another stripesim at {', '.join(differing)}",
                wanted="the same on all workers",
            )
        )
