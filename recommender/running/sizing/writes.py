"""What became of the sizes that were to be written, and what is remembered of it.

A size is in the memory as asked for before its write begins. It counts as written once its write has succeeded or the
group has it: then nodes are on their way, and the cool-downs begin. So a process that is killed at any moment neither
forgets nodes that it has requested nor waits for nodes that it has not.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from recommender.cluster_size.health.back_off import after_failure
from recommender.cluster_size.model.memory import AskedSize, RequestedNodes
from recommender.outputs.results import ScaleResult
from recommender.outputs.scale import NOT_STORED
from recommender.outputs.sizes.group_wishes import group_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.cluster_size.model.groups import NodeGroup, NodeGroups
    from recommender.cluster_size.model.memory import ClusterSizeMemory
    from recommender.decisions.record import TargetReference
    from recommender.outputs.scale import ScaleOutcome
    from recommender.outputs.sizes.group_wishes import GroupWishes

_WRITTEN: Final = frozenset({ScaleResult.OK, ScaleResult.UNCHANGED})


class WriteResults:
    """The latest result for each target, until a decision has been made from it. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: dict[str, dict[TargetReference, ScaleOutcome]] = {}

    def note(self, outcome: ScaleOutcome) -> None:
        """Keep a result; it replaces an older one, so that a failure counts only if its repetition failed too."""
        with self._lock:
            self._outcomes.setdefault(outcome.wish.recommendation, {})[outcome.wish.target] = outcome

    def of(self, recommendation: str) -> Mapping[TargetReference, ScaleOutcome]:
        """Return the results for a recommendation."""
        with self._lock:
            return dict(self._outcomes.get(recommendation, {}))

    def drop(self, recommendation: str, seen: Mapping[TargetReference, ScaleOutcome]) -> None:
        """Forget results that a decision has been made from; later ones stay."""
        with self._lock:
            left = {
                target: outcome
                for target, outcome in self._outcomes.pop(recommendation, {}).items()
                if seen.get(target) is not outcome
            }
            if left:
                self._outcomes[recommendation] = left

    def clear(self) -> None:
        """Forget everything: another process leads."""
        with self._lock:
            self._outcomes.clear()


def settled_writes(
    memory: ClusterSizeMemory,
    groups: NodeGroups,
    outcomes: Mapping[TargetReference, ScaleOutcome],
    now: float,
    valid_seconds: float,
) -> ClusterSizeMemory:
    """Return the memory with what became of the sizes that were asked for; pure.

    After a failed write its group backs off, and after a failed removal the cool-down for that begins. Such a write
    may have had an effect all the same, so it is looked for in the size of the group for `valid_seconds`, in which a
    decision can be carried out.
    """
    by_name = {group.name: group for group in groups.groups}
    asked = dict(memory.asked)
    for name, one in memory.asked.items():
        group = by_name.get(name)
        outcome = _outcome_of(one, group, outcomes)
        result = None if outcome is None else outcome.result
        if result in _WRITTEN or (group is not None and group.target_size == one.size):
            memory = _written(memory, name, one)
            del asked[name]
            continue
        if group is not None and one.removes and group.target_size < one.before:
            # Nodes go one after the other; some have gone already.
            memory = _written(memory, name, one)
        if outcome is not None and result is ScaleResult.ERROR and outcome.message != NOT_STORED:
            memory = _failed(memory, name, one, outcome.message, now)
        if result is ScaleResult.REFUSED or now - one.since > valid_seconds:
            del asked[name]
    return replace(memory, asked=asked)


def _outcome_of(
    asked: AskedSize, group: NodeGroup | None, outcomes: Mapping[TargetReference, ScaleOutcome]
) -> ScaleOutcome | None:
    target = None if group is None else group_target(group)
    outcome = None if target is None else outcomes.get(target)
    return outcome if outcome is not None and outcome.wish.replicas == asked.size else None


def _written(memory: ClusterSizeMemory, name: str, asked: AskedSize) -> ClusterSizeMemory:
    if asked.size > asked.before:
        known = memory.requested.get(name)
        request = known if known is not None and known.size == asked.size else RequestedNodes(asked.size, asked.since)
        last = max(asked.since, memory.last_scale_up or 0.0)
        return replace(memory, requested={**memory.requested, name: request}, last_scale_up=last)
    if asked.removes:
        return replace(memory, last_delete=max(asked.since, memory.last_delete or 0.0))
    return memory


def _failed(memory: ClusterSizeMemory, name: str, asked: AskedSize, message: str, now: float) -> ClusterSizeMemory:
    if asked.size > asked.before:
        back_off = after_failure(memory.back_offs.get(name), now, f"its size could not be written: {message}")
        return replace(memory, back_offs={**memory.back_offs, name: back_off})
    return replace(memory, last_failure=now) if asked.removes else memory


def remembered_writes(
    memory: ClusterSizeMemory, wishes: GroupWishes, groups: NodeGroups, now: float
) -> ClusterSizeMemory:
    """Return the memory with the sizes that are asked for now; pure."""
    by_target = {group_target(group): group for group in groups.groups}
    asked = dict(memory.asked)
    for wish in wishes.wishes:
        group = by_target[wish.target]
        known = asked.get(group.name)
        if known is None or (known.size, known.before) != (wish.replicas, group.target_size):
            asked[group.name] = AskedSize(wish.replicas, group.target_size, now, bool(wish.removals))
    return replace(memory, asked=asked)
