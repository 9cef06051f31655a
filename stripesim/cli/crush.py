"""What `stripesim crush` does between reading options and printing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stripesim.models.placement import CrushMap


def mappings(
    map_file: Path, rule: str, num_rep: int, xs: range, weights: Sequence[str]
) -> list[list[int | list[int]]]:
    """Map inputs through a rule.

    Parameters
    ----------
    map_file : Path
        CRUSH map as text.
    rule : str
        Id or name.
    num_rep : int
        OSDs wanted.
    xs : range
        Inputs.
    weights : sequence of str
        ``OSD=WEIGHT`` or ``OSD WEIGHT``.

    Returns
    -------
    list of [x, [osd, ...]]
        As crushtool prints it: short where firstn found too few, 2147483647 in an empty slot of indep.

    Raises
    ------
    ValueError
        If the map, the rule or a weight is wrong.
    """
    if not len(xs):
        raise ValueError(f"--max-x: got {xs.stop - 1}, wanted at least --min-x ({xs.start})")
    crush = CrushMap.load(map_file)
    chosen: int | str = int(rule) if rule.lstrip("-").isdigit() else rule
    reweights = dict(_weight(text) for text in weights)
    rows = crush.mappings(chosen, np.arange(xs.start, xs.stop), num_rep, reweights or None)
    return [[x, row] for x, row in zip(xs, rows, strict=True)]


def print_mappings(map_file: Path, rule: str, told: list[list[int | list[int]]]) -> None:
    """Print mappings in crushtool's form."""
    number = CrushMap.load(map_file).rule(int(rule) if rule.isdigit() else rule).id
    for x, osds in told:
        assert isinstance(osds, list)
        print(f"CRUSH rule {number} x {x} [{','.join(map(str, osds))}]")


def _weight(text: str) -> tuple[int, float]:
    osd, _, weight = text.replace("=", " ").strip().partition(" ")
    try:
        return int(osd), float(weight)
    except ValueError:
        raise ValueError(f"--weight: got {text!r}, wanted OSD=WEIGHT, such as 3=0.5") from None
