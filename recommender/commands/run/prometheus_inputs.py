"""Inputs of decisions from Prometheus: values of queries, the history of loads, and the usage of containers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.prometheus.backends.backend_telemetry import BackendTelemetry
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from recommender.child_processes.parent import Children
from recommender.commands.program import METRICS_PREFIX
from recommender.configuration.needs import sizing_queries_of
from recommender.running.loads.load_service import LoadService
from recommender.running.queries.backend_queries import BackendQueries, connections_of
from recommender.running.queries.followed_queries import FollowedQueries
from recommender.running.usage.usage_service import UsageService

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import Observed, Unknown
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.foundation.time.pace import Pace
    from recommender.commands.run.shared_services import SharedServices
    from recommender.configuration.needs import AskedQuery
    from recommender.configuration.recommender_configuration import Configuration

QUERY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class PrometheusInputs:
    """The services that ask Prometheus for the inputs of decisions."""

    queries: BackendQueries
    followed: FollowedQueries
    loads: LoadService
    usage: UsageService
    telemetry: BackendTelemetry

    def use(self, configuration: Configuration) -> None:
        """Adopt a configuration."""
        connections = connections_of(configuration)
        self.queries.use(connections)
        self.followed.follow(sizing_queries_of(configuration))
        self.telemetry.keep(configuration.backends)
        self.loads.use(configuration)
        self.usage.use(configuration, connections)

    def value(self, asked: AskedQuery) -> Observed[float] | Unknown:
        """Return the current value of a query; Unknown if the query does not have exactly one value."""
        return self.followed.value(asked)

    def keep_learning(self, context: WorkerContext) -> None:
        """Start the tasks that read the history of loads and of container usage, and learn from it."""
        context.tasks.running("loads", self.loads.keep_histories)
        context.tasks.running("usage", self.usage.keep)
        context.tasks.running("models", self.loads.learn)


def prometheus_inputs(context: WorkerContext, parts: SharedServices, configuration: Configuration) -> PrometheusInputs:
    """Return the services that query the Prometheus of a configuration; they are closed when the worker ends."""
    telemetry = BackendTelemetry(context.registry, METRICS_PREFIX)
    children = Children(context.registry, METRICS_PREFIX, most=1)
    context.on_stopping(children.close)
    queries = _queries_until_stop(context, parts.pace, telemetry)
    # Usage has connections of its own, since its answers take long.
    queries_of_usage = _queries_until_stop(context, parts.pace, telemetry)
    found = PrometheusInputs(
        queries,
        FollowedQueries(lambda asked: queries.of(asked.backend, asked.source)),
        LoadService(queries, configuration.state, context.registry, parts.clock, children.run),
        UsageService(queries_of_usage, configuration.state, parts.clock),
        telemetry,
    )
    parts.lease_metrics.on_change(found.followed.forget)
    found.use(configuration)
    return found


def _queries_until_stop(context: WorkerContext, pace: Pace, telemetry: BackendTelemetry) -> BackendQueries:
    def connect(backend: str, settings: PrometheusSettings) -> PrometheusClient:
        return PrometheusClient(settings, telemetry=telemetry.of(backend), pace=pace, awaits_credentials=True)

    queries = BackendQueries(connect, QUERY_SECONDS, pace, is_public=True)
    context.on_stop(queries.close)
    return queries
