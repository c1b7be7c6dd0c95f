"""The part of the answer that `--explain` adds: steps, refusals in the scheduler's words, and nodes that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.counts import count_of, listed
from recommender.decisions.texts.record_texts import money_text, shown
from recommender.kinds.cluster_size.shown.kept_nodes import kept_by_reason, kept_reason
from recommender.kinds.cluster_size.shown.pod_and_node_texts import MOST_ROWS, WIDTH, lines_of, pods_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, KeptNode, LowerBound

_BOLD: Final = "1"
_FEW: Final = 8
"""Up to this number, nodes that stay are listed one by one; more of them are grouped by reason."""


def explained_lines(
    answer: ClusterSizeAnswer, inputs: Mapping[str, float], width: int | None, paint: Callable[[str, str], str]
) -> Iterator[str]:
    """Yield the lines; each section has a heading, and sections with nothing to say are left out."""
    width = width or WIDTH
    sections = {
        "INPUTS": _inputs(inputs, width),
        "STEPS": _steps(answer, width),
        "GROUPS WITHOUT A STEP": _other_groups(answer, width),
        "REFUSALS": _refusals(answer, width),
        "NODES THAT STAY": _kept_node_lines(answer.kept, width),
    }
    for heading, lines in sections.items():
        found = list(lines)
        if found:
            yield "  " + paint(heading, _BOLD)
            yield from found


def _inputs(inputs: Mapping[str, float], width: int) -> Iterator[str]:
    if inputs:
        yield from lines_of(", ".join(f"{name} {shown(value)}" for name, value in inputs.items()), width, 2)


def _steps(answer: ClusterSizeAnswer, width: int) -> Iterator[str]:
    for step in answer.steps[:MOST_ROWS]:
        size = f"{step.group} to {shown(step.value)}: " if step.group else ""
        yield from lines_of(f"{step.step}  {size}{step.detail}", width, 2)
    if len(answer.steps) > MOST_ROWS:
        yield from lines_of(f"and {len(answer.steps) - MOST_ROWS} more steps: -o json has all of them", width, 2)
    if answer.bound is not None:
        yield from lines_of(_bound_text(answer.bound), width, 2)


def _bound_text(bound: LowerBound) -> str:
    text = f"{count_of(bound.nodes, 'new node')}; no mix of groups needs fewer than {bound.bound}"
    if bound.cost is None or bound.cost_bound is None:
        return text
    least = money_text(bound.cost_bound, is_lower_bound=True)
    return f"{text}; together they cost {money_text(bound.cost)} an hour, and no mix costs less than {least}"


def _other_groups(answer: ClusterSizeAnswer, width: int) -> Iterator[str]:
    """Yield the reasons of groups without a step; groups with the same reason share it."""
    with_steps = {step.group for step in answer.steps}
    others = {group.name: group.reason for group in answer.groups if group.name not in with_steps}
    yield from _by_reason(others, width, 2)


def _refusals(answer: ClusterSizeAnswer, width: int) -> Iterator[str]:
    asked = [alike for alike in answer.unschedulable if alike.groups]
    for alike in asked[:MOST_ROWS]:
        yield from lines_of(pods_text(alike.pods), width, 2)
        yield from _by_reason(alike.groups, width, 3)
    if len(asked) > MOST_ROWS:
        yield from lines_of(f"and {len(asked) - MOST_ROWS} more kinds of pods: -o json has all of them", width, 2)


def _by_reason(reasons: Mapping[str, str], width: int, level: int) -> Iterator[str]:
    """Yield each reason once, with the groups that it is about."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    for reason, alike in names.items():
        yield from lines_of(f"{listed(alike)}: {reason}", width, level)


def _kept_node_lines(kept: tuple[KeptNode, ...], width: int) -> Iterator[str]:
    if len(kept) <= _FEW:
        for node in kept:
            group = f" ({node.group})" if node.group else ""
            yield from lines_of(f"{node.node}{group}: {kept_reason(node)}", width, 2)
        return
    for found in kept_by_reason(kept)[:MOST_ROWS]:
        example = found.example.partition(": ")[2] or found.example
        such = "" if len(found.nodes) == 1 else "such as "
        yield from lines_of(f"{found.reason}: {listed(found.nodes)} ({such}{example})", width, 2)
    yield from lines_of("-o json has the reason of each node", width, 2)
