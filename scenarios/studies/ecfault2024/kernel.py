"""What Clay's kernel costs in Ceph: the measured NumPy kernel, scaled to Ceph's plugin."""

from dataclasses import replace

from stripesim.models.kernel.cost import AffineKnee, KernelTable


def scaled_table(table: KernelTable, family: str, factor: float) -> KernelTable:
    """Return a table in which one family of codes, or one code, takes another time.

    The NumPy kernel looks products up in tables; Ceph's plugin calls jerasure's vectorised code on the same
    sub-chunks. The factor is measured for encoding; that repair and decode shrink alike is assumed.
    """

    def scaled(knee: AffineKnee) -> AffineKnee:
        names = ("fixed_ns", "per_byte_ns", "per_byte_beyond_ns")
        return replace(knee, **{name: factor * getattr(knee, name) for name in names})

    return replace(
        table,
        costs=tuple(
            replace(cost, total=scaled(cost.total), net=cost.net and scaled(cost.net))
            if cost.scheme.startswith(family)
            else cost
            for cost in table.costs
        ),
    )
