"""Messages to users about compiled code: one warning per process, and errors of calls."""

import logging

_log = logging.getLogger("stripesim")
_warned: set[str] = set()


def warn(line: str) -> None:
    """Warn once per process, because every compiled function uses the same disk."""
    if not _warned:
        _log.warning("warning: %s", line)
    _warned.add(line)


def not_linked(name: str, caller: str) -> TypeError:
    """Return the error of a call of an inner function from code that is not linked with it."""
    return TypeError(
        f"{name}: got a call from {caller}, wanted one from a function that "
        "`stripesim.models.jit.compiled` compiles, or from another inner function"
    )
