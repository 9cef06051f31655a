"""Shadow buckets: for each device class, a copy of the hierarchy that holds only that class's devices.

References
----------
Ceph v16.2.15, src/crush/CrushWrapper.cc (populate_classes, device_class_clone): which id a copy gets when
the map's text names none, which matters because straw2 hashes ids.
"""

from __future__ import annotations

from dataclasses import replace

from stripesim.models.placement.crush.elements import Bucket, Device


def shadow_name(bucket_name: str, device_class: str) -> str:
    """Name of a bucket's shadow, as Ceph writes it."""
    return f"{bucket_name}~{device_class}"


def add_shadow_buckets(devices: tuple[Device, ...], buckets: tuple[Bucket, ...]) -> tuple[Bucket, ...]:
    """Append the shadow buckets of every device class to a hierarchy without cycles.

    Parameters
    ----------
    devices : tuple of Device
        Classes count in the order in which devices first name them.
    buckets : tuple of Bucket
        The plain hierarchy; `Bucket.class_ids` holds the ids that are given.

    Returns
    -------
    tuple of Bucket
        The plain buckets, with `class_ids` complete, then their shadows. A shadow's items are those of its
        original that are of the class or are buckets; devices keep their weights, and a bucket weighs what
        its own items weigh.
    """
    classes = list(dict.fromkeys(d.device_class for d in devices if d.device_class is not None))
    if not classes:
        return buckets
    class_of = {device.id: device.device_class for device in devices}
    by_id = {bucket.id: bucket for bucket in buckets}
    children = {item for bucket in buckets for item in bucket.items}
    given = {(b.id, name): shadow_id for b in buckets for name, shadow_id in b.class_ids}
    used = set(by_id) | set(given.values())
    shadows: dict[tuple[int, str], Bucket] = {}
    for root in sorted(bucket.id for bucket in buckets if bucket.id not in children):
        for name in classes:
            for original in _below_first(root, by_id):
                if (original.id, name) in shadows:
                    continue
                kept = [
                    (item, weight) if item >= 0 else _reference(shadows[item, name])
                    for item, weight in zip(original.items, original.weights, strict=True)
                    if item < 0 or class_of[item] == name
                ]
                shadow_id = given.get((original.id, name)) or _free_id(used)
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
        replace(b, class_ids=tuple((name, shadows[b.id, name].id) for name in classes)) for b in buckets
    )
    return completed + tuple(shadows.values())


def _below_first(root: int, by_id: dict[int, Bucket]) -> list[Bucket]:
    """Buckets under a root, each once and after those it holds, in the order of its items."""
    order: list[Bucket] = []
    visited: set[int] = set()
    path = [(root, False)]
    while path:
        bucket_id, opened = path.pop()
        bucket = by_id[bucket_id]
        if opened:
            order.append(bucket)
            continue
        # Several buckets may hold the same one: to visit it by each way could double the work at each level.
        if bucket_id in visited:
            continue
        visited.add(bucket_id)
        path.append((bucket_id, True))
        path.extend((item, False) for item in reversed(bucket.items) if item < 0)
    return order


def _reference(shadow: Bucket) -> tuple[int, int]:
    return shadow.id, sum(shadow.weights)


def _free_id(used: set[int]) -> int:
    candidate = -1
    while candidate in used:
        candidate -= 1
    return candidate
