"""Check the types of arguments of Python functions, and name arguments in errors.

The command line checks types of options, Python does not check those of arguments. Errors of the simulator
cite options such as ``--set`` or ``--lost-shard``. A caller from Python wrote ``sets`` or ``lost_shard``.
"""

import difflib
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


def checking_arguments(
    function: Callable[P, R], *, name: str | None = None
) -> Callable[P, R]:
    """Return a function that refuses wrong arguments, and whose errors cite arguments, not options.

    Wrong are unknown, missing and repeated arguments and those of wrong types, as are texts and objects in a
    list. What a mapping contains is not checked, and neither is an argument that takes text or an object.

    Parameters
    ----------
    function
        The function.
    name
        Its public name. None: its own.
    """
    signature = inspect.signature(function)
    parameters = signature.parameters
    public_name = name or function.__name__

    @wraps(function)
    def citing(*args: Any, **keywords: Any) -> Any:
        try:
            bound = signature.bind(*args, **keywords).arguments
        except TypeError:
            problems = _call_problems(public_name, parameters, args, keywords)
            raise AnswerError(*problems) from None
        problems = list(_type_problems(function, parameters, bound))
        if problems:
            raise AnswerError(*problems)
        numbers = [_plain(value) for value in args]
        named = {key: _plain(value) for key, value in keywords.items()}
        try:
            return function(*numbers, **named)
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


def unknown_arguments(
    function: str, given: Collection[str], known: Collection[str]
) -> list[Problem]:
    """Return a problem for each argument of a function that it does not have, with the one that is meant."""
    problems = []
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        if _NAMES.get(name) in known:
            near = [_NAMES[name]]
        wanted = ", ".join(near or known) or "none"
        got = "an unknown argument"
        problems.append(Problem(place=function, key=name, got=got, wanted=wanted))
    return problems


def _call_problems(
    name: str,
    parameters: Mapping[str, inspect.Parameter],
    args: Sequence[Any],
    keywords: Collection[str],
) -> list[Problem]:
    """Return the problems of a call whose arguments do not fit: unknown, too many, repeated or missing."""
    kinds = {parameter.kind for parameter in parameters.values()}
    by_position = [
        key
        for key, parameter in parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    problems: list[Problem] = []
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        problems += unknown_arguments(name, keywords, parameters)
    if len(args) > len(by_position) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        got = f"{len(args)} arguments without a name"
        wanted = f"at most {len(by_position)}, and others as name=value"
        problems.append(Problem(place=name, got=got, wanted=wanted))
    placed = by_position[: len(args)]
    for key in placed:
        if key in keywords:
            problem = Problem(place=name, key=key, got="two values", wanted="one")
            problems.append(problem)
    for key, parameter in parameters.items():
        is_variadic = parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        )
        is_required = parameter.default is parameter.empty and not is_variadic
        if is_required and key not in placed and key not in keywords:
            wanted = "this argument, which has no default"
            problems.append(Problem(place=name, key=key, got="nothing", wanted=wanted))
    return problems


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
            yield from _wrong_type(name, part, types)
        if Sequence in types and _is_of(value, Sequence):
            of_parts = _types_in_list(parameter.annotation, function)
            # Functions check numbers and mappings with their ranges and keys.
            if _are_checked(of_parts) and not of_parts & {int, float, Mapping}:
                for index, part in enumerate(value):
                    yield from _wrong_type(f"{name}[{index}]", part, of_parts)


def _wrong_type(name: str, value: Any, types: set[Any]) -> Iterator[Problem]:
    """Yield a problem if no type accepts a value."""
    if not any(_is_of(value, kind) for kind in types):
        wanted = " or ".join(_words_of(types))
        yield Problem(key=name, got=short_repr(value), wanted=wanted)


def _types_of(annotation: Any, function: Callable[..., Any]) -> set[Any]:
    """Return the types that an annotation allows: classes, without what lists and mappings contain."""
    return {
        part if get_origin(part) is Literal else get_origin(part) or part
        for part in _parts_of(annotation, function)
    }


def _types_in_list(annotation: Any, function: Callable[..., Any]) -> set[Any]:
    """Return the types that an annotation allows in its list."""
    types: set[Any] = set()
    for part in _parts_of(annotation, function):
        if get_origin(part) is Sequence:
            types |= _types_of(get_args(part)[0], function)
    return types or {Any}


def _parts_of(annotation: Any, function: Callable[..., Any]) -> Sequence[Any]:
    """Return the parts of a union, or the annotation itself as the only one."""
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, function.__globals__)
        except NameError:
            # A name that type checkers alone import.
            return (Any,)
    if get_origin(annotation) in (Union, UnionType):
        return get_args(annotation)
    return (annotation,)


def _are_checked(types: set[Any]) -> bool:
    """Return True if all types are plain, or none is and all are classes."""
    are_plain = {kind in _ACCEPTED or get_origin(kind) is Literal for kind in types}
    if are_plain == {True}:
        return True
    if Any in types or are_plain != {False}:
        return False
    return all(isinstance(kind, type) for kind in types)


def _words_of(types: set[Any]) -> list[str]:
    """Describe the values that types accept, in the order of `_ACCEPTED`."""
    accepted = [text for kind, (_, text) in _ACCEPTED.items() if kind in types]
    for kind in sorted(types - _ACCEPTED.keys(), key=str):
        names = ", ".join(map(str, get_args(kind)))
        accepted.append(f"one of {names}" if names else f"a {kind.__name__}")
    return accepted


def _is_of(value: Any, kind: Any) -> bool:
    """Return True if a type accepts a value. Text is not a list. True and NaN are not numbers."""
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


def _plain(value: Any) -> Any:
    """Return a number of NumPy, as notebooks have it, as the number of Python that functions take."""
    return value.item() if isinstance(value, np.generic) else value


def _with_arguments(message: str, names: Collection[str]) -> str:
    """Replace options in a message, but not those of a command, by the arguments of those names."""

    def argument(option: re.Match[str]) -> str:
        if option[1] is None:
            return option[0]
        name = option[1].replace("-", "_")
        name = _NAMES.get(name, name)
        return name if name in names else option[0]

    return _OPTION.sub(argument, message)
