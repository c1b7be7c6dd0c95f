"""Queries to several backends: each Prometheus has connections and limits of its own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.prometheus.backends.data_sources import source_of
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED, Pace
from recommender.running.queries.query_values import NO_PROMETHEUS, QueryValues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.configuration.recommender_configuration import Configuration

_LACKING: Final = "it is not in `prometheus` any more: add it there, or correct `backend`"
_CHANGED: Final = "its configuration has just changed: the next poll uses the new one"


@dataclass(frozen=True, slots=True)
class BackendConnection:
    """The connection to one backend."""

    name: str
    """The name of the backend in the configuration; empty for a single backend, which needs no name."""
    settings: PrometheusSettings | None
    """The settings; None if there is nothing to query."""
    problem: str = ""
    """Why the backend is not queried although it could be; empty if it is queried."""

    @property
    def source(self) -> str:
        """Identifies the data of the backend."""
        return source_of(self.settings)


def connections_of(configuration: Configuration) -> dict[str, BackendConnection]:
    """Return the connections of a configuration, the default one under the empty name."""
    default, *others = configuration.backends or ("",)
    found = {"": BackendConnection(default, configuration.prometheus)}
    return found | {name: BackendConnection(name, configuration.backends[name]) for name in others}


@dataclass(frozen=True, slots=True)
class _Used:
    connection: BackendConnection
    source: str
    values: QueryValues


class BackendQueries:
    """Queries the backends of the configuration in force.

    `of` is for any number of threads, `use` for one at a time.
    """

    def __init__(
        self,
        connect: Callable[[str, PrometheusSettings], PrometheusClient],
        timeout_seconds: float,
        pace: Pace = UNPACED,
        *,
        is_public: bool = False,
    ) -> None:
        """`connect` takes the name of a backend, for its metrics, and returns a client that awaits its credentials.

        `is_public` is that of `QueryValues`.
        """
        self._connect = connect
        self._timeout_seconds = timeout_seconds
        self._pace = pace
        self._is_public = is_public
        self._used: Mapping[str, _Used] = {}

    def use(self, connections: Mapping[str, BackendConnection]) -> None:
        """Query these backends from now on."""
        before = self._used
        used = {}
        for backend, connection in connections.items():
            last = before.get(backend)
            is_same = last is not None and last.connection == connection
            used[backend] = last if last is not None and is_same else self._connect_backend(connection)
        self._used = used
        for backend, last in before.items():
            if used.get(backend) is not last:
                last.values.close()

    def of(self, backend: str, source: str) -> QueryValues:
        """Return the values of a backend, or values that are all Unknown if the backend no longer has this source.

        The default backend has the empty name. The check of `source` prevents anybody from using the answers of another
        Prometheus that a change of the file has given the same name.
        """
        used = self._used.get(backend)
        if used is not None and used.source == source:
            return used.values
        lacking = _LACKING if used is None else _CHANGED
        return QueryValues(None, self._pace, self._timeout_seconds, backend, lacking)

    def close(self) -> None:
        """Close the connections."""
        self.use({})

    def _connect_backend(self, connection: BackendConnection) -> _Used:
        settings = None if connection.problem else connection.settings
        client = None if settings is None else self._connect(connection.name, settings)
        lacking = connection.problem or NO_PROMETHEUS
        values = QueryValues(
            client, self._pace, self._timeout_seconds, connection.name, lacking, is_public=self._is_public
        )
        return _Used(connection, connection.source, values)


@contextmanager
def queries_to(connections: Mapping[str, BackendConnection], timeout_seconds: float) -> Iterator[BackendQueries]:
    """Yield the queries of a command, which asks these backends once, as fast as they answer."""
    queries = BackendQueries(
        lambda _backend, settings: PrometheusClient(settings, awaits_credentials=True), timeout_seconds
    )
    queries.use(connections)
    try:
        yield queries
    finally:
        queries.close()
