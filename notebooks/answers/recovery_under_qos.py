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
    ("a service level and the failure it covers", 2),
    ("the trade-off curve with at least four points, both axes with units", 4),
    ("a chosen profile and its price", 4),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `rows`, the result rows by scheduler."""
    yield Question(
        "a reservation",
        f"An OSD serves {d.capacity:,} requests/s. Recovery has a reservation of {d.reserved} %. "
        "Clients have "
        "unlimited demand and a weight so large that they take all that remains. What rate do they get?",
        lambda: d.capacity * (1 - d.reserved / 100),
        unit="requests/s",
        tolerance=0.02,
        hint="Reservations are served first.",
        why="A reservation binds, whatever the weights.",
    )
    yield Question(
        "a limit",
        f"The same OSD has no clients, and recovery has a limit of {d.limit} %. What rate does "
        "recovery reach?",
        lambda: d.capacity * d.limit / 100,
        unit="requests/s",
        tolerance=0.02,
        hint="A limit holds even if there is no other demand.",
        why="The rest of the capacity stays idle. In return, the next client finds the OSD free.",
    )
    yield Question(
        "weights",
        f"Now there are no reservations and no limits. Clients have weight {d.weight} and recovery "
        "has weight 1. "
        "Both have unlimited demand. What rate does recovery reach?",
        lambda: d.capacity / (d.weight + 1),
        unit="requests/s",
        tolerance=0.02,
        hint="Weights divide the capacity that reservations leave.",
    )
    yield Question(
        "all three",
        f"Recovery has a reservation of {d.reserved} % and weight 1. Clients have no reservation and weight "
        f"{d.weight}. Both have unlimited demand. What rate does recovery reach?",
        lambda: d.capacity * max(d.reserved / 100, 1 / (d.weight + 1)),
        unit="requests/s",
        tolerance=0.02,
        hint="Service under the reservation counts towards the share.",
        why="It gets the larger of its reservation and its share by weight, because service under "
        "the reservation "
        "also advances the weight tag.",
    )
    yield Question(
        "the fastest rebuild",
        "Which of the four runs becomes clean first? (as in SCHEDULERS)",
        lambda: min(d.rows, key=lambda name: d.rows[name]["recovery_s"]),
        hint="See the column `recovery`.",
    )
    yield Question(
        "what clients keep",
        "Under high_client_ops, what share of their rate before the failure do clients keep during recovery?",
        lambda: (
            100
            * d.rows["high_client_ops"]["iops_recovery"]
            / d.rows["high_client_ops"]["iops_before"]
        ),
        unit="%",
        hint="Divide two columns of its line.",
        why=lambda _: (
            f"Under wpq it is {100 * d.rows['wpq']['iops_recovery'] / d.rows['wpq']['iops_before']:.0f} %."
        ),
    )
    yield Question(
        "reserved but idle",
        "While nothing recovers, by how many per cent are clients slower under high_recovery_ops than under "
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
        hint="See the column `before`.",
        why="Their limit holds although the OSD has spare capacity.",
    )
    yield Question(
        "the trade",
        "By what factor is recovery slower under high_client_ops than under high_recovery_ops?",
        lambda: (
            d.rows["high_client_ops"]["recovery_s"]
            / d.rows["high_recovery_ops"]["recovery_s"]
        ),
        hint="Divide two cells of the column `recovery`.",
        why="A longer rebuild means more time with reduced redundancy. Lesson 11 expresses it in nines.",
    )
