"""Counts how many evictions each PodDisruptionBudget still allows, over all nodes that are removed together."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.selectors import Operator
from adapter.foundation.reports.counts import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from adapter.foundation.cluster.values.workloads import DisruptionBudget
    from adapter.foundation.objects.selectors import Selector

_NO_LABEL: Final = ("", "")


class RemainingDisruptions:
    """The disruptions that budgets still allow after the evictions counted so far. It belongs to one decision."""

    def __init__(self, budgets: Sequence[DisruptionBudget] | None) -> None:
        """`budgets` is None if they are not known."""
        self.are_known = budgets is not None
        self._budgets = tuple(budgets or ())
        self._left = [budget.disruptions_allowed for budget in self._budgets]
        self._by_label: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
        """The budgets by namespace, and by key and value of a label that all their pods have; empty if there is
        none."""
        for number, budget in enumerate(self._budgets):
            if budget.selector is not None:
                self._by_label[(budget.namespace, *_required_label(budget.selector))].append(number)
        self._matching: dict[tuple[str, int], tuple[int, ...]] = {}

    def has_budget(self, pod: ClusterPod) -> bool:
        """Return whether a budget covers the pod."""
        return bool(self._numbers(pod))

    def refusal(self, pods: Iterable[ClusterPod]) -> tuple[ClusterPod, str] | None:
        """Return the first pod that may not be evicted with all pods before it, and the budget that forbids it."""
        wanted: defaultdict[int, int] = defaultdict(int)
        for pod in pods:
            numbers = self._numbers(pod)
            for number in numbers:
                wanted[number] += 1
                if wanted[number] > self._left[number]:
                    return pod, self._sentence(number, wanted[number])
            if len(numbers) > 1:
                return pod, self._several(numbers)
        return None

    def take(self, pods: Iterable[ClusterPod]) -> None:
        """Count pods as evicted."""
        for pod in pods:
            for number in self._numbers(pod):
                self._left[number] -= 1

    def _numbers(self, pod: ClusterPod) -> tuple[int, ...]:
        if not self._budgets:
            return ()
        # Pods of one controller share their labels, and pods live longer than this object.
        key = (pod.namespace, id(pod.labels))
        found = self._matching.get(key)
        if found is None:
            labels = [_NO_LABEL, *pod.labels.items()]
            numbers = [one for label in labels for one in self._by_label.get((pod.namespace, *label), ())]
            found = self._matching[key] = tuple(one for one in sorted(set(numbers)) if self._selects(one, pod))
        return found

    def _selects(self, number: int, pod: ClusterPod) -> bool:
        selector = self._budgets[number].selector
        return selector is not None and selector.matches(pod.labels)

    def _several(self, numbers: Sequence[int]) -> str:
        """Return why a pod is never evicted: the subresource `eviction` fails for it, whatever its budgets allow."""
        first, second = (self._budgets[number].name for number in numbers[:2])
        return (
            f"the PodDisruptionBudgets {first} and {second} cover it, and the API server evicts no pod that more than "
            "one covers: change their selectors"
        )

    def _sentence(self, number: int, wanted: int) -> str:
        budget, left = self._budgets[number], max(self._left[number], 0)
        allowed = max(budget.disruptions_allowed, 0)
        taken = allowed - left
        beside = f", of which removals of other nodes use {taken}" if taken else ""
        together = f", and the node runs {wanted} of its pods" if left and wanted > 1 else ""
        return (
            f"the PodDisruptionBudget {budget.namespace}/{budget.name} allows "
            f"{count_of(allowed, 'disruption')}{beside}{together}"
        )


def _required_label(selector: Selector) -> tuple[str, str]:
    """Return a label without which the selector does not match."""
    for one in selector.requirements:
        if one.operator in {Operator.EQUALS, Operator.DOUBLE_EQUALS}:
            return one.key, one.values[0]
    return _NO_LABEL
