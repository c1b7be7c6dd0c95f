"""The changes of an answer as text: which group gets how many nodes and for which pods, and which nodes go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.counts import count_of, listed
from recommender.decisions.texts.record_texts import money_text
from recommender.kinds.cluster_size.model.pod_places import PlaceKind
from recommender.kinds.cluster_size.shown.pod_and_node_texts import alike_text, by_workload, lines_of, pods_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, GroupSize
    from recommender.kinds.cluster_size.model.pod_places import PodMove, PodName

_WIDEST_NAME: Final = 24
"""Longer names of groups are not aligned."""
_ROUND: Final = "round/"
_MOST_REMOVALS: Final = 20


def change_lines(answer: ClusterSizeAnswer, width: int) -> Iterator[str]:
    """Yield a line for each changed group, the removed nodes with new places of their pods, and the other groups.

    Groups whose size does not change share a line, as do those that are left out for the same reason.
    """
    pods: dict[str, list[PodName]] = {}
    for place in answer.places:
        if place.kind is PlaceKind.NEW:
            pods.setdefault(place.group, []).append(place.pod)
    changed = [group for group in answer.groups if _changes(group)]
    names = max((len(group.name) for group in changed if len(group.name) <= _WIDEST_NAME), default=0)
    for group in changed:
        why = _why(group, answer, pods.get(group.name, ()))
        sizes = f"{group.current} to {group.after_removals}"
        yield from lines_of(f"{group.name.ljust(names)}  {sizes}{f'  {why}' if why else ''}", width, 2)
    if not answer.groups:
        yield from lines_of("no node group is known", width, 2)
    yield from _removal_lines(answer, width)
    same = [group for group in answer.groups if not _changes(group) and not group.is_left_out]
    if same:
        sizes = listed(f"{group.name} {group.recommended}" for group in same)
        yield from lines_of(f"{'unchanged' if changed else 'no group changes'}: {sizes}", width, 2)
    left_out: dict[str, list[str]] = {}
    for group in answer.groups:
        if group.is_left_out:
            left_out.setdefault(group.reason, []).append(group.name)
    for reason, members in left_out.items():
        yield from lines_of(f"left out: {listed(members)}: {reason}", width, 2)


def _changes(group: GroupSize) -> bool:
    if group.is_left_out or group.current is None:
        return False
    return group.recommended != group.current or group.after_removals != group.recommended


def _why(group: GroupSize, answer: ClusterSizeAnswer, pods: Sequence[PodName]) -> str:
    """Return the pods for which a group grows, and then any limit or other cause of its change."""
    steps = [step for step in answer.steps if step.group == group.name]
    parts = [f"for {pods_text(pods)}"] if pods and group.recommended > (group.current or 0) else []
    others = dict.fromkeys(f"{step.step}: {step.detail}" for step in steps if not step.step.startswith(_ROUND))
    parts += others
    if not parts and group.recommended > (group.current or 0):
        parts += [step.detail for step in steps]
    gone = group.recommended - group.after_removals
    if gone and not parts:
        return f"{count_of(gone, 'node')} can be removed"
    return "; ".join([*parts, *([f"{count_of(gone, 'node')} can be removed"] if gone else [])])


def _removal_lines(answer: ClusterSizeAnswer, width: int) -> Iterator[str]:
    due = [removal for removal in answer.removals if removal.is_due]
    has_several = len({removal.group for removal in due}) > 1
    for removal in due[:_MOST_REMOVALS]:
        used = f"{removal.utilization_ratio:.0%} requested{f', {removal.group}' if has_several else ''}"
        yield from lines_of(f"remove {removal.node} ({used}): {_moves_text(removal.moves)}", width, 2)
    if len(due) > _MOST_REMOVALS:
        yield from lines_of(f"and remove {len(due) - _MOST_REMOVALS} more nodes: -o json has all of them", width, 2)
    if answer.saved_per_hour is not None:
        yield from lines_of(f"removals save {money_text(answer.saved_per_hour)} an hour", width, 2)


def _moves_text(moves: Iterable[PodMove]) -> str:
    nodes = {move.pod: move.node for move in moves}
    if not nodes:
        return "no pod moves"
    return "; ".join(
        f"{alike_text(alike)} to {listed(dict.fromkeys(nodes[pod] for pod in alike))}" for alike in by_workload(nodes)
    )
