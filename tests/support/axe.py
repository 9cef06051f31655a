"""Check an open page with axe-core, where STRIPESIM_AXE names its axe.min.js (``npm pack axe-core``)."""

import os
from pathlib import Path

import pytest

AXE = os.environ.get("STRIPESIM_AXE", "")
needs_axe = pytest.mark.skipif(
    not AXE, reason="STRIPESIM_AXE names no axe.min.js (npm pack axe-core)"
)

TIMEOUT_S = 60
# Fewer passed checks mean that axe saw no page.
PASSES_MIN = 20


def violations(browser):
    """Return the violated rules of the open page, each with the first elements that violate it."""
    browser.set_script_timeout(TIMEOUT_S)
    browser.execute_script(Path(AXE).read_text("utf-8"))
    passes, violated = browser.execute_async_script(
        "const elements = (rule) => rule.nodes.slice(0, 3).map((node) => node.html);"
        "axe.run().then((found) => arguments[0]([found.passes.length,"
        "  found.violations.map((rule) => [rule.id, elements(rule)])]))"
    )
    assert passes > PASSES_MIN
    return violated
