"""The options of each group for the remaining pods, in one round."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from recommender.kinds.cluster_size.balancing.similar import difference, similar_groups
from recommender.kinds.cluster_size.estimator.binpacking import estimate
from recommender.kinds.cluster_size.estimator.estimate_model import ExpansionOption
from recommender.kinds.cluster_size.model.resources import amounts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.cluster_size.estimator.estimate_model import Estimate, PodGroup
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
    from recommender.kinds.cluster_size.scale_up.existing_node_placement import Placer
    from recommender.kinds.cluster_size.scale_up.scale_up_state import SizingState
    from recommender.kinds.cluster_size.scale_up.template_fit import Exemplars


_Signature: TypeAlias = tuple[frozenset[tuple[str, int]], frozenset[tuple[str, int]], int]
"""The resources that new nodes have left beside their own pods; they alone determine how many independent pods fit."""


@dataclass(frozen=True, slots=True)
class _Estimated:
    """An estimate of pods that depend on no other pods, and its limit."""

    max_nodes: int
    result: Estimate

    def answers(self, max_nodes: int) -> bool:
        """Return whether the estimate is the same with this limit."""
        if max_nodes == self.max_nodes:
            return True
        return not self.result.limit and max_nodes >= self.result.node_count


class Options:
    """The options of each round; options that did not change since the last round are not estimated again."""

    def __init__(self, settings: ClusterSizeSettings, snapshot: Snapshot, placer: Placer, exemplars: Exemplars) -> None:
        self._settings = settings
        self._snapshot = snapshot
        self._placer = placer
        self._exemplars = exemplars
        self._estimated: dict[tuple[_Signature, tuple[PodGroup, ...]], _Estimated] = {}
        self._signatures: dict[str, _Signature] = {}
        self._differences: dict[tuple[str, str], str] = {}

    def of_round(self, state: SizingState, pods: Sequence[PodGroup]) -> list[ExpansionOption]:
        """Return what each group that may grow could do for the pods, in the order of their names.

        Groups whose sizes are not written are left out while another one can hold any of the pods.
        """
        schedulable: dict[str, tuple[PodGroup, ...]] = {}
        for name, group in state.groups.items():
            if state.obstacle(group) is None:
                fits = self._exemplars.fits(group, (each.shape for each in pods))
                schedulable[name] = tuple(each for each in pods if fits[each.shape])
        held = {name: frozenset(each) for name, each in schedulable.items()}
        found: list[ExpansionOption] = []
        for name, its_pods in schedulable.items():
            if its_pods:
                similar = self._similar(state, state.groups[name], held)
                option = self._option(state, state.groups[name], its_pods, similar)
                if option.estimate.pods:
                    found.append(option)
        return [option for option in found if option.group.name not in state.unwritten] or found

    def differences(self, group: str) -> dict[str, str]:
        """Return how this group differs from each group that it was compared with and is not similar to, by name."""
        return {other: why for (one, other), why in self._differences.items() if one == group and why}

    def _option(
        self, state: SizingState, group: NodeGroup, pods: tuple[PodGroup, ...], similar: tuple[str, ...]
    ) -> ExpansionOption:
        if group.options.zero_or_max:
            needed = state.room(group)
            result = self._estimate(group, pods, needed)
            return ExpansionOption(group, replace(result, node_count=needed) if result.pods else result)
        most = state.most_new_nodes((group, *(state.groups[name] for name in similar)))
        return ExpansionOption(group, self._estimate(group, pods, most), similar)

    def _estimate(self, group: NodeGroup, pods: tuple[PodGroup, ...], max_nodes: int) -> Estimate:
        """Return the estimate; equal nodes share an estimate if no pod depends on another."""
        assert group.template is not None, "groups without a template are left out"
        key = self._signature(group.name, group.template), pods
        known = self._estimated.get(key)
        if known is not None and known.answers(max_nodes):
            return known.result
        result = estimate(self._snapshot, pods, group.template, name_prefix=f"{group.name}-new", max_nodes=max_nodes)
        if all(self._placer.filter_of(each.shape).is_independent for each in pods):
            self._estimated[key] = _Estimated(max_nodes, result)
        return result

    def _signature(self, name: str, template: NodeTemplate) -> _Signature:
        known = self._signatures.get(name)
        if known is None:
            taken: Counter[str] = Counter()
            for pod in template.pods:
                taken.update(self._snapshot.shape(pod).requests)
            offered = frozenset(amounts_of(template.node.allocatable).items())
            known = self._signatures[name] = (offered, frozenset(taken.items()), len(template.pods))
        return known

    def _similar(
        self, state: SizingState, group: NodeGroup, schedulable: Mapping[str, frozenset[PodGroup]]
    ) -> tuple[str, ...]:
        settings = self._settings
        if not settings.balance_similar_node_groups or group.options.zero_or_max:
            return ()
        alike = [
            name
            for name in schedulable
            if name != group.name
            and (name in state.unwritten) == (group.name in state.unwritten)
            and not state.groups[name].options.zero_or_max
            and not self._difference(group, state.groups[name])
        ]
        return similar_groups(group.name, alike, schedulable, balance=True)

    def _difference(self, one: NodeGroup, other: NodeGroup) -> str:
        key = (one.name, other.name)
        if key not in self._differences:
            assert one.template is not None, "groups without a template are left out"
            assert other.template is not None, "groups without a template are left out"
            settings = self._settings
            self._differences[key] = difference(
                one.template, other.template, settings.balancing_ignore_labels, settings.balancing_labels
            )
        return self._differences[key]
