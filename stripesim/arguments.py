"""Check the types of arguments of Python functions, and name arguments in errors.

The command line checks types of options, Python does not check those of arguments. Errors of the simulator
cite options such as ``--set`` or ``--lost-shard``. A caller from Python wrote ``sets`` or ``lost_shard``.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial, wraps
from math import isnan
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from reprlib import repr as short_repr
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import numpy as np

from stripesim.models.problems import AnswerError, Problem, ProblemsError

P = ParamSpec("P")
R = TypeVar("R")

#: A whole command, whose options stay, or an option.
_OPTION: Final = re.compile(r"`stripesim [^`]*`|--([a-z][a-z0-9-]*)")
#: Options whose argument has another name than the option.
_NAMES: Final = {
    "set": "sets",
    "scheme": "schemes",
    "size": "size_bytes",
    "offset": "offset_bytes",
    "stripe_unit": "stripe_unit_bytes",
    "p99": "p99_bounds_s",
    "pool": "pools",
    "figure": "figures",
    "width": "width_inch",
}

#: Plain types, with the values that they accept, and their words.
_ACCEPTED: Final[dict[Any, tuple[tuple[type, ...], str]]] = {
    bool: ((bool, np.bool_), "True or False"),
    int: ((Integral,), "a whole number"),
    float: ((Real,), "a number"),
    str: ((str,), "text"),
    Path: ((PathLike,), "a path"),
    Sequence: ((Sequence, np.ndarray), "a list"),
    Mapping: ((Mapping,), "a mapping"),
    NoneType: ((NoneType,), "None"),
}


def checking_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that refuses arguments of wrong types, and whose errors cite arguments, not options.

    What a list or a mapping contains is not checked, and neither is an argument that takes text or an object.
    """
    signature = inspect.signature(function)
    parameters = signature.parameters

    @wraps(function)
    def citing(*args: Any, **keywords: Any) -> Any:
        given = signature.bind(*args, **keywords).arguments
        problems = list(_type_problems(function, parameters, given))
        if problems:
            raise AnswerError(*problems)
        try:
            return function(*args, **keywords)
        except ValueError as error:
            rename = partial(_with_arguments, names={*parameters, *keywords})
            if isinstance(error, ProblemsError):
                error.rewrite(rename)
            else:
                error.args = tuple(
                    rename(part) if isinstance(part, str) else part
                    for part in error.args
                )
            raise

    return citing


def _type_problems(
    function: Callable[..., Any],
    parameters: Mapping[str, inspect.Parameter],
    given: Mapping[str, Any],
) -> Iterator[Problem]:
    """Yield a problem for each argument of a wrong type."""
    for name, value in given.items():
        parameter = parameters[name]
        types = _types_of(parameter.annotation, function)
        if parameter.kind is parameter.VAR_KEYWORD or not _are_checked(types):
            continue
        is_variadic = parameter.kind is parameter.VAR_POSITIONAL
        for part in value if is_variadic else [value]:
            if not any(_is_of(part, kind) for kind in types):
                wanted = " or ".join(_words_of(types))
                yield Problem(key=name, got=short_repr(part), wanted=wanted)


def _types_of(annotation: Any, function: Callable[..., Any]) -> set[Any]:
    """Return the types that an annotation allows: classes, without what lists and mappings contain."""
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, function.__globals__)
        except NameError:
            # A name that type checkers alone import.
            return {Any}
    parts: Sequence[Any] = (annotation,)
    if get_origin(annotation) in (Union, UnionType):
        parts = get_args(annotation)
    return {
        part if get_origin(part) is Literal else get_origin(part) or part
        for part in parts
    }


def _are_checked(types: set[Any]) -> bool:
    """Return True if all types are plain, or none is and all are classes."""
    are_plain = {kind in _ACCEPTED or get_origin(kind) is Literal for kind in types}
    if are_plain == {True}:
        return True
    if Any in types or are_plain != {False}:
        return False
    return all(isinstance(kind, type) for kind in types)


def _words_of(types: set[Any]) -> list[str]:
    """Say what types accept, in the order of `_ACCEPTED`."""
    words = [text for kind, (_, text) in _ACCEPTED.items() if kind in types]
    for kind in sorted(types - _ACCEPTED.keys(), key=str):
        names = ", ".join(map(str, get_args(kind)))
        words.append(f"one of {names}" if names else f"a {kind.__name__}")
    return words


def _is_of(value: Any, kind: Any) -> bool:
    """Return True if a type accepts a value. Text is no list, True is no number, and neither is NaN."""
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    accepted, _ = _ACCEPTED.get(kind, ((kind,), ""))
    if not isinstance(value, accepted):
        return False
    if kind in (int, float) and isinstance(value, bool):
        return False
    if kind is Sequence:
        return not isinstance(value, str | bytes)
    if kind is float:
        return isinstance(value, Integral) or not isnan(cast(float, value))
    return True


def _with_arguments(message: str, names: Collection[str]) -> str:
    """Replace options in a message, but not those of a command, by the arguments of those names."""

    def argument(option: re.Match[str]) -> str:
        if option[1] is None:
            return option[0]
        name = option[1].replace("-", "_")
        name = _NAMES.get(name, name)
        return name if name in names else option[0]

    return _OPTION.sub(argument, message)
