"""Scheme texts such as ``rs:6,3`` to schemes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from stripesim.models.coding.clay import Clay
from stripesim.models.coding.errors import SchemeError
from stripesim.models.coding.lrc import LRC
from stripesim.models.coding.lrc_ceph import ceph_lrc
from stripesim.models.coding.protocol import RedundancyScheme
from stripesim.models.coding.reed_solomon import ReedSolomon
from stripesim.models.coding.replication import Replication
from stripesim.models.coding.shec import Shec

_NUMBERS = re.compile(r"[0-9]{1,6}(,[0-9]{1,6})*")


@dataclass(frozen=True)
class _Family:
    form: str
    arity: int
    build: Callable[..., RedundancyScheme]


# A new family is one more row here.
_FAMILIES: dict[str, _Family] = {
    "rep": _Family("rep:N", 1, lambda copies: Replication(copies=copies)),
    "rs": _Family("rs:k,m", 2, lambda k, m: ReedSolomon(k=k, m=m)),
    "lrc": _Family("lrc:k,m,l", 3, lambda k, m, locality: LRC(k=k, m=m, locality=locality)),
    "lrc-ceph": _Family("lrc-ceph:k,m,l", 3, ceph_lrc),
    "shec": _Family("shec:k,m,c", 3, lambda k, m, c: Shec(k=k, m=m, c=c)),
    "clay": _Family("clay:k,m,d", 3, lambda k, m, d: Clay(k=k, m=m, d=d)),
}


def parse_scheme(text: str) -> RedundancyScheme:
    """Read a scheme as scenarios and the command line write it.

    Parameters
    ----------
    text : str
        ``rep:N``, ``rs:k,m``, ``lrc:k,m,l`` (m counts all parities), ``lrc-ceph:k,m,l`` (Ceph's numbers),
        ``shec:k,m,c``, ``clay:k,m,d`` or ``none`` (one bare copy). Blanks around it are ignored.

    Returns
    -------
    RedundancyScheme
        The scheme; its ``name`` is the text in canonical form.

    Raises
    ------
    SchemeError
        If the family is unknown, or its numbers are missing, superfluous or out of range.

    Examples
    --------
    >>> parse_scheme("rs:6,3").failures_tolerated
    3
    >>> parse_scheme("lrc:10,6,5").width, parse_scheme("clay:9,3,11").width
    (16, 12)
    >>> parse_scheme("rs:6")
    Traceback (most recent call last):
    ...
    stripesim.models.coding.errors.SchemeError: scheme: got 'rs:6', wanted the form rs:k,m
    """
    stripped = text.strip()
    if stripped == "none":
        return Replication(copies=1, bare=True)
    family_name, colon, numbers = stripped.partition(":")
    family = _FAMILIES.get(family_name)
    if family is None or not colon:
        forms = ", ".join(f.form for f in _FAMILIES.values())
        raise SchemeError(f"scheme: got {text!r}, wanted one of {forms}, none")
    if not _NUMBERS.fullmatch(numbers) or numbers.count(",") + 1 != family.arity:
        raise SchemeError(f"scheme: got {text!r}, wanted the form {family.form}")
    try:
        return family.build(*(int(number) for number in numbers.split(",")))
    except SchemeError as error:
        raise SchemeError(f"scheme: got {text!r}: {error}") from None
