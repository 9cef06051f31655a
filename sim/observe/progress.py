"""Report progress of work: one signature for all commands."""

import sys
from typing import Protocol


class OnStep(Protocol):
    """Called after each step of some work."""

    def __call__(self, words: str, total: int | None = None) -> None:
        """Note that a step is done.

        Parameters
        ----------
        words
            A few words about the step.
        total
            Number of all steps, where it is known only now [count].
        """


def silent(words: str, total: int | None = None) -> None:
    """Ignore progress."""


def print_step(words: str, total: int | None = None) -> None:
    """Print a line about each step on standard error."""
    print(words, file=sys.stderr)
