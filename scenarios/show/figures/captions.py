"""Write captions from the rows of a figure, and name and colour schemes, cells and steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from stripesim.scenarios.schema.types import S3_OPS
from stripesim.scenarios.schema.units import number_text, size_text
from stripesim.scenarios.show.quantities import QUANTITIES, Quantity, has_objects

if TYPE_CHECKING:
    import polars as pl

PATTERN_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {"seq": "Sequential", "rand": "Random"}
)
OP_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "write": "writes",
        "read": "reads",
        "mixed": "mixed requests",
        "put": "PUTs",
        "get": "GETs",
        "head": "HEADs",
        "list": "LISTs",
        "delete": "DELETEs",
    }
)

#: Names of swept keys and of columns of a cell.
_KEY_WORDS: Final[Mapping[str, str]] = {
    "op": "request",
    "pattern": "pattern",
    "block_size_bytes": "block size",
    "workload.block_sizes_bytes": "block size",
    "workload.queue_depth": "queue depth",
    "cluster.hosts": "hosts",
    "cluster.osds_per_host": "OSDs per host",
    "cluster.drive": "drive",
    "cluster.pg_num": "placement groups",
    "cluster.stripe_unit_bytes": "stripe unit",
    "cluster.public_gbit_per_s": "public network [Gbit/s]",
    "cluster.private_gbit_per_s": "private network [Gbit/s]",
    "cluster.gateways.count": "gateways",
    "cluster.gateways.cores": "cores per gateway",
    "cluster.gateways.threads": "threads per gateway",
    "cluster.gateways.place": "place of gateways",
    "client.threads": "threads per client",
    "client.place": "place of clients",
    "workload.object_sizes_bytes": "object size",
    "workload.clients": "clients",
    "workload.rate_per_s": "offered requests/s",
    "generation": "Ceph release",
}
#: Ends of further keys, with the unit that an axis states.
_UNITS: Final[Mapping[str, str]] = {
    "_gbit_per_s": "Gbit/s",
    "_bytes_per_s": "B/s",
    "_per_s": "1/s",
    "_bytes": "",
    "_ms": "ms",
    "_s": "s",
}


#: Names of families as papers write them. A user's own code keeps its own name.
_FAMILY_NAMES: Final[Mapping[str, str]] = {
    "rs": "RS",
    "lrc": "LRC",
    "lrc-ceph": "LRC-Ceph",
    "shec": "SHEC",
    "clay": "Clay",
}


#: Quantities that a few requests decide, and of which a single run gives no interval.
_WITHOUT_INTERVAL: Final = frozenset(
    {"latency_p50_ns", "latency_p95_ns", "latency_p99_ns", "latency_max_ns"}
)


class StepLook(NamedTuple):
    """The names and colour of a step."""

    words: str
    heading: (
        str  # two lines, hardly wider than a number, so that all fit on 100 columns
    )
    colour: str


# Okabe & Ito, "Color universal design" (2008), two shades of blue and green each, greys and the wine of Tol's
# "Colour schemes" (2021). Neighbours in the stack also differ in lightness.
STEP_LOOKS: Final[Mapping[str, StepLook]] = {
    "client": StepLook("client", "cli-\nent", "#E69F00"),
    "public_net": StepLook("public network", "pub.\nnet", "#56B4E9"),
    "lock": StepLook("PG lock, order of writes", "PG\nlock", "#222222"),
    "primary_cpu": StepLook("primary's CPU", "pri.\nCPU", "#009E73"),
    "encode": StepLook("encode, decode", "en-\ncode", "#CC79A7"),
    "read_back": StepLook("reading back", "read\nback", "#A6CFE8"),
    "distribution": StepLook("distribution", "dis-\ntri.", "#0072B2"),
    "shard_cpu": StepLook("shards' CPU", "OSDs\nCPU", "#B5DBA0"),
    "device": StepLook("device", "de-\nvice", "#D55E00"),
    "log": StepLook("log", "log", "#F0E442"),
    "pause": StepLook("saving old stripes", "pause", "#BBBBBB"),
    "hung": StepLook("resent after a fault", "hung", "#882255"),
}


@dataclass(frozen=True)
class ShownQuantity:
    """A quantity that a figure shows, with its title."""

    quantity: Quantity
    title: str

    @property
    def metric(self) -> str:
        """Return the column of the result rows."""
        return self.quantity.key

    @property
    def axis_label(self) -> str:
        """Return the title as the label of an axis, with the unit."""
        words = self.title if self.title[0].isdigit() else self.title.lower()
        return f"{words} [{self.quantity.unit}]"


def in_sentence(title: str) -> str:
    """Write a title as it reads inside a sentence. Abbreviations keep their capitals.

    >>> in_sentence("Random writes"), in_sentence("GETs")
    ('random writes', 'GETs')
    """
    return f"{title[0].lower()}{title[1:]}" if title[1:2].islower() else title


def kind_words(op: str, pattern: str) -> str:
    """Name a kind of request.

    >>> kind_words("write", "rand"), kind_words("trace", "trace")
    ('Random writes', 'Requests of the trace')
    >>> kind_words("mixed", "mixed")
    'All workloads'
    """
    if op == "trace":
        return "Requests of the trace"
    # Several workloads have no pattern in common.
    if pattern == "mixed":
        return "All workloads"
    if op in S3_OPS:
        return OP_WORDS[op]
    return f"{PATTERN_WORDS.get(pattern, pattern)} {OP_WORDS.get(op, op)}"


def key_words(key: str) -> str:
    """Name a swept key or a column of a cell for an axis, a legend or a caption.

    >>> key_words("cluster.osds_per_host"), key_words("faults.down_out_interval_s")
    ('OSDs per host', 'down out interval [s]')
    """
    if key in _KEY_WORDS:
        return _KEY_WORDS[key]
    name = key.rpartition(".")[2]
    for end, unit in _UNITS.items():
        if name.endswith(end):
            quantity_name = name.removesuffix(end).replace("_", " ")
            return f"{quantity_name} [{unit}]" if unit else quantity_name
    return name.replace("_", " ")


def scheme_label(scheme: str) -> str:
    """Write a scheme as papers do.

    >>> scheme_label("rep:3"), scheme_label("rs:6,3"), scheme_label("none")
    ('3-replication', 'RS(6,3)', 'one device')
    >>> scheme_label("clay:9,3,11"), scheme_label("halves:6")
    ('Clay(9,3,11)', 'halves(6)')
    """
    family, _, numbers = scheme.partition(":")
    if scheme == "none":
        return "one device"
    if family == "rep":
        return f"{numbers}-replication"
    return f"{_FAMILY_NAMES.get(family, family)}({numbers})"


def scheme_names(rows: pl.DataFrame) -> list[str]:
    """List the schemes of result rows in the order they first appear."""
    return rows["scheme"].unique(maintain_order=True).to_list()


def kinds_of_requests(rows: pl.DataFrame) -> list[tuple[str, str]]:
    """List the ops and patterns of result rows in the order they first appear."""
    return rows.select("op", "pattern").unique(maintain_order=True).rows()


def block_sizes(rows: pl.DataFrame) -> list[int]:
    """List the block sizes [bytes] of result rows, ascending."""
    return rows["block_size_bytes"].drop_nulls().unique().sort().to_list()


def size_name(rows: pl.DataFrame) -> str:
    """Name the sizes of result rows: those of objects in buckets, or of blocks of images."""
    return "object size" if has_objects(rows["op"].to_list()) else "block size"


def cell_caption(
    rows: pl.DataFrame, pattern: str, op: str, shown: Sequence[ShownQuantity]
) -> str:
    """Write the caption of a figure of quantities, with ratios to the first scheme."""
    sentences = [f"{kind_words(op, pattern)} of {_range(rows)}, simulated."]
    over = "" if len(block_sizes(rows)) == 1 else f" over {size_name(rows)}s"
    for one in shown:
        means = _means(rows, one.metric)
        if means:
            name = one.title.lower().removeprefix("mean ")
            text = _means_text(rows, one.quantity, means)
            sentences.append(f"Mean {name}{over}: {text}.")
    for one in shown:
        ends = one.quantity.ci or ()
        if ends and {*ends} <= {*rows.columns} and rows[ends[0]].count():
            name = one.title.lower()
            sentences.append(f"Whiskers: 95 % confidence interval of {name}.")
    return " ".join(sentences)


def headline_caption(
    rows: pl.DataFrame,
    patterns: Sequence[str],
    ops: Sequence[str],
    metric: str = "throughput_bytes_per_s",
    title: str = "Throughput",
) -> str:
    """Write, panel by panel, each scheme's mean of a quantity as a factor of the first scheme's.

    Percentiles of one run have no interval. Their factors may be noise, so the caption says that instead.
    """
    sentences = [f"Simulated {in_sentence(title)}, {_range(rows)}."]
    if metric in _WITHOUT_INTERVAL:
        sentences.append(
            "A single run gives no interval of this quantity, so differences of schemes may be chance: "
            "stripesim sweep --replications gives intervals."
        )
        return " ".join(sentences)
    for op, pattern in itertools.product(ops, patterns):
        panel = rows.filter((rows["op"] == op) & (rows["pattern"] == pattern))
        means = _means(panel, metric)
        if len(means) < 2:
            continue
        first, *others = means
        compared = [name for name in others if _differ(panel, metric, first, name)]
        if not means[first] or not compared:
            continue
        ratios = _listed(
            [
                f"{scheme_label(name)} {number_text(means[name] / means[first])}"
                for name in compared
            ]
        )
        kind = kind_words(op, pattern)
        sentences.append(f"{kind}: {ratios} times {scheme_label(first)}.")
    if len(sentences) > 1 and len(block_sizes(rows)) > 1:
        sentences.append("Factors compare means over block sizes.")
    return " ".join(sentences)


def _interval(
    rows: pl.DataFrame, metric: str, scheme: str
) -> tuple[float, float] | None:
    """Return the 95 % interval of a scheme's mean over block sizes, None where a size has none."""
    ends = QUANTITIES[metric].ci
    own = rows.filter(rows["scheme"] == scheme)
    if ends is None or not set(ends) <= set(own.columns):
        return None
    low, high = (own[end].to_list() for end in ends)
    if None in low or None in high:
        return None
    # Errors of independent means add up as squares.
    half = math.hypot(*((b - a) / 2 for a, b in zip(low, high, strict=True)))
    middle = sum(low) + sum(high)
    return (middle / 2 - half) / len(low), (middle / 2 + half) / len(low)


def _differ(rows: pl.DataFrame, metric: str, first: str, second: str) -> bool:
    """Return False if means are equal, their intervals overlap, or one interval holds the other mean."""
    means = _means(rows, metric)
    if means[first] == means[second]:
        return False
    intervals = [_interval(rows, metric, scheme) for scheme in (first, second)]
    if intervals == [None, None]:
        return True
    low, high = sorted(
        interval or (means[scheme], means[scheme])
        for scheme, interval in zip((first, second), intervals, strict=True)
    )
    return low[1] < high[0]


def _listed(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _range(rows: pl.DataFrame) -> str:
    sizes = [size_text(size) for size in block_sizes(rows)]
    return " to ".join(dict.fromkeys((sizes[0], sizes[-1])))


def _means(rows: pl.DataFrame, metric: str) -> dict[str, float]:
    """Return the mean over block sizes of each scheme that has a value at every one of them."""
    sizes = len(block_sizes(rows))
    means: dict[str, float] = {}
    for scheme in scheme_names(rows):
        values = rows.filter(rows["scheme"] == scheme)[metric].drop_nulls().to_list()
        if len(values) == sizes:
            means[scheme] = sum(values) / sizes
    return means


def _means_text(
    rows: pl.DataFrame, quantity: Quantity, means: Mapping[str, float]
) -> str:
    """Write each scheme's mean, and its ratio to the first scheme's unless their intervals overlap."""
    first, *_ = means
    parts = []
    for scheme, mean in means.items():
        value = number_text(mean, quantity.factor)
        part = f"{value} {quantity.unit} for {scheme_label(scheme)}"
        is_other = scheme != first and means[first]
        if is_other and _differ(rows, quantity.key, first, scheme):
            part += f" ({number_text(mean / means[first])}×)"
        parts.append(part)
    return _listed(parts)
