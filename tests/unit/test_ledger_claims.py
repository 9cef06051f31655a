"""Reading a claims file: accepted rows, and refused rows with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripesim.calibration.ledger.verdicts import load_claims
from stripesim.models.problems import MeasuredError
from support.messages import states

HEADER = (
    "id,paper,locus,metric,scheme,baseline,pattern,op,block_size,value,unit,kind,role,compare,"
    "tolerance_percent,note"
)
DATA = Path(__file__).resolve().parents[2].parent / "shared/data"


def row(value="179", role="held-out", compare="value", tolerance="20", key="k-1"):
    return f"{key},k,IV,speed_avg,RS,rep,seq,write,avg,{value},MB/s,exact,{role},{compare},{tolerance},n"


def write(folder, *rows, header=HEADER, name="claims.csv"):
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_a_row_is_taken_over_as_it_stands(tmp_path):
    (claim,) = load_claims(write(tmp_path, row()))
    assert (claim.published, claim.tolerance, claim.role, claim.compare) == (
        179.0,
        0.2,
        "held-out",
        "value",
    )
    assert claim.statement == "speed avg: RS seq write avg against rep"
    assert claim.disputed is None


@pytest.mark.parametrize(
    ("value", "compare", "published"),
    [
        ('"1,2,4"', "text", (1.0, 2.0, 4.0)),
        ("jerasure", "text", None),
        ('"4+2, 1"', "text", None),
        ("70-75", "range", (70.0, 75.0)),
        ("32.3-72.0", "range", (32.3, 72.0)),
        ("-41 .. -19.8", "range", (-41.0, -19.8)),
        ("<1", "at-most", 1.0),
        ("50", "at-most", 50.0),
        ("decreasing", "trend", None),
        ("7e8", "extremum", 7e8),
    ],
)
def test_published_values(tmp_path, value, compare, published):
    (claim,) = load_claims(write(tmp_path, row(value=value, compare=compare)))
    assert claim.published == published
    assert claim.published_text == value.strip('"')


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(role="guess"), "role: got 'guess'"),
        (row(compare="about"), "compare: got 'about'"),
        (row(value="fast"), "value: got 'fast'"),
        (row(value="<1"), "value: got '<1'"),
        (row(value="nan"), "value: got 'nan'"),
        (row(value="75-70", compare="range"), "value: got '75-70'"),
        (row(value="75", compare="range"), "value: got '75'"),
        (row(tolerance=""), "tolerance_percent: got ''"),
        (row(tolerance="0"), "tolerance_percent: got 0.0 ... 0"),
        (row(key=""), "id: got nothing"),
        (row() + ",extra", "got a row"),
    ],
)
def test_bad_rows_are_named_by_line(tmp_path, bad, message):
    with pytest.raises(MeasuredError) as caught:
        load_claims(write(tmp_path, row(key="k-0"), bad))
    assert str(caught.value).startswith("claims.csv:3: ")
    assert states(str(caught.value), message)


def test_all_faults_are_reported_together(tmp_path):
    path = write(tmp_path, row(role="guess"), row(key="k-2"), row(key="k-2"))
    with pytest.raises(MeasuredError) as caught:
        load_claims(path)
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        "claims.csv:2",
        "claims.csv:4",
    ]


def test_problems_of_claims_and_of_disputes_are_reported_together(tmp_path):
    claims = write(tmp_path, row(role="guess"), row(key="k-2") + ",extra")
    doubts = write(tmp_path, "k-9,unknown", header="id,reason", name="doubts.csv")
    with pytest.raises(MeasuredError) as caught:
        load_claims(claims, disputed=doubts)
    assert sorted(line.split(": ")[0] for line in str(caught.value).splitlines()) == [
        "claims.csv:2",
        "claims.csv:3",
        "doubts.csv:2",
    ]


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path):
    path = tmp_path / "claims.csv"
    path.write_text(f"{HEADER}\n{row()}\n", encoding="utf-8-sig")
    assert load_claims(path)[0].id == "k-1"


def test_missing_file_and_missing_column(tmp_path):
    with pytest.raises(
        MeasuredError, match="got No such file or directory, wanted a CSV"
    ):
        load_claims(tmp_path / "none.csv")
    with pytest.raises(MeasuredError, match="got no column note"):
        load_claims(write(tmp_path, header=HEADER.removesuffix(",note")))


def test_only_counted_roles_need_a_tolerance(tmp_path):
    (claim,) = load_claims(write(tmp_path, row(role="derived", tolerance="")))
    assert claim.tolerance is None


def test_disputes_mark_rows_and_must_name_them(tmp_path):
    claims = write(tmp_path, row())
    good = write(
        tmp_path, "k-1,contradicts table 2", header="id,reason", name="disputed.csv"
    )
    assert load_claims(claims, disputed=good)[0].disputed == "contradicts table 2"
    assert load_claims(claims, disputed=tmp_path / "absent.csv")[0].disputed is None
    bad = write(tmp_path, "k-9,unknown", "k-1,", header="id,reason", name="bad.csv")
    with pytest.raises(MeasuredError) as caught:
        load_claims(claims, disputed=bad)
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        "bad.csv:2",
        "bad.csv:3",
    ]


def test_every_published_claim_can_be_read():
    path = DATA / "published/claims.csv"
    if not path.exists():
        pytest.skip(
            f"published claims are missing: no {path.relative_to(DATA.parents[1])} beside the checkout"
        )
    claims = load_claims(path)
    assert len(claims) == path.read_text().count("\n") - 1
    words = {claim.compare for claim in claims if claim.published is None}
    assert words == {"text", "ordering", "trend"}
