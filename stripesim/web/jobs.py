"""Runs in the background: one at a time, a few waiting, each in a process of its own that a limit can end."""

import multiprocessing
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from queue import Full, Queue
from typing import Any, Final

#: Jobs that wait beside the one that runs, and jobs whose results are kept.
WAITING_MAX: Final = 4
KEPT_MAX: Final = 32
#: Wall-clock time of one job [s].
WALL_S_MAX: Final = 180.0
SEEDS: Final = 3
_COLUMNS: Final = ("iops", "saturated", "latency_mean_ns", "latency_p99_ns", "bottleneck")


class QueueFullError(Exception):
    """As many jobs wait as may."""


@dataclass
class Job:
    """Simulations that were asked for together, with the rows that are there so far."""

    options: Mapping[str, str]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    rows: list[dict[str, Any]] = field(default_factory=list)
    state: str = "waiting"
    problem: str = ""

    @property
    def total(self) -> int:
        """Runs in all [count]."""
        return SEEDS * len(self.options)

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in ("done", "failed")


class JobQueue:
    """A bounded queue of jobs and the thread that works on it; a job is ended after `wall_s_max` seconds."""

    def __init__(self, wall_s_max: float = WALL_S_MAX) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._queue: Queue[Job] = Queue(WAITING_MAX)
        self._lock = threading.Lock()
        self._wall_s_max = wall_s_max
        self._thread: threading.Thread | None = None

    def submit(self, options: Mapping[str, str]) -> Job:
        """Ask for simulations: side → scenario as TOML."""
        job = Job(options)
        with self._lock:
            try:
                self._queue.put_nowait(job)
            except Full:
                raise QueueFullError from None
            self._jobs[job.id] = job
            over = [key for key, one in self._jobs.items() if one.over]
            for old in over[: max(0, len(self._jobs) - KEPT_MAX)]:
                del self._jobs[old]
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
        return job

    def get(self, job_id: str) -> Job | None:
        """Return a job, or None where it is unknown or forgotten."""
        return self._jobs.get(job_id)

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            job.state = "running"
            try:
                self._run(job)
            except Exception as error:
                job.problem, job.state = f"{type(error).__name__}: {error}", "failed"

    def _run(self, job: Job) -> None:
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_simulate, args=(dict(job.options), sender), daemon=True)
        process.start()
        sender.close()
        end = time.monotonic() + self._wall_s_max
        kind, content = "row", f"ended after {self._wall_s_max:g} s: ask for a smaller cluster"
        try:
            while kind == "row" and receiver.poll(max(0.0, end - time.monotonic())):
                kind, found = receiver.recv()
                if kind == "row":
                    job.rows.append(found)
                else:
                    content = found
        except EOFError:
            content = "the simulation ended unexpectedly"
        finally:
            process.terminate()
            process.join()
            receiver.close()
        job.problem, job.state = content, "failed" if content else "done"


def _simulate(options: dict[str, str], sender: Connection) -> None:
    """Run each option under a few seeds and send rows as they come; runs in a process of its own."""
    from stripesim.scenarios.run.cell import row_of, run_cells
    from stripesim.scenarios.schema.loader import parse_scenario

    problem = ""
    try:
        asked = {side: parse_scenario(text, label=f"option {side}") for side, text in options.items()}
        for number in range(SEEDS):
            for side, scenario in asked.items():
                seeded = scenario.model_copy(update={"seed": scenario.seed + number})
                for cell, result in run_cells(seeded, "compiled"):
                    row = row_of(seeded, cell, result)
                    kept = {key: row.get(key) for key in _COLUMNS}
                    sender.send(("row", {"side": side, "seed": seeded.seed, **kept}))
    except ValueError as error:
        problem = str(error).splitlines()[0]
    sender.send(("end", problem))
    sender.close()
