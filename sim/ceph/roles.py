"""Roles: who takes part in a request, by what it is there, never by which one it is."""

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
) = range(7, 14)
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
)

# Once per shard. `out` leads from the primary to the shard, `back` from the shard to the primary; both are
# unbound where the two share a host.
# `client side` is the public network of the shard's host, for clients that read shards themselves.
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
) = range(11, 19)
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
    """Number of roles of a scheme with `width` shards."""
    return FIXED_ROLES + width * SHARD_ROLES


def role_name(role: int) -> str:
    """Return a role's name, for drawings and messages."""
    if role < 0:
        return ""
    if role < FIXED_ROLES:
        return _FIXED[role]
    shard, part = divmod(role - FIXED_ROLES, SHARD_ROLES)
    return f"shard[{shard}].{_PER_SHARD[part]}"
