"""Says why groups grow or not, and why pods stay pending."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.model.answer import PodName, UnschedulablePods
from recommender.kinds.cluster_size.scale_up.exemplars import refusal_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
    from recommender.kinds.cluster_size.predicates.shapes import PodShape
    from recommender.kinds.cluster_size.scale_up.exemplars import Exemplars
    from recommender.kinds.cluster_size.scale_up.placing import Placer
    from recommender.kinds.cluster_size.scale_up.state import SizingState


@dataclass(frozen=True, slots=True)
class LeftPending:
    """Pods for which there is no place."""

    pods: tuple[UnschedulablePods, ...]
    limits: tuple[str, ...]
    """Names of the limits that keep groups from holding some of them."""


def left_pending(
    state: SizingState, placer: Placer, exemplars: Exemplars, groups: Sequence[PodGroup], left_out: Mapping[str, str]
) -> LeftPending:
    """Return the pods that are left, those that are alike together, with what is against each group.

    `left_out` are groups that are left out, with the reason.
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
            found.append(UnschedulablePods(_names(pods[key]), {}, refusal_text((never,))))
    refused: dict[int, dict[str, str]] = {id(shape): dict(left_out) for shape in sought}
    for name, group in state.groups.items():
        obstacle = state.obstacle(group)
        refusals = exemplars.refusals(group, sought)
        for shape in sought:
            if refusals[id(shape)]:
                refused[id(shape)][name] = refusal_text(refusals[id(shape)])
            elif obstacle is None:
                refused[id(shape)][name] = "one more node could hold it, but the limit of rounds is reached"
            else:
                refused[id(shape)][name] = obstacle.reason
                if obstacle.step:
                    limits[obstacle.step] = None
    found += [UnschedulablePods(_names(pods[key]), dict(sorted(each.items()))) for key, each in refused.items()]
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


def _names(pods: Iterable[ClusterPod]) -> tuple[PodName, ...]:
    return tuple(PodName(pod.namespace, pod.name) for pod in pods)
