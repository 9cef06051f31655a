"""Study nvme: what a real OSD does with a backlog, as README.md states it."""

import csv
from importlib.resources import files

import numpy as np
import pytest


@pytest.fixture(scope="module")
def rows():
    source = files("stripesim.scenarios.studies.nvme") / "data" / "backlog.csv"
    return list(csv.DictReader(source.read_text("utf-8").splitlines()))


def powers(rows, column, per):
    """Return the powers of the admitted requests and of all over admitted, in one fit with a level per run.

    Transactions of clients' writes and of replicas differ, so their shares have a factor of their own.
    """
    columns = ("client_ops", "replica_writes") if per == "transactions" else (per,)
    known = [row for row in rows if row[column] and all(row[key] for key in columns)]
    runs = sorted({row["run"] for row in known})
    terms = []
    logarithms = []
    for row in known:
        at_osd = float(row["in_flight_at_osd"])
        admitted = float(row["admitted_mean"] or at_osd)
        parts = [float(row[key]) for key in columns]
        terms.append(
            [float(row["run"] == run) for run in runs]
            + [
                np.log(admitted + 1),
                np.log((at_osd + 1) / (min(admitted, at_osd) + 1)),
                parts[0] / sum(parts),
            ]
        )
        logarithms.append(np.log(float(row[column]) / sum(parts)))
    found = np.linalg.lstsq(np.array(terms), np.array(logarithms), rcond=None)[0]
    return found[len(runs)], found[len(runs) + 1]


def test_an_osd_admits_as_many_as_the_limit(rows):
    limited = [row for row in rows if row["limit"]]
    most = {row["limit"]: 0 for row in limited}
    for row in limited:
        most[row["limit"]] = max(most[row["limit"]], int(row["admitted_max"]))
    assert most == {"16": 16, "64": 64, "256": 256}


@pytest.mark.parametrize(
    ("op", "column", "per", "of_admitted", "of_door"),
    [
        ("read", "processor_us", "client_ops", -0.08, -0.02),
        ("read", "switches", "client_ops", -0.13, -0.02),
        ("write", "processor_us", "transactions", -0.28, 0.00),
        ("write", "switches", "transactions", -0.68, 0.04),
        ("write", "kv_syncs", "transactions", -0.79, -0.04),
    ],
)
def test_requests_get_cheaper_by_those_admitted_and_not_by_those_at_the_door(
    rows, op, column, per, of_admitted, of_door
):
    found = powers([row for row in rows if row["op"] == op], column, per)
    assert found == pytest.approx((of_admitted, of_door), abs=0.01)
