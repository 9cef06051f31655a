"""Run the source's workloads on an engine: archives and lone files, written and read."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from stripesim.scenarios.studies.erasurebench2016 import parameters
from stripesim.scenarios.studies.erasurebench2016.codes import K, codes
from stripesim.scenarios.studies.erasurebench2016.source import value_of
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.systems.kv_proxy import plan
from stripesim.sim.systems.kv_proxy.costs import ProxyModel
from stripesim.sim.systems.kv_proxy.plan import (
    Keys,
    Writes,
    draw_slots,
    even_owners,
    keys_of,
)
from stripesim.sim.systems.kv_proxy.proxy import SequenceRun, run_operations

MEGABYTE = 1_000_000
# Number of files and megabytes of each archive in Table I, by claim.
_TABLE_I = {"10B": (300, 301), "bc": (311, 312), "httpd": (322, 323)}
ARCHIVES = tuple(_TABLE_I)
_ORDER_SEED = 2016


def archive(name: str, spread: float | None = None) -> IntArray:
    """Return file sizes of an archive of Table I [B]: scaled lognormal quantiles in a fixed order."""
    files, megabytes = (value_of(number) for number in _TABLE_I[name])
    if name == "10B":
        spread = 0.0
    elif spread is None:
        spread = parameters.number("archives", "spread_fraction")
    relative = np.exp(spread * ndtri((np.arange(int(files)) + 0.5) / int(files)))
    sizes = np.rint(relative * round(megabytes * MEGABYTE) / relative.sum())
    order = np.random.default_rng(_ORDER_SEED).permutation(
        np.maximum(1, sizes).astype(np.int64)
    )
    sizes_bytes: IntArray = order
    return sizes_bytes


def archive_writes(name: str, spread: float | None = None) -> Writes:
    """Return the writes of extracting an archive."""
    return plan.extraction(archive(name, spread), parameters.aggregation(), k=K)


@dataclass(frozen=True)
class Stored:
    """Files in the store. Slots have shape (rows, width), one for each key."""

    code: str
    nodes: int
    writes: Writes
    keys: Keys
    slots: IntArray

    @property
    def nodes_of_keys(self) -> IntArray:
        """Return the node of each key with evenly dealt slots, shape (rows, width)."""
        placed: IntArray = even_owners(self.nodes)[self.slots]
        return placed

    @property
    def data_of_rows(self) -> IntArray:
        """Return the data that a reader takes from each row of keys [B]."""
        per_row = np.minimum(
            self.keys.stripes * K, self.writes.size_bytes[self.keys.writes]
        )
        data: IntArray = per_row
        return data


def stored(writes: Writes, code: str, *, nodes: int, seed: int) -> Stored:
    """Place the keys of writes on a store, with slots drawn by seed."""
    keys = keys_of(writes, parameters.aggregation(), width=codes()[code].width)
    rng = np.random.default_rng([seed, nodes])
    return Stored(
        code, nodes, writes, keys, draw_slots(len(keys.stripes), keys.width, rng)
    )


@lru_cache(maxsize=16)
def stored_archive(name: str, code: str, *, nodes: int, seed: int) -> Stored:
    """Return an archive extracted into a store."""
    return stored(archive_writes(name), code, nodes=nodes, seed=seed)


def file_writes(size_bytes: int, *, fuse: bool) -> Writes:
    """Return the writes of a lone file: 128 KiB each through the file system, otherwise a single one."""
    step = int(parameters.aggregation().write_bytes) if fuse else size_bytes
    return plan.sequential(size_bytes, step, k=K)


def run_write(
    files: Stored,
    *,
    fuse: bool = True,
    model: ProxyModel | None = None,
    engine: str = "compiled",
) -> SequenceRun:
    """Write files into the store."""
    system = parameters.system(files.nodes, model)
    where = (files.keys, files.nodes_of_keys)
    operations = plan.write_operations(
        system, files.writes, *where, code=files.code, fuse=fuse
    )
    return run_operations(system, operations, engine=engine)


def run_read(
    files: Stored,
    *,
    sources: Sequence[tuple[int, ...]] | None = None,
    fuse: bool = True,
    model: ProxyModel | None = None,
    engine: str = "compiled",
) -> SequenceRun:
    """Read files from the store, whose data is complete unless sources are given."""
    system = parameters.system(files.nodes, model)
    operations = plan.read_operations(
        system,
        files.keys,
        files.nodes_of_keys,
        code=files.code,
        data_bytes=files.data_of_rows,
        sources=sources or [tuple(range(K))] * len(files.keys.stripes),
        fuse=fuse,
    )
    return run_operations(system, operations, engine=engine)
