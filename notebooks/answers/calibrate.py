"""Lesson 4: calibrate from a block trace."""

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Calibrate"
NUMBERS = {
    "start": range(0, 281),
    # Smaller parts have too few reads that were alone, so that their slowdown is not known.
    "count": range(500, 601, 10),
    "held": range(10, 51),
    "rate": range(500, 8001, 100),
    "response_us": range(150, 2500, 10),
    "accepted": range(10, 31),
    "wait_us": range(110, 900, 10),
    "read_ms": range(11, 60),
    "hours": range(5, 48),
}
RUBRIC = (
    ("the trace, its recording and its limits", 3),
    ("the fit judged on held-out requests, with numbers", 4),
    ("a decision on which fitted numbers to use, and their purpose", 3),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `summary`, `fit` and `beside`."""
    alone_ms = d.read_ms / 10

    yield Question(
        "in flight",
        f"A device completes {d.rate:,} requests per second, each after {d.response_us} µs. How many are in "
        "flight?",
        lambda: d.rate * d.response_us / 1e6,
        tolerance=0.02,
        hint="Little's law.",
    )
    yield Question(
        "reads",
        f"The clients only *wrote*. If the load went on like this for {d.hours} hours, how many reads would "
        "the device nevertheless serve?",
        lambda: d.summary["iops"] * d.summary["read_ratio"] * d.hours * 3600,
        unit="reads",
        tolerance=0.02,
        hint="The summary has the rate, and the share of reads as a ratio.",
        why=lambda _: (
            f"{100 * d.summary['read_ratio']:.0f} % of the requests are reads. To overwrite part "
            "of a stripe, the "
            "primary first reads the stripe."
        ),
    )
    yield Question(
        "in flight, measured",
        "Use the rate and the mean response time of the trace: how many requests are in flight on average?",
        lambda: d.summary["iops"] * d.summary["response_mean_us"] / 1e6,
        tolerance=0.02,
        hint="`summary` has `iops` and `response_mean_us`.",
        why=lambda _: (
            f"Counting over time, the trace itself gives {d.summary['queue_depth_mean']:.2f}."
        ),
    )
    yield Question(
        "burstiness",
        "By Kingman's formula, the mean wait is proportional to the sum of two squared coefficients of "
        "variation: that of the interarrival times and that of the service times. With 1 for both (Poisson "
        f"arrivals, exponential service times), requests wait {d.wait_us} µs. How long do they wait with the "
        "interarrival times of the trace?",
        lambda: d.wait_us * (float(d.summary["interarrival_cv2"]) + 1) / 2,
        unit="µs",
        tolerance=0.02,
        hint="`summary` has `interarrival_cv2`. It takes the place of the first 1 in a sum of 2.",
        why=lambda _: (
            f"Their value is {d.summary['interarrival_cv2']:.2f}. Above 1, requests arrive in bursts, and a "
            "model with Poisson arrivals underestimates waiting."
        ),
    )
    yield Question(
        "held-out error",
        "By how many per cent does the fitted mean read time miss the held-out half?",
        lambda: abs(100 * d.read.held_out.mean_error),
        unit="%",
        tolerance=0.03,
        hint="`read.held_out.mean_error` is a ratio.",
        why=lambda _: (
            f"On the half used for the fit, it misses by {abs(100 * d.read.train.mean_error):.0f} %. "
            "Judged there, "
            "any fit looks good."
        ),
    )
    yield Question(
        "may it calibrate",
        f"You accept an error of at most {d.accepted} % in a model of an SSD. How many times as large is the "
        "error on the held-out half? (Above 1, these times may not calibrate it.)",
        lambda: abs(100 * d.read.held_out.mean_error) / d.accepted,
        tolerance=0.03,
        hint="Use the error on the held-out half, not the one on the half used for the fit.",
        why=lambda x: (
            "The machine was shared during the recording, and the held-out error shows it."
            if x > 1
            else "In this part of the trace both halves agree. That is not yet proof for the next day."
        ),
    )
    yield Question(
        "interference",
        f"A read alone takes {alone_ms:g} ms. How long does it take together with writes, by the slowdown "
        "measured here?",
        lambda: alone_ms * float(d.beside.slowdown),
        unit="ms",
        tolerance=0.02,
        hint="See the line of `read` with `other kind`.",
        why=lambda _: "The 95 % interval of the factor is {:.1f} to {:.1f}.".format(
            *d.beside.slowdown_ci95
        ),
    )
    yield Question(
        "split",
        f"Of 10,000 requests, {d.held} % are held out. If their error is random, by what factor does its "
        "standard error exceed that of all 10,000?",
        lambda: (100 / d.held) ** 0.5,
        tolerance=0.01,
        hint="The standard error of a mean falls with the square root of the count.",
        why="That is the price of honesty.",
    )
