"""Build the documentation: ``python docs/build.py out`` writes HTML to out/docs. Warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path

from generate import gallery
from generate.stage import stage


def main(out: Path) -> int:
    """Stage and build; return Sphinx's status."""
    from sphinx.cmd.build import build_main

    source = out / "docs-source"
    stage(source)
    # -E: a generated page may have changed although its file's time has not.
    status: int = build_main(
        ["-W", "--keep-going", "-q", "-E", "-b", "html", "-d", str(out / "docs-doctrees"), str(source),
         str(out / "docs")]
    )  # fmt: skip
    if status == 0:
        gallery.write(out / "docs" / "gallery")
        print(f"wrote {out / 'docs' / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "out")))
