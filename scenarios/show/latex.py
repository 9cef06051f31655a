"""Hold the characters that LaTeX needs escaped, for citations and captions."""

from collections.abc import Mapping
from typing import Final

#: Characters with a meaning in LaTeX, and punctuation that it writes in ASCII.
LATEX_SIGNS: Final[Mapping[str, str]] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: "\\" + sign for sign in "&%$#_{}"},
    "–": "--",
    "’": "'",
    "“": "``",
    "”": "''",
    "×": r"$\times$",
}
