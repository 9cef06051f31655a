"""The three archives of the source: how many files, and of which sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

_ORDER_SEED = 2016


@dataclass(frozen=True)
class Archive:
    """An archive as Table I describes it.

    Parameters
    ----------
    name : str
        As in the source.
    files : int
        Files in it.
    size_bytes : int
        Bytes of all of them [B].
    spread : float
        Standard deviation of the logarithm of a file's size; 0: all files are alike.
    """

    name: str
    files: int
    size_bytes: int
    spread: float = 0.0

    @property
    def file_bytes(self) -> npt.NDArray[np.int64]:
        """Sizes of the files [B], at least 1, shape (files,).

        Notes
        -----
        Quantiles of a lognormal distribution at evenly spaced probabilities, scaled to the archive's size,
        in an order drawn once. The source gives number and sum only.
        """
        at = (np.arange(self.files) + 0.5) / self.files
        relative = np.exp(self.spread * ndtri(at))
        sizes = np.maximum(1, np.rint(relative * self.size_bytes / relative.sum())).astype(np.int64)
        return np.random.default_rng(_ORDER_SEED).permutation(sizes)
