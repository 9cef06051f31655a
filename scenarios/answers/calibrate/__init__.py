"""Calibrate the models of a cluster to a few measurements: `stripesim calibrate`.

Start with `calibrate`. It reads measured rows (`rows`, or `fio_output` for fio's JSON), fits at most four
factors (`factors`) to replication rows, judges all other rows before and after the fit, and writes a
parameter set (`parameter_file`) and a figure (`figure`).
"""

from pathlib import Path
from typing import Final

#: Published measurements of one cluster, in the input format of `stripesim calibrate`.
EXAMPLE: Final = Path(__file__).parent / "vitalif-4x6"
