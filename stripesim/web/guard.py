"""Reject requests from other sites, and forms that are too large or too slow."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import FormData, Headers
from starlette.exceptions import HTTPException
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

#: Limit on the size of all forms being read or used at the same time [B].
FORMS_BYTES_MAX: Final = 160 << 20
#: Time limit for receiving a form [s].
FORM_WALL_S_MAX: Final = 60.0

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # With no-referrer, browsers send a null Origin with forms.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Next = Callable[[Request], Awaitable[Response]]


class Guard(BaseHTTPMiddleware):
    """Reject requests that pages of other sites send, and add security headers to every response."""

    async def dispatch(self, request: Request, call_next: Next) -> Response:
        """Handle a request."""
        if is_foreign(request.method, request.headers):
            return PlainTextResponse(
                "from another site", status_code=403, headers=HEADERS
            )
        answer = await call_next(request)
        answer.headers.update(HEADERS)
        return answer


def is_foreign(method: str, headers: Headers) -> bool:
    """Return True if a page of another site may have sent a request.

    Browsers send ``Sec-Fetch-Site``, which pages cannot forge. Older browsers send the ``Origin`` of the page
    with every form. Other programs send neither, and a foreign page cannot control them.
    """
    site = headers.get("sec-fetch-site")
    if method in ("GET", "HEAD"):
        # Links may come from any site, but other pages must not make this server compute.
        is_link = headers.get("sec-fetch-mode") == "navigate"
        return site in ("cross-site", "same-site") and not is_link
    if site is not None:
        return site != "same-origin"
    origin = headers.get("origin")
    return origin is not None and _host_of(origin) != headers.get("host")


def _host_of(origin: str) -> str | None:
    """Return the host and port of an origin, or None if it is ``null`` or malformed."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


class FormReader:
    """Read forms with limits on size and time, and on the total size of concurrent forms."""

    def __init__(
        self,
        total_bytes_max: int = FORMS_BYTES_MAX,
        wall_s_max: float = FORM_WALL_S_MAX,
    ) -> None:
        self._total_bytes_max = total_bytes_max
        self._wall_s_max = wall_s_max
        self._held_bytes = 0

    @asynccontextmanager
    async def read(self, request: Request, most_bytes: int) -> AsyncIterator[FormData]:
        """Read a form without trusting its stated length, and account for its bytes until the context ends.

        Raises `HTTPException` with status 413 if the form is too large, 503 if all forms together are, 408
        if it arrives too slowly, and 400 if the client leaves.
        """
        received_bytes = 0

        async def receive() -> Any:
            nonlocal received_bytes
            message = await request.receive()
            size_bytes = len(message.get("body", b""))
            received_bytes += size_bytes
            self._held_bytes += size_bytes
            if received_bytes > most_bytes:
                raise HTTPException(413, f"got more than {most_bytes:,} bytes")
            if self._held_bytes > self._total_bytes_max:
                raise HTTPException(503, "too many uploads at the same time: try again")
            return message

        bounded = Request(request.scope, receive)
        try:
            with anyio.fail_after(self._wall_s_max):
                form = await bounded.form(max_files=1, max_fields=100)
            yield form
            await form.close()
        except ClientDisconnect:
            # No client reads this answer.
            raise HTTPException(
                400, "got no complete form, since the client left"
            ) from None
        except TimeoutError:
            raise HTTPException(
                408, f"got no complete form within {self._wall_s_max:g} s"
            ) from None
        finally:
            self._held_bytes -= received_bytes
