"""Makes the Kubernetes events of cluster size decisions. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.counts import count_of
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.model.answer import answer_of
from recommender.outputs.event_rules import TargetEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.decisions.record import Record
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, UnschedulablePods

_MOST_PODS: Final = 10
"""The most pods of one decision with events: pods that are alike share one event, about the first of them."""
_MOST_GROUPS: Final = 5
"""The most groups in the message about a pod."""
_KEPT_PRIVATE: Final = "it cannot grow at present: the page says why"


def events_of_sizes(before: Record | None, after: Record) -> Iterator[TargetEvent]:
    """Yield the events for group sizes that have changed, and for new pods that no group can hold.

    `before` is the last record of the same recommendation; None if there was none in this process, so no change is
    known. A group has events only where an object holds its size, and a pod only if it exists.
    """
    last, answer = answer_of(before), answer_of(after)
    if answer is None or answer.is_held:
        return
    if last is not None:
        yield from _changed_groups(after.name, last, answer)
    yield from _new_pods(after.name, last, answer)


def _changed_groups(name: str, before: ClusterSizeAnswer, after: ClusterSizeAnswer) -> Iterator[TargetEvent]:
    sizes = {group.name: group.recommended for group in before.groups if not group.is_left_out}
    for group in after.groups:
        last = sizes.get(group.name, group.recommended)
        if group.scalable is not None and not group.is_left_out and last != group.recommended:
            text = f"recommendation {name}: from {last} to {count_of(group.recommended, 'node')}: {group.reason}"
            yield TargetEvent(group.scalable, "RecommendationChanged", text)


def _new_pods(name: str, before: ClusterSizeAnswer | None, after: ClusterSizeAnswer) -> Iterator[TargetEvent]:
    known = {pod for alike in _pods_without_node(before) for pod in alike.pods}
    new = [alike for alike in map(after.existing_pods, _pods_without_node(after)) if not known.intersection(alike.pods)]
    for alike in [each for each in new if each.pods][:_MOST_PODS]:
        pod = alike.pods[0]
        target = TargetReference("v1", "Pod", pod.namespace, pod.name)
        more = f" (and {count_of(len(alike.pods) - 1, 'pod')} like it)" if len(alike.pods) > 1 else ""
        what = "no node is added for this pod" if alike.reason else "no node group can hold this pod"
        text = f"recommendation {name}: {what}{more}: {_reasons(alike)}"
        yield TargetEvent(target, "NoNodeGroupFits", text, is_warning=True, uid=pod.uid)


def _pods_without_node(answer: ClusterSizeAnswer | None) -> list[UnschedulablePods]:
    """Return the pods that get no node, without those that only wait for a further round."""
    return [each for each in (answer.unschedulable if answer else ()) if each.reason or not each.is_left_out]


def _reasons(alike: UnschedulablePods) -> str:
    if alike.reason:
        return alike.reason
    shown = [
        f"{group}: {_KEPT_PRIVATE if group in alike.private else reason}"
        for group, reason in list(alike.groups.items())[:_MOST_GROUPS]
    ]
    more = (
        f"; and {count_of(len(alike.groups) - _MOST_GROUPS, 'more group')}" if len(alike.groups) > _MOST_GROUPS else ""
    )
    return f"{'; '.join(shown)}{more}"
