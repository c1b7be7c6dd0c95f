"""Leaves out backends that do not answer, so that answers of other backends do not become old in the meantime."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.prometheus.errors import PrometheusError, SettingsError
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from recommender.running.queries.backend_queries import BackendConnection

_SECONDS: Final = 5.0
_QUERY: Final = "vector(1)"


def answering(connections: Mapping[str, BackendConnection], wanted: Collection[str]) -> Mapping[str, BackendConnection]:
    """Return the connections to the wanted backends; of several, those that do not answer state why as `problem`."""
    chosen = {backend: each for backend, each in connections.items() if backend in wanted}
    if len(chosen) < 2:
        return chosen
    with ThreadPoolExecutor(len(chosen)) as threads:
        return dict(zip(chosen, threads.map(_connection_with_problem, chosen.values()), strict=True))


def _connection_with_problem(connection: BackendConnection) -> BackendConnection:
    if connection.settings is None:
        return connection
    try:
        with PrometheusClient(connection.settings) as client:
            client.instant(_QUERY, timeout_seconds=_SECONDS)
    except (PrometheusError, SettingsError) as error:
        return replace(connection, problem=f"it does not answer: {error}")
    return connection
