"""The answer of a cluster size recommendation as text for people, readable at 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.terminal import printable
from recommender.decisions.texts.columns import GAP, columns, wrapped
from recommender.decisions.texts.record_texts import money_text, shown
from recommender.kinds.cluster_size.model.answer import KeptNode
from recommender.kinds.cluster_size.model.counts import count_of
from recommender.kinds.cluster_size.shown.kept import kept_by_reason, kept_reason, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from recommender.kinds.cluster_size.model.answer import (
        ClusterSizeAnswer,
        GroupSize,
        LowerBound,
        Removal,
        UnschedulablePods,
    )

_MOST_ROWS: Final = 50
"""Of one table; `-o json` has all of them."""
_MOST_STEPS: Final = 20
_FEW: Final = 8
"""So many kept nodes are listed one by one; more of them are grouped by reason."""
_BOLD: Final = "1"


def size_lines(answer: ClusterSizeAnswer, width: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    """Yield the lines: groups, pods that no group can hold, removable nodes, nodes that stay, and advice."""
    yield from _groups(answer.groups, width, paint)
    yield from _steps(answer, width)
    yield from _unschedulable(answer.unschedulable, width, paint)
    if answer.waiting:
        names = listed(map(str, answer.waiting))
        yield from wrapped(printable(f"too new to be considered: {names}"), width, GAP)
    yield from _removals(answer, width, paint)
    yield from _kept_lines(answer.kept, width, paint)
    for advice in answer.advice:
        saved = "" if advice.saved_per_hour is None else f" (saves {money_text(advice.saved_per_hour)} an hour)"
        yield from wrapped(printable(f"advice: {advice.detail}{saved}"), width, GAP)
    if answer.notes:
        yield GAP + paint("NOTES", _BOLD)
        for note in answer.notes[:_MOST_ROWS]:
            yield from columns([("-", note)], width, indent=GAP)
        if len(answer.notes) > _MOST_ROWS:
            yield f"{GAP}and {len(answer.notes) - _MOST_ROWS} more: -o json has all of them"


def _groups(groups: Iterable[GroupSize], width: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    rows = [("GROUP", "NOW", "RECOMMENDED", "REMOVED", "WHY")]
    changed = set()
    for place, group in enumerate(groups, 1):
        if group.recommended != group.current:
            changed.add(place)
        now = "unknown" if group.current is None else str(group.current)
        gone = group.recommended - group.after_removals
        rows.append(
            (
                group.name,
                now,
                "-" if group.is_left_out else str(group.recommended),
                str(gone) if gone else "-",
                group.reason,
            )
        )
    if len(rows) == 1:
        yield f"{GAP}There are no node groups."
        return
    yield from columns(
        rows, width, lambda row, column, text: paint(text, _BOLD) if column == 2 and row in changed else text, GAP
    )


def _steps(answer: ClusterSizeAnswer, width: int | None) -> Iterator[str]:
    if answer.steps:
        rows = [("STEP", "GROUP", "NODES", "DETAIL")]
        rows += [(step.step, step.group or "-", shown(step.value), step.detail) for step in answer.steps[:_MOST_STEPS]]
        yield from columns(rows, width, indent=GAP)
        if len(answer.steps) > _MOST_STEPS:
            yield f"{GAP}and {len(answer.steps) - _MOST_STEPS} more steps: -o json has all of them"
    if answer.bound is not None:
        yield from wrapped(_bound_text(answer.bound), width, GAP)


def _bound_text(bound: LowerBound) -> str:
    text = f"{count_of(bound.nodes, 'new node')}; no mix of groups needs fewer than {bound.bound}"
    if bound.cost is None or bound.cost_bound is None:
        return text
    least = money_text(bound.cost_bound, is_lower_bound=True)
    return f"{text}; together they cost {money_text(bound.cost)} an hour, and no mix costs less than {least}"


def _unschedulable(
    found: Iterable[UnschedulablePods], width: int | None, paint: Callable[[str, str], str]
) -> Iterator[str]:
    found = tuple(found)
    if not found:
        return
    yield GAP + paint("PODS THAT NO GROUP CAN HOLD", _BOLD)
    for alike in found[:_MOST_ROWS]:
        name = str(alike.pods[0])
        text = name if len(alike.pods) == 1 else f"{len(alike.pods)} pods like {name}"
        yield from wrapped(printable(f"{text}{f': {alike.reason}' if alike.reason else ''}"), width, GAP)
        if alike.groups:
            yield from columns(list(alike.groups.items()), width, indent=GAP * 2)
    if len(found) > _MOST_ROWS:
        yield f"{GAP}and {len(found) - _MOST_ROWS} more kinds of pods: -o json has all of them"


def _removals(answer: ClusterSizeAnswer, width: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    later = [removal for removal in answer.removals if not removal.is_due]
    if len(later) > _FEW:
        yield from _due_removals([removal for removal in answer.removals if removal.is_due], answer, width, paint)
        yield GAP + paint("NODES THAT CANNOT BE REMOVED YET", _BOLD)
        # Most wait for the same.
        alike = [KeptNode(removal.node, removal.group, removal.reason) for removal in later]
        yield from _by_reason(alike, width)
    else:
        yield from _due_removals(answer.removals, answer, width, paint)


def _due_removals(
    removals: Sequence[Removal], answer: ClusterSizeAnswer, width: int | None, paint: Callable[[str, str], str]
) -> Iterator[str]:
    if not removals:
        return
    saved = "" if answer.saved_per_hour is None else f" (saves {money_text(answer.saved_per_hour)} an hour)"
    yield GAP + paint("REMOVABLE NODES", _BOLD) + saved
    rows = [("NODE", "GROUP", "USED", "PODS", "WHEN", "REASON")]
    for removal in removals[:_MOST_ROWS]:
        when = "now" if removal.is_due else "later"
        used = f"{removal.utilization_ratio:.0%}"
        rows.append((removal.node, removal.group, used, str(removal.moved_pods), when, removal.reason))
    yield from columns(rows, width, indent=GAP)
    if len(removals) > _MOST_ROWS:
        yield f"{GAP}and {len(removals) - _MOST_ROWS} more: -o json has all of them"


def _kept_lines(kept: tuple[KeptNode, ...], width: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    if not kept:
        return
    yield GAP + paint("NODES THAT STAY", _BOLD)
    if len(kept) <= _FEW:
        singly = [("NODE", "GROUP", "REASON"), *((node.node, node.group or "-", kept_reason(node)) for node in kept)]
        yield from columns(singly, width, indent=GAP)
        return
    yield from _by_reason(kept, width)


def _by_reason(nodes: Iterable[KeptNode], width: int | None) -> Iterator[str]:
    rows = [("NODES", "REASON")]
    for found in kept_by_reason(nodes)[:_MOST_ROWS]:
        detail = found.example
        if len(found.nodes) > 1:
            detail = (
                f"{found.reason}: {listed(found.nodes)} (such as {found.example.partition(': ')[2] or found.example})"
            )
        rows.append((str(len(found.nodes)), detail))
    yield from columns(rows, width, indent=GAP)
    yield f"{GAP}-o json has the reason of each node"
