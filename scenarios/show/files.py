"""Write the files of answers: tables as Parquet and CSV, provenance as JSON, all atomically."""

import csv
import json
import secrets
from collections.abc import Iterable, Mapping
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stripesim.models.problems import AnswerError, first_problem
from stripesim.scenarios.show.quantities import IDENTITY


def write_results(
    out_dir: str | Path,
    rows: pl.DataFrame,
    provenance: Mapping[str, Any],
    extra: Mapping[str, str | bytes] | None = None,
) -> list[Path]:
    """Write the rows of a run and its provenance; ``provenance.json`` is the last file."""
    missing = [name for name in IDENTITY if name not in rows.columns]
    if missing:
        raise AnswerError(
            f"result rows: got no column {', '.join(missing)}, wanted {', '.join(IDENTITY)}"
        )
    nested = [name for name, dtype in rows.schema.items() if dtype.is_nested()]
    if nested:
        raise AnswerError(
            f"result rows: got lists in {', '.join(nested)}, wanted one value a cell"
        )
    parquet = BytesIO()
    csv_file = BytesIO()
    rows.write_parquet(parquet)
    rows.write_csv(csv_file)
    contents = {
        "results.parquet": parquet.getvalue(),
        "results.csv": csv_file.getvalue(),
    }
    for name, content in (extra or {}).items():
        if name in (*contents, "provenance.json") or Path(name).name != name:
            raise AnswerError(
                f"extra file: got {name!r}, wanted a plain file name that is not taken"
            )
        contents[name] = content.encode() if isinstance(content, str) else content
    contents["provenance.json"] = _json_bytes(provenance)
    return write_files(out_dir, contents)


def _json_bytes(provenance: Mapping[str, Any]) -> bytes:
    def plain(value: object) -> object:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, Path):
            return str(value)
        raise TypeError(f"a {type(value).__name__}")

    try:
        text = json.dumps(
            dict(provenance),
            indent=2,
            ensure_ascii=False,
            allow_nan=False,
            default=plain,
        )
    except (TypeError, ValueError) as error:
        raise AnswerError(
            f"provenance: got {first_problem(error)}, wanted JSON values"
        ) from None
    return (text + "\n").encode()


def csv_text(rows: Iterable[Mapping[str, object]]) -> str:
    """Write mappings as CSV, one per line. The columns are all keys, in the order of their first use."""
    listed = list(rows)
    names = list(dict.fromkeys(key for row in listed for key in row))
    text = StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    return text.getvalue()


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
        got = error.strerror or error
        raise AnswerError(
            f"{out_dir}: got {got}, wanted a folder results can be written to"
        ) from None
    finally:
        for written in temporary.values():
            written.unlink(missing_ok=True)
    return list(temporary)
