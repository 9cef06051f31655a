"""What every study is: claims, tasks that give rows, a ledger, figures, and parameters that can be changed.

Start here, then read `stripesim.scenarios.studies.dachary2013.study`, the shortest one.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stripesim._version import __version__
from stripesim.scenarios.studies import study_module
from stripesim.scenarios.studies.parameters import (
    Changes,
    ParameterFile,
    changes_applied,
)
from stripesim.scenarios.studies.tasks import Call, Progress, Row, Task, run_tasks

if TYPE_CHECKING:
    import polars as pl

    from stripesim.calibration.ledger.verdicts import Claim, Entry, Ledger
    from stripesim.scenarios.figures.results import CaptionedFigure

#: Column names, and rows of text.
Table = tuple[Sequence[str], Sequence[Sequence[str]]]

#: What stands for every figure, experiment or ablation.
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option that one study has beside those of all studies.

    ``name`` is the keyword argument of `Study.run`, ``flag`` the same on the command line; an option that may
    be given several times has a tuple as its value.
    """

    name: str
    flag: str
    help: str
    kind: type = str
    several: bool = False


def experiments_option(needed: str) -> Option:
    """Return the option that leaves out experiments, in `EXPERIMENTS`' words for those that are needed."""
    text = f"Only this experiment; may be repeated. {needed}"
    return Option(name="experiments", flag="--experiment", several=True, help=text)


@dataclass(frozen=True)
class Ablation:
    """A mechanism that is switched off or a rule that is changed: in words, and in the form of ``--set``."""

    says: str
    sets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How a study is run once; ``options`` are the study's own that were given, by name."""

    engine: str = "compiled"
    ablate: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StudyResult:
    """What a study gives; one with more to give derives from it."""

    ledger: Ledger  #: Claims and verdicts
    rows: pl.DataFrame  #: One row per run, or per measured case
    provenance: dict[str, Any]  #: How the rows came about; JSON values
    sets: tuple[str, ...] = ()  #: What was changed, in the form of ``--set``
    #: The same study under each ablation that was asked for
    ablated: Mapping[str, StudyResult] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``--json`` and ``ledger.json`` hold."""
        document = {**self.ledger.to_json(), "provenance": self.provenance}
        if self.ablated:
            rows = {name: self._changed(each) for name, each in self.ablated.items()}
            document["ablations"] = [
                {"ablation": name, **row} for name in rows for row in rows[name]
            ]
        return document

    def terminal_tables(self) -> list[Table]:
        """Return what is printed below the ledger."""
        return [self.ablation_table()] if self.ablated else []

    def ablation_table(self) -> Table:
        """Return, for each ablation, the verdicts and the claims that change most."""
        columns = (
            "ablation",
            "held-out claims right",
            "claims that change by more than 1 %",
            "changed most",
        )
        rows = [("as calibrated", _count(self), "", "")]
        for name, each in self.ablated.items():
            changed = [row for row in self._changed(each) if row["ratio"] is not None]
            moved = [row for row in changed if abs(row["ratio"] - 1) > 0.01]
            moved.sort(key=lambda row: -abs(row["ratio"] - 1))
            most = "; ".join(f"{row['id']} × {row['ratio']:.3g}" for row in moved[:3])
            rows.append((name, _count(each), f"{len(moved)} of {len(changed)}", most))
        return columns, rows

    def _changed(self, other: StudyResult) -> list[Row]:
        """Compare every claim that is one number with that under an ablation."""
        before = {entry.claim.id: entry.simulated for entry in self.ledger.entries}
        return [
            {
                "id": entry.claim.id,
                "baseline": before[entry.claim.id],
                "simulated": entry.simulated,
                "ratio": _ratio(entry.simulated, before[entry.claim.id]),
                "verdict": entry.verdict,
            }
            for entry in other.ledger.entries
            if isinstance(entry.simulated, int | float)
        ]


def _ratio(value: float, baseline: object) -> float | None:
    return value / baseline if isinstance(baseline, int | float) and baseline else None


def _count(result: StudyResult) -> str:
    summary = result.ledger.summary()
    return f"{summary['right']} of {summary['held_out']}"


class Study:
    """One source that is reproduced; a study is an instance named ``STUDY`` in ``study.py`` of its folder.

    A study says what it is. The rest follows from the files in its folder, read when they are needed:
    ``claims.csv`` (what the source states), ``claims.toml`` (how each claim is computed, in the words of
    ``vocabulary`` in ``claims.py``), ``parameters.toml``, ``EXPERIMENTS`` in ``runs.py``, and
    ``figures.toml``. One that differs has a method of its own.
    """

    name: ClassVar[str]  # of the study, its folder and its sub-command
    summary: ClassVar[
        str
    ]  # what it reproduces, in one line, for ``stripesim study --help``
    title: ClassVar[str]  # of its report, plain text
    introduction: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = ()  # what only this study can be asked
    ablations: ClassVar[Mapping[str, Ablation]] = {}
    scenario: ClassVar[str | None] = (
        None  # that it is simulated from, which ``--set`` may change
    )
    scenario_sets: ClassVar[
        tuple[str, ...]
    ] = ()  # what the scenario cannot be checked without
    fixed_keys: ClassVar[
        tuple[str, ...]
    ] = ()  # keys, or their beginnings, that its own runs set
    jobs: ClassVar[int | None] = (
        1  # worker processes unless the user says otherwise; None: all processors
    )

    def claims(self) -> tuple[Claim, ...]:
        """Read what the source states, from ``claims.csv``; ceph16 and nvme: from the measurements."""
        from stripesim.scenarios.studies.lookup import claims_of

        return claims_of(self.name)

    def parameters(self) -> list[Row]:
        """List every number that the rows depend on, with its provenance."""
        return ParameterFile(self.name).listed()

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List what is to be run, by default all of ``EXPERIMENTS``; a ValueError says what is wrong."""
        runs = study_module(self.name, "runs")
        names = chosen(
            "--experiment",
            setting.options.get("experiments"),
            runs.EXPERIMENTS,
            runs.NEEDED,
        )
        return [Call(name, runs.EXPERIMENTS[name], (setting,)) for name in names]

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return what the rows depend on beside version, engine and machine; JSON values."""
        return {}

    def frame(self, rows: Sequence[list[Row]]) -> pl.DataFrame:
        """Put the rows of all tasks in one table."""
        from stripesim.scenarios.run.results import rows_frame

        return rows_frame([row for part in rows for row in part])

    def ledger(self, setting: Setting, rows: pl.DataFrame) -> Ledger:
        """Judge the claims by the values that ``claims.toml`` computes from rows."""
        from stripesim.calibration.ledger.verdicts import judge
        from stripesim.scenarios.studies.claim_rules import claim_rules, simulate_claims

        vocabulary = study_module(self.name, "claims").vocabulary(rows)
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
            rows=frame,
            provenance=study_provenance(
                self.name, setting.engine, **self.provenance(setting, tasks)
            ),
        )

    def figures(self, result: StudyResult) -> Mapping[str, CaptionedFigure]:
        """Draw the figures of ``figures.toml``; file stem → figure."""
        from stripesim.scenarios.studies.small_multiples import (
            claims_table,
            draw_figures,
        )

        tables = {"rows": result.rows, "claims": claims_table(result.ledger)}
        tables |= self.figure_tables(result)
        return draw_figures(self.name, tables, self.figure_claims(result))

    def figure_tables(self, result: StudyResult) -> dict[str, pl.DataFrame]:
        """Return what queries in ``figures.toml`` see beside rows and claims."""
        return {}

    def figure_claims(self, result: StudyResult) -> Mapping[str, Sequence[Entry]]:
        """Return the judged claims that stand beside figures, by file stem."""
        return {}

    def tables(self, result: StudyResult) -> Mapping[str, Table]:
        """Return further tables for the report, of ``tables.py`` where there is one; heading → table."""
        if not (files(__package__) / self.name / "tables.py").is_file():
            return {}
        listed: Mapping[str, Table] = study_module(self.name, "tables").tables(
            result.rows
        )
        return listed

    def files(self, result: StudyResult) -> Mapping[str, bytes]:
        """Return further files to write; name → content."""
        return {}

    def run(
        self,
        *,
        engine: str = "compiled",
        sets: Sequence[str] = (),
        ablate: Sequence[str] = (),
        jobs: int | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> StudyResult:
        """Run the study; `stripesim.study` describes the arguments."""
        known = {option.name for option in self.options}
        given = {
            name: value
            for name, value in options.items()
            if value not in (None, (), [], False)
        }
        if unknown := sorted(set(given) - known):
            raise ValueError(
                f"{', '.join(unknown)}: study {self.name} has no such option, "
                f"wanted one of {', '.join(sorted(known)) or 'none'}"
            )
        names = chosen("--ablate", ablate, self.ablations)
        setting = Setting(engine=engine, ablate=names, options=given)
        workers = self.jobs if jobs is None else jobs
        result = self._once(setting, tuple(sets), workers, progress)
        ablated = {
            name: self._once(
                replace(setting, ablate=()),
                (*sets, *self.ablations[name].sets),
                workers,
                progress,
            )
            for name in names
            if self.ablations[name].sets
        }
        return replace(result, ablated=ablated) if ablated else result

    def _once(
        self,
        setting: Setting,
        sets: tuple[str, ...],
        jobs: int | None,
        progress: Progress | None,
    ) -> StudyResult:
        changes = self.changes(sets)
        with changes_applied(changes):
            tasks = self.tasks(setting)
            rows = run_tasks(tasks, jobs=jobs, changes=changes, progress=progress)
            result = self.result(setting, tasks, rows)
        if not sets:
            return result
        return replace(
            result, sets=sets, provenance={**result.provenance, "changed": list(sets)}
        )

    def changes(self, sets: Sequence[str]) -> Changes:
        """Read settings ``KEY=VALUE``; a ValueError has one line for each that is wrong."""
        if not sets:
            return Changes()
        with changes_applied(Changes()):
            names = {row["name"] for row in self.parameters()}
        numbers: dict[str, float] = {}
        scenario: list[str] = []
        problems: list[str] = []
        for text in sets:
            key, equals, value = (part.strip() for part in text.partition("="))
            if not equals:
                problems.append(f"--set: got {text!r}, wanted KEY=VALUE")
            elif key.startswith(self.fixed_keys or ("=",)):
                problems.append(
                    f"--set: {key}: study {self.name} sets this itself for each of its runs"
                )
            elif key in names:
                number = _number(value)
                if number is None:
                    problems.append(f"--set: {key}: got {value}, wanted a number")
                else:
                    numbers[key] = number
            elif not self._is_scenario_key(key):
                near = difflib.get_close_matches(key, sorted(names), n=3, cutoff=0.0)
                also = "" if self.scenario is None else ", or a key of its scenario"
                problems.append(
                    f"--set: {key}: got no parameter of study {self.name}, wanted one of its {len(names)}, "
                    f"such as {', '.join(near)}{also}"
                )
            else:
                scenario.append(text)
        if problems:
            raise ValueError("\n".join(problems))
        if scenario and self.scenario is not None:
            from stripesim.scenarios.schema.loader import load_scenario

            load_scenario(self.scenario, sets=(*self.scenario_sets, *scenario))
        return Changes(numbers, tuple(scenario))

    def _is_scenario_key(self, key: str) -> bool:
        from stripesim.scenarios.schema.keys import Scenario

        table = key.partition(".")[0].strip()
        return self.scenario is not None and table in Scenario.model_fields

    def save(self, result: StudyResult, out: Path) -> list[Path]:
        """Write ledger, rows, figures and report into a folder, and those of ablations; list the files."""
        from stripesim.scenarios.figures.results import save_figures
        from stripesim.scenarios.report.study import report_page
        from stripesim.scenarios.run.results import write_files, write_results

        ledgers = {
            "ledger.json": json.dumps(result.to_json(), indent=1),
            "ledger.csv": _csv(result.ledger),
        }
        written = write_results(out, result.rows, result.provenance, ledgers)
        changed = (
            f" Changed for this run: {', '.join(result.sets)}." if result.sets else ""
        )
        with changes_applied(self.changes(result.sets)):
            tables = dict(self.tables(result))
            if result.ablated:
                tables["Ablations"] = result.ablation_table()
            figures = self.figures(result)
            page = report_page(
                title=self.title,
                introduction=self.introduction + changed,
                ledger=result.ledger,
                figures=figures,
                provenance=result.provenance,
                tables=tables,
            )
            written += save_figures(figures, out)
        written += write_files(
            out, {"report.html": page.encode(), **self.files(result)}
        )
        for name, each in result.ablated.items():
            written += self.save(each, out / name)
        return written


def _csv(ledger: Ledger) -> str:
    """Return a ledger as CSV; a range or a list becomes its numbers, separated by spaces."""
    import polars as pl
    import polars.selectors as cs

    texts = cs.list().cast(pl.List(pl.String)).list.join(" ")
    return ledger.to_frame().with_columns(texts).write_csv()


def _number(text: str) -> float | None:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return None
    return (
        value
        if isinstance(value, int | float) and not isinstance(value, bool)
        else None
    )


def study_provenance(name: str, engine: str, **more: Any) -> dict[str, Any]:
    """Say what gave a study's rows, with what else they depend on as JSON values."""
    from stripesim.scenarios.cells.notes import where_and_when

    return {
        "stripesim": __version__,
        "study": name,
        "engine": engine,
        **more,
        **where_and_when(),
    }


def chosen(
    option: str,
    asked: Sequence[str] | None,
    known: Collection[str],
    needed: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the names that an option chooses (None: all), in their order; a ValueError has the flag."""
    if asked is None or ALL in asked:
        return tuple(known)
    unknown = [name for name in asked if name not in known]
    if unknown:
        wanted = [*known, ALL] if known else ["none: this study has none"]
        raise ValueError(
            f"{option}: got {unknown[0]!r}, wanted one of {', '.join(wanted)}"
        )
    if absent := [name for name in needed if name not in asked]:
        raise ValueError(
            f"{option}: got {', '.join(asked)}, wanted {' and '.join(absent)} too: the ledger needs it"
        )
    return tuple(name for name in known if name in asked)
