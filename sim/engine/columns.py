"""Requests as columns: arrays with one row per request, or per part of one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stripesim.sim.engine.graph import IntArray


@dataclass(frozen=True)
class Columns:
    """Arrays of equally many rows. A column is None if it applies to no row."""

    def at(self, rows: IntArray | slice) -> Self:
        """Return the given rows."""
        return type(self)(
            *(None if column is None else column[rows] for column in self._columns)
        )

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Return the rows of all parts, which have the same columns."""
        columns = zip(*(part._columns for part in parts), strict=True)
        return cls(*map(np.concatenate, columns))

    @property
    def _columns(self) -> tuple[npt.NDArray[Any] | None, ...]:
        return tuple(vars(self).values())
