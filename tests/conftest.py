"""Shared fixtures for tests of the simulator: real models, small clusters and a way to run them."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import typer.main
import typer.testing
from hypothesis import settings

import stripesim
from stripesim.__main__ import main
from stripesim.models.coding import parse_scheme
from stripesim.models.provenance import MeasuredModel, Provenance
from stripesim.scenarios.answers.load.curve_builder import CurveSettings
from stripesim.scenarios.cells import longer
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.forms import rebuild
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.scenarios.work.garbage import collect_rarely
from stripesim.sim.ceph.cluster import Cluster, Models
from stripesim.sim.ceph.failures.director import FaultDirector
from stripesim.sim.ceph.paths import PathContext
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.ceph.roles import role_count
from stripesim.sim.engine.graph import COUNTERS, Template
from stripesim.sim.engine.program import FIFO, RunView
from support.engines import engine_compiled, program, single
from support.koh_cluster import KOH_CLUSTER
from support.random_programs import KINDS

# Print tables with the width of a pipe, regardless of the terminal.
os.environ.pop("COLUMNS", None)
# Ignore kernel costs saved on this machine.
os.environ["XDG_DATA_HOME"] = str(Path(os.devnull) / "nothing-saved")

# Build the tree of commands once for all calls of the command line, of which a user's process makes one.
typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)

# `make test` draws the same examples each time, so that only a commit can change its result.
# `make verify` draws many new ones.
settings.register_profile("default", max_examples=28, derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=400, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("STRIPESIM_HYPOTHESIS", "default"))


def pytest_sessionstart() -> None:
    """Compile half of the kernels in each of two workers if the machine has no compiled code yet.

    Otherwise both workers would compile the same kernels for most of a minute. Numba caches the results.
    The process that compiles the engine compiles a director's actions in half the time of any other,
    because both call the same functions.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker == "gw0":
        engine_compiled.run(program([single(1)], [(FIFO, 1)], []))
        # Together, these programs use every action.
        for seed in range(8):
            engine_compiled.run(KINDS["directed"](Random(seed)))
    elif worker == "gw1":
        stripesim.pool("quickstart")
        declustered = {
            "durability.placement": "declustered",
            "durability.repair": "parallel",
        }
        for sets in ({}, declustered):
            stripesim.durability("durability", method="splitting", walks=10, sets=sets)
        fire = {"name": "fire", "unit": "drive", "per_year": 1, "lost_fraction": 0.5}
        for method in ("burst", "history"):
            sets = {"durability.bursts": [fire | {"units": 5}]}
            stripesim.durability("durability", method=method, walks=10, sets=sets)


def pytest_collection() -> None:
    """Collect no garbage while tests are collected, because nearly all objects stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep modules and tests out of garbage collections, and collect as rarely as a command does."""
    gc.enable()
    collect_rarely()
    gc.collect()
    gc.freeze()


# Data that cannot ship is next to the checkout.
DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of the real data, or skip the test if it is missing."""
    if not DATA.is_dir():
        pytest.skip(f"the real data is not there: {DATA}")
    return DATA


def changed(model: Any, **numbers: Any) -> Any:
    """Return a model with other numbers, whose provenance is this test."""
    values = {
        name: Provenance("assumed", "a test")
        for name, value in numbers.items()
        if type(value) is not str
    }
    return replace(model, **numbers, provenance={**model.provenance, **values})


@pytest.fixture(scope="session")
def models() -> Models:
    """Return the models of the cluster of Koh et al. without spread, with the PG lock held until commit."""
    sets = {"workload.requests": 1, **KOH_CLUSTER}
    built = build_models(parse_scenario('schemes = ["rep:3"]', sets=sets))
    flat = (1.0,) * 256
    return replace(
        built,
        ssd=changed(built.ssd, read_quantiles=flat, write_quantiles=flat),
        pg_lock=replace(built.pg_lock, scope="commit"),
        throttle=None,
    )


@pytest.fixture(scope="session")
def sleepless(models: Models) -> Models:
    """Return the same models with free wake-ups and no time slices, so that the demands of steps add up."""
    free = {"wake_ns": 0, "sync_wakes_count": 0, "sync_ns": 0}
    threads = changed(models.threads, slice_ns=0, hand_over_ns=0, **free)
    return replace(models, threads=threads)


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Call the command line: ``status, out, err = command("run", "s.toml")``."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["stripesim", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return call


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Make Ctrl-C interrupt a test, also in a job that the shell has started in the background."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


# Objects of a rebuild whose rate no test checks.
FEW_REBUILT = 50


@pytest.fixture(scope="module")
def quick_rebuilds() -> Iterator[None]:
    """Rebuild a small sample in reports, plans and durability, for tests that do not check the rate."""
    rebuild._idle_rebuild.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "stripesim.scenarios.answers.run.report.contents.idle_rebuild",
            partial(rebuild.idle_rebuild, sample_objects=FEW_REBUILT),
        )
        patch.setattr(
            "stripesim.scenarios.answers.plan.candidate_runs.RATE_OBJECTS", FEW_REBUILT
        )
        patch.setattr(rebuild, "RATE_OBJECTS", FEW_REBUILT)
        yield
    rebuild._idle_rebuild.cache_clear()


@pytest.fixture
def quick_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw small figures without arranging their panels, for tests of other things."""
    from stripesim.scenarios.show.figures import renderer, screen

    new_figure = renderer.new_figure

    def figure_without_layout(size_inch: tuple[float, float]) -> Any:
        figure = new_figure(size_inch)
        figure.set_layout_engine(None)
        return figure

    monkeypatch.setattr(renderer, "new_figure", figure_without_layout)
    monkeypatch.setattr(screen, "_DPI", 40)


@pytest.fixture
def two_replications(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each point of load curves by default twice, the fewest with an interval, not five times."""
    monkeypatch.setattr(
        "stripesim.scenarios.answers.load.curve_builder.CurveSettings",
        partial(CurveSettings, replications=2),
    )


@pytest.fixture
def short_runs() -> Iterator[None]:
    """Simulate the requests that a test asks for and no more, though the audit may refuse their rates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(longer, "can_lengthen", lambda _: False)
        yield


@pytest.fixture(scope="session")
def change() -> Callable[..., Models]:
    """Change numbers of models: ``change(models, ssd={"channels": 1})``."""

    def apply(models: Models, **parts: dict[str, Any]) -> Models:
        swapped: dict[str, MeasuredModel] = {
            part: changed(getattr(models, part), **numbers)
            for part, numbers in parts.items()
        }
        return replace(models, **swapped)

    return apply


@pytest.fixture(scope="session")
def make_pool() -> Callable[..., Pool]:
    """Make a pool with one OSD per host, unless `hosts` gives the host of each OSD.

    ``make_pool(models, "rs:4,2", groups=8)``: group g has OSDs g, g + 1, … around the cluster.
    """

    def make(
        models: Models,
        scheme: str,
        *,
        groups: int = 1,
        osds: int | None = None,
        hosts: list[int] | None = None,
        acting: Any = None,
        unit_bytes: int = 4096,
        object_bytes: int = 4 << 20,
        recovery_chunk_bytes: int = 8 << 20,
    ) -> Pool:
        code = parse_scheme(scheme)
        if hosts is None:
            hosts = list(range(osds or code.width))
        if acting is None:
            acting = [
                [(group + shard) % len(hosts) for shard in range(code.width)]
                for group in range(groups)
            ]
        return Pool(
            cluster=Cluster(
                osd_hosts=np.array(hosts, dtype=np.int64),
                acting=np.array(acting, dtype=np.int64),
                models=models,
                recovery_chunk_bytes=recovery_chunk_bytes,
            ),
            scheme=code,
            stripe_unit_bytes=unit_bytes,
            object_bytes=object_bytes,
        )

    return make


@pytest.fixture
def directors(monkeypatch: pytest.MonkeyPatch) -> list[FaultDirector]:
    """Collect the directors of runs, to look inside them afterwards."""
    begun: list[FaultDirector] = []
    begin = FaultDirector.begin

    def begin_and_note(self: FaultDirector, view: RunView) -> None:
        begun.append(self)
        begin(self, view)

    monkeypatch.setattr(FaultDirector, "begin", begin_and_note)
    return begun


@pytest.fixture(scope="session")
def make_context() -> Callable[..., PathContext]:
    """Make the context of a path: ``make_context(models, "rs:6,3", primary=0, missing={1})``."""

    def make(
        models: Models,
        scheme: str,
        *,
        unit_bytes: int = 4096,
        primary: int = 0,
        missing: Iterable[int] = (),
        recovery_chunk_bytes: int = 8 << 20,
    ) -> PathContext:
        code = parse_scheme(scheme)
        return PathContext(
            models=models,
            scheme=code,
            geometry=code.geometry(unit_bytes),
            primary=primary,
            missing=frozenset(missing),
            recovery_chunk_bytes=recovery_chunk_bytes,
        )

    return make


@pytest.fixture(scope="session")
def counted() -> Callable[..., dict[str, int]]:
    """Sum the counters of a template with every role bound except the given ones."""

    def count(
        template: Template, width: int, unbound: Iterable[int] = ()
    ) -> dict[str, int]:
        bound = np.ones(role_count(width) + 1, dtype=bool)
        bound[list(unbound)] = False
        return dict(zip(COUNTERS, template.totals(bound)[:-1].tolist(), strict=True))

    return count
