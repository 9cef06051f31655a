"""Every study has one shape: its files, its options, and parameters that a setting can change."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from stripesim.calibration.ledger.verdicts import judge
from stripesim.cli.output import deliver, destination
from stripesim.cli.study import parse_sets
from stripesim.models.problems import AnswerError, MeasuredError, Problem, RefusedError
from stripesim.scenarios.studies.base import (
    Study,
    StudyResult,
    chosen,
    study_provenance,
)
from stripesim.scenarios.studies.description import (
    Ablation,
    Option,
    StudyDescription,
)
from stripesim.scenarios.studies.lookup import claims_of
from stripesim.scenarios.studies.parameters import (
    Changes,
    ParameterFile,
    apply_changes,
    changes_applied,
)
from stripesim.scenarios.studies.registry import STUDIES, study_named
from stripesim.scenarios.studies.tasks import Call, run_tasks
from stripesim.sim.observe.audit import refuse
from support.messages import states

FOLDER = Path(__file__).resolve().parents[2] / "scenarios" / "studies"
CLAIM = "dachary2013-142"


def doubled(value):
    """Simulate the small study."""
    cell = {"scheme": "none", "op": "write", "pattern": "seq", "block_size_bytes": 4096}
    return [{**cell, "value": 2 * value}]


def failing():
    raise ValueError("got nothing")


def failing_by_key():
    raise MeasuredError(
        Problem(place="rows.csv:2", key="bs", got="0", wanted="1 or more")
    )


class Small(Study):
    """A study of one number."""

    name = "exstorus2019"
    description = StudyDescription(
        summary="small",
        title="small",
        introduction="small",
        options=[
            Option(name="data", flag="--data", kind="path", help=""),
            Option(name="parts", flag="--part", help="", several=True, selects=True),
        ],
        ablations={"none": Ablation(says="no disks", sets={"hdd.disks_count": 0.5})},
    )

    def parameters(self):
        return ParameterFile("exstorus2019").listed()

    def tasks(self, setting):
        return [
            Call(
                "one",
                doubled,
                (ParameterFile("exstorus2019").number("hdd", "disks_count"),),
            )
        ]

    def result(self, setting, tasks, rows):
        value = rows[0][0]["value"]
        return StudyResult(
            ledger=judge(
                claims_of("dachary2013"), {CLAIM: value}, parameters=self.parameters()
            ),
            frame=lambda: self.frame(rows),
            provenance=study_provenance(self.name, setting.engine),
        )

    def figures(self, result):
        return {}


def simulated(result):
    return next(
        entry.simulated for entry in result.ledger.entries if entry.claim.id == CLAIM
    )


def test_the_registry_names_every_folder_and_each_has_the_same_files():
    folders = {path.parent.name for path in FOLDER.glob("*/study.py")}
    assert set(STUDIES) == folders
    for name in STUDIES:
        assert study_named(name).name == name
        here = {path.name for path in (FOLDER / name).iterdir()}
        assert {"study.py", "study.toml", "figures.toml"} <= here, name
        assert not {
            file
            for file in here
            if file.startswith(("draw", "calibrate", "experiments"))
        }, name


def test_a_study_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="study: got 'nothing'"):
        study_named("nothing")


@pytest.mark.parametrize("name", STUDIES)
def test_every_setting_of_an_ablation_names_something_of_its_study(name):
    study = study_named(name)
    for ablation in study.description.ablations.values():
        changes = study.changes(ablation.sets)
        assert len(changes.numbers) + len(changes.scenario) == len(ablation.sets)


def test_a_parameter_changes_what_is_simulated_and_is_listed_as_changed():
    result = Small().run(sets={"hdd.disks_count": 3})
    assert simulated(result) == 6
    (row,) = (
        row for row in result.ledger.parameters if row["name"] == "hdd.disks_count"
    )
    assert (row["value"], row["provenance"]) == (3, "given")
    assert result.provenance["changed"] == ["hdd.disks_count=3"]
    assert simulated(Small().run()) == 20


def test_an_ablation_is_shown_next_to_the_full_run():
    result = Small().run(ablate=["all"])
    assert (simulated(result), simulated(result.ablated["none"])) == (20, 1)
    (row,) = (row for row in result.to_json()["ablations"] if row["id"] == CLAIM)
    assert (row["ablation"], row["baseline"], row["ratio"]) == ("none", 20, 1 / 20)
    table = result.ablation_table()
    assert len(table.rows) == 2 and len(table.rows[0]) == len(table.columns)


def printed(capsys, result, *, everything=False):
    """Return what the command prints of a result."""
    answer = Small().answer(result, everything=everything)
    deliver(answer, destination(None, None))
    return capsys.readouterr().out


def test_a_comparison_is_printed_without_the_claims_as_calibrated(capsys):
    result = Small().run(ablate=["all"])
    alone = printed(capsys, result)
    assert "as calibrated" in alone
    assert "--all also prints the claims" in alone
    assert CLAIM not in alone.replace(f"{CLAIM} ×", "")
    assert CLAIM in printed(capsys, result, everything=True)


def test_a_part_of_a_study_is_printed_with_its_own_claims_only(capsys):
    # Given a study of many claims whose runs compute one of them
    claims = claims_of("dachary2013")
    others = [claim.id for claim in claims if claim.id != CLAIM]
    part = Small().run(parts=["one"])
    # Then the others are counted, and listed only on request
    text = printed(capsys, part)
    assert not [claim for claim in others if claim in text]
    assert f"{len(others)} claims need runs that were left out" in text
    everything = printed(capsys, part, everything=True)
    assert all(claim in everything for claim in others)
    # And a whole run leaves out nothing
    assert not Small().run(parts=["all"]).is_partial
    assert not Small().run().is_partial


def test_a_changed_study_is_written_with_its_ablations(tmp_path):
    study = Small()
    written = {
        path.relative_to(tmp_path).as_posix()
        for path in study.save(study.run(ablate=["none"]), tmp_path)
    }
    names = {
        "ledger.json",
        "ledger.csv",
        "report.html",
        "results.csv",
        "provenance.json",
    }
    assert names <= written and {f"none/{name}" for name in names} <= written
    assert "hdd.disks_count=0.5" in (tmp_path / "none" / "report.html").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (
            {"hdd.disk": 3},
            "hdd.disk: got no parameter of study exstorus2019, wanted one of its 24, such as hdd.disks",
        ),
        (
            {"hdd.disks_count": "many"},
            "hdd.disks_count: got many, wanted a number",
        ),
        ({"hdd.disks_count": True}, "hdd.disks_count: got True, wanted a number"),
    ],
)
def test_a_wrong_setting_is_refused(sets, says):
    with pytest.raises(ValueError, match=r"^--set: ") as caught:
        Small().run(sets=sets)
    assert states(str(caught.value), says)


def test_settings_of_the_command_line_are_toml_or_text():
    texts = ["a.b=2", "c = [1, 2]", "d=wpq", 'e="x=y"', "f=1\ng=2"]
    assert parse_sets(texts) == {
        "a.b": 2,
        "c": [1, 2],
        "d": "wpq",
        "e": "x=y",
        "f": "1\ng=2",
    }
    with pytest.raises(ValueError, match="got 'hdd', wanted KEY=VALUE") as caught:
        parse_sets(["hdd", "a=1", "b"])
    assert len(str(caught.value).splitlines()) == 2


def test_all_wrong_settings_are_reported_at_once():
    with pytest.raises(ValueError, match="\n") as caught:
        Small().run(sets={"a": 1, "b": 2})
    assert len(str(caught.value).splitlines()) == 2


def test_keys_that_a_study_sets_itself_are_refused():
    with pytest.raises(ValueError, match="study koh2017 sets this itself"):
        study_named("koh2017").changes({"workload.ops": ["read"]})


def test_a_scenario_key_is_checked_by_the_loader():
    with pytest.raises(ValueError, match=r"--set: cluster\.hostss"):
        study_named("koh2017").changes({"cluster.hostss": 5})
    sets = {"cluster.osds_per_host": 5}
    assert study_named("koh2017").changes(sets).scenario == sets


def test_an_option_of_another_study_is_refused():
    with pytest.raises(ValueError, match=r"figures: .*exstorus2019.*wanted"):
        Small().run(figures=["13"])


def test_names_are_chosen_in_the_order_in_which_they_are_known():
    assert chosen("--x", ["b", "a"], ("a", "b", "c")) == ("a", "b")
    assert (
        chosen("--x", ["all"], ("a", "b"))
        == chosen("--x", None, ("a", "b"))
        == ("a", "b")
    )
    with pytest.raises(ValueError, match="--x: got 'd'"):
        chosen("--x", ["d"], ("a", "b"))
    with pytest.raises(ValueError, match="--x: got a"):
        chosen("--x", ["a"], ("a", "b"), ("b",))


def test_changes_end_with_their_block():
    file = ParameterFile("exstorus2019")
    with changes_applied(Changes({"hdd.disks_count": 2})):
        assert file.number("hdd", "disks_count") == 2
    assert file.number("hdd", "disks_count") == 10


@dataclass(frozen=True)
class Reads:
    """A task that reads a parameter, for workers."""

    words: str = "reads"
    weight: float = 0.0

    def perform(self):
        return [{"disks": ParameterFile("exstorus2019").number("hdd", "disks_count")}]


def test_workers_see_the_changes():
    changes = Changes({"hdd.disks_count": 4.0})
    try:
        rows = run_tasks([Reads(), Reads("again")], jobs=1, changes=changes).rows
    finally:
        apply_changes(Changes())
    assert rows == [[{"disks": 4.0}]] * 2


def test_every_task_that_cannot_run_reports_the_reason():
    with pytest.raises(AnswerError) as caught:
        run_tasks([Call("a", failing), Call("b", doubled, (1,)), Call("c", failing)])
    assert str(caught.value).splitlines() == [
        "a: got nothing",
        "c: got nothing",
    ]


def test_a_problem_of_a_task_keeps_its_parts():
    with pytest.raises(AnswerError) as caught:
        run_tasks([Call("a", failing_by_key)])
    (problem,) = caught.value.problems
    # The task is a place before the one that the problem has.
    assert problem.place == "a: rows.csv:2"
    assert (problem.key, problem.got, problem.wanted) == ("bs", "0", "1 or more")


def refusing():
    raise RefusedError("Run length: got 8 requests, wanted 80")


def test_a_refused_task_has_no_rows_and_the_others_go_on():
    done = run_tasks([Call("a", refusing), Call("b", doubled, (1,))])
    assert done.rows[0] == []
    assert done.rows[1]
    assert done.refusals == ("a: Run length: got 8 requests, wanted 80",)


def refused_after_all():
    refuse("Run length: got 8 requests, wanted 80")
    return doubled(1)


def test_an_unchecked_task_keeps_its_rows_marked():
    done = run_tasks([Call("a", refused_after_all)], unchecked=True)
    assert [row["value"] for row in done.rows[0]] == [2]
    assert [row["refused"] for row in done.rows[0]] == [
        "Run length: got 8 requests, wanted 80"
    ]
    assert done.refusals == ("a: Run length: got 8 requests, wanted 80",)


def test_a_study_shows_refused_numbers_unchecked(monkeypatch):
    calls = [Call("a", doubled, (1,)), Call("b", refused_after_all)]
    monkeypatch.setattr(Small, "tasks", lambda *_: calls)
    checked = Small().run()
    unchecked = Small().run(unchecked=True)
    refused = "Run length: got 8 requests, wanted 80"
    assert checked.refusals == unchecked.refusals == (f"b: {refused}",)
    assert checked.rows["refused"].to_list() == [None]
    assert unchecked.rows["refused"].to_list() == [None, refused]
    # Numbers that are not shown end the command with status 3.
    with pytest.raises(typer.Exit) as ended:
        deliver(checked, destination(None, None))
    assert ended.value.exit_code == 3
    deliver(unchecked, destination(None, None), unchecked=True)


class SmallAndRefused(Small):
    """The small study with a second run, which the audit refuses."""

    def tasks(self, setting):
        return [*super().tasks(setting), Call("b", refusing)]


def test_a_study_with_a_refused_task_judges_the_others_and_says_what_it_refused():
    study = SmallAndRefused()
    result = study.run()
    answer = study.answer(result)
    assert simulated(result) is not None
    assert answer.refusals == ("b: Run length: got 8 requests, wanted 80",)
    assert answer.document["refused"] == list(answer.refusals)


def test_provenance_of_a_study_names_it_and_the_moment():
    found = study_provenance("dachary2013", "simpy", seed=3)
    assert list(found) == [
        "stripesim",
        "study",
        "engine",
        "seed",
        "python",
        "machine",
        "time",
    ]
    assert (found["study"], found["engine"], found["seed"]) == (
        "dachary2013",
        "simpy",
        3,
    )
