"""What Clay's kernel costs in Ceph: the measured NumPy kernel, scaled to Ceph's plugin."""

from __future__ import annotations

from dataclasses import replace

from stripesim.models.kernel.cost import AffineKnee, KernelTable


def scaled_table(table: KernelTable, family: str, factor: float) -> KernelTable:
    """Return a table in which one family of codes takes another time.

    The NumPy kernel looks products up in tables; Ceph's plugin calls jerasure's vectorised code on the same
    sub-chunks. The factor is measured for encoding; that repair and decode shrink alike is assumed.
    """

    def scaled(knee: AffineKnee | None) -> AffineKnee | None:
        if knee is None:
            return None
        return replace(
            knee,
            fixed_ns=factor * knee.fixed_ns,
            per_byte_ns=factor * knee.per_byte_ns,
            per_byte_beyond_ns=factor * knee.per_byte_beyond_ns,
        )

    costs = []
    for cost in table.costs:
        if cost.scheme.partition(":")[0] == family:
            total, net = scaled(cost.total), scaled(cost.net)
            assert total is not None
            costs.append(replace(cost, total=total, net=net))
        else:
            costs.append(cost)
    return replace(table, costs=tuple(costs))
