"""`stripesim crush`: map inputs to OSDs as crushtool does, streaming any range in chunks."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from stripesim.cli.options import JsonOption

#: An input, and the OSDs that it maps to.
MappedInput = tuple[int, list[int]]

_CHUNK = 4096
_X_MIN = -(2**31)
_X_MAX = 2**32 - 1
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class CrushCommand(typer.core.TyperCommand):
    """Accept ``--weight`` with two words, as crushtool does, or with one (``OSD=WEIGHT``)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the two words of each weight before parsing."""
        joined: list[str] = []
        for word in args:
            if (
                joined[-2:-1] == ["--weight"]
                and re.fullmatch(r"[0-9]+", joined[-1])
                and _NUMBER.fullmatch(word)
            ):
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


def crush(
    map_file: Annotated[
        Path, typer.Argument(help="A CRUSH map as text, as `crushtool -d` prints it.")
    ],
    rule: Annotated[str, typer.Option("--rule", help="Id or name of a rule.")],
    num_rep: Annotated[
        int, typer.Option("--num-rep", help="Number of OSDs per input.")
    ],
    min_x: Annotated[int, typer.Option("--min-x", help="First input.")] = 0,
    max_x: Annotated[int, typer.Option("--max-x", help="Last input.")] = 1023,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            help="Reweight of one OSD, 0 to 1: 'OSD WEIGHT' or OSD=WEIGHT. Repeatable.",
        ),
    ] = None,
    json_to: JsonOption = None,
) -> None:
    """Map inputs to OSDs, as `crushtool --test --show-mappings` does."""
    from stripesim.cli.output import check_json, write_json

    check_json(json_to)
    number, mappings = _mappings(map_file, rule, num_rep, min_x, max_x, weights or [])
    if json_to is None:
        for x, osds in mappings:
            print(f"CRUSH rule {number} x {x} [{','.join(map(str, osds))}]")
        return
    from stripesim.models.documents import json_lines

    # The range may not fit in memory.
    write_json(json_to, json_lines({}, "mappings", mappings))


def _mappings(
    map_file: Path,
    rule: str,
    num_rep: int,
    min_x: int,
    max_x: int,
    weights: Sequence[str],
) -> tuple[int, Iterator[MappedInput]]:
    """Return the id of the rule and its mappings."""
    import numpy as np

    from stripesim.models.placement import load_map

    for option, x in (("--min-x", min_x), ("--max-x", max_x)):
        if not _X_MIN <= x <= _X_MAX:
            raise ValueError(
                f"{option}: got {x}, wanted a whole number from {_X_MIN} to {_X_MAX}"
            )
    if max_x < min_x:
        raise ValueError(f"--max-x: got {max_x}, wanted at least --min-x ({min_x})")
    crush_map = load_map(map_file)
    number = crush_map.rule(int(rule) if re.fullmatch(r"[0-9]{1,9}", rule) else rule).id
    reweights = dict(_weight(text) for text in weights) or None

    def chunk(start: int) -> Iterator[MappedInput]:
        xs = np.arange(start, min(start + _CHUNK, max_x + 1))
        return zip(
            xs.tolist(), crush_map.mappings(number, xs, num_rep, reweights), strict=True
        )

    starts = range(min_x, max_x + 1, _CHUNK)
    # Map the first chunk eagerly, so that bad options fail before any output.
    first = chunk(starts[0])
    return number, chain(first, chain.from_iterable(map(chunk, starts[1:])))


def _weight(text: str) -> tuple[int, float]:
    osd, _, weight = text.replace("=", " ").strip().partition(" ")
    if re.fullmatch(r"[0-9]{1,9}", osd) and _NUMBER.fullmatch(weight.strip()):
        return int(osd), float(weight)
    raise ValueError(
        f"--weight: got {text!r}, wanted an OSD and its weight, such as 3 0.5 or 3=0.5"
    )
