"""The tasks of a sweep that have ended."""

from __future__ import annotations

from collections.abc import Sequence
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

    def add(self, ended: Sequence[EndedTask], store: PartStore | None) -> None:
        """Keep the outcomes of tasks that have ended together, and store the rows of those that have one."""
        self.failed += [outcome for outcome in ended if outcome.row is None]
        rows = [(task, row) for task, row, _ in ended if row is not None]
        if store is not None:
            store.add(rows)
        self.rows |= {task.task_id: row for task, row in rows}
