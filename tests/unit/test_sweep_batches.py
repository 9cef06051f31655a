"""Tasks go to workers in batches of about a tenth of a second, and none is lost or run in vain."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stripesim.models.problems import WorkError
from stripesim.scenarios.answers.sweep import run as sweep_run
from stripesim.scenarios.answers.sweep.plan import plan_sweep
from stripesim.scenarios.answers.sweep.run import run_sweep
from stripesim.scenarios.work import dask
from stripesim.scenarios.work.pool import Death
from stripesim.scenarios.work.store import PartStore
from stripesim.scenarios.work.task import (
    Batch,
    Batches,
    CompletedBatch,
    EndedTask,
    SweepTask,
)

TINY = """schemes = ["rep:3"]
[workload]
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
requests = 60
image_bytes = "1GB"
"""


@pytest.fixture
def tasks(tmp_path: Path) -> tuple[SweepTask, ...]:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    depths = ",".join(map(str, range(1, 101)))
    return plan_sweep(path, over=[f"workload.queue_depth={depths}"]).tasks


def sizes_after(tasks: tuple[SweepTask, ...], duration_s: float) -> list[int]:
    """Return the sizes of all batches, if each of the first tasks takes the same time."""
    batches = Batches(tasks, workers=2)
    sent = list(batches.first)
    for _ in batches.first:
        sent += batches.rest_after(duration_s)
    assert [task for batch in sent for task in batch] == list(tasks)
    return [len(batch) for batch in sent]


def test_batches_take_a_tenth_of_a_second(tasks: tuple[SweepTask, ...]) -> None:
    # Two workers get four tasks each, one by one. 92 are left, and ten of 10 ms take 0.1 s.
    assert sizes_after(tasks, 0.0099) == [1] * 8 + [10] * 9 + [2]


def test_long_tasks_go_one_by_one(tasks: tuple[SweepTask, ...]) -> None:
    assert sizes_after(tasks, 0.2) == [1] * 100
    assert sizes_after(tasks, math.inf) == [1] * 100


def test_the_longest_task_decides(tasks: tuple[SweepTask, ...]) -> None:
    batches = Batches(tasks, workers=2)
    later = [batches.rest_after(duration_s) for duration_s in (0.001, 0.03, 0.002)]
    assert later == [[], [], []]
    # Half of the first eight tasks have ended. Three tasks of 30 ms take nearly 0.1 s.
    assert {len(batch) for batch in batches.rest_after(0.001)} == {3, 92 % 3}


def test_a_batch_that_kills_its_worker_is_tried_task_by_task(
    tasks: tuple[SweepTask, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The 50th task kills each worker.
    (killer,) = (task for task in tasks if task.swept["workload.queue_depth"] == 50)
    refused: list[int] = []

    def pool(
        do: Callable[[Batch], CompletedBatch], waiting: deque[Batch], *, jobs: int
    ) -> Iterator[tuple[Batch, Any]]:
        while waiting:
            batch = waiting.popleft()
            if killer in batch:
                refused.append(len(batch))
                yield batch, Death("killed by SIGKILL")
                continue
            rows: list[dict[str, Any] | None] = [
                {"scheme": task.cell.scheme} for task in batch
            ]
            yield batch, CompletedBatch(rows, [None] * len(batch), 0.0099)

    monkeypatch.setattr(sweep_run, "run_pool", pool)
    ended = list(sweep_run._outcomes(tasks, 2, None, 1.0))
    outcomes = [outcome for together in ended for outcome in together]
    assert refused == [10, 1]
    assert [outcome.task for outcome in outcomes if outcome.row is None] == [killer]
    assert {outcome.task.task_id for outcome in outcomes} == {
        task.task_id for task in tasks
    }
    assert len(outcomes) == len(tasks)


def test_the_longest_tasks_of_a_replication_run_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "two.toml"
    path.write_text(TINY.replace('"read"', '"read", "write"'))
    plan = plan_sweep(path, over=['schemes=rep:3,"rs:2,1"'], replications=2)
    order: list[tuple[int, str, str]] = []

    def note(words: str, total: int | None = None) -> None:
        scheme, op, *_, replication = words.split()
        order.append((int(replication), scheme, op))

    run_sweep(plan, jobs=1, progress=note)
    # A write reaches three shards, a read two of rs:2,1 and one of rep:3.
    first = [
        ("rep:3", "write"),
        ("rs:2,1", "write"),
        ("rs:2,1", "read"),
        ("rep:3", "read"),
    ]
    assert order == [(number, *kind) for number in (0, 1) for kind in first]


def test_a_sweep_whose_workers_no_longer_start_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    plan = plan_sweep(path, over=["workload.queue_depth=1,2,3"])
    run_inline = sweep_run._outcomes

    def one_then_none(
        tasks: tuple[SweepTask, ...], *_: Any
    ) -> Iterator[list[EndedTask]]:
        yield from run_inline(tasks[:1], 1, None, 1.0)
        raise WorkError("workers: got a signal, wanted them to start")

    monkeypatch.setattr(sweep_run, "_outcomes", one_then_none)
    result = run_sweep(plan)
    # Of three tasks, one ended before the workers failed.
    assert result.rows.height == 1
    assert result.stopped == "workers: got a signal, wanted them to start"


def test_rows_of_a_batch_are_stored_together(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    depths = ",".join(map(str, range(1, 33)))
    plan = plan_sweep(path, over=[f"workload.queue_depth={depths}"])
    with PartStore(tmp_path / "out", resume=False) as store:
        run_sweep(plan, jobs=1, store=store)
    files = list((tmp_path / "out" / "parts").glob("*.jsonl.gz"))
    # A task takes some milliseconds, and a batch a tenth of a second.
    assert 1 <= len(files) <= 32 // 2
    with PartStore(tmp_path / "out", resume=True) as store:
        assert store.rows.keys() == {task.task_id for task in plan.tasks}


class OneTaskAtATime:
    """A cluster of two threads that runs a task when its result is asked for, and counts those that wait."""

    loop = None
    status = "running"
    CancelledError = RuntimeError

    def __init__(self) -> None:
        self.waiting: deque[Any] = deque()
        self.waiting_max = 0

    def nthreads(self) -> dict[str, int]:
        return {"tcp://a": 1, "tcp://b": 1}

    def submit(self, work: Callable[[Batch], Any], batch: Batch, **_: object) -> Any:
        return _Future(
            status="finished", result=lambda: work(batch), release=lambda: None
        )

    def as_completed(self, loop: None) -> "OneTaskAtATime":
        return self

    def add(self, future: Any) -> None:
        self.waiting.append(future)
        self.waiting_max = max(self.waiting_max, len(self.waiting))

    def __iter__(self) -> Iterator[Any]:
        while self.waiting:
            yield self.waiting.popleft()

    def close(self, timeout: float) -> None:
        pass


class _Future(SimpleNamespace):
    __hash__ = object.__hash__


class LosesResults(OneTaskAtATime):
    """A cluster on which the worker of every third task dies before its result is fetched."""

    def __iter__(self) -> Iterator[Any]:
        for number, future in enumerate(super().__iter__()):
            future.status = "finished" if number % 3 else "lost"
            yield future


def use(cluster: OneTaskAtATime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sweeps find a cluster, and let its tasks end at once."""
    monkeypatch.setattr(dask, "_distributed", lambda: cluster)
    monkeypatch.setattr(dask, "_connect", lambda *_: cluster)
    monkeypatch.setattr(dask, "_check_workers", lambda *_: None)
    monkeypatch.setattr(
        dask,
        "_attempt_batch",
        lambda batch: CompletedBatch([{}] * len(batch), [None] * len(batch), 1.0),
    )


def test_results_that_die_with_their_worker_are_waited_for(
    tasks: tuple[SweepTask, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(LosesResults(), monkeypatch)
    ended = list(dask.run_dask(tasks, "tcp://one"))
    found = [one.task.task_id for together in ended for one in together]
    assert sorted(found) == sorted(task.task_id for task in tasks)


def test_a_scheduler_holds_few_batches_of_a_long_sweep(
    tasks: tuple[SweepTask, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = OneTaskAtATime()
    use(cluster, monkeypatch)

    ended = list(dask.run_dask([*tasks, *tasks], "tcp://one"))

    assert [one.task for together in ended for one in together] == [*tasks, *tasks]
    assert cluster.waiting_max == 64
