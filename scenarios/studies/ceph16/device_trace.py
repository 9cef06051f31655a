"""Block traces of the simulated devices, for comparison with real ones."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from stripesim.scenarios.studies.ceph16.cluster import build_pool
from stripesim.scenarios.studies.ceph16.measured import MeasuredRun
from stripesim.sim.ceph.clients.workload import Replay
from stripesim.sim.ceph.planner import RequestPlanner
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import COUNTER_INDEX
from stripesim.sim.engine.program import Program
from stripesim.sim.engine.simpy.engine import SimpyEngine
from stripesim.sim.engine.simpy.paths import PathStep, RequestInFlight
from stripesim.sim.run import factor_tables
from stripesim.traces.columns import BlockTrace

# One bin that holds a whole run: the engine accounts step by step only with bins.
_ONE_BIN_NS = 1 << 60
_BLOCK_BYTES = 4096
# Regions of a simulated device: newly allocated data, the log's file, the log of the file system that holds
# it, and older data.
_DATA, _LOG, _FILE_SYSTEM_LOG, _OLD = (region << 40 for region in range(4))
_READ, _WRITE, _LOGGED = (
    COUNTER_INDEX[name]
    for name in ("device_read_bytes", "device_write_bytes", "device_log_bytes")
)


@dataclass
class _Device:
    """Offsets of the next write of each kind on one device [B]."""

    data: int = _DATA
    log: int = _LOG
    file_system_log: int = _FILE_SYSTEM_LOG
    rows: list[dict[str, Any]] = field(default_factory=list)


class DeviceRecorder(SimpyEngine):
    """The reference engine, which also records the commands of each device.

    The hook is the accounting of a step when it completes. A command is taken to begin its mean service time
    earlier. One sync is one write of the log, beginning with the block of its end, and one block of the file
    system's log. New data starts at the end of the last write, as on an empty device. The steps do not say
    where older data is, so reads and deferred writes are never sequential here. No claim rests on them.
    """

    def __init__(self, program: Program) -> None:
        self.devices: defaultdict[int, _Device] = defaultdict(_Device)
        self._synced: dict[tuple[int, int], list[int]] = {}
        super().__init__(program)

    def account(self, request: RequestInFlight, step: PathStep) -> None:
        """Account a completed step and record its command."""
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
        first_byte = _OLD + len(device.rows) * (1 << 24) if read else device.data
        length = -(-(read or written) // _BLOCK_BYTES) * _BLOCK_BYTES
        if not read:
            device.data += length
        device.rows.append(
            _row(begin_ns, now_ns, first_byte, length, is_write=not read)
        )

    def finish(self) -> None:
        """Add the syncs to their devices, whose resources differ from those of the data."""
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
    """Simulate a measured run and return the trace of each OSD's device."""
    pool = build_pool(run.coded.name, run.coded.stripe_unit_bytes)
    book = pool.book()
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
