"""Replay a recorded trace: its devices become images, its requests keep their order and times."""

import numpy as np

from stripesim.scenarios.cells.files import cached_by_content
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.types import RUN_S_MAX
from stripesim.scenarios.schema.units import format_size
from stripesim.sim.ceph.clients.workload import Replay, Requests
from stripesim.traces.columns import BlockTrace
from stripesim.traces.read import read_trace


def replay_of(scenario: Scenario) -> Replay:
    """Build the replay of a scenario's trace; a faulty line is an error, as skipping it alters the load."""
    workload = scenario.workload
    stated_bytes = None
    if "image_bytes" in workload.model_fields_set:
        stated_bytes = workload.image_bytes
    requests = requests_of(_trace_of(scenario))
    if workload.replay == "recorded":
        _check_length(scenario, requests.at(slice(workload.requests)))
    replay = Replay(
        requests,
        speed=workload.speed,
        queue_depth=workload.queue_depth if workload.replay == "closed" else 0,
        limit=workload.requests,
        clients=workload.clients,
        image_bytes=stated_bytes,
    )
    if replay.image_bytes < replay.end_bytes:
        end = f"{replay.end_bytes:,} bytes, where a request of the trace ends"
        wanted = (
            f"at least {end}; without the key, images are as large as the trace needs"
        )
        raise scenario.problem(
            "workload.image_bytes", format_size(replay.image_bytes), wanted
        )
    return replay


def _check_length(scenario: Scenario, requests: Requests) -> None:
    """Refuse a replay whose last request arrives later than a run may last."""
    assert requests.arrivals_ns is not None
    last_s = float(requests.arrivals_ns.max(initial=0)) / 1e9 / scenario.workload.speed
    if last_s > RUN_S_MAX:
        got = f"a last request after {last_s:.3g} s"
        wanted = (
            f"one after at most {RUN_S_MAX:g} s: a clock that jumps gives such times, as does a small "
            "workload.speed"
        )
        raise scenario.problem("workload.trace", got, wanted)


def images_of(scenario: Scenario) -> tuple[int, int]:
    """Return the number of images of a replay, one for each device, and the size of each [B]."""
    replay = replay_of(scenario)
    return replay.images, replay.image_bytes


def arrival_warnings(scenario: Scenario) -> list[str]:
    """Warn of a replay at recorded times whose requests all arrive at once."""
    workload = scenario.workload
    if workload.replay != "recorded":
        return []
    arrivals_ns = requests_of(_trace_of(scenario)).arrivals_ns
    assert arrivals_ns is not None
    count = len(arrivals_ns[: workload.requests])
    if count < 2 or arrivals_ns[:count].any():
        return []
    return [
        f"{scenario.where('workload', 'trace')}: all {count:,} requests arrive at once, because the trace "
        'has no times; replay = "closed" keeps queue_depth of them in flight'
    ]


def recorded_latency(scenario: Scenario) -> dict[str, float]:
    """Return columns with the latency that the trace recorded, to compare with the simulated one."""
    frame = _trace_of(scenario).requests
    frame = frame.filter(frame["length_bytes"] > 0).head(
        scenario.workload.requests or len(frame)
    )
    spans = (frame["complete_ns"] - frame["issue_ns"]).drop_nulls().to_numpy()
    if not len(spans):
        return {}
    p50, p95, p99 = np.percentile(spans, [50, 95, 99])
    values = {"mean": spans.mean(), "p50": p50, "p95": p95, "p99": p99}
    return {
        f"recorded_latency_{name}_ns": float(value) for name, value in values.items()
    }


@cached_by_content(maxsize=2)
def _read(path: str, form: str | None) -> BlockTrace:
    return read_trace(path, format=form, strict=True)


def _trace_of(scenario: Scenario) -> BlockTrace:
    workload = scenario.workload
    assert workload.trace is not None
    return _read(str(scenario.resolve(workload.trace)), workload.trace_format)


def requests_of(trace: BlockTrace) -> Requests:
    """Return the requests of a block trace that have a length, with one image for each device."""
    frame = trace.requests.filter(trace.requests["length_bytes"] > 0)
    devices = frame["device"].unique(maintain_order=True).to_list()
    numbers = {device: index for index, device in enumerate(devices)}
    images = frame["device"].replace_strict(numbers, return_dtype=None)
    offsets, lengths, arrivals, images_of = (
        series.to_numpy().astype(np.int64)
        for series in (
            frame["offset_bytes"],
            frame["length_bytes"],
            frame["issue_ns"],
            images,
        )
    )
    return Requests(
        is_write=frame["is_write"].to_numpy().astype(bool),
        images=images_of,
        offsets_bytes=offsets,
        lengths_bytes=lengths,
        arrivals_ns=arrivals
        - arrivals.min(initial=arrivals[0] if len(arrivals) else 0),
    )
