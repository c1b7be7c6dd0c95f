"""The store of pods, by namespace and by node, so that the cost of a change does not depend on the whole cluster.

One thread writes, and any thread asks for an immutable view. Pods that have ended are dropped; their nodes keep the
time of the last end.
"""

from __future__ import annotations

import threading
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.values.placed_pods import PlacedPods, pod_problems, pods_by_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adapter.foundation.cluster.forms.pods import PodForm
    from adapter.foundation.cluster.values.state import ClusterPod

_Names: TypeAlias = "dict[str, dict[str, ClusterPod]]"
"""Pods by namespace and name."""

_END_COUNTS_SECONDS = 3600.0
_FEW_ENDS = 1000


class PodStore:
    """A store of pods. A pod that cannot be converted is left out, with the reason."""

    def __init__(
        self, convert: Callable[[Any], ClusterPod], changed: Callable[[], None], wall_clock: Callable[[], float]
    ) -> None:
        """`convert` raises FactError. `changed` is called when the value of a pod changes, not for its heartbeats."""
        self._convert = convert
        self._changed = changed
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._pods: _Names = {}
        self._by_node: dict[str, tuple[ClusterPod, ...]] = {}
        self._by_namespace: dict[str, tuple[ClusterPod, ...]] = {}
        """The pods of the namespaces that have not changed since they were last read."""
        self._pending: dict[tuple[str, str], ClusterPod] = {}
        self._ended: dict[str, float] = {}
        self._problems: dict[tuple[str, str], str] = {}
        self._view: PlacedPods | None = PlacedPods()
        self._snapshot: tuple[ClusterPod, ...] | None = ()

    def __len__(self) -> int:
        """Return the number of pods."""
        return sum(map(len, self._pods.values()))

    @property
    def snapshot(self) -> tuple[ClusterPod, ...]:
        """All pods, including pending ones, in the order of namespaces and names."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = tuple(
                    pod
                    for _, pods in sorted(self._pods.items())
                    for pod in sorted(pods.values(), key=attrgetter("name"))
                )
            return self._snapshot

    @property
    def view(self) -> PlacedPods:
        """The bound pods by place, and the pending ones. Places without a change keep their tuples."""
        with self._lock:
            if self._view is None:
                for namespace in self._pods.keys() - self._by_namespace.keys():
                    bound = tuple(pod for pod in self._pods[namespace].values() if pod.node)
                    self._by_namespace[namespace] = bound
                self._view = PlacedPods(
                    dict(self._by_node), dict(self._by_namespace), dict(self._ended), tuple(self._pending.values())
                )
            return self._view

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence with the number of pods that are left out and the first reasons; empty if there are none."""
        with self._lock:
            return pod_problems(self._problems.values())

    @property
    def refused(self) -> Mapping[tuple[str, str], str]:
        """Reasons why pods are left out, by namespace and name."""
        with self._lock:
            return dict(self._problems)

    def replacement(self) -> _PodReplacement:
        """Return an empty list; its commit replaces all pods."""
        return _PodReplacement(self)

    def put(self, item: PodForm) -> None:
        """Add a pod, or update it."""
        namespace, name = _key(item)
        try:
            pod = self._convert(item)
        except FactError as error:
            self._refuse(namespace, name, str(error))
            return
        with self._lock:
            known = self._known_pod(namespace, name)
            is_change = self._problems.pop((namespace, name), None) is not None
            if pod.has_ended:
                is_change |= known is not None
                self._end(known, pod)
            elif pod != known:
                is_change = True
                self._take(known, pod)
        if is_change:
            self._changed()

    def remove(self, namespace: str | None, name: str) -> None:
        """Delete a pod; an unknown one is not an error."""
        place = namespace or "default"
        with self._lock:
            known = self._known_pod(place, name)
            refused = self._problems.pop((place, name), None) is not None
            if known is not None:
                self._take(known, None)
                self._note_end(known.node, self._wall_clock())
        if known is not None or refused:
            self._changed()

    def convert(self, item: PodForm) -> ClusterPod | str:
        """Return the value of a listed pod (the known one if they are equal), or the reason why it cannot be used."""
        namespace, name = _key(item)
        try:
            pod = self._convert(item)
        except FactError as error:
            return str(error)
        known = self._known_pod(namespace, name)
        return known if known is not None and known == pod else pod

    def replace(self, pods: _Names, ended: dict[str, float], problems: dict[tuple[str, str], str]) -> None:
        """Replace the whole content by that of a list."""
        now = self._wall_clock()
        found = pods_by_place(pod for named in pods.values() for pod in named.values())
        with self._lock:
            for node, before in self._by_node.items():
                after = _names(found.by_node.get(node, ()))
                if any((pod.namespace, pod.name) not in after for pod in before):
                    self._note_end(node, now)
            for node, time in ended.items():
                self._note_end(node, time)
            same = problems == self._problems and pods == self._pods
            self._problems = problems
            self._pods = pods
            if not same:
                kept = found.reuse_tuples(PlacedPods(self._by_node, self._by_namespace))
                self._by_node, self._by_namespace = dict(kept.by_node), dict(kept.by_namespace)
                self._pending = {(pod.namespace, pod.name): pod for pod in kept.pending}
                self._view = self._snapshot = None
        if not same:
            self._changed()

    def _known_pod(self, namespace: str, name: str) -> ClusterPod | None:
        return self._pods.get(namespace, {}).get(name)

    def _take(self, known: ClusterPod | None, pod: ClusterPod | None) -> None:
        """Replace a pod by its new state; None means that it is gone. The caller must hold the lock."""
        if (one := pod or known) is None:
            return
        named = self._pods.setdefault(one.namespace, {})
        if pod is None:
            del named[one.name]
            if not named:
                del self._pods[one.namespace]
        else:
            named[one.name] = pod
        if known is not None and known.node:
            self._set_node(known.node, tuple(other for other in self._by_node[known.node] if other is not known))
        if pod is not None and pod.node:
            self._set_node(pod.node, (*self._by_node.get(pod.node, ()), pod))
        if pod is not None and not pod.node:
            self._pending[pod.namespace, pod.name] = pod
        else:
            self._pending.pop((one.namespace, one.name), None)
        self._by_namespace.pop(one.namespace, None)
        self._view = self._snapshot = None

    def _end(self, known: ClusterPod | None, pod: ClusterPod) -> None:
        """Drop a pod that has ended. The caller holds the lock."""
        self._take(known, None)
        if pod.ended_at is not None:
            self._note_end(pod.node, pod.ended_at)
        elif known is not None:
            self._note_end(pod.node, self._wall_clock())

    def _set_node(self, node: str, pods: tuple[ClusterPod, ...]) -> None:
        if pods:
            self._by_node[node] = pods
        else:
            self._by_node.pop(node, None)

    def _note_end(self, node: str, time: float) -> None:
        if not node or self._ended.get(node, 0.0) >= time:
            return
        self._ended[node] = time
        self._view = None
        if len(self._ended) > _FEW_ENDS + len(self._by_node):
            # Nodes come and go, and always have new names.
            self._ended = {each: at for each, at in self._ended.items() if at > time - _END_COUNTS_SECONDS}

    def _refuse(self, namespace: str, name: str, problem: str) -> None:
        with self._lock:
            same = self._problems.get((namespace, name)) == problem
            self._problems[namespace, name] = problem
            # Its earlier state is no longer true.
            self._take(self._known_pod(namespace, name), None)
        if not same:
            self._changed()


class _PodReplacement:
    def __init__(self, store: PodStore) -> None:
        self._store = store
        self._pods: _Names = {}
        self._ended: dict[str, float] = {}
        self._problems: dict[tuple[str, str], str] = {}

    def put(self, item: PodForm) -> None:
        pod = self._store.convert(item)
        if isinstance(pod, str):
            self._problems[_key(item)] = pod
        elif not pod.has_ended:
            self._pods.setdefault(pod.namespace, {})[pod.name] = pod
        elif pod.node and pod.ended_at is not None:
            self._ended[pod.node] = max(self._ended.get(pod.node, 0.0), pod.ended_at)

    def commit(self) -> None:
        self._store.replace(self._pods, self._ended, self._problems)


def _names(pods: Iterable[ClusterPod]) -> set[tuple[str, str]]:
    return {(pod.namespace, pod.name) for pod in pods}


def _key(item: PodForm) -> tuple[str, str]:
    return item.metadata.namespace or "default", item.metadata.name
