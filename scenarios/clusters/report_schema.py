"""Define and check the parts of Ceph's JSON output that imports read.

Unlisted keys are ignored, because releases 13 to 20 differ in them. All text is made printable here, so
that no other module meets line breaks, escape sequences or characters that reorder text.
"""

import contextlib
import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from stripesim.models.problems import MeasuredError
from stripesim.scenarios.schema.toml import escaped

#: Ids become array indices, so the limit keeps a corrupt id from allocating gigabytes.
OSDS_MAX: Final = 1_000_000
#: CRUSH's value for "no OSD" in exceptions and erasure-coded sets.
_NO_OSD: Final = 2**31 - 1
_PGS_MAX: Final = 4_000_000
_COUNT_MAX: Final = 2**63 - 1
# An exbibyte: larger than any drive, and the sum of 1,000 of them still fits 64 bits.
_OSD_KIB_MAX: Final = 2**50
_SUM_KIB_MAX: Final = 2**60
_STRIPE_BYTES_MAX: Final = 2**40
_MBIT_MAX: Final = 10**9
# A rule that cannot place a group uses all its tries. Operators set a few hundred.
_TRIES_MAX: Final = 10_000
_TEXT_MAX: Final = 300
_LINES_MAX: Final = 20
_VALUE_MAX: Final = 60


def printable(text: str) -> str:
    """Escape text as `escaped` does, and shorten it to one line."""
    return escaped(text) if len(text) <= _TEXT_MAX else f"{escaped(text[:_TEXT_MAX])}…"


def value_text(value: object) -> str:
    """Write a JSON value in one short line, or ``nothing`` for None."""
    if value is None:
        return "nothing"
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = printable(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _VALUE_MAX else f"{text[: _VALUE_MAX - 1]}…"


def _wanted(text: str) -> PydanticCustomError:
    return PydanticCustomError("wanted", "{wanted}", {"wanted": text})


def _whole(least: int, most: int, unlimited: str = "") -> BeforeValidator:
    """Return a validator for whole numbers. `unlimited` describes ranges whose end is only a safeguard."""
    described = unlimited or f"a whole number from {least} to {most}"

    def check(value: object) -> object:
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not least <= value <= most
        ):
            raise _wanted(described)
        return value

    return BeforeValidator(check)


def _number(least: float, most: float) -> BeforeValidator:
    """Return a validator for finite numbers."""

    def check(value: object) -> object:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not least <= value <= most
        ):
            raise _wanted(f"a number from {least:g} to {most:g}")
        return float(value)

    return BeforeValidator(check)


def _flag(value: object) -> bool:
    if value not in (0, 1) or isinstance(value, float):
        raise _wanted("0 or 1")
    return bool(value)


def _digits(value: object) -> int:
    """Parse a number that Ceph's metadata contain as text."""
    number = value
    if (
        isinstance(value, str)
        and value.isascii()
        and value.isdigit()
        and len(value) < 20
    ):
        number = int(value)
    if (
        isinstance(number, bool)
        or not isinstance(number, int)
        or not 0 <= number <= _COUNT_MAX
    ):
        raise _wanted("a whole number of at least 0")
    return number


def _seconds(value: object) -> float:
    """Parse a time that Ceph prints as text."""
    seconds = math.nan
    if isinstance(value, str | int | float) and len(str(value)) < 40:
        with contextlib.suppress(ValueError):
            seconds = float(value)
    if not 0 <= seconds <= 1e9:
        raise _wanted("a time in seconds")
    return seconds


_KINDS: Final = {
    1: "replicated",
    3: "erasure",
    "replicated": "replicated",
    "erasure": "erasure",
}


def _pool_kind(value: object) -> str:
    kind = _KINDS.get(value) if isinstance(value, int | str) else None
    if kind is None:
        raise _wanted("1 (replicated) or 3 (erasure)")
    return kind


def _hash(value: object) -> str:
    """Check the hash function of a bucket. CRUSH has only one."""
    if isinstance(value, bool) or value not in ("rjenkins1", 0):
        raise _wanted("rjenkins1")
    return "rjenkins1"


def _release(value: str) -> str:
    return printable(value).strip()


Text = Annotated[str, AfterValidator(printable)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Digits = Annotated[int, BeforeValidator(_digits)]
Seconds = Annotated[float, BeforeValidator(_seconds)]
Share = Annotated[float, _number(0, 1)]
Counter = Annotated[int, _whole(0, _COUNT_MAX, "a whole number of at least 0")]
Change = Annotated[int, _whole(-_COUNT_MAX, _COUNT_MAX, "a whole number")]
Rate = Annotated[float, _number(0, 1e15)]
OsdNumber = Annotated[int, _whole(0, OSDS_MAX)]
OsdSlot = Annotated[int, _whole(-1, _NO_OSD)]
PgCount = Annotated[int, _whole(1, _PGS_MAX)]
OsdKib = Annotated[int, _whole(0, _OSD_KIB_MAX)]
SumKib = Annotated[int, _whole(0, _SUM_KIB_MAX)]

# A missing required key is validated as null, so that the message names its type.
_REQUIRED: Final[Any] = Field(default=None, validate_default=True)


def _required(*names: str) -> Any:
    """Declare a required key, with the names that releases use for it."""
    return Field(
        default=None, validate_default=True, validation_alias=AliasChoices(*names)
    )


class ReportPart(BaseModel):
    """A part of a report. Unknown keys are ignored, known ones have exact types."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", allow_inf_nan=False
    )


# The OSD map: `ceph osd dump`.


class OsdRow(ReportPart):
    """An OSD. Weight 0 means out."""

    osd: OsdNumber = _REQUIRED
    up: Flag = False
    inside: Flag = Field(default=True, validation_alias="in")
    weight: Share = 1.0
    primary_affinity: Share = 1.0
    state: list[Text] | None = None


class PoolRow(ReportPart):
    """A pool."""

    pool: Annotated[int, _whole(0, 2**31 - 1)] = _required("pool", "pool_id")
    pool_name: Text = ""
    kind: Annotated[str, BeforeValidator(_pool_kind)] = Field(
        default="replicated", validation_alias="type"
    )
    size: Annotated[int, _whole(1, 255)] = _REQUIRED
    min_size: Annotated[int, _whole(1, 255)] | None = None
    pg_num: PgCount = _REQUIRED
    pgp_num: PgCount | None = Field(
        default=None, validation_alias=AliasChoices("pg_placement_num", "pgp_num")
    )
    crush_rule: Annotated[int, _whole(0, 2**31 - 1)] = _required(
        "crush_rule", "crush_ruleset"
    )
    flags: Counter = 0
    flags_names: Text | None = None
    erasure_code_profile: Text = ""
    stripe_width: Annotated[int, _whole(0, _STRIPE_BYTES_MAX)] = 0
    application_metadata: dict[Text, Any] = {}
    tier_of: Annotated[int, _whole(-1, 2**31 - 1)] = -1
    quota_max_bytes: Counter = 0
    quota_max_objects: Counter = 0
    options: dict[Text, Any] = {}


class ErasureProfile(ReportPart):
    """A profile of an erasure code. Its numbers are text."""

    plugin: Text = ""
    k: Digits | None = None
    m: Digits | None = None
    d: Digits | None = None
    c: Digits | None = None
    l: Digits | None = None  # noqa: E741 - the name that Ceph's plugin has for it


class OsdList(ReportPart):
    """OSDs of one placement group."""

    pgid: Text = _REQUIRED
    osds: Annotated[list[OsdSlot], Field(max_length=255)] = _REQUIRED


class Remapping(ReportPart):
    """An OSD and its replacement."""

    old: OsdSlot = _required("from")
    new: OsdSlot = _required("to")


class Remappings(ReportPart):
    """The replacements for one placement group."""

    pgid: Text = _REQUIRED
    mappings: Annotated[list[Remapping], Field(max_length=255)] = _REQUIRED


class PrimaryChoice(ReportPart):
    """The primary of one placement group."""

    pgid: Text = _REQUIRED
    osd: OsdSlot = _required("osd", "primary_osd", "primary")


class StretchMode(ReportPart):
    """The state of stretch mode (two sites and a tiebreaker), since Ceph 16."""

    stretch_mode_enabled: bool = False


class OsdMapDump(ReportPart):
    """The OSD map."""

    fsid: Text = ""
    osds: list[OsdRow] = _REQUIRED
    pools: list[PoolRow] = _REQUIRED
    full_ratio: Share = 0.0
    backfillfull_ratio: Share = 0.0
    nearfull_ratio: Share = 0.0
    erasure_code_profiles: dict[Text, ErasureProfile] = {}
    pg_upmap: list[OsdList] = []
    pg_upmap_items: list[Remappings] = []
    pg_upmap_primaries: list[PrimaryChoice] = []
    pg_temp: list[OsdList] = []
    primary_temp: list[PrimaryChoice] = []
    stretch_mode: StretchMode = StretchMode()
    require_min_compat_client: Text = ""


# The CRUSH map: `ceph osd crush dump`. `stripesim.models.placement.map_from_dump` interprets it.


class DeviceRow(ReportPart):
    """A device."""

    id: OsdNumber = _REQUIRED
    name: Text = ""
    device_class: Text | None = Field(default=None, alias="class")


class TypeRow(ReportPart):
    """A type of bucket."""

    type_id: Annotated[int, _whole(0, 65_535)] = _REQUIRED
    name: Text = ""


class ItemRow(ReportPart):
    """An item of a bucket. Its weight is 16.16 fixed point."""

    id: Annotated[int, _whole(-OSDS_MAX, OSDS_MAX)] = _REQUIRED
    weight: Annotated[int, _whole(0, 65_535 * 65_536)] = _REQUIRED


class BucketRow(ReportPart):
    """A bucket."""

    id: Annotated[int, _whole(-OSDS_MAX, -1)] = _REQUIRED
    name: Text = ""
    type_id: Annotated[int, _whole(1, 65_535)] = _REQUIRED
    alg: Text = _REQUIRED
    hash: Annotated[str, BeforeValidator(_hash)] = "rjenkins1"
    items: list[ItemRow] = _REQUIRED


class StepRow(ReportPart):
    """A step of a rule. Operations that a release does not know by name are numbers."""

    op: Text | None = None
    opcode: Counter | None = None
    arg1: Change | None = None
    arg2: Change | None = None
    item: Change | None = None
    num: Annotated[int, _whole(-_TRIES_MAX, _TRIES_MAX)] | None = None
    type: Text | None = None


class RuleRow(ReportPart):
    """A rule."""

    rule_id: Annotated[int, _whole(0, 255)] = _REQUIRED
    rule_name: Text = ""
    type: Counter = _REQUIRED
    steps: list[StepRow] = _REQUIRED


class WeightSet(ReportPart):
    """Weights and ids that replace those of a bucket."""

    bucket_id: Annotated[int, _whole(-OSDS_MAX, -1)] = _REQUIRED
    weight_set: list[list[Annotated[float, _number(0, 65_535)]]] | None = None
    ids: list[Annotated[int, _whole(-_NO_OSD, _NO_OSD)]] | None = None


Tries = Annotated[int, _whole(0, _TRIES_MAX)]


class TunableRow(ReportPart):
    """The tunables. Missing ones have their defaults."""

    choose_local_tries: Tries | None = None
    choose_local_fallback_tries: Tries | None = None
    choose_total_tries: Tries | None = None
    chooseleaf_descend_once: Tries | None = None
    chooseleaf_vary_r: Annotated[int, _whole(0, 32)] | None = None
    chooseleaf_stable: Tries | None = None
    straw_calc_version: Tries | None = None
    msr_descents: Tries | None = None
    msr_collision_tries: Tries | None = None


class CrushDump(ReportPart):
    """The CRUSH map."""

    devices: list[DeviceRow] = _REQUIRED
    types: list[TypeRow] = _REQUIRED
    buckets: list[BucketRow] = _REQUIRED
    rules: list[RuleRow] = _REQUIRED
    tunables: TunableRow = _REQUIRED
    choose_args: dict[Text, list[WeightSet]] = {}


# OSDs: `ceph osd metadata`, `osd df`, `pg dump`.


class OsdMetadata(ReportPart):
    """The host and devices of an OSD. For OSDs that are down, often only the number is known."""

    id: OsdNumber = _REQUIRED
    hostname: Text = ""
    cpu: Text = ""
    ceph_version_short: Annotated[str, AfterValidator(_release)] = ""
    default_device_class: Text = ""
    device_ids: Text = ""
    devices: Text = ""
    bluestore_bdev_devices: Text = ""
    bluestore_bdev_rotational: Digits | None = None
    rotational: Digits | None = None
    bluestore_bdev_size: Annotated[Digits, Field(le=_OSD_KIB_MAX)] | None = None
    bluefs_dedicated_db: Digits | None = None
    bluefs_db_rotational: Digits = 1
    bluefs_db_size: Annotated[Digits, Field(le=_OSD_KIB_MAX)] = 0
    front_addr: Text = ""
    back_addr: Text = ""
    front_iface_speed: Annotated[Digits, Field(le=_MBIT_MAX)] | None = None
    back_iface_speed: Annotated[Digits, Field(le=_MBIT_MAX)] | None = None
    objectstore_numa_nodes: Text = ""
    network_numa_nodes: Text = ""

    @property
    def has_own_database(self) -> bool:
        """Return True if the database has a device of its own.

        Ceph 14 does not say so. It lists the database where it has one, and Ceph 13 the shared device, too.
        """
        if self.bluefs_dedicated_db is not None:
            return bool(self.bluefs_dedicated_db)
        return self.bluefs_db_size not in (0, self.bluestore_bdev_size)


class OsdUse(ReportPart):
    """Size and use of an OSD. `osd df` also lists hosts and roots."""

    osd: Annotated[int, _whole(-OSDS_MAX, OSDS_MAX)] = _required("osd", "id")
    type: Text = "osd"
    kb: OsdKib | None = None
    kb_used: OsdKib | None = None


class OsdSums(ReportPart):
    """Size and use of several OSDs."""

    kb: SumKib = 0
    kb_used: SumKib = 0
    kb_avail: SumKib = 0


# Pools: `ceph osd pool stats`, `df detail`.


class PoolCounters(ReportPart):
    """Counters of a pool since it was created."""

    num_bytes: Counter | None = None
    num_omap_bytes: Change = 0
    num_objects: Change = 0
    num_read: Counter = 0
    num_read_kb: Counter = 0
    num_write: Counter = 0
    num_write_kb: Counter = 0


class IoRate(ReportPart):
    """Client rates in `ceph osd pool stats` and `ceph status`."""

    read_op_per_sec: Rate = 0.0
    write_op_per_sec: Rate = 0.0


class StoreStats(ReportPart):
    """Space of a pool on all its OSDs."""

    allocated: Counter = 0


class PoolStats(ReportPart):
    """Counters and rates of a pool."""

    poolid: Annotated[int, _whole(0, 2**31 - 1)] = _required("poolid", "pool_id", "id")
    stat_sum: PoolCounters | None = None
    store_stats: StoreStats | None = None
    client_io_rate: IoRate | None = None


class AllPools(ReportPart):
    """The counters of all pools together."""

    stat_sum: PoolCounters = PoolCounters()


class CounterChanges(ReportPart):
    """Operations since the last statistics."""

    num_read: Change = 0
    num_write: Change = 0


class PgStatsDelta(ReportPart):
    """Operations since the last statistics, and the time since then."""

    stat_sum: CounterChanges = CounterChanges()
    stamp_delta: Seconds = 0.0


class PgCounters(ReportPart):
    """Data of a placement group."""

    num_bytes: Change = 0
    num_omap_bytes: Change = 0


class PgRow(ReportPart):
    """A placement group."""

    pgid: Text = _REQUIRED
    up_primary: OsdSlot = -1
    acting: list[OsdSlot] = []
    stat_sum: PgCounters | None = None
    log_start: Text = ""


class PgsOfOsd(ReportPart):
    """Placement groups of an OSD, as counted by the cluster."""

    osd: OsdSlot = _REQUIRED
    num_acting_pg: Counter = 0
    num_primary_pg: Counter = 0


class PgState(ReportPart):
    """Placement groups in a state."""

    state: Text = ""
    num: Counter = 0


class PgDump(ReportPart):
    """The group counts of `ceph pg dump` and old reports."""

    pg_stats: list[PgRow] = []
    pool_stats: list[PoolStats] = []
    osd_stats: list[OsdUse] = []
    pg_stats_delta: PgStatsDelta | None = None
    num_pg_by_osd: list[PgsOfOsd] | None = None


class OsdDf(ReportPart):
    """The nodes of `ceph osd df` and `ceph osd tree`."""

    nodes: list[OsdUse] = _REQUIRED
    stray: list[OsdUse] = []


class PoolDf(ReportPart):
    """Counters of a pool in `ceph df detail`."""

    stored: Counter | None = None
    stored_omap: Counter = 0
    objects: Counter = 0
    rd: Counter = 0
    rd_bytes: Counter = 0
    wr: Counter = 0
    wr_bytes: Counter = 0


class PoolDfRow(ReportPart):
    """A pool in `ceph df`."""

    id: Annotated[int, _whole(0, 2**31 - 1)] = _REQUIRED
    stats: PoolDf = PoolDf()


class ClassDf(ReportPart):
    """A device class in `ceph df`."""

    total_bytes: Counter = 0
    total_avail_bytes: Counter = 0
    total_used_raw_bytes: Counter = 0


class CephDf(ReportPart):
    """The JSON of `ceph df`."""

    pools: list[PoolDfRow] = _REQUIRED
    stats_by_class: dict[Text, ClassDf] = {}


class CephStatus(ReportPart):
    """The rates in `ceph status`."""

    fsid: Text = ""
    pgmap: IoRate = _REQUIRED


class CephReport(ReportPart):
    """The JSON of `ceph report`."""

    version: Annotated[str, AfterValidator(_release)] = ""
    osdmap: OsdMapDump | None = None
    crushmap: CrushDump | None = None
    osd_metadata: list[OsdMetadata] = []
    osd_stats: list[OsdUse] = []
    osd_sum: OsdSums | None = None
    osd_sum_by_class: dict[Text, OsdSums] = {}
    pool_stats: list[PoolStats] = []
    pool_sum: AllPools = AllPools()
    num_pg_by_osd: list[PgsOfOsd] | None = None
    num_pg_by_state: list[PgState] = []
    pgmap: PgDump | None = None


PartT = TypeVar("PartT", bound=ReportPart)

_WANTED: Final = {
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "too_long": "a list of at most {max_length} values",
    "less_than_equal": "a number of at most {le}",
}


def checked(kind: type[PartT], document: object, file: str, key: str = "") -> PartT:
    """Validate a document.

    Parameters
    ----------
    kind
        The schema.
    document
        Decoded JSON.
    file
        Name of the file in messages.
    key
        Key of the document within its file, or empty for the whole file.

    Returns
    -------
    ReportPart
        The validated document, of type `kind`.

    Raises
    ------
    MeasuredError
        If a key that imports read has a wrong type or value. Lists the first 20 problems.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        details = error.errors(include_url=False)
    lines = [_line(detail, file, key) for detail in details[:_LINES_MAX]]
    if len(details) > _LINES_MAX:
        lines.append(f"{file}: and {len(details) - _LINES_MAX} problems more")
    raise MeasuredError(*dict.fromkeys(lines))


def checked_rows(kind: type[PartT], rows: Sequence[object], file: str) -> list[PartT]:
    """Validate the rows of a file that is a list."""
    return [checked(kind, row, file, str(number)) for number, row in enumerate(rows)]


def _line(detail: ErrorDetails, file: str, key: str) -> str:
    parts = [str(part) for part in detail["loc"]]
    path = printable(".".join(filter(None, (key, *parts)))) or "document"
    wanted = _WANTED.get(detail["type"], detail["msg"])
    if "{" in wanted:
        wanted = wanted.format_map(detail.get("ctx", {}))
    if detail["type"] == "wanted":
        wanted = detail["ctx"]["wanted"]
    return f"{file}: {path}: got {value_text(detail['input'])}, wanted {wanted}"
