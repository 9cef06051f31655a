"""Cite stripesim: BibTeX of the tool, and of what a run used.

`references.toml` beside this module holds the bibliography, and which sources the numbers of parameter sets,
schemes and studies come from.
"""

import csv
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from stripesim._version import __version__
from stripesim.calibration.parameters.sets import ParameterSet, names
from stripesim.models.documents import Documented
from stripesim.models.generations import generations
from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import (
    PROVENANCE,
    PROVENANCE_FILES,
    stored_document,
)
from stripesim.scenarios.show.latex import LATEX_SIGNS

Role = Literal["tool", "parameters", "code", "source"]

#: Result columns and scenario keys that name sources.
_SET_KEYS: Final = ("cluster.parameters", "cluster.drive", "cluster.ssd")

_SPECIAL: Final = {
    **LATEX_SIGNS,
    "—": "---",
    "ß": r"{\ss}",
    "ø": r"{\o}",
    "Ø": r"{\O}",
    "æ": r"{\ae}",
    "ł": r"{\l}",
    "ı": r"{\i}",
    "µ": r"$\mu$",
}
#: Combining marks and LaTeX's accents.
_ACCENTS: Final = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
    "\u0328": "k",
}


@dataclass(frozen=True)
class Citation(Documented):
    """One entry of a bibliography. Its fields are plain text."""

    key: str
    type: str
    role: Role
    fields: Mapping[str, str]
    by_organization: bool = False  # True if the author is not a person.

    in_document: ClassVar = ("key", "type", "role", "fields", "bibtex")

    def bibtex(self) -> str:
        """Write the entry in BibTeX, with every special character escaped."""
        lines = [f"  {name} = {{{self._field_text(name)}}}," for name in self.fields]
        return "\n".join([f"@{self.type}{{{self.key},", *lines, "}"])

    def _field_text(self, name: str) -> str:
        if name in ("url", "doi", "eprint"):
            return self.fields[name]
        text = bibtex_text(self.fields[name])
        # Braces keep the capitals of a title, and the name of an organization in one piece.
        if name == "title" or (name == "author" and self.by_organization):
            return f"{{{text}}}"
        return text


@dataclass(frozen=True)
class _Used:
    """Parameter sets and sources that a run used."""

    version: str
    sets: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    studies: tuple[str, ...] = ()
    codes: tuple[tuple[str, str], ...] = ()  # File and SHA-256 of each.
    has_cluster: bool = True  # False for pools that CRUSH does not place.


def answer_of_citation(folder: str | Path | None = None) -> Answer:
    """Return the answer of `stripesim cite`: the entries of a run, or without a folder that of the tool."""
    entries = cite_tool() if folder is None else cite_run(folder)
    document = {
        "run": None if folder is None else str(folder),
        "entries": [entry.to_json() for entry in entries],
    }
    return Answer(
        document=document,
        shown=["\n\n".join(entry.bibtex() for entry in entries)],
    )


def cite_tool() -> list[Citation]:
    """Return the citation of this version of stripesim."""
    return [_tool(__version__)]


def cite_run(folder: str | Path) -> list[Citation]:
    """Return citations of the tool, the parameter sets, the codes and the sources that a run used.

    Parameters
    ----------
    folder
        Folder that ``--out`` of a command wrote.

    Returns
    -------
    list of Citation
        Each key once: the tool in the version of the run, then parameter sets, own codes and sources.

    Raises
    ------
    AnswerError
        If the folder holds no provenance of stripesim.
    """
    used = _used(Path(folder))
    sources = [key for name in used.sets for key in _data()["parameters"].get(name, ())]
    for scheme in used.schemes:
        sources += _data()["schemes"].get(scheme.partition(":")[0], ())
    if used.has_cluster and any(scheme != "none" for scheme in used.schemes):
        sources += _data()["placement"]["sources"]
    for name in used.studies:
        sources += _data()["studies"][name]["sources"]
    cited = [
        _tool(used.version),
        *(_parameter_set(name, used.version) for name in used.sets),
        *(_own_code(file, sha256) for file, sha256 in used.codes),
        *(_release(name) for name in used.releases),
        *(_source(key) for key in sources if key != "ceph" or not used.releases),
    ]
    return list({entry.key: entry for entry in cited}.values())


def bibtex_text(text: str) -> str:
    r"""Write plain text for BibTeX, in ASCII where LaTeX has a command.

    >>> bibtex_text("Müller & Søn, 50 % of a_b")
    'M{\\"u}ller \\& S{\\o}n, 50 \\% of a\\_b'
    """
    return "".join(map(_letter, unicodedata.normalize("NFC", text)))


@cache
def _data() -> dict[str, Any]:
    text = (files(__package__) / "references.toml").read_text("utf-8")
    return tomllib.loads(text)


def _letter(letter: str) -> str:
    if letter in _SPECIAL:
        return _SPECIAL[letter]
    if letter.isascii():
        return letter
    decomposed = unicodedata.normalize("NFD", letter)
    base = decomposed[0]
    mark = decomposed[1:]
    if mark in _ACCENTS:
        accent = _ACCENTS[mark]
        # An accent that is a letter needs braces around its argument.
        return (
            f"{{\\{accent}{{{base}}}}}" if accent.isalpha() else f"{{\\{accent}{base}}}"
        )
    return letter


def _used(folder: Path) -> _Used:
    provenance = _provenance(folder)
    version = str(provenance["stripesim"])
    study = provenance.get("study")
    if study is None:
        try:
            return _used_by_scenario(folder, version, provenance)
        except (TypeError, AttributeError, KeyError):
            raise AnswerError(
                Problem(
                    place=str(folder),
                    got="a provenance whose configuration or codes cannot be read",
                    wanted="that of a run of this version",
                )
            ) from None
    known = _data()["studies"].get(str(study))
    if known is None:
        raise AnswerError(
            Problem(
                place=str(folder),
                got=f"the unknown study {study!r}",
                wanted=f"one of {', '.join(_data()['studies'])}",
            )
        )
    return _Used(version, sets=tuple(known["parameters"]), studies=(study,))


def _used_by_scenario(
    folder: Path, version: str, provenance: Mapping[str, Any]
) -> _Used:
    configuration = provenance["configuration"]
    columns = _columns(folder)
    sets = list(_named_sets(configuration))
    sets += [name for key in _SET_KEYS for name in columns.get(key, ())]
    schemes = [*configuration.get("schemes", ()), *columns.get("scheme", ())]
    releases = [configuration.get("generation"), *columns.get("generation", ())]
    codes = provenance.get("codes", ())
    has_cluster = True
    if "method" in provenance:
        # Only `durability` has a method. It needs Ceph's release for the default of the detection.
        durability = configuration["durability"]
        has_cluster = durability["placement"] == "crush"
        if not has_cluster:
            sets = []
            releases = releases if durability["detection_s"] is None else []
    return _Used(
        version=version,
        sets=_distinct(sets),
        schemes=_distinct(schemes),
        releases=_distinct(name for name in releases if name in generations()),
        codes=tuple((str(code["file"]), str(code["sha256"])) for code in codes),
        has_cluster=has_cluster,
    )


def _provenance(folder: Path) -> dict[str, Any]:
    """Read the provenance that a command wrote into a folder."""
    if not folder.is_dir():
        raise AnswerError(
            Problem(
                place=str(folder), got="no such folder", wanted="the --out of a run"
            )
        )
    for name in PROVENANCE_FILES:
        path = folder / name
        if not path.is_file():
            continue
        document: Any = stored_document(path, "JSON that a run of stripesim wrote")
        if name != PROVENANCE:
            document = document.get("provenance")
        if isinstance(document, dict) and "stripesim" in document:
            return document
        raise AnswerError(
            Problem(
                place=str(path),
                got="no version of stripesim",
                wanted="the provenance of a run",
            )
        )
    raise AnswerError(
        Problem(
            place=str(folder),
            got=f"none of {', '.join(PROVENANCE_FILES)}",
            wanted="the --out of a run",
        )
    )


def _named_sets(configuration: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parameter sets and drives that a scenario names."""
    cluster = configuration.get("cluster") or {}
    for key in ("parameters", "drive", "ssd"):
        name = cluster.get(key)
        # In 0.2.0, `ssd` was the name, and `drive` a table of numbers in place of those of the set.
        if isinstance(name, str):
            yield name
    plan = configuration.get("plan") or {}
    yield from map(str, plan.get("drive") or ())


def _columns(folder: Path) -> dict[str, set[str]]:
    """Return the values of the columns of results that a sweep may have varied."""
    path = folder / "results.csv"
    values: dict[str, set[str]] = {}
    if not path.is_file():
        return values
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                for key in (*_SET_KEYS, "scheme", "generation"):
                    if row.get(key):
                        values.setdefault(key, set()).add(row[key])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise AnswerError(
            Problem(place=str(path), got=str(error), wanted="a table of results")
        ) from None
    return values


def _distinct(values: Iterable[Any]) -> tuple[str, ...]:
    """Return texts that are not empty, sorted, each once."""
    return tuple(sorted({str(value) for value in values if value}))


def _tool(version: str) -> Citation:
    tool = _data()["tool"]
    fields = {
        "author": tool["organization"],
        "title": tool["title"],
        "howpublished": f"Version {version}",
        "note": f"License: {tool['license']}",
    }
    if version in tool["released"]:
        year, month = tool["released"][version]
        fields |= {"year": str(year), "month": str(month)}
    if "url" in tool:
        fields["url"] = tool["url"]
    return Citation("stripesim", "misc", "tool", fields, by_organization=True)


def _parameter_set(name: str, version: str) -> Citation:
    key = f"stripesim-{_key_text(Path(name).stem)}"
    fields = {"title": f"Parameter set {Path(name).name}"}
    if name.endswith(".toml"):
        fields["note"] = "A set of numbers that does not ship with stripesim"
        return Citation(key, "misc", "parameters", fields, by_organization=True)
    fields = {
        "author": _data()["tool"]["organization"],
        "title": f"Parameter set {name} of stripesim",
        "howpublished": f"Version {version}",
    }
    if name not in names():
        fields["note"] = f"A set that version {__version__} does not have"
    elif version == __version__:
        fields["note"] = _counts(name)
    else:
        fields["note"] = f"In version {__version__}: {_counts(name)}"
    return Citation(key, "misc", "parameters", fields, by_organization=True)


def _counts(name: str) -> str:
    """Count the numbers of a shipped set by the kind of their provenance."""
    kinds = Counter(
        number["provenance"]
        for _, table in ParameterSet(name).tables()
        for number in table.values()
        if isinstance(number, dict) and "provenance" in number
    )
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return f"{kinds.total()} numbers: {listed}"


def _own_code(file: str, sha256: str) -> Citation:
    fields = {
        "title": f"Code of {Path(file).name}",
        "note": f"SHA-256 {sha256}",
    }
    key = f"code-{_key_text(Path(file).stem)}-{sha256[:8]}"
    return Citation(key, "misc", "code", fields)


def _release(name: str) -> Citation:
    """Cite the source code of a Ceph release, whose version was read."""
    version = generations()[name].version
    entry = _source("ceph")
    fields = {**entry.fields, "howpublished": f"Source code, {version}"}
    return replace(entry, key=f"ceph-{_key_text(name)}", fields=fields)


def _source(key: str) -> Citation:
    entry = dict(_data()["entries"][key])
    kind = entry.pop("type")
    authors = entry.pop("authors", None)
    organization = entry.pop("organization", None)
    fields = {"author": organization or " and ".join(authors)}
    fields |= {name: str(value) for name, value in entry.items()}
    return Citation(
        key, kind, "source", fields, by_organization=organization is not None
    )


def _key_text(text: str) -> str:
    """Return text for a BibTeX key."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text)
