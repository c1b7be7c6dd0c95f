"""Says why groups grow or not, and why pods stay pending."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.model.answer import UnschedulablePods
from recommender.kinds.cluster_size.model.pod_places import pod_names
from recommender.kinds.cluster_size.scale_up.no_fitting_group import MissingRequirements
from recommender.kinds.cluster_size.scale_up.scale_up_state import Obstacle
from recommender.kinds.cluster_size.scale_up.template_fit import refusal_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
    from recommender.kinds.cluster_size.scale_up.existing_node_placement import Placer
    from recommender.kinds.cluster_size.scale_up.scale_up_state import SizingState
    from recommender.kinds.cluster_size.scale_up.template_fit import Exemplars

_ROUNDS: Final = Obstacle("", "one more node would do, but the limit of rounds is reached")


@dataclass(frozen=True, slots=True)
class LeftPending:
    """Pods for which there is no place."""

    pods: tuple[UnschedulablePods, ...]
    limits: tuple[str, ...]
    """Names of the limits that keep groups from holding some of these pods."""


def left_pending(
    state: SizingState,
    snapshot: Snapshot,
    placer: Placer,
    exemplars: Exemplars,
    groups: Sequence[PodGroup],
    left_out: Mapping[str, str],
) -> LeftPending:
    """Return the remaining pods, grouped if they are alike, with the reason against each node group.

    `left_out` has the reason for each group that is left out.
    """
    shapes = {id(group.shape): group.shape for group in groups}
    pods: dict[int, list[ClusterPod]] = {key: [] for key in shapes}
    for alike in groups:
        pods[id(alike.shape)] += alike.pods
    found: list[UnschedulablePods] = []
    limits: dict[str, None] = {}
    sought: list[PodShape] = []
    for key, shape in shapes.items():
        never = placer.filter_of(shape).unschedulable()
        if never is None:
            sought.append(shape)
        else:
            found.append(UnschedulablePods(pod_names(pods[key]), {}, refusal_text((never,))))
    refusals = {name: exemplars.refusals(group, sought) for name, group in state.groups.items()}
    obstacles = {name: state.obstacle(group) or _ROUNDS for name, group in state.groups.items()}
    missing = MissingRequirements(state.groups, snapshot)
    for shape in sought:
        refused = {name: each[id(shape)] for name, each in refusals.items() if each[id(shape)]}
        small = {name: obstacle for name, obstacle in obstacles.items() if name not in refused}
        limits |= dict.fromkeys(obstacle.step for obstacle in small.values() if obstacle.step)
        reasons = {name: obstacle.reason for name, obstacle in small.items()}
        all_reasons = {**left_out, **{name: refusal_text(each) for name, each in refused.items()}, **reasons}
        sentence = missing.sentence(shape, refused, reasons)
        names = pod_names(pods[id(shape)])
        found.append(UnschedulablePods(names, dict(sorted(all_reasons.items())), missing=sentence))
    return LeftPending(tuple(found), tuple(limits))


def group_reasons(state: SizingState, left_out: Mapping[str, str], *, has_pending: bool) -> dict[str, str]:
    """Return by group why it grows or not, in one sentence each."""
    reasons = dict(left_out)
    for name, group in state.groups.items():
        obstacle = state.obstacle(group)
        if name in state.reasons:
            reasons[name] = "; ".join([*state.reasons[name], *filter(None, [state.obstacles.get(name)])])
        elif obstacle is not None and (has_pending or name in state.obstacles):
            reasons[name] = obstacle.reason
        elif has_pending:
            reasons[name] = "another node would not help: none of the remaining pods fits"
        else:
            reasons[name] = "no pending pod needs another node"
    return dict(sorted(reasons.items()))
