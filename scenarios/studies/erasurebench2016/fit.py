"""Fit the proxy to the rows of role calibration, and file sizes to Figure 4's curves of NC.

``python -m stripesim.scenarios.studies.erasurebench2016.fit`` prints the fitted part of ``parameters.toml``.
Nothing of RS and LRC is seen but Table II, the decode rates and the duration of RS's write in Figure 6.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.models.provenance import Provenance
from stripesim.scenarios.studies.erasurebench2016 import sequences
from stripesim.scenarios.studies.erasurebench2016.codes import codes, expected
from stripesim.scenarios.studies.erasurebench2016.source import value_of
from stripesim.sim.systems.kv_proxy.costs import ProxyModel

Floats = npt.NDArray[np.float64]
NS_PER_S = 1e9
SEED = 1
STORE_NODES = 100
LATENCY_BYTES = 16 << 20
FILE_MB = (4, 16, 64)
#: First claims of the groups of rows that the fits see; sizes and cluster sizes follow in order.
ENCODE = {"NC": 333, "RS": 336, "LRC": 339}
WRITE_FUSE = 346
WRITE_DIRECT = 355
READ_FUSE = 364
READ_DIRECT = 373
LATENCY = 382
LATENCY_NODES = (20, 40, 60, 80, 100)
RS_WRITE_S = 405
DECODE = {"RS": 342, "LRC": 343}
AVAILABLE = {
    "httpd": (422, 431, 440, 449, 458, 467, 476, 485),
    "bc": (423, 432, 441, 450, 459, 468, 477, 486),
}
KILLED = (5, 10, 15, 20, 25, 30, 40, 50)

FITTED = {
    "encoder": (
        "encode_nc_ns_per_byte",
        "encode_rs_ns_per_byte",
        "encode_lrc_ns_per_byte",
        "encode_start_ns",
    ),
    "writer": (
        "write_start_ns",
        "block_write_ns",
        "request_ns",
        "request_node_ns",
        "fuse_write_ns_per_byte",
        "list_copy_ns_per_byte",
    ),
    "reader": ("read_start_ns", "read_nc_ns_per_byte", "fuse_read_ns_per_byte"),
}
# Large enough that rounding to whole nanoseconds does not show in a difference of two runs.
_UNIT_NS = {
    **dict.fromkeys(
        ("write_start_ns", "read_start_ns", "encode_start_ns", "request_ns"), 1e6
    ),
    "request_node_ns": 1e4,
}
SOURCES = {
    "encoder": "Table II, nine rows; relative least squares",
    "writer": "NC's writes of Figures 3 and 5 and the duration of RS's write in Figure 6; relative least "
    "squares",
    "reader": "NC's reads of Figure 5; relative least squares",
    "spread": "NC's curves of httpd and bc in Figure 4, sixteen rows; least squares",
}


@dataclass(frozen=True)
class Fit:
    """A fit of `SOURCES`, with intervals at 95 % from the residuals' scatter and the curvature."""

    name: str
    values: dict[str, float]
    confidence_intervals: dict[str, tuple[float, float]]
    residual_sd: float


#: A time that a fit sees: how a model gives it, and what the source says [s].
Case = tuple[Callable[[ProxyModel], float], float]


def zero_model() -> ProxyModel:
    """A proxy that takes no time, but for the decode rates, which are published."""
    numbers: dict[str, Any] = {name: 0.0 for names in FITTED.values() for name in names}
    for code, claim in DECODE.items():
        numbers[f"read_{code.lower()}_ns_per_byte"] = NS_PER_S / (
            value_of(claim) * sequences.MEGABYTE
        )
    return ProxyModel(
        provenance={name: Provenance("assumed", "before a fit") for name in numbers},
        **numbers,
    )


def encode_seconds(model: ProxyModel, code: str, megabytes: int) -> float:
    """Time of the encoder alone for so many megabytes [s], as behind Table II."""
    return (
        model.encoder_start_ns(code)
        + megabytes * sequences.MEGABYTE * model.encode_ns_per_byte(code)
    ) / NS_PER_S


def file_seconds(
    model: ProxyModel | None,
    code: str,
    size_bytes: int,
    *,
    op: str,
    fuse: bool,
    nodes: int = STORE_NODES,
    engine: str = "compiled",
) -> float:
    """Time to write or read a lone file [s]."""
    run = sequences.run_write if op == "write" else sequences.run_read
    files = sequences.stored(
        sequences.file_writes(size_bytes, fuse=fuse), code, nodes=nodes, seed=SEED
    )
    return run(files, fuse=fuse, model=model, engine=engine).elapsed_ns / NS_PER_S


def _archive_seconds(model: ProxyModel) -> float:
    httpd = sequences.stored_archive("httpd", "RS", nodes=STORE_NODES, seed=SEED)
    return sequences.run_write(httpd, model=model).elapsed_ns / NS_PER_S


def _files(op: str, first: int, fuse: bool) -> list[Case]:
    return [
        (
            partial(
                file_seconds,
                code="NC",
                size_bytes=size * sequences.MEGABYTE,
                op=op,
                fuse=fuse,
            ),
            size / value_of(first + index),
        )
        for index, size in enumerate(FILE_MB)
    ]


def _cases(name: str) -> Sequence[Case]:
    """The rows that one fit sees."""
    if name == "encoder":
        return [
            (
                partial(encode_seconds, code=code, megabytes=size),
                size / value_of(first + index),
            )
            for code, first in ENCODE.items()
            for index, size in enumerate(FILE_MB)
        ]
    if name == "reader":
        return [*_files("read", READ_FUSE, True), *_files("read", READ_DIRECT, False)]
    lone = partial(
        file_seconds, code="NC", size_bytes=LATENCY_BYTES, op="write", fuse=True
    )
    return [
        *_files("write", WRITE_FUSE, True),
        *_files("write", WRITE_DIRECT, False),
        *(
            (partial(lone, nodes=nodes), value_of(LATENCY + index))
            for index, nodes in enumerate(LATENCY_NODES)
        ),
        (_archive_seconds, value_of(RS_WRITE_S)),
    ]


def fit_proxy(name: str, model: ProxyModel) -> Fit:
    """Fit one part of the proxy to its rows; the model has the fits before this one, and zero for this one.

    One operation runs at a time, so a time is a sum of parameters with whole-number weights. The weights are
    read off the engine, one run for each parameter; then Σ (simulated / published - 1)² has one minimum among
    the numbers that are not negative, found without a start.
    """
    from scipy.optimize import lsq_linear
    from scipy.stats import t

    cases = _cases(name)
    published = np.array([seconds for _, seconds in cases])

    def times(**changed: Any) -> Floats:
        tried = replace(model, **changed)
        return np.array([simulate(tried) for simulate, _ in cases])

    base = times()
    names = FITTED[name]
    units = np.array([_UNIT_NS.get(key, 1.0) for key in names])
    weights = [
        (times(**{key: unit}) - base) / published
        for key, unit in zip(names, units.tolist(), strict=True)
    ]
    design = np.stack(weights, axis=1)
    scale = np.linalg.norm(design, axis=0)
    found = lsq_linear(design / scale, 1 - base / published, bounds=(0, np.inf))
    residuals = design @ (found.x / scale) - (1 - base / published)
    freedom = len(cases) - len(names)
    sd = math.sqrt(float(residuals @ residuals) / freedom)
    covariance = np.linalg.pinv(design.T @ design)
    values = found.x / scale * units
    half = float(t.ppf(0.975, freedom)) * sd * np.sqrt(np.diag(covariance)) * units
    return Fit(
        name=name,
        values=dict(zip(names, values.tolist(), strict=True)),
        confidence_intervals={
            key: (max(0.0, value - width), value + width)
            for key, value, width in zip(
                names, values.tolist(), half.tolist(), strict=True
            )
        },
        residual_sd=sd,
    )


def fit_spread() -> Fit:
    """Fit the spread of file sizes: one number for both real archives."""
    from scipy.optimize import least_squares
    from scipy.stats import t

    def errors(x: Floats) -> Floats:
        listed = []
        for name, rows in AVAILABLE.items():
            writes = np.bincount(sequences.archive_writes(name, float(x[0])).files)
            share = expected(codes()["NC"], writes, nodes=STORE_NODES, killed=KILLED)
            listed.append(share - [value_of(row) for row in rows])
        return np.concatenate(listed)

    # Where files begin in the archive's records jumps with their sizes, so the step is a wide one.
    found = least_squares(errors, np.ones(1), diff_step=0.1, xtol=1e-3)
    freedom = len(found.fun) - 1
    sd = math.sqrt(float(found.fun @ found.fun) / freedom)
    half = float(t.ppf(0.975, freedom)) * sd / float(np.linalg.norm(found.jac))
    value = float(found.x[0])
    return Fit(
        "spread",
        {"spread_fraction": value},
        {"spread_fraction": (value - half, value + half)},
        sd,
    )


def fit_all() -> tuple[Fit, ...]:
    """All fits; the httpd archive's writes depend on the spread that ``parameters.toml`` has."""
    model = zero_model()
    found = [fit_spread()]
    for name in FITTED:
        found.append(fit_proxy(name, model))
        numbers: dict[str, Any] = dict(found[-1].values)
        model = replace(model, **numbers)
    return tuple(found)


def main() -> None:
    """Fit and print."""
    for fit in fit_all():
        table = "archives" if fit.name == "spread" else "proxy"
        print(f"# {fit.name}: scatter {fit.residual_sd:.1%}")
        for name, value in fit.values.items():
            low, high = fit.confidence_intervals[name]
            print(f'[{table}.{name}]\nvalue = {value:.6g}\nprovenance = "fitted"')
            print(
                f'source = "{SOURCES[fit.name]}"\nconfidence_interval = [{low:.4g}, {high:.4g}]\n'
            )


if __name__ == "__main__":
    main()
