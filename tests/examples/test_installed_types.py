"""Programs outside the checkout find the types of an installed stripesim, also of an editable one."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_mypy_finds_the_package_from_another_folder(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed (pip install mypy)")
    program = tmp_path / "program.py"
    program.write_text("import stripesim\n")
    # What the package itself imports takes long, and is not asked here.
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=skip"]
    done = subprocess.run(
        [*command, program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "import-not-found" not in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
