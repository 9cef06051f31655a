"""Shadow buckets: for each device class, a copy of the hierarchy that holds only that class's devices.

See Ceph v16.2.15, src/crush/CrushWrapper.cc (populate_classes, device_class_clone): which id a copy gets when
the map's text names none, which matters because straw2 hashes ids.
"""

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

    Classes count in the order in which devices first name them; `Bucket.class_ids` holds the ids that are
    given, and all of them in the result. A shadow's items are those of its original that are of the class or
    are buckets; devices keep their weights, and a bucket weighs what its own items weigh.
    """
    classes = list(
        dict.fromkeys(d.device_class for d in devices if d.device_class is not None)
    )
    if not classes:
        return buckets
    class_of = {device.id: device.device_class for device in devices}
    by_id = {bucket.id: bucket for bucket in buckets}
    children = {item for bucket in buckets for item in bucket.items}
    known_ids = {
        (b.id, name): shadow_id for b in buckets for name, shadow_id in b.class_ids
    }
    used = set(by_id) | set(known_ids.values())
    shadows: dict[tuple[int, str], Bucket] = {}
    below = {bucket.id: bucket.items for bucket in buckets}
    ordered: dict[int, None] = {}
    for root in sorted(set(by_id) - children):
        done = len(ordered)
        depth_first(root, below, ordered)
        for name in classes:
            for original in (by_id[bucket_id] for bucket_id in list(ordered)[done:]):
                kept = [
                    (item, weight) if item >= 0 else _reference(shadows[item, name])
                    for item, weight in zip(
                        original.items, original.weights, strict=True
                    )
                    if item < 0 or class_of[item] == name
                ]
                shadow_id = known_ids.get((original.id, name)) or _free_id(used)
                used.add(shadow_id)
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


def _reference(shadow: Bucket) -> tuple[int, int]:
    return shadow.id, sum(shadow.weights)


def _free_id(used: set[int]) -> int:
    return next(candidate for candidate in count(-1, -1) if candidate not in used)
