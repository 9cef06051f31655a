"""Imports run one way: models know nothing else, then traces, sim, calibration, scenarios."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Folders of stripesim that each folder may import.
KNOWS = {
    "models": set(),
    "traces": {"models"},
    "sim": {"models", "traces"},
    "calibration": {"models", "sim", "traces"},
    "scenarios": {"models", "traces", "sim", "calibration"},
}
# Every folder may import the version, which is data.
HARMLESS = {"_version"}


def modules(folder):
    return sorted((ROOT / folder).rglob("*.py"))


@cache
def imported(source, name="a file"):
    """Every module that a file names in an import: also under TYPE_CHECKING or in a function."""
    return tuple(_imported(source, name))


def _imported(source, name):
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{name}:{node.lineno}: got a relative import, wanted stripesim.…"
            )
            yield node.module, node.lineno
            if node.module == "stripesim":
                yield from (
                    (f"stripesim.{alias.name}", node.lineno) for alias in node.names
                )
        elif isinstance(node, ast.Call) and _loads_a_module(node.func):
            found = node.args[0]
            if ast.unparse(found).startswith(("f'{__name__}.", "f'{__package__}.")):
                # A package that loads its own modules late stays inside itself.
                continue
            assert isinstance(found, ast.Constant), (
                f"{name}:{node.lineno}: a computed import"
            )
            yield found.value, node.lineno


def _loads_a_module(function):
    # Without `ast.unparse` for each call of the project.
    if isinstance(function, ast.Name):
        return function.id == "import_module"
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "import_module"
        and ast.unparse(function) == "importlib.import_module"
    )


def arrows(folder):
    """Pairs of a place and the part of stripesim that is imported there."""
    for path in modules(folder):
        for module, line in imported(path.read_text("utf-8"), str(path)):
            parts = module.split(".")
            if parts[0] == "stripesim" and len(parts) > 1:
                yield f"{path.relative_to(ROOT)}:{line}", parts[1]
            # The folders are at the top of the checkout, so a short name would work only there.
            assert parts[0] not in KNOWS, (
                f"{path.relative_to(ROOT)}:{line}: import {module}, wanted stripesim.{module}"
            )


@pytest.mark.parametrize("folder", KNOWS)
def test_no_arrow_runs_backwards(folder):
    found = list(arrows(folder))
    # A folder without any imports would mean that this test reads no files.
    assert any(part == folder for _, part in found)
    wrong = [
        f"{place}: {folder} imports {part}"
        for place, part in found
        if part not in KNOWS[folder] | HARMLESS | {folder}
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_command_line_knows_the_command_line():
    for folder in KNOWS:
        assert not [
            place
            for place, part in arrows(folder)
            if part.startswith(("cli", "__main__"))
        ]


@pytest.mark.parametrize(
    ("folder", "libraries"),
    [
        # Measured numbers and pure functions need no simulation kernel, no tables, no files of scenarios.
        (
            "models",
            {"simpy", "polars", "pydantic", "typer", "rich", "matplotlib", "scipy"},
        ),
        ("sim", {"polars", "pydantic", "typer", "rich", "matplotlib", "pyeclib"}),
    ],
)
def test_libraries_stay_in_their_layer(folder, libraries):
    # The reader of the real codec is the one model that wraps a library.
    allowed = {"calibration/kernels/codec.py"}
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in modules(folder)
        for module, line in imported(path.read_text("utf-8"), str(path))
        if module.split(".")[0] in libraries
        and str(path.relative_to(ROOT)) not in allowed
    ]
    assert not found, "\n".join(found)


def test_only_one_engine_is_made_of_simpy():
    users = {
        str(path.relative_to(ROOT).parent)
        for path in modules("sim")
        for module, _ in imported(path.read_text("utf-8"), str(path))
        if module.split(".")[0] == "simpy"
    }
    assert users == {"sim/engine/simpy"}


def test_the_engine_imports_nothing_else_of_sim_and_knows_no_scheme():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in modules("sim/engine")
        for module, line in imported(path.read_text("utf-8"), str(path))
        if (
            module.startswith("stripesim.sim")
            and not module.startswith("stripesim.sim.engine")
        )
        or "coding" in module
    ]
    assert not found, "\n".join(found)


def test_the_model_knows_no_engine():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in modules("sim/ceph")
        for module, line in imported(path.read_text("utf-8"), str(path))
        if module.startswith(
            ("stripesim.sim.engine.simpy", "stripesim.sim.engine.compiled")
        )
    ]
    assert not found, "\n".join(found)


def module_names():
    """Every module of the project by its importable name."""
    names = {}
    for folder in (*KNOWS, "notebooks", "stripesim"):
        for path in modules(folder):
            if path.is_relative_to(ROOT / "stripesim") and any(
                parent.is_symlink() for parent in path.parents if parent != ROOT
            ):
                continue
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts if parts[0] == "stripesim" else ("stripesim", *parts)
            names[".".join(parts).removesuffix(".__init__")] = path
    return names


def import_graph(names):
    """Return the imports of each module, including lazy ones and those under `TYPE_CHECKING`."""
    graph = {}
    for name, path in names.items():
        targets = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    full_name = f"{node.module}.{alias.name}"
                    targets.add(full_name if full_name in names else node.module)
        graph[name] = (targets & names.keys()) - {name}
    return graph


def mutual_folders(graph, names):
    """Pairs of folders, neither in the other, whose modules import each other."""
    arrows = set()
    for module, targets in graph.items():
        importer = names[module].parent
        for target in targets:
            imported_from = names[target].parent
            nested = imported_from.is_relative_to(importer) or importer.is_relative_to(
                imported_from
            )
            if not nested and target.rpartition(".")[2] not in HARMLESS:
                arrows.add((importer, imported_from))
    return sorted((a, b) for a, b in arrows if a < b and (b, a) in arrows)


def circles(graph):
    """Modules that reach themselves."""
    reach = {name: set(targets) for name, targets in graph.items()}
    grown = True
    while grown:
        grown = False
        for targets in reach.values():
            more = set().union(*(reach[target] for target in targets)) - targets
            targets.update(more)
            grown = grown or bool(more)
    return sorted(name for name, targets in reach.items() if name in targets)


@pytest.fixture(scope="module")
def project():
    """The modules of the project, and the imports of each."""
    names = module_names()
    return names, import_graph(names)


def test_no_circle_of_files(project):
    names, graph = project
    assert len(names) > 200
    assert not circles(graph)


def test_no_two_folders_import_each_other(project):
    names, graph = project
    assert mutual_folders(graph, names) == []


def test_a_mutual_import_would_be_found():
    names = {name: Path(f"{name.replace('.', '/')}.py") for name in ("a.x", "b.y")}
    graph = {"a.x": {"b.y"}, "b.y": {"a.x"}}
    assert mutual_folders(graph, names) == [(Path("a"), Path("b"))]


def test_a_circle_would_be_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c"]


def test_no_folder_is_crowded():
    counts = {}
    for path in module_names().values():
        if path.name != "__init__.py":
            counts[path.parent] = counts.get(path.parent, 0) + 1
    crowded = {
        str(folder.relative_to(ROOT)): count
        for folder, count in counts.items()
        if count > 16
    }
    assert not crowded, f"got {crowded}, wanted at most 16 modules in a folder"


def test_the_reader_of_imports_sees_hidden_ones():
    source = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from stripesim.sim.engine.graph import Template\n"
        "def late():\n    import stripesim.scenarios.cells.build\n    from stripesim import traces\n"
        "    import_module('stripesim.cli.app')\n"
    )
    assert {module for module, _ in imported(source)} == {
        "typing",
        "stripesim.sim.engine.graph",
        "stripesim.scenarios.cells.build",
        "stripesim",
        "stripesim.traces",
        "stripesim.cli.app",
    }
    with pytest.raises(AssertionError, match="relative import"):
        list(imported("from . import build"))
