"""A page that runs the compiled engine in the browser: its WebAssembly, and programs as data.

Python plans and the page simulates. A program is the world of a run (``sim/engine/compiled/world.py``) before
its first event, with all requests planned. Programs share most arrays, so the page stores each array once.
`engine.js` lays them out for the kernel, and `page.html` draws the results.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from jinja2.utils import htmlsafe_json_dumps

from stripesim.models.jit.prebuilt import FOLDER, MANIFEST, WASM
from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario, load_scenario
from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.state import RunState
from stripesim.sim.engine.compiled.world import World
from stripesim.sim.engine.draws import seed_state
from stripesim.sim.engine.program import Program
from stripesim.sim.kernels import empty_program
from stripesim.sim.observe.resource_words import member_words
from stripesim.sim.observe.window import SATURATED_BELOW
from stripesim.sim.run import planned_program

PARTS = Path(__file__).resolve().parent
SCENARIO = "quickstart"
#: Requests that a program has planned. The page simulates the first of them.
REQUESTS = 2000
SEEDS = (1, 2, 3)
KERNEL = "stripesim.sim.engine.compiled.kernel.run_machine"

#: Choices that change the plan: label, and the scenario's key and value.
LOADS: dict[str, dict[str, Any]] = {
    "schemes": {
        "3 copies": ["rep:3"],
        "RS(4,2)": ["rs:4,2"],
        "RS(6,2)": ["rs:6,2"],
    },
    "workload.ops": {"write": ["write"], "read": ["read"]},
    "workload.block_sizes_bytes": {"4 KiB": ["4k"], "64 KiB": ["64k"]},
}
#: Requests of a closed loop, and Poisson arrivals, whose times the page computes for its rate.
ARRIVALS: dict[str, dict[str, Any]] = {
    "closed loop": {},
    "open, Poisson": {"workload.kind": "open", "workload.rate_per_s": 1000.0},
}
#: Choices of hardware, the default first.
HARDWARE: dict[str, dict[str, Any]] = {
    "cluster.drive": {
        "NVMe": "samsung-pm983",
        "SATA SSD": "sata-tlc",
        "hard disk": "hdd-7200",
    },
    "network": {"100 Gb/s": 100.0, "10 Gb/s": 10.0},
    "cluster.cores_per_host": {"128": 128, "4": 4},
}
NETWORK = ("cluster.public_gbit_per_s", "cluster.private_gbit_per_s")

#: Arrays of a world whose contents the kernel writes before it reads them, or that grow with its room.
ROOM = frozenset({
    "requests", "free_slots", "pending", "links", "ready", "times_ns", "cells",
    "joined_ns", "since_ns", "keys", "log", "pins", "parked", "ends_ns",
})  # fmt: skip


#: A comment in a page, in place of a file.
_EMBEDDED: Final = re.compile(r"/\* ([\w.]+\.(?:js|css)) \*/")


def sets_of(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return keys of the scenario for values of `LOADS` and `HARDWARE`."""
    sets = dict(choice)
    rate = sets.pop("network")
    return sets | dict.fromkeys(NETWORK, rate)


def program_of(
    sets: Mapping[str, Any], seed: int, *, scenario: str = SCENARIO
) -> Program:
    """Return the program that the engine gets for the first cell of a scenario."""
    return program_of_scenario(load_scenario(scenario, sets=sets, seed=seed))


def program_of_scenario(loaded: Scenario) -> Program:
    """Return the program that the engine gets for the first cell of a scenario that is loaded.

    Raises
    ------
    AnswerError
        If faults or changes happen during the run: Python decides what they do.
    """
    inputs = build_cell(loaded, cells(loaded)[0])
    if inputs.faults is not None:
        raise AnswerError(Problem(place=loaded.name, got="faults", wanted="none"))
    return planned_program(
        inputs.pool,
        inputs.workload,
        seed=loaded.seed,
        prefilled=inputs.prefilled,
        until_ns=inputs.until_ns,
        newest_only=inputs.newest_only,
        timeout_ns=inputs.timeout_ns,
    )


def planned_world(program: Program) -> World:
    """Return the world of a run before its first event, with all requests planned and no times of arrival."""
    state = RunState(program)
    for number in range(len(program.streams)):
        while not state.world.streams["ended"][number]:
            state.world.clock["wanting"] = number
            state.provide(layout.MORE_REQUESTS)
    # Arrays of cells that the run needs are not empty from now.
    state.more_slots()
    state.world.plan[:, :, 1] = 0
    # Time bins only count.
    state.world.clock["bin_ns"] = 0
    return state.world


#: Level of compression. The highest takes five times as long for 6 % less.
DEFLATE_LEVEL: Final = 7
#: Arrays up to this size are stored as they are: a browser takes longer to start an inflation.
PLAIN_BYTES: Final = 1024


class Arrays:
    """Different arrays of bytes and shape, each once: text in base 64, shape, and whether it is deflated."""

    def __init__(self) -> None:
        self.stored: list[tuple[str, tuple[int, ...], bool]] = []
        self._number_of: dict[tuple[bytes, tuple[int, ...]], int] = {}

    def number(self, array: npt.NDArray[Any], *, only_shape: bool) -> int:
        """Return the number of an array, whose bytes may not matter."""
        data = b"" if only_shape else np.ascontiguousarray(array).tobytes()
        number = self._number_of.setdefault((data, array.shape), len(self.stored))
        if number == len(self.stored):
            is_deflated = len(data) > PLAIN_BYTES
            stored = zlib.compress(data, DEFLATE_LEVEL) if is_deflated else data
            text = b64encode(stored).decode()
            self.stored.append((text, array.shape, is_deflated))
        return number


class StoredProgram(NamedTuple):
    """A program in the page."""

    arrays: list[int]  #: Number of each array of its world
    kinds: tuple[str, ...]  #: Kinds of resources in words
    requests: int  #: Planned requests of the first stream


def stored_program(arrays: Arrays, program: Program) -> StoredProgram:
    """Store the arrays of a program. The page changes the load of the first stream only."""
    world = planned_world(program)
    numbered = [
        arrays.number(array, only_shape=name in ROOM)
        for name, array in world._asdict().items()
    ]
    kinds = tuple(map(member_words, program.resources.kind_names))
    return StoredProgram(numbered, kinds, int(world.streams["planned"][0]))


def _choices(
    of: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each combination: the numbers of its values as a text, and the values by key."""
    for numbers in product(*(range(len(values)) for values in of.values())):
        values = [
            list(options.values())[number]
            for number, options in zip(numbers, of.values(), strict=True)
        ]
        yield "".join(map(str, numbers)), dict(zip(of, values, strict=True))


def programs(
    loads: Mapping[str, Mapping[str, Any]], hardware: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return all programs for the page.

    `arrays` are all arrays, `programs` their numbers by load, hardware, kind of arrival and seed.
    """
    arrays = Arrays()
    stored: dict[str, Any] = {}
    kinds: dict[str, tuple[str, ...]] = {}
    for load, load_sets in _choices(loads):
        for machine, machine_sets in _choices(hardware):
            sets = sets_of({**load_sets, **machine_sets})
            sets["workload.requests"] = REQUESTS
            for loop, more in enumerate(ARRIVALS.values()):
                for seed in SEEDS:
                    program = stored_program(arrays, program_of({**sets, **more}, seed))
                    stored[f"{load}{machine}{loop}{seed}"] = program.arrays
                    kinds[f"{machine}{loop}"] = program.kinds
    return {"arrays": arrays.stored, "programs": stored, "kinds": kinds}


def described() -> dict[str, Any]:
    """Return the layout of the world for `engine.js`."""
    manifest = json.loads((FOLDER / MANIFEST).read_text("utf-8"))
    kernel = manifest["kernels"][KERNEL]
    (types,) = kernel["types"]
    records = {
        "clock": layout.CLOCK,
        "streams": layout.STREAM,
        "log": layout.LOG,
        "resources": layout.RESOURCE,
    }
    world = layout.empty_world(empty_program(), log_rows=1)
    return {
        "entry": kernel["entry"],
        "arrays": [
            {"name": name, "itemsize": array.itemsize}
            for name, array in world._asdict().items()
        ],
        "types": types,
        "fields": {
            name: {field: dtype.fields[field][1] for field in dtype.names or ()}
            for name, dtype in records.items()
            if dtype.fields is not None
        },
        "root": layout.ROOT,
        "status": {
            name: getattr(layout, name)
            for name in ("DONE", "MORE_SLOTS", "MORE_LOG", "MORE_PINS", "MORE_PARKED")
        },
    }


def wasm() -> bytes:
    """Return the engine as a WebAssembly module.

    Raises
    ------
    AnswerError
        If it is not built.
    """
    path = FOLDER / WASM
    if not path.exists():
        wanted = "`make kernels` with the package ziglang installed"
        raise AnswerError(Problem(place=str(path), got="no file", wanted=wanted))
    return path.read_bytes()


def exponentials(seed: int) -> list[float]:
    """Return the exponential numbers that a Poisson workload of a seed draws (``clients/workload.py``)."""
    generator = np.random.default_rng([seed, 2])
    return [float(number) for number in generator.standard_exponential(REQUESTS)]


def engine_page() -> str:
    """Return the page."""
    data = {
        "scenario": SCENARIO,
        "requests": REQUESTS,
        "saturated_below": SATURATED_BELOW,
        # Pairs, because JavaScript sorts keys that look like numbers.
        "loads": {key: list(values.items()) for key, values in LOADS.items()},
        "hardware": {key: list(values.items()) for key, values in HARDWARE.items()},
        "network": NETWORK,
        "arrivals": list(ARRIVALS),
        "seeds": {
            seed: {"state": str(seed_state(seed)), "gaps": exponentials(seed)}
            for seed in SEEDS
        },
        **programs(LOADS, HARDWARE),
    }
    return with_engine(PARTS / "page.html", data)


def with_engine(template: Path, data: Mapping[str, Any]) -> str:
    """Return a page with the engine, its data and the files that the template names in comments.

    A comment is ``/* engine.js */``. Files of the template's own folder come first.
    """
    text = template.read_text("utf-8")
    for name in _EMBEDDED.findall(text):
        path = template.parent / name
        if not path.exists():
            path = PARTS / name
        text = text.replace(f"/* {name} */", path.read_text("utf-8"))
    engine = {"described": described(), "wasm": b64encode(wasm()).decode()}
    stored = htmlsafe_json_dumps({**engine, **data}, separators=(",", ":"))
    return text.replace("/* data */ null", stored)
