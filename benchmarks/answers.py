"""Write the output of every command, on small inputs, to one folder.

Run it before and after a change that should not change a word, and compare the folders::

    python benchmarks/answers.py before
    python benchmarks/answers.py after
    diff -r before after

Times and durations of computing are left out, because they differ from run to run.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.commands import QUESTIONS, Question, questions  # noqa: E402

#: Fields whose values differ from run to run, as they stand in JSON, CSV and pages.
_CHANGING = (
    (re.compile(rb'("(?:engine_)?wall_s": )[0-9.e+-]+'), rb"\1"),
    (re.compile(rb'((?:"|&#34;)time(?:"|&#34;): (?:"|&#34;))[^"&]*'), rb"\1"),
    (re.compile(rb"\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC"), b""),
    (re.compile(rb'("host(?:name)?": ")[^"]*'), rb"\1"),
)
#: Formats whose bytes hold times of computing, or depend on the drawing library alone.
_BINARY = (".parquet", ".png")


def plain(content: bytes, folder: Path) -> bytes:
    """Remove the values that differ from run to run."""
    content = content.replace(os.fsencode(folder), b"FOLDER")
    for pattern, replacement in _CHANGING:
        content = pattern.sub(replacement, content)
    return content


def without_times(table: bytes) -> bytes:
    """Leave out the columns of a CSV file that hold durations of computing."""
    rows = list(csv.reader(table.decode().splitlines()))
    kept = [index for index, name in enumerate(rows[0]) if not name.endswith("wall_s")]
    lines = [",".join(row[index] for index in kept) for row in rows]
    return "\n".join(lines).encode()


def answer(question: Question, folder: Path, out: Path) -> None:
    """Run a question as text with its files, and as JSON."""
    out.mkdir(parents=True)
    written = folder / "out"
    words = [*question.words]
    if question.has_out:
        words += ["--out", str(written)]
    if question.has_report:
        words.append("--report")
    for name, more in (("text", []), ("json", ["--json", "-"])):
        done = subprocess.run(
            [sys.executable, "-m", "stripesim", *words, *more],
            capture_output=True,
            check=False,
        )
        printed = plain(done.stdout + b"\n--- stderr\n" + done.stderr, folder)
        (out / f"{name}.txt").write_bytes(printed + f"\n{done.returncode}\n".encode())
    for path in sorted(written.glob("*")):
        if path.is_file() and path.suffix not in _BINARY:
            content = plain(path.read_bytes(), folder)
            if path.suffix == ".csv":
                content = without_times(content)
            (out / path.name).write_bytes(content)


def main() -> None:
    """Ask every question."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder to write, which must not exist")
    parser.add_argument("--only", nargs="+", help="some questions instead of all")
    options = parser.parse_args()
    # No run finds files of another.
    for name in options.only or QUESTIONS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            answer(questions(folder)[name], folder, options.out / name)
            print(name, flush=True)


if __name__ == "__main__":
    main()
