"""Failure traces: each form on small files with every kind of damage, and the published files' own facts."""

import sqlite3
from pathlib import Path

import polars as pl
import pytest

from stripesim.models.problems import TraceError
from stripesim.traces import (
    EVENT_SCHEMA,
    FailureTrace,
    correlated_share,
    describe,
    failure_info,
    load,
    read_failures,
)
from stripesim.traces.failures.statistics import end_warnings, expected_share
from support.messages import states

DATA = Path(__file__).resolve().parents[2].parent / "shared/data/failure-traces"
published = pytest.mark.skipif(
    not DATA.exists(), reason=f"no published failure traces in {DATA}"
)

FTA = (
    "# event_id component_id node_id platform_id node_name event_type start stop end_reason\n"
    "0 0 1 5 n1 0 100 160 NULL\n1 0 1 5 n1 1 160 900 4022\n2 0 1 5 n1 0 900 1000 NULL\n"
    "3 0 2 5 n2 1 100 1000 NULL\n"
)
ALIBABA = (
    "model,failure_time,failure,app,r_5,disk_id,node_id,rack_id,machine_room_id\n"
    "A1,2018-01-02 00:00:30,1,WS,,7,70,700,1\nA1,2018-01-02 00:00:00,1,WS,,8,70,700,1\n"
    "A2,2018-06-01 00:00:00,0,WS,,7,71,700,1\n"
)
BACKBLAZE = (
    "date,serial_number,model,capacity_bytes,failure,vault_id,pod_id,smart_9_raw\n"
    "2023-01-01,S1,M,1,0,v1,p1,100\n2023-01-01,S2,M,1,0,v1,p2,50\n"
    "2023-01-02,S1,M,1,1,v1,p1,124\n2023-01-02,S2,M,1,0,v1,p2,74\n"
)
LANL = (
    "System,machine type,nodes,nodenumz,node prod,node decom,Prob Started,Prob Fixed,Facilities,Hardware,"
    "Human Error,Network,Undetermined,Software,Same Event\n"
    '2,cluster,49,0,5-Jun,current,6/21/2005 10:00,6/21/2005 11:00,,"CPU, board",,,,,No\n'
    "2,cluster,49,0,5-Jun,current,6/21/2005 14:00,6/21/2005 15:00,,,,,,OS,No\n"
    "3,smp,8,1,3-Jan,3-Dec,1/1/2003 0:00,1/2/2003 0:00,,,,,,,No\n"
)


def put(tmp_path: Path, text: str, name: str = "t") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "name"),
    [(FTA, "fta"), (ALIBABA, "alibaba-ssd"), (BACKBLAZE, "backblaze"), (LANL, "lanl")],
)
def test_each_form_is_recognised_and_gives_events_in_order(
    tmp_path: Path, text: str, name: str
) -> None:
    trace = load(put(tmp_path, text), strict=True)
    assert isinstance(trace, FailureTrace)
    assert trace.format == name
    assert dict(trace.events.schema) == EVENT_SCHEMA
    assert trace.events["time_s"].is_sorted()
    # The first node of the archive's file is down when its record starts.
    initially_down = int(name == "fta")
    downs = int((~trace.events["up"]).sum())
    assert describe(trace)["failures"] == downs - initially_down


def test_fta_gives_an_outage_the_reason_that_ended_the_time_before(
    tmp_path: Path,
) -> None:
    trace = read_failures(put(tmp_path, FTA), strict=True)
    assert trace.spans is not None
    rows = trace.spans.sort("component", "start_s").rows(named=True)
    assert [(row["component"], row["up"], row["reason"]) for row in rows] == [
        ("1.0", False, None), ("1.0", True, None), ("1.0", False, "4022"), ("2.0", True, None),
    ]  # fmt: skip
    assert [(row["left_cut"], row["right_cut"]) for row in rows] == [
        (True, False), (False, False), (False, True), (True, True),
    ]  # fmt: skip


def test_fta_takes_racks_from_the_adjacent_node_table(tmp_path: Path) -> None:
    path = put(tmp_path, FTA, "event_trace.tab")
    put(
        tmp_path,
        "# node_id ...\n"
        + "".join(f"{n} 5 n{n} NULL site{n}" + " NULL" * 11 + "\n" for n in (1, 2)),
        "node.tab",
    )
    trace = read_failures(path, strict=True)
    assert trace.spans is not None
    assert set(trace.spans.select("node", "rack").rows()) == {
        ("n1", "site1"),
        ("n2", "site2"),
    }


def test_damaged_nodes_are_reported_with_their_file(tmp_path: Path) -> None:
    path = put(tmp_path, FTA, "event_trace.tab")
    put(tmp_path, "1 5 n1 NULL site1\n", "node.tab")
    trace = read_failures(path)
    assert trace.faults.count == 1
    assert "node.tab:1: got 5 columns" in trace.faults.lines()[0]


def test_sqlite_form_equals_the_tab_form(tmp_path: Path) -> None:
    tab = read_failures(put(tmp_path, FTA), strict=True)
    names = "event_id component_id node_id platform_id node_name event_type "
    names += "event_start_time event_stop_time event_end_reason"
    base = sqlite3.connect(tmp_path / "t.db")
    base.execute(f"CREATE TABLE event_trace ({', '.join(names.split())})")
    for line in FTA.splitlines()[1:]:
        cells = [None if cell == "NULL" else cell for cell in line.split()]
        base.execute("INSERT INTO event_trace VALUES (?,?,?,?,?,?,?,?,?)", cells)
    base.commit()
    same = load(tmp_path / "t.db", strict=True)
    assert isinstance(same, FailureTrace)
    assert same.format == "fta-sqlite"
    assert same.events.equals(tab.events)
    base.execute("UPDATE event_trace SET event_type = 7 WHERE event_id = '1'")
    base.commit()
    base.close()
    (found,) = read_failures(tmp_path / "t.db").faults.lines()
    assert states(found, "t.db:row 2: got event_type '7' ... 0 ... 1")


def test_sqlite_files_without_the_table_or_broken(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "none.db").execute(
        "CREATE TABLE other (a)"
    ).connection.commit()
    whole = (tmp_path / "none.db").read_bytes()
    (tmp_path / "cut.db").write_bytes(whole[:100] + b"\xff" * 3000)
    for name in ("none.db", "cut.db"):
        with pytest.raises(TraceError, match="wanted an uncompressed SQLite file"):
            read_failures(tmp_path / name)


def test_backblaze_drives_are_censored_where_they_are_last_seen(tmp_path: Path) -> None:
    trace = read_failures(put(tmp_path, BACKBLAZE), strict=True)
    assert trace.spans is not None
    day = 86400
    first = 1672531200
    columns = (
        "component",
        "start_s",
        "stop_s",
        "node",
        "rack",
        "right_cut",
        "entry_age_s",
    )
    assert trace.spans.sort("component").select(columns).rows() == [
        ("M.S1", first, first + 2 * day, "p1", "v1", False, 360_000),
        ("M.S2", first, first + 2 * day, "p2", "v1", True, 180_000),
    ]
    assert trace.counts["drive-days"] == 4
    assert failure_info(trace)["rate_per_year"] == pytest.approx(365.25 / 4)


def test_lanl_spans_are_between_outages_and_end_with_the_node(tmp_path: Path) -> None:
    trace = read_failures(put(tmp_path, LANL), strict=True)
    assert trace.spans is not None
    hours = ((pl.col("stop_s") - pl.col("start_s")) / 3600).alias("hours")
    rows = trace.spans.with_columns(hours).sort("component", "start_s")
    assert rows.filter(pl.col("component") == "2.0")["hours"].to_list() == [1, 3, 1]
    # Up from 2 January to the end of December 2003, when the node was taken out.
    assert rows.filter((pl.col("component") == "3.1") & pl.col("up"))[
        "hours"
    ].to_list() == [364 * 24]
    assert rows.filter(pl.col("right_cut"))["component"].to_list() == ["3.1"]
    # One failure ends a recorded time up, that of 3 h. First failures end times that the file does not have.
    up_hours = 3 + 364 * 24
    assert failure_info(trace)["rate_per_year"] == pytest.approx(8766 / up_hours)
    assert trace.population == 57
    assert set(trace.events["reason"].drop_nulls()) == {
        "Hardware: CPU, board",
        "Software: OS",
        "not stated",
    }


@pytest.mark.parametrize(
    ("text", "bad", "said"),
    [
        (FTA, "4 0 2 5 n2 1 900 100 NULL", "a time from 900 to 100"),
        (FTA, "4 0 2 5 n2 1 900", "7 columns"),
        (FTA, "4 0 2 5 n2 x 900 1000 NULL", "event_type 'x'"),
        (
            ALIBABA,
            "A1,2018-13-02 00:00:00,1,WS,,7,70,700,1",
            "wanted YYYY-MM-DD",
        ),
        (ALIBABA, "A1,2018-01-02", "2 columns"),
        (
            BACKBLAZE,
            "2023-01-03,S1,M,1,maybe,v1,p1,1",
            "wanted YYYY-MM-DD",
        ),
        (
            LANL,
            "2,cluster,49,0,5-Jun,current,6/21/2005 11:00,6/21/2005 10:00,,,,,,,No",
            "an outage from",
        ),
        (
            LANL,
            "2,cluster,49,0,5-Jun,current,2/30/2005 11:00,6/21/2005 10:00,,,,,,,No",
            "an outage from",
        ),
        (LANL, '2,"cluster', "quotes in pairs"),
    ],
)
def test_damage_is_reported_with_its_line(
    tmp_path: Path, text: str, bad: str, said: str
) -> None:
    path = put(tmp_path, text + bad + "\n")
    whole = read_failures(put(tmp_path, text, "whole"))
    trace = read_failures(path)
    assert trace.events.equals(whole.events)
    (found,) = trace.faults.lines()
    assert found.startswith(f"{path}:{text.count(chr(10)) + 1}: got ")
    assert said in found
    with pytest.raises(TraceError):
        read_failures(path, strict=True)


def test_unusable_files(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="wanted"):
        read_failures(put(tmp_path, "hello\n"))
    with pytest.raises(TraceError, match="--format: got 'nope'"):
        load(put(tmp_path, FTA), format="nope")
    with pytest.raises(TraceError, match="got no event"):
        read_failures(put(tmp_path, ""), format="backblaze")
    with pytest.raises(TraceError, match="wanted"):
        read_failures(put(tmp_path, "a,b\n1,2\n"), format="lanl")


def test_correlated_share_by_hand() -> None:
    rows = [
        (0, "a", "n1", "r1"),
        (50, "b", "n1", "r1"),
        (200, "c", "n2", "r1"),
        (200, "d", "n3", None),
    ]
    events = pl.DataFrame(
        [(*row, False, None) for row in rows],
        schema=dict(
            zip(
                ("time_s", "component", "node", "rack", "up", "reason"),
                EVENT_SCHEMA.values(),
                strict=True,
            )
        ),
        orient="row",
    )
    trace = FailureTrace(events, None, "made", "made")
    assert correlated_share(trace, "node", 49) == 0
    assert correlated_share(trace, "node", 50) == 0.5
    # The one without a rack is left out.
    assert correlated_share(trace, "rack", 150) == 1
    assert correlated_share(trace, "rack", 60) == pytest.approx(2 / 3)
    # Four times dealt to two of one node: one pair in six lies 50 s apart, one 0 s.
    expected = expected_share(trace, "node", 50)
    assert expected is not None and 0 < expected < 0.5


def test_components_down_at_the_start_have_not_failed_together(tmp_path: Path) -> None:
    """Of ten nodes of a site, five are down at the start. The others fail an hour apart."""
    rows = [f"0 0 {node} 1 n{node} 0 0 60 NULL" for node in range(5)]
    rows += [f"0 0 {node} 1 n{node} 1 60 99000 NULL" for node in range(5)]
    for node in range(5, 10):
        failed_s = 3600 * node
        rows.append(f"0 0 {node} 1 n{node} 1 0 {failed_s} NULL")
        rows.append(f"0 0 {node} 1 n{node} 0 {failed_s} 99000 NULL")
    put(
        tmp_path,
        "".join(f"{n} 1 n{n} NULL site" + " NULL" * 11 + "\n" for n in range(10)),
        "node.tab",
    )
    trace = read_failures(
        put(tmp_path, "\n".join(rows) + "\n", "event_trace.tab"), strict=True
    )
    assert failure_info(trace)["failures"] == 5
    assert correlated_share(trace, "rack", 60) == 0
    assert correlated_share(trace, "rack", 3600) == 1


def test_times_up_that_are_missing_after_the_last_repair_are_said(
    tmp_path: Path,
) -> None:
    """Each node fails at 0 and 1,000 s, and is repaired in 10 s. The record lasts until 5,000 s."""
    rows = []
    for node in range(3):
        rows += [
            f"0 0 {node} 1 n{node} 0 {node} {node + 10} NULL",
            f"0 0 {node} 1 n{node} 1 {node + 10} {node + 1000} NULL",
            f"0 0 {node} 1 n{node} 0 {node + 1000} {node + 1010} NULL",
        ]
    rows.append("0 0 9 1 n9 1 0 5000 NULL")
    cut = read_failures(put(tmp_path, "\n".join(rows) + "\n"), strict=True)
    assert "records of 3 of 4 components end with a repair" in end_warnings(cut)[0]
    for node in range(3):
        rows.append(f"0 0 {node} 1 n{node} 1 {node + 1010} 5000 NULL")
    whole = read_failures(put(tmp_path, "\n".join(rows) + "\n"), strict=True)
    assert end_warnings(whole) == []


@published
def test_grid5000_agrees_with_its_facts() -> None:
    trace = load(DATA / "fta_g5k06/event_trace.tab.xz", strict=True)
    assert isinstance(trace, FailureTrace)
    assert (len(trace), trace.population) == (588_463, 1288)
    assert trace.spans is not None
    up = trace.spans.filter(pl.col("up"))
    down = trace.spans.filter(~pl.col("up"))
    for spans, mean_h, median_h in ((up, 32.4, 7.1), (down, 7.41, 0.05)):
        hours = (spans["stop_s"] - spans["start_s"]) / 3600
        assert hours.mean() == pytest.approx(mean_h, abs=0.05)
        assert hours.median() == pytest.approx(median_h, abs=0.05)
    assert (trace.spans["start_s"].min(), trace.spans["stop_s"].max()) == (
        1115811139,
        1163165604,
    )


@published
def test_lanl_agrees_with_its_facts_in_both_forms() -> None:
    archive = load(DATA / "fta_lanl/event_trace.tab.gz", strict=True)
    summary = describe(archive)
    assert (summary["events"], summary["components"]) == (43_325, 3577)
    assert summary["up_mean_h"] == pytest.approx(1780, abs=0.5)
    assert summary["down_mean_h"] == pytest.approx(5.88, abs=0.005)
    assert summary["down_p50_h"] == pytest.approx(0.97, abs=0.005)
    # The archive leaves out the times up after each node's last failure. The source has them.
    assert "3,576 of 3,577 components" in end_warnings(archive)[0]
    raw = load(
        DATA / "lanl_raw/LA-UR-05-7318-failure-data-1996-2005.csv.xz", strict=True
    )
    assert isinstance(raw, FailureTrace)
    assert end_warnings(raw) == []
    assert int((~raw.events["up"]).sum()) == 23_739
    assert raw.events["component"].n_unique() == 3577
    # The publication counts 22 systems of 4,750 nodes; this file has one system of 256 nodes more.
    assert raw.population == 4750 + 256


@published
def test_alibaba_agrees_with_its_facts() -> None:
    trace = load(DATA / "alibaba_ssd/ssd_failure_tag.csv.zip", strict=True)
    assert isinstance(trace, FailureTrace)
    assert len(trace) == 18_387
    assert trace.events["component"].str.extract(r"^(\w+)\.").n_unique() == 11
    facts = {"node": (0.10, 0.144, 0.29), "rack": (0.144, 0.264, 0.63)}
    for group, shares in facts.items():
        for within_s, share in zip((60, 86400, 30 * 86400), shares, strict=True):
            assert correlated_share(trace, group, within_s) == pytest.approx(
                share, abs=0.005
            )  # type: ignore[arg-type]
