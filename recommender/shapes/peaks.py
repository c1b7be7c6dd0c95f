"""The peaks of a history: the moments for which machines must suffice. Pure.

At these moments, the pods together request the most CPU, the most memory or the most of another resource, or there are
the most pods. Pods that need a certain kind of node may have their peak at another time, so each group of pods that
select the same nodes has its own peaks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import NO_CONSTRAINTS
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.node_groups.daemon_sets import is_per_node_pod, stays_with_node

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.recording.recording import Recording

MOST_PEAKS: Final = 16
_PODS: Final = "pods"
_VOLUMES: Final = (
    "The volumes of {} are not looked at: zones, and how many volumes a machine can attach, may need more machines."
)
_DEVICES: Final = (
    "Left out, with all pods on them: {} with pods that have ResourceClaims, since a catalogue states no devices."
)


@dataclass(frozen=True, slots=True)
class Peak:
    """A moment with its nodes and pods."""

    time: float
    nodes: tuple[ClusterNode, ...]
    pods: tuple[ClusterPod, ...]
    """Pods that need a place; each has a unique name."""


@dataclass(frozen=True, slots=True)
class History:
    """The pods that machines have to hold."""

    source: str
    peaks: tuple[Peak, ...]
    kinds: tuple[ClusterPod, ...]
    """One pod of each kind that existed at any time; each of them must fit on some machine."""
    daemons: tuple[ClusterPod, ...]
    """One pod of each DaemonSet; a new machine may have them from the start."""
    notes: tuple[str, ...] = ()
    pending: tuple[ClusterPod, ...] = ()
    """Pods that wait for a node now. They are in the peak, but not among `kinds`: none like them may ever have run."""


def history_of_recording(recording: Recording, group_of: Mapping[str, str]) -> History:
    """Return the history in a recording; `group_of` has the node group of each node that belongs to one.

    Pods of kinds that never had a node of a group are left out, and so are pods on nodes outside all groups, since they
    stay there.
    """
    kinds = recording.pod_kinds
    had_nodes = {pod.kind for pod in recording.pods if pod.node in group_of}
    counts = [number in had_nodes and not stays_with_node(kind) for number, kind in enumerate(kinds)]
    needed = tuple(counts[pod.kind] and (pod.node in group_of or not pod.node) for pod in recording.pods)
    never = sum(not pod.node and pod.kind not in had_nodes for pod in recording.pods)
    notes = list(recording.notes)
    if never:
        notes.append(f"{count_of(never, 'pod')} left out, since none like them ever had a node of a group.")
    times = _peak_times(recording, needed)
    if len(times) > MOST_PEAKS:
        notes.append(
            f"Of {len(times)} peaks, the {MOST_PEAKS} that most pods share are packed: pods that select their nodes in "
            "many ways may need more machines at other times."
        )
    return History(
        recording.source,
        tuple(_peak(recording, time, needed, group_of) for time in times[:MOST_PEAKS]),
        tuple(kind for kind, is_counted in zip(kinds, counts, strict=True) if is_counted),
        daemons_of(kind for number, kind in enumerate(kinds) if number in had_nodes),
        tuple(notes),
    )


def history_of_now(
    nodes: Iterable[ClusterNode],
    pods: Iterable[ClusterPod],
    group_of: Mapping[str, str],
    now: float,
) -> History:
    """Return the present as the only peak; pods on nodes outside all groups are left out, since they stay there.

    So are nodes that have a pod with ResourceClaims, with all their pods: a catalogue states no devices. Claims of
    volumes are left out, as a recording does: machines of a catalogue are in no zone, so none could use a volume.
    """
    alive = [pod for pod in pods if not pod.has_ended and not pod.is_terminating]
    staying = {pod.node for pod in alive if pod.node in group_of and _has_devices(pod)}
    found = [pod for pod in alive if not pod.node or (pod.node in group_of and pod.node not in staying)]
    inside = [_without_claims(pod) for pod in found]
    needed = tuple(pod for pod in inside if not stays_with_node(pod))
    there = tuple(node for node in nodes if node.name in group_of and node.name not in staying)
    with_claims = sum(map(_has_claims, found))
    notes = [_VOLUMES.format(count_of(with_claims, "pod"))] if with_claims else []
    if staying:
        notes.append(_DEVICES.format(count_of(len(staying), "node")))
    return History(
        "the current cluster",
        (Peak(now, there, needed),),
        tuple(pod for pod in needed if pod.node),
        daemons_of(inside),
        tuple(notes),
        tuple(pod for pod in needed if not pod.node),
    )


def _has_devices(pod: ClusterPod) -> bool:
    return pod.facts is not None and bool(pod.facts.scheduling.resource_claims) and not stays_with_node(pod)


def _has_claims(pod: ClusterPod) -> bool:
    return pod.facts is not None and bool(pod.facts.scheduling.claims)


def _without_claims(pod: ClusterPod) -> ClusterPod:
    if pod.facts is None or not _has_claims(pod):
        return pod
    return replace(pod, facts=replace(pod.facts, scheduling=replace(pod.facts.scheduling, claims=())))


def daemons_of(pods: Iterable[ClusterPod]) -> tuple[ClusterPod, ...]:
    """Return, for each DaemonSet, its last pod in the input, bound to no node."""
    found: dict[tuple[str, str], ClusterPod] = {}
    for pod in pods:
        if pod.controller is not None and pod.controller.is_daemon_set and is_per_node_pod(pod):
            found[pod.namespace, pod.controller.name] = _without_node(pod)
    return tuple(found[key] for key in sorted(found))


def _without_node(pod: ClusterPod) -> ClusterPod:
    """Return a DaemonSet's pod without the node name that the DaemonSet controller wrote into it."""
    facts = pod.facts
    if facts is not None and facts.scheduling.node_terms is not None:
        terms = tuple(replace(term, name_in=None) for term in facts.scheduling.node_terms)
        facts = replace(facts, scheduling=replace(facts.scheduling, node_terms=terms))
    name = "" if pod.controller is None else pod.controller.name
    return replace(pod, name=f"{name}-daemon", uid="", node="", bound_at=None, facts=facts)


def _peak_times(recording: Recording, needed: Sequence[bool]) -> list[float]:
    """Return the first moment of each largest total, without repetitions."""
    classes = [_class_of(kind) for kind in recording.pod_kinds]
    amounts = [{_PODS: 1, **kind.resources.requests} for kind in recording.pod_kinds]
    total: defaultdict[tuple[Hashable, str], int] = defaultdict(int)
    largest: dict[tuple[Hashable, str], tuple[int, float]] = {}
    for time, moment in groupby(_changes(recording, needed), key=itemgetter(0)):
        grown: dict[tuple[Hashable, str], None] = {}
        for _, sign, kind in moment:
            for name, amount in amounts[kind].items():
                for key in ((None, name), (classes[kind], name)):
                    total[key] += sign * amount
                    grown[key] = None
        for key in grown:
            if total[key] > largest.get(key, (0, 0.0))[0]:
                largest[key] = total[key], time
    whole = [time for (each, _), (_, time) in largest.items() if each is None]
    others = Counter(time for (each, _), (_, time) in largest.items() if each is not None)
    return list(dict.fromkeys([*whole, *(time for time, _ in others.most_common())]))


def _changes(recording: Recording, needed: Sequence[bool]) -> list[tuple[float, int, int]]:
    """Return the starts (1) and ends (-1) of needed pods, sorted by time, each with the kind of the pod."""
    found: list[tuple[float, int, int]] = []
    for pod, is_needed in zip(recording.pods, needed, strict=True):
        if is_needed:
            found.append((max(pod.created, recording.start), 1, pod.kind))
            if pod.gone is not None:
                found.append((max(pod.gone, recording.start), -1, pod.kind))
    return sorted(found)


def _class_of(kind: ClusterPod) -> Hashable:
    """Return the constraints that decide which nodes pods of a kind may have, whatever the pods request."""
    of = kind.facts.scheduling if kind.facts is not None else NO_CONSTRAINTS
    return of.node_selector, of.node_terms, of.tolerations


def _peak(recording: Recording, time: float, needed: Sequence[bool], group_of: Mapping[str, str]) -> Peak:
    pods = tuple(
        replace(recording.pod_kinds[pod.kind], name=f"pod-{number}", node=pod.node)
        for number, pod in enumerate(recording.pods)
        if needed[number] and pod.created <= time and (pod.gone is None or time < pod.gone)
    )
    there = {one.node.name: one.node for one in recording.nodes if one.is_there(time) and one.node.name in group_of}
    return Peak(time, tuple(there.values()), pods)
