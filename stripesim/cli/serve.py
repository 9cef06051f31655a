"""`stripesim serve`: a page on this machine alone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stripesim.cli.options import SetOption


def serve(
    scenario: Annotated[
        str | None, typer.Argument(help="What to start from: a TOML file, or one that ships; left out: plan.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 8323,
    sets: SetOption = None,
) -> None:
    """Serve a page to compare two options as you type; on this machine alone (extra: web)."""
    try:
        import uvicorn

        from stripesim.web.app import create_app
    except ModuleNotFoundError as error:
        raise ValueError(
            f"serve: got no {error.name}, wanted the extra web: pip install 'stripesim[web]'"
        ) from None
    from stripesim.scenarios.schema.loader import load_scenario

    loaded = None if scenario is None else load_scenario(scenario, sets=sets or ())
    print(f"http://127.0.0.1:{port}/  (Ctrl+C ends it)", file=sys.stderr)
    uvicorn.run(create_app(loaded), host="127.0.0.1", port=port, log_level="warning")
