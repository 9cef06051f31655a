"""Requests that are refused: those that other sites send, and forms that are too large or too slow."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import FormData, Headers
from starlette.exceptions import HTTPException
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

#: Bytes of all forms that are read or used at the same time.
FORMS_BYTES_MAX: Final = 160 << 20
#: Time that a browser may take to send a form [s].
FORM_WALL_S_MAX: Final = 60.0

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # With no-referrer a browser sends the Origin of a form as null.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Next = Callable[[Request], Awaitable[Response]]


class Guard(BaseHTTPMiddleware):
    """Refuse requests of pages of other sites, and add the headers that every answer has."""

    async def dispatch(self, request: Request, call_next: Next) -> Response:
        """Answer a request."""
        if is_foreign(request.method, request.headers):
            return PlainTextResponse(
                "from another site", status_code=403, headers=HEADERS
            )
        answer = await call_next(request)
        answer.headers.update(HEADERS)
        return answer


def is_foreign(method: str, headers: Headers) -> bool:
    """Return True if a page of another site may have sent a request.

    Browsers send ``Sec-Fetch-Site``, which no page can forge. Older ones name the page in ``Origin`` with
    every form. Other programs send neither, and a page of another site cannot steer them.
    """
    site = headers.get("sec-fetch-site")
    if method in ("GET", "HEAD"):
        # A link may come from anywhere; other pages may not let the server compute.
        is_link = headers.get("sec-fetch-mode") == "navigate"
        return site in ("cross-site", "same-site") and not is_link
    if site is not None:
        return site != "same-origin"
    origin = headers.get("origin")
    return origin is not None and _host_of(origin) != headers.get("host")


def _host_of(origin: str) -> str | None:
    """Return host and port of an origin; None for ``null`` and for what is malformed."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


class FormReader:
    """Reads forms of bounded size in bounded time, and few bytes of all forms at the same time."""

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
        """Read a form, whatever length it claims, and hold its bytes until the end of the context.

        Raises `HTTPException` with status 413 if it is too large, 503 if others hold too much, and 408 if it
        takes too long.
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
        except TimeoutError:
            raise HTTPException(
                408, f"got no whole form within {self._wall_s_max:g} s"
            ) from None
        finally:
            self._held_bytes -= received_bytes
