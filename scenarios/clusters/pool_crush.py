"""Prepare the CRUSH map of an imported cluster: valid names, and the part that a pool uses."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from stripesim.models.placement import Bucket, BucketArgs, CrushMap, Rule
from stripesim.models.placement.crush.elements import Alg
from stripesim.models.placement.crush.shadow import shadow_name
from stripesim.scenarios.clusters.report_schema import printable
from stripesim.scenarios.schema.units import first_text

KeyT = TypeVar("KeyT")

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")
# Keywords that start a block other than a bucket.
_RESERVED: Final = ("rule", "choose_args")
_LISTED: Final = 5


def with_safe_names(crush: CrushMap) -> tuple[CrushMap, list[str]]:
    """Rename parts whose names are invalid in the text form of a map, with warnings about the new names.

    Valid names consist of letters, digits, ``_``, ``-`` and ``.``. Devices and buckets share one namespace.
    """
    shadows = _shadows(crush)
    classes = {
        each.device_class: each.device_class
        for each in crush.devices
        if each.device_class is not None
    }
    classes |= {name: name for _, name in shadows.values()}
    items = {each.id: each.name for each in crush.devices}
    items |= {
        bucket.id: bucket.name for bucket in crush.buckets if bucket.id not in shadows
    }
    types = dict(crush.types)
    rules = {rule.id: rule.name for rule in crush.rules}

    new_classes = _renamed(classes)
    new_items = _renamed(items)
    new_types = _renamed(types, _RESERVED)
    new_rules = _renamed(rules)
    for shadow_id, (base_id, device_class) in shadows.items():
        new_items[shadow_id] = shadow_name(
            new_items[base_id], new_classes[device_class]
        )
    changed = [
        *_changes(classes, new_classes),
        *_changes(items, new_items),
        *_changes(types, new_types),
        *_changes(rules, new_rules),
    ]
    if not changed:
        return crush, []

    def with_new_names(bucket: Bucket) -> Bucket:
        class_ids = tuple(
            (new_classes[name], shadow_id) for name, shadow_id in bucket.class_ids
        )
        return replace(bucket, name=new_items[bucket.id], class_ids=class_ids)

    safe = replace(
        crush,
        devices=tuple(
            replace(
                each,
                name=new_items[each.id],
                device_class=new_classes.get(each.device_class or ""),
            )
            for each in crush.devices
        ),
        types=tuple(new_types.items()),
        buckets=tuple(map(with_new_names, crush.buckets)),
        rules=tuple(replace(rule, name=new_rules[rule.id]) for rule in crush.rules),
    )
    return safe, [_renaming_warning(changed)]


def _renaming_warning(changed: Sequence[tuple[str, str]]) -> str:
    """Return a warning that lists the first of the old and new names."""
    renamed = [f"{printable(old)!r} is now {new}" for old, new in changed]
    listed = first_text(renamed, _LISTED)
    return f"crushmap: names that the text of a CRUSH map cannot have: {listed}"


def _shadows(crush: CrushMap) -> dict[int, tuple[int, str]]:
    """Return the bucket and the device class of each shadow bucket."""
    return {
        shadow_id: (bucket.id, device_class)
        for bucket in crush.buckets
        for device_class, shadow_id in bucket.class_ids
    }


def _renamed(
    names: Mapping[KeyT, str], reserved: Sequence[str] = ()
) -> dict[KeyT, str]:
    """Give each key a unique name of valid characters. Valid and unique names do not change."""
    kept = [
        name
        for name in names.values()
        if name and not _UNSAFE.search(name) and name not in reserved
    ]
    taken = set(kept) | set(reserved)
    first_use = set(kept)
    new_names = {}
    for key, name in names.items():
        if name in first_use:
            first_use.discard(name)
            new_names[key] = name
            continue
        stem = _UNSAFE.sub("_", name) or "unnamed"
        candidate = stem
        number = 1
        while candidate in taken:
            number += 1
            candidate = f"{stem}-{number}"
        taken.add(candidate)
        new_names[key] = candidate
    return new_names


def _changes(
    names: Mapping[KeyT, str], new_names: Mapping[KeyT, str]
) -> list[tuple[str, str]]:
    return [
        (name, new_names[key]) for key, name in names.items() if name != new_names[key]
    ]


def crush_of_pool(
    crush: CrushMap, rule: Rule, pool_id: int, osds: Collection[int]
) -> CrushMap:
    """Return the part of a map that a pool's rule reaches, which places the pool's groups identically.

    Parameters
    ----------
    crush
        The map of the cluster.
    rule
        The rule of the pool. The result contains no other.
    pool_id
        Number of the pool, which selects its choose_args. They apply to all pools of the result.
    osds
        OSDs that can be drawn, with those that are out: CRUSH draws these and rejects them. All others are
        left out.

    Returns
    -------
    CrushMap
        The part of the map.

    Notes
    -----
    Straw2 draws for each item independently, so items that the rule never draws can be left out. Maps with
    buckets of other algorithms stay complete.
    """
    takes = rule.takes
    reached = {osd for take in takes for osd in crush.osds_below(take) if osd in osds}
    shadows = _shadows(crush)
    roots = [shadows[take][0] if take in shadows else take for take in takes]
    kept = _holders(crush, reached) & _buckets_below(crush, roots)
    if any(
        bucket.alg is not Alg.STRAW2 for bucket in crush.buckets if bucket.id in kept
    ):
        reached = {device.id for device in crush.devices}
        kept = {bucket.id for bucket in crush.buckets if bucket.id not in shadows}
    devices = tuple(device for device in crush.devices if device.id in reached)
    classes = {device.device_class for device in devices}
    kept |= {
        shadow_id
        for shadow_id, (base_id, device_class) in shadows.items()
        if base_id in kept and device_class in classes
    }
    part = _Part(reached | kept, classes)
    buckets = {bucket.id: bucket for bucket in crush.buckets if bucket.id in kept}
    sets = dict(crush.choose_args)
    args = tuple(
        part.pruned_args(change, buckets[change.bucket_id].items)
        for change in sets.get(pool_id, sets.get(-1, ()))
        if change.bucket_id in buckets
    )
    return replace(
        crush,
        devices=devices,
        buckets=tuple(map(part.pruned, buckets.values())),
        rules=(rule,),
        choose_args=((-1, args),) * bool(args),
    )


class _Part(NamedTuple):
    """The items and device classes that a part of a map keeps."""

    items: Collection[int]
    classes: Collection[str | None]

    def pruned(self, bucket: Bucket) -> Bucket:
        """Return a bucket without the items that are left out."""
        indices = self._kept(bucket.items)
        return replace(
            bucket,
            items=tuple(bucket.items[index] for index in indices),
            weights=self._weights(bucket.items, bucket.weights),
            class_ids=tuple(
                (name, shadow_id)
                for name, shadow_id in bucket.class_ids
                if name in self.classes
            ),
        )

    def pruned_args(self, change: BucketArgs, items: Sequence[int]) -> BucketArgs:
        """Return the choose_args of a bucket without the items that are left out."""
        weight_sets = tuple(
            self._weights(items, weights) for weights in change.weight_sets
        )
        # Empty if the ids are those of the items.
        ids = tuple(change.ids[index] for index in self._kept(items) if change.ids)
        return replace(change, weight_sets=weight_sets, ids=ids)

    def _kept(self, items: Sequence[int]) -> list[int]:
        return [index for index, item in enumerate(items) if item in self.items]

    def _weights(self, items: Sequence[int], weights: Sequence[int]) -> tuple[int, ...]:
        """Return the weights of kept items."""
        return tuple(weights[index] for index in self._kept(items))


def _holders(crush: CrushMap, osds: Iterable[int]) -> set[int]:
    """Return the buckets that hold OSDs, at any depth."""
    parents: dict[int, list[int]] = {}
    for bucket in crush.buckets:
        for item in bucket.items:
            parents.setdefault(item, []).append(bucket.id)
    return _connected(osds, parents)


def _buckets_below(crush: CrushMap, roots: Iterable[int]) -> set[int]:
    """Return the given buckets and all buckets below them."""
    children = {
        bucket.id: [item for item in bucket.items if item < 0]
        for bucket in crush.buckets
    }
    return set(roots) | _connected(roots, children)


def _connected(start: Iterable[int], edges: Mapping[int, Sequence[int]]) -> set[int]:
    """Return the nodes reachable from the start."""
    reached: set[int] = set()
    waiting = list(start)
    while waiting:
        for following in edges.get(waiting.pop(), ()):
            if following not in reached:
                reached.add(following)
                waiting.append(following)
    return reached
