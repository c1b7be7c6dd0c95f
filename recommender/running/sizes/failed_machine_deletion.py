"""The last check of failed machines before their provider is asked to delete them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterState, Observed
from recommender.kinds.cluster_size.health.times_without_facts import STILL_SECONDS
from recommender.kinds.cluster_size.node_groups.machines_without_nodes import nameless_node, spellings_of
from recommender.kinds.cluster_size.node_groups.protocol import InstanceState, ProviderNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup
    from recommender.kinds.cluster_size.node_groups.protocol import ProviderInstance
    from recommender.outputs.pending_writes import MachineToDelete, PendingWrite

REASON_ANNOTATION: Final = "k8s.io/cluster-autoscaler/fake-node-reason"
"""The annotation by which providers know that a machine has no node, as Cluster Autoscaler sends it."""


def deletion_refusal(write: PendingWrite, group: PluginGroup, cluster: ClusterState, now: float) -> str:
    """Return why the failed machines of a write must not be deleted now; empty if they may be.

    `now` is in Unix seconds. The machines are compared with the current nodes once more, since one of
    them may have joined after the decision.
    """
    if isinstance(cluster.nodes, Observed) and now - cluster.nodes.time <= STILL_SECONDS:
        nodes = cluster.nodes.value
    else:
        return "the nodes of the cluster are not known now, so no failed machine is deleted"
    if group.age_seconds > 0:
        return "the provider's list of its machines is an earlier one, so no failed machine is deleted"
    nameless, spellings = nameless_node(nodes), spellings_of(nodes)
    joined = next((f"{one.provider_id} is a node" for one in write.machines if spellings.has(one.provider_id)), "")
    return nameless or joined or next(_reasons_to_keep(write.machines, group), "")


def _reasons_to_keep(machines: Sequence[MachineToDelete], group: PluginGroup) -> Iterator[str]:
    """Yield why machines must not be deleted, according to what their provider lists."""
    listed = {each.provider_id: each for each in group.instances}
    for one in machines:
        found = listed.get(one.provider_id)
        if found is None or found.state is InstanceState.DELETING:
            yield f"{one.provider_id} is gone, or is being deleted already"
        elif one.is_creation_error and not _has_error(found):
            yield f"{one.provider_id} can be created after all"


def _has_error(found: ProviderInstance) -> bool:
    return bool(found.error) and found.state is InstanceState.CREATING


def nodes_of(machines: Sequence[MachineToDelete]) -> tuple[ProviderNode, ...]:
    """Return machines in the form in which a provider is asked to delete them, which is that of Cluster Autoscaler."""
    return tuple(
        ProviderNode(
            one.provider_id,
            one.provider_id,
            annotations={REASON_ANNOTATION: "create-error" if one.is_creation_error else "unregistered"},
        )
        for one in machines
    )
