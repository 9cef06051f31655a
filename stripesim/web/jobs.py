"""Run simulations in the background, one at a time, with a short queue and a time limit."""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from anyio import CapacityLimiter

from stripesim.scenarios.schema.keys import Scenario
from stripesim.web.worker import WorkError, call

#: Largest number of waiting jobs, and of jobs kept with their results.
WAITING_MAX: Final = 4
KEPT_MAX: Final = 32
#: Wall-clock limit of one job [s].
WALL_S_MAX: Final = 180.0
SEEDS: Final = 3
_COLUMNS: Final = (
    "iops",
    "saturated",
    "latency_mean_ns",
    "latency_p99_ns",
    "bottleneck",
)


class QueueFullError(Exception):
    """Raised if too many jobs are waiting."""


@dataclass
class Job:
    """Simulations submitted together, with their finished rows.

    `options` holds the scenario of each side, `notes` sentences about omissions.
    """

    options: Mapping[str, Scenario]
    notes: tuple[str, ...] = ()
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    rows: list[dict[str, Any]] = field(default_factory=list)
    state: str = "waiting"
    problem: str = ""

    @property
    def total(self) -> int:
        """Number of runs in this job."""
        return SEEDS * len(self.options)

    def rows_of(self, side: str) -> list[dict[str, Any]]:
        """Return the rows of one option."""
        return [row for row in self.rows if row["side"] == side]

    @property
    def over(self) -> bool:
        """True once the job is done or has failed."""
        return self.state in ("done", "failed")


class JobQueue:
    """A bounded queue of jobs. `run` works through them and stops a job after `wall_s_max` seconds."""

    def __init__(self, wall_s_max: float = WALL_S_MAX) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._waiting: asyncio.Queue[Job] = asyncio.Queue(WAITING_MAX)
        self._wall_s_max = wall_s_max

    def submit(
        self, options: Mapping[str, Scenario], notes: tuple[str, ...] = ()
    ) -> Job:
        """Queue one simulation per side. Raise `QueueFullError` if too many jobs are waiting."""
        job = Job(options, notes)
        try:
            self._waiting.put_nowait(job)
        except asyncio.QueueFull:
            raise QueueFullError from None
        self._jobs[job.id] = job
        over = [key for key, kept in self._jobs.items() if kept.over]
        for key in over[: max(0, len(self._jobs) - KEPT_MAX)]:
            del self._jobs[key]
        return job

    def get(self, job_id: str) -> Job | None:
        """Return a job, or None if it is unknown or was dropped."""
        return self._jobs.get(job_id)

    async def run(self) -> None:
        """Run the jobs one after another until cancelled."""
        limiter = CapacityLimiter(1)
        while True:
            job = await self._waiting.get()
            job.state = "running"
            job.problem = await self._simulate(job, limiter)
            job.state = "failed" if job.problem else "done"

    async def _simulate(self, job: Job, limiter: CapacityLimiter) -> str:
        """Run the first seed of each option, then the next seed, and so on. Return a problem or ""."""
        limit_s = self._wall_s_max
        try:
            with anyio.fail_after(limit_s):
                for number in range(SEEDS):
                    for side, scenario in job.options.items():
                        seeded = scenario.model_copy(
                            update={"seed": scenario.seed + number}
                        )
                        rows = await call(
                            simulate, seeded, limiter=limiter, wall_s=limit_s
                        )
                        job.rows += [{"side": side, **row} for row in rows]
        except TimeoutError:
            return f"stopped after {limit_s:g} s: simulate a smaller cluster"
        except WorkError as error:
            return str(error).splitlines()[0]
        return ""


def simulate(scenario: Scenario) -> list[dict[str, Any]]:
    """Run a scenario in a worker process and return the columns that the page shows."""
    from stripesim.scenarios.cells.run import run_cells

    return [
        {key: getattr(result.row, key) for key in _COLUMNS}
        for _, result in run_cells(scenario, "compiled")
    ]
