"""The tasks of a sweep on a Dask cluster."""

import importlib
import json
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from stripesim.scenarios.cells.files import first_line
from stripesim.scenarios.sweep.plan import SweepError
from stripesim.scenarios.sweep.task import Outcome, SweepTask, attempt, code_sha256

_CONNECT_TIMEOUT_S: Final = 20

#: How long a sweep waits for workers once all have gone [s].
TIMEOUT_S: Final = 300.0
_LOOK_EVERY_S: Final = 10.0

_SCHEMES: Final = ("tcp", "tls", "ws", "wss", "ucx", "inproc")


Result = TypeVar("Result")


class SweepLostError(SweepError):
    """What ran the tasks went away before all were done; rows that had come stay."""


def run_dask(
    tasks: Sequence[SweepTask], address: str, timeout_s: float = TIMEOUT_S
) -> Iterator[Outcome]:
    """Run tasks on a Dask cluster whose workers all see traces and maps by the scenario's paths."""
    distributed = _distributed()
    client = _connect(distributed, address)
    # Dask logs a traceback of its own when the scheduler goes away; that is said below, in a line.
    log = logging.getLogger("distributed.client")
    level_before = log.level
    log.setLevel(logging.CRITICAL)
    futures: dict[Any, SweepTask] = {}
    watch = _Watch(client, futures, timeout_s)
    try:
        _check_workers(client, address)
        watch.start()
        for task in tasks:
            # The name is that of the content, so what Dask already has under it is the same row.
            key = f"stripesim-{task.task_id}"
            futures[client.submit(attempt, task, key=key, pure=True)] = task
        for future in distributed.as_completed(list(futures), loop=client.loop):
            task = futures.pop(future)
            if future.status == "finished":
                yield future.result()
            elif future.status == "error":
                yield Outcome(task, None, first_line(future.exception()))
            elif watch.gave_up:
                wanted = "one or more; --resume goes on from here"
                raise SweepLostError(
                    f"--dask: {address}: got no worker for {timeout_s:g} s, wanted {wanted}"
                )
            else:
                raise SweepLostError(
                    f"--dask: {address}: got a scheduler that went away, wanted it to stay"
                )
            # Without this the cluster would keep every row until the end.
            future.release()
    except (OSError, distributed.CancelledError) as error:
        raise _lost(address, error) from None
    finally:
        watch.stop()
        if futures and client.status == "running":
            client.cancel(list(futures), force=True)
        client.close(timeout=5)
        log.setLevel(level_before)


def _lost(address: str, error: Exception) -> SweepLostError:
    got = first_line(error)
    return SweepLostError(
        f"--dask: {address}: got {got}, wanted a scheduler that stays"
    )


def map_dask(
    address: str, work: Callable[[int], Result], numbers: Iterable[int]
) -> list[Result]:
    """Apply a pure function to numbers on a Dask cluster; raises as `run_dask` does."""
    client = _connect(_distributed(), address)
    try:
        _check_workers(client, address)
        found: list[Result] = client.gather(client.map(work, list(numbers), pure=False))
        return found
    except OSError as error:
        raise _lost(address, error) from None
    finally:
        client.close(timeout=5)


def _distributed() -> Any:
    try:
        # By name, so that type checkers do not ask for what is an extra.
        return importlib.import_module("distributed")
    except ImportError:
        raise SweepError(
            "--dask: got no dask.distributed in this Python, wanted it: pip install 'stripesim[cluster]'"
        ) from None


class _Watch(threading.Thread):
    """Looks every few seconds whether there are workers, and cancels what waits for them in vain."""

    def __init__(
        self, client: Any, futures: dict[Any, SweepTask], timeout_s: float
    ) -> None:
        super().__init__(daemon=True)
        self._client, self._futures, self._timeout_s = client, futures, timeout_s
        self._ended = threading.Event()
        self.gave_up = False

    def run(self) -> None:
        missed_s = 0.0
        while not self._ended.wait(_LOOK_EVERY_S):
            try:
                workers = self._client.nthreads()
            except Exception:
                # A scheduler that went away shows in the tasks themselves.
                return
            missed_s = 0.0 if workers else missed_s + _LOOK_EVERY_S
            if not workers:
                words = f"no worker for {missed_s:.0f} s, waiting up to {self._timeout_s:g} s"
                print(f"--dask: {words}", file=sys.stderr, flush=True)
            if missed_s >= self._timeout_s:
                self.gave_up = True
                self._client.cancel(list(self._futures), force=True)
                return

    def stop(self) -> None:
        self._ended.set()


def _connect(distributed: Any, address: str) -> Any:
    wanted = "wanted the address of a Dask scheduler, such as tcp://127.0.0.1:8786"
    scheme, separator, _ = address.partition("://")
    if separator and scheme not in _SCHEMES:
        # A client refuses it as well, but then spends most of a minute on closing what it never opened.
        raise SweepError(f"--dask: {address}: got the scheme {scheme}, {wanted}")
    how = "address"
    if Path(address).is_file():
        how = "scheduler_file"
        try:
            described = json.loads(Path(address).read_bytes())
            sound = isinstance(described, dict) and isinstance(
                described.get("address"), str
            )
        except (ValueError, OSError):
            sound = False
        if not sound:
            # A client tries for most of a minute to read it.
            raise SweepError(
                f"--dask: {address}: got a file that no scheduler wrote, {wanted}"
            )
    try:
        return distributed.Client(
            **{how: address}, timeout=_CONNECT_TIMEOUT_S, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise SweepError(
            f"--dask: {address}: got {first_line(error)}, {wanted}"
        ) from None


def _check_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_CONNECT_TIMEOUT_S)
        found = client.run(code_sha256)
    except TimeoutError:
        raise SweepError(
            f"--dask: {address}: got a scheduler without workers, wanted one or more"
        ) from None
    except ImportError as error:
        got = f"workers without stripesim ({first_line(error)})"
        raise SweepError(f"--dask: {address}: got {got}, wanted it there") from None
    others = sorted(worker for worker, code in found.items() if code != code_sha256())
    if others:
        got = f"another stripesim at {', '.join(others)}"
        raise SweepError(
            f"--dask: {address}: got {got}, wanted the same on all workers"
        )
