"""The Python examples of the README and documentation use public names only, and their types are right."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "docs" / "generate" / "api.py",
    *LESSONS,
]
# Written as a stranger would, without types.
AUTHORS = Path(__file__).with_name("authors_notebook.md")
BLOCK = re.compile(
    r"^( *)```(?:python|\{code-cell\} ?\w*)\n(.*?)^ *```", flags=re.M | re.S
)
# What programs may import. All other modules may change between versions.
PUBLIC = {"stripesim", "stripesim.blocks", "stripesim.codes", "stripesim.teach"}


def examples(page: Path) -> list[str]:
    return [dedent(block[2]) for block in BLOCK.finditer(page.read_text("utf-8"))]


def imported(program: str) -> set[str]:
    """Return the modules of this project that a program imports."""
    lines = [line for line in program.splitlines() if not line.startswith(("%", "!"))]
    modules = set()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {_module(node.module, alias.name) for alias in node.names}
    return {name for name in modules if name.partition(".")[0] == "stripesim"}


def _module(package: str, name: str) -> str:
    """Return the module that `from package import name` loads: the package, or a module of that name."""
    if package == "stripesim" and find_spec(f"stripesim.{name}"):
        return f"stripesim.{name}"
    return package


@pytest.mark.parametrize("page", [*PAGES, AUTHORS], ids=lambda page: page.stem)
def test_examples_import_public_modules_only(page: Path) -> None:
    for example in examples(page):
        assert imported(example) <= PUBLIC


@pytest.mark.parametrize(
    "program",
    [
        "import stripesim.sim.run",
        "from stripesim import scenarios",
        "from stripesim.scenarios.show.answer import Answer",
        "def late():\n    from stripesim.models import jit",
    ],
)
def test_an_internal_import_is_noticed(program: str) -> None:
    assert not imported(program) <= PUBLIC


def test_every_block_of_python_is_an_example() -> None:
    for page in PAGES:
        fences = re.findall(
            r"^ *(?:```|~~~)+ *\{?(?:code-block\} *|code-cell\} *)?(?:i?python|py)",
            page.read_text("utf-8"),
            flags=re.M | re.I,
        )
        assert len(examples(page)) == len(fences), page


def test_there_are_examples_of_each_kind() -> None:
    found = {name for page in PAGES for one in examples(page) for name in imported(one)}
    assert found == PUBLIC


def test_the_types_of_the_examples_are_right(tmp_path: Path) -> None:
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    for page in PAGES:
        parts = examples(page)
        if page.name == "api.py" or page.parent.name == "notebooks":
            # One example in several parts, and cells that depend on each other.
            parts = ["\n".join(parts)] if parts else []
        for number, example in enumerate(parts):
            name = f"page_{page.stem.replace('-', '_')}_{number}.py"
            if page.stem == "own-code" and not number:
                # As the page asks its reader to save it.
                name = "azure.py"
            (tmp_path / name).write_text(example, encoding="utf-8")
    # Its error shows that the others are checked.
    wrong = tmp_path / "wrong.py"
    wrong.write_text('import stripesim\n\nstripesim.run("quickstart", seed="one")\n')
    files = sorted(tmp_path.glob("*.py"))
    # One process checks all: each would read the types of this project and of NumPy again.
    assert len(files) > 12 + len(LESSONS)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *map(str, files)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 1, done.stdout
    assert "wrong.py:3: error: " in errors[0]
