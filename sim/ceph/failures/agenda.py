"""What the director has to do later: handlers by time, first come first served within a moment."""

import heapq
from collections.abc import Callable
from typing import Any


class Agenda:
    """A calendar of handlers; each is called with the time and the arguments it was noted with."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._noted = 0

    def at(self, time_ns: int, handler: Callable[..., None], *arguments: Any) -> None:
        """Note that ``handler(time_ns, *arguments)`` is to be called at a time [ns]."""
        heapq.heappush(self._entries, (time_ns, self._noted, handler, arguments))
        self._noted += 1

    def next_ns(self) -> int | None:
        """Return the time of the first entry [ns]."""
        return self._entries[0][0] if self._entries else None

    def run(self, now_ns: int) -> None:
        """Call all that is due, also what a handler notes for this very moment."""
        while self._entries and self._entries[0][0] <= now_ns:
            _, _, handler, arguments = heapq.heappop(self._entries)
            handler(now_ns, *arguments)
