"""What will a storage cluster do under replication, and what under erasure coding.

The public names are those of `stripesim.api`, reached from here as ``stripesim.run``: questions (`Scenario`,
`Pool`, `Cluster`), functions that answer them (`run`, `sweep`, `study`, `simulate`, `durability`, `explain`)
and their results. Lessons have `stripesim.teach`, programs with a system of their own `stripesim.blocks`.

`stripesim.api` loads when the first of its names is used, so that importing the package costs nothing;
``__init__.pyi`` lists the names for type checkers.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from stripesim._version import __version__

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    """Fetch a name of the public API at its first use."""
    # Python asks for submodules and special names here too: those must not load the API.
    if not name.startswith("_") and find_spec(f"stripesim.{name}") is None:
        api = import_module("stripesim.api")
        if name in api.__all__:
            return getattr(api, name)
    raise AttributeError(f"module 'stripesim' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names only."""
    return sorted((*import_module("stripesim.api").__all__, "__version__"))
