"""Generate the reference of the command line, and find the commands that pages show."""

from __future__ import annotations

import enum
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from generate.markdown import cell, code, table
from stripesim.cli.app import app

PROGRAM = "stripesim"

INTRODUCTION = """\
# Command line

Generated from the application. With `--json -`, a command prints one JSON document on standard output and
nothing else. With `--json FILE` it writes the document to a file and prints the tables as well. Progress and
warnings go to standard error.

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | some cells of a sweep failed, `cite --verify` found other values, or memory ran out |
| 2 | invalid input: a line for each problem, with the position, the value and the expected value |
| 3 | the audit refused numbers, which are withheld |
| 130 | stopped by Ctrl-C |
| 141 | the reader of standard output closed it |

With `STRIPESIM_DEBUG=1` in the environment an error includes its traceback.

"""


def group() -> Any:
    """Return the command line as a tree of commands."""
    return typer.main.get_command(app)


def commands(node: Any = None, path: str = PROGRAM) -> Iterator[tuple[str, Any]]:
    """Yield the path and the object of each command that is not a group."""
    node = group() if node is None else node
    children = getattr(node, "commands", None)
    if children is None:
        yield path, node
        return
    for name, child in children.items():
        yield from commands(child, f"{path} {name}")


_WORDS = {int: "whole number", float: "number", Path: "path", str: "text"}


def _value(parameter: Any) -> str:
    """Describe the value of an option, or return an empty string for a switch."""
    if getattr(parameter, "is_bool_flag", False):
        return ""
    kind = parameter.type_descriptor.annotation
    if getattr(kind, "__origin__", None) is list:
        kind = kind.__args__[0]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        word = ", ".join(code(choice.value) for choice in kind)
    else:
        word = _WORDS.get(kind, "text")
    return f"{word}; repeatable" if parameter.multiple else word


def _default(parameter: Any) -> str:
    value = parameter.default
    if getattr(parameter, "required", False):
        return "required"
    if value is None or value is False or callable(value):
        return ""
    if value is True:
        return "on"
    return code(value.value if isinstance(value, enum.Enum) else value)


def _options(command: Any) -> str:
    rows = []
    for parameter in command.params:
        if parameter.param_type_name != "option":
            continue
        names = ", ".join(
            code(name) for name in [*parameter.opts, *parameter.secondary_opts]
        )
        rows.append(
            (names, _value(parameter), _default(parameter), parameter.help or "")
        )
    return table(("option", "takes", "default", "meaning"), rows) if rows else ""


def _arguments(command: Any) -> list[Any]:
    return [
        parameter
        for parameter in command.params
        if parameter.param_type_name == "argument"
    ]


def _usage(path: str, command: Any) -> str:
    return " ".join(
        [
            path,
            *(str(argument.name).upper() for argument in _arguments(command)),
            "[OPTIONS]",
        ]
    )


def page() -> str:
    """Return the page of all commands."""
    parts = [INTRODUCTION]
    for path, command in commands():
        parts += [
            f"## {path}\n",
            f"{cell(command.help)}\n",
            f"```console\n{_usage(path, command)}\n```\n",
        ]
        arguments = [
            (code(str(argument.name).upper()), _value(argument), argument.help or "")
            for argument in _arguments(command)
        ]
        if arguments:
            parts.append(table(("argument", "takes", "meaning"), arguments))
        parts.append(_options(command))
    return "\n".join(parts)


_COMMAND = re.compile(r"^(?: {4})?(?:\$ )?(?:\.venv/bin/)?stripesim (.+)$")


def in_page(text: str) -> list[str]:
    """Find the commands that a page shows: lines of code blocks that begin with ``stripesim``.

    A backslash at the end of a line continues the command on the next line.

    Returns
    -------
    list of str
        Arguments of each command, without comments.
    """
    shown = []
    fence = ""
    for line in re.sub(r" *\\\n\s*", " ", text).splitlines():
        if line.startswith("```"):
            fence = "" if fence else line
            continue
        match = _COMMAND.match(line)
        if (
            match
            and (fence or line.startswith("    "))
            and not fence.startswith("```{")
        ):
            shown.append(re.sub(r"\s+#.*$", "", match[1]).strip())
    return shown


def parse(command: str) -> None:
    """Parse a command as the application would, without running it.

    Parameters
    ----------
    command : str
        Arguments of ``stripesim``.

    Raises
    ------
    Exception
        If the application does not know the command or an option.
    """
    # What follows is for the shell.
    words = shlex.split(command.partition(" > ")[0])
    node = group()
    path = PROGRAM
    while (children := getattr(node, "commands", None)) is not None and words:
        if words[0].startswith("-"):
            node.make_context(path, list(words), resilient_parsing=True)
            return
        if words[0] not in children:
            raise ValueError(f"{path}: no command {words[0]!r}")
        path = f"{path} {words[0]}"
        node, words = children[words[0]], words[1:]
    if words != ["--help"]:
        node.make_context(path, words)
