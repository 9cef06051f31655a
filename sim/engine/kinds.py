"""Names and kinds of many resources, stored as numbers and written out on request.

A cluster of 100,000 OSDs has millions of resources. A text for each would take most of the memory of a run.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, overload

import numpy as np
import numpy.typing as npt


class Kinds(Sequence[str]):
    """The kind of each resource, such as ``ssd``.

    Parameters
    ----------
    names
        The distinct kinds, in order of first occurrence.
    indices
        Index into `names` of the kind of each resource, shape (resources,).

    Examples
    --------
    >>> kinds = Kinds.of(["cpu", "ssd", "cpu"])
    >>> kinds.names, kinds.indices.tolist(), kinds[2]
    (('cpu', 'ssd'), [0, 1, 0], 'cpu')
    """

    def __init__(self, names: tuple[str, ...], indices: npt.NDArray[np.int16]) -> None:
        self.names = names
        self.indices = indices

    @classmethod
    def of(cls, kinds: Sequence[str]) -> "Kinds":
        """Number the kinds of resources.

        Parameters
        ----------
        kinds
            Kind of each resource.
        """
        if isinstance(kinds, Kinds):
            return kinds
        number_of: dict[str, int] = {}
        indices = [number_of.setdefault(kind, len(number_of)) for kind in kinds]
        return cls(tuple(number_of), np.array(indices, dtype=np.int16))

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> "Kinds": ...

    def __getitem__(self, index: int | slice) -> "str | Kinds":
        if isinstance(index, slice):
            return Kinds(self.names, self.indices[index])
        return self.names[int(self.indices[index])]

    def __array__(self, *args: Any, **options: Any) -> npt.NDArray[np.str_]:
        return np.array(self.names)[self.indices]

    def are(self, *kinds: str) -> npt.NDArray[np.bool_]:
        """Return True for each resource of one of these kinds, shape (resources,)."""
        of_kind = np.array([name in kinds for name in self.names], dtype=bool)
        return of_kind[self.indices]

    def values(
        self,
        by_kind: Mapping[str, int],
        otherwise: int,
        dtype: npt.DTypeLike = np.int64,
    ) -> npt.NDArray[Any]:
        """Return the value of each resource's kind, shape (resources,).

        Parameters
        ----------
        by_kind
            Value of some kinds.
        otherwise
            Value of all other kinds.
        dtype
            Type of the values.
        """
        of_kind = [by_kind.get(name, otherwise) for name in self.names]
        return np.array(of_kind, dtype=dtype)[self.indices]


@dataclass(frozen=True)
class Members:
    """Equal members of a cluster, each with the same resources, such as its OSDs.

    Attributes
    ----------
    count
        Number of members.
    prefix
        Start of the names of a member's resources, a format with its number, such as ``osd.{}.``.
    kinds
        Kind of each resource of a member.
    labels
        End of the name of each resource of a member.
    """

    count: int
    prefix: str
    kinds: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of resources of all members."""
        return self.count * len(self.kinds)


class Names(Sequence[str]):
    """The name of each resource of a cluster.

    Parameters
    ----------
    members
        The members, whose resources follow one another: all of the first member, then all of the next.

    Examples
    --------
    >>> osds = Members(2, "osd.{}.", ("ssd", "kv"), ("ssd", "kv"))
    >>> list(Names([osds]))
    ['osd.0.ssd', 'osd.0.kv', 'osd.1.ssd', 'osd.1.kv']
    """

    def __init__(self, members: Sequence[Members]) -> None:
        self._members = members
        self._stops = list(accumulate(part.size for part in members))

    def __len__(self) -> int:
        return self._stops[-1] if self._stops else 0

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        number = range(len(self))[index]
        part = bisect_right(self._stops, number)
        members = self._members[part]
        from_start = number - self._stops[part] + members.size
        member, resource = divmod(from_start, len(members.kinds))
        return members.prefix.format(member) + members.labels[resource]


def kinds_of(members: Sequence[Members]) -> Kinds:
    """Return the kinds of the resources of members.

    Parameters
    ----------
    members
        The members, in the order of their resources.
    """
    present = [part for part in members if part.count]
    names = tuple(dict.fromkeys(kind for part in present for kind in part.kinds))
    tiles = [
        np.tile(
            np.array([names.index(kind) for kind in part.kinds], dtype=np.int16),
            part.count,
        )
        for part in present
    ]
    return Kinds(names, np.concatenate([np.zeros(0, dtype=np.int16), *tiles]))
