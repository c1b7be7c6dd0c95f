"""Settings that depend on the namespace in which the process runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.kinds.table import kind_of

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration


def with_own_namespace(configuration: Configuration, namespace: str) -> Configuration:
    """Return the configuration with this process's namespace as another place in which to look for Cluster Autoscaler.

    `namespace` is the namespace of the pod, empty if it is unknown; `leaderElection.namespace` takes precedence.
    """
    own = configuration.leader_election.namespace or namespace
    if not own:
        return configuration
    recommendations = tuple(
        replace(each, subject=kind_of(each.policy.type).for_own_namespace(each.subject, own))
        for each in configuration.recommendations
    )
    return replace(configuration, recommendations=recommendations)
