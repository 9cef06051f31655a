"""Check the facts in a message without its wording."""

import re

WORDING = " ... "


def states(message: str, expected: str) -> bool:
    """Return True if a message states the expected facts in order, where ``...`` skips its wording.

    Numbers count as a whole: 4 is not found in 40 or in 0.4.
    """
    facts = []
    for fact in expected.split(WORDING):
        start = r"(?<![\w.])" if fact[0].isdigit() else ""
        end = r"(?!\w|\.\d)" if fact[-1].isdigit() else ""
        facts.append(start + re.escape(fact) + end)
    return re.search(".*".join(facts), message, re.DOTALL) is not None
