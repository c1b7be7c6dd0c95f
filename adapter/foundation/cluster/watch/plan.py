"""Determines which watches the facts need, each with the smallest scope, and no watch twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adapter.foundation.cluster.facts.count_queries import selector_of
from adapter.foundation.cluster.facts.pod_selectors import SELECTING_KINDS
from adapter.foundation.cluster.values.state import ClusterNeeds, CountedKind, CountQuery, ObjectKind, Unknown
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.lists.list_watch import METADATA_ONLY, WHOLE_OBJECTS, ListWatch

NODES = ListWatch(find_resource(BUILT_IN, "", "nodes"), WHOLE_OBJECTS)
PODS = ListWatch(find_resource(BUILT_IN, "", "pods"), WHOLE_OBJECTS)
_AUTOSCALERS = find_resource(BUILT_IN, "autoscaling", "horizontalpodautoscalers")
_SELECTING = {
    ListWatch(find_resource(BUILT_IN, group, kind), WHOLE_OBJECTS): kind for kind, group in SELECTING_KINDS.items()
}
_COUNTED = {
    "pods": find_resource(BUILT_IN, "", "pods"),
    "services": find_resource(BUILT_IN, "", "services"),
    "namespaces": find_resource(BUILT_IN, "", "namespaces"),
    "endpoints": find_resource(BUILT_IN, "discovery.k8s.io", "endpointslices"),
}


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """The kinds to watch, and the source of each fact."""

    nodes: ListWatch | None = None
    autoscalers: Mapping[str, ListWatch] = field(default_factory=dict)
    """The watches of HPAs, by namespace."""
    counts: Mapping[CountQuery, ListWatch | Unknown] = field(default_factory=dict)
    """The watch of each count, which may cover more than the namespace of the count."""
    pods: ListWatch | None = None
    gpu_annotation: str = ""
    pod_selectors: Mapping[ListWatch, str] = field(default_factory=dict)
    """The watches of objects that select pods, each with the kind of its objects."""
    scheduling: bool = False
    """Whether nodes and pods are read with their constraints, along with the other kinds that scheduling needs."""
    objects: frozenset[ObjectKind] = frozenset()

    @property
    def watches_of_counts(self) -> frozenset[ListWatch]:
        """The watches of the counts."""
        return frozenset(watch for watch in self.counts.values() if isinstance(watch, ListWatch))


def plan_watches(needs: ClusterNeeds) -> WatchPlan:
    """Return the watches for the facts. A watch of all namespaces also serves the counts of single ones."""
    selectors = {query: selector_of(query) for query in needs.counts}
    everywhere = {
        (query.kind, selector.text)
        for query, selector in selectors.items()
        if not isinstance(selector, Unknown) and not query.namespace
    }
    counts: dict[CountQuery, ListWatch | Unknown] = {}
    for query, selector in selectors.items():
        if isinstance(selector, Unknown):
            counts[query] = selector
        else:
            shared = (query.kind, selector.text) in everywhere
            counts[query] = _count_watch(query.kind, "" if shared else query.namespace, selector.text)
    return WatchPlan(
        nodes=NODES if needs.nodes else None,
        autoscalers={
            namespace: ListWatch(_AUTOSCALERS, WHOLE_OBJECTS, namespace or None)
            for namespace in needs.autoscaler_namespaces
        },
        counts=counts,
        pods=PODS if needs.pods else None,
        gpu_annotation=needs.gpu_annotation if needs.pods else "",
        pod_selectors=_SELECTING if needs.pod_selectors else {},
        scheduling=needs.scheduling,
        objects=needs.objects,
    )


def _count_watch(kind: CountedKind, namespace: str, selector: str) -> ListWatch:
    accept = WHOLE_OBJECTS if kind == "endpoints" else METADATA_ONLY
    return ListWatch(_COUNTED[kind], accept, namespace or None, selector)
