"""Limits the events caused by Recommendation objects of each namespace, so that events of others are not dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from adapter.foundation.time.clock import Clock
from adapter.foundation.time.rate_limit import RateLimit
from recommender.decisions.object_names import object_namespace

BURST: Final = 10
PER_SECOND: Final = 0.1
_MOST_NAMESPACES: Final = 10_000


class EventLimits:
    """Limits the events of Recommendation objects by namespace. Thread-safe.

    Recommendations of the configuration file are not limited.
    """

    def __init__(self, count: Callable[[str], None], clock: Clock = Clock()) -> None:  # noqa: B008 - immutable
        """`count` is called with `dropped` for each event beyond the limit."""
        self._count = count
        self._clock = clock
        self._lock = threading.Lock()
        self._limits: dict[str, RateLimit] = {}

    def permits(self, recommendation: str) -> bool:
        """Return whether a further event of a recommendation may be written; if not, count it as `dropped`."""
        namespace = object_namespace(recommendation)
        if not namespace:
            return True
        with self._lock:
            if namespace not in self._limits and len(self._limits) >= _MOST_NAMESPACES:
                self._limits.clear()
            limit = self._limits.setdefault(namespace, RateLimit(PER_SECOND, BURST, clock=self._clock.monotonic))
        is_permitted = limit.take(0.0)
        if not is_permitted:
            self._count("dropped")
        return is_permitted
