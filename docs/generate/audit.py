"""Generate the catalogue of the audit."""

from __future__ import annotations

from stripesim.sim.observe.audit import CHECKS, Check

# The marker in docs/trust/audit.md that the catalogue replaces.
MARKER = "<!-- audit -->"


def catalogue() -> str:
    """Return a section for each check."""
    return "\n".join(map(_section, CHECKS))


def _section(check: Check) -> str:
    failure = (
        "The row is refused." if check.refuses else "The answer carries a warning."
    )
    return (
        f"### {check.name}\n\n"
        f"**{check.equation}**\n\n"
        f"{check.meaning}\n\n"
        f"- *Applies to:* {check.applies_to}.\n"
        f"- *Tolerance:* {check.tolerance}\n"
        f"- *On failure:* {failure}\n"
    )
