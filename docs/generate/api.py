"""Generate the Python reference: one entry for each name of `stripesim.api`."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from generate.markdown import code, table
from stripesim import api, teach

INTRODUCTION = """\
# Python API

Generated from the docstrings. `import stripesim` is enough: every name below is `stripesim.NAME`, loaded at
its first use from the module `stripesim.api`. Names that are not listed here may change between versions.

```python
import stripesim

scenario = stripesim.Scenario(
    schemes=["rep:3", "rs:4,2"], cluster={"hosts": 8}, workload={"requests": 500}
)
print(stripesim.run(scenario).rows.select("scheme", "op", "iops", "bottleneck"))
```

`rows` of a result is a [Polars](https://docs.pola.rs) table. For pandas, install `stripesim[pandas]` and call
`rows.to_pandas()`. `pandas.DataFrame(rows.to_dict(as_series=False))` works without that extra.

Errors in arguments and scenarios are `ValueError`. Their lines cite the argument of the call.

## Answers

A function that answers a question returns an `Answer` with the data of that question as attributes: `run` a
`ScenarioResult`, `sweep` a `SweepResult`, `study` a `StudyResult`. `plan`, `rehearse`, `import_report`,
`virtual_machines`, `calibrate`, `predict`, `score` and `check` return a plain `Answer`. `explain`,
`load_curves` and `durability` return a list of timelines, curves or rows, which has the attribute `answer`.
Every answer has

- `rows`, a table, empty for `rehearse` and `import_report`,
- `to_json()`, the document that the command writes with `--json`. The answer is also a mapping of it:
  `answer["warnings"]`,
- `warnings` and `refusals`, one sentence each,
- `figures()`, the figures by name,
- `save(folder)`, which writes the files and figures that the command writes with `--out`.

## Predict, measure, score

```python
prediction = stripesim.predict(scenario, register="register.json")
for row in prediction["rows"]:
    rate = row["values"][0]
    print(f"{row['id']}: {rate['low']:,.0f} to {rate['high']:,.0f} requests/s")
```

The file is dated and sealed by a hash. `stripesim.score("register.json", "measured.csv")` compares it with
what was measured later: `rows` is a table of measured and predicted values.
`stripesim.check(scenario, "fio.json")` names what would explain a measured number that is off.

## In a notebook

An answer on the last line of a cell shows as a sentence, a table of at most 20 rows and its first figure. The
rest is a call away:

```python
answer = stripesim.run(scenario)
answer.figures()["headline"]  # a figure with its caption
answer.rows.to_pandas()  # all rows, with stripesim[pandas]
answer.save("results")  # tables as CSV and Parquet, figures, provenance
answer  # a sentence, a table and a figure
```

"""

# Parts of stripesim in the order of the page, with their titles.
SECTIONS = (
    ("stripesim.api", "Run, sweep, study, building blocks"),
    ("stripesim.scenarios", "Scenarios, results, figures"),
    ("stripesim.traces", "Traces"),
    ("stripesim.calibration", "Fits"),
    ("stripesim.models", "Models"),
    ("stripesim.sim", "Op graphs and engines"),
)


def _home(value: Any) -> str:
    return str(getattr(value, "__module__", ""))


def _entry(name: str, value: Any) -> str:
    directive = "autoclass" if inspect.isclass(value) else "autofunction"
    target = f"{_home(value)}.{value.__qualname__}"
    options = ["   :members:"] if directive == "autoclass" else []
    hidden = list(getattr(value, "_fields", ()))
    if directive == "autoclass" and issubclass(value, BaseModel):
        # The scenario reference lists its keys.
        target = f"{target}(**keys)"
        hidden += ["model_config", "model_post_init"]
    if is_dataclass(value):
        # The docstring describes such a field, which Sphinx takes for a function because of its default.
        hidden += [one.name for one in fields(value) if callable(one.default)]
    if hidden:
        options.append(f"   :exclude-members: {', '.join(hidden)}")
    return "\n".join(
        ["```{eval-rst}", f".. {directive}:: {target}", *options, "```", ""]
    )


def page() -> str:
    """Return the page of all public names."""
    parts = [INTRODUCTION]
    public = {name: getattr(api, name) for name in api.__all__}
    documented = {name: value for name, value in public.items() if callable(value)}
    for prefix, title in SECTIONS:
        names = [
            name
            for name, value in documented.items()
            if _home(value).startswith(prefix)
        ]
        if names:
            parts += [
                f"## {title}\n",
                *(f"### {name}\n\n{_entry(name, public[name])}" for name in names),
            ]
    without_section = [
        name
        for name, value in documented.items()
        if not _home(value).startswith("stripesim.")
    ]
    assert not without_section, f"no section for {without_section}"
    constants = [
        (code(name), code(value))
        for name, value in public.items()
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
