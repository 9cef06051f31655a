# The public names, for type checkers and editors; at run time they load at their first use.
from stripesim._version import __version__ as __version__
from stripesim.api import (
    BlockTrace as BlockTrace,
)
from stripesim.api import (
    CaptionedFigure as CaptionedFigure,
)
from stripesim.api import (
    Claim as Claim,
)
from stripesim.api import (
    Cluster as Cluster,
)
from stripesim.api import (
    FailureTrace as FailureTrace,
)
from stripesim.api import (
    Ledger as Ledger,
)
from stripesim.api import (
    Pool as Pool,
)
from stripesim.api import (
    RedundancyScheme as RedundancyScheme,
)
from stripesim.api import (
    RunResult as RunResult,
)
from stripesim.api import (
    Scenario as Scenario,
)
from stripesim.api import (
    ScenarioError as ScenarioError,
)
from stripesim.api import (
    ScenarioResult as ScenarioResult,
)
from stripesim.api import (
    StudyResult as StudyResult,
)
from stripesim.api import (
    SweepResult as SweepResult,
)
from stripesim.api import (
    Timeline as Timeline,
)
from stripesim.api import (
    TraceFit as TraceFit,
)
from stripesim.api import (
    claims as claims,
)
from stripesim.api import (
    cluster as cluster,
)
from stripesim.api import (
    describe_trace as describe_trace,
)
from stripesim.api import (
    draw_all as draw_all,
)
from stripesim.api import (
    draw_timelines as draw_timelines,
)
from stripesim.api import (
    drawing as drawing,
)
from stripesim.api import (
    durability as durability,
)
from stripesim.api import (
    explain as explain,
)
from stripesim.api import (
    fit_trace as fit_trace,
)
from stripesim.api import (
    format_size as format_size,
)
from stripesim.api import (
    heading as heading,
)
from stripesim.api import (
    import_report as import_report,
)
from stripesim.api import (
    latency_words as latency_words,
)
from stripesim.api import (
    load_scenario as load_scenario,
)
from stripesim.api import (
    load_trace as load_trace,
)
from stripesim.api import (
    parse_scenario as parse_scenario,
)
from stripesim.api import (
    parse_scheme as parse_scheme,
)
from stripesim.api import (
    parse_size_bytes as parse_size_bytes,
)
from stripesim.api import (
    pool as pool,
)
from stripesim.api import (
    run as run,
)
from stripesim.api import (
    save_figures as save_figures,
)
from stripesim.api import (
    shipped_scenarios as shipped_scenarios,
)
from stripesim.api import (
    simulate as simulate,
)
from stripesim.api import (
    studies as studies,
)
from stripesim.api import (
    study as study,
)
from stripesim.api import (
    sweep as sweep,
)
from stripesim.api import (
    table_rows as table_rows,
)
from stripesim.api import (
    workload as workload,
)
from stripesim.api import (
    write_fit as write_fit,
)
