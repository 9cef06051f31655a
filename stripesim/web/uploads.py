"""Read and keep uploads: scenarios, ceph reports and parameter sets."""

import hashlib
import json
import tempfile
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from stripesim.calibration.kernels.store import shipped_table_names
from stripesim.calibration.parameters.sets import DEVICE_TABLES, ParameterSet, names
from stripesim.models.documents import toml_text
from stripesim.models.problems import MeasuredError, problems_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.forms.equal_hosts import with_equal_hosts
from stripesim.scenarios.schema.keys import names_file
from stripesim.scenarios.schema.scenario import (
    Scenario,
    load_scenario,
    parse_scenario,
    scenario_from,
)
from stripesim.scenarios.schema.toml_bounds import TEXT_MAX, parse_toml
from stripesim.web.controls import OwnSets

#: Start of the name of an upload that holds its scenario, so that an address with it works anywhere.
PACKED: Final = "upload."
#: Start of the name of one that is too large for an address.
KEPT: Final = "upload-"
#: Longest such name, and longest scenario in one [characters]. Servers take headers of 64 KiB, and a request
#: of the page holds the name three times: in its address, that of the page, and that of the referrer.
_PACKED_MAX: Final = 12_000
#: Longest such name and text of parameter sets together [characters].
_ADDRESS_MAX: Final = 19_000
_UNPACKED_MAX: Final = 1 << 16
#: Scenarios and parameter sets kept, the newest of each.
KEPT_MAX: Final = 16
#: Largest scenario or parameter set [B]. Reports are bounded when they are received.
UPLOAD_BYTES_MAX: Final = TEXT_MAX
_WANTED: Final = "a scenario or parameter set (TOML), or a ceph report (JSON)"
_SCENARIO_TABLES: Final = frozenset({"schemes", "cluster", "workload"})


class Upload(NamedTuple):
    """An uploaded scenario with notes on how it was simplified, or a parameter set with its tables."""

    scenario: Scenario | None
    notes: list[str]
    tables: tuple[str, ...] = ()


class Uploads:
    """The newest uploads. Scenarios stay in memory; parameter sets are files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.scenarios: OrderedDict[str, Upload] = OrderedDict()
        self._sets: OrderedDict[str, Upload] = OrderedDict()

    def keep(self, content: bytes, upload: Upload) -> dict[str, str]:
        """Keep an upload, and return the values that choose it on the page."""
        if upload.scenario is not None:
            key = packed(upload.scenario)
            if len(key) > _PACKED_MAX:
                key = f"{KEPT}{_digest(content)}"
            self.scenarios[key] = upload
            if len(self.scenarios) > KEPT_MAX:
                self.scenarios.popitem(last=False)
            return {"base": key}
        key = self._keep_set(content, upload)
        keys = {}
        if "client" in upload.tables:
            keys["a.parameters"] = key
        if not set(DEVICE_TABLES).isdisjoint(upload.tables):
            keys["a.drive"] = key
        return {**keys, "one_cluster": "1"}

    def _keep_set(self, content: bytes, upload: Upload) -> str:
        """Keep a parameter set, and return its name on the page."""
        key = f"own-{_digest(content)}.toml"
        (self._folder / key).write_bytes(content)
        self._sets[key] = upload
        if len(self._sets) > KEPT_MAX:
            dropped, _ = self._sets.popitem(last=False)
            (self._folder / dropped).unlink()
        return key

    def keep_packed(self, text: str) -> None:
        """Keep the parameter sets that an address holds, with the checks of uploads.

        Raises
        ------
        ValueError
            If the text is damaged, or a set is not valid.
        """
        for content in _unpacked_sets(text):
            if f"own-{_digest(content)}.toml" not in self._sets:
                upload = read_parameters(
                    content, parse_toml(content.decode("utf-8-sig"))
                )
                self._keep_set(content, upload)

    def packed(self, keys: Iterable[str], base: str) -> str:
        """Return the parameter sets among some names as text for an address, or "" if they are too large."""
        used = sorted({key for key in keys if key in self._sets})
        if not used:
            return ""
        contents = [(self._folder / key).read_bytes().decode() for key in used]
        text = _packed_text(json.dumps(contents))
        return text if len(text) + len(base) <= _ADDRESS_MAX else ""

    @property
    def files(self) -> dict[str, str]:
        """Path of each parameter set by its name on the page."""
        return {key: str(self._folder / key) for key in self._sets}

    def own_sets(self, base: Scenario) -> OwnSets:
        """Return the parameter sets that can be chosen with a scenario, beyond the shipped ones."""
        of_base = OwnSets.of(base)
        drives = [
            key
            for key, upload in self._sets.items()
            if not set(DEVICE_TABLES).isdisjoint(upload.tables)
        ]
        clusters = [
            key for key, upload in self._sets.items() if "client" in upload.tables
        ]
        return OwnSets((*of_base.drives, *drives), (*of_base.parameters, *clusters))


def packed(scenario: Scenario) -> str:
    """Return a name that holds a scenario, which `unpacked` reads."""
    values = scenario.model_dump(mode="json", exclude_unset=True)
    return PACKED + _packed_text(toml_text(values))


def _packed_text(text: str) -> str:
    compressed = zlib.compress(text.encode(), level=9)
    return urlsafe_b64encode(compressed).decode().rstrip("=")


def _unpacked_text(text: str) -> str:
    """Return a text of at most `_UNPACKED_MAX` bytes that was packed.

    Raises
    ------
    ValueError
        If it is damaged.
    """
    try:
        compressed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        # Bounded: a short text may unpack to gigabytes.
        return zlib.decompressobj().decompress(compressed, _UNPACKED_MAX).decode()
    except (ValueError, zlib.error):
        raise ValueError("got a damaged name, wanted one of an upload") from None


def _unpacked_sets(text: str) -> list[bytes]:
    """Return the parameter sets in a text of an address."""
    if len(text) > _ADDRESS_MAX:
        wanted = f"at most {_ADDRESS_MAX:,}"
        raise ValueError(f"sets: got {len(text):,} characters, wanted {wanted}")
    try:
        contents = json.loads(_unpacked_text(text))
    except ValueError:
        raise ValueError("sets: got a damaged text, wanted one of the page") from None
    if not isinstance(contents, list) or len(contents) > KEPT_MAX:
        raise ValueError("sets: got no list, wanted parameter sets")
    return [str(content).encode() for content in contents]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def unpacked(name: str) -> Scenario:
    """Read the scenario that a name holds, with the checks of an upload.

    Raises
    ------
    ValueError
        If the name holds none, or one that an upload may not hold.
    """
    text = name.removeprefix(PACKED)
    if text == name or len(name) > _PACKED_MAX:
        raise ValueError("base: got a name without a scenario, wanted one of an upload")
    try:
        toml = _unpacked_text(text)
    except ValueError as error:
        raise ValueError(f"base: {error}") from None
    scenario = read_scenario(toml)
    if not isinstance(scenario.cluster.hosts, int):
        raise ValueError("base: got groups of hosts, wanted equal ones")
    return scenario


def read_upload(content: bytes) -> Upload:
    """Read a scenario, a ceph report or a parameter set.

    Raises
    ------
    ValueError
        If it is none of them, too large, or refers to files.
    """
    if is_report(content):
        return read_report(content)
    if len(content) > UPLOAD_BYTES_MAX:
        got = f"{len(content):,} bytes"
        raise ValueError(f"upload: got {got}, wanted at most {UPLOAD_BYTES_MAX:,}")
    try:
        text = content.decode("utf-8-sig")
        tables = parse_toml(text)
    except UnicodeDecodeError:
        raise ValueError(f"upload: got no text, wanted {_WANTED}") from None
    except ValueError as error:
        raise ValueError(f"upload: got no TOML ({error}), wanted {_WANTED}") from None
    if _SCENARIO_TABLES.isdisjoint(tables):
        return read_parameters(content, tables)
    scenario, notes = with_equal_hosts(read_scenario(text))
    return Upload(scenario, notes)


def is_report(content: bytes) -> bool:
    """Return True if an upload is JSON, and so a report."""
    return content.lstrip()[:1] == b"{"


def read_parameters(content: bytes, tables: Mapping[str, Any]) -> Upload:
    """Check a parameter set, such as `stripesim calibrate` writes, by building its models.

    Raises
    ------
    ValueError
        If it lacks a number, or refers to a file.
    """
    if "file" in _keys(tables):
        raise ValueError("parameters: got a file path, wanted factors as a list")
    known = (*DEVICE_TABLES, "client")
    if set(known).isdisjoint(tables):
        raise ValueError(
            f"upload: got {', '.join(list(tables)[:5]) or 'nothing'}, wanted a scenario with schemes and "
            f"[cluster], or a parameter set with one of [{'], ['.join(known)}]"
        )
    with tempfile.TemporaryDirectory(prefix="stripesim-") as folder:
        # The request does not choose this file name.
        path = Path(folder) / "parameters.toml"
        path.write_bytes(content)
        if set(DEVICE_TABLES).isdisjoint(tables):
            device: dict[str, Any] = {}
        else:
            ParameterSet("parameters", path).device()
            device = {"drive": str(path)}
        cluster = {"parameters": str(path)} if "client" in tables else {}
        shipped = load_scenario("plan")
        build_models(shipped.with_cluster(**device, **cluster))
    return Upload(None, [], tuple(tables))


def read_scenario(text: str) -> Scenario:
    """Read an uploaded scenario, which may refer only to shipped parameter sets and to no file.

    Raises
    ------
    ValueError
        If the scenario is invalid or refers to anything else.
    """
    values = parse_toml(text)
    refused = sorted(set(_file_keys(values)))
    if refused:
        raise ValueError(
            f"scenario: got {', '.join(refused)}, wanted no file paths in an upload"
        )
    cluster = values.get("cluster", {})
    sets = names()
    known = {
        "drive": sets,
        "ssd": sets,
        "parameters": sets,
        "kernel_table": ("", *shipped_table_names()),
    }
    for key, fitting in known.items():
        set_name = cluster.get(key) if isinstance(cluster, dict) else None
        if isinstance(set_name, str) and set_name not in fitting:
            wanted = f"one of {', '.join(fitting)}"
            raise ValueError(
                f"scenario: cluster.{key}: got a name that does not ship, wanted {wanted}"
            )
    return parse_scenario(text, label="scenario")


def read_report(content: bytes) -> Upload:
    """Build a scenario from the largest pool of a ``ceph report``, and list the simplifications.

    The page compares clusters of equal hosts, so all hosts of the pool are taken as equal.
    ``stripesim import ceph-report`` keeps the CRUSH map instead.

    Raises
    ------
    ValueError
        If the report cannot be read.
    """
    from stripesim.scenarios.clusters.cluster import import_cluster
    from stripesim.scenarios.clusters.counted_scenario import scenario_without_map
    from stripesim.scenarios.clusters.scenario import chosen_pools

    with tempfile.TemporaryDirectory(prefix="stripesim-") as folder:
        # The request does not choose this file name.
        path = Path(folder) / "report.json"
        path.write_bytes(content)
        try:
            cluster = import_cluster([path])
            pool = chosen_pools(cluster, [])[0]
            counted = scenario_without_map(cluster, pool)
        except ValueError as error:
            shown = MeasuredError(*problems_of(error))
            # The path is the server's own.
            shown.rewrite(lambda text: text.replace(str(path), "report"))
            raise shown from None
    notes = [
        f"pool {pool.placed.name}; stripesim import ceph-report keeps its CRUSH map",
        *counted.notes,
        *map(str, counted.derivations),
        *cluster.warnings,
    ]
    return Upload(scenario_from(counted.tables, label="report"), notes)


def _keys(value: Any) -> set[str]:
    """Return all keys in nested tables."""
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    if isinstance(value, list):
        return set().union(*map(_keys, value))
    return set()


def _file_keys(value: Any, key: str = "") -> list[str]:
    if isinstance(value, dict):
        return [
            name for part, inner in value.items() for name in _file_keys(inner, part)
        ]
    if isinstance(value, list):
        return [name for inner in value for name in _file_keys(inner, key)]
    return [key] if names_file(key, value) else []
