"""CRUSH maps: devices, a hierarchy of buckets, rules, and the mappings that they define.

References
----------
S. Weil, S. Brandt, E. Miller, C. Maltzahn, "CRUSH: Controlled, Scalable, Decentralized Placement of
Replicated Data", SC 2006. Ceph v16.2.15, doc/rados/operations/crush-map.rst and crush-map-edits.rst.
"""

from __future__ import annotations

import math
from collections import defaultdict
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
    Rule,
    StepOp,
    Tunables,
)
from stripesim.models.problems import ProblemsError

if TYPE_CHECKING:
    from stripesim.models.placement.crush.draw import MapTables

Reweights = (
    Mapping[int, float]
    | Sequence[float]
    | npt.NDArray[np.floating[Any]]
    | npt.NDArray[np.int64]
    | None
)

# Pools have at most 255 OSDs per group, but crushtool accepts any number.
_NUM_REP_MAX = 4096

# Results of `CrushMap.map_many` that a map keeps [count].
_MAPPED_MAX = 2


@dataclass(frozen=True)
class CrushMap:
    """A CRUSH map.

    Use `build_map`, `parse_map` or `load_map`, which check their input. The constructor does not.

    Buckets include the shadow buckets of device classes. Types are pairs of number and name, with 0 for
    devices. `choose_args` are pairs of a pool id and the changes to weights and ids for that pool. The id −1
    applies to all pools without a set of changes (the balancer writes it in mode crush-compat).

    Notes
    -----
    For input x, attempt r and each item i of weight w_i, straw2 draws ln(hash(x, i, r) / 2**16) / w_i and
    takes the largest. An item wins with probability w_i / sum(w), and a change of one weight moves data only
    to or from that item. The logarithm is CRUSH's own in fixed point. A bucket whose items all weigh 0 yields
    its first item, as in Ceph. The older algorithms (uniform, list, tree, straw) also draw as in Ceph. See
    `straw_lengths` for straw details that a map omits.

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

    @cached_property
    def max_devices(self) -> int:
        """One more than the largest OSD id."""
        return max((device.id for device in self.devices), default=-1) + 1

    def rule(self, rule: int | str) -> Rule:
        """Return a rule by id or name.

        Raises
        ------
        ProblemsError
            If there is no such rule. The message lists the existing ones.
        """
        for candidate in self.rules:
            if rule in (candidate.id, candidate.name):
                return candidate
        known = (
            ", ".join(f"{r.id} ({r.name})" for r in self.rules)
            or "none, for the map has no rules"
        )
        raise ProblemsError(f"rule: got {rule!r}, wanted one of {known}")

    def map_many(
        self,
        rule: int | str,
        xs: npt.ArrayLike,
        num_rep: int,
        reweights: Reweights = None,
        *,
        pool: int = 0,
    ) -> npt.NDArray[np.int32]:
        """Map many inputs to OSDs.

        Parameters
        ----------
        rule
            Id or name of a rule.
        xs
            Inputs, whole numbers of shape (n,) in [−2**31, 2**32).
        num_rep
            OSDs per input, 1 to 4096.
        reweights
            Share of inputs that each OSD accepts (``ceph osd reweight``), 0 to 1: a mapping by OSD id (1 for
            the others) or one value per id from 0. An array of int64 holds 16.16 fixed point.
        pool
            Pool whose choose_args apply. crushtool uses 0.

        Returns
        -------
        ndarray
            OSD ids, int32 of shape (n, num_rep). `NONE` marks an empty slot (indep) and fills the end of a
            short result (firstn). `map_with_lengths` tells the two apart.

        Raises
        ------
        ProblemsError
            If an argument is invalid, or the rule does not finish within its budget of hashes.
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
        """Return the results of `map_many` together with the length of each, int32 of shape (n,).

        Parameters and errors are those of `map_many`.
        """
        from stripesim.models.placement.crush.flat import run_rule

        known_rule = self.rule(rule)
        inputs = whole_numbers("xs", xs)
        if inputs.size > 0 and not (
            int(inputs.min()) >= -(2**31) and int(inputs.max()) < 2**32
        ):
            raise ProblemsError(
                f"xs: got {inputs.min()} … {inputs.max()}, wanted values in [-2**31, 2**32)"
            )
        is_whole = isinstance(num_rep, (int, np.integer)) and not isinstance(
            num_rep, bool
        )
        if not (is_whole and 1 <= num_rep <= _NUM_REP_MAX):
            raise ProblemsError(
                f"num_rep: got {num_rep!r}, wanted a whole number from 1 to {_NUM_REP_MAX}"
            )
        hashed_inputs = inputs.astype(np.uint32)
        shares = self.reweight_vector(reweights)
        key = (known_rule.id, pool, num_rep, hashed_inputs.tobytes(), shares.tobytes())
        if key not in self._mapped:
            tables = self._tables(pool)
            while len(self._mapped) >= _MAPPED_MAX:
                del self._mapped[next(iter(self._mapped))]
            self._mapped[key] = run_rule(
                tables, self.tunables, known_rule, hashed_inputs, num_rep, shares
            )
        rows, lengths = self._mapped[key]
        return rows.copy(), lengths.copy()

    def mappings(
        self,
        rule: int | str,
        xs: npt.ArrayLike,
        num_rep: int,
        reweights: Reweights = None,
    ) -> list[list[int]]:
        """Return each result of `map_many` as a list without padding, as ``crushtool --test`` prints it.

        Parameters and errors are those of `map_many`.
        """
        rows, lengths = self.map_with_lengths(rule, xs, num_rep, reweights)
        return [
            row[:length]
            for row, length in zip(rows.tolist(), lengths.tolist(), strict=True)
        ]

    def osds_below(self, item: int) -> list[int]:
        """Return the OSDs in or below an item, each once."""
        waiting = [item]
        seen = dict[int, None]()
        while waiting:
            bucket_id = waiting.pop()
            if bucket_id not in seen:
                seen[bucket_id] = None
                bucket = self._by_id.get(bucket_id)
                waiting += bucket.items if bucket else ()
        return [one for one in seen if one >= 0]

    def osds_of_rule(self, rule: int | str) -> set[int]:
        """Return the OSDs in or below the buckets that a rule (id or name) takes."""
        takes = self.rule(rule).takes
        return {osd for item in takes for osd in self.osds_below(item)}

    def weightless_osds(self) -> set[int]:
        """Return the OSDs that weigh 0 wherever they are. CRUSH places nothing on them."""
        weighing = {
            item
            for bucket in self.buckets
            for item, weight in zip(bucket.items, bucket.weights, strict=True)
            if weight
        }
        return {device.id for device in self.devices} - weighing

    def weights_of_rule(self, rule: int | str) -> dict[int, int]:
        """Return the weight of each OSD that a rule (id or name) may place on, 16.16 fixed point."""
        osds = self.osds_of_rule(rule)
        return {
            item: weight
            for bucket in self.buckets
            for item, weight in zip(bucket.items, bucket.weights, strict=True)
            if item in osds
        }

    def shares_of_rule(self, rule: int | str) -> dict[int, float]:
        """Return the share of shards that Ceph's balancer wants on each OSD of a rule (id or name).

        Shares are CRUSH weights, in units of each tree's sum if the rule takes several trees in turn: the
        balancer counts all trees alike, however many shards they get.

        References
        ----------
        Ceph v16.2.15, src/crush/CrushWrapper.cc (get_rule_weight_osd_map).
        """
        takes = self.rule(rule).takes
        weights = self.weights_of_rule(rule)
        if len(takes) == 1:
            return dict(weights)
        shares: dict[int, float] = defaultdict(float)
        for item in takes:
            osds = [osd for osd in self.osds_below(item) if weights.get(osd)]
            total = sum(weights[osd] for osd in osds)
            for osd in osds:
                shares[osd] += weights[osd] / total
        return dict(shares)

    def trees_of_rule(self, rule: int | str) -> dict[int, tuple[int, ...]]:
        """Return the items that a rule (id or name) takes and that each OSD is below.

        A shard that moves stays below the same items: one on an SSD never moves to a disk if the rule takes
        the SSDs and then the disks.
        """
        trees: dict[int, tuple[int, ...]] = defaultdict(tuple)
        for item in dict.fromkeys(self.rule(rule).takes):
            for osd in self.osds_below(item):
                trees[osd] += (item,)
        return dict(trees)

    def domains(self, type_name: str) -> dict[int, str]:
        """Return the name of the bucket of a type that contains each OSD, ignoring shadow trees.

        All callers share the mapping: copy it before you change it.
        """
        return self._domains_of_types.get(type_name, {})

    @cached_property
    def _domains_of_types(self) -> dict[str, dict[int, str]]:
        """For each type, what `domains` returns."""
        of_types: dict[str, dict[int, str]] = {name: {} for _, name in self.types}
        names = dict(self.types)
        for bucket in self.buckets:
            if "~" not in bucket.name:
                osds = self.osds_below(bucket.id)
                of_types[names[bucket.type_id]] |= dict.fromkeys(osds, bucket.name)
        return of_types

    def failure_domain(self, rule: int | str) -> str:
        """Return the type of bucket that no two shards of a group share under a rule (id or name).

        If a rule takes several buckets of one type in each bucket of another, only the inner type counts: 2
        datacenters with 2 hosts each give 4 different hosts. If it takes several trees in turn, such as one
        copy on SSDs and two on disks, buckets that they have in common may get a shard from each.

        Examples
        --------
        >>> from stripesim.models.placement import build_map
        >>> crush = build_map(hosts=4, osds_per_host=6)
        >>> crush.failure_domain("ec"), crush.failure_domain("ec_osd")
        ('host', 'osd')
        """
        takes = self.rule(rule).takes
        names = dict(self.types)
        type_id = min(self.chosen_types(rule), default=0)
        while type_id > 0 and self._share_buckets(takes, names[type_id]):
            type_id = max(other for other in names if other < type_id)
        return names[type_id] if type_id > 0 else "osd"

    def chosen_types(self, rule: int | str) -> list[int]:
        """Return the type of bucket that each tree of a rule (id or name) gives at most one shard."""
        types = []
        chosen = 0
        for step in self.rule(rule).steps:
            if step.op is StepOp.EMIT:
                types.append(chosen)
                chosen = 0
            if step.op in CHOOSE_OPS and (not chosen or step.count != 1):
                chosen = step.type_id
        return types

    def _share_buckets(self, items: Sequence[int], type_name: str) -> bool:
        """Return True if two items have OSDs in the same bucket of a type, or OSDs in no such bucket."""
        if len(items) < 2:
            return False
        domains = self.domains(type_name)
        buckets = [
            {domains.get(osd, "") for osd in self.osds_below(item)} for item in items
        ]
        return len(set().union(*buckets)) < sum(map(len, buckets))

    def reweight_vector(self, reweights: Reweights) -> npt.NDArray[np.int64]:
        """Check reweights and convert them to 16.16 fixed point, int64 of shape (max_devices,).

        Raises
        ------
        ProblemsError
            If an OSD is unknown, a share is not in [0, 1], or the number of shares is wrong.
        """
        size = self.max_devices
        vector = np.full(size, WEIGHT_ONE, dtype=np.int64)
        if reweights is None:
            return vector
        if (
            isinstance(reweights, np.ndarray)
            and reweights.dtype == np.int64
            and reweights.size == size
        ):
            # Already in fixed point, as in Ceph's OSD map.
            return reweights.astype(np.int64, copy=False)
        if isinstance(reweights, Mapping):
            shares = dict(reweights)
            known = {device.id for device in self.devices}
            for osd in set(shares) - known:
                raise ProblemsError(
                    f"reweights: got OSD {osd}, wanted one of the map's {len(known)} OSDs"
                )
        elif len(reweights) == size:
            shares = {osd: float(share) for osd, share in enumerate(reweights)}
        else:
            raise ProblemsError(
                f"reweights: got {len(reweights)} values, wanted {size} (one for each OSD id)"
            )
        for osd, share in shares.items():
            if not (math.isfinite(share) and 0 <= share <= 1):
                raise ProblemsError(
                    f"reweights: got {share} for OSD {osd}, wanted a share in [0, 1]"
                )
            vector[osd] = int(share * WEIGHT_ONE)
        return vector

    def _tables(self, pool: int) -> MapTables:
        """Flatten the map for the compiled kernel, once per set of choose_args."""
        from stripesim.models.placement.crush.flat import flatten

        sets = dict(self.choose_args)
        # Set −1 is for pools without their own set.
        key = pool if pool in sets else -1
        if key not in self._laid_flat:
            self._laid_flat[key] = flatten(
                self.buckets, sets.get(key, ()), self.tunables.straw_calc_version
            )
        return self._laid_flat[key]

    @cached_property
    def _by_id(self) -> dict[int, Bucket]:
        return {bucket.id: bucket for bucket in self.buckets}

    @cached_property
    def _laid_flat(self) -> dict[int, MapTables]:
        return {}

    @cached_property
    def _mapped(
        self,
    ) -> dict[
        tuple[int, int, int, bytes, bytes],
        tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]],
    ]:
        """The last results. Builds of the same pool ask for the same ones."""
        return {}


def whole_numbers(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return a one-dimensional array of whole numbers, or raise `ProblemsError`."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or (numbers.size > 0 and numbers.dtype.kind not in "iu"):
        got = f"{name}: got an array of {numbers.dtype} with {numbers.ndim} axes"
        raise ProblemsError(f"{got}, wanted one axis of whole numbers")
    return numbers
