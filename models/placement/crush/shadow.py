"""Create shadow buckets: per device class, a copy of the hierarchy with only the devices of that class.

References
----------
Ceph v16.2.15, src/crush/CrushWrapper.cc (populate_classes, device_class_clone), for the id of a shadow that
the text of a map does not name. Ids matter because straw2 hashes them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from stripesim.models.placement.crush.elements import Bucket, Device
from stripesim.models.placement.crush.problems import depth_first


def shadow_name(bucket_name: str, device_class: str) -> str:
    """Return the name of a bucket's shadow, as Ceph writes it."""
    return f"{bucket_name}~{device_class}"


def add_shadow_buckets(
    devices: tuple[Device, ...], buckets: tuple[Bucket, ...]
) -> tuple[Bucket, ...]:
    """Append the shadow buckets of every device class to a hierarchy without cycles.

    Parameters
    ----------
    devices
        Devices of the map. Classes are ordered by their first device.
    buckets
        Buckets of the map, whose `Bucket.class_ids` hold the known shadow ids.

    Returns
    -------
    tuple of Bucket
        The buckets with complete `Bucket.class_ids`, followed by their shadows. A shadow holds the devices of
        its class and the shadows of its buckets. Devices keep their weights, and a bucket weighs the sum of
        its items.
    """
    classes = list(
        dict.fromkeys(d.device_class for d in devices if d.device_class is not None)
    )
    if not classes:
        return buckets
    class_of = {device.id: device.device_class for device in devices}
    known_ids = {
        (b.id, name): shadow_id for b in buckets for name, shadow_id in b.class_ids
    }
    used = {bucket.id for bucket in buckets} | set(known_ids.values())
    shadows: dict[tuple[int, str], Bucket] = {}
    for tree in _trees(buckets):
        for name in classes:
            for original in tree:
                shadow_id = known_ids.get((original.id, name)) or _free_id(used)
                used.add(shadow_id)
                kept = _items_of_class(original, name, class_of, shadows)
                shadows[original.id, name] = Bucket(
                    shadow_id,
                    shadow_name(original.name, name),
                    original.type_id,
                    tuple(item for item, _ in kept),
                    tuple(weight for _, weight in kept),
                    alg=original.alg,
                )
    completed = tuple(
        replace(b, class_ids=tuple((name, shadows[b.id, name].id) for name in classes))
        for b in buckets
    )
    return completed + tuple(shadows.values())


def _trees(buckets: tuple[Bucket, ...]) -> Iterator[list[Bucket]]:
    """Yield the buckets below each root that no earlier root holds, each after its children."""
    by_id = {bucket.id: bucket for bucket in buckets}
    below = {bucket.id: bucket.items for bucket in buckets}
    children = {item for bucket in buckets for item in bucket.items}
    ordered: dict[int, None] = {}
    for root in sorted(set(by_id) - children):
        done = len(ordered)
        depth_first(root, below, ordered)
        yield [by_id[bucket_id] for bucket_id in list(ordered)[done:]]


def _items_of_class(
    original: Bucket,
    name: str,
    class_of: Mapping[int, str | None],
    shadows: Mapping[tuple[int, str], Bucket],
) -> list[tuple[int, int]]:
    """Return the items and weights of a bucket's shadow, whose own items have their shadows already."""
    kept = []
    for item, weight in zip(original.items, original.weights, strict=True):
        if item < 0:
            kept.append(_reference(shadows[item, name]))
        elif class_of[item] == name:
            kept.append((item, weight))
    return kept


def _reference(shadow: Bucket) -> tuple[int, int]:
    return shadow.id, sum(shadow.weights)


def _free_id(used: set[int]) -> int:
    return next(candidate for candidate in count(-1, -1) if candidate not in used)
