"""What an explanation is made of: steps and where they run, holds, the critical path, the timeline."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from stripesim.scenarios.explain.record import RecordedStep
from stripesim.scenarios.explain.shares import Share
from stripesim.sim.engine.program import PENDING
from stripesim.sim.observe.critical_path import critical_steps

Op = Literal["write", "read", "repair"]

#: What a step's time is spent on.
CATEGORIES = ("client", "network", "cpu", "coding", "ssd", "pause", "wait")


@dataclass(frozen=True)
class TimelineStep:
    """A step of a request with its place in the drawing and the source of its duration."""

    step: RecordedStep
    lane: str  # where it runs: client, primary or shard N
    branch: (
        int | None
    )  # shard whose sub-operation it is, also on the primary; None: of the whole request
    category: str  # one of CATEGORIES, or empty for a step that only orders others
    coding_ns: int  # the part of a stay on a core that encodes, decodes or rebuilds
    shares: tuple[Share, ...]  # parameters behind its duration, the greatest first

    def to_json(self) -> dict[str, Any]:
        """Return a document of plain values."""
        step = asdict(self.step)
        # It stands there as `branch`.
        del step["shard"]
        return {
            "lane": self.lane,
            "branch": self.branch,
            "category": self.category,
            "coding_ns": self.coding_ns,
            **step,
            "wait_ns": self.step.wait_ns,
            "duration_ns": self.step.duration_ns,
            "predecessors": list(self.step.predecessors),
            "parameters": [share._asdict() for share in self.shares],
        }


@dataclass(frozen=True)
class Hold:
    """A lock, a slot or a place in a pipeline, from taking it to giving it back."""

    role: str  # such as pg.lock
    resource: str  # such as pg.2a.lock
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Timeline:
    """One request, explained."""

    scheme: str
    op: Op
    state: str
    generation: str
    #: `size_bytes`, `offset_bytes`: extent in the image [B]; of a repair the object's size
    size_bytes: int
    offset_bytes: int
    #: `width`, `data_shards`, `primary`: shards, data shards (copies: 1), and the shard that is the primary
    width: int
    data_shards: int
    primary: int
    missing: tuple[
        int, ...
    ]  #: Shards that cannot be reached; of a repair those that are rebuilt
    osds: tuple[int, ...]  #: OSD of each shard; −1 where there is none
    #: `latency_ns`, `end_ns`: reply, and end of what happens behind it [ns]
    latency_ns: int
    end_ns: int
    steps: tuple[TimelineStep, ...]  #: By start
    holds: tuple[Hold, ...]  #: By start
    #: Positions in `steps` of the critical path: each began when the one before it was complete
    path: tuple[int, ...]
    #: Each parameter that a step names, with unit, provenance and source
    parameters: dict[str, dict[str, Any]]
    #: `shard_reads`, `shard_writes`: shards that data is read from and written to
    shard_reads: int = 0
    shard_writes: int = 0
    #: `metadata_reads`, `metadata_writes`: shards that are asked for the object info only, and those that get
    #: a transaction without data
    metadata_reads: int = 0
    metadata_writes: int = 0
    #: How a write computes parities, see `stripesim.models.coding.WritePlan`; of a read ``direct`` or
    #: ``primary``
    method: str = ""
    #: Says so where the code was never timed and its kernel costs are interpolated from others
    kernel_notes: tuple[str, ...] = ()

    def totals(self) -> dict[str, int]:
        """Sum what the steps account, by counter; what waking threads takes is in their durations only."""
        found: dict[str, int] = {}
        for entry in self.steps:
            for name, amount in entry.step.counted.items():
                found[name] = found.get(name, 0) + amount
        return found

    def latency_by_category_ns(self) -> dict[str, int]:
        """Split the latency over `CATEGORIES`, along the critical path [ns]; the parts add up to it."""
        found = dict.fromkeys(CATEGORIES, 0)
        for index in self.path:
            entry = self.steps[index]
            found["wait"] += entry.step.wait_ns
            if entry.category:
                found["coding"] += entry.coding_ns
                found[entry.category] += entry.step.duration_ns - entry.coding_ns
        return found

    def to_json(self) -> dict[str, Any]:
        """Return a document of plain values."""
        plain = (
            "scheme",
            "op",
            "state",
            "generation",
            "size_bytes",
            "offset_bytes",
            "primary",
            "latency_ns",
            "end_ns",
            "shard_reads",
            "shard_writes",
            "metadata_reads",
            "metadata_writes",
            "method",
        )
        return {
            **{name: getattr(self, name) for name in plain},
            "kernel_notes": list(self.kernel_notes),
            "missing_shards": list(self.missing),
            "osds": list(self.osds),
            "latency_by_category_ns": self.latency_by_category_ns(),
            "totals": self.totals(),
            "critical_path": list(self.path),
            "steps": [entry.to_json() for entry in self.steps],
            "holds": [asdict(hold) for hold in self.holds],
            "parameters": list(self.parameters.values()),
        }


def located(
    steps: Sequence[RecordedStep],
    shares: Sequence[Sequence[Sequence[Share]]],
    primary: int,
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


def _lane(role: str, primary: int) -> str:
    if role.startswith("client."):
        return "client"
    # What leaves for a shard leaves from the primary's interface, and what comes back arrives there.
    if not role.startswith("shard[") or role.endswith(("out.tx", "back.rx")):
        return "primary"
    shard = int(role[len("shard[") : role.index("]")])
    if shard == primary:
        return "primary"
    return f"shard {shard}"


def _category(step: RecordedStep) -> str:
    """Return what a step's service is spent on, by the kind of what it needs."""
    part = step.role.rpartition(".")[2]
    if step.word == "delay":
        return _DELAYS.get(part, "pause")
    if step.word != "use":
        return ""
    if part in _USES:
        return _USES[part]
    return "client" if step.role.startswith("client.") else "cpu"


#: What a delay, and a use, of such a part of a host is spent on.
_DELAYS = {"wire": "network", "rx": "network"}
_USES = {"tx": "network", "rx": "network", "ssd": "ssd", "sync": "ssd"}


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
            found.append(
                Hold(step.role, step.resource, waiting.pop(0).end_ns, step.end_ns)
            )
    return sorted(found, key=lambda hold: (hold.start_ns, hold.end_ns, hold.role))


def critical_path(steps: Sequence[RecordedStep], reply: int) -> tuple[int, ...]:
    """Find the steps that set the latency, as indices into `steps`, from the issue to the reply."""
    own = {step.index: place for place, step in enumerate(steps) if step.graph == 0}
    ends_ns = [PENDING] * (max(own) + 1)
    before: list[tuple[int, ...]] = [()] * len(ends_ns)
    for index, place in own.items():
        ends_ns[index] = steps[place].end_ns
        before[index] = steps[place].predecessors
    return tuple(own[index] for index in critical_steps(before, ends_ns, reply))
