"""The experiments of the page in forms for tests, for workers, which inherit no patch of a test."""

import signal
import time
from itertools import islice
from unittest.mock import patch

from stripesim.scenarios.answers.load import curve_builder
from stripesim.scenarios.answers.rehearse import rehearse, samples
from stripesim.scenarios.forms import rebuild
from stripesim.web import experiments
from stripesim.web.options import option_of

REQUESTS = 500


def run_small_experiment(name, scenario, settings, *, should_stop):
    """Run an experiment of the page on small samples."""
    with (
        patch.object(curve_builder, "_REQUESTS_MIN", REQUESTS),
        patch.object(curve_builder, "_REQUESTS_MAX", REQUESTS),
        patch.object(samples, "SHARDS_MAX", 200),
        # A change this small is otherwise rehearsed with more backfills too, which the page does not show.
        patch.object(rehearse, "BACKFILLS_SHARDS_MAX", 0),
        # Curves end with all points on a busy machine, too.
        patch.object(experiments, "CURVE_S_MAX", 120.0),
        patch.object(experiments, "_TIMELINE_IMAGES_BYTES", 1 << 30),
    ):
        yield from experiments.run_experiment(
            name, scenario, settings, should_stop=should_stop
        )


def run_small_growth(name, scenario, settings, *, should_stop):
    """Run the experiment that adds hosts, and no other."""
    run = run_small_experiment if name == "added" else run_no_experiment
    yield from run(name, scenario, settings, should_stop=should_stop)


def run_first_points(name, scenario, settings, *, should_stop):
    """Run an experiment for its first four items, and wait until it is stopped."""
    # However long they take on a busy machine.
    with patch.object(experiments, "CURVE_S_MAX", 120.0):
        whole = experiments.run_experiment(
            name, scenario, settings, should_stop=should_stop
        )
        yield from islice(whole, 4)
    yield from run_until_stopped(name, scenario, settings, should_stop=should_stop)


def run_until_stopped(name, scenario, settings, *, should_stop):
    """Run without an end and without work."""
    while not should_stop():
        time.sleep(0.05)
    yield from ()


def run_briefly(name, scenario, settings, *, should_stop):
    """Run a moment without work."""
    time.sleep(0.1)
    yield from ()


def run_no_experiment(name, scenario, settings, *, should_stop):
    """Report that nothing is simulated, as the page reports an experiment that failed."""
    raise ValueError("not simulated in this test")


def work_without_end(*_args):
    while True:
        pass


def option_with_quick_rebuild(*args):
    """Compute an option, whose durability follows from the rebuild of a small sample."""
    rebuild.RATE_OBJECTS = 50
    return option_of(*args)


def option_after_a_while(*args):
    """Compute an option as on a busy machine."""
    time.sleep(3.0)
    return option_with_quick_rebuild(*args)


def durability_without_end(*_args):
    # The limit of the option is ten seconds. Let it act after a tenth of one.
    signal.setitimer(signal.ITIMER_PROF, 0.1, 1.0)
    work_without_end()


def option_with_endless_durability(*args):
    """Compute an option whose durability takes more than the processor time of an option."""
    with (
        patch("stripesim.web.options.nines_of", durability_without_end),
        patch("stripesim.web.options.OPTIONS_PROCESSOR_S_MAX", 10.0),
    ):
        return option_of(*args)
