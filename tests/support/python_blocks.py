"""The Python examples of the README, the documentation and the lessons.

``python tests/support/python_blocks.py FOLDER`` writes them there, for `make lint` to check their types.
"""

import re
import sys
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "docs" / "generate" / "api.py",
    *LESSONS,
]
BLOCK = re.compile(
    r"^( *)```(?:python|\{code-cell\} ?\w*)\n(.*?)^ *```", flags=re.M | re.S
)


def examples(page: Path) -> list[str]:
    """Return the Python examples of a page."""
    return [dedent(block[2]) for block in BLOCK.finditer(page.read_text("utf-8"))]


def write_examples(folder: Path) -> list[Path]:
    """Write each example to a file of its own in place of those written before, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("page_*.py"):
        old.unlink()
    written = []
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
            written.append(folder / name)
            written[-1].write_text(example, encoding="utf-8")
    return sorted(written)


if __name__ == "__main__":
    write_examples(Path(sys.argv[1]))
