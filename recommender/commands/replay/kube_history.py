"""Turns kube-state-metrics' series into a recording. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling, Toleration
from adapter.foundation.cluster.values.pods import ClusterPod, ControllerReference, SchedulingFacts
from adapter.foundation.cluster.values.state import ClusterNode, Taint
from adapter.foundation.objects.pod_requests import CPU, DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES, MEMORY, PodResources
from adapter.foundation.objects.quantities import Quantity
from adapter.foundation.reports.counts import agreeing, count_of
from recommender.recording.recording import RecordedNode, RecordedPod, Recording, RecordingError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from recommender.commands.replay.kube_state import KubeState, PodId

_RESOURCES: Final = {
    "ephemeral_storage": "ephemeral-storage",
    "nvidia_com_gpu": "nvidia.com/gpu",
    "amd_com_gpu": "amd.com/gpu",
    "gpu_intel_com_i915": "gpu.intel.com/i915",
}
"""Resources by kube-state-metrics' spelling; for other resources, its spelling is used for nodes and pods alike."""
_NOT_A_LABEL: Final = re.compile(r"[^a-zA-Z0-9_]")
_KNOWN_LABELS: Final = (
    "topology.kubernetes.io/zone",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/arch",
    "kubernetes.io/os",
)
_API_VERSIONS: Final = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
}
_LEAST_OWNED_RATIO: Final = 0.9
"""The smallest share of pods with a series kube_pod_info that is accepted."""
_PASSING: Final = "node.kubernetes.io/"
_NANO: Final = 10**9
_MILLI: Final = 1000


def recording_of(state: KubeState, source: str, label_keys: Iterable[str]) -> Recording:
    """Return the recording. Raises RecordingError if too little is known.

    `label_keys` are the label keys by which the configuration distinguishes groups; the series spell them differently.
    """
    keys = {f"label_{_NOT_A_LABEL.sub('_', key)}": key for key in (*_KNOWN_LABELS, *label_keys)}
    nodes = tuple(_nodes(state, keys))
    if not nodes:
        raise RecordingError(f"{source}: no node has known allocatable amounts (kube_node_status_allocatable)")
    _refuse_unknown_requests(state, source)
    kinds = _PodKinds(state)
    pods = sorted(_pods(state, kinds), key=lambda pod: pod.created)
    return Recording(
        source,
        state.window.start,
        state.window.end,
        nodes,
        tuple(pods),
        tuple(kinds.found),
        state.gaps,
        tuple(_notes(state, keys)),
    )


def _refuse_unknown_requests(state: KubeState, source: str) -> None:
    """Refuse series that lack the owners or the requests of pods, since every node would seem empty."""
    asked = sum(pod in state.requests for pod in state.pods)
    owners = sum(pod in state.owners for pod in state.pods)
    if owners < _LEAST_OWNED_RATIO * len(state.pods):
        raise RecordingError(
            f"{source}: only {owners} of {len(state.pods)} pods have a series kube_pod_info: the same "
            "kube-state-metrics must export kube_pod_info, kube_pod_status_phase and "
            "kube_pod_container_resource_requests"
        )
    if not asked:
        raise RecordingError(
            f"{source}: no pod of kube_pod_status_phase has a series kube_pod_container_resource_requests: both must "
            "come from the same kube-state-metrics"
        )


def _nodes(state: KubeState, keys: Mapping[str, str]) -> Iterator[RecordedNode]:
    window = state.window
    for name, seen in sorted(state.nodes.items()):
        amounts = {_RESOURCES.get(key, key): value for key, value in state.allocatable.get(name, {}).items()}
        if not amounts.get(CPU) or not amounts.get(MEMORY):
            continue
        offered = {key: Quantity(round(value * _NANO)) for key, value in amounts.items()}
        labels = {keys[key]: value for key, value in state.node_labels.get(name, {}).items() if key in keys}
        created = state.node_created.get(name)
        taints = sorted(each for each in state.taints.get(name, ()) if not each[0].startswith(_PASSING))
        node = ClusterNode(
            name=name,
            labels={HOSTNAME_LABEL: name} | labels,
            taints=tuple(Taint(*each) for each in taints),
            unschedulable=False,
            conditions={"Ready": "True"},
            created=created,
            capacity=offered,
            allocatable=offered,
        )
        came = seen.first if created is None else min(seen.first, created)
        yield RecordedNode(node, came, _end(seen.last, window.end, window.step_seconds))


def _end(last: float, end: float, step: int) -> float | None:
    """Return when something ended: halfway between its last step and the next step; None if it had not ended."""
    return last + step / 2 if last + step < end else None


class _PodKinds:
    """Assigns numbers to kinds of pods; pods of a kind do not differ in anything that matters to a decision."""

    def __init__(self, state: KubeState) -> None:
        self._state = state
        self._tolerated = _tolerated_taints(state)
        self._places: dict[Hashable, int] = {}
        self.found: list[ClusterPod] = []

    def number(self, pod: PodId) -> int:
        """Return the number of a pod's kind."""
        namespace = pod[0]
        kind, name = self._state.owners.get(pod, ("", ""))
        requests = {
            _RESOURCES.get(key, key): round(value * _MILLI) if key == CPU else round(value)
            for key, value in self._state.requests.get(pod, {}).items()
        }
        alike = (namespace, kind, name, tuple(sorted(requests.items())))
        if alike not in self._places:
            self._places[alike] = len(self.found)
            self.found.append(self._pod(namespace, kind, name, requests))
        return self._places[alike]

    def _pod(self, namespace: str, kind: str, name: str, requests: dict[str, int]) -> ClusterPod:
        owner = ControllerReference(_API_VERSIONS.get(kind, "v1"), kind, name, f"{kind}/{namespace}/{name}")
        has_owner = kind not in {"", "<none>"}
        scored = {CPU: requests.get(CPU) or DEFAULT_CPU_MILLI, MEMORY: requests.get(MEMORY) or DEFAULT_MEMORY_BYTES}
        tolerations = tuple(
            Toleration(key, "Equal", value, effect) for key, value, effect in sorted(self._tolerated[namespace, name])
        )
        return ClusterPod(
            namespace=namespace,
            name="",
            uid="",
            node="",
            labels={},
            controller=owner if has_owner else None,
            phase="Running",
            is_terminating=False,
            bound_at=None,
            ended_at=None,
            priority=0,
            resources=PodResources(requests=requests, non_zero_requests=scored),
            facts=SchedulingFacts(PodScheduling(tolerations=tolerations), {}, 0.0, None, 30.0, "Always"),
        )


def _tolerated_taints(state: KubeState) -> defaultdict[tuple[str, str], set[tuple[str, str, str]]]:
    """Return, by namespace and owner, the taints of nodes on which its pods ran: the pods must tolerate them."""
    found: defaultdict[tuple[str, str], set[tuple[str, str, str]]] = defaultdict(set)
    for pod, (node, _) in state.bound.items():
        found[pod[0], state.owners.get(pod, ("", ""))[1]] |= state.taints.get(node, set())
    return found


def _pods(state: KubeState, kinds: _PodKinds) -> Iterator[RecordedPod]:
    window = state.window
    for pod, seen in state.pods.items():
        created = min(state.created.get(pod, seen.first), seen.first)
        node, since = state.bound.get(pod, ("", 0.0))
        bound = max(created, state.scheduled.get(pod, since)) if node else None
        yield RecordedPod(kinds.number(pod), created, bound, _end(seen.last, window.end, window.step_seconds), node)


def _notes(state: KubeState, keys: Mapping[str, str]) -> Iterator[str]:
    unknown = sum(pod not in state.requests for pod in state.pods)
    if unknown:
        pods = f"{count_of(len(state.pods), 'pod')} {agreeing(unknown, 'takes', 'take')}"
        yield f"Without requests in the series, {unknown} of {pods} no room."
    if not any(key in keys for labels in state.node_labels.values() for key in labels):
        yield (
            "kube_node_labels has none of the labels that the node groups select: start kube-state-metrics with "
            "--metric-labels-allowlist=nodes=[*]."
        )
    without_created = Counter(pod in state.created for pod in state.pods)[False]
    if without_created:
        yield f"Without kube_pod_created, {count_of(without_created, 'pod')} begin at the first step that shows them."
    yield (
        "kube-state-metrics does not say which nodes pods select or what they tolerate: pods are assumed to tolerate "
        "the taints of nodes that pods of the same owner ran on, and to select no node. What `run` records has both."
    )
