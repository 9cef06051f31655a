"""Coverage-guided fuzzing of every trace reader: no input may end in anything but a trace or a TraceError.

Run it with `python fuzz/fuzz_traces.py -max_total_time=60 FOLDER` (libFuzzer's options; FOLDER holds seeds,
which `fuzz/seeds.py` writes). The first byte of an input chooses the format, or none, so that telling formats
apart is fuzzed too. Needs the atheris package, which is an optional extra.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

# Numba cannot compile what atheris has put its counters into.
_COMPILED = ["stripesim.traces.locality", "stripesim.traces.formats.blktrace"]

with atheris.instrument_imports(include=["stripesim.traces"], exclude=_COMPILED):
    from stripesim.models.problems import TraceError
    from stripesim.traces import FAILURE_FORMATS, FORMATS, describe, load

NAMES = [
    None,
    *(form.name for form in FORMATS),
    *(form.name for form in FAILURE_FORMATS),
]
FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-traces-"))


def one_input(data: bytes) -> None:
    """Read one input as the format that its first byte chooses, plainly and strictly."""
    if not data:
        return
    path = FOLDER / "input"
    path.write_bytes(data[1:])
    name = NAMES[data[0] % len(NAMES)]
    try:
        trace = load(path, format=name)
    except TraceError as error:
        for line in str(error).split("\n"):
            if not line.startswith("…") and ("got" not in line or "wanted" not in line):
                raise AssertionError(
                    f"a message without got and wanted: {line}"
                ) from error
        return
    summary = describe(trace)
    if trace.faults.count:
        try:
            load(path, format=name, strict=True)
        except TraceError:
            return
        raise AssertionError(f"strict reading passed over {summary['faults']} faults")


def main() -> None:
    """Fuzz until libFuzzer's options say stop."""
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
