"""Determines how long nodes may take to become ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings


def provision_seconds_of(group: NodeGroup, settings: ClusterSizeSettings) -> float:
    """Return how long nodes of the group may take from the request until they can hold pods."""
    own = group.options.max_node_provision_seconds
    return settings.max_node_provision_seconds if own is None else own
