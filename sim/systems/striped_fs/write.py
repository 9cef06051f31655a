"""The five-step write of a record as an op graph, and its execution on the engines.

The steps are client overhead, master process, parity calculation, data distribution and slave process. As in
their source, each is a difference of times: `step_times` runs records that reply at each mark of the graph in
turn.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stripesim.models.problems import ProblemsError
from stripesim.sim.ceph.pool import Book
from stripesim.sim.engine.graph import COUNTER_INDEX, Template
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import EngineRun, ListedRequests, Program, Resources
from stripesim.sim.run import engine_named
from stripesim.sim.systems.striped_fs import participants as roles
from stripesim.sim.systems.striped_fs.participants import FileStream, StripedSystem
from stripesim.sim.systems.transfer import send_message

STEPS = ("client", "master", "parity", "distribution", "slave")
STEP_NAMES = {
    "client": "Client Overhead",
    "master": "Master Process",
    "parity": "Parity Calculation",
    "distribution": "Data Distribution",
    "slave": "Slave Process",
}

# Separates records so that they never meet, within the engines' range of times.
_APART_NS = 10_000_000_000


@dataclass
class _Graph:
    """A record's graph and its marks: steps whose completion bounds one of the five parts."""

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
    """Compile the write of one record.

    Parameters
    ----------
    system
        The system.
    record_bytes
        Size of the record [B].
    allocates
        True if the record begins a chunk set.
    mark
        Mark of the graph at which the record replies.

    Returns
    -------
    Template
        The compiled write.
    """
    graph = _build(system, record_bytes, allocates)
    return graph.builder.finish(reply=graph.marks[mark])


def _build(system: StripedSystem, record_bytes: int, allocates: bool) -> _Graph:
    geometry = system.geometry
    model = system.model
    builder = GraphBuilder(f"{geometry.k}+{geometry.m} record of {record_bytes} B")
    graph = _Graph(builder)
    client_ns = model.client_ns(record_bytes, system.network_bits_per_s)
    step = builder.use(
        roles.CLIENT_CPU,
        client_ns,
        after=[builder.issue],
        label="client tasks",
        cpu_ns=round(client_ns),
    )
    if allocates:
        step = builder.use(
            roles.MDS,
            model.mds_round_trip_ns * model.mds_round_trips_per_chunk_set,
            after=[step],
            label="chunk set from the metadata server",
        )
    sent = step
    if system.encode_at == "master":
        # With write-back, the wire carries the same amount of the next record's data at the
        # same time.
        ends = (roles.CLIENT_TX, roles.MASTER_RX)
        _, sent = _transfer(system, builder, record_bytes, step, ends, "record")
    if not system.write_back:
        step = sent
    graph.marks["at home"] = step
    step = builder.acquire(roles.LOCK, after=[step], label="chunk-set lock")
    master_ns = model.master_ns(geometry, record_bytes)
    step = graph.marks["processed"] = builder.use(
        roles.HOME_CPU,
        master_ns,
        after=[step],
        label="master process",
        cpu_ns=round(master_ns),
    )
    factor = system.kernel_factor
    parity_ns = model.parity_ns(geometry, record_bytes, kernel_factor=factor)
    step = graph.marks["encoded"] = builder.use(
        roles.HOME_CPU,
        parity_ns,
        after=[step],
        label="parity calculation",
        cpu_ns=round(parity_ns),
        encode_bytes=record_bytes if factor else 0,
    )
    collected = _distribute(system, graph, record_bytes, step)
    step = builder.release(roles.LOCK, after=[collected], label="chunk-set lock")
    ends = (roles.MASTER_TX, roles.CLIENT_RX)
    step = _answer(system, builder, step, ends, "result")
    graph.marks["replied"] = builder.join([step, sent], label="done")
    return graph


def _transfer(
    system: StripedSystem,
    builder: GraphBuilder,
    payload_bytes: int,
    after: int,
    ends: tuple[int, int],
    name: str,
) -> tuple[int, int]:
    """Add a message with data, and return the steps at which it has left and its last frame has arrived."""
    at_client = system.encode_at == "client" or roles.CLIENT_TX in ends
    return send_message(
        builder,
        system.nic,
        round(payload_bytes + system.model.message_header_bytes),
        after=after,
        ends=ends,
        name=name,
        counter="public_net_bytes" if at_client else "private_net_bytes",
    )


def _answer(
    system: StripedSystem,
    builder: GraphBuilder,
    after: int,
    ends: tuple[int, int],
    name: str,
) -> int:
    """Add a message without data, at the line rate and without queueing, and return its arrival."""
    header_ns = system.nic.serialise_ns(round(system.model.message_header_bytes))
    time_ns = header_ns * system.model.network_efficiency_fraction
    step = builder.delay(ends[0], time_ns, after=[after], label=f"{name} sent")
    return builder.delay(ends[1], time_ns, after=[step], label=f"{name} received")


def _distribute(
    system: StripedSystem, graph: _Graph, record_bytes: int, encoded: int
) -> int:
    """Send blocks to the slaves, and return the step at which all of them have answered."""
    builder = graph.builder
    shard_bytes = system.geometry.shard_bytes(record_bytes)
    # The constant of a record is elapsed time, not work: calls and wake-ups on both sides.
    left = builder.delay(
        roles.LOCK,
        system.model.distribution_record_ns,
        after=[encoded],
        label="calls and wake-ups",
    )
    answered = []
    for shard in range(system.geometry.width):
        is_remote = shard > 0 or system.encode_at == "client"
        begin = encoded
        if is_remote:
            # A block leaves after the previous one.
            ends = (roles.HOME_TX, roles.shard_role(shard, roles.SHARD_RX))
            left, begin = _transfer(
                system, builder, shard_bytes, left, ends, f"block {shard}"
            )
        end = _store(system, builder, shard, shard_bytes, begin)
        # All slaves are equal, so the record waits for the last one to be served.
        graph.marks["stored from"] = begin
        graph.marks["stored"] = end
        if is_remote:
            ends = (
                roles.shard_role(shard, roles.SHARD_TX),
                roles.shard_role(shard, roles.SHARD_REPLY),
            )
            end = _answer(system, builder, end, ends, f"answer {shard}")
        answered.append(end)
    collected = builder.join(answered, label="all slaves have answered")
    graph.marks["collected"] = collected
    return collected


def _store(
    system: StripedSystem,
    builder: GraphBuilder,
    shard: int,
    shard_bytes: int,
    begin: int,
) -> int:
    """Store a block, and return the step at which the slave answers."""
    hdd = system.hdd
    dirty = roles.shard_role(shard, roles.SHARD_DIRTY)
    work_ns = system.model.slave_ns(shard_bytes)
    if hdd is not None:
        begin = builder.acquire(dirty, after=[begin], label=f"memory {shard}")
    processed = builder.use(
        roles.shard_role(shard, roles.SHARD_CPU),
        work_ns,
        after=[begin],
        label=f"slave process {shard}",
        cpu_ns=round(work_ns),
    )
    if hdd is None:
        return processed
    on_disk = builder.use(
        roles.shard_role(shard, roles.SHARD_DISK),
        hdd.write_ns(shard_bytes),
        after=[processed],
        label=f"disk {shard}",
        device_write_bytes=shard_bytes,
        device_write_ops=1,
    )
    freed = builder.release(dirty, after=[on_disk], label=f"memory {shard}")
    return processed if hdd.dirty_bytes else freed


def step_times(
    system: StripedSystem,
    record_sizes_bytes: Sequence[int],
    *,
    engine: str = "compiled",
) -> list[dict[str, float]]:
    """Return the times of the five steps of single records.

    Parameters
    ----------
    system
        The system.
    record_sizes_bytes
        Sizes of the records [B].
    engine
        Name of the engine.

    Returns
    -------
    list of dict
        Time of each step [ns], one row per record.

    Notes
    -----
    Steps are separated as in the source. Parity and slave process are measured directly. Distribution is the
    time from encoding to the last answer without the slave process. Master process is the remaining time at
    the data servers. Client overhead is the remainder, in which a record waits for its own transfer. Chunk
    allocation is spread over the records of a chunk set.
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
    templates = []
    for size in record_sizes_bytes:
        templates += [record_template(system, size, mark=mark) for mark in marks]
        templates.append(record_template(system, size, allocates=True))
    count = len(templates)
    requests = ListedRequests(
        np.array([book.add(template) for template in templates], dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        queue_depth=0,
        arrivals_ns=_APART_NS * np.arange(count, dtype=np.int64),
    )
    resources = system.resources([file], max(record_sizes_bytes))
    run = engine_named(engine)(
        Program(resources=resources, book=book, streams=[requests])
    )
    stream = run.streams[0]
    times_ns = (stream.completed_ns - stream.issued_ns).reshape(-1, len(marks) + 1)
    return [
        _steps(dict(zip((*marks, "allocated"), row, strict=True)), system, size)
        for row, size in zip(times_ns.tolist(), record_sizes_bytes, strict=True)
    ]


def _steps(
    at_ns: dict[str, int], system: StripedSystem, record_bytes: int
) -> dict[str, float]:
    slave = at_ns["stored"] - at_ns["stored from"]
    allocation = at_ns["allocated"] - at_ns["replied"]
    client = at_ns["at home"] + at_ns["replied"] - at_ns["collected"]
    records = system.geometry.records_per_chunk_set(record_bytes)
    return {
        "client": client + allocation / records,
        "master": float(at_ns["processed"] - at_ns["at home"]),
        "parity": float(at_ns["encoded"] - at_ns["processed"]),
        "distribution": float(at_ns["collected"] - at_ns["encoded"] - slave),
        "slave": float(slave),
    }


@dataclass(frozen=True)
class FilesRun:
    """The result of files written at the same time.

    Attributes
    ----------
    elapsed_ns
        Time from the first issue to the last reply [ns].
    finished_ns
        Completion time of each file [ns].
    latency_mean_ns
        Mean time of a record [ns].
    throughput_bytes_per_s
        Data bytes over `elapsed_ns` [B/s].
    utilisation
        Utilisation of the busiest resource of each kind, 0 to 1.
    bottleneck
        Kind of the busiest resource, or `WAITING` if none is busy half of the time.
    server_cpu_fraction
        Mean utilisation of the cores of the files' masters, or of the clients if they encode.
    public_net_bytes, private_net_bytes
        Traffic per data byte, with and without a client at one end. Messages without data are excluded.
    sha256
        Fingerprint of the completion times.
    engine_run
        The engine's result.
    """

    elapsed_ns: int
    finished_ns: tuple[int, ...]
    latency_mean_ns: float
    throughput_bytes_per_s: float
    utilisation: dict[str, float]
    bottleneck: str
    server_cpu_fraction: float
    public_net_bytes: float
    private_net_bytes: float
    sha256: str
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
    """Write files at the same time, one record at a time, from offsets spread evenly over chunk sets.

    Parameters
    ----------
    system
        The system.
    files
        The files to write.
    record_bytes
        Size of a record [B].
    records
        Records per file.
    engine
        Name of the engine.

    Returns
    -------
    FilesRun
        The result.

    Raises
    ------
    ProblemsError
        If there are no files or records, or if a file names a client or server that does not exist.
    """
    if not files or records < 1:
        raise ProblemsError(
            f"files: got {len(files)} of {records} records, wanted at least one of one"
        )
    book = Book(system.bindings(files))
    plain = book.add(record_template(system, record_bytes))
    allocating = book.add(record_template(system, record_bytes, allocates=True))
    period = system.geometry.records_per_chunk_set(record_bytes)
    offsets = np.arange(len(files)) * period // len(files)
    numbers = np.arange(records)[None, :] + offsets[:, None]
    templates = np.where(numbers % period == 0, allocating, plain)
    resources = system.resources(files, record_bytes)
    streams = [
        ListedRequests(own, np.full_like(own, binding), queue_depth=1)
        for binding, own in enumerate(templates)
    ]
    run = engine_named(engine)(Program(resources=resources, book=book, streams=streams))
    completed = [stream.completed_ns for stream in run.streams]
    elapsed_ns = int(max(times.max() for times in completed))
    latencies = np.concatenate(
        [stream.completed_ns - stream.issued_ns for stream in run.streams]
    )
    utilisation = _utilisation(resources, run, elapsed_ns)
    busiest = max(utilisation, key=utilisation.__getitem__)
    data_bytes = len(files) * records * record_bytes
    per_record = book.templates[plain].totals(book.bindings[0] >= 0)
    public_bytes = float(per_record[COUNTER_INDEX["public_net_bytes"]])
    private_bytes = float(per_record[COUNTER_INDEX["private_net_bytes"]])
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
        public_net_bytes=public_bytes / record_bytes,
        private_net_bytes=private_bytes / record_bytes,
        sha256=hashlib.sha256(np.concatenate(completed).tobytes()).hexdigest(),
        engine_run=run,
    )


def _utilisation(
    resources: Resources, run: EngineRun, elapsed_ns: int
) -> dict[str, float]:
    kinds = resources.numbered_kinds
    shares = run.busy_ns / resources.capacities / elapsed_ns
    return {
        kind: float(shares[kinds.are(kind)].max())
        for kind in kinds.names
        if kind not in roles.POOL_KINDS
    }
