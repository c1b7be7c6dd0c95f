"""Metrics of cluster size recommendations, by recommendation and node group. No label names a pod or a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from adapter.foundation.web.metric_text import label
from recommender.outputs.metric_text import recommendation_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from recommender.decisions.record import Record
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, GroupSize
    from recommender.outputs.metric_text import Samples

    T = TypeVar("T")

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


_OF_GROUPS: Final[Mapping[str, Callable[[GroupSize], int | None]]] = {
    "tidewatch_recommended_nodes": lambda group: group.recommended,
    "tidewatch_recommended_nodes_after_removals": lambda group: group.after_removals,
    "tidewatch_node_group_nodes": lambda group: group.current,
    "tidewatch_node_group_registered_nodes": lambda group: group.registered,
    "tidewatch_node_group_min_nodes": lambda group: group.min_size,
    "tidewatch_node_group_max_nodes": lambda group: group.max_size,
}
_OF_ANSWERS: Final[Mapping[str, Callable[[ClusterSizeAnswer], float | None]]] = {
    "tidewatch_removable_nodes": lambda answer: len(answer.removals),
    "tidewatch_failed_machines": lambda answer: len(answer.failed_machines),
    "tidewatch_unschedulable_pods": lambda answer: answer.unheld_pods,
    "tidewatch_pending_pods": lambda answer: answer.pending_pods,
    "tidewatch_removals_saved_per_hour": lambda answer: answer.saved_per_hour,
}


def size_samples(sized: Sequence[tuple[Record, ClusterSizeAnswer]]) -> dict[str, Samples]:
    """Return the samples of each family; a group that is left out has none, since it is not sized."""
    groups = list(_groups(sized))
    # An answer that is held has no groups of a snapshot, so it knows of no pods either.
    answers = [(recommendation_label(record), answer) for record, answer in sized if not answer.is_held]
    of_groups = {family: _samples(groups, number_of) for family, number_of in _OF_GROUPS.items()}
    return of_groups | {family: _samples(answers, number_of) for family, number_of in _OF_ANSWERS.items()}


def _samples(labelled: Iterable[tuple[str, T]], number_of: Callable[[T], float | None]) -> Samples:
    """Return the known numbers by labels."""
    numbers = ((labels, number_of(one)) for labels, one in labelled)
    return {labels: float(number) for labels, number in numbers if number is not None}


def _groups(sized: Iterable[tuple[Record, ClusterSizeAnswer]]) -> Iterator[tuple[str, GroupSize]]:
    for record, answer in sized:
        for group in answer.groups:
            if not group.is_left_out:
                yield f"{label('node_group', group.name)},{recommendation_label(record)}", group
