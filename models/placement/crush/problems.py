"""Share code between the readers of CRUSH maps: problem reports, limits and cycle detection."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from stripesim.models.placement.crush.elements import Alg, Bucket, BucketArgs
from stripesim.models.problems import Problem, ProblemsError

# Ids index arrays, so a stray digit must not allocate gigabytes.
ID_MAX = 1_000_000
# The product of several counts of a choose step must fit into a word.
COUNT_MAX = 4096
VALUE_MAX = 2**31 - 1
# The shift of vary_r must stay within a word.
TUNABLE_MAX = {"chooseleaf_vary_r": 32}
_POSITIONS_MAX = 255

Node = TypeVar("Node", int, str)


class Problems:
    """Collect problems with their locations: a line of a text, from 1, or a key of a document."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[tuple[int, Problem]] = []

    def add(self, place: int | str, got: object, wanted: str) -> None:
        """Record a problem. `got` is None if the value is missing."""
        line = 0
        location = f" {place}"
        if isinstance(place, int):
            line = place
            location = str(place)
        value = "nothing" if got is None else str(got)[:120]
        problem = Problem(place=f"{self.source}:{location}", got=value, wanted=wanted)
        self.found.append((line, problem))

    def finish(self) -> None:
        """Raise the recorded problems, ordered by line."""
        if self.found:
            by_line = sorted(self.found, key=lambda located: located[0])
            raise ProblemsError(*dict.fromkeys(problem for _, problem in by_line))


class JsonReader(Problems):
    """Read values from a JSON document, recording problems with their keys instead of stopping."""

    def whole(
        self, entry: Mapping[str, Any], key: str, names: str, least: int, most: int
    ) -> int:
        """Return the whole number under the first of several names, separated by ``|``, that is present."""
        name = next(
            (name for name in names.split("|") if name in entry),
            names.partition("|")[0],
        )
        value = entry.get(name)
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and least <= value <= most
        ):
            return value
        self.add(
            f"{key}.{name}", shown(value), f"a whole number from {least} to {most}"
        )
        return least

    def rows(
        self, entry: Mapping[str, Any], key: str, name: str
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the objects of a list with their keys."""
        value = entry.get(name)
        if not isinstance(value, list):
            self.add(f"{key}.{name}", shown(value), "a list")
            return
        for number, row in enumerate(value):
            if isinstance(row, dict):
                yield f"{key}.{name}.{number}", row
            else:
                self.add(f"{key}.{name}.{number}", repr(row), "an object")


def shown(value: object) -> str | None:
    """Format a value for a message."""
    if value is None:
        return None
    return repr(value)[:80]


def depth_first(
    start: Node, below: Mapping[Node, Sequence[Node]], finished: dict[Node, None]
) -> list[tuple[Node, Node]]:
    """Visit all buckets under a start, each once and after its items. Return the edges that lead back."""
    back = []
    path = [(start, iter(below[start]))] if start not in finished else []
    on_path = {start}
    while path:
        bucket_id, rest = path[-1]
        for item in rest:
            if item in on_path:
                back.append((bucket_id, item))
            elif item in below and item not in finished:
                on_path.add(item)
                path.append((item, iter(below[item])))
                break
        else:
            finished[bucket_id] = None
            on_path.discard(bucket_id)
            path.pop()
    return back


def misfit(change: BucketArgs, bucket: Bucket) -> tuple[str, str] | None:
    """Return the reason why choose_args do not fit a bucket, as (got, wanted), or None."""
    size = len(bucket.items)
    for numbers in (*change.weight_sets, *((change.ids,) if change.ids else ())):
        if len(numbers) != size:
            return (
                f"{len(numbers)} numbers for bucket {bucket.name!r}",
                f"{size}, one for each of its items",
            )
    if bucket.alg is not Alg.STRAW2:
        return (
            f"choose_args for bucket {bucket.name!r} of alg {bucket.alg.name.lower()}",
            "a straw2 bucket",
        )
    if len(change.weight_sets) > _POSITIONS_MAX:
        return f"{len(change.weight_sets)} positions", f"at most {_POSITIONS_MAX}"
    return None
