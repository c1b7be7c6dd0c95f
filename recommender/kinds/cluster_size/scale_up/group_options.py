"""The options of each group for the remaining pods, in one round."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

from adapter.foundation.objects.grouping import group_values
from recommender.kinds.cluster_size.estimator.estimate_model import ExpansionOption
from recommender.kinds.cluster_size.scale_up.balancing import difference, similar_groups
from recommender.kinds.cluster_size.scale_up.shared_estimates import SharedEstimates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
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
        self._fitting: dict[PodShape, list[str]] = {}
        """The groups that can hold a shape, whatever other pods there are."""
        self._unsure: dict[str, set[PodShape]] = {}
        """The shapes that a group may hold or not, depending on other pods, for each group that was asked."""

    def of_round(self, state: SizingState, pods: Sequence[PodGroup]) -> list[ExpansionOption]:
        """Return what each group that may grow could do for the pods, in the order of their names.

        Groups whose sizes are not written are left out while another one can hold any of the pods.
        """
        self._estimates.begin_round()
        schedulable = self._schedulable([each for each in state.groups.values() if state.obstacle(each) is None], pods)
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

    def _schedulable(self, groups: Iterable[NodeGroup], pods: Sequence[PodGroup]) -> dict[str, tuple[PodGroup, ...]]:
        """Return the pods that a new node of each group could take.

        What no other pod can change is found by the shape, or each round would compare each shape with each group.
        """
        found: dict[str, list[tuple[int, PodGroup]]] = {}
        shapes = group_values((each.shape, (place, each)) for place, each in enumerate(pods))
        for group in groups:
            name = group.name
            asked = self._unsure[name].intersection(shapes) if name in self._unsure else shapes
            fits = self._exemplars.fits(group, asked) if asked else {}
            if name not in self._unsure:
                self._unsure[name] = {each for each in shapes if not self._exemplars.knows(group, each)}
                for shape in fits.keys() - self._unsure[name]:
                    if fits[shape]:
                        self._fitting.setdefault(shape, []).append(name)
            found[name] = [each for shape in self._unsure[name] if fits.get(shape) for each in shapes[shape]]
        for shape, those in shapes.items():
            for name in self._fitting.get(shape, ()):
                if name in found:
                    found[name] += those
        return {name: tuple(each for _, each in sorted(its, key=itemgetter(0))) for name, its in found.items()}

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
