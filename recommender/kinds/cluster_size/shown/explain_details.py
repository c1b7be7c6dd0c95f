"""The part of the answer that `--explain` adds: steps, refusals in the scheduler's words, and nodes that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.grouping import group_values
from adapter.foundation.reports.counts import count_of, first_names
from recommender.decisions.texts.record_texts import figure_text, money_text
from recommender.kinds.cluster_size.shown.pod_and_node_texts import (
    GAP,
    MOST_ROWS,
    by_reason,
    first_of,
    kept_by_reason,
    kept_reason,
    pods_text,
    section_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, KeptNode, LowerBound
    from recommender.kinds.kind import Paint

_FEW: Final = 8
"""Up to this number, nodes that stay are listed one by one; more of them are grouped by reason."""


def explained_lines(
    answer: ClusterSizeAnswer, inputs: Mapping[str, float], width: int | None, paint: Paint
) -> Iterator[str]:
    """Return the lines."""
    sections = {
        "INPUTS": _inputs(inputs),
        "STEPS": _steps(answer),
        "GROUPS WITHOUT A STEP": _other_groups(answer),
        "REFUSALS": _refusals(answer),
        "NODES THAT STAY": _kept_node_lines(answer.kept),
    }
    return section_lines(sections, width, paint)


def _inputs(inputs: Mapping[str, float]) -> Iterator[str]:
    if inputs:
        yield ", ".join(f"{name} {figure_text(value)}" for name, value in inputs.items())


def _steps(answer: ClusterSizeAnswer) -> Iterator[str]:
    steps = (
        f"{step.step}  {f'{step.group} to {figure_text(step.value)}: ' if step.group else ''}{step.detail}"
        for step in answer.steps
    )
    yield from first_of(steps, "and {} more steps: -o json has all of them")
    if answer.bound is not None:
        yield _bound_text(answer.bound)


def _bound_text(bound: LowerBound) -> str:
    text = f"{count_of(bound.nodes, 'new node')}; no mix of groups needs fewer than {bound.bound}"
    if bound.cost is None:
        return text
    text = f"{text}; together they cost {money_text(bound.cost)} an hour"
    if bound.cost_bound is None:
        return text
    return f"{text}, and no mix costs less than {money_text(bound.cost_bound, is_lower_bound=True)}"


def _other_groups(answer: ClusterSizeAnswer) -> Iterator[str]:
    """Yield the reasons of groups without a step; groups with the same reason share it."""
    with_steps = {step.group for step in answer.steps}
    return by_reason((group.reason, group.name) for group in answer.groups if group.name not in with_steps)


def _refusals(answer: ClusterSizeAnswer) -> Iterator[str]:
    # Pods of a StatefulSet differ by their labels, and yet have the same reasons.
    asked = group_values(
        (tuple(each.groups.items()), pod) for each in answer.unschedulable if each.groups for pod in each.pods
    )
    for groups, pods in list(asked.items())[:MOST_ROWS]:
        yield pods_text(pods)
        yield from (GAP + text for text in by_reason((reason, name) for name, reason in groups))
    if len(asked) > MOST_ROWS:
        yield f"and {count_of(len(asked) - MOST_ROWS, 'more kind')} of pods: -o json has all of them"


def _kept_node_lines(kept: tuple[KeptNode, ...]) -> Iterator[str]:
    if len(kept) <= _FEW:
        for node in kept:
            group = f" ({node.group})" if node.group else ""
            yield f"{node.node}{group}: {kept_reason(node)}"
        return
    for found in kept_by_reason(kept)[:MOST_ROWS]:
        example = found.example.partition(": ")[2] or found.example
        such = "" if len(found.nodes) == 1 else "such as "
        yield f"{found.reason}: {first_names(found.nodes)} ({such}{example})"
    yield "-o json has the reason of each node"
