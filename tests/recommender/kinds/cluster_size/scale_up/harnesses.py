"""Situations of scale-up for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.model.groups import NodeGroups, NodeTemplate
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources
from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from recommender.kinds.cluster_size.scale_up.decide import scale_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.cluster_size.model.answer import ScaleUp
    from recommender.kinds.cluster_size.model.groups import NodeGroup

NOW = 1_000_000.0


def settings(**changes: object) -> ClusterSizeSettings:
    return replace(ClusterSizeSettings(NodeGroupSources()), **changes)  # type: ignore[arg-type]  # each field has its own type


def situation(
    groups: Iterable[NodeGroup],
    *,
    nodes: Sequence[ClusterNode] = (),
    pods: Sequence[ClusterPod] = (),
    **others: object,
) -> ClusterSituation:
    """Return a situation at `NOW`; nodes belong to the groups that name them."""
    named = tuple(sorted(groups, key=lambda group: group.name))
    group_of = {node: group.name for group in named for node in group.nodes}
    return ClusterSituation(NOW, tuple(nodes), tuple(pods), NodeGroups(named, group_of), **others)  # type: ignore[arg-type]


def snapshot_of(its: ClusterSituation) -> Snapshot:
    return Snapshot(its.nodes, its.pods, its.storage, its.namespace_labels)


def decided(its: ClusterSituation, **changes: object) -> ScaleUp:
    """Return the decision, with these changes of the settings."""
    return scale_up(its, settings(**changes), snapshot_of(its))


def like(node: ClusterNode) -> NodeTemplate:
    """Return the template of a node's group."""
    return NodeTemplate(replace(node, name="template"), source=f"node {node.name}")
