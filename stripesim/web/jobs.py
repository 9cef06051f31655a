"""Run the simulations of the page in the background: one job for each pair of options, while a tab shows it.

A job is known by its content, so tabs with the same values share one, and going back in the browser shows a
finished one. A tab that changes its values leaves its job, and a job without tabs stops. Jobs take turns:
each has two experiments running or waiting, and all of them share a few worker processes.
"""

import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
from anyio import CancelScope, CapacityLimiter, Event
from anyio.abc import TaskGroup

from stripesim.models.problems import WorkError, first_problem
from stripesim.scenarios.cells.files import content_of
from stripesim.web.experiments import EXPERIMENTS, Settings, run_experiment
from stripesim.web.options import PlanOption
from stripesim.web.worker import Lease, stream

#: Largest number of running jobs, and of jobs kept with their results.
RUNNING_MAX: Final = 8
KEPT_MAX: Final = 32
#: Worker processes that simulate, and experiments of one job that run or wait at the same time.
WORKERS: Final = 2
#: Time limit of one experiment [s].
WALL_S_MAX: Final = 120.0
#: A job stops after this time without a request from any tab [s].
UNWATCHED_S_MAX: Final = 30.0
#: Time after which a job stops whose last tab was closed, unless a page asks for it again [s].
CLOSED_S_MAX: Final = 5.0
# Time until the process of a stopped experiment is killed [s], because a new process takes seconds to start.
_GRACE_S: Final = 3.0

SideExperiment = tuple[str, str]  # Name of an experiment, and side.


@dataclass(eq=False)
class Job:
    """The experiments of both options, with everything that they have emitted.

    Attributes
    ----------
    options
        The valid options by side.
    settings
        Settings of the experiments.
    emitted
        What each experiment of each side has emitted.
    problems
        Why an experiment of a side failed.
    ended
        Experiments that have ended.
    state
        ``running``, ``done``, or ``stopped``.
    version
        Grows with every change, so that a page asks only for what it has not shown.
    """

    options: Mapping[str, PlanOption]
    settings: Settings
    id: str = ""
    emitted: dict[SideExperiment, list[dict[str, Any]]] = field(default_factory=dict)
    problems: dict[SideExperiment, str] = field(default_factory=dict)
    ended: set[SideExperiment] = field(default_factory=set)
    state: str = "running"
    version: int = 0
    watched_s: float = field(default_factory=time.monotonic)
    stopping: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.id = job_id(self.options, self.settings)

    @property
    def experiments(self) -> list[SideExperiment]:
        """Experiments in starting order."""
        return [(name, side) for name in EXPERIMENTS for side in self.options]

    @property
    def over(self) -> bool:
        """True once nothing more will be emitted."""
        return self.state != "running"

    @property
    def is_incomplete(self) -> bool:
        """True if the job is over without all results, so that it is worth another try."""
        return self.over and (self.state == "stopped" or bool(self.problems))

    def of(self, name: str, side: str) -> list[dict[str, Any]]:
        """Return what an experiment of a side has emitted."""
        return self.emitted.get((name, side), [])

    def problem(self, name: str, side: str) -> str:
        """Return why an experiment of a side failed, or ""."""
        return self.problems.get((name, side), "")


def job_id(options: Mapping[str, PlanOption], settings: Settings) -> str:
    """Return the fingerprint of the content of a job of valid options."""
    parts = []
    for side, option in options.items():
        assert option.scenario is not None
        parts.append(f"{side}={content_of(option.scenario)}")
    return hashlib.sha256(repr((parts, settings)).encode()).hexdigest()[:20]


class _TabJob(NamedTuple):
    """The job that a tab shows, and when the tab asked for it [s]."""

    job_id: str
    asked_s: float


class JobBoard:
    """All jobs, and the tabs that show them.

    Parameters
    ----------
    folder
        Folder for the files through which worker processes report.
    wall_s_max
        Time limit of one experiment [s].
    """

    def __init__(self, folder: Path, wall_s_max: float = WALL_S_MAX) -> None:
        self._folder = folder
        self._wall_s_max = wall_s_max
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._tabs: OrderedDict[str, _TabJob] = OrderedDict()
        self._limiter = CapacityLimiter(WORKERS)
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Host the jobs until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            while True:
                await anyio.sleep(1.0)
                self._stop_unwatched()

    def show(
        self,
        tab: str,
        options: Mapping[str, PlanOption],
        settings: Settings,
        asked_s: float,
    ) -> Job | None:
        """Return the job of these options for a tab, and start it unless it runs or is done.

        The tab, which asked at `asked_s`, leaves the job that it showed before. Return None if too many jobs
        are running.
        """
        key = job_id(options, settings)
        self.leave(tab, asked_s, unless=key)
        job = self._jobs.get(key)
        if job is None or job.is_incomplete:
            job = self._start(options, settings)
        if job is None:
            return None
        job.watched_s = time.monotonic()
        self._tabs[tab] = _TabJob(job.id, asked_s)
        self._tabs.move_to_end(tab)
        while len(self._tabs) > KEPT_MAX:
            self._tabs.popitem(last=False)
        return job

    def leave(self, tab: str, asked_s: float, unless: str = "") -> None:
        """Stop the job that a tab shows if no other tab shows it, unless it is the job of this id.

        A slow answer to values that the tab has replaced since, asked for earlier, changes nothing.
        """
        shown = self._tabs.get(tab)
        if shown is None or shown.job_id == unless or shown.asked_s > asked_s:
            return
        del self._tabs[tab]
        job = self._jobs.get(shown.job_id)
        if job is not None and not self._is_shown(shown.job_id):
            self._stop(job)

    def close(self, tab: str) -> None:
        """Note that a tab was closed or loaded again. The job that only it showed stops soon."""
        shown = self._tabs.pop(tab, None)
        if shown is None:
            return
        job = self._jobs.get(shown.job_id)
        if job is not None and not self._is_shown(shown.job_id):
            soon_s = time.monotonic() - UNWATCHED_S_MAX + CLOSED_S_MAX
            job.watched_s = min(job.watched_s, soon_s)

    def _is_shown(self, key: str) -> bool:
        return any(shown.job_id == key for shown in self._tabs.values())

    def get(self, key: str) -> Job | None:
        """Return a job and note that a page shows it, or None if it was dropped."""
        job = self._jobs.get(key)
        if job is not None:
            job.watched_s = time.monotonic()
        return job

    def _start(
        self, options: Mapping[str, PlanOption], settings: Settings
    ) -> Job | None:
        assert self._tasks is not None, "jobs start while `run` hosts them"
        running = [job for job in self._jobs.values() if not job.over]
        if len(running) >= RUNNING_MAX:
            return None
        job = Job(options, settings)
        self._jobs[job.id] = job
        self._jobs.move_to_end(job.id)
        over = [key for key, kept in self._jobs.items() if kept.over]
        for key in over[: max(0, len(self._jobs) - KEPT_MAX)]:
            del self._jobs[key]
        self._tasks.start_soon(self._simulate, job)
        return job

    def _stop(self, job: Job) -> None:
        if not job.over:
            job.state = "stopped"
            job.version += 1
            job.stopping.set()

    def _stop_unwatched(self) -> None:
        latest_s = time.monotonic() - UNWATCHED_S_MAX
        for job in self._jobs.values():
            if job.watched_s < latest_s:
                self._stop(job)

    async def _simulate(self, job: Job) -> None:
        """Run the experiments of a job, two at a time."""
        waiting = deque(job.experiments)
        lease = Lease(self._folder)
        with CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_kill_after_stop, job, lease, scope)
                async with anyio.create_task_group() as steps:
                    for _ in range(WORKERS):
                        steps.start_soon(self._work_off, job, waiting, lease)
                tasks.cancel_scope.cancel()
        lease.end()
        if not job.over:
            job.state = "done"
            job.version += 1

    async def _work_off(
        self, job: Job, waiting: deque[SideExperiment], lease: Lease
    ) -> None:
        while waiting and not job.over:
            experiment = waiting.popleft()
            async with self._limiter:
                if not job.over:
                    await self._experiment(job, experiment, lease)

    async def _experiment(
        self, job: Job, experiment: SideExperiment, lease: Lease
    ) -> None:
        name, side = experiment
        emitted = job.emitted.setdefault(experiment, [])

        def receive(item: dict[str, Any]) -> None:
            emitted.append(item)
            job.version += 1

        try:
            await stream(
                run_experiment,
                name,
                job.options[side].scenario,
                job.settings,
                receive=receive,
                lease=lease,
                wall_s=self._wall_s_max,
            )
        except WorkError as error:
            if not job.over:
                job.problems[experiment] = first_problem(error)
        job.ended.add(experiment)
        job.version += 1


async def _kill_after_stop(job: Job, lease: Lease, scope: CancelScope) -> None:
    """Ask the experiments of a stopped job to end, then end their processes."""
    await job.stopping.wait()
    lease.end()
    await anyio.sleep(_GRACE_S)
    scope.cancel()
