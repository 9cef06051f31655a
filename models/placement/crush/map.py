"""CRUSH maps: devices, a hierarchy of straw2 buckets, rules, and the mappings they give.

See S. Weil, S. Brandt, E. Miller, C. Maltzahn, "CRUSH: Controlled, Scalable, Decentralized Placement of
Replicated Data", SC 2006. Ceph v16.2.15, doc/rados/operations/crush-map.rst and crush-map-edits.rst.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush.elements import (
    CHOOSE_OPS,
    WEIGHT_ONE,
    Bucket,
    BucketArgs,
    Device,
    PlacementError,
    Rule,
    StepOp,
    Tunables,
)

if TYPE_CHECKING:
    from stripesim.models.placement.crush.draw import Tables

Reweights = (
    Mapping[int, float]
    | Sequence[float]
    | npt.NDArray[np.floating[Any]]
    | npt.NDArray[np.int64]
    | None
)

# Pools have at most 255 OSDs a group; crushtool takes any number.
_NUM_REP_MAX = 4096


@dataclass(frozen=True)
class CrushMap:
    """A CRUSH map.

    `build_map`, `parse_map` and `load_map` make one and check what they are given; the constructor does not.

    Buckets include shadow buckets of device classes; types go by number, 0 being the devices'. `choose_args`
    are sets of weights and ids that replace the buckets' own, by the id of the pool they are for; −1 is
    for all pools that have none (what the balancer writes in its mode crush-compat).

    Notes
    -----
    Straw2 draws, for input x, attempt r and each item i of weight w_i, ln(hash(x, i, r) / 2**16) / w_i, and
    takes the largest: the item wins with probability w_i / sum(w) and a change of one weight moves data
    only to or from that item. The logarithm is CRUSH's own in fixed point. A bucket whose items all weigh 0
    gives its first item, as in Ceph. The older algorithms (uniform, list, tree, straw) draw as they do in
    Ceph; see `straw_lengths` for details of straws that a map omits.

    Examples
    --------
    >>> from stripesim.models.placement import build_map
    >>> crush = build_map(hosts=4, osds_per_host=6)
    >>> crush.map_many("rep", [0, 1], 3).tolist()
    [[0, 23, 6], [5, 13, 10]]
    """

    devices: tuple[Device, ...]
    types: tuple[tuple[int, str], ...]
    buckets: tuple[Bucket, ...]
    rules: tuple[Rule, ...]
    tunables: Tunables = field(default_factory=Tunables)
    choose_args: tuple[tuple[int, tuple[BucketArgs, ...]], ...] = ()

    @property
    def max_devices(self) -> int:
        """One more than the largest OSD id."""
        return max((device.id for device in self.devices), default=-1) + 1

    def rule(self, rule: int | str) -> Rule:
        """Find a rule by id or name; `PlacementError` lists those there are."""
        for candidate in self.rules:
            if rule in (candidate.id, candidate.name):
                return candidate
        known = (
            ", ".join(f"{r.id} ({r.name})" for r in self.rules)
            or "none, for the map has no rules"
        )
        raise PlacementError(f"rule: got {rule!r}, wanted one of {known}")

    def map_many(
        self,
        rule: int | str,
        xs: npt.ArrayLike,
        num_rep: int,
        reweights: Reweights = None,
        *,
        pool: int = 0,
    ) -> npt.NDArray[np.int32]:
        """Map many inputs, each in [−2**31, 2**32), to `num_rep` OSDs each by a rule (id or name).

        `reweights` are the shares of inputs that OSDs accept (``ceph osd reweight``): by OSD id (others: 1),
        or one value for each id from 0; an array of int64 holds 16.16 fixed point. `pool` picks the
        choose_args; crushtool's is 0. The result has shape (n, num_rep), with `NONE` for an empty slot
        (indep) and behind the end of a short result (firstn): see `map_with_lengths` where the difference
        matters.
        """
        return self.map_with_lengths(rule, xs, num_rep, reweights, pool=pool)[0]

    def map_with_lengths(
        self,
        rule: int | str,
        xs: npt.ArrayLike,
        num_rep: int,
        reweights: Reweights = None,
        *,
        pool: int = 0,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the results of `map_many` with the length of each result, int32 of shape (n,)."""
        from stripesim.models.placement.crush.tables import run_rule

        known_rule = self.rule(rule)
        inputs = whole_numbers("xs", xs)
        if inputs.size > 0 and not (
            int(inputs.min()) >= -(2**31) and int(inputs.max()) < 2**32
        ):
            raise PlacementError(
                f"xs: got {inputs.min()} … {inputs.max()}, wanted values in [-2**31, 2**32)"
            )
        whole = isinstance(num_rep, (int, np.integer)) and not isinstance(num_rep, bool)
        if not (whole and 1 <= num_rep <= _NUM_REP_MAX):
            raise PlacementError(
                f"num_rep: got {num_rep!r}, wanted a whole number from 1 to {_NUM_REP_MAX}"
            )
        shares = self.reweight_vector(reweights)
        return run_rule(
            self._tables(pool),
            self.tunables,
            known_rule,
            inputs.astype(np.uint32),
            num_rep,
            shares,
        )

    def mappings(
        self,
        rule: int | str,
        xs: npt.ArrayLike,
        num_rep: int,
        reweights: Reweights = None,
    ) -> list[list[int]]:
        """Return each result of `map_many` as a list of its true length: what ``crushtool --test`` prints."""
        rows, lengths = self.map_with_lengths(rule, xs, num_rep, reweights)
        return [
            row[:length]
            for row, length in zip(rows.tolist(), lengths.tolist(), strict=True)
        ]

    def osds_below(self, item: int) -> list[int]:
        """List the OSDs in or below an item, each once."""
        by_id = {bucket.id: bucket for bucket in self.buckets}
        waiting = [item]
        seen = dict[int, None]()
        while waiting:
            bucket_id = waiting.pop()
            if bucket_id not in seen:
                seen[bucket_id] = None
                waiting += by_id[bucket_id].items if bucket_id in by_id else ()
        return [one for one in seen if one >= 0]

    def osds_of_rule(self, rule: int | str) -> set[int]:
        """Return the OSDs in or below the buckets that a rule (id or name) takes."""
        takes = self.rule(rule).takes
        return {osd for item in takes for osd in self.osds_below(item)}

    def weights_of_rule(self, rule: int | str) -> dict[int, int]:
        """Return the weight of each OSD that a rule (id or name) may place on, 16.16 fixed point."""
        osds = self.osds_of_rule(rule)
        return {
            item: weight
            for bucket in self.buckets
            for item, weight in zip(bucket.items, bucket.weights, strict=True)
            if item in osds
        }

    def domains(self, type_name: str) -> dict[int, str]:
        """Return the name of the bucket of a type that each OSD is in; shadow trees are left out."""
        types = {name: number for number, name in self.types}
        return {
            osd: bucket.name
            for bucket in self.buckets
            if bucket.type_id == types.get(type_name) and "~" not in bucket.name
            for osd in self.osds_below(bucket.id)
        }

    def failure_domain(self, rule: int | str) -> str:
        """Return the type of bucket that no two shards of a group share, by a rule (id or name).

        Where a rule takes several buckets of one type in each bucket of another, shards differ in the inner
        type only: 2 datacenters and 2 hosts in each give 4 different hosts.

        >>> from stripesim.models.placement import build_map
        >>> crush = build_map(hosts=4, osds_per_host=6)
        >>> crush.failure_domain("ec"), crush.failure_domain("ec_osd")
        ('host', 'osd')
        """
        domain = 0
        for step in self.rule(rule).steps:
            if step.op is StepOp.EMIT:
                break
            if step.op in CHOOSE_OPS and (not domain or step.count != 1):
                domain = step.type_id
        if domain:
            return dict(self.types)[domain]
        return "osd"

    def reweight_vector(self, reweights: Reweights) -> npt.NDArray[np.int64]:
        """Check reweights and bring them into 16.16 fixed point, int64 of shape (max_devices,)."""
        size = self.max_devices
        vector = np.full(size, WEIGHT_ONE, dtype=np.int64)
        if reweights is None:
            return vector
        if (
            isinstance(reweights, np.ndarray)
            and reweights.dtype == np.int64
            and reweights.size == size
        ):
            # In fixed point already, as in Ceph's own map of OSDs.
            return reweights.astype(np.int64, copy=False)
        if isinstance(reweights, Mapping):
            shares = dict(reweights)
            known = {device.id for device in self.devices}
            for osd in set(shares) - known:
                raise PlacementError(
                    f"reweights: got OSD {osd}, wanted one of the map's {len(known)} OSDs"
                )
        elif len(reweights) == size:
            shares = {osd: float(share) for osd, share in enumerate(reweights)}
        else:
            raise PlacementError(
                f"reweights: got {len(reweights)} values, wanted {size} (one for each OSD id)"
            )
        for osd, share in shares.items():
            if not (math.isfinite(share) and 0 <= share <= 1):
                raise PlacementError(
                    f"reweights: got {share} for OSD {osd}, wanted a share in [0, 1]"
                )
            vector[osd] = int(share * WEIGHT_ONE)
        return vector

    def _tables(self, pool: int) -> Tables:
        """Lay the map flat for the compiled kernel, once for each set of choose_args."""
        from stripesim.models.placement.crush.tables import flatten

        sets = dict(self.choose_args)
        # The set −1 is for pools without a set.
        key = pool if pool in sets else -1
        if key not in self._laid_flat:
            self._laid_flat[key] = flatten(
                self.buckets, sets.get(key, ()), self.tunables.straw_calc_version
            )
        return self._laid_flat[key]

    @cached_property
    def _laid_flat(self) -> dict[int, Tables]:
        return {}


def whole_numbers(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return an array of one axis of whole numbers; `PlacementError` for another."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or (numbers.size > 0 and numbers.dtype.kind not in "iu"):
        got = f"{name}: got an array of {numbers.dtype} with {numbers.ndim} axes"
        raise PlacementError(f"{got}, wanted one axis of whole numbers")
    return numbers
