"""Fit Ceph's cost around the encode kernel: times of its plugins minus those of the bare kernel."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from stripesim.models.coding.parse import parse_scheme
from stripesim.models.kernel.buffers import EncodeBufferModel
from stripesim.models.provenance import Provenance

FILE = "ceph-16.2.15-buffers.toml"
#: Plugin and technique that are fitted, and the kernel that they are assumed to call.
FITTED_BACKEND = "isa:cauchy"
RAW_BACKEND = "isal_cauchy_avx2"


def fit_buffers(
    ceph: Iterable[Mapping[str, Any]], raw: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, float], dict[tuple[str, int], float]]:
    """Fit the buffer model to encode calls of Ceph's plugin.

    Parameters
    ----------
    ceph
        Rows of Ceph's plugins, of which only `FITTED_BACKEND` counts.
    raw
        Rows of the bare kernel. Their sizes may differ from Ceph's by 1 %, because plugins pad.

    Returns
    -------
    tuple
        The numbers of `EncodeBufferModel` by name [ns, ns/B], and predicted / measured − 1 by scheme and
        size.

    Notes
    -----
    Relative non-negative least squares on whole calls of the plugin: minimises the sum of
    (kernel + model - measured)² / measured².
    """
    alone = [
        row for row in raw if row["backend"] == RAW_BACKEND and row["op"] == "encode"
    ]
    rows = []
    for row in ceph:
        if (row["backend"], row["op"]) == (FITTED_BACKEND, "encode"):
            of_code = [kernel for kernel in alone if kernel["scheme"] == row["scheme"]]
            same = [
                k
                for k in of_code
                if abs(k["size_bytes"] / row["size_bytes"] - 1) < 0.01
            ]
            rows += [
                (row, parse_scheme(row["scheme"]), kernel["seconds_median"] * 1e9)
                for kernel in same[:1]
            ]
    measured = np.array([row["seconds_median"] * 1e9 for row, _, _ in rows])
    kernels = np.array([kernel_ns for _, _, kernel_ns in rows])
    design = np.array(
        [(code.width, row["size_bytes"] * code.m / code.k) for row, code, _ in rows]
    )
    # Columns of similar magnitude keep the solver's tolerances meaningful.
    weighted = design / measured[:, None]
    norms = np.linalg.norm(weighted, axis=0)
    from scipy.optimize import nnls

    coefficients = nnls(weighted / norms, (measured - kernels) / measured)[0] / norms
    errors = (kernels + design @ coefficients) / measured - 1
    return dict(
        zip(("shard_ns", "output_ns_per_byte"), coefficients.tolist(), strict=True)
    ), {
        (row["scheme"], row["size_bytes"]): float(error)
        for (row, _, _), error in zip(rows, errors, strict=True)
    }


@cache
def ceph_buffers() -> EncodeBufferModel:
    """Return the shipped model of Ceph 16.2.15's buffers."""
    text = (files("stripesim.calibration.kernels.tables") / FILE).read_text("utf-8")
    document = tomllib.loads(text)["buffers"]
    return EncodeBufferModel(
        provenance={
            name: Provenance(row["provenance"], row["source"])
            for name, row in document.items()
        },
        **{name: float(row["value"]) for name, row in document.items()},
    )
