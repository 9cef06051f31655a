"""An answer is printed, written and ended with a status in one place."""

import json
from pathlib import Path

import pytest
import typer

from stripesim.cli import output
from stripesim.scenarios.answers.run.collect import Collected
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import csv_text
from stripesim.scenarios.show.tables import Table


def test_an_incomplete_answer_says_so_beside_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = Answer(document={"rows": 1}, shown=["one row"], alerts=["stopped: half"])
    output.deliver(answer, output.destination(None, "-"))
    printed = capsys.readouterr()
    assert printed.out == '{\n "rows": 1\n}\n'
    assert printed.err == "stopped: half\n"


def test_the_status_of_an_interruption_outranks_a_refusal() -> None:
    answer = Answer(document={}, refusals=["a: check"], status=130)
    with pytest.raises(typer.Exit) as ended:
        output.deliver(answer, output.destination(None, "-"))
    assert ended.value.exit_code == 130


def test_a_closed_pipe_does_not_cost_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a reader that has closed the pipe
    def closed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("stripesim.cli.output._print", closed)
    answer = Answer(document={"a": 1}, saved_as="a.json")
    # When the answer is delivered
    with pytest.raises(BrokenPipeError):
        output.deliver(answer, output.destination(tmp_path, None))
    # Then its files are there
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"a": 1}


def test_all_problems_of_a_destination_are_reported_together() -> None:
    with pytest.raises(ValueError, match="--report: got no --out") as caught:
        output.destination(None, None, report=True, width="89mm")
    keys = [line.partition(":")[0] for line in str(caught.value).splitlines()]
    assert keys == ["--report", "--width"]


def test_a_line_separates_the_groups_of_a_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = Table("", ["cell"], [["a"], ["b"], ["c"]], groups=[1])
    output.deliver(Answer(document={}, shown=[table]), output.destination(None, None))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    rows = lines[lines.index("a") :]
    assert (rows.index("b"), rows.index("c")) == (2, 3)


def test_csv_holds_keys_that_first_rows_lack_and_truth_as_json() -> None:
    rows = [{"a": None, "b": True}, {"a": 0.5, "c": "x, y"}]
    assert csv_text(rows) == 'a,b,c\n,true,\n0.5,,"x, y"\n'


def test_contributions_of_cells_add_up_in_their_order() -> None:
    first = Collected(requests=2, rows=[{"scheme": "rep:3"}], refusals=("a",))
    second = Collected(requests=3, rows=[{"scheme": "rs:4,2"}], fingerprints=b"x")
    both = first + second
    assert both.requests == 2 + 3
    assert [row["scheme"] for row in both.rows] == ["rep:3", "rs:4,2"]
    assert (both.refusals, both.fingerprints) == (("a",), b"x")
    # Adding changes neither of them.
    assert len(first.rows) == len(second.rows) == 1
