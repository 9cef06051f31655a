"""Where the steps of a request belong, what it holds, and the path that sets its latency."""

from __future__ import annotations

from collections.abc import Sequence

from stripesim.scenarios.explain.record import RecordedStep
from stripesim.scenarios.explain.sensitivity import Share
from stripesim.scenarios.explain.timeline import Hold, TimelineStep

__all__ = ["critical_path", "holds", "located"]


def located(
    steps: Sequence[RecordedStep], shares: Sequence[Sequence[Sequence[Share]]], primary: int
) -> list[TimelineStep]:
    """Say of each step where it runs, for which shard, and what its time is spent on."""
    shards = _branches(steps)
    located = []
    for step in steps:
        known = shares[step.graph][step.index]
        coding = sum(
            share.change_ns for share in known if share.parameter.startswith(("kernel.", "encode_buffers."))
        )
        located.append(
            TimelineStep(
                step=step,
                lane=_lane(step.role, primary),
                branch=shards[step.graph, step.index],
                category=_category(step),
                coding_ns=coding,
                shares=tuple(known),
            )
        )
    return located


def _branches(steps: Sequence[RecordedStep]) -> dict[tuple[int, int], int | None]:
    """Find the shard whose sub-operation each step belongs to.

    A sub-operation begins with the primary's messenger for it and ends with the primary noting its reply;
    both are the primary's work, yet drawn with the shard a chain of bars tells the story.
    """
    found: dict[tuple[int, int], int | None] = {}
    in_order = sorted(steps, key=lambda step: (step.graph, step.index))
    for step in in_order:
        before = {found.get((step.graph, index)) for index in step.predecessors}
        inherits = step.label.endswith("reply") and len(before) == 1
        found[step.graph, step.index] = _shard(step.role) if _shard(step.role) is not None else (
            before.pop() if inherits else None
        )  # fmt: skip
    after: dict[tuple[int, int], set[int | None]] = {}
    for step in in_order:
        for index in step.predecessors:
            after.setdefault((step.graph, index), set()).add(found[step.graph, step.index])
    for step in in_order:
        place = (step.graph, step.index)
        shards = after.get(place, set())
        if found[place] is None and step.label.startswith("messenger, ") and len(shards) == 1:
            found[place] = next(iter(shards))
    return found


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
        return "network" if step.role.endswith("wire") else "pause"
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


def critical_path(steps: Sequence[RecordedStep], reply_ns: int) -> tuple[int, ...]:
    """Walk back from the reply: each time to the predecessor that was complete last."""
    place = {(step.graph, step.index): index for index, step in enumerate(steps)}
    replies = [step for step in steps if step.graph == 0 and step.end_ns == reply_ns]
    # Of several steps that end with the reply, it is the client's own.
    step = max(replies, key=lambda step: (step.role == "client.rx", step.index))
    path = []
    while True:
        path.append(place[step.graph, step.index])
        before = [steps[place[step.graph, i]] for i in step.predecessors if (step.graph, i) in place]
        if not before:
            return tuple(reversed(path))
        step = max(before, key=lambda other: (other.end_ns, -other.index))
