"""Fit the proxy to calibration rows, and file sizes to Figure 4's curves of NC.

``python -m stripesim.scenarios.studies.erasurebench2016.fit`` prints the fitted part of ``parameters.toml``.
Of RS and LRC it sees only Table II, the decode rates and the duration of RS's write in Figure 6.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.models.provenance import Provenance
from stripesim.scenarios.studies.erasurebench2016 import sequences
from stripesim.scenarios.studies.erasurebench2016.codes import codes, expected
from stripesim.scenarios.studies.erasurebench2016.experiment_numbers import size_bytes
from stripesim.scenarios.studies.erasurebench2016.source import STUDY
from stripesim.scenarios.studies.lookup import claims_of, published
from stripesim.scenarios.studies.staged_fit import FitStage, fit_stages
from stripesim.sim.systems.kv_proxy.costs import ProxyModel

Floats = npt.NDArray[np.float64]
NS_PER_S = 1e9
SEED = 1
STORE_NODES = 100
LATENCY_BYTES = 16 << 20


@dataclass(frozen=True)
class ProxyFit:
    """A fitted stage, with intervals at 95 % from the scatter of residuals and the curvature."""

    stage: FitStage
    values: dict[str, float]
    confidence_intervals: dict[str, tuple[float, float]]
    residual_sd: float


_CLAIMS = {claim.id: claim for claim in claims_of(STUDY)}
#: A time of a fit: simulated by a model, and published [s].
Case = tuple[Callable[[ProxyModel], float], float]


def zero_model() -> ProxyModel:
    """Return a proxy that takes no time, except for the published decode rates."""
    numbers: dict[str, Any] = {}
    for stage in fit_stages(STUDY):
        numbers |= dict.fromkeys(stage.parameters, 0.0)
    del numbers["spread_fraction"]
    for claim in claims_of(STUDY):
        if claim.metric == "decode_throughput":
            rate = value_of(claim.id) * sequences.MEGABYTE
            numbers[f"read_{claim.scheme.lower()}_ns_per_byte"] = NS_PER_S / rate
    return ProxyModel(
        provenance={name: Provenance("assumed", "before a fit") for name in numbers},
        **numbers,
    )


def encode_seconds(model: ProxyModel, code: str, megabytes: int) -> float:
    """Return the time of the encoder alone for a number of megabytes [s], as in Table II."""
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
    """Return the time to write or read a lone file [s]."""
    run = sequences.run_write if op == "write" else sequences.run_read
    files = sequences.stored(
        sequences.file_writes(size_bytes, fuse=fuse), code, nodes=nodes, seed=SEED
    )
    return run(files, fuse=fuse, model=model, engine=engine).elapsed_ns / NS_PER_S


def _archive_seconds(model: ProxyModel) -> float:
    httpd = sequences.stored_archive("httpd", "RS", nodes=STORE_NODES, seed=SEED)
    return sequences.run_write(httpd, model=model).elapsed_ns / NS_PER_S


def _case(claim: Claim) -> Case:
    """Return the simulation of a claim of the proxy, and its published time."""
    value = value_of(claim.id)
    if claim.metric == "duration (last sample)":
        return _archive_seconds, value
    latency = re.fullmatch(r"median_write_latency_16MiB_(\d+)nodes", claim.metric)
    if latency is not None:
        lone = partial(file_seconds, code=claim.scheme, size_bytes=LATENCY_BYTES)
        nodes = int(latency[1])
        return partial(lone, op="write", fuse=True, nodes=nodes), value
    megabytes = size_bytes(claim) // sequences.MEGABYTE
    if claim.metric == "encode_throughput":
        encode = partial(encode_seconds, code=claim.scheme, megabytes=megabytes)
        return encode, megabytes / value
    lone = partial(
        file_seconds,
        code=claim.scheme,
        size_bytes=size_bytes(claim),
        op=claim.op,
        fuse=claim.metric == "throughput FUSE",
    )
    return lone, megabytes / value


def fit_proxy(stage: FitStage, model: ProxyModel) -> ProxyFit:
    """Fit one part of the proxy to its rows. The model has the previous fits, and zeros for this one.

    One operation runs at a time, so a time is a sum of parameters with whole-number weights. One engine run
    for each parameter gives the weights. Then Σ (simulated / published - 1)² has one minimum among
    non-negative numbers, found without a start.
    """
    from scipy.optimize import lsq_linear
    from scipy.stats import t

    cases = [_case(_CLAIMS[row]) for row in stage.rows]
    stated = np.array([seconds for _, seconds in cases])

    def times(**changed: Any) -> Floats:
        tried = replace(model, **changed)
        return np.array([simulate(tried) for simulate, _ in cases])

    base = times()
    names = list(stage.parameters)
    units = np.array(list(stage.start.values()), dtype=float)
    weights = [
        (times(**{key: unit}) - base) / stated
        for key, unit in zip(names, units.tolist(), strict=True)
    ]
    design = np.stack(weights, axis=1)
    scale = np.linalg.norm(design, axis=0)
    solution = lsq_linear(design / scale, 1 - base / stated, bounds=(0, np.inf))
    residuals = design @ (solution.x / scale) - (1 - base / stated)
    freedom = len(cases) - len(names)
    sd = math.sqrt(float(residuals @ residuals) / freedom)
    covariance = np.linalg.pinv(design.T @ design)
    values = solution.x / scale * units
    half = float(t.ppf(0.975, freedom)) * sd * np.sqrt(np.diag(covariance)) * units
    return ProxyFit(
        stage=stage,
        values=dict(zip(names, values.tolist(), strict=True)),
        confidence_intervals={
            key: (max(0.0, value - width), value + width)
            for key, value, width in zip(
                names, values.tolist(), half.tolist(), strict=True
            )
        },
        residual_sd=sd,
    )


def fit_spread(stage: FitStage) -> ProxyFit:
    """Fit the spread of file sizes, one number for both real archives."""
    from scipy.optimize import least_squares
    from scipy.stats import t

    stated: dict[str, list[float]] = {}
    killed: dict[str, list[int]] = {}
    for row in stage.rows:
        claim = _CLAIMS[row]
        stated.setdefault(claim.pattern, []).append(value_of(row))
        share = claim.metric.removeprefix("available_files_at_").split("_")[0]
        killed.setdefault(claim.pattern, []).append(round(100 * float(share)))

    def errors(x: Floats) -> Floats:
        listed = []
        for name, shares in stated.items():
            writes = np.bincount(sequences.archive_writes(name, float(x[0])).files)
            readable = expected(
                codes()["NC"], writes, nodes=STORE_NODES, killed=killed[name]
            )
            listed.append(readable - shares)
        return np.concatenate(listed)

    # The beginning of files in the archive's records jumps with their sizes, so the step is wide.
    solution = least_squares(errors, np.ones(1), diff_step=0.1, xtol=1e-3)
    freedom = len(solution.fun) - 1
    sd = math.sqrt(float(solution.fun @ solution.fun) / freedom)
    half = float(t.ppf(0.975, freedom)) * sd / float(np.linalg.norm(solution.jac))
    value = float(solution.x[0])
    return ProxyFit(
        stage,
        {"spread_fraction": value},
        {"spread_fraction": (value - half, value + half)},
        sd,
    )


def fit_all() -> tuple[ProxyFit, ...]:
    """Run all fits. The httpd archive's writes depend on the spread in ``parameters.toml``."""
    spread, *stages = fit_stages(STUDY)
    model = zero_model()
    fits = [fit_spread(spread)]
    for stage in stages:
        fits.append(fit_proxy(stage, model))
        numbers: dict[str, Any] = dict(fits[-1].values)
        model = replace(model, **numbers)
    return tuple(fits)


def value_of(claim_id: str) -> float:
    """Return the published value of a claim."""
    return published(STUDY)[claim_id]


def main() -> None:
    """Fit and print."""
    for fit in fit_all():
        table = "archives" if fit.stage.group == "spread" else "proxy"
        print(f"# {fit.stage.group}: scatter {100 * fit.residual_sd:.1f} %")
        for name, value in fit.values.items():
            low, high = fit.confidence_intervals[name]
            print(f'[{table}.{name}]\nvalue = {value:.6g}\nprovenance = "fitted"')
            print(
                f'source = "{fit.stage.source}"\nconfidence_interval = [{low:.4g}, {high:.4g}]\n'
            )


if __name__ == "__main__":
    main()
