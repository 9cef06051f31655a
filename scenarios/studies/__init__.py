"""One folder per published source: its claims, the runs they need, and the verdicts."""

from importlib import import_module
from typing import Any


def study_module(study: str, name: str) -> Any:
    """Import a module of a study's folder, when it is needed: drawing and engines are large."""
    return import_module(f"{__name__}.{study}.{name}")
