"""Where the steps of a request belong, what it holds, and the path that sets its latency."""

from __future__ import annotations

from collections.abc import Sequence

from stripesim.scenarios.explain.record import RecordedStep
from stripesim.scenarios.explain.sensitivity import Share
from stripesim.scenarios.explain.timeline import Hold, TimelineStep
from stripesim.sim.engine.program import PENDING
from stripesim.sim.observe.critical_path import critical_steps


def located(
    steps: Sequence[RecordedStep], shares: Sequence[Sequence[Sequence[Share]]], primary: int
) -> list[TimelineStep]:
    """Say of each step where it runs, for which shard, and what its time is spent on."""
    return [
        TimelineStep(
            step=step,
            lane=_lane(step.role, primary),
            branch=step.shard,
            category=_category(step),
            coding_ns=step.counted.get("coding_ns", 0),
            shares=tuple(shares[step.graph][step.index]),
        )
        for step in steps
    ]


def _shard(role: str) -> int | None:
    return int(role[len("shard[") : role.index("]")]) if role.startswith("shard[") else None


def _lane(role: str, primary: int) -> str:
    if role.startswith("client."):
        return "client"
    shard = _shard(role)
    # What leaves for a shard leaves from the primary's interface, and what comes back arrives there.
    if shard is None or shard == primary or role.endswith(("out.tx", "back.rx")):
        return "primary"
    return f"shard {shard}"


def _category(step: RecordedStep) -> str:
    """Tell what a step's service is spent on, by the kind of what it needs."""
    if step.word == "delay":
        return "network" if step.role.endswith(("wire", "rx")) else "pause"
    if step.word != "use":
        return ""
    part = step.role.rpartition(".")[2]
    if part in ("tx", "rx"):
        return "network"
    if part in ("ssd", "sync"):
        return "ssd"
    return "client" if step.role.startswith("client.") else "cpu"


# A gate is held from entering to leaving, as a pool from acquiring to releasing.
_TAKES = {"acquire", "enter"}
_GIVES = {"release", "leave"}


def holds(steps: Sequence[RecordedStep]) -> list[Hold]:
    """Pair what was taken with what was given back."""
    taken: dict[tuple[int, str], list[RecordedStep]] = {}
    found = []
    for step in sorted(steps, key=lambda step: (step.end_ns, step.graph, step.index)):
        if not step.resource or step.word not in _TAKES | _GIVES:
            continue
        waiting = taken.setdefault((step.graph, step.role), [])
        if step.word in _TAKES:
            waiting.append(step)
        elif waiting:
            found.append(Hold(step.role, step.resource, waiting.pop(0).end_ns, step.end_ns))
    return sorted(found, key=lambda hold: (hold.start_ns, hold.end_ns, hold.role))


def critical_path(steps: Sequence[RecordedStep], reply: int) -> tuple[int, ...]:
    """Find the steps that set the latency, as indices into `steps`, from the issue to the reply."""
    own = {step.index: place for place, step in enumerate(steps) if step.graph == 0}
    ends_ns = [PENDING] * (max(own) + 1)
    before: list[tuple[int, ...]] = [()] * len(ends_ns)
    for index, place in own.items():
        ends_ns[index], before[index] = steps[place].end_ns, steps[place].predecessors
    return tuple(own[index] for index in critical_steps(before, ends_ns, reply))
