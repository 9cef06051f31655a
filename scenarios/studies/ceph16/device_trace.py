"""Block traces of the simulated devices, to set beside those of the real ones."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from stripesim.scenarios.studies.ceph16.cluster import build_pool
from stripesim.scenarios.studies.ceph16.measured import MeasuredRun
from stripesim.sim.ceph.clients.workload import Replay
from stripesim.sim.ceph.planner import RequestPlanner
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import COUNTER_INDEX
from stripesim.sim.engine.program import Program
from stripesim.sim.engine.simpy.engine import SimpyEngine
from stripesim.sim.engine.simpy.paths import PathStep, RequestInFlight
from stripesim.sim.run import factor_tables
from stripesim.traces.columns import BlockTrace

# One bin that holds a whole run: the engine accounts step by step only where it is asked for bins.
_ONE_BIN_NS = 1 << 60
_BLOCK_BYTES = 4096
# Regions of a simulated device: what the allocator hands out, the log's file, the log of the file system
# that holds it, and where older data lies.
_DATA, _LOG, _FILE_SYSTEM_LOG, _OLD = (region << 40 for region in range(4))
_READ, _WRITE, _LOGGED = (
    COUNTER_INDEX[name]
    for name in ("device_read_bytes", "device_write_bytes", "device_log_bytes")
)


@dataclass
class _Device:
    """Where the next write of each kind goes on one device [B]."""

    data: int = _DATA
    log: int = _LOG
    file_system_log: int = _FILE_SYSTEM_LOG
    rows: list[dict[str, Any]] = field(default_factory=list)


class DeviceRecorder(SimpyEngine):
    """The reference engine, which also notes what each device is given.

    The engine accounts a step when it completes: that is the hook. A command is taken to begin its mean
    service time before. One sync is one write of the log, from the block of its end on, and one block of
    the file system's log. Places: new data goes where the last ended, as an allocator on an empty device
    gives it out. Where older data lies the steps do not say, so reads and deferred writes are never
    sequential here; no claim rests on them.
    """

    def __init__(self, program: Program) -> None:
        self.devices: defaultdict[int, _Device] = defaultdict(_Device)
        self._synced: dict[tuple[int, int], list[int]] = {}
        super().__init__(program)

    def account(self, request: RequestInFlight, step: PathStep) -> None:
        """Account a completed step and note what it gives to a device."""
        super().account(request, step)
        resource = request.row[step.role]
        if resource is None:
            return
        read = int(step.amounts[_READ])
        written = int(step.amounts[_WRITE])
        logged = int(step.amounts[_LOGGED])
        if not read and not written:
            return
        now_ns = self.now_ns
        begin_ns = max(0, now_ns - step.demand_ns)
        if logged:
            # Members of one sync complete at the same time.
            self._synced.setdefault((resource.index, now_ns), [begin_ns, 0])[1] += (
                logged
            )
            return
        device = self.devices[resource.index]
        place = _OLD + len(device.rows) * (1 << 24) if read else device.data
        length = -(-(read or written) // _BLOCK_BYTES) * _BLOCK_BYTES
        if not read:
            device.data += length
        device.rows.append(_row(begin_ns, now_ns, place, length, is_write=not read))

    def finish(self) -> None:
        """Lay the syncs out on their devices, which are known by other resources than the data's."""
        for (resource, now_ns), (begin_ns, logged) in sorted(
            self._synced.items(), key=lambda item: item[0][1]
        ):
            device = self.devices[resource]
            start = device.log // _BLOCK_BYTES * _BLOCK_BYTES
            device.log += logged
            stop = -(-device.log // _BLOCK_BYTES) * _BLOCK_BYTES
            device.rows.append(
                _row(begin_ns, now_ns, start, stop - start, is_write=True)
            )
            device.rows.append(
                _row(
                    begin_ns,
                    now_ns,
                    device.file_system_log,
                    _BLOCK_BYTES,
                    is_write=True,
                )
            )
            device.file_system_log += _BLOCK_BYTES


def _row(
    begin_ns: int, end_ns: int, place: int, length: int, *, is_write: bool
) -> dict[str, Any]:
    return {
        "issue_ns": begin_ns,
        "dispatch_ns": begin_ns,
        "complete_ns": end_ns,
        "offset_bytes": place,
        "length_bytes": length,
        "is_write": is_write,
    }


def device_traces(run: MeasuredRun) -> dict[int, BlockTrace]:
    """Simulate a measured run and return what each OSD's device was given."""
    pool = build_pool(run.coded.name, run.coded.stripe_unit_bytes)
    book = Book(pool.bindings())
    planner = RequestPlanner(
        pool,
        book,
        Replay(run.requests, queue_depth=run.queue_depth),
        prefilled=run.op != "write",
    )
    program = Program(
        resources=pool.cluster.resources,
        book=book,
        streams=[planner],
        groups=pool.cluster.groups,
        factor_tables=factor_tables(pool),
    )
    engine = DeviceRecorder(replace(program, bin_ns=_ONE_BIN_NS))
    engine.execute()
    engine.finish()
    return _by_osd(engine, pool, run.run_id)


def _by_osd(engine: DeviceRecorder, pool: Pool, name: str) -> dict[int, BlockTrace]:
    rows: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for resource, device in engine.devices.items():
        osd = int(pool.cluster.resources.names[resource].split(".")[1])
        rows[osd] += [{**row, "device": f"7,{20 + osd}"} for row in device.rows]
    traces = {}
    for osd, listed in sorted(rows.items()):
        frame = pl.DataFrame(listed).sort("issue_ns", maintain_order=True)
        frame = frame.select(
            "issue_ns",
            "dispatch_ns",
            "complete_ns",
            "device",
            "offset_bytes",
            "length_bytes",
            "is_write",
        )
        traces[osd] = BlockTrace(
            requests=frame,
            commands=frame.drop("issue_ns"),
            format="simulated",
            source=f"{name} osd.{osd}",
        )
    return traces


def mix_of(traces: list[BlockTrace]) -> dict[str, float]:
    """Describe what devices were given, over all of them."""
    frames = [trace.commands for trace in traces if trace.commands is not None]
    every = pl.concat(
        [
            frame.select("device", "offset_bytes", "length_bytes", "is_write")
            for frame in frames
        ]
    )
    reads = every.filter(~pl.col("is_write"))
    writes = every.filter(pl.col("is_write"))
    ends: set[tuple[str, int]] = set()
    follows = 0
    for device, offset, length in writes.select(
        "device", "offset_bytes", "length_bytes"
    ).iter_rows():
        follows += (device, offset) in ends
        ends.add((device, offset + length))
    total = float(every["length_bytes"].sum())
    return {
        "read_ratio": reads.height / max(1, every.height),
        "read_bytes_ratio": float(reads["length_bytes"].sum()) / max(1.0, total),
        "bytes_mean_read": float(reads["length_bytes"].sum()) / max(1, reads.height),
        "bytes_mean_write": float(writes["length_bytes"].sum()) / max(1, writes.height),
        "share_4k": every.filter(pl.col("length_bytes") == _BLOCK_BYTES).height
        / max(1, every.height),
        "sequential_writes": follows / max(1, writes.height),
    }
