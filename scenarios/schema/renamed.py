"""Old names of keys. Each is accepted for one release, with a warning that names the new one.

To retire an old name, delete its row of `_RENAMED`. Delete this module with the last row.
"""

import warnings
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from stripesim.scenarios.schema.problems import KeyProblem
from stripesim.scenarios.schema.toml import KeyPath, KeyPlaces, key_text


class _Renamed(NamedTuple):
    old: tuple[str, str]
    new: tuple[str, str]
    is_table: bool = False  #: The name is outdated only for a table


_RENAMED: Final = (
    # First, because it makes room for the new name of `cluster.ssd`.
    _Renamed(("cluster", "drive"), ("cluster", "drive_numbers"), is_table=True),
    _Renamed(("cluster", "ssd"), ("cluster", "drive")),
    _Renamed(("plan", "ssd"), ("plan", "drive")),
)


def current_path(path: KeyPath, value: Any, place: str) -> KeyPath:
    """Return the current path of a key from an override, and warn if the override used an old name."""
    for old, new, is_table in _RENAMED:
        below = path[len(old) :]
        if path[: len(old)] != old:
            continue
        if is_table and not below and not isinstance(value, Mapping):
            continue
        _warn(f"{place}: {key_text(old)}", new)
        return (*new, *below)
    return path


def rename_keys(
    values: dict[str, Any], lines: dict[KeyPath, int], places: KeyPlaces
) -> list[KeyProblem]:
    """Give the keys of a document their current names, in place, and warn about each old name.

    Parameters
    ----------
    values, lines
        The document, and the line of each of its key paths.
    places
        Locations of its keys, for the warnings.

    Returns
    -------
    list of Problem
        One for each key that the document gives under both names.
    """
    problems = []
    for old, new, is_table in _RENAMED:
        table = values.get(old[0])
        if not isinstance(table, dict) or old[1] not in table:
            continue
        if is_table and not isinstance(table[old[1]], Mapping):
            continue
        if new[1] in table:
            got = f"both {key_text(old)} and {key_text(new)}"
            wanted = f"{key_text(new)} alone: {key_text(old)} is its old name"
            problems.append(KeyProblem(old, got, wanted, (new,)))
            del table[old[1]]
            continue
        _warn(places.text(old), new)
        table[new[1]] = table.pop(old[1])
        for path in [path for path in lines if path[: len(old)] == old]:
            lines[(*new, *path[len(old) :])] = lines.pop(path)
    return problems


def _warn(where: str, new: KeyPath) -> None:
    warnings.warn(
        f"{where}: renamed to {key_text(new)}; the next release no longer accepts the old name",
        FutureWarning,
        stacklevel=3,
    )
