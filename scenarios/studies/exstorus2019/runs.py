"""What the study runs: the source's own experiments, then what lies beyond them. Each gives rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from stripesim.scenarios.studies.exstorus2019.fit import (
    GEOMETRY,
    StepFit,
    fit_all,
    prediction_intervals,
    system_at,
)
from stripesim.scenarios.studies.exstorus2019.parameters import hdd_model, write_model
from stripesim.scenarios.studies.exstorus2019.source import RECORD_SIZES_BYTES
from stripesim.scenarios.studies.parameters import changed_number
from stripesim.sim.systems.striped_fs.costs import StripedWriteModel, VolumeGeometry
from stripesim.sim.systems.striped_fs.participants import FileStream, StripedSystem
from stripesim.sim.systems.striped_fs.write import STEPS, step_times, write_files

Row = dict[str, Any]

GBIT_PER_S = (1.0, 10.0, 40.0, 100.0, 200.0, 400.0, 800.0)
LARGEST_BYTES = RECORD_SIZES_BYTES[-1]
CODES = ("NONE", "AVX2:CRS", "LIB", "CRS", "RS")
"""Section 2.3, in the order of its figures; AVX2:CRS is the one the tables were measured with."""
THREADS = (1, 10)
GEOMETRIES = ((2, 1), (4, 2), (8, 2), (8, 4), (16, 2), (16, 4))
"""Of those that section 2.2 says the file system supports; 4 + 2 is the measured one."""
SCALES = (6, 60, 600, 1800, 3600)
FILES_PER_SERVER = 2
CHUNKS_SMALLER = 256
SCALE_RECORDS = 32
"""Of each file; fewer where there would be more than `SCALE_RECORDS_MAX` in all."""
SCALE_RECORDS_MAX = 115_200
SHORT_RECORDS_BYTES = (512, 1024, 2048, 3072, 4096, 5120, 6144, 8192)
RECORDS = 2048
LEVEL = 0.90


@cache
def kernel_factors() -> dict[str, float]:
    """Time of each code's kernel over that of AVX2:CRS, as measured; 0 for no encoding."""
    folder = files("stripesim.scenarios.studies.exstorus2019")
    document = json.loads((folder / "kernel_ratios.json").read_text("utf-8"))["ratio"]
    return {
        code: 0.0 if code == "NONE" else changed_number(f"kernel_factor.{code}", float(document[code]))
        for code in CODES
    }


def kernel_provenance() -> dict[str, Any]:
    """What measured the ratios between the kernels."""
    folder = files("stripesim.scenarios.studies.exstorus2019")
    found: dict[str, Any] = json.loads((folder / "kernel_ratios.json").read_text("utf-8"))["provenance"]
    return found


def parameters() -> list[dict[str, Any]]:
    """Every number of the study with its provenance: models and kernel ratios."""
    listed = [*write_model().parameters("write."), *hdd_model().parameters("hdd.")]
    source = "python -m stripesim.calibration.kernels.software; see kernel_ratios.json"
    for code, factor in kernel_factors().items():
        if code != "NONE":
            listed.append(
                {
                    "name": f"kernel_factor.{code}",
                    "value": factor,
                    "unit": "1",
                    "provenance": "measured",
                    "source": source,
                    "confidence_interval": None,
                }
            )
    return listed


@dataclass(frozen=True)
class Setting:
    """What all experiments share."""

    model: StripedWriteModel
    fits: Sequence[StepFit]
    engine: str


Experiment = Callable[[Setting], Iterator[Row]]


def step_rows(setting: Setting) -> Iterator[Row]:
    """Tables 1 to 3 and beyond: five steps of lone records, by network and record size."""
    for rate in GBIT_PER_S:
        system = system_at(rate, setting.model)
        found = step_times(system, RECORD_SIZES_BYTES, engine=setting.engine)
        for size, times in zip(RECORD_SIZES_BYTES, found, strict=True):
            run = write_files(
                system, [FileStream()], record_bytes=size, records=RECORDS, engine=setting.engine
            )
            row = _row("steps", system, size, run, files_count=1)
            row |= {f"{step}_ns": times[step] for step in STEPS}
            row["total_ns"] = sum(times.values())
            if size == LARGEST_BYTES:
                intervals = prediction_intervals(
                    setting.fits, system, size, level=LEVEL, engine=setting.engine
                )
                for step, (low, high) in intervals.items():
                    row |= {f"{step}_low_ns": low, f"{step}_high_ns": high}
            yield row


def code_rows(setting: Setting) -> Iterator[Row]:
    """Figures 4 to 7: five codes, one thread and ten, a fixed master, 10 Gb/s."""
    for threads in THREADS:
        for code, factor in kernel_factors().items():
            system = replace(system_at(10.0, setting.model), kernel_factor=factor)
            run = write_files(
                system,
                [FileStream()] * threads,
                record_bytes=LARGEST_BYTES,
                records=RECORDS // 4,
                engine=setting.engine,
            )
            yield _row("codes", system, LARGEST_BYTES, run, files_count=threads) | {"code": code}


FIGURE_3 = (
    FileStream(client=0, master=0),
    FileStream(client=0, master=1),
    FileStream(client=1, master=0),
    FileStream(client=1, master=2),
)
"""Two clients, four files, three masters: files 1 and 3 share the first."""


def layout_rows(setting: Setting) -> Iterator[Row]:
    """Figure 3's layout: each file's own rate while all four are written, and alone."""
    system = replace(system_at(10.0, setting.model), clients=2)
    for names, streams in (("together", FIGURE_3), ("alone", FIGURE_3[:1])):
        run = write_files(
            system, streams, record_bytes=LARGEST_BYTES, records=RECORDS // 4, engine=setting.engine
        )
        for index, done_ns in enumerate(run.finished_ns):
            row = _row("layout", system, LARGEST_BYTES, run, files_count=len(streams))
            row["throughput_bytes_per_s"] = RECORDS // 4 * LARGEST_BYTES * 1e9 / done_ns
            yield row | {"code": f"file {index + 1} {names}", "master": streams[index].master}


def short_rows(setting: Setting) -> Iterator[Row]:
    """Records that do not fill their last encoding unit are stored with zeros."""
    system = system_at(10.0, setting.model)
    for size in SHORT_RECORDS_BYTES:
        run = write_files(system, [FileStream()], record_bytes=size, records=RECORDS, engine=setting.engine)
        row = _row("short records", system, size, run, files_count=1)
        yield row | {"stored_bytes_per_client_byte": GEOMETRY.stored_bytes(size) / size}


def disk_rows(setting: Setting) -> Iterator[Row]:
    """Slaves on disks: memory that does not fill, memory that is full, and no memory at all."""
    hdd = hdd_model()
    small = replace(hdd, dirty_bytes=float(1 << 20))
    none = replace(hdd, dirty_bytes=0.0)
    for name, disk in (("memory only", None), ("disk, memory full", small), ("disk, no memory", none)):
        for rate in (1.0, 10.0, 40.0):
            system = replace(system_at(rate, setting.model), hdd=disk)
            run = write_files(
                system, [FileStream()], record_bytes=LARGEST_BYTES, records=RECORDS, engine=setting.engine
            )
            yield _row("disks", system, LARGEST_BYTES, run, files_count=1) | {"code": name}


def geometry_rows(setting: Setting) -> Iterator[Row]:
    """Other K + M, faster networks, and both places of encoding: one writer."""
    for k, m in GEOMETRIES:
        geometry = VolumeGeometry(
            k=k, m=m, block_bytes=GEOMETRY.block_bytes, chunk_bytes=GEOMETRY.chunk_bytes
        )
        for rate in GBIT_PER_S:
            for place in ("master", "client"):
                system = replace(system_at(rate, setting.model, geometry=geometry), encode_at=place)
                (times,) = step_times(system, [LARGEST_BYTES], engine=setting.engine)
                run = write_files(
                    system, [FileStream()], record_bytes=LARGEST_BYTES, records=256, engine=setting.engine
                )
                row = _row("geometry", system, LARGEST_BYTES, run, files_count=1)
                row |= {f"{step}_ns": times[step] for step in STEPS}
                row["total_ns"] = sum(times.values())
                row["largest_step"] = max((times[step], step) for step in STEPS)[1]
                yield row


def scale_rows(setting: Setting) -> Iterator[Row]:
    """Thousands of data servers, as many clients, two files each: which resource binds.

    A chunk set lasts for thousands of records, too many to simulate for thousands of files. Here chunks
    and the metadata server's time for them are both `CHUNKS_SMALLER` times smaller: as much of its time
    falls to a record as before, in smaller pieces.
    """
    model = setting.model
    model = replace(model, mds_round_trip_ns=model.mds_round_trip_ns / CHUNKS_SMALLER)
    geometry = replace(GEOMETRY, chunk_bytes=GEOMETRY.chunk_bytes // CHUNKS_SMALLER)
    for servers in SCALES:
        for rate, place in ((10.0, "master"), (100.0, "master"), (400.0, "master"), (10.0, "client")):
            system = replace(
                system_at(rate, model, geometry=geometry),
                servers=servers,
                clients=servers,
                encode_at=place,
            )
            streams = [
                FileStream(client=i % servers, master=(i % servers * 7 + i // servers) % servers)
                for i in range(FILES_PER_SERVER * servers)
            ]
            records = min(SCALE_RECORDS, SCALE_RECORDS_MAX // len(streams))
            run = write_files(
                system, streams, record_bytes=LARGEST_BYTES, records=records, engine=setting.engine
            )
            yield _row("scale", system, LARGEST_BYTES, run, files_count=len(streams))


EXPERIMENTS: dict[str, Experiment] = {
    "steps": step_rows,
    "codes": code_rows,
    "layout": layout_rows,
    "short records": short_rows,
    "disks": disk_rows,
    "geometry": geometry_rows,
    "scale": scale_rows,
}


def _row(experiment: str, system: StripedSystem, record_bytes: int, run: Any, *, files_count: int) -> Row:
    requests = sum(len(stream.completed_ns) for stream in run.engine_run.streams)
    return {
        "scheme": f"rs:{system.geometry.k},{system.geometry.m}",
        "op": "write",
        "pattern": "seq",
        "block_size_bytes": record_bytes,
        "requests": requests,
        "iops": requests * 1e9 / run.elapsed_ns,
        "throughput_bytes_per_s": run.throughput_bytes_per_s,
        "latency_mean_ns": run.latency_mean_ns,
        "public_net_bytes_per_client_byte": run.public_net_bytes,
        "private_net_bytes_per_client_byte": run.private_net_bytes,
        "cpu_utilisation": run.server_cpu_fraction,
        "bottleneck": run.bottleneck,
        "bottleneck_utilisation": max(run.utilisation.values()),
        "simulated_s": run.elapsed_ns / 1e9,
        "engine_wall_s": run.engine_run.wall_s,
        "experiment": experiment,
        "network_gbit_per_s": system.network_bits_per_s / 1e9,
        "encode_at": system.encode_at,
        "servers": system.servers,
        "files": files_count,
        "code": "AVX2:CRS",
        "completions_sha256": run.sha256,
    }


NEEDED = ("steps", "codes")
"""What the ledger is computed from."""


def experiment_rows(name: str, engine: str) -> Iterator[Row]:
    """Run one experiment.

    Notes
    -----
    The numbers come from ``parameters.toml``; the fit is repeated for its covariances, which intervals need.
    """
    yield from EXPERIMENTS[name](Setting(model=write_model(), fits=fit_all(engine), engine=engine))
