"""The facts that all policies of a replay share: the groups, the kinds of nodes and pods, and the events. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, NO_CONSTRAINTS
from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, ClusterState, Observed
from adapter.foundation.objects.pod_requests import units_of
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.model.size_settings import CORES, MEMORY, ClusterSizeSettings
from recommender.kinds.cluster_size.node_groups.daemon_sets import stays_with_node
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from recommender.kinds.cluster_size.predicates.node_info import new_node_info
from recommender.kinds.cluster_size.predicates.node_only_filters import StaticFilter
from recommender.recording.recording import Recording, RecordingError
from recommender.replay.cluster.fleet import PODS, NodeKind, PodNeeds

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
    from recommender.kinds.cluster_size.model.taints import PassingTaints

DEFAULT_STARTUP_SECONDS: Final = 120.0
"""Assumed time from the request for a node until pods run on it, if the recording does not show it."""
_LEAST_STARTS: Final = 5
"""The start-up time is taken from the recording only if at least this many pods waited for a new node."""
_SAMPLE_PREFIX: Final = "recorded"


@dataclass(frozen=True, slots=True)
class Scene:
    """A recording, prepared to be replayed with any policy."""

    recording: Recording
    groups: NodeGroups
    """The configured groups, with every node of the recording; each group has a template or a problem."""
    node_kinds: tuple[NodeKind, ...]
    kind_of_node: Mapping[str, int]
    """The kind of each recorded node, by name."""
    new_kinds: Mapping[str, int]
    """The kind of new nodes, by group."""
    resources: tuple[str, ...]
    needs: tuple[PodNeeds, ...]
    """The needs of each kind of pod."""
    replayed: tuple[bool, ...]
    """Whether each kind of pod is replayed. Pods that come with a node, and pods that fit on no node, are not."""
    startup_seconds: float
    notes: tuple[str, ...]

    @property
    def prices(self) -> Mapping[str, float]:
        """Return the prices of the groups that have one."""
        return {group.name: group.price for group in self.groups.groups if group.price is not None}


def scene_of(recording: Recording, settings: ClusterSizeSettings, startup_seconds: float | None = None) -> Scene:
    """Return the scene of a recording. Raises RecordingError if nothing can be replayed."""
    groups = _groups(recording, settings)
    known = {group.name: group for group in groups.groups if not group.problem and group.template is not None}
    if not known:
        stated = groups.problems
        problems = [
            *stated,
            *(
                f"node group {group.name}: {group.problem}"
                for group in groups.groups
                if group.problem and not any(f"node group {group.name}:" in one for one in stated)
            ),
        ]
        raise RecordingError(
            f"{recording.source}: no node group of the configuration can be replayed: "
            f"{'; '.join(problems) or 'it names none'}. Write the groups under nodeGroups with a selector that matches "
            "the labels of recorded nodes, or with a template"
        )
    kinds, kind_of_node, new_kinds = _node_kinds(recording, groups, known, settings.passing_taints)
    resources = _resources(recording.pod_kinds)
    needs = _each_once(_needs(pod, kinds, resources) for pod in recording.pod_kinds)
    replayed = tuple(
        not stays_with_node(pod) and _fits_anywhere(need, kinds, resources)
        for pod, need in zip(recording.pod_kinds, needs, strict=True)
    )
    startup, startup_note = _startup(recording, startup_seconds)
    return Scene(
        recording,
        groups,
        kinds,
        kind_of_node,
        new_kinds,
        resources,
        needs,
        replayed,
        startup,
        (*recording.notes, startup_note, *_left_out(recording, replayed), *groups.problems, *_group_notes(groups)),
    )


def _groups(recording: Recording, settings: ClusterSizeSettings) -> NodeGroups:
    """Return the groups of all recorded nodes, discovered in the same way as in a live cluster."""
    nodes = tuple({one.node.name: one.node for one in recording.nodes}.values())
    daemons = tuple(_daemons_on_nodes(recording))
    end = recording.end
    state = ClusterState(
        nodes=Observed(nodes, end), pods=Observed(daemons, end), workloads=Observed((), end), storage=None
    )
    return node_groups(settings.node_groups, state, end, (), settings.passing_taints)


def _daemons_on_nodes(recording: Recording) -> Iterator[ClusterPod]:
    """Yield the newest pod of each DaemonSet, and of each static pod, on each node."""
    newest: dict[tuple[str, Hashable], ClusterPod] = {}
    for number, pod in enumerate(recording.pods):
        kind = recording.pod_kinds[pod.kind]
        if pod.node and kind.controller is not None and stays_with_node(kind):
            owner = (kind.namespace, kind.controller.kind, kind.controller.name)
            newest[pod.node, owner] = replace(kind, name=f"{_SAMPLE_PREFIX}-{number}", node=pod.node)
    yield from newest.values()


def _node_kinds(
    recording: Recording, groups: NodeGroups, known: Mapping[str, NodeGroup], passing: PassingTaints
) -> tuple[tuple[NodeKind, ...], dict[str, int], dict[str, int]]:
    """Return the kinds of nodes, the kind of each recorded node, and the kind of new nodes of each group.

    Taints that describe a temporary state are removed: a replay decides by itself when a node starts and when it is
    removed.
    """
    places: dict[Hashable, int] = {}
    kinds: list[NodeKind] = []
    new_kinds: dict[str, int] = {}
    for name, group in known.items():
        assert group.template is not None, "those without are left out"
        new_kinds[name] = len(kinds)
        places[_alike(group.template.node, name)] = len(kinds)
        kinds.append(_kind(group.template.node, name, group.template.pods))
    outside = _outside_daemons(recording, groups)
    kind_of_node: dict[str, int] = {}
    for one in recording.nodes:
        group_name = groups.group_of.get(one.node.name, "")
        group_name = group_name if group_name in known else ""
        node = replace(one.node, taints=tuple(each for each in one.node.taints if not passing.is_passing(each)))
        alike = _alike(node, group_name)
        if alike not in places:
            places[alike] = len(kinds)
            template = known[group_name].template if group_name else None
            daemons = outside.get(one.node.name, ()) if template is None else template.pods
            kinds.append(_kind(node, group_name, daemons))
        kind_of_node[one.node.name] = places[alike]
    return tuple(kinds), kind_of_node, new_kinds


def _outside_daemons(recording: Recording, groups: NodeGroups) -> dict[str, tuple[ClusterPod, ...]]:
    found: dict[str, tuple[ClusterPod, ...]] = {}
    for pod in _daemons_on_nodes(recording):
        if pod.node not in groups.group_of:
            found[pod.node] = (*found.get(pod.node, ()), pod)
    return found


def _alike(node: ClusterNode, group: str) -> Hashable:
    """Return a key that is the same for nodes that differ in nothing that matters to a pod, whatever their names."""
    labels = tuple(sorted(item for item in node.labels.items() if item[0] != HOSTNAME_LABEL))
    offered = tuple(sorted((name, amount.nanos) for name, amount in node.allocatable.items()))
    return group, labels, node.taints, offered


def _kind(node: ClusterNode, group: str, daemons: tuple[ClusterPod, ...]) -> NodeKind:
    offered = {name: float(units_of(name, amount)) for name, amount in node.allocatable.items()}
    reserved: Counter[str] = Counter({PODS: len(daemons)})
    for pod in daemons:
        reserved.update(pod.resources.requests)
    return NodeKind(node, group, daemons, offered, {name: float(amount) for name, amount in reserved.items()})


def _resources(pods: Iterable[ClusterPod]) -> tuple[str, ...]:
    """Return the resources that pods request: CPU, memory and pods first."""
    first = (CORES, MEMORY, PODS)
    asked = {name for pod in pods for name, amount in pod.resources.requests.items() if amount}
    return (*first, *sorted(asked - set(first)))


def _needs(pod: ClusterPod, kinds: Iterable[NodeKind], resources: tuple[str, ...]) -> PodNeeds:
    requests, scored = pod.resources.requests, pod.resources.non_zero_requests or pod.resources.requests
    amounts = np.array([1.0 if name == PODS else float(requests.get(name, 0)) for name in resources])
    asked = StaticFilter(pod.facts.scheduling if pod.facts is not None else NO_CONSTRAINTS)
    allowed = np.array([not asked.refusals(new_node_info(kind.node, is_added=False)) for kind in kinds])
    scores = float(scored.get(CORES, 0)), float(scored.get(MEMORY, 0))
    above_zero = tuple((row, amount) for row, amount in enumerate(amounts.tolist()) if amount)
    return PodNeeds(amounts, scores, allowed, above_zero, bool(allowed.all()))


def _each_once(needs: Iterable[PodNeeds]) -> tuple[PodNeeds, ...]:
    """Return the needs, equal ones as one object: the fleet finds known scores by the identity of the needs."""
    known: dict[Hashable, PodNeeds] = {}
    return tuple(known.setdefault((one.amounts.tobytes(), one.scored, one.allowed.tobytes()), one) for one in needs)


def _fits_anywhere(needs: PodNeeds, kinds: Iterable[NodeKind], resources: tuple[str, ...]) -> bool:
    """Return whether an empty node of some kind could take a pod with these needs."""
    left = (
        [kind.offered.get(name, 0.0) - kind.reserved.get(name, 0.0) for name in resources]
        for kind, is_allowed in zip(kinds, needs.allowed, strict=True)
        if is_allowed
    )
    return any((np.array(each) >= needs.amounts).all() for each in left)


def _startup(recording: Recording, stated: float | None) -> tuple[float, str]:
    """Return a node's start-up time and a sentence on its source: a flag, waits for new nodes, or a default."""
    if stated is not None:
        return stated, f"A node takes {stated:g} s from its request until pods run on it (--startup-seconds)."
    came = _arrivals(recording)
    waits = [
        pod.bound - pod.created
        for pod in recording.pods
        if pod.bound is not None
        and pod.created >= recording.start
        and any(pod.created < time <= pod.bound for time in came.get(pod.node, ()))
    ]
    if len(waits) >= _LEAST_STARTS:
        seconds = statistics.median(waits)
        return seconds, f"A node takes {seconds:.0f} s, the median wait of {len(waits)} recorded pods for a new node."
    seconds = DEFAULT_STARTUP_SECONDS
    return seconds, f"A node is assumed to take {seconds:.0f} s until pods run on it: --startup-seconds changes it."


def _arrivals(recording: Recording) -> Mapping[str, list[float]]:
    """Return when nodes of each name came; a mere change of a node's facts is not an arrival."""
    found: dict[str, list[float]] = {}
    gone: dict[str, float | None] = {}
    for one in recording.nodes:
        if one.node.name not in gone or gone[one.node.name] != one.came:
            found.setdefault(one.node.name, []).append(one.came)
        gone[one.node.name] = one.gone
    return found


def _left_out(recording: Recording, replayed: tuple[bool, ...]) -> Iterator[str]:
    unfit = sum(not replayed[pod.kind] and not stays_with_node(recording.pod_kinds[pod.kind]) for pod in recording.pods)
    if unfit:
        yield f"Left out with every policy, since no node of any group could hold them: {count_of(unfit, 'pod')}."


def _group_notes(groups: NodeGroups) -> Iterator[str]:
    for group in groups.groups:
        if group.problem:
            yield f"Node group {group.name} is left out: {group.problem}."
