"""The types that a node group plugin uses."""

from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.node_groups.protocol import (
    AnswersLater,
    CloudProvider,
    InstanceState,
    LabelsGpuNodes,
    OutcomeUnknownError,
    ProviderInstance,
    ProviderNode,
    ProviderNodeGroup,
    WritableNodeGroup,
)

__all__ = [
    "AnswersLater",
    "CloudProvider",
    "GroupOptions",
    "InstanceState",
    "LabelsGpuNodes",
    "OutcomeUnknownError",
    "ProviderInstance",
    "ProviderNode",
    "ProviderNodeGroup",
    "WritableNodeGroup",
]
