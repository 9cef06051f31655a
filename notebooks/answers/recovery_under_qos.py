"""Lesson 9: recovery under QoS."""

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Recovery under QoS"
NUMBERS = {
    "capacity": (8_000, 12_000, 20_000),
    "reserved": (20, 30, 40),
    "limit": (50, 70, 80),
    "weight": (2, 3, 4),
}
RUBRIC = (
    ("a service level and the failure it is meant for", 2),
    ("the trade-off curve with at least four points, both axes with units", 4),
    ("a profile chosen, with what was given up for it", 4),
)


def questions(d: Given) -> Questions:
    """Questions; the lesson hands over `rows`: result rows by scheduler."""
    yield Question(
        "a reservation",
        f"An OSD can do {d.capacity:,} requests/s. Recovery has a reservation of {d.reserved} %, clients "
        "want all "
        "they can get and have a weight so large that nothing else is left over. How many do clients get?",
        lambda: d.capacity * (1 - d.reserved / 100),
        unit="requests/s",
        tolerance=0.02,
        hint="Reservations are served first.",
        why="A reservation binds, whatever the weights.",
    )
    yield Question(
        "a limit",
        f"The same OSD, no clients at all. Recovery has a limit of {d.limit} %. How many requests/s does "
        "it do?",
        lambda: d.capacity * d.limit / 100,
        unit="requests/s",
        tolerance=0.02,
        hint="A limit holds even when nobody else wants anything.",
        why="The rest of the OSD idles. That is the price of a limit: the next client finds it free.",
    )
    yield Question(
        "weights",
        f"No reservations, no limits; clients have weight {d.weight}, recovery weight 1, both want more than "
        "there is. How many requests/s does recovery do?",
        lambda: d.capacity / (d.weight + 1),
        unit="requests/s",
        tolerance=0.02,
        hint="Weights divide what reservations leave, in proportion.",
    )
    yield Question(
        "all three",
        f"Recovery: reservation {d.reserved} %, weight 1; clients: no reservation, weight {d.weight}. Both "
        "want more than there is. How many requests/s does recovery do?",
        lambda: d.capacity * max(d.reserved / 100, 1 / (d.weight + 1)),
        unit="requests/s",
        tolerance=0.02,
        hint="What recovery gets by its reservation counts towards its share.",
        why="The larger of the reservation and the share by weight: service under the reservation also "
        "advances the weight's tag.",
    )
    yield Question(
        "the fastest rebuild",
        "Which of the four runs is clean first? (as in SCHEDULERS)",
        lambda: min(d.rows, key=lambda name: d.rows[name]["recovery_s"]),
        hint="The column recovery.",
    )
    yield Question(
        "what clients keep",
        "Which share of the rate that they have before the failure do clients keep during recovery, under "
        "high_client_ops?",
        lambda: (
            100
            * d.rows["high_client_ops"]["iops_recovery"]
            / d.rows["high_client_ops"]["iops_before"]
        ),
        unit="%",
        hint="Two columns of its line.",
        why=lambda _: (
            f"Under wpq it is {100 * d.rows['wpq']['iops_recovery'] / d.rows['wpq']['iops_before']:.0f} %."
        ),
    )
    yield Question(
        "reserved but idle",
        "Nothing recovers. By how many per cent are clients slower under high_recovery_ops than under "
        "high_client_ops?",
        lambda: (
            100
            * (
                1
                - d.rows["high_recovery_ops"]["iops_before"]
                / d.rows["high_client_ops"]["iops_before"]
            )
        ),
        unit="%",
        hint="The column before.",
        why="Their limit holds although the OSD has time to spare.",
    )
    yield Question(
        "the trade",
        "By which factor is recovery under high_client_ops slower than under high_recovery_ops?",
        lambda: (
            d.rows["high_client_ops"]["recovery_s"]
            / d.rows["high_recovery_ops"]["recovery_s"]
        ),
        hint="Divide two cells of the column recovery.",
        why="A longer rebuild is a longer time with less redundancy: lesson 11 says what it costs in nines.",
    )
