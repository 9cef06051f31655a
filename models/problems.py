"""Every error that a user can cause, in one tree. Each message has a line for each problem.

A line reads ``place: key: got …, wanted …``, as far as the parts are known.
"""


class SchemeError(ValueError):
    """An invalid scheme, geometry or request. The message states the value and the valid ones."""


class DataLossError(SchemeError):
    """More shards are missing than the code can rebuild."""


class OwnCodeError(SchemeError):
    """A description that makes no code. The message has the file, the line and what is wrong."""


class CodecError(ValueError):
    """The encode library is missing, or rejects a backend, a shape or a set of fragments."""


class KernelError(ValueError):
    """Costs of kernels that cannot be measured, read or found."""


class PlacementError(ValueError):
    """An impossible placement. The message states the value and the valid ones."""


class CrushMapError(PlacementError):
    """An invalid CRUSH map, with one line per problem: ``file:line: got …, wanted …``."""

    @property
    def problems(self) -> list[str]:
        """The problems, one string each."""
        return str(self).splitlines()


class ParameterSetError(ValueError):
    """A missing or invalid parameter set. The message names file and key."""


class ProgramError(ValueError):
    """An engine's program, or a system that makes one, that contradicts itself."""


class StepsError(ValueError):
    """A graph with more steps than an engine accepts.

    Attributes
    ----------
    name
        Name of the graph.
    steps, most
        Its steps, and the most that an engine accepts [count].
    """

    def __init__(self, name: str, steps: int, most: int) -> None:
        super().__init__(name, steps, most)
        self.name = name
        self.steps = steps
        self.most = most

    def __str__(self) -> str:
        return f"{self.name}: got {self.steps} steps, wanted at most {self.most}"


class FaultError(ValueError):
    """A plan of faults that contradicts itself or the cluster.

    Attributes
    ----------
    event
        Number of the event, from 0.
    key
        Key of the event that is wrong, empty if it is the event as a whole.
    got, wanted
        The value, and the valid ones.
    """

    def __init__(self, event: int, got: str, wanted: str, key: str = "") -> None:
        super().__init__(event, got, wanted, key)
        self.event = event
        self.got = got
        self.wanted = wanted
        self.key = key

    def __str__(self) -> str:
        return f"fault {self.event}: got {self.got}, wanted {self.wanted}"


class UnavailableError(ValueError):
    """A placement group has lost more shards than its scheme tolerates."""


class TraceError(ValueError):
    """A trace that cannot be used, with one line per problem up to a limit, and a summary."""


class FitError(ValueError):
    """A trace that lacks the data for a fit. The message states what it has and what is needed."""


class MeasuredError(ValueError):
    """Measurements that cannot be used, with one line for each problem."""


class SizeError(ValueError):
    """A size that cannot be read. The message has the form ``got …, wanted …``."""


class TomlBoundError(ValueError):
    """A TOML document that exceeds a bound.

    Attributes
    ----------
    line
        Line of the first excess, from 1.
    got, wanted
        The document's value, and the bound.
    """

    def __init__(self, line: int, got: str, wanted: str) -> None:
        super().__init__(f"line {line}: got {got}, wanted {wanted}")
        self.line = line
        self.got = got
        self.wanted = wanted


class ScenarioError(ValueError):
    """An invalid scenario, with a line ``place: key: got …, wanted …`` for each problem.

    The place is ``file:line`` or, for overrides, ``--set``.
    """

    @property
    def faults(self) -> list[str]:
        """Lines of the message, one for each problem."""
        return str(self).splitlines()


class ClusterImportError(ValueError):
    """A file that cannot be imported, with a line ``file: key: got …, wanted …`` for each problem."""


class RefusedError(ValueError):
    """Numbers that fail the audit."""

    exit_status = 3  #: Of a command that ends with it


class AnswerError(ValueError):
    """A question that cannot be answered, or an answer that cannot be shown or stored."""


class StudyError(ValueError):
    """A study that cannot run, or whose claims or parameters are invalid, with one line per problem."""


class NotComputedError(Exception):
    """A claim without a value. The text is the reason; if empty, the file's ``not_computed`` has it."""


class SweepError(ValueError):
    """A sweep that cannot run, with one line per problem."""


class WorkError(ValueError):
    """Work on other processes that cannot start or end."""


class WorkLostError(SweepError):
    """A Dask cluster went away before all tasks were complete. Rows up to then are kept."""
