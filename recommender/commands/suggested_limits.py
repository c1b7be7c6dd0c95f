"""Suggests a value, from the history of the load, for refused entries that lack `maxReplicas`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Unknown
from recommender.commands.configuration_file import configuration_or_exit
from recommender.kinds.predictive.predictive_settings import PredictiveSettings, predictive_settings
from recommender.kinds.predictive.suggested_limit import FIND_LIMIT, UNLIMITED, largest_load_query, suggestion
from recommender.running.queries.backend_queries import connections_of, queries_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.documents.tree import DocumentProblem
    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.running.queries.query_values import QueryValues

QUERY_SECONDS: Final = 20.0


def with_suggested_limits(configuration: Configuration, values: FlagValues) -> Configuration:
    """Return the configuration, in which the problem of each entry that lacks a limit now suggests one.

    Prometheus is queried once for each of these entries.
    """
    unlimited = {each.name for each in configuration.refused if any(map(_lacks_limit, each.problems))}
    if not unlimited:
        return configuration
    # A backtest writes nothing, so that its reader accepts these entries.
    _, accepted = configuration_or_exit(values, for_backtest=True)
    settings = predictive_settings(each for each in accepted.recommendations if each.policy.name in unlimited)
    backends = {each.policy.name: configuration.backend_of(each.policy.backend) for each in accepted.recommendations}
    connections = connections_of(configuration)
    with queries_to(connections, QUERY_SECONDS) as queries:
        fixes = {
            name: _fix(each, queries.of(backends[name], connections[backends[name]].source))
            for name, each in settings.items()
        }
    refused = (
        replace(each, problems=tuple(_with_fix(problem, each.name, fixes) for problem in each.problems))
        for each in configuration.refused
    )
    return replace(configuration, refused=tuple(refused))


def _lacks_limit(problem: DocumentProblem) -> bool:
    return problem.message == UNLIMITED


def _with_fix(problem: DocumentProblem, name: str, fixes: Mapping[str, str]) -> DocumentProblem:
    return replace(problem, fix=fixes[name]) if _lacks_limit(problem) and name in fixes else problem


def _fix(settings: PredictiveSettings, queries: QueryValues) -> str:
    query = largest_load_query(settings)
    if not query or settings.load_per_replica is None:
        return FIND_LIMIT
    found = queries.value(query)
    if isinstance(found, Unknown):
        return f"{FIND_LIMIT}; its history could not be asked: {found.reason}"
    if not (math.isfinite(found.value) and found.value >= 0):
        return f"{FIND_LIMIT}; its largest load is {found.value:g}, which is not a load"
    return suggestion(found.value, settings)
