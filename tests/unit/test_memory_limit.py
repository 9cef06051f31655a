"""The memory that a process may use is the least of the machine's, its limits' and its cgroups'."""

import resource
import sys

import pytest

from stripesim.models import memory_limit as module
from stripesim.models.memory_limit import limits_read_once, memory_limit

GB = 10**9
PAGE = 4096
#: Pages as /proc/self/statm has them: size, resident, shared, text, lib, data, dt.
STATM = f"{3 * GB // PAGE} {GB // PAGE} 0 0 0 {2 * GB // PAGE} 0"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine of 100 GB; the process has 3 GB of addresses, 1 GB in RAM, 2 GB of data, and no limit."""
    limits = {
        resource.RLIMIT_AS: resource.RLIM_INFINITY,
        resource.RLIMIT_DATA: resource.RLIM_INFINITY,
    }
    process, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    process.mkdir()
    cgroups.mkdir()
    (process / "statm").write_text(STATM)
    sizes = {"SC_PAGE_SIZE": PAGE, "SC_PHYS_PAGES": 100 * GB // PAGE}
    monkeypatch.setattr(module.os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(
        resource, "getrlimit", lambda key: (limits[key], resource.RLIM_INFINITY)
    )
    monkeypatch.setattr(module, "_PROCESS", process)
    monkeypatch.setattr(module, "_CGROUP_ROOT", cgroups)
    # All libraries are loaded.
    monkeypatch.setitem(sys.modules, "numba", module)
    return limits, process, cgroups


def left_gb():
    return pytest.approx(memory_limit().left_bytes / GB, abs=0.001)


def test_without_limits_the_machine_minus_used_memory_is_free(machine):
    assert left_gb() == 100 - 1


@pytest.mark.parametrize(
    ("key", "left"),
    [(resource.RLIMIT_AS, 20 - 3), (resource.RLIMIT_DATA, 20 - 2)],
    ids=["AS", "DATA"],
)
def test_resource_limits_count_the_bounded_resource(machine, key, left):
    limits, _, _ = machine
    limits[key] = 20 * GB
    assert left_gb() == left
    assert "RLIMIT" in memory_limit().source


def test_the_least_of_all_counts(machine):
    limits, _, _ = machine
    limits[resource.RLIMIT_AS] = 500 * GB
    limits[resource.RLIMIT_DATA] = 50 * GB
    assert left_gb() == 50 - 2


def test_libraries_that_are_not_loaded_yet_are_taken_off(machine, monkeypatch):
    monkeypatch.delitem(sys.modules, "numba")
    monkeypatch.setattr(module, "_LIBRARIES", module.MemoryUse(7 * GB, 5 * GB, 6 * GB))
    monkeypatch.setattr(module, "has_library", lambda: False)
    assert left_gb() == 100 - 1 - 5
    # With prebuilt code, a run does not load them.
    monkeypatch.setattr(module, "has_library", lambda: True)
    assert left_gb() == 100 - 1


def test_a_process_beyond_its_limit_has_no_memory_left(machine):
    limits, _, _ = machine
    limits[resource.RLIMIT_AS] = GB
    assert memory_limit().left_bytes == 0


@pytest.mark.parametrize(
    ("lines", "files", "left"),
    [
        # Version 2: of the group itself, or of one above it.
        ("0::/a/b", {"a/b/memory.max": str(8 * GB), "a/memory.max": "max"}, 8 - 1),
        (
            "0::/a/b",
            {"a/b/memory.max": str(8 * GB), "a/memory.max": str(4 * GB)},
            4 - 1,
        ),
        ("0::/a/b", {"a/b/memory.max": "max"}, 100 - 1),
        # In a container the group is the root of the mount.
        ("0::/", {"memory.max": str(6 * GB)}, 6 - 1),
        ("0::/docker/123", {"memory.max": str(6 * GB)}, 6 - 1),
        # Version 1, among other controllers; a huge number means none.
        (
            "5:cpu,memory:/a\n0::/",
            {"memory/a/memory.limit_in_bytes": str(7 * GB)},
            7 - 1,
        ),
        ("5:memory:/docker/1", {"memory/memory.limit_in_bytes": str(7 * GB)}, 7 - 1),
        (
            "5:memory:/a",
            {"memory/a/memory.limit_in_bytes": "9223372036854771712"},
            100 - 1,
        ),
        ("5:cpu:/a", {"memory/a/memory.limit_in_bytes": str(GB)}, 100 - 1),
        ("", {}, 100 - 1),
    ],
)
def test_limits_of_cgroups(machine, lines, files, left):
    _, process, cgroups = machine
    (process / "cgroup").write_text(lines)
    for name, text in files.items():
        (cgroups / name).parent.mkdir(parents=True, exist_ok=True)
        (cgroups / name).write_text(text + "\n")
    assert left_gb() == left


def test_limits_of_cgroups_may_be_read_once_for_many_checks(machine):
    _, process, cgroups = machine
    (process / "cgroup").write_text("0::/")
    (cgroups / "memory.max").write_text(str(8 * GB))
    with limits_read_once():
        # When the limit and the use change
        (cgroups / "memory.max").write_text(str(6 * GB))
        (process / "statm").write_text(
            STATM.replace(str(GB // PAGE), str(2 * GB // PAGE))
        )
        # Then checks know the use of now, and later ones the limit as well.
        assert left_gb() == 8 - 2
    assert left_gb() == 6 - 2


def test_a_system_without_proc_counts_limits_as_a_whole(machine, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_PROCESS", tmp_path / "nothing")
    assert left_gb() == 100


def test_the_limit_of_this_process_is_plausible():
    assert 10**8 < memory_limit().left_bytes < 2**50


def test_reserved_memory_is_taken_off(machine):
    reserved = module.MemoryUse(resident_bytes=30 * GB)
    left_bytes = memory_limit(reserved).left_bytes
    assert left_bytes / GB == pytest.approx(100 - 1 - 30, abs=0.001)
