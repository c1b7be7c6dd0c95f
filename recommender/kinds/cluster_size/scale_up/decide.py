"""Decides how many nodes pending pods need, and of which groups (Cluster Autoscaler's scale-up, repeated)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.grouping import group_values
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.estimator.equivalence import pod_groups
from recommender.kinds.cluster_size.estimator.least_nodes import lower_bound, lower_cost_bound
from recommender.kinds.cluster_size.model.answer import LowerBound, ScaleUp, SizeStep, UnschedulablePods
from recommender.kinds.cluster_size.model.pod_places import pod_names
from recommender.kinds.cluster_size.predicates.template_nodes import add_new_nodes
from recommender.kinds.cluster_size.scale_down.pod_kinds import is_daemon_set_pod
from recommender.kinds.cluster_size.scale_up.existing_node_placement import Placer, place_nominated
from recommender.kinds.cluster_size.scale_up.found_places import found_places
from recommender.kinds.cluster_size.scale_up.no_fitting_group import MissingRequirements
from recommender.kinds.cluster_size.scale_up.pending_pods import (
    deleting_nodes,
    left_out_pods,
    only_by_annotation,
    pending_pods,
    young_pods,
)
from recommender.kinds.cluster_size.scale_up.pod_work_limit import NOT_LOOKED_AT, within_bound, without_a_turn
from recommender.kinds.cluster_size.scale_up.rounds import Rounds, expander_context
from recommender.kinds.cluster_size.scale_up.scale_up_state import MAX_PER_SCALE_UP, Obstacle, exceeded_limits
from recommender.kinds.cluster_size.scale_up.snapshot_preparation import (
    add_upcoming,
    evict_present,
    health_of,
    left_out_groups,
    sizing_state,
)
from recommender.kinds.cluster_size.scale_up.template_fit import Exemplars

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot
    from recommender.kinds.cluster_size.scale_up.scale_up_state import SizingState
    from recommender.kinds.cluster_size.scale_up.snapshot_preparation import ClusterHealth


def scale_up(situation: ClusterSituation, settings: ClusterSizeSettings, snapshot: Snapshot) -> ScaleUp:
    """Return which groups grow, and why, and which pods no group can hold.

    The snapshot must hold the nodes and the bound pods of the situation. Afterwards, it holds the nodes that are on
    their way and the new ones, with the pending pods that have a place; it is unchanged if nothing may be decided.
    """
    left_out = left_out_groups(situation)
    health = health_of(situation, settings)
    if health.problem:
        held = {group.name: left_out.get(group.name, health.problem) for group in situation.groups.groups}
        return ScaleUp({}, reasons=held, hold=health.problem)
    return _decide(situation, settings, snapshot, health)


def _decide(
    situation: ClusterSituation, settings: ClusterSizeSettings, snapshot: Snapshot, health: ClusterHealth
) -> ScaleUp:
    pending = pending_pods(situation, settings)
    state = sizing_state(situation, settings, health)
    placer = Placer(snapshot)
    exemplars = Exemplars(snapshot, placer)
    evict_present(snapshot, (*pending.expendable, *pending.drained))
    add_upcoming(situation, snapshot, state, health)
    if settings.enforce_min_size:
        _enforce_min_sizes(state, snapshot)
    deleting = deleting_nodes(situation)
    usable = [info for name, info in snapshot.nodes.items() if name not in deleting]
    awaited = place_nominated(pending.pods, snapshot, usable)
    pods, beyond = within_bound(awaited, snapshot)
    sought = [pod for pod in placer.place_all(pods, usable) if not is_daemon_set_pod(pod)]
    young = young_pods(sought, situation, settings)
    waiting = [pod for pod in sought if (pod.namespace, pod.name) in young.names]
    old = [pod for pod in sought if (pod.namespace, pod.name) not in young.names]
    rounds = Rounds(settings, snapshot, state, placer, exemplars, expander_context(situation, settings))
    left = rounds.run(old, usable)
    left_out = left_out_groups(situation)
    awaited_a_place = [pod for pod in pending.pods if not is_daemon_set_pod(pod)]
    explains = situation.explains
    remaining = (
        _left_pending(state, snapshot, placer, exemplars, left, left_out) if explains else _without_reasons(left)
    )
    return ScaleUp(
        increases={name: count for name, count in sorted(state.increases.items()) if count},
        steps=tuple(state.steps),
        reasons=_group_reasons(state, left_out, remaining, has_pending=bool(old)) if explains else {},
        unschedulable=(*remaining.pods, *pending.left_out, *left_out_pods((pod, NOT_LOOKED_AT) for pod in beyond)),
        places=tuple(found_places(awaited_a_place, pending.drained, situation, snapshot, state)) if explains else (),
        waiting=pod_names(waiting),
        waits_until=young.until,
        new_pods=pod_names(
            pod
            for pod in _holdable(waiting, state, snapshot, exemplars)
            if not only_by_annotation(pod, situation, settings)
        ),
        not_looked_at=without_a_turn(beyond, pods),
        fitting_pods=len(pending.pods) - len(awaited) + sum(not is_daemon_set_pod(pod) for pod in pods) - len(sought),
        helped_pods=len(old) - sum(len(group.pods) for group in left),
        bound=optimum_bound(old, rounds.added, rounds.used, state.groups, snapshot) if explains else None,
        binding=_binding_step(state, remaining),
        memory=health.memory,
    )


def _holdable(
    pods: Sequence[ClusterPod], state: SizingState, snapshot: Snapshot, exemplars: Exemplars
) -> list[ClusterPod]:
    """Return the pods that a node of some group could hold. No number of new nodes would help the others."""
    shapes = dict.fromkeys(map(snapshot.shape, pods))
    held = {
        shape
        for group in (state.groups.values() if shapes else ())
        for shape, fits in exemplars.fits(group, shapes).items()
        if fits
    }
    return [pod for pod in pods if snapshot.shape(pod) in held]


def _enforce_min_sizes(state: SizingState, snapshot: Snapshot) -> None:
    """Add the nodes that groups lack below their minimum sizes, as limits allow; an all-or-nothing group gets all."""
    for name, group in state.groups.items():
        short = min(group.min_size, group.max_size) - state.sizes[name]
        if short <= 0 or name in state.obstacles:
            continue
        wanted = state.room(group) if group.options.zero_or_max else short
        verdict = state.count_allowed(group, wanted)
        beyond = state.beyond_one_scale_up(group, wanted)
        count = 0 if beyond or (group.options.zero_or_max and verdict.allowed < wanted) else verdict.allowed
        state.grow(group, count)
        state.new_nodes |= {info.node.name: name for info in add_new_nodes(snapshot, group, count)}
        added = count_of(count, "node") if count == wanted else f"{count} of {count_of(wanted, 'node')}"
        detail = f"{added}, to reach the minimum of {group.min_size}{f': {beyond}' if beyond else ''}"
        limits = (MAX_PER_SCALE_UP,) if beyond else exceeded_limits(verdict)
        steps = ["minSize", *(limits if count < wanted else ())]
        state.steps += [SizeStep(step, name, state.sizes[name], detail) for step in steps]
        state.reasons.setdefault(name, []).append(detail)


def _binding_step(state: SizingState, remaining: _LeftPending) -> str | None:
    """Return the limit that keeps pods pending, or else the last step; None if there is neither."""
    if remaining.limits:
        return remaining.limits[0]
    return state.steps[-1].step if state.steps else None


def optimum_bound(
    pods: Sequence[ClusterPod],
    added: Sequence[NodeInfo],
    used: Mapping[str, int],
    groups: Mapping[str, NodeGroup],
    snapshot: Snapshot,
) -> LowerBound | None:
    """Return the number of new nodes, and the least that their pending pods need; None if there is no such number.

    `used` are the new nodes by group. Costs are per hour; they are None unless all groups that hold pods have a price.
    The lower bound of the cost is also None if it would take too long to calculate.
    """
    if not added:
        return None
    new = {key for info in added for key in info.pods}
    helped = pod_groups([pod for pod in pods if (pod.namespace, pod.name) in new], snapshot)
    options = list(groups.values())
    prices = {name: price for name in used if (price := groups[name].price) is not None}
    bound = lower_bound(helped, options, snapshot)
    if not bound:
        return None
    has_prices = len(prices) == len(used)
    return LowerBound(
        nodes=len(added),
        bound=bound,
        cost=sum(prices[name] * count for name, count in used.items()) if has_prices else None,
        cost_bound=lower_cost_bound(helped, options, snapshot) if has_prices else None,
    )


_ROUNDS: Final = Obstacle("", "one more node would do, but the limit of rounds is reached")


@dataclass(frozen=True, slots=True)
class _LeftPending:
    """Pods for which there is no place."""

    pods: tuple[UnschedulablePods, ...]
    limits: tuple[str, ...]
    """Names of the limits that keep groups from holding some of these pods."""
    beyond_rounds: frozenset[str] = frozenset()
    """The groups that could hold some of these pods in a further round."""


def _left_pending(
    state: SizingState,
    snapshot: Snapshot,
    placer: Placer,
    exemplars: Exemplars,
    groups: Sequence[PodGroup],
    left_out: Mapping[str, str],
) -> _LeftPending:
    """Return the remaining pods, grouped if they are alike, with the reason against each node group.

    `left_out` has the reason for each group that is left out.
    """
    pods = group_values((group.shape, pod) for group in groups for pod in group.pods)
    found: list[UnschedulablePods] = []
    limits: dict[str, None] = {}
    beyond_rounds: set[str] = set()
    sought: list[PodShape] = []
    for shape, alike in pods.items():
        never = placer.filter_of(shape).problem
        if never is None:
            sought.append(shape)
        else:
            found.append(UnschedulablePods(pod_names(alike), {}, str(never)))
    refusals = {name: exemplars.refusals(group, sought) for name, group in state.groups.items()}
    obstacles = {name: state.obstacle(group) or _ROUNDS for name, group in state.groups.items()}
    missing = MissingRequirements(state.groups, snapshot)
    for shape in sought:
        refused = {name: each[shape] for name, each in refusals.items() if each[shape]}
        small = {name: obstacle for name, obstacle in obstacles.items() if name not in refused}
        limits |= dict.fromkeys(obstacle.step for obstacle in small.values() if obstacle.step)
        in_time = [name for name, obstacle in small.items() if obstacle is _ROUNDS]
        beyond_rounds.update(in_time)
        reasons = {name: obstacle.reason for name, obstacle in small.items()}
        all_reasons = {**left_out, **{name: ", ".join(map(str, each)) for name, each in refused.items()}, **reasons}
        sentence = missing.sentence(shape, refused, reasons)
        names = pod_names(pods[shape])
        by_group = dict(sorted(all_reasons.items()))
        private = frozenset({*left_out, *(state.obstacles.keys() & small.keys())})
        found.append(UnschedulablePods(names, by_group, missing=sentence, is_left_out=bool(in_time), private=private))
    return _LeftPending(tuple(found), tuple(limits), frozenset(beyond_rounds))


def _without_reasons(groups: Iterable[PodGroup]) -> _LeftPending:
    """Return the remaining pods without reasons."""
    return _LeftPending(tuple(UnschedulablePods(pod_names(group.pods), {}) for group in groups), ())


def _group_reasons(
    state: SizingState, left_out: Mapping[str, str], remaining: _LeftPending, *, has_pending: bool
) -> dict[str, str]:
    """Return by group why it grows or not, in one sentence each."""
    reasons = dict(left_out)
    for name, group in state.groups.items():
        obstacle = state.obstacle(group)
        if name in state.reasons:
            reasons[name] = "; ".join([*state.reasons[name], *filter(None, [state.obstacles.get(name)])])
        elif obstacle is not None and (has_pending or name in state.obstacles):
            reasons[name] = obstacle.reason
        elif name in remaining.beyond_rounds:
            reasons[name] = _ROUNDS.reason
        elif has_pending:
            reasons[name] = "another node would not help: none of the remaining pods fits"
        else:
            reasons[name] = "no pending pod needs another node"
    return dict(sorted(reasons.items()))
