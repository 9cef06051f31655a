"""Read measured rows of several releases. Their offsets are those of fio's default sequence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from stripesim.calibration.measured.tables import CsvRow, Source, no_rows, read_rows
from stripesim.models.problems import MeasuredError, Problem
from stripesim.scenarios.studies.ceph16.measured import (
    DEGRADED_COLUMNS,
    MIB,
    RUN_COLUMNS,
    STRIPE_UNIT_BYTES,
    Coded,
    MeasuredDegraded,
    MeasuredRun,
    coded_of,
    degraded_of,
    repeated,
    run_of,
)
from stripesim.scenarios.studies.description import study_folder
from stripesim.sim.ceph.clients.workload import Requests

#: Major number of a version of Ceph → its generation. 14 is simulated as Pacific, with numbers of its own.
GENERATIONS = {"14": "pacific", "16": "pacific", "18": "reef", "20": "tentacle"}
DEFAULT_VERSION = "20.2.4"
#: Stripe unit of optimised pools [B], whose schemes end in f.
FAST_UNIT_BYTES = 16384
#: Requests that filled an image before the first run [B].
PREFILL_BYTES = 4 << 20

#: Stands for fio's default sequence (``randrepeat``).
DEFAULT_SEED = 42

_IDS = re.compile(r"t(?P<major>\d+)-")
_VERSIONS = {"14": "14.2.21", "18": "18.2.7", "20": "20.2.4"}
_RUN_COLUMNS = tuple(name for name in RUN_COLUMNS if name != "stripe_unit_bytes")
_DEGRADED_COLUMNS = tuple(
    name for name in DEGRADED_COLUMNS if name != "stripe_unit_bytes"
)
# Blocks of 4 KiB of an image of 384 MiB that fio's default sequence visits, in order.
_SEQUENCE_FILE = "fio_random.csv"
_SEQUENCE_BLOCKS = 384 * MIB // 4096


@dataclass(frozen=True)
class Pooled:
    """Release and kind of pool of a measured row."""

    version: str
    is_optimised: bool  # True with ``allow_ec_optimizations``.
    pool_id: int | None = None  # It decides where placement groups are.

    @property
    def major(self) -> str:
        """First part of the version."""
        return self.version.partition(".")[0]

    @property
    def generation(self) -> str:
        """Generation of the simulator."""
        return GENERATIONS[self.major]


@dataclass(frozen=True)
class ReleaseRun:
    """A run of the load generator on one release."""

    run: MeasuredRun
    pooled: Pooled
    is_fresh: bool  # True if nothing had been written to the image.
    is_cold: bool  # True if primaries have forgotten the image, as after peering.
    cluster: str  # Name of the cluster that has the image, empty if there is only one.
    earlier: Requests | None  # What optimised pools have seen of the image before.


@dataclass(frozen=True)
class ReleaseDegraded:
    """Reads on one release while an OSD is down."""

    degraded: MeasuredDegraded
    pooled: Pooled


@dataclass(frozen=True)
class MeasuredReleases:
    """All rows of a folder, in the order in which they were measured."""

    runs: tuple[ReleaseRun, ...]
    degraded: tuple[ReleaseDegraded, ...]


def shipped() -> Source:
    """Return the folder that ships with the package."""
    return study_folder("releases") / "data"


def load(data: Source | str | None = None) -> MeasuredReleases:
    """Read a folder of measured counts.

    Raises
    ------
    MeasuredError
        If the folder or a row is wrong, with one line for each problem.
    """
    folder: Source = Path(data) if isinstance(data, str) else data or shipped()
    if not folder.is_dir():
        raise MeasuredError(
            Problem(place="--data", got=str(folder), wanted="a folder with runs.csv")
        )
    problems: list[Problem] = []
    rows = read_rows(folder / "runs.csv", _RUN_COLUMNS, problems)
    runs = with_history([_run(row) for row in rows])
    degraded: list[ReleaseDegraded] = []
    if (folder / "degraded.csv").is_file():
        rows = read_rows(folder / "degraded.csv", _DEGRADED_COLUMNS, problems)
        for row in rows:
            pooled = _pooled(row)
            degraded.append(ReleaseDegraded(degraded_of(row, _coded(row)), pooled))
    problems += repeated(one.run for one in runs)
    if not (runs or degraded or problems):
        problems.append(no_rows(folder / "runs.csv"))
    if problems:
        raise MeasuredError(*problems)
    return MeasuredReleases(tuple(runs), tuple(degraded))


def rows_of() -> list[CsvRow]:
    """Return the rows of the shipped runs, with all counters."""
    return read_rows(shipped() / "runs.csv", _RUN_COLUMNS, [])


def with_history(runs: Sequence[ReleaseRun]) -> list[ReleaseRun]:
    """Return the runs with what was written to the image before: its prefill, then earlier writes.

    Only optimised pools keep what they wrote. Rows of one cluster, scheme, release and image size share an
    image unless theirs is fresh.
    """
    written: dict[tuple[object, ...], list[Requests]] = {}
    followed = []
    for one in runs:
        if one.is_fresh or one.is_cold or not one.pooled.is_optimised:
            followed.append(one)
            continue
        image = (one.cluster, one.pooled, one.run.coded, one.run.image_bytes)
        history = written.setdefault(image, [prefill(one.run.image_bytes)])
        followed.append(replace(one, earlier=joined(history)))
        if one.run.op != "read":
            history.append(one.run.requests)
    return followed


def joined(parts: Sequence[Requests]) -> Requests:
    """Return requests one after another."""
    return Requests(
        is_write=np.concatenate([part.is_write for part in parts]),
        images=np.concatenate([part.images for part in parts]),
        offsets_bytes=np.concatenate([part.offsets_bytes for part in parts]),
        lengths_bytes=np.concatenate([part.lengths_bytes for part in parts]),
    )


def prefill(image_bytes: int) -> Requests:
    """Return the writes that filled an image, from its start to its end."""
    offsets = np.arange(0, image_bytes, PREFILL_BYTES, dtype=np.int64)
    lengths = np.minimum(PREFILL_BYTES, image_bytes - offsets)
    return _requests(offsets, lengths, is_write=True)


def fio_requests(
    *,
    pattern: str,
    is_write: bool,
    block_bytes: int,
    image_bytes: int,
    count: int,
    seed: int,
) -> Requests:
    """Return the requests of fio, in their order.

    With its default seed fio visits the same places in each run, rounded down to its blocks. Runs with
    another seed, or longer than the recorded sequence, take places of a generator of ours.
    """
    blocks = max(1, image_bytes // block_bytes)
    if pattern == "seq":
        numbers = np.arange(count, dtype=np.int64) % blocks
    else:
        known = _sequence() if seed == DEFAULT_SEED else _sequence()[:0]
        places = np.concatenate([known, _more(count, seed)])[:count]
        numbers = (places * blocks).astype(np.int64)
    lengths = np.full(count, block_bytes, dtype=np.int64)
    return _requests(numbers * block_bytes, lengths, is_write=is_write)


@cache
def _sequence() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the places of fio's default sequence, as fractions of the image."""
    text = (shipped() / _SEQUENCE_FILE).read_text(encoding="utf-8")
    blocks = [int(line) for line in text.split()[1:]]
    return (np.array(blocks) + 0.5) / _SEQUENCE_BLOCKS


def _more(count: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(seed).random(count)


def _requests(
    offsets_bytes: np.ndarray[tuple[int], np.dtype[np.int64]],
    lengths_bytes: np.ndarray[tuple[int], np.dtype[np.int64]],
    *,
    is_write: bool,
) -> Requests:
    return Requests(
        is_write=np.full(len(offsets_bytes), is_write),
        images=np.zeros(len(offsets_bytes), dtype=np.int64),
        offsets_bytes=offsets_bytes,
        lengths_bytes=lengths_bytes,
    )


def _run(row: CsvRow) -> ReleaseRun:
    coded = _coded(row)
    requests = fio_requests(
        pattern=row.words("pattern"),
        is_write=row.words("op") != "read",
        block_bytes=row.whole("bs", 1),
        image_bytes=row.whole("image_mb", 1) * MIB,
        count=row.whole("ops", 1),
        seed=row.whole("seed", 0, DEFAULT_SEED),
    )
    run = run_of(row, coded, requests)
    # Processor time of a small shared machine repeats too badly to be compared.
    measured = {
        metric: value
        for metric, value in run.measured.items()
        if metric != "cpu_us_per_op"
    }
    is_fresh = row.words("image") == "fresh"
    if is_fresh and run.op != "write":
        row.refuse("image", "fresh with write only")
    if row.words("image") not in ("", "fresh", "written", "cold"):
        row.refuse("image", "fresh, written, cold or nothing")
    return ReleaseRun(
        replace(run, measured=measured),
        _pooled(row),
        is_fresh=is_fresh,
        is_cold=row.words("image") == "cold",
        cluster=row.words("cluster"),
        earlier=None,
    )


def _pooled(row: CsvRow) -> Pooled:
    """Return the release, by its column or the beginning of the run's name, and the kind of pool."""
    version = row.words("release")
    named = _IDS.match(row.words("run_id"))
    if not version and named:
        version = _VERSIONS.get(named["major"], named["major"])
    pool_id = row.whole("pool_id", 1, 0) or None
    pooled = Pooled(version or DEFAULT_VERSION, _is_optimised(row), pool_id)
    if pooled.major not in GENERATIONS:
        column = "release" if row.words("release") else "run_id"
        row.refuse(column, f"a release {', '.join(GENERATIONS)}")
        return Pooled(DEFAULT_VERSION, pooled.is_optimised)
    if pooled.is_optimised and pooled.generation != "tentacle":
        row.refuse("scheme", "a classic pool: optimised ones came with 20")
    return pooled


def _is_optimised(row: CsvRow) -> bool:
    """Return True for schemes such as ec83f. Those such as ec83c are classic."""
    return row.whole("k", 1) > 1 and row.words("scheme").endswith("f")


def _coded(row: CsvRow) -> Coded:
    coded = coded_of(row)
    if not row.words("stripe_unit_bytes"):
        unit_bytes = FAST_UNIT_BYTES if _is_optimised(row) else STRIPE_UNIT_BYTES
        coded = replace(coded, stripe_unit_bytes=unit_bytes)
    if not coded.scheme.startswith("lrc"):
        return coded
    return replace(coded, locality=row.whole("l", 1))
