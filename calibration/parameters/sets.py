"""Read parameter sets from TOML and build models from them, every number with its provenance."""

import csv
import dataclasses
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np

from stripesim.models.hdd import DeviceModel, HddModel, HddWithLogModel
from stripesim.models.problems import ParameterSetError, Problem, problems_at
from stripesim.models.provenance import MeasuredModel, Provenance
from stripesim.models.ssd import FACTOR_POINTS, SsdModel

_PACKAGE = "stripesim.calibration.parameters"
#: Tables that describe the device of an OSD.
DEVICE_TABLES = ("ssd", "hdd", "hdd_with_log")
#: Sets that no longer ship, and their replacements.
REPLACED = {"koh2017": '"kraken", the same cluster with threads that sleep and wake'}

#: Keys of a number or distribution.
_KEYS = (
    "value",
    "file",
    "factors",
    "lognormal_sigma",
    "provenance",
    "source",
    "confidence_interval",
)
#: Limits far beyond any service time [ns], any measured spread, and any value.
_TIME_MAX_NS = 1e12
_SIGMA_MAX = 5
_VALUE_MAX = 1e30

Model = TypeVar("Model", bound=MeasuredModel)


def names() -> list[str]:
    """Return the names of the shipped parameter sets."""
    names = (entry.name for entry in files(_PACKAGE).iterdir())
    return sorted(
        name.removesuffix(".toml") for name in names if name.endswith(".toml")
    )


class ParameterSet:
    """A named set of numbers for several models.

    The TOML file has a table per model, in it a table per number with ``value``, ``provenance``, ``source``
    and, if fitted, ``confidence_interval``. A distribution has ``file`` (a CSV file with a column of
    factors), ``factors`` (a list) or ``lognormal_sigma`` instead of ``value``.

    Parameters
    ----------
    name
        Name of a shipped set, or the name to use for `path`.
    path
        TOML file of the user.

    Raises
    ------
    ParameterSetError
        If the set does not exist or the file cannot be parsed.
    """

    def __init__(self, name: str, path: Path | None = None) -> None:
        resource = files(_PACKAGE) / f"{name}.toml" if path is None else path
        if path is None and not resource.is_file():
            wanted = REPLACED.get(name, f"one of {', '.join(names())}")
            raise ParameterSetError(f"parameter set: got {name!r}, wanted {wanted}")
        self.name = name.removesuffix(".toml")
        self._folder = files(_PACKAGE) if path is None else path.parent
        try:
            self._tables: dict[str, Any] = tomllib.loads(resource.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ParameterSetError(*problems_at(f"{self.name}.toml", error)) from error

    def table(self, name: str) -> dict[str, Any] | None:
        """Return a table as in the file, or None if the set has no such table."""
        table: dict[str, Any] | None = self._tables.get(name)
        return table

    def tables(self) -> list[tuple[str, dict[str, Any]]]:
        """Return all tables as in the file, each with its name."""
        return list(self._tables.items())

    def model(
        self, kind: type[Model], table: str, given: Mapping[str, Any] | None = None
    ) -> Model:
        """Build a model from one table.

        Parameters
        ----------
        kind
            Class of the model.
        table
            Name of the table.
        given
            Values set by the cluster, such as the number of cores. They override the table.

        Raises
        ------
        ParameterSetError
            If the table or a number is missing, unknown or out of range.
        """
        where = f"{self.name}.toml: [{table}]"
        values, provenance = self._numbers(table)
        for key, value in (given or {}).items():
            values[key] = value
            if not isinstance(value, str):
                provenance[key] = Provenance("given", "the scenario's cluster")
        names = [field.name for field in dataclasses.fields(kind)]
        names.remove("provenance")
        wanted = "a number with provenance and source"
        _check_keys(where, values, names, needed=names, wanted=wanted)
        for field in dataclasses.fields(kind):
            if field.type == "int":
                values[field.name] = _whole(
                    values[field.name], f"{where}: {field.name}"
                )
            elif field.name.endswith("_ns") and values[field.name] > _TIME_MAX_NS:
                raise ParameterSetError(
                    f"{where}: {field.name}: got {values[field.name]:g}, wanted at most {_TIME_MAX_NS:g}"
                )
        try:
            return kind(**values, provenance=provenance)
        except (ValueError, TypeError) as error:
            raise ParameterSetError(*problems_at(where, error)) from error

    def replaced(self, model: Model, table: str) -> Model:
        """Return a model with the numbers that the set states in an optional table.

        Parameters
        ----------
        model
            A model with values for all numbers.
        table
            Name of the table. Without it, the model is returned as it is.

        Raises
        ------
        ParameterSetError
            If a number is unknown or out of range.
        """
        if table not in self._tables:
            return model
        where = f"{self.name}.toml: [{table}]"
        values, provenance = self._numbers(table)
        _check_keys(where, values, model.number_names())
        for key, value in values.items():
            if isinstance(getattr(model, key), int):
                values[key] = _whole(value, f"{where}: {key}")
        try:
            return model.with_numbers(values, provenance)
        except (ValueError, TypeError) as error:
            raise ParameterSetError(*problems_at(where, error)) from error

    def _numbers(self, table: str) -> tuple[dict[str, Any], dict[str, Provenance]]:
        """Return the values of a table and their provenance."""
        where = f"{self.name}.toml: [{table}]"
        if not isinstance(self._tables.get(table), dict):
            wanted = "a table of numbers"
            raise ParameterSetError(Problem(place=where, got="nothing", wanted=wanted))
        values: dict[str, Any] = {}
        provenance: dict[str, Provenance] = {}
        for key, found in self._tables[table].items():
            values[key] = _value(found, f"{where}: {key}", self._folder)
            provenance[key] = _provenance(found, f"{where}: {key}")
        return values, provenance

    def device(self, given: Mapping[str, Any] | None = None) -> DeviceModel:
        """Build the device of an OSD.

        Parameters
        ----------
        given
            Numbers that override those of a solid state drive. A hard disk takes none.

        Returns
        -------
        DeviceModel
            A hard disk if the set has a table ``hdd`` or ``hdd_with_log``, else a solid state drive.

        Raises
        ------
        ParameterSetError
            As from `model`, or if `given` is not empty for a hard disk.
        """
        disk = next(
            (table for table in ("hdd_with_log", "hdd") if table in self._tables), None
        )
        if disk is None:
            return self.model(SsdModel, "ssd", given)
        if given:
            keys = ", ".join(name.replace("_quantiles", "_sigma") for name in given)
            raise ParameterSetError(
                f"got {keys} with {self.name}, a disk; wanted none: these are numbers of SSDs"
            )
        return self.model(HddWithLogModel if disk == "hdd_with_log" else HddModel, disk)


def lognormal_factors(sigma: float) -> tuple[float, ...]:
    """Return `FACTOR_POINTS` equally likely lognormal factors of mean 1. `sigma` is that of the logarithm."""
    centres = (np.arange(FACTOR_POINTS) + 0.5) / FACTOR_POINTS
    normal = NormalDist()
    quantiles = np.array([normal.inv_cdf(centre) for centre in centres.tolist()])
    factors = np.exp(sigma * quantiles)
    return tuple((factors / factors.mean()).tolist())


def _check_keys(
    where: str,
    written: Iterable[str],
    known: Sequence[str],
    *,
    needed: Iterable[str] = (),
    wanted: str = "",
) -> None:
    """Raise an error that lists the needed keys that a table lacks, and those that it has and should not."""
    lacking = [key for key in needed if key not in written]
    problems = [
        Problem(place=where, key=key, got="nothing", wanted=wanted) for key in lacking
    ]
    names = f"one of {', '.join(lacking or known)}"
    problems += [
        Problem(place=where, key=key, got="an unknown key", wanted=names)
        for key in written
        if key not in known
    ]
    if problems:
        raise ParameterSetError(*problems)


def _whole(value: float, where: str) -> int:
    # NaN also fails this check.
    if value % 1 != 0:
        raise ParameterSetError(f"{where}: got {value}, wanted a whole number")
    return int(value)


def _value(entry: Any, where: str, folder: Traversable) -> Any:
    wanted = "wanted a value, a file, factors or a lognormal_sigma"
    if not isinstance(entry, Mapping):
        raise ParameterSetError(
            f"{where}: got {entry!r}, {wanted}, with provenance and source"
        )
    if "value" in entry:
        if isinstance(entry["value"], bool) or not isinstance(
            entry["value"], int | float
        ):
            raise ParameterSetError(
                f"{where}: value: got {entry['value']!r}, wanted a number"
            )
        if abs(entry["value"]) >= _VALUE_MAX:
            raise ParameterSetError(
                f"{where}: value: got {entry['value']}, wanted a finite number"
            )
        return entry["value"]
    if "lognormal_sigma" in entry:
        sigma = entry["lognormal_sigma"]
        if (
            isinstance(sigma, bool)
            or not isinstance(sigma, int | float)
            or not 0 <= sigma <= _SIGMA_MAX
        ):
            raise ParameterSetError(
                f"{where}: lognormal_sigma: got {sigma!r}, wanted 0 to {_SIGMA_MAX}"
            )
        return lognormal_factors(sigma)
    if "file" in entry or "factors" in entry:
        return _factors(entry, where, folder)
    raise ParameterSetError(f"{where}: got {', '.join(entry) or 'nothing'}, {wanted}")


def _factors(
    entry: Mapping[str, Any], where: str, folder: Traversable
) -> tuple[float, ...]:
    """Read factors from a list or a column of a file, and scale them to mean 1."""
    source = entry.get("file", "factors")
    if "factors" in entry:
        wanted = "a list of numbers"
    else:
        wanted = "a CSV file with a column factor"
    try:
        if "factors" in entry:
            factors = np.array([float(factor) for factor in entry["factors"]])
        else:
            lines = (folder / source).read_text("utf-8").splitlines()
            factors = np.array([float(row["factor"]) for row in csv.DictReader(lines)])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ParameterSetError(
            f"{where}: {source}: wanted {wanted} ({error})"
        ) from error
    if (
        not len(factors)
        or not np.isfinite(factors).all()
        or (factors < 0).any()
        or not factors.any()
    ):
        raise ParameterSetError(
            f"{where}: {source}: wanted finite factors of 0 or above, not all 0"
        )
    return tuple((factors / factors.mean()).tolist())


def _provenance(entry: Mapping[str, Any], where: str) -> Provenance:
    _check_keys(where, entry, _KEYS, needed=("provenance", "source"), wanted="text")
    interval = entry.get("confidence_interval")
    try:
        return Provenance(
            entry["provenance"], entry["source"], tuple(interval) if interval else None
        )
    except (ValueError, TypeError) as error:
        raise ParameterSetError(*problems_at(where, error)) from error
