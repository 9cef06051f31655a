"""Every study has the form that the command line expects, and every list of studies names all."""

import inspect
from pathlib import Path

import pytest

from stripesim.cli import study as cli_study
from stripesim.cli.app import Study
from stripesim.scenarios.studies.base import StudyResult, study_provenance

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


def test_lists_of_studies_name_every_folder_with_a_study():
    folders = {path.parent.name for path in SCENARIOS.glob("studies/*/study.py")}
    assert set(cli_study.STUDIES) == {name.value for name in Study} == folders


@pytest.mark.parametrize("name", cli_study.STUDIES)
def test_a_study_runs_with_no_more_than_engine_and_progress(name):
    module = cli_study._module(name)
    takes = inspect.signature(module.run).parameters.values()
    assert {"engine", "progress"} <= {taken.name for taken in takes}
    assert all(
        taken.kind is taken.KEYWORD_ONLY and taken.default is not inspect.Parameter.empty for taken in takes
    )
    assert list(inspect.signature(module.save_study_figures).parameters) == ["result", "out"]


def test_provenance_of_a_study_names_it_and_the_moment():
    told = study_provenance("dachary2013", "simpy", seed=3)
    assert list(told) == ["stripesim", "study", "engine", "seed", "python", "machine", "time"]
    assert (told["study"], told["engine"], told["seed"]) == ("dachary2013", "simpy", 3)


def test_a_plain_study_prints_no_table_beside_its_ledger():
    class Ledger:
        def to_json(self):
            return {"claims": []}

    result = StudyResult(ledger=Ledger(), rows=None, provenance={"study": "none"})
    assert result.terminal_tables() == []
    assert result.to_json() == {"claims": [], "provenance": {"study": "none"}}
