"""The protocol's messages as values. Both forms are read: with embedded objects, and with bytes. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError

from adapter.foundation.sources.kubernetes.errors import trim_message
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginError
from recommender.kinds.cluster_size.node_groups.protocol import InstanceState, ProviderInstance
from recommender.kinds.cluster_size.wire.external_grpc_pb2 import (
    ExternalGrpcNode,
    Instance,
    InstanceErrorInfo,
    InstanceStatus,
    MetaDuration,
    NodeGroupAutoscalingOptions,
    NodeGroupTemplateNodeInfoResponse,
)
from recommender.kinds.cluster_size.wire.kubernetes_pb2 import Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.kinds.cluster_size.node_groups.protocol import ProviderNode
    from recommender.kinds.cluster_size.wire.kubernetes_pb2 import Quantity

_STATES: Final = {
    InstanceStatus.instanceCreating: InstanceState.CREATING,
    InstanceStatus.instanceDeleting: InstanceState.DELETING,
}
USUAL_OPTIONS: Final = GroupOptions(
    0.5, 0.5, 600.0, 1200.0, 900.0, zero_or_max=False, ignore_daemon_sets_utilization=False
)
"""The defaults of Cluster Autoscaler, if the configuration states no others."""


def node_message(node: ProviderNode) -> ExternalGrpcNode:
    """Return a node in the form of requests."""
    return ExternalGrpcNode(
        providerID=node.provider_id, name=node.name, labels=dict(node.labels), annotations=dict(node.annotations)
    )


def instances_of(found: Iterable[Instance]) -> tuple[ProviderInstance, ...]:
    """Return the machines of a group. A machine of unspecified state counts as running, as in Cluster Autoscaler."""
    return tuple(
        ProviderInstance(
            each.id, _STATES.get(each.status.instanceState, InstanceState.RUNNING), _error_of(each.status.errorInfo)
        )
        for each in found
    )


def _error_of(stated: InstanceErrorInfo) -> str:
    return trim_message(": ".join(filter(None, (stated.errorCode, stated.errorMessage))))


def template_of(answer: NodeGroupTemplateNodeInfoResponse) -> dict[str, object] | None:
    """Return a new Node of a group as its JSON; None if the provider states none. Raises PluginError."""
    content = answer.nodeBytes or answer.nodeInfo
    if not content:
        return None
    try:
        node = Node.FromString(content)
    except DecodeError as error:
        raise PluginError(f"NodeGroupTemplateNodeInfo does not return a Node: {error}") from error
    taints = [{"key": each.key, "value": each.value, "effect": each.effect} for each in node.spec.taints]
    return {
        "metadata": {"name": node.metadata.name or "template", "labels": dict(node.metadata.labels)},
        "spec": {"taints": taints},
        "status": {
            "capacity": _quantities(node.status.capacity),
            "allocatable": _quantities(node.status.allocatable),
        },
    }


def _quantities(found: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: each.string for name, each in found.items()}


def options_message(defaults: GroupOptions) -> NodeGroupAutoscalingOptions:
    """Return the settings that apply to all groups, also under the names that earlier versions use."""
    unneeded, unready = defaults.unneeded_seconds or 0.0, defaults.unready_seconds or 0.0
    provision = defaults.max_node_provision_seconds or 0.0
    return NodeGroupAutoscalingOptions(
        scaleDownUtilizationThreshold=defaults.utilization_threshold_ratio or 0.0,
        scaleDownGpuUtilizationThreshold=defaults.gpu_utilization_threshold_ratio or 0.0,
        scaleDownUnneededTime=_meta_duration(unneeded),
        scaleDownUnreadyTime=_meta_duration(unready),
        MaxNodeProvisionTime=_meta_duration(provision),
        zeroOrMaxNodeScaling=defaults.zero_or_max,
        ignoreDaemonSetsUtilization=bool(defaults.ignore_daemon_sets_utilization),
        scaleDownUnneededDuration=_duration(unneeded),
        scaleDownUnreadyDuration=_duration(unready),
        MaxNodeProvisionDuration=_duration(provision),
    )


def options_of(stated: NodeGroupAutoscalingOptions, defaults: GroupOptions) -> GroupOptions:
    """Return the options that a group overrides. Raises PluginError for invalid shares and times.

    A time that is not stated overrides nothing, since a zero would remove nodes immediately.
    """
    ratios = (stated.scaleDownUtilizationThreshold, stated.scaleDownGpuUtilizationThreshold)
    if not all(0.0 <= each <= 1.0 for each in ratios):
        raise PluginError(f"NodeGroupGetOptions returns the thresholds {ratios[0]} and {ratios[1]}: shares are 0 to 1")
    unneeded = _seconds(stated, "scaleDownUnneededDuration", "scaleDownUnneededTime")
    unready = _seconds(stated, "scaleDownUnreadyDuration", "scaleDownUnreadyTime")
    provision = _seconds(stated, "MaxNodeProvisionDuration", "MaxNodeProvisionTime")
    return GroupOptions(
        utilization_threshold_ratio=_other(ratios[0], defaults.utilization_threshold_ratio),
        gpu_utilization_threshold_ratio=_other(ratios[1], defaults.gpu_utilization_threshold_ratio),
        unneeded_seconds=_other(unneeded, defaults.unneeded_seconds),
        unready_seconds=_other(unready, defaults.unready_seconds),
        # Earlier providers state 0 if they mean nothing.
        max_node_provision_seconds=_other(provision or None, defaults.max_node_provision_seconds),
        zero_or_max=stated.zeroOrMaxNodeScaling,
        ignore_daemon_sets_utilization=(
            stated.ignoreDaemonSetsUtilization
            if stated.ignoreDaemonSetsUtilization != bool(defaults.ignore_daemon_sets_utilization)
            else None
        ),
    )


def _other(stated: float | None, default: float | None) -> float | None:
    """Return the stated value; None if it is the default, which most providers return."""
    return None if stated is None or (default is not None and math.isclose(stated, default)) else stated


def _seconds(stated: NodeGroupAutoscalingOptions, name: str, former: str) -> float | None:
    seconds = None
    if stated.HasField(name):
        duration: Duration = getattr(stated, name)
        seconds = duration.seconds + duration.nanos / 1e9
    elif stated.HasField(former):
        seconds = getattr(stated, former).duration / 1e9
    if seconds is not None and seconds < 0:
        raise PluginError(f"NodeGroupGetOptions returns {seconds:g} s as {name}: times are 0 or more")
    return seconds


def _duration(seconds: float) -> Duration:
    return Duration(seconds=int(seconds), nanos=int(seconds % 1 * 1e9))


def _meta_duration(seconds: float) -> MetaDuration:
    return MetaDuration(duration=int(seconds * 1e9))
