"""Build wheels with prebuilt kernels: setuptools, and one step before it.

A wheel has the kernels of one platform in ``stripesim/models/jit/built``. If they cannot be built (no linker,
no Numba), the wheel suits every platform and Numba compiles at the first run. An editable installation has
none: `make kernels` builds them in the checkout.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parent
Settings = dict[str, str | list[str] | None] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return what pip installs before it builds a wheel."""
    # What the sources of the kernels import, as in setup.cfg.
    compilers = ["numba>=0.61", "numpy>=1.26", "scipy>=1.11"]
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        compilers.append("ziglang")
    return [*build_meta.get_requires_for_build_wheel(config_settings), *compilers]


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the kernels and the wheel, and return the name of its file."""
    done = subprocess.run(
        [sys.executable, "-m", "stripesim.sim.kernels"],
        cwd=ROOT,
        env=build_environment(),
        check=False,
    )
    settings = dict(config_settings or {})
    if done.returncode == 0:
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        settings["--build-option"] = ["--plat-name", platform]
    else:
        # Kernels of another state would only be refused.
        for path in (ROOT / "models" / "jit" / "built").glob("kernels.*"):
            path.unlink()
    return str(build_meta.build_wheel(wheel_directory, settings, metadata_directory))


def build_environment() -> dict[str, str]:
    """Return the environment in which the checkout is importable, and what pip installed for the build."""
    # pip makes its isolated environment known by this variable.
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
