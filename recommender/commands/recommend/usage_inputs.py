"""The usage of the targets of recommendations that follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.client import PrometheusClient
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED
from recommender.running.query_values import QueryValues
from recommender.running.usage.usage_needs import usage_needs_of
from recommender.running.usage.usage_service import LONGEST_QUERY_SECONDS, UsageService

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import Observed, Unknown
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.record import TargetReference


def usage_inputs(
    configuration: Configuration,
) -> Mapping[str, Mapping[TargetReference, Observed[object] | Unknown] | Unknown]:
    """Return the usage by recommendation, as a recommender that has run for long would see it.

    The history is read from Prometheus unless a recommender has stored it in the folder `state` of the configuration.
    Nothing is written.
    """
    if not usage_needs_of(configuration):
        return {}
    queries = QueryValues(PrometheusClient, UNPACED, LONGEST_QUERY_SECONDS)
    service = UsageService(queries, configuration.state, Clock())
    try:
        service.use(configuration)
        service.read_once()
        return service.inputs()
    finally:
        queries.close()
