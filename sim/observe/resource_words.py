"""Name the classes of resources for readers: the one table of their words."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from stripesim.sim.observe.limits import BETWEEN_SITES, LATENCY, NO_BOTTLENECK


class ResourceWords(NamedTuple):
    """Words for a class of resources."""

    member: str  #: One resource of the class, such as ``key-value thread of an OSD``
    #: What a planner can buy or change, such as ``drives``. Empty for a class that bounds no rate
    limit: str = ""
    server: str = ""  #: One server of a resource of the class
    where: str = ""  #: What servers of the class belong to, or where they are

    def counted(self, count: int) -> str:
        """Write a number of servers.

        >>> RESOURCE_WORDS["gateway.thread"].counted(512)
        '512 threads of gateways'
        """
        ending = "" if count == 1 else "s"
        return f"{count:,} {self.server}{ending} {self.where}".rstrip()


#: Words by class, in the order of a request's path.
RESOURCE_WORDS: Final[Mapping[str, ResourceWords]] = MappingProxyType(
    {
        "client.submit": ResourceWords(
            "client’s submission thread", "clients", "submission thread", "of clients"
        ),
        "client.tx": ResourceWords(
            "client’s network, sending", "network of clients", "sending interface"
        ),
        "client.rx": ResourceWords(
            "client’s network, receiving",
            "network of clients",
            "receiving interface",
        ),
        "gateway.thread": ResourceWords(
            "threads of a gateway", "gateways", "thread", "of gateways"
        ),
        "gateway.messenger": ResourceWords(
            "messenger threads of a gateway",
            "gateways (messenger threads)",
            "messenger thread",
        ),
        "gateway.budget": ResourceWords(
            "data that a gateway has in flight at most",
            "gateways (data in flight)",
            "operation",
            "in flight",
        ),
        "gateway.serial": ResourceWords(
            "state that requests of a gateway share",
            "gateways (shared state)",
            "gateway",
        ),
        "gateway.cpu": ResourceWords(
            "cores of a gateway", "processors of gateways", "core"
        ),
        "gateway.tx": ResourceWords(
            "network of a gateway, sending",
            "network of gateways",
            "sending interface",
        ),
        "gateway.rx": ResourceWords(
            "network of a gateway, receiving",
            "network of gateways",
            "receiving interface",
        ),
        "cpu": ResourceWords("CPU cores of a host", "processors", "core"),
        "osd.cpu": ResourceWords(
            "CPU cores or limit of an OSD", "processors of OSDs", "core", "of OSDs"
        ),
        "public.tx": ResourceWords(
            "public network, sending", "public network", "sending interface"
        ),
        "public.rx": ResourceWords(
            "public network, receiving", "public network", "receiving interface"
        ),
        "private.tx": ResourceWords(
            "private network, sending", "private network", "sending interface"
        ),
        "private.rx": ResourceWords(
            "private network, receiving", "private network", "receiving interface"
        ),
        "messenger": ResourceWords(
            "messenger threads of an OSD",
            "processors (messenger threads)",
            "messenger thread",
        ),
        "throttle": ResourceWords("limit of the requests that an OSD admits"),
        "worker": ResourceWords(
            "worker threads of an OSD", "processors (worker threads)", "worker thread"
        ),
        "reader": ResourceWords(
            "threads of an OSD that wait for reads",
            "processors (worker threads)",
            "thread",
            "for reads",
        ),
        "pg.lock": ResourceWords(
            "lock of a placement group", "placement group locks", "lock"
        ),
        "pg.exec": ResourceWords(
            "execution of a placement group", "placement group locks", "lock"
        ),
        "pg.pipeline": ResourceWords("write pipeline of a placement group"),
        "map.lock": ResourceWords("lock of an image’s object map"),
        "map.exec": ResourceWords("execution of an update of an object map"),
        "map.pipeline": ResourceWords("write pipeline of an object map"),
        "index.lock": ResourceWords(
            "lock of a shard of a bucket index", "bucket indexes", "index shard"
        ),
        "index.exec": ResourceWords(
            "execution of an update of a bucket index", "bucket indexes", "index shard"
        ),
        "index.pipeline": ResourceWords("write pipeline of a bucket index"),
        "ssd": ResourceWords(
            "drive of an OSD", "drives", "request", "in service on all drives"
        ),
        "ssd.link": ResourceWords(
            "link of an OSD’s drive", "drives", "link", "from drives to hosts"
        ),
        "ssd.write": ResourceWords(
            "write buffer of an OSD’s drive",
            "drives",
            "write",
            "in service on all drives",
        ),
        "deferred": ResourceWords("room for the deferred writes of an OSD"),
        "aio": ResourceWords(
            "completion thread of an OSD",
            "processors (completion threads)",
            "completion thread",
        ),
        "kv": ResourceWords(
            "key-value thread of an OSD",
            "processors (key-value threads)",
            "key-value thread",
        ),
        "sync": ResourceWords("log sync of an OSD"),
        "finisher": ResourceWords(
            "finisher threads of an OSD",
            "processors (finisher threads)",
            "finisher thread",
        ),
        BETWEEN_SITES: ResourceWords("round trips between sites"),
        LATENCY: ResourceWords("latency: no resource is near its limit"),
        NO_BOTTLENECK: ResourceWords("none: all requests are served"),
    }
)

# Clients limit a bound or a load curve only where the scenario states them.
_STATED: Final[Mapping[str, str]] = {
    "clients": "the clients that you stated",
    "network of clients": "the network of the clients that you stated",
}


def member_words(kind: str) -> str:
    """Return the name of one resource of a class, or the class of a resource that has no words.

    >>> member_words("kv"), member_words("osd.kernel")
    ('key-value thread of an OSD', 'osd.kernel')
    """
    if kind not in RESOURCE_WORDS:
        return kind
    return RESOURCE_WORDS[kind].member


def limit_words(kind: str) -> str | None:
    """Return the name of a class of resources for planners, or None if it bounds no rate.

    >>> limit_words("kv"), limit_words("latency")
    ('processors (key-value threads)', None)
    """
    if kind not in RESOURCE_WORDS or not RESOURCE_WORDS[kind].limit:
        return None
    return stated_words(RESOURCE_WORDS[kind].limit)


def stated_words(limit: str) -> str:
    """Return the name of a limit in a sentence, where clients are those of the scenario.

    >>> stated_words("clients"), stated_words("drives")
    ('the clients that you stated', 'drives')
    """
    return _STATED.get(limit, limit)
