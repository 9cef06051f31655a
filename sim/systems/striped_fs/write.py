"""The five-step write of a record as an op graph, and runs of it on the engines.

Client overhead, master process, parity calculation, data distribution, slave process: the steps are given
apart as their source does, by differences of times. `step_times` reads the times at which the marks of the
graph are passed from runs that reply at each mark in turn.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from stripesim.sim.ceph.pool import Book
from stripesim.sim.engine.graph import COUNTER_INDEX, GraphBuilder, Template
from stripesim.sim.engine.program import EngineRun, ListedRequests, Program, Resources
from stripesim.sim.run import engine_named
from stripesim.sim.systems.striped_fs import participants as roles
from stripesim.sim.systems.striped_fs.participants import FileStream, StripedSystem

STEPS = ("client", "master", "parity", "distribution", "slave")
STEP_NAMES = {
    "client": "Client Overhead",
    "master": "Master Process",
    "parity": "Parity Calculation",
    "distribution": "Data Distribution",
    "slave": "Slave Process",
}

# Far enough apart that one record never meets another, near enough for the engines' range of times.
_APART_NS = 10_000_000_000


@dataclass
class _Graph:
    """A record's graph with its marks: steps whose completion bounds one of the five parts."""

    builder: GraphBuilder
    reply: int = 0
    marks: dict[str, int] = field(default_factory=dict)


def record_template(
    system: StripedSystem,
    record_bytes: int,
    *,
    allocates: bool = False,
    mark: str = "replied",
) -> Template:
    """Compile the write of one record."""
    graph = _build(system, record_bytes, allocates)
    return graph.builder.finish(reply=graph.marks[mark])


def _build(system: StripedSystem, record_bytes: int, allocates: bool) -> _Graph:
    geometry, model = system.geometry, system.model
    builder = GraphBuilder(f"{geometry.k}+{geometry.m} record of {record_bytes} B")
    graph = _Graph(builder)
    work_ns = model.client_ns(record_bytes, system.network_bits_per_s)
    step = builder.use(
        roles.CLIENT_CPU,
        work_ns,
        after=[builder.issue],
        label="client tasks",
        cpu_ns=round(work_ns),
    )
    if allocates:
        trips_ns = model.mds_round_trip_ns * model.mds_round_trips_per_chunk_set
        step = builder.use(
            roles.MDS,
            trips_ns,
            after=[step],
            label="chunk set from the metadata server",
        )
    ahead = _send_record(system, graph, record_bytes, step)
    step = graph.marks["at home"] = step if system.write_back else ahead
    step = builder.acquire(roles.LOCK, after=[step], label="chunk-set lock")
    for mark, work_ns in (
        ("processed", model.master_ns(geometry, record_bytes)),
        (
            "encoded",
            model.parity_ns(geometry, record_bytes, kernel_factor=system.kernel_factor),
        ),
    ):
        step = graph.marks[mark] = builder.use(
            roles.HOME_CPU,
            work_ns,
            after=[step],
            label={"processed": "master process", "encoded": "parity calculation"}[
                mark
            ],
            cpu_ns=round(work_ns),
            encode_bytes=record_bytes
            if mark == "encoded" and system.kernel_factor
            else 0,
        )
    collected = _distribute(system, graph, record_bytes, step)
    step = builder.release(roles.LOCK, after=[collected], label="chunk-set lock")
    step = _answer(system, graph, step, (roles.MASTER_TX, roles.CLIENT_RX), "result")
    graph.marks["replied"] = builder.join([step, ahead], label="done")
    return graph


def _send_record(
    system: StripedSystem, graph: _Graph, record_bytes: int, after: int
) -> int:
    if system.encode_at == "client":
        return after
    # Under write-back the wire carries the next record's data meanwhile: as much, at the same time.
    ends = (roles.CLIENT_TX, roles.MASTER_RX)
    _, arrival = _transfer(system, graph, record_bytes, after, ends, "record")
    return arrival


def _transfer(
    system: StripedSystem,
    graph: _Graph,
    payload_bytes: int,
    after: int,
    ends: tuple[int, int],
    what: str,
) -> tuple[int, int]:
    """One message with data; return the steps at which it has left and, a frame later, has arrived."""
    builder, nic = graph.builder, system.nic
    size_bytes = round(payload_bytes + system.model.message_header_bytes)
    at_client = roles.CLIENT_TX in ends or (
        roles.HOME_TX in ends and system.encode_at == "client"
    )
    left = builder.use(
        ends[0],
        nic.serialise_ns(size_bytes),
        after=[after],
        label=f"{what} sent",
        messages=1,
        **{
            "public_net_bytes" if at_client else "private_net_bytes": nic.traffic_bytes(
                size_bytes
            )
        },
    )
    received = builder.use(
        ends[1], nic.serialise_ns(size_bytes), after=[after], label=f"{what} received"
    )
    last_ns = nic.serialise_ns(min(size_bytes, nic.frame_payload_bytes))
    arrival = builder.delay(
        ends[1], last_ns, after=[left, received], label=f"last frame of {what}"
    )
    return left, arrival


def _answer(
    system: StripedSystem, graph: _Graph, after: int, ends: tuple[int, int], what: str
) -> int:
    """One message without data, at the line's rate and behind nobody; return its arrival."""
    time_ns = (
        system.nic.serialise_ns(round(system.model.message_header_bytes))
        * system.model.network_efficiency_fraction
    )
    step = graph.builder.delay(ends[0], time_ns, after=[after], label=f"{what} sent")
    return graph.builder.delay(ends[1], time_ns, after=[step], label=f"{what} received")


def _distribute(
    system: StripedSystem, graph: _Graph, record_bytes: int, encoded: int
) -> int:
    """Fan out to the slaves and wait for all of them; return the step at which all have answered."""
    builder = graph.builder
    shard_bytes = system.geometry.shard_bytes(record_bytes)
    local = 1 if system.encode_at == "master" else 0
    # The constant of a record is a lapse of time, not work: calls and wake-ups on both sides.
    left = builder.delay(
        roles.LOCK,
        system.model.distribution_record_ns,
        after=[encoded],
        label="calls and wake-ups",
    )
    stored = []
    for shard in range(system.geometry.width):
        begin = encoded
        if shard >= local:
            # A block goes out when the one before it has left.
            ends = (roles.HOME_TX, roles.shard_role(shard, roles.SHARD_RX))
            left, begin = _transfer(
                system, graph, shard_bytes, left, ends, f"block {shard}"
            )
        end = _store(system, graph, shard, shard_bytes, begin)
        # All slaves are alike, so the last to be served is the one that the record waits for.
        graph.marks["stored from"], graph.marks["stored"] = begin, end
        if shard >= local:
            ends = (
                roles.shard_role(shard, roles.SHARD_TX),
                roles.shard_role(shard, roles.SHARD_REPLY),
            )
            end = _answer(system, graph, end, ends, f"answer {shard}")
        stored.append(end)
    collected = graph.marks["collected"] = builder.join(
        stored, label="all slaves have answered"
    )
    return collected


def _store(
    system: StripedSystem, graph: _Graph, shard: int, shard_bytes: int, begin: int
) -> int:
    builder, hdd = graph.builder, system.hdd
    cpu, disk, dirty = (
        roles.shard_role(shard, part)
        for part in (roles.SHARD_CPU, roles.SHARD_DISK, roles.SHARD_DIRTY)
    )
    work_ns = system.model.slave_ns(shard_bytes)
    if hdd is not None:
        begin = builder.acquire(dirty, after=[begin], label=f"memory {shard}")
    step = builder.use(
        cpu,
        work_ns,
        after=[begin],
        label=f"slave process {shard}",
        cpu_ns=round(work_ns),
    )
    if hdd is None:
        return step
    on_disk = builder.use(
        disk,
        hdd.write_ns(shard_bytes),
        after=[step],
        label=f"disk {shard}",
        device_write_bytes=shard_bytes,
        device_write_ops=1,
    )
    freed = builder.release(dirty, after=[on_disk], label=f"memory {shard}")
    return step if hdd.dirty_bytes else freed


def step_times(
    system: StripedSystem,
    record_sizes_bytes: Sequence[int],
    *,
    engine: str = "compiled",
) -> list[dict[str, float]]:
    """Time the five steps of lone records on an engine.

    As the source tells them apart: parity and slave process are measured where they happen; distribution is
    the time from encoding to the last answer without the slave process; master process is the rest of the
    time at the data servers; client overhead is the rest of all. A record that has to wait for its own
    transfer shows the wait as client overhead. Chunk allocation is spread over the records of a chunk set.
    """
    file = FileStream()
    book = Book(system.bindings([file]))
    marks = (
        "at home",
        "processed",
        "encoded",
        "stored from",
        "stored",
        "collected",
        "replied",
    )
    chosen = []
    for size in record_sizes_bytes:
        chosen += [book.add(record_template(system, size, mark=mark)) for mark in marks]
        chosen.append(book.add(record_template(system, size, allocates=True)))
    run = engine_named(engine)(
        Program(
            resources=system.resources([file], max(record_sizes_bytes)),
            book=book,
            streams=[
                # Each far from the one before.
                ListedRequests(
                    np.array(chosen, dtype=np.int64),
                    np.zeros(len(chosen), dtype=np.int64),
                    depth=0,
                    arrivals_ns=_APART_NS * np.arange(len(chosen), dtype=np.int64),
                )
            ],
        )
    )
    passed = (run.streams[0].completed_ns - run.streams[0].issued_ns).reshape(
        -1, len(marks) + 1
    )
    return [
        _steps(dict(zip((*marks, "allocated"), row, strict=True)), system, size)
        for row, size in zip(passed.tolist(), record_sizes_bytes, strict=True)
    ]


def _steps(
    at_ns: dict[str, int], system: StripedSystem, record_bytes: int
) -> dict[str, float]:
    slave = at_ns["stored"] - at_ns["stored from"]
    allocation = at_ns["allocated"] - at_ns["replied"]
    client = at_ns["at home"] + at_ns["replied"] - at_ns["collected"]
    return {
        "client": client
        + allocation / system.geometry.records_per_chunk_set(record_bytes),
        "master": float(at_ns["processed"] - at_ns["at home"]),
        "parity": float(at_ns["encoded"] - at_ns["processed"]),
        "distribution": float(at_ns["collected"] - at_ns["encoded"] - slave),
        "slave": float(slave),
    }


@dataclass(frozen=True)
class FilesRun:
    """Files written at the same time."""

    elapsed_ns: int  # From the first issue to the last reply [ns].
    finished_ns: tuple[int, ...]  # When each file was done [ns].
    latency_mean_ns: float  # Mean time of a record [ns].
    throughput_bytes_per_s: float  # Data bytes over `elapsed_ns` [B/s].
    # By kind of resource: busy time of the busiest one over its capacity and `elapsed_ns`.
    utilisation: dict[str, float]
    # Kind of the busiest resource; ``one record at a time`` where none is busy half of the time.
    bottleneck: str
    # Mean utilisation of the cores of the files' masters (of the clients, where they encode).
    server_cpu_fraction: float
    # Traffic per data byte, with and without a client at one end; messages without data are left out.
    public_net_bytes: float
    private_net_bytes: float
    sha256: str  # Fingerprint of the completion times.
    engine_run: EngineRun


BUSY_FRACTION = 0.5
WAITING = "one record at a time"


def write_files(
    system: StripedSystem,
    files: Sequence[FileStream],
    *,
    record_bytes: int,
    records: int,
    engine: str = "compiled",
) -> FilesRun:
    """Write files at the same time, a record at a time, from points spread evenly over chunk sets."""
    if not files or records < 1:
        raise roles.StripedSystemError(
            f"files: got {len(files)} of {records} records, wanted at least one of one"
        )
    book = Book(system.bindings(files))
    plain = book.add(record_template(system, record_bytes))
    allocating = book.add(record_template(system, record_bytes, allocates=True))
    period = system.geometry.records_per_chunk_set(record_bytes)
    at = (
        np.arange(records)[None, :]
        + (np.arange(len(files)) * period // len(files))[:, None]
    )
    templates = np.where(at % period == 0, allocating, plain)
    resources = system.resources(files, record_bytes)
    run = engine_named(engine)(
        Program(
            resources=resources,
            book=book,
            streams=[
                ListedRequests(own, np.full_like(own, binding), depth=1)
                for binding, own in enumerate(templates)
            ],
        )
    )
    completed = [stream.completed_ns for stream in run.streams]
    elapsed_ns = int(max(times.max() for times in completed))
    latencies = np.concatenate(
        [stream.completed_ns - stream.issued_ns for stream in run.streams]
    )
    utilisation = dict(_utilisation(resources, run, elapsed_ns))
    busiest = max(utilisation, key=lambda kind: utilisation[kind])
    data_bytes = len(files) * records * record_bytes
    bound = book.bindings[0] >= 0
    per_record = book.templates[plain].totals(bound)
    homes = np.unique(book.bindings[:, roles.HOME_CPU])
    cores = resources.capacities[homes]
    return FilesRun(
        elapsed_ns=elapsed_ns,
        finished_ns=tuple(int(times.max()) for times in completed),
        latency_mean_ns=float(latencies.mean()),
        throughput_bytes_per_s=data_bytes * 1e9 / elapsed_ns,
        utilisation=utilisation,
        bottleneck=busiest if utilisation[busiest] >= BUSY_FRACTION else WAITING,
        server_cpu_fraction=float((run.busy_ns[homes] / cores).mean() / elapsed_ns),
        public_net_bytes=float(per_record[COUNTER_INDEX["public_net_bytes"]])
        / record_bytes,
        private_net_bytes=float(per_record[COUNTER_INDEX["private_net_bytes"]])
        / record_bytes,
        sha256=hashlib.sha256(np.concatenate(completed).tobytes()).hexdigest(),
        engine_run=run,
    )


def _utilisation(
    resources: Resources, run: EngineRun, elapsed_ns: int
) -> Iterator[tuple[str, float]]:
    kinds = np.array(resources.kinds)
    shares = run.busy_ns / resources.capacities / elapsed_ns
    for kind in dict.fromkeys(resources.kinds):
        if kind not in ("file.lock", "server.dirty"):
            yield kind, float(shares[kinds == kind].max())
