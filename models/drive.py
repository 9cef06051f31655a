"""Capacity and endurance of a drive: for capacity and wear, never for time."""

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
    """Writes that a drive's maker guarantees."""

    positive: ClassVar = ("rated_write_bytes", "rated_days")
    rated_write_bytes: float  #: Host writes over the rated life [B] (sold as "TBW")
    rated_days: (
        float  #: Rated life [d]; with the above it gives the rated writes per day
    )

    def drive_writes_per_day(self, drive_bytes: float) -> float:
        """Return how often a day a drive of this capacity [B] may be written in full over its life [1/d]."""
        return self.rated_write_bytes / self.rated_days / drive_bytes

    def life_days(self, write_bytes_per_s: float) -> float:
        """Return the days until the rated writes are used up at this rate to one drive [d].

        Notes
        -----
        Host writes, as the rating counts them: the rating includes the drive's own translation layer.
        """
        return self.rated_write_bytes / (write_bytes_per_s * SECONDS_PER_DAY)


@dataclass(frozen=True, kw_only=True)
class FillLimits(MeasuredModel):
    """Fill limits of an OSD."""

    positive: ClassVar = ("full_ratio", "nearfull_ratio")
    full_ratio: (
        float  #: Share of an OSD's capacity at which the cluster refuses writes, 0 to 1
    )
    nearfull_ratio: float  #: Share at which it warns, 0 to 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.nearfull_ratio <= self.full_ratio <= 1:
            raise ValueError(
                f"FillLimits: full_ratio: got {self.full_ratio}, wanted {self.nearfull_ratio} to 1"
            )


def drive_writes_per_day(write_bytes_per_s: float, drive_bytes: float) -> float:
    """Return how often a day a drive is written in full at this rate to it [1/d].

    >>> drive_writes_per_day(10e6, 864e9)
    1.0
    """
    return write_bytes_per_s * SECONDS_PER_DAY / drive_bytes
