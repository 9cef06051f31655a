"""The experiments of the page with few requests, for worker processes, which inherit no patch of a test."""

from stripesim.scenarios.load import curves
from stripesim.scenarios.rehearsal import samples
from stripesim.web import experiments

REQUESTS = 500


def run_small_experiment(name, scenario, settings, *, emit, should_stop):
    """Run an experiment of the page on small samples."""
    curves._REQUESTS_MIN = REQUESTS
    curves._REQUESTS_MAX = REQUESTS
    samples.SHARDS_MAX = 200
    experiments._TIMELINE_IMAGES_BYTES = 1 << 30
    experiments.run_experiment(
        name, scenario, settings, emit=emit, should_stop=should_stop
    )
