"""Cluster Autoscaler's decision, repeated until no pending pod is left that a group could hold, or limits bind."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.estimator.equivalence import pod_groups
from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
from recommender.kinds.cluster_size.expanders.chain import choose
from recommender.kinds.cluster_size.expanders.expander_context import ExpanderContext
from recommender.kinds.cluster_size.expanders.priorities import PrioritiesError, compile_priorities
from recommender.kinds.cluster_size.model.answer import SizeStep
from recommender.kinds.cluster_size.predicates.template_nodes import add_new_nodes
from recommender.kinds.cluster_size.scale_up.balancing import GroupRoom, spread_new_nodes, within_quota
from recommender.kinds.cluster_size.scale_up.group_options import Options
from recommender.kinds.cluster_size.scale_up.scale_up_state import exceeded_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.estimator.estimate_model import Estimate, ExpansionOption
    from recommender.kinds.cluster_size.expanders.expander_context import Choice
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot
    from recommender.kinds.cluster_size.scale_up.existing_node_placement import Placer
    from recommender.kinds.cluster_size.scale_up.scale_up_state import SizingState
    from recommender.kinds.cluster_size.scale_up.template_fit import Exemplars


def expander_context(situation: ClusterSituation, settings: ClusterSizeSettings) -> ExpanderContext:
    """Return the context of the expanders. Priorities of the configuration win over those of the ConfigMap."""
    configured = situation.priorities if settings.priorities is None else settings.priorities
    problem = situation.priorities_problem
    priorities = None
    if configured is not None:
        try:
            priorities = compile_priorities(configured, "priorities")
        except PrioritiesError as error:
            problem = str(error)
    return ExpanderContext(len(situation.nodes) + situation.other_nodes, settings.random_seed, priorities, problem)


class Rounds:
    """The rounds of one decision."""

    def __init__(
        self,
        settings: ClusterSizeSettings,
        snapshot: Snapshot,
        state: SizingState,
        placer: Placer,
        exemplars: Exemplars,
        context: ExpanderContext,
    ) -> None:
        self._settings = settings
        self._snapshot = snapshot
        self._state = state
        self._placer = placer
        self._context = context
        self._options = Options(settings, snapshot, placer, exemplars)
        self.added: list[NodeInfo] = []
        """Nodes of all rounds so far."""
        self.used: Counter[str] = Counter()
        """How many of the added nodes each group has; groups without any are absent."""

    def run(self, pods: Sequence[ClusterPod], usable: Sequence[NodeInfo]) -> tuple[PodGroup, ...]:
        """Add nodes for the pods, round by round; return the pods that are still without a place.

        `usable` are the nodes that exist or are on their way and that may take pods.
        """
        groups = pod_groups(pods, self._snapshot)
        nodes = list(usable)
        number = 1
        while groups and (self._settings.rounds is None or number <= self._settings.rounds):
            options = self._options.of_round(self._state, groups)
            choice = choose(options, self._settings.expanders, self._context)
            if choice.option is None:
                break
            left = self._grow_group(number, choice.option, choice, groups, nodes)
            if left is None:
                name = choice.option.group.name
                self._state.obstacles[name] = "its new nodes would not hold any of the pods that they are meant for"
                continue
            groups = left
            number += 1
        return groups

    def _grow_group(
        self,
        number: int,
        option: ExpansionOption,
        choice: Choice,
        groups: Sequence[PodGroup],
        nodes: list[NodeInfo],
    ) -> tuple[PodGroup, ...] | None:
        """Add the option's nodes and place pods; None, with everything unchanged, if no pod was placed."""
        shares, limits = _shares_of(self._state, option, self._wanted_nodes(option))
        mark = self._snapshot.checkpoint()
        groups_of_added = _added_nodes(self._snapshot, self._state, option.group.name, shares)
        added = [info for infos in groups_of_added.values() for info in infos]
        tried = _place_estimated(self._snapshot, self._placer, added, option.estimate)
        estimated = set(map(id, option.estimate.pods)).difference(map(id, tried))
        waiting = [pod for group in groups for pod in group.pods if id(pod) not in estimated]
        left = self._placer.place_all(waiting, [*nodes, *added], added)
        count = sum(len(group.pods) for group in groups)
        if len(left) == count:
            self._snapshot.revert(mark)
            self._placer.forget_refusals()
            return None
        nodes += added
        self.added += added
        self._state.new_nodes |= {info.node.name: name for name, infos in groups_of_added.items() for info in infos}
        self._record(number, choice, option.group.name, shares, count - len(left))
        self._state.steps += limits
        return _remaining_groups(groups, left)

    def _wanted_nodes(self, option: ExpansionOption) -> int:
        """Return how many nodes the option adds.

        Cluster Autoscaler also adds a node for each existing node that takes pods; so does a single round here.
        """
        if option.group.options.zero_or_max or self._settings.rounds == 1:
            return option.estimate.node_count
        return len(option.estimate.new_nodes)

    def _record(self, number: int, choice: Choice, chosen: str, shares: Mapping[str, int], placed: int) -> None:
        state = self._state
        pods = count_of(placed, "pod")
        for name, count in shares.items():
            state.grow(state.groups[name], count)
            self.used[name] += count
            nodes = count_of(count, "node")
            why = choice.reason if name == chosen else f"balanced with {chosen}, because they are similar"
            detail = f"{nodes} for {pods}; {why}" if name == chosen else f"{nodes}; {why}"
            if name == chosen and self._settings.balance_similar_node_groups:
                detail += _unlike(self._options.differences(chosen))
            state.steps.append(SizeStep(f"round/{number}", name, state.sizes[name], detail))
            state.reasons.setdefault(name, []).append(f"round {number}: {detail}")


def _unlike(differences: dict[str, str]) -> str:
    return "".join(f"; not balanced with {name}: {why}" for name, why in sorted(differences.items()))


def _remaining_groups(groups: Sequence[PodGroup], left: Iterable[ClusterPod]) -> tuple[PodGroup, ...]:
    """Return the groups with the pods that are left; a group whose pods are all left stays the same object."""
    kept = set(map(id, left))
    reduced: list[PodGroup] = []
    for group in groups:
        pods = tuple(pod for pod in group.pods if id(pod) in kept)
        if len(pods) == len(group.pods):
            reduced.append(group)
        elif pods:
            reduced.append(PodGroup(group.shape, pods))
    return tuple(reduced)


def _shares_of(state: SizingState, option: ExpansionOption, wanted: int) -> tuple[dict[str, int], list[SizeStep]]:
    """Return how the nodes of an option are spread over its group and similar ones, and the limits that reduce them.

    Without similar groups, the chosen group gets all nodes. Nodes that a limit refuses to a group are not given to
    another group.
    """
    chosen = option.group
    verdict = state.count_allowed(chosen, wanted)
    sizes = state.sizes
    members = [state.groups[name] for name in (chosen.name, *option.similar)]
    shares = spread_new_nodes(
        [GroupRoom(each.name, sizes[each.name], each.largest_size) for each in members], verdict.allowed
    )
    counts = {each.name: state.node_counts(each) for each in members}
    nodes = within_quota(shares, counts, state.quota)
    total = sum(nodes.values())
    detail = f"{total} of {wanted} nodes are allowed"
    limits = exceeded_limits(verdict) if total < wanted else ()
    size = sizes[chosen.name] + nodes.get(chosen.name, 0)
    return nodes, [SizeStep(limit, chosen.name, size, detail) for limit in limits]


def _added_nodes(
    snapshot: Snapshot, state: SizingState, chosen: str, shares: Mapping[str, int]
) -> dict[str, list[NodeInfo]]:
    """Add the nodes of each group's share to the snapshot; return them by group, those of the chosen one first."""
    groups = sorted(shares, key=lambda name: name != chosen)
    return {name: add_new_nodes(snapshot, state.groups[name], shares[name]) for name in groups}


def _place_estimated(
    snapshot: Snapshot, placer: Placer, added: Sequence[NodeInfo], estimated: Estimate
) -> list[ClusterPod]:
    """Place pods as in the estimate, in its order, as far as nodes were added and take them; return the other pods.

    The added nodes represent those of the estimate, in order. A node can belong to another group than that of the
    estimate, so the filters run again for each node.
    """
    opened = dict(zip((node.name for node in estimated.new_nodes), added, strict=False))
    places = {id(pod): opened.get(node.name) for node in estimated.new_nodes for pod in node.pods}
    places |= {id(pod): snapshot.nodes.get(name) for pod, name in estimated.placed_on_existing}
    left: list[ClusterPod] = []
    for pod in estimated.pods:
        info = places.get(id(pod))
        if info is None or not placer.place_if_it_fits(pod, info):
            left.append(pod)
    return left
