"""Define the timeline of a request: steps and where they run, locks held, the critical path."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from stripesim.models.documents import Documented
from stripesim.scenarios.answers.explain.record import RecordedStep
from stripesim.scenarios.answers.explain.shares import ParameterShare
from stripesim.scenarios.schema.types import BlockOp, S3Op
from stripesim.sim.engine.program import PENDING
from stripesim.sim.observe.critical_path import critical_steps

Op = Literal[BlockOp, "repair", S3Op]

#: Lane of the OSDs that update the object map of a fresh image.
OBJECT_MAP = "object map"
#: Lane of the OSDs that hold the bucket index.
BUCKET_INDEX = "bucket index"
#: Kinds of time that a step spends.
CATEGORIES = ("client", "network", "cpu", "coding", "ssd", "pause", "wait")


@dataclass(frozen=True)
class TimelineStep(Documented):
    """A step of a request, its place in drawings, and the source of its duration."""

    step: RecordedStep
    # Host that runs it: "client", "primary" or "shard N". `OBJECT_MAP` for the OSDs of the object map.
    lane: str
    # Shard of its sub-operation, on the primary as well. None for the whole request.
    branch: int | None
    category: str  # One of CATEGORIES, or empty for a step that only orders others.
    coding_ns: int  # Part of its time on a core that encodes, decodes or rebuilds.
    shares: tuple[
        ParameterShare, ...
    ]  # Parameters that set its duration, the largest share first.

    in_document: ClassVar = (
        "lane",
        "branch",
        "category",
        "coding_ns",
        # The document calls the step's shard `branch`.
        *(
            (one.name, f"step.{one.name}")
            for one in fields(RecordedStep)
            if one.name != "shard"
        ),
        ("wait_ns", "step.wait_ns"),
        ("duration_ns", "step.duration_ns"),
        ("parameters", "shares"),
    )

    @property
    def host(self) -> int | str:
        """Host that its work is for: the index of a shard, or a lane."""
        if self.branch is not None:
            return self.branch
        return "primary" if self.lane.startswith("shard ") else self.lane


@dataclass(frozen=True)
class Hold:
    """The time that the request holds a lock, a slot or a place in a pipeline."""

    role: str  # Such as pg.lock.
    resource: str  # Such as pg.2a.lock.
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Timeline(Documented):
    """The steps of one request, with their times and the parameters that set them."""

    scheme: str
    op: Op
    state: str
    generation: str
    size_bytes: int  #: Size of the request, or of the object that a repair rebuilds [B]
    offset_bytes: int  #: Offset in the image [B]
    width: int  #: Number of shards
    data_shards: int  #: Number of data shards, 1 for replication
    primary: int  #: Index of the primary's shard
    missing: tuple[int, ...]  #: Unavailable shards, or those that a repair rebuilds
    osds: tuple[int, ...]  #: OSD of each shard, −1 for a shard without one
    latency_ns: int  #: Time of the reply [ns]
    end_ns: int  #: End of the last step, which may come after the reply [ns]
    steps: tuple[TimelineStep, ...]  #: Steps in order of start
    holds: tuple[Hold, ...]  #: Locks and slots held, in order of start
    #: Critical path as indices into `steps`; each step starts when the one before it completes
    path: tuple[int, ...]
    #: Unit, provenance and source of each parameter that a step names
    parameters: dict[str, dict[str, Any]]
    shard_reads: int = 0  #: Shards from which data is read
    shard_writes: int = 0  #: Shards to which data is written
    metadata_reads: int = 0  #: Shards that return only the object info
    metadata_writes: int = 0  #: Shards that get a transaction without data
    #: Method of computing parities (see `stripesim.models.coding.WritePlan`), or of a read: ``direct`` or
    #: ``primary``
    method: str = ""
    #: Offset at which a request needs the data of another OSD [B], if the primary has all data of this one
    remote_offset_bytes: int | None = None
    #: Warning if the code was never timed, so that its kernel costs are interpolated from other codes
    kernel_notes: tuple[str, ...] = ()

    in_document: ClassVar = (
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
        "remote_offset_bytes",
        "kernel_notes",
        ("missing_shards", "missing"),
        "osds",
        "latency_by_category_ns",
        "totals",
        ("critical_path", "path"),
        "steps",
        "holds",
        ("parameters", "parameters.values"),
    )

    def __repr__(self) -> str:
        request = f"{self.op} of {self.size_bytes:,} bytes"
        pool = f"{self.scheme}, {self.generation}, {self.state}"
        latency = f"{self.latency_ns / 1e3:,.1f} µs"
        return f"<Timeline: {request}, {pool}, {latency}, {len(self.steps)} steps>"

    def _repr_html_(self) -> str:
        """Return the latency by category, which notebooks show."""
        lines = [
            f"<tr><td>{category}</td><td>{spent_ns / 1e3:,.1f}</td></tr>"
            for category, spent_ns in self.latency_by_category_ns().items()
            if spent_ns
        ]
        heads = "<tr><th>critical path</th><th>µs</th></tr>"
        sentence = html.escape(repr(self).strip("<>"))
        return f"<p>{sentence}</p><table>{heads}{''.join(lines)}</table>"

    def lanes(self) -> list[str]:
        """List the lanes that are no shards: client, gateway, primary, or parts of an S3 request."""
        used = dict.fromkeys(entry.lane for entry in self.steps)
        if self.width:
            order = ("client", OBJECT_MAP, "primary")
            return [name for name in order if name in used or name == "primary"]
        return sorted(used, key=lambda name: name != "client")

    def totals(self) -> dict[str, int]:
        """Sum the counters of all steps. Wake-ups of threads add to durations only."""
        totals: dict[str, int] = {}
        for entry in self.steps:
            for name, amount in entry.step.counted.items():
                totals[name] = totals.get(name, 0) + amount
        return totals

    def latency_by_category_ns(self) -> dict[str, int]:
        """Split the latency along the critical path by category [ns]; the parts add up to it."""
        spent_ns = dict.fromkeys(CATEGORIES, 0)
        for index in self.path:
            entry = self.steps[index]
            spent_ns["wait"] += entry.step.wait_ns
            if entry.category:
                spent_ns["coding"] += entry.coding_ns
                spent_ns[entry.category] += entry.step.duration_ns - entry.coding_ns
        return spent_ns


def located(
    steps: Sequence[RecordedStep],
    shares: Sequence[Sequence[Sequence[ParameterShare]]],
    primary: int,
) -> list[TimelineStep]:
    """Assign each step its lane, shard and category."""
    return [
        TimelineStep(
            step=step,
            lane=_lane(step, primary),
            branch=step.shard,
            category=_category(step),
            coding_ns=step.counted.get("coding_ns", 0),
            shares=tuple(shares[step.graph][step.index]),
        )
        for step in steps
    ]


def _lane(step: RecordedStep, primary: int) -> str:
    role = step.role
    if role.startswith("client."):
        return "client"
    part = _s3_part(step)
    if part:
        return part
    # Delays have no role.
    is_delay_of_map = not role and step.label.startswith(OBJECT_MAP)
    if role.startswith("map.") or is_delay_of_map:
        return OBJECT_MAP
    # Messages to and from a shard use the primary's interface.
    if not role.startswith("shard[") or role.endswith(("out.tx", "back.rx")):
        return "primary"
    shard = int(role[len("shard[") : role.index("]")])
    if shard == primary:
        return "primary"
    return f"shard {shard}"


def _s3_part(step: RecordedStep) -> str:
    """Return the part of an S3 request that a step belongs to, or nothing for other requests."""
    # Steps without a role name their part in the label.
    name = step.role.partition(".")[0] or step.label.partition(":")[0]
    number = name.removeprefix("tail[").removesuffix("]")
    if name.startswith("tail["):
        return f"tail {int(number) + 1}"
    if name.startswith("index") or name == "garbage noted":
        return BUCKET_INDEX
    return (
        name
        if name in ("client", "gateway", "head") or name.startswith("tail ")
        else ""
    )


def _category(step: RecordedStep) -> str:
    """Return the category of a step, by the kind of resource that it needs."""
    part = step.role.rpartition(".")[2]
    if step.word == "delay":
        # The thread of an S3 client has no role.
        own = "client" if step.label.startswith("client:") else "pause"
        return _DELAYS.get(part, own)
    if step.word != "use":
        return ""
    if part in _USES:
        return _USES[part]
    return "client" if step.role.startswith("client.") else "cpu"


#: Category of a delay or a use, by the last part of its role.
_DELAYS = {"wire": "network", "rx": "network", "far": "network"}
_USES = {
    "tx": "network",
    "rx": "network",
    "ssd": "ssd",
    "sync": "ssd",
    # A drive's write buffer and its link to the host, if they are queues of their own
    "write": "ssd",
    "link": "ssd",
}


# A gate is held from enter to leave, a pool from acquire to release.
_TAKES = {"acquire", "enter"}
_GIVES = {"release", "leave"}


def holds(steps: Sequence[RecordedStep]) -> list[Hold]:
    """Pair each acquire with its release."""
    taken: dict[tuple[int, str], list[RecordedStep]] = {}
    pairs = []
    for step in sorted(steps, key=lambda step: (step.end_ns, step.graph, step.index)):
        if not step.resource or step.word not in _TAKES | _GIVES:
            continue
        waiting = taken.setdefault((step.graph, step.role), [])
        if step.word in _TAKES:
            waiting.append(step)
        elif waiting:
            pairs.append(
                Hold(step.role, step.resource, waiting.pop(0).end_ns, step.end_ns)
            )
    return sorted(pairs, key=lambda hold: (hold.start_ns, hold.end_ns, hold.role))


def critical_path(steps: Sequence[RecordedStep], reply: int) -> tuple[int, ...]:
    """Return the critical path from issue to reply, as indices into `steps`."""
    own = {step.index: place for place, step in enumerate(steps) if step.graph == 0}
    ends_ns = [PENDING] * (max(own) + 1)
    before: list[tuple[int, ...]] = [()] * len(ends_ns)
    for index, place in own.items():
        ends_ns[index] = steps[place].end_ns
        before[index] = steps[place].predecessors
    return tuple(own[index] for index in critical_steps(before, ends_ns, reply))
