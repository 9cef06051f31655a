"""Operate on byte sets stored as sorted runs (start, stop): union, difference, intersection, alignment."""

from collections.abc import Iterable

ByteRun = tuple[int, int]
ByteRuns = tuple[ByteRun, ...]


def union(runs: Iterable[ByteRun]) -> ByteRuns:
    """Return the union of runs, merging those that touch.

    >>> union([(8, 12), (0, 4), (4, 6)])
    ((0, 6), (8, 12))
    """
    merged: list[ByteRun] = []
    for start, stop in sorted(runs):
        if start >= stop:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    return tuple(merged)


def subtract(runs: ByteRuns, others: ByteRuns) -> ByteRuns:
    """Return the bytes of `runs` that are not in `others`.

    >>> subtract(((0, 10),), ((2, 4), (8, 20)))
    ((0, 2), (4, 8))
    """
    left: list[ByteRun] = []
    for start, stop in runs:
        position = start
        for low, high in others:
            if high <= position or low >= stop:
                continue
            left.append((position, low))
            position = high
        left.append((position, stop))
    return union(left)


def intersect(runs: ByteRuns, others: ByteRuns) -> ByteRuns:
    """Return the intersection.

    >>> intersect(((0, 10),), ((2, 4), (8, 20)))
    ((2, 4), (8, 10))
    """
    return union((max(a, c), min(b, d)) for a, b in runs for c, d in others)


def align(runs: Iterable[ByteRun], unit: int) -> ByteRuns:
    """Widen each run to whole multiples of `unit`.

    >>> align([(5, 9)], 4)
    ((4, 12),)
    """
    return union(
        (start // unit * unit, -(-stop // unit) * unit) for start, stop in runs
    )


def length(runs: ByteRuns) -> int:
    """Return the number of bytes in all runs."""
    return sum(stop - start for start, stop in runs)
