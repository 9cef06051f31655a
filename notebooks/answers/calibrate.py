"""Lesson 4: calibrate from a block trace."""

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Calibrate"
NUMBERS = {
    "held": (20, 30, 40),
    "rate": (500, 2000, 8000),
    "response_us": (150, 600, 2500),
}
RUBRIC = (
    ("the trace, how it was recorded, and what it cannot show", 3),
    ("fit judged on requests that it has not seen, with the numbers", 4),
    ("a decision: which of the fitted numbers may be used, and for what", 3),
)


def questions(d: Given) -> Questions:
    """Questions; the lesson hands over `summary`, `fit` and `beside`."""
    yield Question(
        "in flight",
        f"A device completes {d.rate:,} requests a second, each after {d.response_us} µs. How many are "
        "in flight?",
        lambda: d.rate * d.response_us / 1e6,
        tolerance=0.02,
        hint="Little's law.",
    )
    yield Question(
        "reads",
        "The clients only *wrote*. Which share of the device's requests are reads all the same?",
        lambda: 100 * d.summary["read_ratio"],
        unit="%",
        hint="It is in the summary, as a ratio.",
        why="Overwriting part of a stripe reads the rest of it first.",
    )
    yield Question(
        "in flight, measured",
        "From rate and mean response time of the trace: how many requests are in flight on average?",
        lambda: d.summary["iops"] * d.summary["response_mean_us"] / 1e6,
        tolerance=0.15,
        hint="`summary` has iops and response_mean_us.",
        why=lambda _: (
            f"Counted over time, the trace itself gives {d.summary['queue_depth_mean']:.2f}."
        ),
    )
    yield Question(
        "burstiness",
        "What is the squared coefficient of variation of the gaps between arrivals? (1 for a Poisson stream)",
        lambda: float(d.summary["interarrival_cv2"]),
        hint="`summary` has it.",
        why="Above 1, requests come in bursts: a model with Poisson arrivals would wait too little.",
    )
    yield Question(
        "held-out error",
        "By how many per cent is the fitted mean read time off on the half that it has not seen?",
        lambda: abs(100 * d.read.held_out.mean_error),
        unit="%",
        tolerance=0.05,
        hint="`read.held_out.mean_error` is a ratio.",
        why=lambda _: (
            f"On the half it was fitted to, {abs(100 * d.read.train.mean_error):.0f} %: judged there, any "
            "fit looks good."
        ),
    )
    yield Question(
        "may it calibrate",
        "May these times calibrate a model of an SSD, if 20 % is the largest error you accept? (yes or no)",
        lambda: "no" if abs(d.read.held_out.mean_error) > 0.2 else "yes",
        hint="Use the error on the half that the fit has not seen.",
        why="The machine was shared while it was recorded, and the held-out error shows it.",
    )
    yield Question(
        "interference",
        "How many times as long as alone does a read take beside writes?",
        lambda: float(d.beside.slowdown),
        hint="The row `read`, company `other kind`.",
        why=lambda _: "Its 95 % interval is {:.1f} to {:.1f}.".format(
            *d.beside.slowdown_ci95
        ),
    )
    yield Question(
        "split",
        f"Of 10,000 requests, {d.held} % are held out. If the error on them is random, by which factor is "
        "its standard error larger than with all 10,000?",
        lambda: (100 / d.held) ** 0.5,
        tolerance=0.02,
        hint="The standard error of a mean falls with the square root of the count.",
        why="The price of honesty is small.",
    )
