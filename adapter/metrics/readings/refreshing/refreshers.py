"""Sends each query to the Prometheus of its rule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.backends.backend import with_backend_name
from adapter.metrics.readings.failure import Failure
from adapter.metrics.readings.refreshing.refresher import Presence, Refresher, Remarks, Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.metrics.readings.asking.queries import Query, Reading
    from adapter.metrics.readings.prometheus_uptime import PrometheusUptime
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.readings.samples.shared_names import SharedNames


class Refreshers:
    """Turns queries into readings, each through its own Prometheus. Any thread may call it."""

    def __init__(
        self,
        sources: ReadingSources,
        names: SharedNames,
        telemetry: Tally,
        remarks: Remarks,
        presence: Callable[[PrometheusUptime], Presence] = lambda uptime: uptime,
    ) -> None:
        """`presence` returns, for a Prometheus's uptime record, the object that records how each query ends."""
        self._sources = sources
        self._names = names
        self._telemetry = telemetry
        self._remarks = remarks
        self._presence = presence

    def ask(self, query: Query, second: float | None = None) -> Reading | Failure:
        """Send the query and return its reading; `second` (Unix seconds) is the evaluation time if it is not now.

        The reason for a missing reading begins with the name of the backend.
        """
        backend = query.key.backend
        source = self._sources.backends.of(backend)
        uptime = self._presence(source.uptime)
        refresher = Refresher(self._sources, source.prometheus, uptime, self._names, self._telemetry, self._remarks)
        outcome = refresher.ask(query, second)
        if backend is None or not isinstance(outcome, Failure):
            return outcome
        public = None if outcome.public_message is None else with_backend_name(backend, outcome.public_message)
        return replace(outcome, message=with_backend_name(backend, outcome.message), public_message=public)
