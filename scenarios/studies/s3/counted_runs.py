"""Count operations and bytes of one S3 request to a gateway on the machine of study `releases`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.coding import parse_scheme
from stripesim.models.object_store.gateway import GatewayModel
from stripesim.models.problems import StepsError, one_line
from stripesim.scenarios.answers.explain.plan import PlacedS3Request, RequestQuestion
from stripesim.scenarios.answers.explain.record import RecordedStep, record
from stripesim.scenarios.studies.ceph16 import cluster
from stripesim.scenarios.studies.ceph16.measured import Coded
from stripesim.scenarios.studies.parameters import changed_models
from stripesim.scenarios.studies.releases.machine import models_of, pool_of
from stripesim.scenarios.studies.releases.measured import Pooled
from stripesim.scenarios.studies.s3.counted import QUANTITIES, CountedRow
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.ceph.clients.objects import S3Load
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.gateway.service import Gateways
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.ceph.pool import Pool

#: Set with the numbers of gateways.
GATEWAYS: Final = "nvme"
#: The pool of the bucket index on the measured cluster, and the shards of a bucket.
_INDEX_SCHEME: Final = "rep:3"
_INDEX_POOL_ID: Final = 6
_INDEX_PG_NUM: Final = 8
INDEX_SHARDS: Final = 11
_THREADS: Final = 512
# Steps of HTTP, which the measured counter of the public network leaves out.
_HTTP: Final = "gateway: "


def models_for(row: CountedRow) -> Models:
    """Build the models of a row's release, with those of gateways."""
    models = models_of(_pooled(row), parse_scheme(row.scheme))
    gateway = ParameterSet(GATEWAYS).model(GatewayModel, "gateway")
    return changed_models(replace(models, gateway=gateway))


def _pooled(row: CountedRow) -> Pooled:
    return Pooled(row.release, row.pool == "optimised")


def pool_for(row: CountedRow, models: Models) -> Pool:
    """Place a row's pool on the cluster, behind a gateway on a machine of its own."""
    scheme = parse_scheme(row.scheme)
    is_coded = scheme.kind == "erasure"
    coded = Coded(
        scheme=row.scheme,
        k=scheme.k if is_coded else 1,
        m=scheme.width - (scheme.k if is_coded else 1),
        stripe_unit_bytes=row.stripe_unit_bytes,
    )
    pool = pool_of(_pooled(row), coded, models=models)
    # The images of study `releases` carry allocation hints. A gateway's heads do not.
    pool = replace(pool, cluster=replace(pool.cluster, hinted_writes=False))
    index = parse_scheme(_INDEX_SCHEME)
    sets = cluster.acting_sets(index, pool_id=_INDEX_POOL_ID, pg_num=_INDEX_PG_NUM)
    assert models.gateway is not None
    layout = models.gateway.layout(row.object_bytes, kind_of(pool).append_bytes)
    gateways = Gateways(
        hosts=np.zeros(1, dtype=np.int64),
        on_osd_hosts=False,
        cores_count=cluster.CORES,
        threads_count=_THREADS,
        index_scheme=index,
        index_sets=sets,
        index_groups=np.arange(INDEX_SHARDS) % len(sets),
        index_shards=INDEX_SHARDS,
        exclusive=False,
        lists=row.op == "list",
        tails=len(layout.tail_bytes),
        width=scheme.width,
        unit_bytes=models.gateway.chunk_bytes,
    )
    return replace(pool, cluster=replace(pool.cluster, gateways=gateways))


def count_request(row: CountedRow, models: Models | None = None) -> dict[str, int]:
    """Run a row's request alone and return its counts by quantity."""
    models = models or models_for(row)
    pool = pool_for(row, models)
    load = S3Load(
        pattern="rand",
        block_bytes=row.object_bytes,
        image_bytes=row.object_bytes,
        read_fraction=0.0,
        requests=1,
        queue_depth=1,
        ops=(row.op,),
        op_shares=(1.0,),
        sizes_bytes=(row.object_bytes,),
        size_shares=(1.0,),
        list_keys=row.keys,
        slots=1,
        tls=False,
    )
    question = RequestQuestion(row.op, row.object_bytes, 0, "healthy", "prefilled", 0)
    request = PlacedS3Request(question, pool, load)
    plan = request.plan(models)
    steps, _, _ = record(plan.program(pool), request.role_name)
    counts = dict.fromkeys(QUANTITIES, 0)
    for step in steps:
        for name, amount in _counted(step).items():
            counts[name] += amount
    return counts


def simulate_counts(row: CountedRow) -> list[Row]:
    """Return the counts of a row by the ids of its claims, as result rows, or the reason for none."""
    try:
        counts = count_request(row)
    except StepsError as error:
        reason = f"a {row.op} of {row.size:,} takes too long a graph: {one_line(error)}"
        without = {"value": None, "reason": reason, "scheme": row.scheme}
        return [{"row_id": claim.id, **without} for claim in row.claims()]
    common = {"reason": None, "scheme": row.scheme}
    return [
        {"row_id": claim.id, "value": float(counts[claim.metric]), **common}
        for claim in row.claims()
    ]


def _counted(step: RecordedStep) -> dict[str, int]:
    """Return what a step adds to each quantity."""
    counted = step.counted
    is_http = step.label.startswith(_HTTP)
    counts = {
        "device_read": counted.get("device_read_bytes", 0),
        "device_write": counted.get("device_write_bytes", 0),
        "device_data_write": counted.get("device_write_bytes", 0)
        - counted.get("device_log_bytes", 0),
        "private_net": counted.get("private_net_bytes", 0),
        "transactions": int(step.label.endswith("kv submit") and step.word == "use"),
    }
    if not is_http:
        counts["osd_net"] = counted.get("public_net_bytes", 0)
        is_sent = step.role == "gateway.tx"
        counts["operations"] = counted.get("messages", 0) if is_sent else 0
    return counts
