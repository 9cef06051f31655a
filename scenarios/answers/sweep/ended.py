"""The tasks of a sweep that have ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from stripesim.scenarios.work.task import EndedTask

if TYPE_CHECKING:
    from stripesim.scenarios.work.store import PartStore

#: Why a sweep stopped that the user interrupted.
INTERRUPTED: Final = "interrupted"


@dataclass
class EndedTasks:
    """The tasks of a sweep that have ended."""

    rows: dict[str, dict[str, Any]]  # by name of the task
    failed: list[EndedTask] = field(default_factory=list)
    stopped: str | None = None  # Reason why the sweep ended early.

    def add(self, outcome: EndedTask, store: PartStore | None) -> None:
        """Keep the outcome of a task, and store its row if it has one."""
        if outcome.row is None:
            self.failed.append(outcome)
            return
        if store is not None:
            store.add(outcome.task, outcome.row)
        self.rows[outcome.task.task_id] = outcome.row
