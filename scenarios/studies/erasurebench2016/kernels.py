"""Table II's codes on this machine: the kernels that pyeclib calls, at the source's block sizes.

``python -m stripesim.scenarios.studies.erasurebench2016.kernels FOLDER`` wrote the shipped ``measured.csv``
and ``measured.json`` (its provenance).
"""

import sys
from pathlib import Path
from typing import Any

from stripesim.calibration.kernels.measure import measure
from stripesim.scenarios.studies import kernels
from stripesim.scenarios.studies.erasurebench2016.source import STUDY

SIZES_BYTES = (4_000_000, 16_000_000, 64_000_000)
SCHEMES = {"rs:10,4": "RS", "lrc:10,6,5": "LRC"}


def rows(measure_now: bool) -> list[dict[str, Any]]:
    """Return the measured rows that ship, or this machine's, which needs pyeclib."""
    if measure_now:
        return measure(list(SCHEMES), list(SIZES_BYTES))
    return kernels.shipped(STUDY).to_dicts()


if __name__ == "__main__":
    provenance = kernels.provenance(STUDY, "kernels", now=True)
    kernels.write(Path(sys.argv[1]), STUDY, rows(measure_now=True), provenance)
