"""Read the JSON that fio writes: its jobs, with the clones of each job as one."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stripesim.models.documents import document_in
from stripesim.models.problems import MeasuredError, Problem, one_line

_BYTES_MAX: Final = 64 << 20
# Part of a file that has the version, after messages of fio [B].
_HEAD_BYTES: Final = 1 << 16
_NS_PER_US: Final = 1000.0
_WANTED: Final = "the JSON that fio writes with --output-format=json"

ValueT = TypeVar("ValueT")


class _FioObject(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class FioLatency(_FioObject):
    """Mean and percentiles of a latency, in the unit of its key."""

    mean: float = Field(default=0.0, ge=0)
    percentile: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)


class FioDirection(_FioObject):
    """The reads or the writes of an entry. Releases before 3 state latencies in microseconds, and KiB."""

    total_ios: float | None = None
    io_bytes: float = 0.0
    io_kbytes: float | None = None
    iops: float = 0.0
    bw_bytes: float | None = None
    bw: float = 0.0
    lat_ns: FioLatency = Field(default_factory=FioLatency)
    clat_ns: FioLatency = Field(default_factory=FioLatency)
    lat: FioLatency = Field(default_factory=FioLatency)
    clat: FioLatency = Field(default_factory=FioLatency)

    @property
    def has_moved(self) -> bool:
        """True if requests completed."""
        return bool(self.iops if self.total_ios is None else self.total_ios)

    @property
    def moved_bytes(self) -> float:
        """Data moved [B]. Releases that do not state it in KiB as well, state it in KiB only."""
        return self.io_bytes * 1024 if self.io_kbytes is None else self.io_bytes

    @property
    def bytes_per_s(self) -> float:
        """Throughput [B/s]."""
        return self.bw * 1024 if self.bw_bytes is None else self.bw_bytes

    @property
    def latency_mean_ns(self) -> float:
        """Mean latency from submission to completion [ns], 0 if fio did not measure it."""
        return self.lat_ns.mean or self.lat.mean * _NS_PER_US

    @property
    def completion_mean_ns(self) -> float:
        """Mean latency without submission [ns], 0 if fio did not measure it."""
        return self.clat_ns.mean or self.clat.mean * _NS_PER_US

    def percentile_ns(self, key: str) -> float | None:
        """Return a percentile of the latency without submission [ns], such as ``99.000000``."""
        if key in self.clat_ns.percentile:
            return self.clat_ns.percentile[key]
        if key in self.clat.percentile:
            return self.clat.percentile[key] * _NS_PER_US
        return None


class FioEntry(_FioObject):
    """An entry of fio's list of jobs: a job, one clone of it or, with ``group_reporting``, a group."""

    jobname: str = ""
    groupid: int = 0
    error: int = 0
    options: dict[str, Any] = Field(default_factory=dict, alias="job options")
    read: FioDirection = Field(default_factory=FioDirection)
    write: FioDirection = Field(default_factory=FioDirection)


class _FioOutput(_FioObject):
    options: dict[str, Any] = Field(default_factory=dict, alias="global options")
    jobs: list[FioEntry] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class FioJob:
    """A job of fio with all its clones.

    Attributes
    ----------
    path
        File that it is from.
    name
        Name of the job.
    options
        Its options, global ones included.
    entries
        Its entries in the output: one for each clone, or one for all of them.
    """

    path: Path
    name: str
    options: Mapping[str, Any]
    entries: Sequence[FioEntry]

    @property
    def group(self) -> int:
        """Number of its group. Jobs that run one after the other (``stonewall``) are of several groups."""
        return self.entries[0].groupid

    @property
    def clients(self) -> int:
        """Clones that ran at the same time [count]."""
        if len(self.entries) > 1:
            return len(self.entries)
        return self.option("numjobs", "1", count)

    def option(
        self, key: str, default: str, convert: Callable[[str], ValueT]
    ) -> ValueT:
        """Return an option.

        Raises
        ------
        MeasuredError
            If `convert` refuses its value.
        """
        try:
            return convert(str(self.options.get(key, default)))
        except ValueError as error:
            problem = Problem(place=str(self.path), key=key, detail=one_line(error))
            raise MeasuredError(problem) from None

    @property
    def kind(self) -> str:
        """Kind of its requests (``rw``), such as ``randwrite``."""
        return str(self.options.get("rw", self.options.get("readwrite", "")))

    def directions(self, op: str) -> list[FioDirection]:
        """Return the reads or the writes of each entry."""
        return [getattr(entry, op) for entry in self.entries]

    @property
    def moved(self) -> list[str]:
        """Operations of its requests, ``read`` before ``write``, without the reads that verify writes."""
        kinds = ["read", "write"]
        if self.kind.partition(":")[0] in ("write", "randwrite"):
            kinds = ["write"]
        return [op for op in kinds if any(one.has_moved for one in self.directions(op))]


def read_fio_jobs(path: Path) -> list[FioJob]:
    """Read the jobs of a fio output.

    Without ``group_reporting`` fio lists each clone of a job (``numjobs``). The clones are one job here.

    Raises
    ------
    MeasuredError
        If the file is not an output of fio, or a job ended with an error.
    """
    output = _read(path)
    clones: dict[tuple[Any, ...], list[FioEntry]] = {}
    for number, entry in enumerate(output.jobs):
        options = {**output.options, **entry.options}
        key: tuple[Any, ...] = (
            entry.jobname,
            entry.groupid,
            json.dumps(options, sort_keys=True),
        )
        if str(options.get("group_reporting", "0")) != "0":
            # An entry is a group, with all clones.
            key = (number,)
        clones.setdefault(key, []).append(entry)
    failed = [entry.error for entry in output.jobs if entry.error]
    if failed:
        got, wanted = f"error {failed[0]}", "jobs that ended without one"
        raise MeasuredError(
            Problem(place=str(path), key="jobs", got=got, wanted=wanted)
        )
    return [
        FioJob(
            path=path,
            name=entries[0].jobname,
            options={**output.options, **entries[0].options},
            entries=entries,
        )
        for entries in clones.values()
    ]


def is_of_fio(path: Path) -> bool:
    """Return True if a file has the version of fio, as even an output that was cut off has."""
    with path.open("rb") as file:
        return b'"fio version"' in file.read(_HEAD_BYTES)


def rate_of(directions: Sequence[FioDirection]) -> float:
    """Return the requests per second of entries that ran at the same time."""
    return sum(direction.iops for direction in directions)


def check_rate(path: Path, rate_per_s: float, requests: str) -> None:
    """Refuse a rate of 0, and one that is not a number.

    Raises
    ------
    MeasuredError
        The message names the `requests`.
    """
    if 0 < rate_per_s < inf:
        return
    got, wanted = f"no {requests} requests", "some"
    raise MeasuredError(Problem(place=str(path), key="jobs", got=got, wanted=wanted))


def latency_mean_ns(
    directions: Sequence[FioDirection],
    mean_ns: Callable[[FioDirection], float] = lambda one: one.latency_mean_ns,
) -> float | None:
    """Return the mean latency of the requests of all entries [ns], None if one of them has none."""
    moved = [direction for direction in directions if direction.iops]
    if not moved or not all(map(mean_ns, moved)):
        return None
    total_ns = sum(mean_ns(direction) * direction.iops for direction in moved)
    return total_ns / rate_of(moved)


def percentile_ns(directions: Sequence[FioDirection], key: str) -> float | None:
    """Return a percentile [ns]. Those of several entries have no common one."""
    if len(directions) > 1:
        return None
    return directions[0].percentile_ns(key)


def count(text: str) -> int:
    """Parse a positive number of fio."""
    if not re.fullmatch(r"[1-9]\d{0,6}", text):
        raise ValueError(f"got {text}, wanted a number above 0")
    return int(text)


def mean_block_bytes(job: FioJob, op: str) -> int:
    """Return the mean size of the reads or writes [B], by the options if fio did not count them."""
    directions = job.directions(op)
    requests = sum(direction.total_ios or 0 for direction in directions)
    moved_bytes = sum(direction.moved_bytes for direction in directions)
    if requests and moved_bytes:
        return round(moved_bytes / requests)
    return job.option("bs", "4k", block_bytes)


def block_bytes(text: str) -> int:
    """Parse fio's block size, with units that are powers of 1024. Use the first of several sizes."""
    match = re.fullmatch(r"(\d{1,12})([kKmMgG]?)(?:i?[bB])?(?:,.*)?", text)
    if match is None or int(match[1]) == 0:
        raise ValueError(f"got {text}, wanted a size such as 4k")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2].lower()]


def read_output(path: Path, wanted: str) -> dict[str, Any]:
    """Read the JSON document in the output of a program.

    Raises
    ------
    MeasuredError
        If there is none. The message states what is `wanted`.
    """
    try:
        # PowerShell puts a byte order mark before what it redirects.
        document: dict[str, Any] = document_in(path.read_text("utf-8-sig"))
    except UnicodeDecodeError:
        raise MeasuredError(
            Problem(
                place=str(path),
                got="a text that is not UTF-8",
                wanted=f"{wanted}, in UTF-8",
            )
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise MeasuredError(
            Problem(place=str(path), got=one_line(error), wanted=wanted)
        ) from None
    return document


def _read(path: Path) -> _FioOutput:
    if path.is_file() and path.stat().st_size > _BYTES_MAX:
        got, wanted = f"{path.stat().st_size} B", f"{_WANTED}, at most {_BYTES_MAX} B"
        raise MeasuredError(Problem(place=str(path), got=got, wanted=wanted))
    document = read_output(path, _WANTED)
    try:
        return _FioOutput.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise MeasuredError(
            Problem(
                place=str(path),
                key=".".join(map(str, first["loc"])),
                detail=f"{first['msg']}, wanted {_WANTED}",
            )
        ) from None
