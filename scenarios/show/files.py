"""Write the files of answers: tables as Parquet and CSV, provenance as JSON, all atomically.

`check_folder` and `check_file` say before any work starts whether its results can be written.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stripesim.models.documents import json_text
from stripesim.models.problems import AnswerError, Problem, file_reason, first_problem
from stripesim.scenarios.show.quantities import IDENTITY, check_columns

if TYPE_CHECKING:
    import polars as pl


#: File that holds the provenance of rows.
PROVENANCE: Final = "provenance.json"
#: Files of ``--out`` that hold the provenance of an answer, all but the first under the key ``provenance``.
PROVENANCE_FILES: Final = (
    PROVENANCE,
    "load.json",
    "vms.json",
    "plan.json",
    "rehearsal.json",
    "durability.json",
)
#: What options wanted that got a folder without room for results.
_RESULTS: Final = "a folder results can be written to"


def check_folder(option: str, folder: Path) -> None:
    """Reject a folder that no file can be written into. One that is missing is made later.

    Raises
    ------
    AnswerError
        If a file is in its place or in that of a folder above it, or this process may not write there.
    """
    reason = _reason_against_folder(folder)
    if reason:
        got = f"{folder} ({reason})"
        raise AnswerError(Problem(place=option, got=got, wanted=_RESULTS))


def check_file(
    option: str, path: Path, wanted: str, *, is_replaced: bool = True
) -> None:
    """Reject a path to which no file can be written. Folders that are missing are made later.

    Parameters
    ----------
    option
        Option or argument that names the file.
    path
        The file.
    wanted
        What kind of file is wanted.
    is_replaced
        True for a file that is written beside the path and then renamed, as `write_files` does. It needs
        the right to write into the folder, and would take the place of a device. False for one that is
        written in place.

    Raises
    ------
    AnswerError
        If the file cannot be written.
    """
    reason = _reason_against_file(path, is_replaced=is_replaced)
    if reason:
        got = f"{path} ({reason})"
        raise AnswerError(Problem(place=option, got=got, wanted=wanted))


def _reason_against_file(path: Path, *, is_replaced: bool) -> str:
    """Explain why a file cannot be written. Empty if it can be."""
    if str(path) == "-":
        return "standard output"
    if path.is_dir():
        return "a folder"
    if os.path.exists(path):
        if not is_replaced:
            return "" if os.access(path, os.W_OK) else "a read-only file"
        if not path.is_file():
            return "a device or pipe"
    return _reason_against_folder(path.parent)


def _reason_against_folder(folder: Path) -> str:
    """Explain why no file can be written into a folder. Empty if one can be."""
    ways = (folder, *folder.parents)
    # Unlike `Path.exists`, this finds links to nothing, and fails on no folder that may not be entered.
    present = next(filter(os.path.lexists, ways), None)
    if present is None:
        return "the current folder is gone"
    if not os.path.isdir(present):
        return f"{present} is a file"
    if not os.access(present, os.W_OK | os.X_OK):
        return f"{present} is read-only"
    return ""


def result_files(
    rows: pl.DataFrame,
    provenance: Mapping[str, Any],
    extra: Mapping[str, str | bytes],
) -> dict[str, bytes]:
    """Return the files of result rows by name: tables, further files, and the provenance as the last one.

    Raises
    ------
    stripesim.models.problems.AnswerError
        If a column or a name cannot be written.
    """
    check_columns(rows, IDENTITY, key="result rows", wanted=", ".join(IDENTITY))
    nested = [name for name, dtype in rows.schema.items() if dtype.is_nested()]
    if nested:
        raise AnswerError(
            Problem(
                place="result rows",
                got=f"lists in {', '.join(nested)}",
                wanted="one value a cell",
            )
        )
    parquet = BytesIO()
    rows.write_parquet(parquet)
    contents = {
        "results.parquet": parquet.getvalue(),
        "results.csv": csv_text(rows).encode(),
    }
    for name, content in extra.items():
        if name in (*contents, PROVENANCE) or Path(name).name != name:
            raise AnswerError(
                Problem(
                    place="extra file",
                    got=f"{name!r}",
                    wanted="a plain file name that is not taken",
                )
            )
        contents[name] = content.encode() if isinstance(content, str) else content
    try:
        contents[PROVENANCE] = json_text(dict(provenance), indent=2).encode()
    except (TypeError, ValueError) as error:
        raise AnswerError(
            Problem(key="provenance", got=first_problem(error), wanted="JSON values")
        ) from None
    return contents


def stored_document(path: Path, wanted: str) -> dict[str, Any]:
    """Read a JSON document that a command wrote.

    Raises
    ------
    AnswerError
        If the file cannot be read or holds none. The message states what is `wanted`.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        problem = Problem(place=str(path), got=file_reason(error), wanted=wanted)
        raise AnswerError(problem) from None
    if not isinstance(document, dict):
        got = "another document"
        raise AnswerError(Problem(place=str(path), got=got, wanted=wanted))
    return document


def csv_files(name: str, rows: Iterable[Mapping[str, object]]) -> dict[str, bytes]:
    """Return a file with rows as CSV, by its name."""
    return {name: csv_text(rows).encode()}


def csv_text(rows: pl.DataFrame | Iterable[Mapping[str, object]]) -> str:
    """Write rows as CSV. The columns of mappings are all keys, in the order of their first use."""
    import polars as pl

    return (rows if isinstance(rows, pl.DataFrame) else frame_of(rows)).write_csv()


def frame_of(rows: Iterable[Mapping[str, object]] = ()) -> pl.DataFrame:
    """Collect rows in a data frame, with the columns of all, in the order of their first use."""
    import polars as pl

    # All rows decide the type of a column, because the first ones may have no value.
    return pl.DataFrame(list(rows), infer_schema_length=None, strict=False)


def write_files(out_dir: str | Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files atomically, with permissions that follow the umask."""
    out_dir = Path(out_dir)
    temporary: dict[Path, Path] = {}
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            path = out_dir / name
            # tempfile ignores the umask and makes files private to the user.
            temporary[path] = out_dir / f".{name}.{secrets.token_hex(8)}.tmp"
            with temporary[path].open("xb") as file:
                file.write(content)
        for path, written in temporary.items():
            written.replace(path)
    except OSError as error:
        got = file_reason(error)
        if isinstance(error, FileExistsError | NotADirectoryError):
            got = "a file"
        raise AnswerError(
            Problem(place=str(out_dir), got=got, wanted=_RESULTS)
        ) from None
    finally:
        for written in temporary.values():
            written.unlink(missing_ok=True)
    return list(temporary)
