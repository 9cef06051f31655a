"""Fit what Ceph pays around the encode kernel: its plugins' times less those of the kernel alone."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.optimize import nnls

from stripesim.models.coding.parse import parse_scheme
from stripesim.models.kernel.buffers import EncodeBufferModel
from stripesim.models.provenance import Provenance

FILE = "ceph-16.2.15-buffers.toml"
#: Plugin and technique that the fit sees, and the kernel that is taken for what it calls.
FITTED_BACKEND = "isa:cauchy"
RAW_BACKEND = "isal_cauchy_avx2"


class CopyModelError(ValueError):
    """Rows that the model of buffers cannot be fitted to."""


@dataclass(frozen=True)
class BufferFit:
    """Numbers of `EncodeBufferModel`, and predicted over measured − 1 of whole calls by (scheme, size)."""

    shard_ns: float
    output_ns_per_byte: float
    errors: dict[tuple[str, int], float]


def fit_buffers(ceph: Iterable[Mapping[str, Any]], raw: Iterable[Mapping[str, Any]]) -> BufferFit:
    """Fit the model to encode calls of Ceph's plugin.

    `ceph` are rows of Ceph's plugins, `raw` those of the kernel alone, whose size may differ by a hundredth,
    for plugins pad. `CopyModelError` if fewer than two calls have a kernel to compare with.

    Relative least squares on the plugin's whole call, no coefficient negative: the sum of
    (kernel + model - measured)² / measured².
    """
    alone = [row for row in raw if row["backend"] == RAW_BACKEND and row["op"] == "encode"]
    rows = []
    for row in ceph:
        if (row["backend"], row["op"]) != (FITTED_BACKEND, "encode"):
            continue
        of_code = [kernel for kernel in alone if kernel["scheme"] == row["scheme"]]
        same = [k for k in of_code if abs(k["size_bytes"] / row["size_bytes"] - 1) < 0.01]
        rows += [(row, kernel["seconds_median"] * 1e9) for kernel in same[:1]]
    if len(rows) < 2:
        raise CopyModelError(f"encode buffers: got {len(rows)} calls with a kernel, wanted at least 2")
    measured = np.array([row["seconds_median"] * 1e9 for row, _ in rows])
    kernels = np.array([kernel_ns for _, kernel_ns in rows])
    design = np.array(
        [
            (code.width, row["size_bytes"] * code.m / code.k)
            for row, _ in rows
            for code in [parse_scheme(row["scheme"])]
        ]
    )
    # Columns of like size keep the solver's tolerances meaningful.
    weighted = design / measured[:, None]
    norms = np.linalg.norm(weighted, axis=0)
    found, _ = nnls(weighted / norms, (measured - kernels) / measured)
    found = found / norms
    predicted = kernels + design @ found
    return BufferFit(
        shard_ns=float(found[0]),
        output_ns_per_byte=float(found[1]),
        errors={
            (row["scheme"], row["size_bytes"]): float(error)
            for (row, _), error in zip(rows, predicted / measured - 1, strict=True)
        },
    )


@cache
def ceph_buffers() -> EncodeBufferModel:
    """The shipped model of Ceph 16.2.15's buffers."""
    text = (files("stripesim.calibration.kernels.tables") / FILE).read_text("utf-8")
    document = tomllib.loads(text)["buffers"]
    return EncodeBufferModel(
        provenance={name: Provenance(row["provenance"], row["source"]) for name, row in document.items()},
        **{name: float(row["value"]) for name, row in document.items()},
    )
