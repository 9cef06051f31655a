"""Simulate replicated and erasure-coded storage clusters.

Every public name of `stripesim.api` is available here, for example as ``stripesim.run``: scenario types
(`Scenario`, `Pool`, `Cluster`), functions that answer questions (`run`, `sweep`, `study`, `simulate`,
`durability`, `explain`) and their results. Lessons also use `stripesim.teach`. Programs that simulate their
own system use `stripesim.blocks`.

`stripesim.api` loads on first use, so importing the package is cheap. ``__init__.pyi`` lists the names for
type checkers. To find your way around the code, start with ``docs/architecture.md``.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from stripesim._version import __version__ as __version__


def __getattr__(name: str) -> Any:
    """Load the public API when one of its names is first used."""
    if name == "__all__":
        # For help() and imports of *, which do not ask for the names one by one.
        return __dir__()
    # Python also looks up submodules and special names here. Those must not load the API.
    if not name.startswith("_") and find_spec(f"stripesim.{name}") is None:
        api = import_module("stripesim.api")
        if name in api.__all__:
            return getattr(api, name)
    raise AttributeError(f"module 'stripesim' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted((*import_module("stripesim.api").__all__, "__version__"))
