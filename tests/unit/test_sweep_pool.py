"""Items of killed workers are completed by others or abandoned with a reason, and never lost.

Workers here run functions of the standard library, which a fresh interpreter can import.
"""

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from stripesim.models.problems import AnswerError, WorkError
from stripesim.scenarios.work.dask import _Watch
from stripesim.scenarios.work.garbage import OBJECTS_PER_COLLECTION
from stripesim.scenarios.work.pool import (
    Death,
    cores_usable,
    held,
    results,
    run_pool,
    without_script,
)
from stripesim.scenarios.work.store import PartStore
from support.messages import states


def printed(code: str, environment: Mapping[str, str] | None = None) -> str:
    """Return what a fresh Python prints, which has no complaint."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_each_item_is_done_once() -> None:
    answers = list(run_pool(math.factorial, range(40), jobs=2))
    assert sorted(answers) == [(item, math.factorial(item)) for item in range(40)]


def test_workers_have_one_thread_each_and_are_other_processes() -> None:
    names = ["NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS"]
    wanted = {name: os.environ.get(name, "1") for name in names}
    assert dict(run_pool(os.getenv, names, jobs=1)) == wanted


@pytest.mark.parametrize("has_thread", [False, True])
def test_a_process_with_one_thread_forks_itself(has_thread: bool) -> None:
    # Given a process with one thread or with two, which handles SIGTERM as a sweep does
    code = (
        "import os, signal, sys, threading; from stripesim.scenarios.work.pool import run_pool\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('handler of the parent', flush=True))\n"
        "end = threading.Event()\n"
        f"if {has_thread}: threading.Thread(target=end.wait).start()\n"
        "question = \"__import__('os').getppid()\"\n"
        "print(dict(run_pool(eval, [question], jobs=1))[question] == os.getpid())\n"
        "end.set()\n"
    )
    # NumPy would start threads of its own.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    # When it runs an item
    said = printed(code, environment)
    # Then its worker is a fork, unless that would lose a thread, and ends without the handler.
    assert said == f"{not has_thread}\n"


def test_a_process_that_has_read_the_rows_of_a_sweep_still_forks_itself(
    tmp_path: Path,
) -> None:
    with PartStore(tmp_path, resume=False) as store:
        store.add([(SimpleNamespace(task_id="0" * 64, swept={}), {"iops": 0.1})])  # type: ignore[list-item]
    code = (
        "from pathlib import Path; from stripesim.scenarios.work.pool import _has_one_thread\n"
        "from stripesim.scenarios.work.store import PartStore\n"
        f"rows = PartStore(Path({str(tmp_path)!r}), resume=True).rows\n"
        "print(len(rows), _has_one_thread())\n"
    )
    # NumPy would start threads of its own.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    assert printed(code, environment).split() == ["1", "True"]


def test_workers_have_one_thread_each_where_their_parent_has_many() -> None:
    # In an environment of its own: that of the tests has one thread for some libraries.
    code = (
        "import os; from stripesim.scenarios.work.pool import _ONE_THREAD, run_pool; "
        "print(*sorted(run_pool(os.getenv, _ONE_THREAD, jobs=1)), sep='\\n')"
    )
    names = ("MKL", "NUMBA", "OMP", "OPENBLAS")
    limits = [*(f"{name}_NUM_THREADS" for name in names), "POLARS_MAX_THREADS"]
    own = {name: value for name, value in os.environ.items() if name not in limits}
    assert printed(code, own).split("\n")[:-1] == [str((name, "1")) for name in limits]


def test_workers_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    # Given a checkout of another version in the current folder, which is not the script's
    other = tmp_path / "here" / "stripesim"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("open('imported', 'w')")
    script = tmp_path / "script.py"
    script.write_text(
        "import math; from stripesim.scenarios.work.pool import run_pool\n"
        "if __name__ == '__main__': print(*run_pool(math.factorial, [3], jobs=1))"
    )
    # When workers start
    done = subprocess.run(
        [sys.executable, script],
        cwd=other.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    # Then they are this package's.
    assert done.stdout == "(3, 6)\n"
    assert not (other.parent / "imported").exists()


def test_an_item_that_kills_its_workers_is_abandoned_and_the_others_complete() -> None:
    # Signal 0 only asks whether one may send signals.
    answers = dict(
        run_pool(
            signal.raise_signal, [0, int(signal.SIGKILL), -0], jobs=1, attempts_max=2
        )
    )
    death = answers[int(signal.SIGKILL)]
    assert isinstance(death, Death)
    assert states(death.reason, "2 workers ... SIGKILL")
    assert len(answers) == 2


def test_the_item_of_a_killed_worker_is_done_by_another() -> None:
    answers = run_pool(time.sleep, [0.0, 0.7, 0.0, 0.0], jobs=2)
    first = next(answers)
    victims = multiprocessing.active_children()
    assert victims
    # Both workers die, at least one of them while sleeping.
    for victim in victims:
        assert victim.pid is not None
        os.kill(victim.pid, signal.SIGKILL)
    rest = list(answers)
    assert sorted(item for item, _ in [first, *rest]) == [0.0, 0.0, 0.0, 0.7]
    assert not any(isinstance(answer, Death) for _, answer in rest)


def test_a_worker_killed_in_the_middle_of_its_answer_loses_no_item() -> None:
    answers = run_pool(bytes, [10, 5_000_000], jobs=1)
    assert next(answers) == (10, bytes(10))
    (worker,) = multiprocessing.active_children()
    # Without a reader, the worker writes until the pipe is full. The pipe then holds half an answer.
    time.sleep(0.5)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    assert list(answers) == [(5_000_000, bytes(5_000_000))]


def test_workers_that_cannot_start_are_reported_immediately() -> None:
    class Unloadable:
        def __reduce__(self) -> tuple[object, ...]:
            return os._exit, (7,)

    with pytest.raises(WorkError, match=r"exit status 7\b"):
        list(run_pool(Unloadable(), [1, 2, 3], jobs=2))  # type: ignore[arg-type]


def test_more_workers_than_the_system_has_room_for_are_reported() -> None:
    # Given room for a few open files
    code = (
        "import math, resource; from stripesim.models.problems import WorkError\n"
        "from stripesim.scenarios.work.pool import run_pool\n"
        "list(run_pool(math.factorial, [3], jobs=1))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))\n"
        "try: list(run_pool(math.factorial, range(64), jobs=64))\n"
        "except WorkError as error: print(error)\n"
    )
    # When more workers start than have room
    said = printed(code)
    # Then the message says what to change.
    assert states(said, "workers: ... open files ... started ... fewer jobs")


def test_a_worker_of_another_pool_runs_items_itself() -> None:
    # Given a worker of multiprocessing's own pool, which may not start processes
    code = (
        "import math, multiprocessing\n"
        "from stripesim.scenarios.work.pool import run_pool\n"
        "def run(jobs): return sorted(run_pool(math.factorial, [3, 4], jobs=jobs))\n"
        "with multiprocessing.get_context('fork').Pool(1) as pool:\n"
        "    print(pool.map(run, [2]))\n"
    )
    # When it is asked for two workers, then it runs the items itself.
    assert printed(code) == "[[(3, 6), (4, 24)]]\n"


def test_a_fork_of_a_process_with_workers_is_reported() -> None:
    # Given a process with two threads, whose workers come from a server, and a fork of it with two threads
    code = (
        "import math, multiprocessing, threading\n"
        "from stripesim.models.problems import WorkError\n"
        "from stripesim.scenarios.work.pool import run_pool\n"
        "def run():\n"
        "    threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "    try: print(list(run_pool(math.factorial, [3], jobs=1)), flush=True)\n"
        "    except WorkError as error: print(error, flush=True)\n"
        "run()\n"
        "fork = multiprocessing.get_context('fork').Process(target=run)\n"
        "fork.start(); fork.join()\n"
    )
    # When both start workers
    first, second = printed(code).splitlines()
    # Then the fork says why it cannot.
    assert first == "[(3, 6)]"
    assert states(second, "workers: ... fork ... one job")


def test_closing_stops_workers_in_the_middle_of_their_items() -> None:
    answers = run_pool(time.sleep, [0.0, 600.0, 600.0], jobs=2)
    next(answers)
    begun = multiprocessing.active_children()
    answers.close()
    assert begun
    assert not multiprocessing.active_children()


KILLED = """
import time
from stripesim.scenarios.work.pool import results
question = "__import__('os').getpid()"
for _, worker in results(eval, [question], jobs=2, place="test"):
    print(worker, flush=True)
    time.sleep(60)
"""


def is_running(process: int) -> bool:
    """Return False if a process has ended, also if no one waits for it."""
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8").split()[2] != "Z"
    except OSError:
        return False


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert is_running(worker)
        parent.kill()
    deadline_s = time.monotonic() + 30
    while is_running(worker) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not is_running(worker)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_error_of_an_item_is_raised(jobs: int) -> None:
    # Given an item that a function refuses, and one at which it fails
    with pytest.raises(AnswerError, match="not defined for negative values"):
        list(results(math.factorial, [-1], jobs=jobs, place="test"))
    with pytest.raises(AnswerError, match=r"^test: TypeError: "):
        list(results(math.factorial, ["a"], jobs=jobs, place="test"))


def test_a_signal_meant_for_the_terminal_does_not_stop_workers() -> None:
    answers = run_pool(time.sleep, [0.0, 0.5], jobs=1)
    next(answers)
    (worker,) = multiprocessing.active_children()
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGINT)
    assert [answer for _, answer in answers] == [None]


def test_a_signal_meant_for_the_terminal_does_not_stop_a_server_that_starts() -> None:
    # Given the first server of a process, which has two threads
    code = (
        "import threading; from multiprocessing import forkserver\n"
        "from stripesim.scenarios.work.pool import _context\n"
        "end = threading.Event(); threading.Thread(target=end.wait).start()\n"
        "_context()\n"
        "status = open(f'/proc/{forkserver._forkserver._forkserver_pid}/status').read()\n"
        "print(status.partition('SigBlk:')[2].split()[0])\n"
        "end.set()\n"
    )
    # Then it blocks Ctrl-C while it loads the engine.
    blocked = int(printed(code), 16)
    assert blocked & 1 << signal.SIGINT - 1


def test_the_pool_works_from_a_thread() -> None:
    found: list[tuple[int, object]] = []
    thread = threading.Thread(
        target=lambda: found.extend(run_pool(math.factorial, [3, 4], jobs=2))
    )
    thread.start()
    thread.join()
    assert sorted(found, key=lambda pair: pair[0]) == [(3, 6), (4, 24)]


def test_processes_that_two_threads_start_at_once_leave_the_script_in_place() -> None:
    # Given a thread that starts a process
    script = sys.modules["__main__"]
    has_begun, may_end = threading.Event(), threading.Event()

    def start() -> None:
        with without_script():
            has_begun.set()
            may_end.wait()

    other = threading.Thread(target=start)
    # When it begins, if it can, while another thread does the same, and ends after that thread
    with without_script():
        other.start()
        has_begun.wait(0.1)
    may_end.set()
    other.join()
    # Then the module of the caller's script is there again.
    assert sys.modules["__main__"] is script


def test_the_server_of_workers_has_compiled_what_cells_use() -> None:
    statements = (
        "import stripesim.scenarios.work.preload\n"
        "from stripesim.models.placement.crush.kernel import map_rows\n"
        "from stripesim.sim.engine.compiled.kernel import run_machine\n"
        "print(map_rows.is_ready, run_machine.is_ready)\n"
    )
    assert printed(statements).split() == ["True", "True"]


def test_workers_that_load_the_engine_first_look_for_garbage_rarely() -> None:
    code = (
        "import gc, stripesim.scenarios.work.preload\n"
        "print(gc.isenabled(), gc.get_threshold()[0], gc.get_freeze_count() > 10_000)"
    )
    assert printed(code).split() == ["True", str(OBJECTS_PER_COLLECTION), "True"]


def test_a_worker_of_dask_that_loads_the_engine_first_has_no_profiler() -> None:
    pytest.importorskip("distributed")
    statements = (
        "import asyncio\n"
        "from distributed import Scheduler, Worker\n"
        "async def main():\n"
        "    async with Scheduler(port=0, dashboard=False) as scheduler:\n"
        "        preload = ['stripesim.scenarios.work.preload']\n"
        "        async with Worker(scheduler.address, preload=preload) as worker:\n"
        "            print('heartbeat' in worker.periodic_callbacks,"
        " 'profile' in worker.periodic_callbacks)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", statements], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"]


def test_workers_see_the_environment_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    # The server of workers may have started earlier.
    assert list(run_pool(os.getenv, ["PROBE"], jobs=1)) == [("PROBE", None)]
    monkeypatch.setenv("PROBE", "set")
    assert list(run_pool(os.getenv, ["PROBE"], jobs=1)) == [("PROBE", "set")]


def test_there_is_a_core_to_use() -> None:
    assert 1 <= cores_usable() <= (os.cpu_count() or 1)


def test_a_short_time_limit_without_dask_workers_is_kept() -> None:
    class NoWorkers:
        def nthreads(self) -> dict[str, int]:
            return {}

        def cancel(self, futures: list[object], *, force: bool) -> None:
            assert (futures, force) == ([], True)

    # Given a limit far below the 10 s between two looks at a patient sweep's workers
    watch = _Watch(NoWorkers(), {}, timeout_s=0.05)
    watch.start()
    watch.join(timeout=5)
    assert watch.gave_up


@pytest.mark.usefixtures("interruptible")
def test_a_held_signal_waits_even_if_another_thread_receives_it() -> None:
    # Given a thread that does not block the signal
    end = threading.Event()
    other = threading.Thread(target=end.wait)
    other.start()
    done = []

    def work() -> None:
        with held(signal.SIGINT):
            assert other.ident is not None
            signal.pthread_kill(other.ident, signal.SIGINT)
            time.sleep(0.2)
            done.append("work")

    # When it receives the signal during work that holds it back
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        end.set()
        other.join()
    # Then the work ends first.
    assert done == ["work"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
