"""The README's table of errors, generated from the recorded ledgers."""

from __future__ import annotations

import re
from pathlib import Path

from generate import trust

README = Path(__file__).resolve().parents[2] / "README.md"
_BEGIN = "<!-- trust: written by python docs/record.py readme -->\n"
_END = "<!-- end -->"
_TRUST = re.compile(f"{re.escape(_BEGIN)}.*?{_END}", flags=re.DOTALL)


def rewritten(text: str) -> str:
    """Replace the table of errors in the README's text.

    Raises
    ------
    ValueError
        If the text does not hold exactly one such table.
    """
    table = f"{_BEGIN}\n{trust.in_short()}{_END}"
    text, count = _TRUST.subn(lambda _: table, text)
    if count != 1:
        raise ValueError(f"README.md: got {count} of {_BEGIN.strip()}, wanted 1")
    return text
