"""Generate the reference of scenario keys from the schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from generate.markdown import code, table
from stripesim import format_size
from stripesim.blocks import scenario_schema

INTRODUCTION = """\
# Scenario keys

Generated from the schema of version {version}. A scenario is a TOML file. Only `schemes` and a bound
(`workload.requests` or `workload.duration_s`) have no default. The same schema ships as
`scenarios/schema.json`. With `#:schema` and its path in the first line, editors complete keys and mark
mistakes. An invalid scenario ends with exit status 2 and one line per problem: `file:line: key: got …,
wanted …`.

`--set KEY=VALUE` sets any of these keys from the command line (`--set cluster.hosts=12`), and `stripesim
sweep --over KEY=V,V,…` tries several values. Sizes are whole numbers of bytes or text such as `4k`, `4MiB`,
`1GB`. The units k, Mi and Gi are powers of 1024, and kB, MB and GB are powers of 1000.

A file may have 1 MiB, 100,000 lines, 20,000 keys and values, and 20 parts in a key. A run that does not fit
in the remaining memory (of the machine, of `ulimit -v` and `ulimit -d`, of its cgroups) is refused before it
starts, with the key that needs most and the value that fits. Estimates are for the compiled engine.

"""


@cache
def _root() -> dict[str, Any]:
    """Return the schema of a scenario, which takes a third of a second to generate."""
    return scenario_schema()


def _resolved(
    schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> dict[str, Any]:
    """Resolve a reference. Keys next to it (default, description) take precedence."""
    if "$ref" not in schema:
        return dict(schema)
    return {
        **definitions[schema["$ref"].rpartition("/")[2]],
        **{k: v for k, v in schema.items() if k != "$ref"},
    }


def _table_of(
    schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the schema of a key's table, or None."""
    for option in [schema, *schema.get("anyOf", [])]:
        resolved = _resolved(option, definitions)
        if "properties" in resolved:
            return resolved
    return None


def all_keys(
    node: Mapping[str, Any] | None = None, prefix: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each dotted key of a scenario with its schema, tables before their keys.

    A key inside a list of tables has ``[]`` after the list's name.
    """
    root = _root()
    definitions = root.get("$defs", {})
    for name, value in (root if node is None else node)["properties"].items():
        resolved = _resolved(value, definitions)
        yield f"{prefix}{name}", resolved
        inner_table = _table_of(value, definitions)
        if inner_table is not None:
            yield from all_keys(inner_table, f"{prefix}{name}.")
            continue
        for option in [resolved, *resolved.get("anyOf", [])]:
            if option.get("type") == "array" and "items" in option:
                inner = _table_of(option["items"], definitions)
                if inner is not None:
                    yield from all_keys(inner, f"{prefix}{name}[].")


_BOUNDS = (
    ("minimum", "≥"),
    ("exclusiveMinimum", ">"),
    ("maximum", "≤"),
    ("exclusiveMaximum", "<"),
)
_UNBOUNDED = 2**62
_WORDS = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
}


def kind(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Describe the values that a key takes."""
    schema = _resolved(schema, definitions)
    if "properties" in schema:
        return "table"
    if "enum" in schema or "const" in schema:
        return ", ".join(
            code(json.dumps(value))
            for value in schema.get("enum", [schema.get("const")])
        )
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option.get("type") != "null"]
        sized = {option.get("type") for option in options} == {"integer", "string"}
        return (
            "size"
            if sized
            else " or ".join(kind(option, definitions) for option in options)
        )
    if schema.get("type") == "array":
        return f"list of: {kind(schema.get('items', {}), definitions)}"
    bounds = [
        f"{sign} {schema[key]:g}"
        for key, sign in _BOUNDS
        if key in schema and schema[key] < _UNBOUNDED
    ]
    return f"{_WORDS.get(str(schema.get('type')), 'value')} {', '.join(bounds)}".strip()


def default(schema: Mapping[str, Any], takes: str = "") -> str:
    """Return the default as TOML, or an empty string."""
    value = schema.get("default")
    if value is None or isinstance(value, dict):
        return ""
    if takes == "size":
        return code(f'"{format_size(value)}"')
    return code(json.dumps(value, ensure_ascii=False))


def page(version: str) -> str:
    """Return the page of all keys: one table for each table of a scenario."""
    definitions = _root().get("$defs", {})
    parts = [INTRODUCTION.format(version=version)]
    sections: dict[str, list[tuple[str, str, str, str]]] = {"": []}
    notes: dict[str, str] = {}
    for key, node in all_keys():
        inner = _table_of(node, definitions)
        if inner is not None or kind(node, definitions) == "list of: table":
            name = key if inner is not None else f"{key}[]"
            sections[name] = []
            notes[name] = str(node.get("description", ""))
            continue
        parent, _, last = key.rpartition(".")
        takes = kind(node, definitions)
        row = (
            code(last),
            takes,
            default(node, takes),
            str(node.get("description", "")),
        )
        sections.setdefault(parent, []).append(row)
    for name, rows in sections.items():
        title = (
            "Top level"
            if not name
            else f"[{name}]"
            if not name.endswith("[]")
            else f"[[{name[:-2]}]]"
        )
        parts.append(f"## {title}\n\n{notes.get(name, '')}\n")
        parts.append(table(("key", "takes", "default", "meaning"), rows))
    return "\n".join(parts)
