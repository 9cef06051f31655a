"""Calibrate a cluster from a few of its own measurements: `stripesim calibrate`.

Start with `calibrate`: it reads measured rows (`rows`, or `fio_output` for fio's JSON), fits at most four
factors (`factors`) on rows of replication, judges all others before and after, and writes a parameter set
(`parameter_file`) and a figure (`figure`).
"""

from pathlib import Path
from typing import Final

#: Published measurements of one cluster, in the form that `stripesim calibrate` reads.
EXAMPLE: Final = Path(__file__).parent / "vitalif-4x6"
