"""The reference of the public face: one entry for each name of `stripesim.api`."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic import BaseModel

from generate.markdown import code, table
from stripesim import api, teach

INTRODUCTION = """\
# Python API

Generated from the docstrings. `import stripesim` is enough: every name below is `stripesim.NAME`,
fetched at its first use, and stands in the module `stripesim.api`. What is not listed here may change
from one version to the next.

```python
import stripesim

scenario = stripesim.Scenario(schemes=["rep:3", "rs:4,2"], workload={"requests": 500})
print(stripesim.run(scenario).rows.select("scheme", "op", "iops", "bottleneck"))
```

"""

# In which order the parts of stripesim are listed, and under which title.
SECTIONS = (
    ("stripesim.api", "Run, sweep, study, building blocks"),
    ("stripesim.scenarios", "Scenarios, results, figures"),
    ("stripesim.traces", "Traces"),
    ("stripesim.calibration", "Fits"),
    ("stripesim.models", "Models"),
    ("stripesim.sim", "Op graphs and engines"),
)


def _home(thing: Any) -> str:
    return str(getattr(thing, "__module__", ""))


def _entry(name: str, thing: Any) -> str:
    directive = "autoclass" if inspect.isclass(thing) else "autofunction"
    target = f"{_home(thing)}.{thing.__qualname__}"
    options = ["   :members:"] if directive == "autoclass" else []
    if directive == "autoclass" and issubclass(thing, BaseModel):
        # Its keys stand in a reference of their own.
        target = f"{target}(**keys)"
    if fields := getattr(thing, "_fields", None):
        options.append(f"   :exclude-members: {', '.join(fields)}")
    return "\n".join(
        ["```{eval-rst}", f".. {directive}:: {target}", *options, "```", ""]
    )


def page() -> str:
    """Write the reference of all public names."""
    parts = [INTRODUCTION]
    found = {name: getattr(api, name) for name in api.__all__}
    documented = {name: thing for name, thing in found.items() if callable(thing)}
    for prefix, title in SECTIONS:
        names = [
            name
            for name, thing in documented.items()
            if _home(thing).startswith(prefix)
        ]
        if names:
            parts += [
                f"## {title}\n",
                *(f"### {name}\n\n{_entry(name, found[name])}" for name in names),
            ]
    others = [
        name
        for name, thing in documented.items()
        if not _home(thing).startswith("stripesim.")
    ]
    assert not others, f"no section for {others}"
    constants = [
        (code(name), code(thing))
        for name, thing in found.items()
        if name not in documented
    ]
    if constants:
        parts += ["## Constants\n", table(("name", "value"), constants)]
    parts.append("## Exercises: stripesim.teach\n")
    parts += [
        f"### teach.{name}\n\n{_entry(name, getattr(teach, name))}"
        for name in teach.__all__
    ]
    return "\n".join(parts)
