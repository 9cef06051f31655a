"""Lesson 4: calibrate from a block trace."""

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Calibrate"
NUMBERS = {
    "held": (20, 30, 40),
    "rate": (500, 2000, 8000),
    "response_us": (150, 600, 2500),
}
RUBRIC = (
    ("the trace, its recording and its limits", 3),
    ("the fit judged on held-out requests, with numbers", 4),
    ("a decision on which fitted numbers to use, and their purpose", 3),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `summary`, `fit` and `beside`."""
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
        "The clients only *wrote*. What share of the device's requests are nevertheless reads?",
        lambda: 100 * d.summary["read_ratio"],
        unit="%",
        hint="The summary has it as a ratio.",
        why="To overwrite part of a stripe, the primary first reads the stripe.",
    )
    yield Question(
        "in flight, measured",
        "Use the rate and the mean response time of the trace: how many requests are in flight on average?",
        lambda: d.summary["iops"] * d.summary["response_mean_us"] / 1e6,
        tolerance=0.15,
        hint="`summary` has `iops` and `response_mean_us`.",
        why=lambda _: (
            f"Counting over time, the trace itself gives {d.summary['queue_depth_mean']:.2f}."
        ),
    )
    yield Question(
        "burstiness",
        "Find the squared coefficient of variation of the interarrival times. (It is 1 for a Poisson "
        "stream.)",
        lambda: float(d.summary["interarrival_cv2"]),
        hint="`summary` has it.",
        why="Above 1, requests arrive in bursts, and a model with Poisson arrivals would "
        "underestimate waiting.",
    )
    yield Question(
        "held-out error",
        "By how many per cent does the fitted mean read time miss the held-out half?",
        lambda: abs(100 * d.read.held_out.mean_error),
        unit="%",
        tolerance=0.05,
        hint="`read.held_out.mean_error` is a ratio.",
        why=lambda _: (
            f"On the half used for the fit, it misses by {abs(100 * d.read.train.mean_error):.0f} %. "
            "Judged there, "
            "any fit looks good."
        ),
    )
    yield Question(
        "may it calibrate",
        "May these times calibrate a model of an SSD, if 20 % is the largest error you accept? (yes or no)",
        lambda: "no" if abs(d.read.held_out.mean_error) > 0.2 else "yes",
        hint="Use the error on the held-out half.",
        why="The machine was shared during the recording, and the held-out error shows it.",
    )
    yield Question(
        "interference",
        "By what factor does a read take longer together with writes than alone?",
        lambda: float(d.beside.slowdown),
        hint="See the line of `read` with `other kind`.",
        why=lambda _: "Its 95 % interval is {:.1f} to {:.1f}.".format(
            *d.beside.slowdown_ci95
        ),
    )
    yield Question(
        "split",
        f"Of 10,000 requests, {d.held} % are held out. If their error is random, by what factor does its "
        "standard error exceed that of all 10,000?",
        lambda: (100 / d.held) ** 0.5,
        tolerance=0.02,
        hint="The standard error of a mean falls with the square root of the count.",
        why="Honesty costs little.",
    )
