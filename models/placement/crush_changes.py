"""Changes of a CRUSH map as Ceph's commands make them: weights of OSDs, and new hosts.

See Ceph v16.2.15, src/crush/CrushWrapper.cc (adjust_item_weight, adjust_item_weight_in_bucket,
choose_args_adjust_item_weight, insert_item, device_class_clone).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from stripesim.models.placement.crush.elements import Alg, Bucket, BucketArgs, Device
from stripesim.models.placement.crush.map import CrushMap
from stripesim.models.placement.crush.shadow import shadow_name
from stripesim.models.problems import ProblemsError

# Weights of a bucket's items, one row for each position in a result.
_Rows = list[list[int]]


def reweighted(crush: CrushMap, weights: Mapping[int, int]) -> CrushMap:
    """Return a map with other weights of OSDs, as ``ceph osd crush reweight`` sets one after another.

    The weights of all ancestors follow, up to the roots and in the shadow trees of device classes. So do
    weight sets (``osd_crush_update_weight_set``, on by default).

    Parameters
    ----------
    crush
        The map before.
    weights
        OSD → weight, 16.16 fixed point.

    Returns
    -------
    CrushMap
        The map after.

    Raises
    ------
    ProblemsError
        If no bucket holds one of the OSDs.
    """
    if not weights:
        return crush
    trees = _WeightTrees(crush)
    for osd, weight in weights.items():
        trees.set(osd, weight)
    return trees.applied()


def with_new_hosts(
    crush: CrushMap,
    names: Sequence[str],
    *,
    parents: Sequence[int],
    osds_per_host: int,
    device_class: str | None = None,
) -> tuple[CrushMap, list[list[int]]]:
    """Return a map with further hosts whose OSDs weigh nothing yet, and the OSDs of each.

    OSDs, buckets and their shadows get the lowest free ids, as in Ceph. An item of weight 0 is never drawn,
    so the mappings stay as they are until `reweighted` gives the OSDs a weight.

    Parameters
    ----------
    crush
        The map before.
    names
        Name of each new host.
    parents
        Id of the bucket that gets each host.
    osds_per_host
        OSDs of each host [count].
    device_class
        Class of the new OSDs, None for none.

    Returns
    -------
    crush
        The map after.
    osds
        OSDs of each new host, in order.
    """
    growth = _Growth(crush)
    osds = [
        growth.add_host(name, parent, osds_per_host, device_class)
        for name, parent in zip(names, parents, strict=True)
    ]
    return growth.grown(), osds


class _WeightTrees:
    """The weights of all buckets, and those of each set of choose_args."""

    def __init__(self, crush: CrushMap) -> None:
        self._crush = crush
        self._buckets = {bucket.id: bucket for bucket in crush.buckets}
        self._parents: dict[int, list[int]] = {}
        for bucket in crush.buckets:
            for item in bucket.items:
                self._parents.setdefault(item, []).append(bucket.id)
        self._own: dict[int, _Rows] = {
            bucket.id: [list(bucket.weights)] for bucket in crush.buckets
        }
        self._sets: list[dict[int, _Rows]] = [
            {
                args.bucket_id: [list(row) for row in args.weight_sets]
                for args in of_set
                if args.weight_sets
            }
            for _, of_set in crush.choose_args
        ]

    def set(self, osd: int, weight: int) -> None:
        """Set the weight of an OSD wherever it is."""
        if osd not in self._parents:
            raise ProblemsError(f"weights: got OSD {osd}, wanted one of the map's")
        for bucket_id in self._parents[osd]:
            self._set_in(self._own, bucket_id, osd, weight)
            for rows_of in self._sets:
                if bucket_id in rows_of:
                    self._set_in(rows_of, bucket_id, osd, weight)

    def applied(self) -> CrushMap:
        """Return the map with these weights."""
        buckets = tuple(
            replace(bucket, weights=tuple(self._own[bucket.id][0]))
            for bucket in self._crush.buckets
        )
        choose_args = tuple(
            (pool, tuple(_with_rows(args, rows_of) for args in of_set))
            for (pool, of_set), rows_of in zip(
                self._crush.choose_args, self._sets, strict=True
            )
        )
        return replace(self._crush, buckets=buckets, choose_args=choose_args)

    def _set_in(
        self, rows_of: dict[int, _Rows], bucket_id: int, osd: int, weight: int
    ) -> None:
        bucket = self._buckets[bucket_id]
        position = bucket.items.index(osd)
        rows = rows_of[bucket_id]
        added = [weight - row[position] for row in rows]
        for row in rows:
            row[position] = weight
            if bucket.alg is Alg.UNIFORM:
                row[:] = [weight] * len(row)
        if bucket.alg is Alg.UNIFORM:
            added = [size * len(bucket.items) for size in added]
        self._add_above(rows_of, bucket_id, added)

    def _add_above(
        self, rows_of: dict[int, _Rows], bucket_id: int, added: list[int]
    ) -> None:
        """Add to the weight of a bucket in all its ancestors, as far as a weight set has them."""
        for parent in self._parents.get(bucket_id, ()):
            if parent not in rows_of:
                continue
            position = self._buckets[parent].items.index(bucket_id)
            for row, size in zip(rows_of[parent], added, strict=True):
                row[position] += size
            self._add_above(rows_of, parent, added)


def _with_rows(args: BucketArgs, rows_of: Mapping[int, _Rows]) -> BucketArgs:
    rows = rows_of.get(args.bucket_id, ())
    return replace(args, weight_sets=tuple(map(tuple, rows)))


class _Growth:
    """A map to which hosts are added."""

    def __init__(self, crush: CrushMap) -> None:
        self._crush = crush
        self._devices = {device.id: device for device in crush.devices}
        self._buckets = {bucket.id: bucket for bucket in crush.buckets}
        self._sets = [
            (pool, {args.bucket_id: args for args in of_set})
            for pool, of_set in crush.choose_args
        ]

    def add_host(
        self, name: str, parent: int, osds: int, device_class: str | None
    ) -> list[int]:
        """Add a host with OSDs of weight 0 below a bucket; return the OSDs."""
        numbers = [self._add_device(device_class) for _ in range(osds)]
        host_type = next(
            number for number, type_name in self._crush.types if type_name == "host"
        )
        host_id = self._free_bucket_id()
        self._add_bucket(Bucket(host_id, name, host_type, tuple(numbers), (0,) * osds))
        class_ids = []
        for class_name, parent_shadow in self._buckets[parent].class_ids:
            shadow_id = self._free_bucket_id()
            class_ids.append((class_name, shadow_id))
            items = tuple(numbers) if class_name == device_class else ()
            self._add_bucket(
                Bucket(
                    shadow_id,
                    shadow_name(name, class_name),
                    host_type,
                    items,
                    (0,) * len(items),
                )
            )
            self._append(parent_shadow, shadow_id)
        self._buckets[host_id] = replace(
            self._buckets[host_id], class_ids=tuple(class_ids)
        )
        self._append(parent, host_id)
        return numbers

    def grown(self) -> CrushMap:
        """Return the map."""
        return replace(
            self._crush,
            devices=tuple(self._devices[osd] for osd in sorted(self._devices)),
            buckets=tuple(self._buckets.values()),
            choose_args=tuple(
                (pool, tuple(args_of.values())) for pool, args_of in self._sets
            ),
        )

    def _add_device(self, device_class: str | None) -> int:
        number = next(osd for osd in count() if osd not in self._devices)
        self._devices[number] = Device(number, f"osd.{number}", device_class)
        return number

    def _free_bucket_id(self) -> int:
        return next(free for free in count(-1, -1) if free not in self._buckets)

    def _add_bucket(self, bucket: Bucket) -> None:
        self._buckets[bucket.id] = bucket
        for _, args_of in self._sets:
            positions = max(
                (len(args.weight_sets) for args in args_of.values()), default=0
            )
            if positions and bucket.items:
                args_of[bucket.id] = BucketArgs(
                    bucket.id, (bucket.weights,) * positions
                )

    def _append(self, parent: int, item: int) -> None:
        """Append an item of weight 0 to a bucket, and to its weight sets."""
        bucket = self._buckets[parent]
        self._buckets[parent] = replace(
            bucket, items=(*bucket.items, item), weights=(*bucket.weights, 0)
        )
        for _, args_of in self._sets:
            args = args_of.get(parent)
            if args is not None:
                args_of[parent] = replace(
                    args,
                    weight_sets=tuple((*row, 0) for row in args.weight_sets),
                    ids=(*args.ids, item) if args.ids else (),
                )
