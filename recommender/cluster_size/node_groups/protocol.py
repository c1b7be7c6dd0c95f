"""The types that a plugin of node groups uses."""

from recommender.kinds.cluster_size.node_groups.protocol import (
    CloudProvider,
    InstanceState,
    OutcomeUnknownError,
    ProviderInstance,
    ProviderNode,
    ProviderNodeGroup,
    WritableNodeGroup,
)

__all__ = [
    "CloudProvider",
    "InstanceState",
    "OutcomeUnknownError",
    "ProviderInstance",
    "ProviderNode",
    "ProviderNodeGroup",
    "WritableNodeGroup",
]
