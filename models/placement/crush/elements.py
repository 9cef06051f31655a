"""Elements of a CRUSH map: devices, buckets, rules with their steps, and tunables.

References
----------
Ceph v16.2.15, doc/rados/operations/crush-map.rst and crush-map-edits.rst.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

NONE = 0x7FFFFFFF
WEIGHT_ONE = 0x10000
RuleKind = Literal["replicated", "erasure", "msr_firstn", "msr_indep"]


class Alg(IntEnum):
    """Algorithm of a bucket, numbered as in Ceph."""

    UNIFORM = 1
    LIST = 2
    TREE = 3
    STRAW = 4
    STRAW2 = 5


class StepOp(IntEnum):
    """Operation of a rule's step, with the numbers that the compiled kernel uses."""

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

    `count` is the item's id for TAKE and the value for SET operations. For operations that choose, it is the
    number of items of type `type_id` (0: as requested; negative: that many fewer than requested).
    """

    op: StepOp
    count: int = 0
    type_id: int = 0


@dataclass(frozen=True)
class Device:
    """An OSD: its id (from 0), its name, and optionally its device class."""

    id: int
    name: str
    device_class: str | None = None


@dataclass(frozen=True)
class Bucket:
    """A bucket with a negative id. The shadow for a device class is named ``bucket~class``.

    `items` holds the ids of its items, `weights` their weights in 16.16 fixed point, and `class_ids` the ids
    of its shadows.
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
    """Changes that a set of choose_args makes to one straw2 bucket. Empty fields change nothing.

    `weight_sets` hold the weights of the items in 16.16 fixed point, one tuple per position in the result
    (the last applies to all further positions). `ids` are hashed in place of the items.
    """

    bucket_id: int
    weight_sets: tuple[tuple[int, ...], ...] = ()
    ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A placement rule with its id, name, kind and steps.

    The kind states which pools the rule is for. The two MSR kinds (Ceph 19) also change its execution: their
    ``choosemsr`` steps retry a whole descent if an OSD is out.
    """

    id: int
    name: str
    kind: RuleKind
    steps: tuple[Step, ...]

    @property
    def takes(self) -> list[int]:
        """Items that the rule's take steps start from."""
        return [step.count for step in self.steps if step.op is StepOp.TAKE]


@dataclass(frozen=True)
class Tunables:
    """Numbers of retries, and corrections of chooseleaf. The defaults are Ceph's since Jewel.

    References
    ----------
    Ceph v16.2.15, src/crush/CrushWrapper.h (set_tunables_jewel, set_tunables_argonaut).
    """

    # Redraws in the same bucket after a collision (legacy; 0 since Bobtail).
    choose_local_tries: int = 0
    choose_local_fallback_tries: int = 0
    # Further descents from the top after the first failure.
    choose_total_tries: int = 50
    # 1: a failed leaf immediately returns firstn to the top.
    chooseleaf_descend_once: int = 1
    # 1: draws of a leaf depend on the parent's attempt; 0: they do not; n > 1: they depend on attempt >> (n −
    # 1).
    chooseleaf_vary_r: int = 1
    # 1: draws of a leaf do not depend on the position in the result.
    chooseleaf_stable: int = 1
    # Version of the calculation of straw (v1) lengths: 0 as in Argonaut, 1 as corrected in Hammer.
    straw_calc_version: int = 1
    # Descents of a ``choosemsr`` block, and redraws after a collision in each.
    msr_descents: int = 100
    msr_collision_tries: int = 100

    @staticmethod
    def legacy() -> Tunables:
        """Return the tunables of Argonaut, which apply if the text of a map does not set them."""
        return Tunables(2, 5, 19, 0, 0, 0, 0)
