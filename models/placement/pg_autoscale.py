"""The number of placement groups that Ceph's autoscaler chooses for a pool."""

from dataclasses import dataclass
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel, Provenance


@dataclass(frozen=True, kw_only=True)
class PgAutoscaleModel(MeasuredModel):
    r"""The placement-group autoscaler.

    It aims at ``mon_target_pg_per_osd`` shards of placement groups per OSD. A pool keeps its number of
    placement groups unless the target differs by more than a factor, and there is a minimum number.

    Notes
    -----
    A pool whose stored bytes, including redundancy, make up the fraction :math:`c` of the raw capacity wants

    .. math:: p = c \cdot \frac{\text{OSDs} \cdot \text{target}}{\text{width}} \tag{1}

    placement groups, rounded to the nearest power of two. A pool with flag ``bulk`` counts as if it filled
    the cluster. The use by other pools is ignored. Older versions divide by the raw bytes per byte of data
    (n / k for a code) instead of the width, and so want k times the number.

    References
    ----------
    Ceph v16.2.15, ``doc/rados/operations/placement-groups.rst``,
    ``src/pybind/mgr/pg_autoscaler/module.py`` (``nearest_power_of_two``, ``PG_NUM_MIN``, ``threshold``).
    """

    positive: ClassVar = ("target_pgs_per_osd_count", "pgs_min_count")
    target_pgs_per_osd_count: int
    threshold_factor: float
    pgs_min_count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.threshold_factor >= 1:
            raise ValueError(
                f"PgAutoscaleModel: threshold_factor: got {self.threshold_factor}, wanted 1 or more"
            )

    def wanted(self, *, raw_used_fraction: float, osds: int, width: int) -> int:
        """Return the number of placement groups by equation (1), a power of two.

        Parameters
        ----------
        raw_used_fraction
            Fraction of the raw capacity that the pool uses, 0 to 1, or 1 for a pool with flag ``bulk``.
        osds
            OSDs that the pool's rule can reach, at least 1.
        width
            Shards or copies of an object, at least 1.

        Raises
        ------
        ValueError
            If an argument is out of range.

        Examples
        --------
        >>> pg_autoscale_model().wanted(raw_used_fraction=0.042, osds=90, width=12)
        32
        """
        if not 0 <= raw_used_fraction <= 1:
            raise ValueError(
                f"pg autoscale: raw_used_fraction: got {raw_used_fraction}, wanted 0 to 1"
            )
        if osds < 1 or width < 1:
            raise ValueError(
                f"pg autoscale: got {osds} OSDs and a width of {width}, wanted 1 or more"
            )
        exact = raw_used_fraction * osds * self.target_pgs_per_osd_count / width
        return max(self.pgs_min_count, nearest_power_of_two(exact))

    def scaled(self, pg_num: int, wanted: int) -> int:
        """Return the final number for a pool of `pg_num` groups, which changes only beyond the threshold."""
        near = (
            pg_num <= wanted * self.threshold_factor
            and wanted <= pg_num * self.threshold_factor
        )
        if near:
            return pg_num
        return wanted


def nearest_power_of_two(number: float) -> int:
    """Return the power of two nearest to a number, at least 1 and the larger of two equally near ones.

    Examples
    --------
    >>> [nearest_power_of_two(n) for n in (0, 1, 2.9, 3, 6.1, 100)]
    [1, 1, 2, 4, 8, 128]
    """
    low = 1
    while low * 2 <= number:
        low *= 2
    if low < number and 2 * low - number <= number - low:
        return 2 * low
    return low


def pg_autoscale_model() -> PgAutoscaleModel:
    """Return the autoscaler of Ceph 16.2 with its default settings."""
    version = "Ceph v16.2.15"
    return PgAutoscaleModel(
        target_pgs_per_osd_count=100,
        threshold_factor=3.0,
        pgs_min_count=32,
        provenance={
            "target_pgs_per_osd_count": Provenance(
                "code", f"{version}: mon_target_pg_per_osd"
            ),
            "threshold_factor": Provenance(
                "code", f"{version}: pg_autoscaler, threshold 3.0"
            ),
            "pgs_min_count": Provenance(
                "code",
                "Ceph, pg_autoscaler, PG_NUM_MIN: 32, or 4 in other versions; the one in 16.2.15 is assumed",
            ),
        },
    )


def autoscaled_pg_num(data_share: float, osds: int, width: int) -> int:
    """Return the placement groups that Ceph's autoscaler wants for a share of the data on OSDs.

    The share counts as if the OSDs were filled with it, as with the flag ``bulk``.

    Examples
    --------
    >>> autoscaled_pg_num(1.0, osds=15, width=8)
    128
    """
    model = pg_autoscale_model()
    return model.wanted(raw_used_fraction=data_share, osds=osds, width=width)
