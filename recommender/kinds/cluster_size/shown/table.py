"""The answer of a cluster size recommendation as text for whoever is on call.

It shows first the changes and their pods, then pods without a node and what they lack, then what the cluster could do
by itself. `explain_details.py` has the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.counts import count_of, listed
from recommender.decisions.texts.record_texts import money_text
from recommender.kinds.cluster_size.model.answer import KeptNode
from recommender.kinds.cluster_size.model.pod_places import NodeState, PlaceKind, PodOrigin
from recommender.kinds.cluster_size.shown.changes_text import change_lines
from recommender.kinds.cluster_size.shown.kept_nodes import kept_by_reason
from recommender.kinds.cluster_size.shown.pod_and_node_texts import MOST_ROWS, WIDTH, lines_of, pods_text
from recommender.kinds.cluster_size.shown.pod_places_text import place_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, Removal
    from recommender.kinds.cluster_size.model.pod_places import PodName, UnavailableNode

    Paint = Callable[[str, str], str]

_BOLD: Final = "1"
_FEW: Final = 3
"""Up to this number, waiting nodes are listed one by one; more of them are grouped by reason."""


def size_lines(answer: ClusterSizeAnswer, width: int | None, paint: Paint) -> Iterator[str]:
    """Yield the lines of an answer; each section has a heading, and sections with nothing to say are left out."""
    width = width or WIDTH
    sections = {
        "CHANGES": change_lines(answer, width),
        "NO NODE FOR": _without_a_node(answer, width),
        **place_lines(answer, width),
        "NODES THAT TAKE NO PODS": _unavailable(answer.unavailable, width),
        "REMOVABLE LATER": _later(answer.removals, width),
        "NOTES": _notes(answer, width),
    }
    for heading, lines in sections.items():
        found = list(lines)
        if found:
            yield "  " + paint(heading, _BOLD)
            yield from found


def _without_a_node(answer: ClusterSizeAnswer, width: int) -> Iterator[str]:
    """Yield each cause for which pods have no node, with all pods that it concerns."""
    by_cause: dict[str, list[PodName]] = {}
    for alike in answer.unschedulable:
        by_cause.setdefault(alike.missing or alike.reason, []).extend(alike.pods)
    sizes = {group.name: group for group in answer.groups}
    for place in answer.places:
        group = sizes.get(place.group)
        if place.kind is PlaceKind.NEW and group is not None and group.recommended <= (group.current or 0):
            by_cause.setdefault(f"{group.name} would grow: {group.reason}", []).append(place.pod)
    for cause, pods in list(by_cause.items())[:MOST_ROWS]:
        yield from lines_of(f"{pods_text(pods)}: {cause}", width, 2)
    if len(by_cause) > MOST_ROWS:
        yield from lines_of(f"and pods with {len(by_cause) - MOST_ROWS} other causes: -o json has all", width, 2)
    if answer.waiting:
        yield from lines_of(f"{pods_text(answer.waiting)}: too new to be considered", width, 2)


def _unavailable(nodes: Iterable[UnavailableNode], width: int) -> Iterator[str]:
    found: dict[tuple[NodeState, str], list[UnavailableNode]] = {}
    for one in nodes:
        found.setdefault((one.state, one.detail), []).append(one)
    for (state, detail), alike in found.items():
        names = listed(f"{one.node} ({one.group})" if one.group else one.node for one in alike)
        yield from lines_of(f"{state.value}: {names}{f': {detail}' if detail else ''}", width, 2)


def _later(removals: Iterable[Removal], width: int) -> Iterator[str]:
    later = [removal for removal in removals if not removal.is_due]
    if len(later) <= _FEW:
        by_reason: dict[str, list[str]] = {}
        for removal in later:
            used = f"{removal.utilization_ratio:.0%} requested"
            by_reason.setdefault(removal.reason, []).append(f"{removal.node} ({removal.group}, {used})")
        for reason, nodes in by_reason.items():
            yield from lines_of(f"{listed(nodes)}: {reason}", width, 2)
        return
    for found in kept_by_reason(KeptNode(one.node, one.group, one.reason) for one in later):
        example = found.example.partition(": ")[2] or found.example
        yield from lines_of(f"{listed(found.nodes)}: {found.reason}: {example}", width, 2)


def _notes(answer: ClusterSizeAnswer, width: int) -> Iterator[str]:
    """Yield how many nodes stay, cheaper alternatives, and unknown facts."""
    if answer.kept:
        reasons = kept_by_reason(answer.kept)
        why = ", ".join(f"{len(one.nodes)} {one.reason}" for one in reasons) if len(reasons) > 1 else reasons[0].reason
        stay = f"{count_of(len(answer.kept), 'node')} {'stays' if len(answer.kept) == 1 else 'stay'}"
        yield from lines_of(f"{stay}: {why} (--explain says more)", width, 2)
    for advice in answer.advice:
        saved = "" if advice.saved_per_hour is None else f" (saves {money_text(advice.saved_per_hour)} an hour)"
        yield from lines_of(f"advice: {advice.detail}{saved}", width, 2)
    for note in answer.notes[:MOST_ROWS]:
        yield from lines_of(note, width, 2)
    if len(answer.notes) > MOST_ROWS:
        yield from lines_of(f"and {len(answer.notes) - MOST_ROWS} more notes: -o json has all of them", width, 2)
    expected = [one.pod for one in answer.places if one.origin is PodOrigin.EXPECTED and one.kind is not PlaceKind.NEW]
    if expected:
        exist = "does not exist" if len(expected) == 1 else "do not exist"
        yield from lines_of(f"there is room already for {pods_text(expected)}, which {exist} yet", width, 2)
