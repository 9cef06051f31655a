"""Pinned keys in the SimPy engine."""

from collections import Counter

from stripesim.sim.engine.simpy.paths import RequestInFlight


class Pins:
    """The number of pins of each key."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def pin(self, request: RequestInFlight, which: int) -> None:
        """Pin every key of one of a request's ranges."""
        request.pinned[which] += 1
        self.counts.update(request.keys[which])

    def unpin(self, request: RequestInFlight, which: int) -> None:
        """Remove one pin of every key of a range."""
        request.pinned[which] -= 1
        for key in request.keys[which]:
            self.counts[key] -= 1
            if not self.counts[key]:
                del self.counts[key]

    def unpin_all(self, request: RequestInFlight) -> None:
        """Remove all pins of a request."""
        for which, times in enumerate(request.pinned):
            for _ in range(times):
                self.unpin(request, which)

    def pinned_by_others(self, request: RequestInFlight, which: int) -> bool:
        """Return True if other requests pin each key of a range."""
        return all(
            self.counts[key] > self._pinned_by(request, key)
            for key in request.keys[which]
        )

    def _pinned_by(self, request: RequestInFlight, key: int) -> int:
        return sum(
            times
            for times, keys in zip(request.pinned, request.keys, strict=True)
            if key in keys
        )
