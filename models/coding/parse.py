"""Parse scheme names such as ``rs:6,3``."""

import re
from collections.abc import Callable
from functools import partial

from stripesim.models.coding.clay import Clay
from stripesim.models.coding.lrc import LRC, ceph_lrc
from stripesim.models.coding.own_files import build_own_code, own_family, own_forms
from stripesim.models.coding.protocol import RedundancyScheme
from stripesim.models.coding.reed_solomon import ReedSolomon
from stripesim.models.coding.replication import Replication
from stripesim.models.coding.shec import Shec
from stripesim.models.problems import OwnCodeError, Problem, SchemeError

_NUMBERS = re.compile(r"[0-9]{1,6}(,[0-9]{1,6})*")


# Form and constructor of each family. A new family is one more row.
_FAMILIES: dict[str, tuple[str, Callable[..., RedundancyScheme]]] = {
    "rep": ("rep:N", Replication),
    "rs": ("rs:k,m", ReedSolomon),
    "lrc": ("lrc:k,m,l", LRC),
    "lrc-ceph": ("lrc-ceph:k,m,l", ceph_lrc),
    "shec": ("shec:k,m,c", Shec),
    "clay": ("clay:k,m,d", Clay),
}


def parse_scheme(text: str) -> RedundancyScheme:
    """Parse a scheme as written in scenarios and on the command line.

    Parameters
    ----------
    text
        ``rep:N``, ``rs:k,m``, ``lrc:k,m,l`` (m counts all parities), ``lrc-ceph:k,m,l`` (Ceph's numbers),
        ``shec:k,m,c``, ``clay:k,m,d``, ``none`` (one bare copy), or the form of a user's own code
        (`stripesim.models.coding.own_files`). Surrounding blanks are ignored.

    Returns
    -------
    RedundancyScheme
        The scheme. Its ``name`` is the text in canonical form.

    Raises
    ------
    SchemeError
        If the family is unknown, or the numbers are missing, superfluous or out of range.

    Examples
    --------
    >>> parse_scheme("rs:6,3").failures_tolerated
    3
    >>> parse_scheme("lrc:10,6,5").width, parse_scheme("clay:9,3,11").width
    (16, 12)
    >>> parse_scheme("rs:6")
    Traceback (most recent call last):
    ...
    stripesim.models.problems.SchemeError: scheme: got 'rs:6', wanted the form rs:k,m
    """
    stripped = text.strip()
    if stripped == "none":
        return Replication(copies=1, bare=True)
    family, colon, numbers = stripped.partition(":")
    form, build = _family(family if colon else "", text)
    if not _NUMBERS.fullmatch(numbers) or numbers.count(",") != form.count(","):
        raise SchemeError(
            Problem(key="scheme", got=repr(text), wanted=f"the form {form}")
        )
    try:
        return build(*(int(number) for number in numbers.split(",")))
    except OwnCodeError:
        # Its message names the author's file.
        raise
    except SchemeError as error:
        problem = error.problems[0]
        number = problem.place.rpartition(": ")[2]
        detail = f"got {text!r}: {number}: {problem.said}"
        wanted = f"{number} of {problem.wanted}"
        raise SchemeError(Problem(key="scheme", detail=detail, wanted=wanted)) from None


def is_scheme(text: str) -> bool:
    """Return True if `parse_scheme` accepts a text."""
    try:
        parse_scheme(text)
    except SchemeError:
        return False
    return True


def _family(name: str, text: str) -> tuple[str, Callable[..., RedundancyScheme]]:
    """Return the form and the constructor of a family."""
    if name in _FAMILIES:
        return _FAMILIES[name]
    own = own_family(name) if name else None
    if own is None:
        forms = ", ".join([*(form for form, _ in _FAMILIES.values()), *own_forms()])
        raise SchemeError(
            Problem(key="scheme", got=repr(text), wanted=f"one of {forms}, none")
        )
    return own.form, partial(build_own_code, own)
