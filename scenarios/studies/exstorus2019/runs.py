"""The source's own experiments, then further ones. Each yields rows.

Numbers come from ``parameters.toml``; the fit runs again only for its covariances, which intervals need.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stripesim.scenarios.studies.base import Setting
from stripesim.scenarios.studies.exstorus2019 import parameters
from stripesim.scenarios.studies.exstorus2019.fit import fit_all, prediction_intervals
from stripesim.scenarios.studies.exstorus2019.source import (
    LARGE_BYTES,
    RECORD_SIZES_BYTES,
)
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.systems.striped_fs.participants import FileStream, StripedSystem
from stripesim.sim.systems.striped_fs.write import (
    STEPS,
    FilesRun,
    step_times,
    write_files,
)

GBIT_PER_S = (1.0, 10.0, 40.0, 100.0, 200.0, 400.0, 800.0)
GEOMETRIES = ((2, 1), (4, 2), (8, 2), (8, 4), (16, 2), (16, 4))
"""Some of those that the file system supports (section 2.2); the source measured 4 + 2."""
SCALES = (6, 60, 600, 1800, 3600)
SHORT_RECORDS_BYTES = (512, 1024, 2048, 3072, 4096, 5120, 6144, 8192)
FIGURE_3 = (
    FileStream(client=0, master=0),
    FileStream(client=0, master=1),
    FileStream(client=1, master=0),
    FileStream(client=1, master=2),
)
"""Two clients, four files, three masters: files 1 and 3 share the first."""
RECORDS = 2048
_LONE_FILE = (FileStream(),)
_CHUNKS_SMALLER = 256


def step_rows(setting: Setting) -> Iterator[Row]:
    """Yield the five steps of lone records by network and record size: Tables 1 to 3 and beyond."""
    for rate in GBIT_PER_S:
        system = parameters.system_at(rate)
        by_size = step_times(system, RECORD_SIZES_BYTES, engine=setting.engine)
        for size, times in zip(RECORD_SIZES_BYTES, by_size, strict=True):
            row = _written("steps", system, setting.engine, record_bytes=size) | _steps(
                times
            )
            if size == LARGE_BYTES:
                intervals = prediction_intervals(
                    fit_all(setting.engine), system, size, engine=setting.engine
                )
                for step, (low, high) in intervals.items():
                    row |= {f"{step}_low_ns": low, f"{step}_high_ns": high}
            yield row


def code_rows(setting: Setting) -> Iterator[Row]:
    """Yield Figures 4 to 7: five codes, one thread and ten, a fixed master, 10 Gb/s."""
    for threads in (1, 10):
        for code, factor in parameters.kernel_factors().items():
            system = parameters.system_at(10.0, kernel_factor=factor)
            row = _written(
                "codes",
                system,
                setting.engine,
                _LONE_FILE * threads,
                records=RECORDS // 4,
            )
            yield row | {"code": code}


def layout_rows(setting: Setting) -> Iterator[Row]:
    """Yield Figure 3's layout: the rate of each file with all four written together, and alone."""
    system = parameters.system_at(10.0, clients=2)
    records = RECORDS // 4
    for name, streams in (("together", FIGURE_3), ("alone", FIGURE_3[:1])):
        run = write_files(
            system,
            streams,
            record_bytes=LARGE_BYTES,
            records=records,
            engine=setting.engine,
        )
        for index, (stream, done_ns) in enumerate(
            zip(streams, run.finished_ns, strict=True)
        ):
            yield _row("layout", system, LARGE_BYTES, run, files=len(streams)) | {
                "throughput_bytes_per_s": records * LARGE_BYTES * 1e9 / done_ns,
                "code": f"file {index + 1} {name}",
                "master": stream.master,
            }


def short_rows(setting: Setting) -> Iterator[Row]:
    """Yield records that do not fill their last encoding unit and are stored with zeros."""
    system = parameters.system_at(10.0)
    for size in SHORT_RECORDS_BYTES:
        row = _written("short records", system, setting.engine, record_bytes=size)
        yield row | {
            "stored_bytes_per_client_byte": parameters.GEOMETRY.stored_bytes(size)
            / size
        }


def disk_rows(setting: Setting) -> Iterator[Row]:
    """Yield slaves on disks: memory that does not fill, full memory, and no memory."""
    small = replace(parameters.hdd_model(), dirty_bytes=float(1 << 20))
    none = replace(parameters.hdd_model(), dirty_bytes=0.0)
    for name, disk in (
        ("memory only", None),
        ("disk, memory full", small),
        ("disk, no memory", none),
    ):
        for rate in (1.0, 10.0, 40.0):
            system = parameters.system_at(rate, hdd=disk)
            yield _written("disks", system, setting.engine) | {"code": name}


def geometry_rows(setting: Setting) -> Iterator[Row]:
    """Yield one writer with other K + M, faster networks, and both places of encoding."""
    for k, m in GEOMETRIES:
        for rate in GBIT_PER_S:
            for side in ("master", "client"):
                geometry = replace(parameters.GEOMETRY, k=k, m=m)
                system = parameters.system_at(rate, geometry=geometry, encode_at=side)
                (times,) = step_times(system, [LARGE_BYTES], engine=setting.engine)
                largest = max(STEPS, key=lambda step: (times[step], step))
                row = _written("geometry", system, setting.engine, records=256)
                yield row | _steps(times) | {"largest_step": largest}


def scale_rows(setting: Setting) -> Iterator[Row]:
    """Yield thousands of data servers and clients with two files per client, to find the resource that binds.

    A chunk set lasts for thousands of records, too many to simulate for thousands of files. Here chunks and
    the metadata server's time for them are both `_CHUNKS_SMALLER` times smaller: each record takes the same
    share of its time, in smaller pieces.
    """
    model = parameters.write_model()
    model = replace(model, mds_round_trip_ns=model.mds_round_trip_ns / _CHUNKS_SMALLER)
    geometry = replace(
        parameters.GEOMETRY,
        chunk_bytes=parameters.GEOMETRY.chunk_bytes // _CHUNKS_SMALLER,
    )
    for servers in SCALES:
        streams = [
            FileStream(
                client=i % servers, master=(i % servers * 7 + i // servers) % servers
            )
            for i in range(2 * servers)
        ]
        # Bound the total number of records.
        records = min(32, 115_200 // len(streams))
        for rate, side in (
            (10.0, "master"),
            (100.0, "master"),
            (400.0, "master"),
            (10.0, "client"),
        ):
            system = parameters.system_at(
                rate,
                model,
                geometry=geometry,
                servers=servers,
                clients=servers,
                encode_at=side,
            )
            yield _written("scale", system, setting.engine, streams, records=records)


def _steps(times: dict[str, float]) -> Row:
    return {f"{step}_ns": times[step] for step in STEPS} | {
        "total_ns": sum(times.values())
    }


def _written(
    experiment: str,
    system: StripedSystem,
    engine: str,
    streams: Sequence[FileStream] = _LONE_FILE,
    *,
    record_bytes: int = LARGE_BYTES,
    records: int = RECORDS,
) -> Row:
    """Write a number of records of each file."""
    run = write_files(
        system, streams, record_bytes=record_bytes, records=records, engine=engine
    )
    return _row(experiment, system, record_bytes, run, files=len(streams))


def _row(
    experiment: str,
    system: StripedSystem,
    record_bytes: int,
    run: FilesRun,
    *,
    files: int,
) -> Row:
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
        "files": files,
        "code": "AVX2:CRS",
        "completions_sha256": run.sha256,
    }
