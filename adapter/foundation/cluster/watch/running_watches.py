"""The watches that run to meet a cluster's needs, and the problems with the facts that they supply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.foundation.cluster.watch.facts import RunningWatch, StoreWatch, left_out, unconfirmed_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.stores.pods import PodStore
    from adapter.foundation.cluster.values.state import ObjectKind
    from adapter.foundation.cluster.watch.facts import AutoscalerStore, CountStore, NodeStore, SelectorStore
    from adapter.foundation.cluster.watch.plan import WatchPlan
    from adapter.foundation.cluster.watch.scheduling import Refused, SchedulingStore
    from adapter.foundation.cluster.watch.whole_objects.watching import ObjectStore
    from adapter.foundation.sources.kubernetes.lists.list_watch import ListWatch


@dataclass(frozen=True, slots=True, eq=False)
class Watches:
    """The watches of a plan; replaced as a whole when the needs change."""

    plan: WatchPlan
    nodes: Mapping[ListWatch, StoreWatch[NodeStore]] = field(default_factory=dict)
    autoscalers: Mapping[ListWatch, StoreWatch[AutoscalerStore]] = field(default_factory=dict)
    counts: Mapping[ListWatch, StoreWatch[CountStore]] = field(default_factory=dict)
    pods: Mapping[ListWatch, StoreWatch[PodStore]] = field(default_factory=dict)
    pod_selectors: Mapping[ListWatch, StoreWatch[SelectorStore]] = field(default_factory=dict)
    scheduling: Mapping[ListWatch, StoreWatch[SchedulingStore]] = field(default_factory=dict)
    objects: Mapping[ObjectKind, StoreWatch[ObjectStore]] = field(default_factory=dict)

    @property
    def running(self) -> tuple[RunningWatch, ...]:
        """All watches that run."""
        return (
            *(watch.running for watch in self.nodes.values()),
            *(watch.running for watch in self.autoscalers.values()),
            *(watch.running for watch in self.counts.values()),
            *(watch.running for watch in self.pods.values()),
            *(watch.running for watch in self.pod_selectors.values()),
            *(watch.running for watch in self.scheduling.values()),
            *(watch.running for watch in self.objects.values()),
        )


def problems(watches: Watches) -> Iterable[str]:
    """Yield what is wrong with the facts of nodes and counts, one sentence each."""
    for running in watches.running:
        yield from unconfirmed_text(running)
    for watch in watches.nodes.values():
        yield from watch.store.problems
        yield from left_out(watch.running)
    for counting in watches.counts.values():
        yield from left_out(counting.running)


def placement_problems(watches: Watches) -> Iterable[str]:
    """Yield what is wrong with the facts of pods, their selectors, and whole objects, one sentence each."""
    for holding in watches.pods.values():
        yield from holding.store.problems
        yield from left_out(holding.running)
    for selecting in watches.pod_selectors.values():
        yield from selecting.store.problems
        yield from left_out(selecting.running)
    for whole in watches.objects.values():
        yield from left_out(whole.running)


def refused_by_kind(watches: Watches) -> Mapping[str, Refused]:
    """Return why nodes, pods and whole objects cannot be used, by kind."""
    return {
        **{kind.kind: watch.store.refused for kind, watch in watches.objects.items()},
        "Node": {place: reason for watch in watches.nodes.values() for place, reason in watch.store.refused.items()},
        "Pod": {place: reason for watch in watches.pods.values() for place, reason in watch.store.refused.items()},
    }
