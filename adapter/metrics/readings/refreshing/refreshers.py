"""Sends each query to the Prometheus of its rule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.backends.backend import attributed
from adapter.metrics.readings.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.metrics.readings.asking.queries import Query, Reading
    from adapter.metrics.readings.backends import Backends, Source
    from adapter.metrics.readings.refreshing.refresher import Refresher


class Refreshers:
    """Turns queries into readings, each by the Prometheus that it is for. Any thread may call it."""

    def __init__(self, backends: Backends, make: Callable[[Source], Refresher]) -> None:
        """`make` returns what asks one Prometheus; it is called for each query, so that it costs little."""
        self._backends = backends
        self._make = make

    def ask(self, query: Query, second: float | None = None) -> Reading | Failure:
        """Send the query and return its reading; `second` (Unix seconds) evaluates it at another time than now.

        Why a backend gave no reading begins with its name.
        """
        backend = query.key.backend
        outcome = self._make(self._backends.of(backend)).ask(query, second)
        if backend is None or not isinstance(outcome, Failure):
            return outcome
        public = None if outcome.public_message is None else attributed(backend, outcome.public_message)
        return replace(outcome, message=attributed(backend, outcome.message), public_message=public)
