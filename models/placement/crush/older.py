"""What the bucket algorithms older than straw2 draw by, computed from weights as Ceph's builder does.

References
----------
S. Weil, S. Brandt, E. Miller, C. Maltzahn, SC 2006, section 3.4. Ceph v16.2.15, src/crush/builder.c
(crush_make_tree_bucket, crush_calc_straw), for numbering and rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

_WORD = 1 << 32


def tree_nodes(weights: Sequence[int]) -> list[int]:
    """Weights of a binary tree's nodes, numbered in order: leaf i is node 2i + 1, the root a power of two.

    Examples
    --------
    >>> tree_nodes([3, 4, 5])
    [0, 3, 7, 4, 12, 5, 5, 0]
    """
    if not weights:
        return []
    leaves = 1 << (len(weights) - 1).bit_length()
    nodes = [0] * (2 * leaves)
    nodes[1 : 2 * len(weights) : 2] = weights
    step = 1
    while step < leaves:
        for node in range(2 * step, 2 * leaves, 4 * step):
            nodes[node] = nodes[node - step] + nodes[node + step]
        step *= 2
    return nodes


def straw_lengths(weights: Sequence[int], version: int) -> list[int]:
    """Lengths of the straws (v1) of a bucket's items, 16.16 fixed point.

    Parameters
    ----------
    weights : sequence of int
        16.16 fixed point.
    version : int
        The tunable straw_calc_version.

    Notes
    -----
    A map does not carry the lengths in its text or JSON, only the weights: a bucket that was last changed
    under another version of the calculation keeps lengths that cannot be known.

    Examples
    --------
    >>> straw_lengths([65536, 131072, 0], 1)
    [65536, 98304, 0]
    """
    order = sorted(range(len(weights)), key=weights.__getitem__)
    lengths = [0] * len(weights)
    left = len(weights)
    straw = 1.0
    below = 0.0
    last = 0.0
    for place, item in enumerate(order):
        weight = weights[item]
        if weight == 0:
            if version >= 1:
                left -= 1
            continue
        lengths[item] = int(straw * 0x10000)
        if place + 1 == len(order):
            break
        following = weights[order[place + 1]]
        if version == 0 and following == weight:
            continue
        below += (weight - last) * left
        # Version 0 takes all items of the next weight off at once.
        left -= 1 if version >= 1 else sum(1 for other in weights if other == following)
        above = float(left * (following - weight) % _WORD)
        if left > 0:
            share_below = below / (below + above)
            straw *= (1.0 / share_below) ** (1.0 / left)
        last = weight
    return lengths
