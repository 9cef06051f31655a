"""Capacity and endurance of drives, which affect capacity and wear but never time."""

from dataclasses import dataclass
from typing import ClassVar, Final

from stripesim.models.provenance import MeasuredModel

SECONDS_PER_DAY: Final = 86_400


@dataclass(frozen=True, kw_only=True)
class DriveCapacity(MeasuredModel):
    """Capacity of a drive."""

    positive: ClassVar = ("drive_bytes",)
    drive_bytes: float  #: Capacity of one drive [B]


@dataclass(frozen=True, kw_only=True)
class DriveEndurance(MeasuredModel):
    """Writes that the maker of a drive guarantees."""

    positive: ClassVar = ("rated_write_bytes", "rated_days")
    rated_write_bytes: float  #: Host writes over the rated life [B], sold as "TBW"
    rated_days: float  #: Rated life [d]. With the rated writes, it gives the rated writes per day.

    def drive_writes_per_day(self, drive_bytes: float) -> float:
        """Return the rated full writes per day [1/d] of a drive with this capacity [B]."""
        return self.rated_write_bytes / self.rated_days / drive_bytes

    def life_days(self, write_bytes_per_s: float) -> float:
        """Return the time until the rated writes are used up.

        Parameters
        ----------
        write_bytes_per_s
            Host writes to one drive [B/s], greater than 0.

        Returns
        -------
        float
            Life [d].

        Notes
        -----
        The rating counts host writes and already accounts for the drive's own translation layer.
        """
        return self.rated_write_bytes / (write_bytes_per_s * SECONDS_PER_DAY)


@dataclass(frozen=True, kw_only=True)
class FillLimits(MeasuredModel):
    """Fill limits of an OSD."""

    positive: ClassVar = ("full_ratio", "nearfull_ratio")
    full_ratio: (
        float  #: Share of an OSD's capacity at which the cluster rejects writes, 0 to 1
    )
    nearfull_ratio: float  #: Share at which the cluster warns, 0 to 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.nearfull_ratio <= self.full_ratio <= 1:
            raise ValueError(
                f"FillLimits: full_ratio: got {self.full_ratio}, wanted {self.nearfull_ratio} to 1"
            )


def drive_writes_per_day(write_bytes_per_s: float, drive_bytes: float) -> float:
    """Return the full writes per day of a drive with this capacity [B] at this write rate [B/s], in 1/d.

    Examples
    --------
    >>> drive_writes_per_day(10e6, 864e9)
    1.0
    """
    return write_bytes_per_s * SECONDS_PER_DAY / drive_bytes
