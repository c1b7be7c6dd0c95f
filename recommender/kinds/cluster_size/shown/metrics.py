"""Metrics of cluster size recommendations, by recommendation and node group. No label names a pod or a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.web.metric_text import label
from recommender.outputs.metric_text import of_recommendation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recommender.decisions.record import Record
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, GroupSize
    from recommender.outputs.metric_text import Samples

SIZE_FAMILIES: Final = {
    "tidewatch_recommended_nodes": "Recommended nodes of a node group for all pending pods, before removals.",
    "tidewatch_recommended_nodes_after_removals": "Recommended nodes of a node group, without the "
    "nodes that can be removed now.",
    "tidewatch_node_group_nodes": "Desired size of a node group when the value was decided.",
    "tidewatch_node_group_registered_nodes": "Nodes of a node group that existed when the value was decided.",
    "tidewatch_node_group_min_nodes": "Minimum size of a node group.",
    "tidewatch_node_group_max_nodes": "Maximum size of a node group.",
    "tidewatch_removable_nodes": "Removable nodes: now, or after a timer or a cool-down.",
    "tidewatch_failed_machines": "Machines of node groups that cannot be created, or did not become nodes in time.",
    "tidewatch_unschedulable_pods": "Pending pods that no node group can hold.",
    "tidewatch_pending_pods": "Pods without a node when the sizes were decided; those of forecasts and reserves "
    "included.",
    "tidewatch_removals_saved_per_hour": "Savings per hour from removing the nodes that can be removed "
    "now, in the currency of the prices.",
}
"""The help texts of the metrics, in the order in which they are served."""


def size_samples(sized: Sequence[tuple[Record, ClusterSizeAnswer]]) -> dict[str, Samples]:
    """Return the samples of each family; a group that is left out has none, since it is not sized."""
    return {
        "tidewatch_recommended_nodes": {labels: float(group.recommended) for labels, group in _groups(sized)},
        "tidewatch_recommended_nodes_after_removals": {
            labels: float(group.after_removals) for labels, group in _groups(sized)
        },
        "tidewatch_node_group_nodes": {
            labels: float(group.current) for labels, group in _groups(sized) if group.current is not None
        },
        "tidewatch_node_group_registered_nodes": {
            labels: float(group.registered) for labels, group in _groups(sized) if group.registered is not None
        },
        "tidewatch_node_group_min_nodes": {
            labels: float(group.min_size) for labels, group in _groups(sized) if group.min_size is not None
        },
        "tidewatch_node_group_max_nodes": {
            labels: float(group.max_size) for labels, group in _groups(sized) if group.max_size is not None
        },
        # An answer that is held has no groups of a snapshot, so it knows of no pods either.
        "tidewatch_removable_nodes": {
            of_recommendation(record): float(len(answer.removals)) for record, answer in sized if not answer.is_held
        },
        "tidewatch_failed_machines": {
            of_recommendation(record): float(len(answer.failed_machines))
            for record, answer in sized
            if not answer.is_held
        },
        "tidewatch_unschedulable_pods": {
            of_recommendation(record): float(answer.unheld_pods) for record, answer in sized if not answer.is_held
        },
        "tidewatch_pending_pods": {
            of_recommendation(record): float(answer.pending_pods) for record, answer in sized if not answer.is_held
        },
        "tidewatch_removals_saved_per_hour": {
            of_recommendation(record): answer.saved_per_hour
            for record, answer in sized
            if answer.saved_per_hour is not None
        },
    }


def _groups(sized: Iterable[tuple[Record, ClusterSizeAnswer]]) -> Iterator[tuple[str, GroupSize]]:
    for record, answer in sized:
        for group in answer.groups:
            if not group.is_left_out:
                yield f"{label('node_group', group.name)},{of_recommendation(record)}", group
