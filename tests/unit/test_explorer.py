"""The explorer of a sweep: axes, metrics and cells from rows, and nothing that a page could run."""

import json
import re

import polars as pl

from stripesim.scenarios.answers.sweep.explorer import explorer_of, explorer_page

DEPTH = "workload.queue_depth"
SIZES = "workload.block_sizes_bytes"


def means(depths=(1, 8), sizes=(4096, 65536), schemes=("rep:3", "rs:4,2"), **more):
    """Make rows whose throughput [B/s] is depth × size × 1000, plus 1 for the second scheme."""
    rows = [
        {
            DEPTH: depth,
            SIZES: size,
            "scheme": scheme,
            "op": "write",
            "pattern": "rand",
            "block_size_bytes": size,
            "replications": 2,
            "steady": True,
            "bottleneck": "cpu",
            "throughput_bytes_per_s": 1e3 * depth * size + number,
            "throughput_bytes_per_s_ci_low": 900.0 * depth * size,
            "throughput_bytes_per_s_ci_high": 1100.0 * depth * size,
            **more,
        }
        for depth in depths
        for size in sizes
        for number, scheme in enumerate(schemes)
    ]
    return pl.DataFrame(rows)


def page_of(explorer, title="grid"):
    return explorer_page(explorer, kind="Sweep", title=title, introduction="")


def data_of(page):
    (text,) = re.findall(
        r'<script type="application/json" id="explorer-data">(.*?)</script>', page
    )
    return json.loads(text)


def test_axes_are_what_varies_and_each_only_once():
    # given: block sizes are swept, so a key and a column of cells hold the same values
    # when
    explorer = explorer_of(means(), [DEPTH, SIZES])
    # then
    assert [axis.key for axis in explorer.axes] == [DEPTH, SIZES]
    assert explorer.axes[0].texts == ("1", "8")
    assert explorer.axes[1].texts == ("4KiB", "64KiB")
    assert explorer.data["schemes"] == ["3-replication", "RS(4,2)"]


def test_the_rate_of_objects_is_in_requests_per_second():
    explorer = explorer_of(means(iops=10.0), [DEPTH])
    assert dict(explorer.metrics)["iops"] == "rate [IOPS]"
    of_objects = explorer_of(means(iops=10.0), [DEPTH], of_objects=True)
    assert dict(of_objects.metrics)["iops"] == "rate [requests/s]"
    units = {one["key"]: one["unit"] for one in of_objects.data["metrics"]}
    assert units == {"throughput_bytes_per_s": "MB/s", "iops": "requests/s"}


def test_each_cell_is_at_the_place_of_its_coordinates():
    explorer = explorer_of(means(), [DEPTH, SIZES])
    cells = explorer.data["cells"]
    row = cells.index([0, 1, 1])
    metric = explorer.data["metrics"][0]
    # 8 × 65,536 B × 1,000 per second = 524.288 MB/s; five digits remain. The interval is ±10 %.
    assert metric["heading"] == "throughput [MB/s]"
    assert metric["values"][row] == 524.29
    assert (metric["low"][row], metric["high"][row]) == (471.86, 576.72)


def test_numbers_are_ascending_and_names_keep_their_order():
    explorer = explorer_of(means(depths=(64, 1, 8)), [DEPTH, SIZES])
    assert explorer.axes[0].values == (1, 8, 64)
    rows = pl.concat(
        [
            means().with_columns(generation=pl.lit(name))
            for name in ("tentacle", "squid")
        ]
    )
    explorer = explorer_of(rows, ["generation", DEPTH, SIZES])
    assert explorer.axes[0].texts == ("tentacle", "squid")
    assert not explorer.axes[0].numeric


def test_keys_that_change_together_share_one_slider():
    rows = means(sizes=(4096,)).with_columns((pl.col(DEPTH) * 3).alias("cluster.hosts"))
    (axis,) = explorer_of(rows, [DEPTH, "cluster.hosts", SIZES]).axes
    assert axis.texts == ("1, hosts 3", "8, hosts 24")


def test_a_failed_cell_keeps_its_place_and_its_reason():
    # given: depth 32 failed for one scheme and has no row at all
    failed = [
        {
            DEPTH: 32,
            SIZES: 4096,
            "scheme": "rs:4,2",
            "op": "write",
            "pattern": "rand",
            "block_size_bytes": 4096,
            "reason": "killed",
        }
    ]
    # when
    explorer = explorer_of(means(), [DEPTH, SIZES], failed)
    # then
    assert explorer.axes[0].texts == ("1", "8", "32")
    assert explorer.data["failed"] == [[[1, 2, 0], "killed"]]
    assert [1, 2, 0] not in explorer.data["cells"]


def test_without_anything_to_move_along_there_is_no_explorer():
    alone = means(depths=(1,), sizes=(4096,))
    assert explorer_of(alone, [DEPTH]) is None
    assert explorer_of(means().clear(), [DEPTH, SIZES]) is None


def test_texts_of_the_user_cannot_end_the_script():
    # given
    evil = "</script><script>alert(1)</script>"
    rows = pl.concat(
        [means().with_columns(generation=pl.lit(name)) for name in (evil, "squid")]
    )
    # when
    page = page_of(explorer_of(rows, ["generation", DEPTH, SIZES]), title=evil)
    # then: only the script of the template, and the text as it was
    assert page.count("<script>") == 1
    assert data_of(page)["axes"][0]["texts"][0] == evil


def test_ten_thousand_rows_stay_small():
    rows = means(depths=range(1, 101), sizes=[4096 * n for n in range(1, 51)])
    page = page_of(explorer_of(rows, [DEPTH, SIZES]))
    assert len(data_of(page)["cells"]) == 10_000
    # One metric with an interval: coordinates, three numbers and the bottleneck are below 80 bytes a row.
    assert len(page) < 800_000
