"""Lesson 9: recovery under QoS."""

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Recovery under QoS"
NUMBERS = {
    "capacity": range(8_000, 20_001, 100),
    "fast_drive": range(25_000, 60_001, 500),
    "reserved": range(20, 46),
    "limit": range(50, 91),
    "weight": range(2, 10),
    "image_mib": range(2560, 5633, 128),
    "rebuilds": range(20, 300),
    "batch_million": range(100, 900, 10),
    "drive_tb": tuple(tenth / 10 for tenth in range(10, 80)),
}
RUBRIC = (
    ("a service level and the failure it covers", 2),
    ("the trade-off curve with at least four points, both axes with units", 4),
    ("a chosen profile and its price", 4),
)

#: Requests in flight in the runs of the lesson.
IN_FLIGHT = 64


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `rows`, the result rows by scheduler."""

    def kept(name: str) -> float:
        return float(100 * d.rows[name]["iops_recovery"] / d.rows[name]["iops_before"])

    def lost_requests(name: str) -> float:
        row = d.rows[name]
        return float((row["iops_before"] - row["iops_recovery"]) * row["recovery_s"])

    def stopped_s(name: str) -> float:
        """Return how long all requests waited for peering, which takes about a second [s]."""
        return float(d.rows[name]["blocked_recovery"] / IN_FLIGHT)

    def rebuild_rate(name: str) -> float:
        return float(d.rows[name]["recovery_bytes"] / d.rows[name]["recovery_s"])

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
        f"A fleet of such hosts rebuilds {d.rebuilds} OSDs a year. How many minutes a year does "
        "it spend longer in "
        "recovery with the slowest of the four settings than with the fastest?",
        lambda: (
            d.rebuilds
            / 60
            * (
                max(row["recovery_s"] for row in d.rows.values())
                - min(row["recovery_s"] for row in d.rows.values())
            )
        ),
        unit="minutes",
        tolerance=0.03,
        hint="See the column `recovery`.",
        why=lambda _: (
            f"{min(d.rows, key=lambda name: d.rows[name]['recovery_s'])} is the fastest."
        ),
    )
    yield Question(
        "what clients keep",
        f"Compared with their rate before the failure, how many million requests do clients lose in these "
        f"{d.rebuilds} recoveries under high_client_ops?",
        lambda: d.rebuilds * lost_requests("high_client_ops") / 1e6,
        unit="million requests",
        tolerance=0.03,
        hint="(Rate before − rate during) × recovery time, for each recovery.",
        why=lambda _: (
            f"They keep {kept('high_client_ops'):.0f} % of their rate. Under wpq they keep "
            f"{kept('wpq'):.0f} %, "
            "but for a shorter time, and lose "
            f"{d.rebuilds * lost_requests('wpq') / 1e6:,.1f} million. Most of it is no fault of the "
            f"scheduler: for about {stopped_s('high_client_ops'):.0f} of "
            f"{d.rows['high_client_ops']['recovery_s']:.0f} s, all {IN_FLIGHT} requests in flight waited for "
            "placement groups that peered."
        ),
    )
    yield Question(
        "reserved but idle",
        f"A drive serves {d.fast_drive:,} writes/s, but its OSD is set to a capacity of {d.capacity:,} "
        "requests/s, and high_recovery_ops limits clients to 80 % of that. How many minutes longer does a "
        f"batch of {d.batch_million} million writes take at this OSD while nothing recovers?",
        lambda: (
            d.batch_million * 1e6 / 60 * (1 / (0.8 * d.capacity) - 1 / d.fast_drive)
        ),
        unit="minutes",
        tolerance=0.02,
        hint="The limit is the rate. Divide the writes by it, and by what the drive serves.",
        why=lambda _: (
            "The limit holds although the OSD has spare capacity. In the runs above it does not bind: "
            f"clients get {d.rows['high_recovery_ops']['iops_before']:,.0f} writes/s from four OSDs, as they "
            "do under wpq."
        ),
    )
    yield Question(
        "the trade",
        f"A real drive holds {d.drive_tb:g} TB. At the rates of these runs, how many more minutes "
        "does its rebuild "
        "take under high_client_ops than under high_recovery_ops?",
        lambda: (
            d.drive_tb
            * 1e12
            / 60
            * (
                1 / rebuild_rate("high_client_ops")
                - 1 / rebuild_rate("high_recovery_ops")
            )
        ),
        unit="minutes",
        tolerance=0.02,
        hint="Divide the bytes by the two rates in the column `rate`.",
        why="A longer rebuild means more time with reduced redundancy. Lesson 11 expresses it in nines.",
    )
