"""Resource roles in a request, such as the primary's cores, independent of the host that it runs on."""

from functools import cache
from typing import NamedTuple

import numpy as np

from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.graph import NO_SHARD, IntArray

# Once per request.
CLIENT_SUBMIT, CLIENT_TX, CLIENT_RX, CLIENT_CPU, PUBLIC_TX, PUBLIC_RX, PUBLIC_WIRE = (
    range(7)
)
(
    PRIMARY_WORKER,
    PRIMARY_CPU,
    PG_LOCK,
    PG_EXEC,
    PG_PIPELINE,
    PRIMARY_MESSENGER,
    CLIENT_THREAD,
    PRIMARY_THROTTLE,
) = range(7, 15)
_FIXED = (
    "client.submit",
    "client.tx",
    "client.rx",
    "client.cpu",
    "primary.public.tx",
    "primary.public.rx",
    "public.wire",
    "primary.worker",
    "primary.cpu",
    "pg.lock",
    "pg.exec",
    "pg.pipeline",
    "primary.messenger",
    "client.thread",
    "primary.throttle",
)

# Once per shard. `out` leads from the primary to the shard and `back` returns to the primary. Both are
# unbound if the two share a host.
# `client side` is the public network of the shard's host, for clients that read shards directly.
WORKER, CPU, SSD, KV, SYNC, OUT_TX, OUT_WIRE, OUT_RX, BACK_TX, BACK_WIRE, BACK_RX = (
    range(11)
)
(
    CLIENT_SIDE_TX,
    CLIENT_SIDE_RX,
    MESSENGER,
    FINISHER,
    SSD_LINK,
    SSD_WRITER,
    AIO,
    READER,
    THROTTLE,
    DEFERRED,
) = range(11, 21)
_PER_SHARD = (
    "worker",
    "cpu",
    "ssd",
    "kv",
    "sync",
    "out.tx",
    "out.wire",
    "out.rx",
    "back.tx",
    "back.wire",
    "back.rx",
    "public.tx",
    "public.rx",
    "messenger",
    "finisher",
    "ssd.link",
    "ssd.write",
    "aio",
    "reader",
    "throttle",
    "deferred",
)

FIXED_ROLES = len(_FIXED)
SHARD_ROLES = len(_PER_SHARD)


def shard_role(shard: int, part: int) -> int:
    """Return the role index of one part of one shard.

    >>> role_name(shard_role(3, SSD))
    'shard[3].ssd'
    """
    return FIXED_ROLES + shard * SHARD_ROLES + part


def role_count(width: int) -> int:
    """Return the number of roles of a scheme with `width` shards, without delays between sites."""
    return FIXED_ROLES + width * SHARD_ROLES


def shards_of(of_steps: IntArray, own: range) -> IntArray:
    """Return the shard of each role, `NO_SHARD` for those that do not belong to a shard of one object.

    `own` are the roles of the object.

    Examples
    --------
    >>> shards_of(np.array([4, 15, 40, 80]), range(20, 62)).tolist()
    [-1, -1, 0, -1]
    """
    shards = (of_steps - own.start - FIXED_ROLES) // SHARD_ROLES
    is_own = (of_steps >= own.start + FIXED_ROLES) & (of_steps < own.stop)
    return np.where(is_own, shards, NO_SHARD)


#: Roles of the network between a client and the primary, which the two do not use on one host.
CLIENT_NETWORK = (CLIENT_TX, CLIENT_RX, PUBLIC_TX, PUBLIC_RX, PUBLIC_WIRE)
#: Roles of the client, which are the same for a request and for an update of the object map.
CLIENT_ROLES = (CLIENT_SUBMIT, CLIENT_TX, CLIENT_RX, CLIENT_CPU, CLIENT_THREAD)


def of_map(own: IntArray, data_roles: int) -> IntArray:
    """Return the roles of an update of the object map, given those of a write to the pool of the maps.

    The roles of the map's OSDs follow the `data_roles` of the data's pool.
    """
    is_clients = (own < 0) | np.isin(own, CLIENT_ROLES)
    shifted: IntArray = np.where(is_clients, own, own + data_roles)
    return shifted


def role_name(role: int) -> str:
    """Return the name of a role for figures and messages."""
    if role < 0:
        return ""
    if role < FIXED_ROLES:
        return _FIXED[role]
    shard, part = divmod(role - FIXED_ROLES, SHARD_ROLES)
    return f"shard[{shard}].{_PER_SHARD[part]}"


class Osd(NamedTuple):
    """Roles of an OSD in a request, and the phase of its processor time."""

    worker: int
    cpu: int
    messenger: int
    throttle: int  #: Admission limit for client requests
    #: `public_tx`, `public_wire`, `public_rx`: the OSD's side of the public network
    public_tx: int
    public_wire: int
    public_rx: int
    phase: Phase


PRIMARY = Osd(
    worker=PRIMARY_WORKER,
    cpu=PRIMARY_CPU,
    messenger=PRIMARY_MESSENGER,
    throttle=PRIMARY_THROTTLE,
    public_tx=PUBLIC_TX,
    public_wire=PUBLIC_WIRE,
    public_rx=PUBLIC_RX,
    phase=Phase.PRIMARY_CPU,
)


@cache
def osd_of(shard: int) -> Osd:
    """Return the roles of a shard's OSD, including for the primary's shard."""
    return Osd(
        worker=shard_role(shard, WORKER),
        cpu=shard_role(shard, CPU),
        messenger=shard_role(shard, MESSENGER),
        throttle=shard_role(shard, THROTTLE),
        public_tx=shard_role(shard, CLIENT_SIDE_TX),
        public_wire=shard_role(shard, CLIENT_SIDE_RX),
        public_rx=shard_role(shard, CLIENT_SIDE_RX),
        phase=Phase.SHARD_CPU,
    )
