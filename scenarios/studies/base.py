"""The base of all studies: claims, tasks that return rows, a ledger, figures, and changeable parameters.

Start here, then read `stripesim.scenarios.studies.dachary2013.study`, the shortest one.
"""

from __future__ import annotations

import difflib
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import polars as pl
import polars.selectors as cs

from stripesim._version import __version__
from stripesim.calibration.ledger.verdicts import Claim, Entry, Ledger, judge
from stripesim.models.documents import toml_value
from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.cells.notes import where_and_when
from stripesim.scenarios.schema.scenario import Scenario, load_scenario
from stripesim.scenarios.show.answer import NOTEBOOK_ROWS_MAX, Answer, left_out_html
from stripesim.scenarios.show.files import csv_text, result_files
from stripesim.scenarios.show.quantities import rows_frame
from stripesim.scenarios.show.tables import Table, TerminalPart
from stripesim.scenarios.studies.claim_rules import claim_rules, simulate_claims
from stripesim.scenarios.studies.description import StudyDescription, study_description
from stripesim.scenarios.studies.lookup import claims_of
from stripesim.scenarios.studies.page import report_page
from stripesim.scenarios.studies.parameters import (
    Changes,
    ParameterFile,
    changes_applied,
)
from stripesim.scenarios.studies.tasks import Call, Row, Task, run_tasks
from stripesim.sim.observe.progress import OnStep, silent

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

#: Longest text in a cell of the table that a notebook shows [characters].
_CELL_MAX: Final = 40
#: Selects every figure, experiment or ablation.
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Arguments of one run of a study. ``options`` holds the study's own options that were given."""

    engine: str = "compiled"
    ablate: tuple[str, ...] = ()
    unchecked: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


#: A part of a study that can be left out. It yields rows.
Experiment = Callable[[Setting], Iterable[Row]]


@dataclass(kw_only=True, repr=False, eq=False)
class StudyResult(Answer):
    """Outcome of a study. `rows` has one row per run, or per measured case.

    `refusals` names the tasks whose numbers the audit refuses. Their claims have no value, unless the study
    ran unchecked.
    """

    ledger: Ledger  #: Claims and verdicts
    provenance: dict[str, Any]  #: Of the rows, as JSON values
    setting: Setting = field(default_factory=Setting)  #: Arguments of the run
    #: Further rows by name, each written as a CSV file of this name
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    #: Further fields of the JSON document
    fields: Mapping[str, Any] = field(default_factory=dict)
    sets: Mapping[str, Any] = field(default_factory=dict)  #: Changed values, by key
    #: The same study under each requested ablation
    ablated: Mapping[str, StudyResult] = field(default_factory=dict)
    is_partial: bool = False  #: True if an option left out runs

    @property
    def sentence(self) -> str:
        """Count of right held-out claims, and of all rows."""
        claims = len(self.ledger.entries)
        right = f"{_count(self)} held-out claims right"
        return f"{right}, {claims:,} claims, {self.rows.height:,} rows"

    def html_table(self) -> str:
        """Return the first 20 claims as HTML."""
        entries = self.ledger.entries
        columns = ("claim", "published", "simulated", "verdict")
        lines = [
            [
                entry.claim.id,
                _cell(entry.claim.published),
                _cell(entry.simulated),
                entry.verdict,
            ]
            for entry in entries[:NOTEBOOK_ROWS_MAX]
        ]
        table = Table("Claims", columns, lines)
        left_out = len(entries) - NOTEBOOK_ROWS_MAX
        return table._repr_html_() + left_out_html(left_out)

    def __post_init__(self) -> None:
        document = {**self.ledger.to_json(), "provenance": self.provenance}
        if self.refusals:
            document["refused"] = list(self.refusals)
        if self.ablated:
            document["ablations"] = [
                {"ablation": name, **row}
                for name, result in self.ablated.items()
                for row in self._changed(result)
            ]
        self.document = {**document, **self.fields}
        self.saved_as = "ledger.json"
        self.files = partial(_files, self)
        self.parts = self.ablated

    def ablation_table(self) -> Table:
        """Return, for each ablation, the verdicts and the claims that change most."""
        columns = (
            "ablation",
            "held-out claims right",
            "claims that change by more than 1 %",
            "changed most",
        )
        rows = [("as calibrated", _count(self), "", "")]
        for name, result in self.ablated.items():
            changed = [row for row in self._changed(result) if row["ratio"] is not None]
            moved = [row for row in changed if abs(row["ratio"] - 1) > 0.01]
            moved.sort(key=lambda row: -abs(row["ratio"] - 1))
            most = "; ".join(f"{row['id']} × {row['ratio']:.3g}" for row in moved[:3])
            rows.append((name, _count(result), f"{len(moved)} of {len(changed)}", most))
        return Table("Ablations", columns, rows, form="stack", numeric=False)

    def _changed(self, ablated: StudyResult) -> list[Row]:
        """Compare every claim that is one number with its value under an ablation."""
        before = {entry.claim.id: entry.simulated for entry in self.ledger.entries}
        return [
            {
                "id": entry.claim.id,
                "baseline": before[entry.claim.id],
                "simulated": entry.simulated,
                "ratio": _ratio(entry.simulated, before[entry.claim.id]),
                "verdict": entry.verdict,
            }
            for entry in ablated.ledger.entries
            if isinstance(entry.simulated, int | float)
        ]


def _ratio(value: float, baseline: object) -> float | None:
    return value / baseline if isinstance(baseline, int | float) and baseline else None


def _cell(value: object) -> str:
    """Write a value of a claim for a notebook, shortened."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return "–" if value is None else str(value)[:_CELL_MAX]


def _count(result: StudyResult) -> str:
    summary = result.ledger.summary()
    return f"{summary['right']} of {summary['held_out']}"


class Study:
    """A source to reproduce; each study is an instance named ``STUDY`` in ``study.py`` of its folder.

    The files of the folder describe most of a study: ``study.toml`` (texts, options, ablations),
    ``claims.csv`` (the source's claims), ``claims.toml`` (an expression for each claim, over the names of
    `vocabulary`), ``parameters.toml`` and ``figures.toml``. Methods add the rest, or override it.
    """

    name: ClassVar[str]  #: Of the study, its folder and its sub-command
    experiments: ClassVar[Mapping[str, Experiment]] = {}
    needed: ClassVar[Sequence[str]] = ()  #: Experiments that the ledger needs
    prints_tables: ClassVar[bool] = False  #: True to print the report's tables too

    @property
    def description(self) -> StudyDescription:
        """Return the study's texts, options and ablations."""
        return study_description(self.name)

    def claims(self) -> tuple[Claim, ...]:
        """Return the source's claims, by default those of ``claims.csv``."""
        return claims_of(self.name)

    def parameters(self) -> list[Row]:
        """List every number that the rows depend on, with its provenance."""
        return ParameterFile(self.name).listed()

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List what to run, by default the experiments.

        Raises
        ------
        ValueError
            If an option is wrong.
        """
        names = chosen(
            "--experiment",
            setting.options.get("experiments"),
            self.experiments,
            self.needed,
        )
        return [Call(name, self.experiments[name], (setting,)) for name in names]

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return further provenance of the rows, as JSON values."""
        return {}

    def frame(self, rows: Sequence[list[Row]]) -> pl.DataFrame:
        """Put the rows of all tasks in one table."""
        return rows_frame([row for part in rows for row in part])

    def vocabulary(self, rows: pl.DataFrame) -> Mapping[str, Any]:
        """Return the names that expressions in ``claims.toml`` know."""
        return {}

    def ledger(self, setting: Setting, rows: pl.DataFrame) -> Ledger:
        """Judge the claims by the values that ``claims.toml`` computes from rows."""
        return self.judged(self.vocabulary(rows))

    def judged(self, vocabulary: Mapping[str, Any]) -> Ledger:
        """Judge the claims by the values that ``claims.toml`` computes with these names."""
        values, reasons = simulate_claims(self.name, vocabulary)
        return judge(
            self.claims(),
            values,
            reasons=reasons,
            parameters=self.parameters(),
            groups=claim_rules(self.name).groups,
        )

    def result(
        self, setting: Setting, tasks: Sequence[Task], rows: Sequence[list[Row]]
    ) -> StudyResult:
        """Judge the claims by the rows of each task."""
        frame = self.frame(rows)
        return StudyResult(
            ledger=self.ledger(setting, frame),
            frame=lambda: frame,
            provenance=study_provenance(
                self.name, setting.engine, **self.provenance(setting, tasks)
            ),
        )

    def figures(self, result: StudyResult) -> Mapping[str, CaptionedFigure]:
        """Draw the figures of ``figures.toml`` and return them by file stem."""
        # matplotlib takes half a second to import, and only runs with --out draw.
        from stripesim.scenarios.studies.small_multiples import (
            claims_table,
            draw_figures,
        )

        tables = {"rows": result.rows, "claims": claims_table(result.ledger)}
        tables |= self.figure_tables(result)
        claims = self.figure_claims(result)
        return draw_figures(self.name, tables, claims, self.figure_stems(result))

    def figure_stems(self, result: StudyResult) -> Collection[str] | None:
        """Return the stems of the figures that were asked for, None if all of them were."""
        return None

    def figure_tables(self, result: StudyResult) -> dict[str, pl.DataFrame]:
        """Return further tables for the queries in ``figures.toml``."""
        return {}

    def figure_claims(self, result: StudyResult) -> Mapping[str, Sequence[Entry]]:
        """Return the judged claims that are drawn next to each figure, by file stem."""
        return {}

    def tables(self, result: StudyResult) -> Sequence[Table]:
        """Return further tables for the report."""
        return ()

    def run(
        self,
        *,
        engine: str = "compiled",
        sets: Mapping[str, Any] | None = None,
        ablate: Sequence[str] | str = (),
        jobs: int | None = None,
        progress: OnStep = silent,
        unchecked: bool = False,
        **options: Any,
    ) -> StudyResult:
        """Run the study. `stripesim.study` describes the arguments."""
        known = [option.name for option in self.description.options]
        stated = {
            name: value
            for name, value in options.items()
            if value not in (None, (), [], False)
        }
        if unknown := sorted(set(stated) - set(known)):
            raise ValueError(
                f"{', '.join(unknown)}: study {self.name} has no such option, "
                f"wanted one of {', '.join(sorted(known)) or 'none'}"
            )
        ablations = self.description.ablations
        names = chosen("--ablate", ablate, ablations)
        setting = Setting(
            engine=engine, ablate=names, unchecked=unchecked, options=stated
        )
        if jobs is None and not self.description.all_processors:
            jobs = 1
        sets = sets or {}
        result = self._once(setting, sets, jobs, progress)
        selections = [
            stated.get(option.name, ALL)
            for option in self.description.options
            if option.selects
        ]
        if any(ALL not in selection for selection in selections):
            result = replace(result, is_partial=True)
        alone = replace(setting, ablate=())
        ablated = {
            name: self._once(alone, {**sets, **ablations[name].sets}, jobs, progress)
            for name in names
            if ablations[name].sets
        }
        return self.answer(replace(result, ablated=ablated))

    def _once(
        self,
        setting: Setting,
        sets: Mapping[str, Any],
        jobs: int | None,
        progress: OnStep,
    ) -> StudyResult:
        changes = self.changes(sets)
        with changes_applied(changes):
            tasks = self.tasks(setting)
            done = run_tasks(
                tasks,
                jobs=jobs,
                changes=changes,
                progress=progress,
                unchecked=setting.unchecked,
            )
            result = self.result(setting, tasks, done.rows)
        result = replace(result, setting=setting, refusals=done.refusals)
        if not sets:
            return result
        provenance = {**result.provenance, "changed": _set_texts(sets)}
        return replace(result, sets=sets, provenance=provenance)

    def changes(self, sets: Mapping[str, Any]) -> Changes:
        """Sort changed values into parameters and scenario keys.

        Parameters
        ----------
        sets
            Values by the name of a parameter, or by a key of the study's scenario.

        Raises
        ------
        AnswerError
            If keys or values are wrong, with one line for each.
        """
        if not sets:
            return Changes()
        with changes_applied(Changes()):
            names = {row["name"] for row in self.parameters()}
        numbers: dict[str, float] = {}
        scenario: dict[str, Any] = {}
        problems: list[Problem] = []
        for key, value in sets.items():
            if key.startswith(tuple(self.description.fixed_keys)):
                detail = f"study {self.name} sets this itself for each of its runs"
                problems.append(Problem(place="--set", key=key, detail=detail))
            elif key in names:
                numbers[key] = value
                if isinstance(value, bool) or not isinstance(value, int | float):
                    problems.append(
                        Problem(
                            place="--set", key=key, got=str(value), wanted="a number"
                        )
                    )
            elif self._is_scenario_key(key):
                scenario[key] = value
            else:
                problems.append(self._unknown_key(key, names))
        if problems:
            raise AnswerError(*problems)
        if scenario and self.description.scenario is not None:
            required = self.description.scenario_sets
            load_scenario(self.description.scenario, sets={**required, **scenario})
        return Changes(numbers, scenario)

    def _is_scenario_key(self, key: str) -> bool:
        table = key.partition(".")[0].strip()
        has_scenario = self.description.scenario is not None
        return has_scenario and table in Scenario.model_fields

    def _unknown_key(self, key: str, names: Collection[str]) -> Problem:
        near = difflib.get_close_matches(key, sorted(names), n=3, cutoff=0.0)
        also = ", or a key of its scenario" if self.description.scenario else ""
        return Problem(
            place="--set",
            key=key,
            got=f"no parameter of study {self.name}",
            wanted=f"one of its {len(names)}, such as {', '.join(near)}{also}",
        )

    def register(self, result: StudyResult) -> dict[str, Any]:
        """Return the document of a register that predicts the rows of a result.

        Raises
        ------
        AnswerError
            If the rows of the study are not those of one measured run each.
        """
        got = "a study without such rows"
        wanted = "one that predicts measured rows, such as nvme"
        raise AnswerError(Problem(place=f"study {self.name}", got=got, wanted=wanted))

    def save(
        self, result: StudyResult, out: Path, *, width_inch: float | None = None
    ) -> list[Path]:
        """Write ledger, rows, figures and report into a folder, also of ablations, and return the files.

        A width lays out the figures for a paper; see `save_figures`.
        """
        answer = self.answer(result)
        return answer.save(out, page=out / "report.html", width_inch=width_inch)

    def answer(self, result: StudyResult, *, everything: bool = False) -> StudyResult:
        """Return a result with what it shows and draws: ledger and tables, figures and report.

        Parameters
        ----------
        result
            Judged claims and rows.
        everything
            Also show claims that do not count. Otherwise a comparison with ablations is shown alone, and a
            part of a study shows only the claims that its runs compute.
        """

        @cache
        def figures() -> Mapping[str, CaptionedFigure]:
            with changes_applied(self.changes(result.sets)):
                return self.figures(result)

        return replace(
            result,
            ablated={name: self.answer(one) for name, one in result.ablated.items()},
            shown=list(self._shown(result, everything=everything)),
            figures=figures,
            page=lambda: self._page(result, figures()),
        )

    def _shown(
        self, result: StudyResult, *, everything: bool
    ) -> Iterator[str | Table | TerminalPart]:
        """Yield the ledger, further tables, and how many claims are left out."""
        compares = bool(result.ablated)
        ledger = result.ledger
        if result.is_partial and not everything:
            ledger = ledger.computed()
        if result.rows.height and (everything or not compares):
            yield TerminalPart(lambda _: ledger.laid_out(everything=everything))
        if compares:
            yield result.ablation_table()
        if self.prints_tables:
            yield from self.tables(result)
        left_out = len(result.ledger.entries) - len(ledger.entries)
        if compares and not everything:
            yield "--all also prints the claims as calibrated."
        elif left_out:
            yield f"{left_out} claims need runs that were left out. --all lists them."

    def _page(self, result: StudyResult, figures: Mapping[str, CaptionedFigure]) -> str:
        introduction = self.description.introduction
        if result.sets:
            changed = ", ".join(_set_texts(result.sets))
            introduction += f" Changed for this run: {changed}."
        with changes_applied(self.changes(result.sets)):
            tables = [*self.tables(result)]
            if result.ablated:
                tables.append(result.ablation_table())
            return report_page(
                title=self.description.title,
                introduction=introduction,
                ledger=result.ledger,
                figures=figures,
                provenance=result.provenance,
                tables=tables,
            )


def _files(result: StudyResult) -> dict[str, bytes]:
    """Return the rows, the ledger as CSV, and further rows."""
    # A range or a list becomes its numbers, separated by spaces.
    texts = cs.list().cast(pl.List(pl.String)).list.join(" ")
    files = {"ledger.csv": csv_text(result.ledger.to_frame().with_columns(texts))}
    for name, frame in result.frames.items():
        if frame.width:
            files[f"{name}.csv"] = csv_text(frame)
    return result_files(result.rows, result.provenance, files)


def _set_texts(sets: Mapping[str, Any]) -> list[str]:
    return [f"{key}={toml_value(value)}" for key, value in sets.items()]


def study_provenance(name: str, engine: str, **more: Any) -> dict[str, Any]:
    """Return the provenance of a study's rows, with further JSON values."""
    return {
        "stripesim": __version__,
        "study": name,
        "engine": engine,
        **more,
        **where_and_when(),
    }


def chosen(
    option: str,
    asked: Sequence[str] | str | None,
    known: Collection[str],
    needed: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the names that an option selects (None: all), in their known order.

    Raises
    ------
    ValueError
        If a name is unknown or a needed one is missing; the message begins with the option's flag.
    """
    if isinstance(asked, str):
        asked = (asked,)
    if asked is None or ALL in asked:
        return tuple(known)
    unknown = [name for name in asked if name not in known]
    if unknown:
        wanted = f"one of {', '.join([*known, ALL])}" if known else "none"
        raise AnswerError(Problem(place=option, got=repr(unknown[0]), wanted=wanted))
    if missing := [name for name in needed if name not in asked]:
        wanted = f"{' and '.join(missing)} too: the ledger needs it"
        raise AnswerError(Problem(place=option, got=", ".join(asked), wanted=wanted))
    return tuple(name for name in known if name in asked)
