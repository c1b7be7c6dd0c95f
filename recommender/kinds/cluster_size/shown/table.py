"""The answer of a cluster size recommendation as text for whoever is on call.

It shows first the changes and their pods, then pods without a node and what they lack, then what the cluster could do
by itself. `explain_details.py` has the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.grouping import group_values
from adapter.foundation.reports.counts import count_of, first_names
from recommender.decisions.texts.record_texts import money_text
from recommender.kinds.cluster_size.model.answer import KeptNode
from recommender.kinds.cluster_size.model.pod_places import NodeState, PlaceKind, PodOrigin
from recommender.kinds.cluster_size.shown.pod_and_node_texts import (
    alike_text,
    by_reason,
    by_workload,
    first_of,
    kept_by_reason,
    nodes_text,
    pods_text,
    section_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, GroupSize, Removal
    from recommender.kinds.cluster_size.model.pod_places import PodMove, PodName, PodPlace, UnavailableNode
    from recommender.kinds.kind import Paint

_FEW: Final = 3
"""Up to this number, waiting nodes are listed one by one; more of them are grouped by reason."""


def size_lines(answer: ClusterSizeAnswer, width: int | None, paint: Paint) -> Iterator[str]:
    """Return the lines of an answer."""
    sections = {
        "CHANGES": _change_lines(answer),
        "NO NODE FOR": _without_a_node(answer),
        **_place_lines(answer),
        "NODES THAT TAKE NO PODS": _unavailable(answer.unavailable),
        "REMOVABLE LATER": _later(answer.removals),
        "NOTES": _notes(answer),
    }
    return section_lines(sections, width, paint)


def _without_a_node(answer: ClusterSizeAnswer) -> Iterator[str]:
    """Yield each cause for which pods have no node, with all pods that it concerns."""
    found = [(alike.missing or alike.reason, pod) for alike in answer.unschedulable for pod in alike.pods]
    sizes = {group.name: group for group in answer.groups}
    for place in answer.places:
        group = sizes.get(place.group)
        if place.kind is PlaceKind.NEW and group is not None and group.recommended <= (group.current or 0):
            found.append((f"{group.name} would grow: {group.reason}", place.pod))
    causes = (f"{pods_text(pods)}: {cause}" for cause, pods in group_values(found).items())
    yield from first_of(causes, "and pods with {} other causes: -o json has all")
    if answer.waiting:
        yield f"{pods_text(answer.waiting)}: too new to be considered"


def _unavailable(nodes: Iterable[UnavailableNode]) -> Iterator[str]:
    for (state, detail), alike in group_values(((one.state, one.detail), one) for one in nodes).items():
        names = first_names(f"{one.node} ({one.group})" if one.group else one.node for one in alike)
        yield f"{state.value}: {names}{f': {detail}' if detail else ''}"


def _later(removals: Iterable[Removal]) -> Iterator[str]:
    later = [removal for removal in removals if not removal.is_due]
    if len(later) <= _FEW:
        used = ((one.reason, f"{one.node} ({one.group}, {one.utilization_ratio:.0%} requested)") for one in later)
        yield from by_reason(used)
        return
    for found in kept_by_reason(KeptNode(one.node, one.group, one.reason) for one in later):
        example = found.example.partition(": ")[2] or found.example
        yield f"{first_names(found.nodes)}: {found.reason}: {example}"


def _notes(answer: ClusterSizeAnswer) -> Iterator[str]:
    """Yield how many nodes stay, cheaper alternatives, and unknown facts."""
    if answer.kept:
        reasons = kept_by_reason(answer.kept)
        why = ", ".join(f"{len(one.nodes)} {one.reason}" for one in reasons) if len(reasons) > 1 else reasons[0].reason
        stay = f"{count_of(len(answer.kept), 'node')} {'stays' if len(answer.kept) == 1 else 'stay'}"
        yield f"{stay}: {why} (--explain says more)"
    for advice in answer.advice:
        saved = "" if advice.saved_per_hour is None else f" (saves {money_text(advice.saved_per_hour)} an hour)"
        yield f"advice: {advice.detail}{saved}"
    told = {f"node group {group.name}: {group.reason}" for group in answer.groups if group.is_left_out}
    yield from first_of(
        (note for note in answer.notes if note not in told), "and {} more notes: -o json has all of them"
    )
    expected = [one.pod for one in answer.places if one.origin is PodOrigin.EXPECTED and one.kind is not PlaceKind.NEW]
    if expected:
        exist = "does not exist" if len(expected) == 1 else "do not exist"
        yield f"there is room already for {pods_text(expected)}, which {exist} yet"


_WIDEST_NAME: Final = 24
"""Longer names of groups are not aligned."""
_ROUND: Final = "round/"
_MOST_REMOVALS: Final = 20


def _change_lines(answer: ClusterSizeAnswer) -> Iterator[str]:
    """Yield a line for each changed group, the removed nodes with new places of their pods, and the other groups.

    Groups whose size does not change share a line. So do groups that are left out for the same reason.
    """
    pods = group_values((place.group, place.pod) for place in answer.places if place.kind is PlaceKind.NEW)
    changed = [group for group in answer.groups if _changes(group)]
    names = max((len(group.name) for group in changed if len(group.name) <= _WIDEST_NAME), default=0)
    for group in changed:
        why = _why(group, answer, pods.get(group.name, ()))
        sizes = f"{group.current} to {group.after_removals}"
        yield f"{group.name.ljust(names)}  {sizes}{f'  {why}' if why else ''}"
    if not answer.groups:
        yield "no node group is known"
    yield from _removal_lines(answer)
    same = [group for group in answer.groups if not _changes(group) and not group.is_left_out]
    if same:
        sizes = first_names(f"{group.name} {group.recommended}" for group in same)
        yield f"{'unchanged' if changed else 'no group changes'}: {sizes}"
    left_out = by_reason((group.reason, group.name) for group in answer.groups if group.is_left_out)
    yield from (f"left out: {text}" for text in left_out)


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


def _removal_lines(answer: ClusterSizeAnswer) -> Iterator[str]:
    due = [removal for removal in answer.removals if removal.is_due]
    has_several = len({removal.group for removal in due}) > 1
    removed = (
        f"remove {removal.node} ({removal.utilization_ratio:.0%} requested"
        f"{f', {removal.group}' if has_several else ''}): {_moves_text(removal.moves)}"
        for removal in due
    )
    yield from first_of(removed, "and remove {} more nodes: -o json has all of them", _MOST_REMOVALS)
    if answer.saved_per_hour is not None:
        yield f"removals save {money_text(answer.saved_per_hour)} an hour"


def _moves_text(moves: Iterable[PodMove]) -> str:
    nodes = {move.pod: move.node for move in moves}
    if not nodes:
        return "no pod moves"
    return "; ".join(
        f"{alike_text(alike)} to {first_names(dict.fromkeys(nodes[pod] for pod in alike))}"
        for alike in by_workload(nodes)
    )


_MOST_MOVES: Final = 250
"""The most moves shown: more than the usual maximum of pods on a node, so a question about one node shows each pod."""


def _place_lines(answer: ClusterSizeAnswer) -> Mapping[str, Iterator[str]]:
    """Return the texts by heading.

    They show pods that move, pods that the scheduler could place now, and pods that wait for a node or for evictions.
    """
    unready = frozenset(one.node for one in answer.unavailable if one.state is NodeState.NOT_READY)

    def lines(kind: PlaceKind, origin: PodOrigin, text: str) -> Iterator[str]:
        places = [one for one in answer.places if one.kind is kind and one.origin is origin]
        return _alike_lines(places, text, unready)

    deleting = frozenset(one.node for one in answer.unavailable)
    moved = [one for one in answer.places if one.origin is PodOrigin.MOVED]
    return {
        "NEW PLACES": _moves([one for one in moved if one.source not in deleting], answer.displaced),
        "NEW PLACES FOR PODS OF NODES THAT ARE BEING DELETED": _alike_lines(
            [one for one in moved if one.source in deleting], "from a node that goes to", unready
        ),
        "PENDING ALTHOUGH A NODE HAS ROOM": lines(PlaceKind.EXISTING, PodOrigin.PENDING, "there is room on"),
        "ROOM FOR ASSUMED PODS": lines(PlaceKind.EXISTING, PodOrigin.ASSUMED, "there is room on"),
        "WAITING FOR EVICTIONS": lines(
            PlaceKind.NOMINATED, PodOrigin.PENDING, "the scheduler evicts other pods for this on"
        ),
        "WAITING FOR A NODE ON ITS WAY": lines(PlaceKind.UPCOMING, PodOrigin.PENDING, "there will be room on"),
    }


def _moves(places: Sequence[PodPlace], displaced: Mapping[PodName, str]) -> Iterator[str]:
    """Yield a line for each pod of a removed node, as the question is about each; pods without a place come first."""
    moves = [f"{pod}: from {source} to no node, as NO NODE FOR says" for pod, source in displaced.items()]
    moves += [f"{place.pod}: from {place.source} to {_node_text(place)}" for place in places]
    return first_of(moves, "and {} more pods: -o json has all of them", _MOST_MOVES)


def _node_text(place: PodPlace) -> str:
    if place.kind is PlaceKind.NEW:
        return f"a new node of {place.group}"
    return place.node or f"a node of {place.group} that is on its way"


def _alike_lines(places: Sequence[PodPlace], text: str, unready: frozenset[str]) -> Iterator[str]:
    """Yield a line for the pods of each workload, with their nodes."""
    nodes = {one.pod: _node_text(one) for one in places}
    workloads = ((pods, [nodes[pod] for pod in pods]) for pods in by_workload(nodes))
    texts = (
        f"{alike_text(pods)}: {text} {nodes_text(theirs)}"
        f"{' (which is NotReady)' if unready.intersection(theirs) else ''}"
        for pods, theirs in workloads
    )
    return first_of(texts, "and pods of {} more workloads: -o json has all")
