"""The two halves of the decision of `run`, growth and removals, each used where the other could not change anything.

`run` decides on growth and on removals together. A replay knows that its situations have either no pod without a node
or no removable node, so one half gives the whole answer of `decide_size`. A test compares the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.model.answer import ScaleDownAnswer, ScaleUp
from recommender.kinds.cluster_size.predicates.snapshot import snapshot_of
from recommender.kinds.cluster_size.scale_down.decide import scale_down
from recommender.kinds.cluster_size.scale_up.decide import scale_up

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.predicates.pod_shapes import ShapeTable

_NOTHING_NEEDED: Final = ScaleUp({})


def growth_of(situation: ClusterSituation, settings: ClusterSizeSettings, shapes: ShapeTable | None = None) -> ScaleUp:
    """Return which groups grow; `shapes` are those of an earlier decision with pods of the same recording."""
    return scale_up(situation, settings, snapshot_of(situation, shapes))


def removals_of(
    situation: ClusterSituation, settings: ClusterSizeSettings, shapes: ShapeTable | None = None
) -> ScaleDownAnswer:
    """Return which nodes are removed, for a situation that has no pod without a node."""
    snapshot = snapshot_of(situation, shapes)
    scaled = scale_up(situation, settings, snapshot) if _may_need_nodes(situation, settings) else _NOTHING_NEEDED
    return scale_down(situation, settings, snapshot, scaled)


def _may_need_nodes(situation: ClusterSituation, settings: ClusterSizeSettings) -> bool:
    """Whether groups may grow although no pod is pending: for minimum sizes, future pods, or expendable pods."""
    if situation.future_pods or any(group.target_size < group.min_size for group in situation.groups.groups):
        return True
    return any(pod.priority < settings.expendable_pods_priority_cutoff for pod in situation.pods)
