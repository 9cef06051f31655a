"""Elements of a CRUSH map: devices, buckets, rules and their steps, tunables.

See Ceph v16.2.15, doc/rados/operations/crush-map.rst and crush-map-edits.rst.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

NONE = 0x7FFFFFFF
WEIGHT_ONE = 0x10000
RuleKind = Literal["replicated", "erasure", "msr_firstn", "msr_indep"]


class PlacementError(ValueError):
    """A question about placement without an answer: the message says what was got and wanted."""


class CrushMapError(PlacementError):
    """A CRUSH map that cannot be used; one line a problem, ``file:line: got …, wanted …``."""

    @property
    def problems(self) -> list[str]:
        """The problems, one string each."""
        return str(self).splitlines()


class Alg(IntEnum):
    """Algorithm by which a bucket draws; the numbers are Ceph's."""

    UNIFORM = 1
    LIST = 2
    TREE = 3
    STRAW = 4
    STRAW2 = 5


class StepOp(IntEnum):
    """Operations of a rule's steps; the numbers are those the compiled kernel knows."""

    TAKE = 0
    CHOOSE_FIRSTN = 1
    CHOOSE_INDEP = 2
    CHOOSELEAF_FIRSTN = 3
    CHOOSELEAF_INDEP = 4
    EMIT = 5
    SET_CHOOSE_TRIES = 6
    SET_CHOOSELEAF_TRIES = 7
    SET_CHOOSE_LOCAL_TRIES = 8
    SET_CHOOSE_LOCAL_FALLBACK_TRIES = 9
    SET_CHOOSELEAF_VARY_R = 10
    SET_CHOOSELEAF_STABLE = 11
    CHOOSE_MSR = 12
    SET_MSR_DESCENTS = 13
    SET_MSR_COLLISION_TRIES = 14


#: Operations that choose a number of items of a type.
CHOOSE_OPS = (
    StepOp.CHOOSE_FIRSTN,
    StepOp.CHOOSE_INDEP,
    StepOp.CHOOSELEAF_FIRSTN,
    StepOp.CHOOSELEAF_INDEP,
    StepOp.CHOOSE_MSR,
)


@dataclass(frozen=True)
class Step:
    """One step of a rule.

    `count` is for TAKE the item's id; for the choose family the number (0: as many as requested, negative:
    that many fewer), of the type of number `type_id`; for the SET family the value.
    """

    op: StepOp
    count: int = 0
    type_id: int = 0


@dataclass(frozen=True)
class Device:
    """An OSD: its id (from 0), name and, where it has one, device class."""

    id: int
    name: str
    device_class: str | None = None


@dataclass(frozen=True)
class Bucket:
    """A bucket: its id is below 0, and its shadow of a device class is named ``bucket~class``.

    Of each item it has the id and the weight, 16.16 fixed point; `class_ids` are the ids of its shadows.
    """

    id: int
    name: str
    type_id: int
    items: tuple[int, ...]
    weights: tuple[int, ...]
    class_ids: tuple[tuple[str, int], ...] = ()
    alg: Alg = Alg.STRAW2


@dataclass(frozen=True)
class BucketArgs:
    """Changes that a set of choose_args makes to one straw2 bucket; empty: none.

    `weight_sets` are weights of its items, 16.16 fixed point: a tuple for each position in the result (the
    last holds for those beyond); `ids` are hashed in the items' stead.
    """

    bucket_id: int
    weight_sets: tuple[tuple[int, ...], ...] = ()
    ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A placement rule: its id, name, kind and steps.

    The kind says which pools it is meant for; of the two MSR kinds (Ceph 19) also how it is run: its
    ``choosemsr`` steps retry a whole descent where an OSD is out.
    """

    id: int
    name: str
    kind: RuleKind
    steps: tuple[Step, ...]

    @property
    def takes(self) -> list[int]:
        """Items that the rule starts from, one for each of its take steps."""
        return [step.count for step in self.steps if step.op is StepOp.TAKE]


@dataclass(frozen=True)
class Tunables:
    """Numbers of retries, and two corrections of chooseleaf; the defaults are Ceph's since Jewel.

    See Ceph v16.2.15, src/crush/CrushWrapper.h (set_tunables_jewel, set_tunables_argonaut).
    """

    # Draws again in the same bucket after a collision (legacy; 0 since Bobtail).
    choose_local_tries: int = 0
    choose_local_fallback_tries: int = 0
    # Further descents from the top after a first one failed.
    choose_total_tries: int = 50
    # 1: a failed leaf sends firstn back to the top at once.
    chooseleaf_descend_once: int = 1
    # 1: the leaf's draws depend on the parent's attempt; 0: they do not; n > 1: on attempt >> (n − 1).
    chooseleaf_vary_r: int = 1
    # 1: the leaf's draws do not depend on the position in the result.
    chooseleaf_stable: int = 1
    # Version of the lengths of straws (v1) by weight: 0 as in Argonaut, 1 corrected in Hammer.
    straw_calc_version: int = 1
    # Descents of a ``choosemsr`` block, and draws after a collision in each.
    msr_descents: int = 100
    msr_collision_tries: int = 100

    @staticmethod
    def legacy() -> Tunables:
        """Return the tunables of Argonaut, which a map's text means where it does not name one."""
        return Tunables(2, 5, 19, 0, 0, 0, 0)
