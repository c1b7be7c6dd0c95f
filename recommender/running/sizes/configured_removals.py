"""Determines which removals of nodes the configuration in force allows. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.policy_settings import Output
from recommender.kinds.cluster_size.model.size_settings import (
    ClusterSizeSettings,
    NodeGroupSources,
    cluster_size_settings,
    provider_name,
)

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.running.sizes.removal_marks import RemovalMark


def are_configured(configuration: Configuration) -> bool:
    """Return whether a recommendation removes nodes through a provider."""
    scaling, found = configuration.names_with(Output.SCALE), cluster_size_settings(configuration.recommendations)
    return any(settings.node_groups.delete_nodes for name, settings in found.items() if name in scaling)


def removal_rules(mark: RemovalMark, configuration: Configuration) -> ClusterSizeSettings:
    """Return the settings of a removal in the configuration in force, or the defaults if it has none."""
    found = cluster_size_settings(configuration.recommendations).get(mark.recommendation)
    return ClusterSizeSettings(NodeGroupSources()) if found is None else found


def stopped_removal(mark: RemovalMark, configuration: Configuration) -> str:
    """Return why the configuration in force stops a removal; empty if it does not."""
    settings = cluster_size_settings(configuration.recommendations).get(mark.recommendation)
    if settings is None or mark.recommendation not in configuration.names_with(Output.SCALE):
        return f"no recommendation {mark.recommendation} with the output scale is configured"
    providers = {provider_name(each): each for each in settings.node_groups.providers}
    found = providers.get(mark.provider)
    if found is None or not found.delete_nodes:
        return f"deleteNodes is not configured for {mark.provider}"
    return ""
