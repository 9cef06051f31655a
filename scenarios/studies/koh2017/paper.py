"""The runs behind each figure of Koh et al. 2017."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple


class Runs(NamedTuple):
    """The runs a figure was drawn from, one per scheme of `schemes` and block size.

    ``bound`` is the end of a run: ``steady`` (any sufficient length, the figure does not depend on it) or
    ``time`` (the same simulated duration for every cell, because the figure depends on it).
    """

    op: Literal["read", "write"]
    pattern: Literal["seq", "rand"]
    image: Literal["prefilled", "pristine"]
    bound: Literal["steady", "time"] = "steady"
    schemes: Sequence[str] = ("rep:3", "rs:6,3", "rs:10,4")


_SEQ_WRITES = Runs("write", "seq", "prefilled")
_SEQ_READS = Runs("read", "seq", "prefilled")
_RAND_READS = Runs("read", "rand", "prefilled")
_FIRST_WRITES = Runs("write", "rand", "pristine", "time")
_OVERWRITES = Runs("write", "rand", "prefilled")
_BARE = ("none",)
_CODES = ("rs:6,3", "rs:10,4")

FIGURES: dict[str, Runs] = {
    **dict.fromkeys(("5", "9a", "11a", "13"), _SEQ_WRITES),
    **dict.fromkeys(("6", "10a", "12a", "15a"), _SEQ_READS),
    **dict.fromkeys(("7", "9b", "11b", "14", "16b"), _FIRST_WRITES),
    **dict.fromkeys(("8", "10b", "12b", "15b", "17"), _RAND_READS),
    "16a": Runs("write", "seq", "pristine"),
    "18-bare-seq-read": _SEQ_READS._replace(schemes=_BARE),
    "18-bare-rand-read": _RAND_READS._replace(schemes=_BARE),
    "18-bare-seq-write": _SEQ_WRITES._replace(schemes=_BARE),
    "18-bare-rand-write": _OVERWRITES._replace(schemes=_BARE),
    "20-new-write": _FIRST_WRITES._replace(schemes=_CODES),
    "20-overwrite": _OVERWRITES._replace(schemes=_CODES),
}
"""Figure → runs. The README of this study gives the evidence for each image state."""

PAPER_FIGURES: Mapping[str, tuple[str, ...]] = {
    "1": ("5", "6", "8", "10b", "14", "15b", "16b"),
    **{number: (number,) for number in "5678"},
    **{number: (f"{number}a", f"{number}b") for number in ("9", "10", "11", "12")},
    "13": ("13",),
    "14": ("14",),
    "15": ("15a", "15b"),
    "16": ("16a", "16b"),
    "17": ("17",),
    "18": (
        "5",
        "6",
        "7",
        "8",
        *(f"18-bare-{p}-{op}" for op in ("read", "write") for p in ("seq", "rand")),
    ),
    "19": (),
    "20": ("20-overwrite", "20-new-write"),
}
"""A figure of the paper → its entries of `FIGURES`. 19 and 20 are also time series."""
