"""Planned changes of a cluster: the tables `[[changes]]` of a scenario."""

from typing import Annotated, Final, Literal

from pydantic import Discriminator, Field, Tag

from stripesim.scenarios.schema.types import (
    Count,
    OsdId,
    SchemeText,
    Table,
    TimeS,
)

ChangeKind = Literal["out", "in", "weight", "add", "remove", "scheme"]

#: Keys that each kind of change needs, and those that it may have.
CHANGE_KEYS: Final[dict[str, tuple[set[str], set[str]]]] = {
    "out": ({"osds"}, set()),
    "in": ({"osds"}, set()),
    "weight": ({"osds", "weight"}, set()),
    "add": ({"hosts"}, {"osds_per_host", "weight"}),
    "remove": ({"hosts"}, set()),
    "scheme": ({"scheme"}, set()),
}
#: Changes of one scenario at most.
CHANGES_MAX: Final = 1000


def _number_or_list(value: object) -> str:
    return "=list" if isinstance(value, list | tuple) else "=number"


HostsToChange = Annotated[
    Annotated[Count, Tag("=number")]
    | Annotated[tuple[OsdId, ...], Field(min_length=1), Tag("=list")],
    Discriminator(_number_or_list),
]


class ChangeSpec(Table):
    """One planned change. Changes run one after another, each once the cluster is clean."""

    kind: ChangeKind
    """out: OSDs stay up and their data moves away; in: they come back; weight: another CRUSH weight of OSDs;
    add: new hosts; remove: hosts are drained; scheme: the pool is copied into a new one and deleted."""
    osds: tuple[OsdId, ...] | None = Field(default=None, min_length=1)
    """Numbers of the OSDs, for out, in and weight."""
    weight: Annotated[float, Field(ge=0, le=10_000)] | None = None
    """CRUSH weight of each of the OSDs [TiB by convention], for weight; for add that of each new OSD, if left
    out the one of the OSDs that exist."""
    hosts: HostsToChange | None = None
    """Number of new hosts [count], for add; list of the hosts to drain, for remove."""
    osds_per_host: Count | None = None
    """OSDs of each new host [count], for add; leave out to take that of the last host."""
    scheme: SchemeText | None = None
    """Scheme of the new pool, for scheme."""
    at_s: TimeS | None = None
    """When, in simulated time [s]; leave out to begin once the cluster is clean after the changes before."""
