"""The Python examples of the README and documentation use public names only. `make lint` checks types."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.python_blocks import LESSONS, PAGES, examples, write_examples

# Written as a stranger would, without types.
AUTHORS = Path(__file__).with_name("authors_notebook.md")
# What programs may import. All other modules may change between versions.
PUBLIC = {"stripesim", "stripesim.blocks", "stripesim.codes", "stripesim.teach"}


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


def test_all_examples_are_written_for_a_check_of_their_types(tmp_path: Path) -> None:
    files = write_examples(tmp_path)
    assert files == sorted(tmp_path.glob("*.py"))
    assert len(files) > 12 + len(LESSONS)
    parts = {page.stem: len(examples(page)) for page in PAGES}
    # Cells of a lesson depend on each other.
    lesson = LESSONS[0].stem
    assert [one.name for one in files if lesson.replace("-", "_") in one.name] == [
        f"page_{lesson.replace('-', '_')}_0.py"
    ]
    # The others are on their own. The first of own-code is saved under the name that the others import.
    own = [one.name for one in files if one.name.startswith("page_own_code_")]
    assert len(own) == parts["own-code"] - 1
    assert tmp_path / "azure.py" in files
