"""setup.cfg, the symlinks and the disk have the same packages, and data files ship with them."""

import configparser
import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("models", "sim", "calibration", "traces", "scenarios", "notebooks")


@pytest.fixture(scope="module")
def setup_cfg():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def lines(setup_cfg, section, key):
    return [
        line.strip() for line in setup_cfg[section][key].splitlines() if line.strip()
    ]


def packages_on_disk():
    found = {"stripesim", "stripesim.cli", "stripesim.web"}
    for folder in FOLDERS:
        for init in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join(("stripesim", *init.parent.relative_to(ROOT).parts)))
    return found


def test_listed_packages_are_those_on_disk(setup_cfg):
    listed = lines(setup_cfg, "options", "packages")
    assert len(set(listed)) == len(listed)
    assert set(listed) == packages_on_disk()


def test_package_dir_maps_each_folder(setup_cfg):
    pairs = dict(
        map(str.strip, line.split("="))
        for line in lines(setup_cfg, "options", "package_dir")
    )
    assert pairs == {"stripesim": "stripesim"} | {
        f"stripesim.{folder}": folder for folder in FOLDERS
    }


def test_links_lead_to_the_folders_and_are_relative():
    links = {
        path.name: path for path in (ROOT / "stripesim").iterdir() if path.is_symlink()
    }
    assert set(links) == set(FOLDERS)
    for name, link in links.items():
        assert str(link.readlink()) == f"../{name}"
        assert (link / "__init__.py").is_file()


def test_a_module_is_loaded_from_the_top_folder_only_once():
    import stripesim.models.ssd
    import stripesim.sim.engine.graph

    for module, folder in (
        (stripesim.models.ssd, "models"),
        (stripesim.sim.engine.graph, "sim/engine"),
    ):
        assert Path(module.__file__).resolve().parent == ROOT / folder


def test_every_folder_with_modules_is_a_package():
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            assert (path.parent / "__init__.py").is_file(), (
                f"{path.relative_to(ROOT)} is in no package"
            )


def test_every_package_describes_its_contents():
    for package in packages_on_disk() - {"stripesim", "stripesim.cli", "stripesim.web"}:
        init = ROOT.joinpath(*package.split(".")[1:], "__init__.py")
        assert init.read_text("utf-8").startswith('"""'), (
            f"{init.relative_to(ROOT)} has no docstring"
        )


def test_files_that_are_data_are_package_data(setup_cfg):
    """Files that an installed stripesim opens must be listed: TOML, CSV, JSON and the READMEs of studies."""
    listed = {
        package: [glob.strip() for glob in globs.split(",")]
        for package, globs in setup_cfg["options.package_data"].items()
    }
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if (
                path.suffix not in (".toml", ".csv", ".json")
                or ".ipynb_checkpoints" in path.parts
            ):
                continue
            # A folder without modules belongs to the nearest package above it.
            home = next(
                above for above in path.parents if (above / "__init__.py").is_file()
            )
            package = ".".join(("stripesim", *home.relative_to(ROOT).parts))
            name = path.relative_to(home).as_posix()
            assert any(
                fnmatch.fnmatch(name, glob) for glob in listed.get(package, [])
            ), (
                f"{path.relative_to(ROOT)} does not ship: no pattern for it under {package}"
            )


def test_packages_with_data_have_some(setup_cfg):
    for package, globs in setup_cfg["options.package_data"].items():
        # The links of stripesim/ lead to the folders at the top.
        folder = ROOT.joinpath(*package.split("."))
        assert any(list(folder.glob(glob.strip())) for glob in globs.split(",")), (
            f"{package}: no data"
        )


def test_root_conftest_ignores_each_folder():
    # Otherwise pytest would load every module a second time, by its top-level path.
    # The servers of workers load these modules, which simulate when they are imported.
    runs = {f"stripesim/scenarios/work/{name}.py" for name in ("preload", "server")}
    text = (ROOT / "conftest.py").read_text("utf-8")
    namespace = {}
    exec(text, namespace)
    assert set(namespace["collect_ignore"]) == {*FOLDERS, *runs}
    assert not any(">>>" in (ROOT / path).read_text("utf-8") for path in runs)


def test_test_files_have_unique_names_and_no_package():
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(set(names)) == len(names)
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_no_one_elses_trace_is_in_the_checkout():
    data = ROOT.parent / "shared" / "data"
    if not data.is_dir():
        pytest.skip(f"the real data is not there: {data}")
    theirs = {
        path.stat().st_size: path
        for folder in ("block-traces", "failure-traces")
        for path in (data / folder).rglob("*")
        if path.is_file() and path.stat().st_size > 2000
    }
    skipped = {
        ".git",
        ".venv",
        "__pycache__",
        ".hypothesis",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
    }
    for path in ROOT.rglob("*"):
        if skipped & set(path.parts) or path.is_symlink() or not path.is_file():
            continue
        twin = theirs.get(path.stat().st_size)
        assert twin is None or twin.read_bytes() != path.read_bytes(), (
            f"{path} is a copy of {twin}"
        )
