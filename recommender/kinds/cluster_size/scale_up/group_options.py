"""The options of each group for the remaining pods, in one round."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.estimator.estimate_model import ExpansionOption
from recommender.kinds.cluster_size.scale_up.balancing import difference, similar_groups
from recommender.kinds.cluster_size.scale_up.shared_estimates import SharedEstimates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
    from recommender.kinds.cluster_size.scale_up.existing_node_placement import Placer
    from recommender.kinds.cluster_size.scale_up.scale_up_state import SizingState
    from recommender.kinds.cluster_size.scale_up.template_fit import Exemplars


class Options:
    """The options of each round; options that did not change since the last round are not estimated again."""

    def __init__(self, settings: ClusterSizeSettings, snapshot: Snapshot, placer: Placer, exemplars: Exemplars) -> None:
        self._settings = settings
        self._exemplars = exemplars
        self._estimates = SharedEstimates(snapshot, placer)
        self._differences: dict[tuple[str, str], str] = {}

    def of_round(self, state: SizingState, pods: Sequence[PodGroup]) -> list[ExpansionOption]:
        """Return what each group that may grow could do for the pods, in the order of their names.

        Groups whose sizes are not written are left out while another one can hold any of the pods.
        """
        self._estimates.begin_round()
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
            result = self._estimates.estimate(group, pods, needed)
            return ExpansionOption(group, replace(result, node_count=needed) if result.pods else result)
        most = state.most_new_nodes((group, *(state.groups[name] for name in similar)))
        return ExpansionOption(group, self._estimates.estimate(group, pods, most), similar)

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
