"""Determines which removals of nodes the configuration in force allows. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.policy_settings import Output
from recommender.kinds.cluster_size.model.size_settings import (
    ScaleDownSettings,
    cluster_size_settings,
    provider_name,
)

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.running.sizes.removal_marks import RemovalMark


def are_configured(configuration: Configuration) -> bool:
    """Return whether a recommendation removes nodes through a provider."""
    found = cluster_size_settings(configuration.recommendations)
    return any(
        found[each.policy.name].node_groups.delete_nodes and Output.SCALE in each.policy.outputs
        for each in configuration.recommendations
        if each.policy.name in found
    )


def removal_rules(mark: RemovalMark, configuration: Configuration) -> ScaleDownSettings:
    """Return the settings of a removal in the configuration in force, or the defaults if it has none."""
    found = cluster_size_settings(configuration.recommendations).get(mark.recommendation)
    return ScaleDownSettings() if found is None else found.scale_down


def stopped_removal(mark: RemovalMark, configuration: Configuration) -> str:
    """Return why the configuration in force stops a removal; empty if it does not."""
    entry = next((each for each in configuration.recommendations if each.policy.name == mark.recommendation), None)
    settings = cluster_size_settings(() if entry is None else (entry,)).get(mark.recommendation)
    if entry is None or settings is None or Output.SCALE not in entry.policy.outputs:
        return f"no recommendation {mark.recommendation} with the output scale is configured"
    providers = {provider_name(each): each for each in settings.node_groups.providers}
    found = providers.get(mark.provider)
    if found is None or not found.delete_nodes:
        return f"deleteNodes is not configured for {mark.provider}"
    return ""
