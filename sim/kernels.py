"""The kernels that the package brings as machine code, each with an example call.

``python -m stripesim.sim.kernels`` builds them (``models/jit/build.py``). The examples call the functions
that use kernels, on the smallest inputs. Nothing is simulated: only the types of arguments matter.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stripesim.models.jit import CompiledKernel, recorded_calls
from stripesim.models.jit.prebuilt import FOLDER, WASM, is_current, name_of
from stripesim.models.placement.crush.build import build_map
from stripesim.models.placement.crush.text import parse_map
from stripesim.models.problems import KernelError
from stripesim.sim.durability import bursts
from stripesim.sim.durability.aims import aims_of, surely_lost
from stripesim.sim.durability.splitting import initial_state, prepare
from stripesim.sim.durability.system import (
    Burst,
    DriveRepair,
    Lifetime,
    System,
    code_of,
)
from stripesim.sim.durability.walks import groups, history, pool
from stripesim.sim.engine.compiled import actions
from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.kernel import run_machine
from stripesim.sim.engine.program import Program, Resources

if TYPE_CHECKING:
    from stripesim.models.jit.build import Intermediate

_MSR_MAP = """\
device 0 osd.0
type 0 osd
type 1 host
type 2 root
host h {
  id -1
  alg straw2
  hash 0
  item osd.0 weight 1.000
}
root top {
  id -2
  alg straw2
  hash 0
  item h weight 1.000
}
rule msr {
  id 0
  type msr_indep
  step take top
  step choosemsr 1 type host
  step choosemsr 1 type osd
  step emit
}
"""


class _NoBook:
    templates = ()
    bindings = np.zeros((0, 1), dtype=np.int32)


def example_calls() -> dict[CompiledKernel, tuple[Any, ...]]:
    """Return the arguments of a call of each kernel."""
    calls: dict[CompiledKernel, tuple[Any, ...]] = {}
    for example in _examples():
        calls.update(_calls_of(example))
    return calls


def _examples() -> tuple[Callable[[], None], ...]:
    """Return functions that call kernels. Kernels of one function share inner functions."""
    return _run_engine, _map_placement_groups, _walk


def _calls_of(example: Callable[[], None]) -> dict[CompiledKernel, tuple[Any, ...]]:
    with recorded_calls() as calls:
        example()
    return dict(calls)


def empty_program() -> Program:
    """Return a program without resources and requests."""
    nothing = np.zeros(0, dtype=np.int64)
    none = Resources((), (), nothing, nothing)
    return Program(resources=none, book=_NoBook(), streams=())


def _run_engine() -> None:
    world = layout.empty_world(empty_program(), log_rows=1)
    marks = np.zeros(1, dtype=np.uint8)
    entries = np.zeros(1, dtype=layout.ENTRY)
    run_machine(world)
    actions.cut_off(world, marks, marks, entries, np.zeros(1, dtype=layout.LOST))
    actions.void_services(world, entries)
    actions.wake(world, marks)
    actions.free_server(world, 0)
    plans = np.zeros((1, 3), dtype=np.int64)
    actions.start_again(world, np.zeros(1, dtype=layout.PARKED), plans)
    actions.oldest_pending(world, 0, 0)


def _map_placement_groups() -> None:
    crush = build_map(hosts=1, osds_per_host=1)
    crush.mappings(crush.rules[0].name, range(1), 1)
    parse_map(_MSR_MAP).mappings("msr", range(1), 1)


def _walk() -> None:
    drives = np.arange(3, dtype=np.int32)
    burst = Burst(name="a drive", rate_per_s=1.0, unit="drive", units=2)
    system = System(
        code=code_of("rep:3"),
        placement="crush",
        drives=len(drives),
        drive_bytes=1.0,
        lifetime=Lifetime.exponential(0.5),
        repair=DriveRepair(1.0),
        bursts=(burst,),
        groups=drives.reshape(1, 3),
        units={"drive": drives},
    )
    prepared = prepare(system, biased=False)
    lay = prepared.layout
    states = initial_state(prepared)
    weights = np.zeros(1)
    groups.stage(lay, states, 1, 1, weights)
    aims = aims_of(lay, 1, surely_lost(system.code))
    plan = history.Plan(1, 1, 1, np.zeros((2, 4)), aims)
    seen = history.Watched(
        losses_sum=np.zeros((2, 1)),
        lost_sum=np.zeros((2, 1)),
        begun=weights,
        length_s=weights,
        losses=np.zeros((1, 1)),
        counts=weights,
    )
    history.watch(lay, lay, states, plan, 0, 1, 1, seen)
    bursts.loss_of_burst(system, burst)
    some = Burst(name="some", rate_per_s=1.0, unit="drive", units=2, lost_fraction=0.5)
    bursts.loss_of_burst(system, some)
    declustered = prepare(
        System(
            code=system.code,
            placement="declustered",
            drives=3,
            drive_bytes=1.0,
            lifetime=system.lifetime,
            repair=system.repair,
        ),
        biased=False,
    )
    pool.stage(declustered.layout, initial_state(declustered), 1, 1, weights)


def build(folder: Path) -> None:
    """Build the libraries of all kernels for this kind of machine, on all cores, and the engine for browsers.

    Raises
    ------
    KernelError
        If there is no linker, or a kernel cannot be compiled without Numba's runtime.
    """
    from stripesim.models.jit.build import (
        can_link_wasm,
        find_linker,
        link_native,
        link_wasm,
        native_object,
        processors,
        wasm_object,
    )

    find_linker()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(4, os.cpu_count() or 1), context) as workers:
        # The engine takes longest and comes first.
        parts = [
            workers.submit(_intermediates, number) for number in range(len(_examples()))
        ]
        native: dict[str, list[Future[bytes]]] = {}
        wasm: list[tuple[Intermediate, Future[bytes]]] = []
        for part in as_completed(parts):
            for kernel in part.result():
                native[kernel.name] = [
                    workers.submit(native_object, kernel, processor)
                    for processor in processors()
                ]
                if kernel.name == name_of(run_machine.function) and can_link_wasm():
                    wasm.append((kernel, workers.submit(wasm_object, kernel)))
        kernels = [kernel for part in parts for kernel in part.result()]
        objects = [
            [made.result() for made in native[kernel.name]] for kernel in kernels
        ]
        link_native(kernels, objects, folder)
        (folder / WASM).unlink(missing_ok=True)
        for kernel, code in wasm:
            link_wasm(kernel, code.result(), folder)


def _intermediates(number: int) -> list["Intermediate"]:
    """Compile the kernels of an example in one process, which compiles each of their inner functions once."""
    from stripesim.models.jit.build import intermediate_of

    calls = _calls_of(_examples()[number])
    return [intermediate_of(kernel, arguments) for kernel, arguments in calls.items()]


def main() -> int:
    """Build the libraries unless they are there for these sources, and return the exit status."""
    has_wasm = (FOLDER / WASM).exists() or find_spec("ziglang") is None
    if has_wasm and is_current(kernel.function for kernel in example_calls()):
        return 0
    try:
        build(FOLDER)
    except ImportError as error:
        print(f"kernels are not built: {error}", file=sys.stderr)
        return 1
    except KernelError as error:
        print(f"kernels are not built, Numba compiles them: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
