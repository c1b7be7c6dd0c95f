"""The facts of a cluster, kept by watches of only those objects that are needed.

The server applies each watch's selector, and a watch keeps only what its facts need: the values of nodes and HPAs, but
only the names of objects that are counted. While the API server cannot be reached, the facts stay, and their times show
how old they are.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from adapter.foundation.cluster.facts.pods import pod_of
from adapter.foundation.cluster.facts.scheduling_pods import scheduled_pod_of
from adapter.foundation.cluster.facts.sized_nodes import sized_node_of
from adapter.foundation.cluster.forms.autoscalers import AutoscalerForm
from adapter.foundation.cluster.forms.objects import NameForm, NodeForm, SliceForm
from adapter.foundation.cluster.forms.pods import PodForm, SelectingForm
from adapter.foundation.cluster.forms.scheduling_objects import SizedNodeForm
from adapter.foundation.cluster.forms.scheduling_pods import SchedulingPodForm
from adapter.foundation.cluster.stores.object_counts import AddressStore, NameStore
from adapter.foundation.cluster.stores.pods import PodStore
from adapter.foundation.cluster.stores.value_stores import autoscaler_store, node_store, selector_store
from adapter.foundation.cluster.values.hpas_by_namespace import AutoscalersByNamespace
from adapter.foundation.cluster.values.state import ClusterState, Unknown
from adapter.foundation.cluster.watch.doubted_lists import when_empty, when_one_is_missing
from adapter.foundation.cluster.watch.facts import (
    RunningWatch,
    StoreWatch,
    count_in,
    nodes_in,
    owners_in,
    placed_in,
    pods_in,
    selectors_in,
    values_in,
)
from adapter.foundation.cluster.watch.last_contact import WatchRecords
from adapter.foundation.cluster.watch.plan import NODES, PODS, WatchPlan, plan_watches
from adapter.foundation.cluster.watch.running_watches import Watches, placement_problems, problems, refused_by_kind
from adapter.foundation.cluster.watch.scheduling import SCHEDULING_WATCHES, scheduling_store, with_watched
from adapter.foundation.cluster.watch.task_pool import TaskPool, Work
from adapter.foundation.cluster.watch.whole_objects.served import ServedKinds
from adapter.foundation.cluster.watch.whole_objects.watching import object_watch
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector
from adapter.foundation.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adapter.foundation.cluster.values.placed_pods import PlacedPods
    from adapter.foundation.cluster.values.state import ClusterNeeds, ObjectKind, Observed
    from adapter.foundation.cluster.watch.facts import AutoscalerStore, CountStore, NodeStore, SelectorStore
    from adapter.foundation.cluster.watch.scheduling import SchedulingStore
    from adapter.foundation.cluster.watch.whole_objects.watching import ObjectStore
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.lists.list_checks import Doubt
    from adapter.foundation.sources.kubernetes.watches.cluster import StartTask
    from adapter.foundation.sources.stores import KubernetesObject, Store

    F = TypeVar("F", bound=KubernetesObject)

_WINDOW_SECONDS = (20.0, 40.0)
"""Without changes, the server is heard from only when a watch is opened and by a bookmark every minute. A fact could
then look older than the minute after which decisions refuse it, so watches are reopened sooner here than elsewhere.
"""
_SILENCE_SECONDS = 45.0
_HEALTHY_SECONDS = 10.0
_PAGE_OF_WHOLE_OBJECTS = 100
"""The size of a page: a Node has 10 to 20 KiB, most of it the list of its images."""
_NUMEROUS = frozenset(
    {
        "pods",
        "services",
        "replicationcontrollers",
        "replicasets",
        "statefulsets",
        "deployments",
        "jobs",
        "persistentvolumes",
        "persistentvolumeclaims",
    }
)
"""Kinds of small objects that are so numerous that small pages would take a long time."""

K = TypeVar("K")
S = TypeVar("S")


class ClusterWatch:
    """The facts of a cluster by watch. Thread-safe."""

    def __init__(
        self,
        client: KubernetesClient,
        needs: ClusterNeeds,
        start: StartTask,
        settings: WatchSettings | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Start a watch for each need, in tasks called `watch cluster N`.

        `changed` is called by the thread of a watch when a fact changes, but not for a heartbeat of a node or a change
        of an object that is only counted. It must return at once.
        """
        self._client = client
        self._changed = changed
        self._settings = _often_heard(settings or WatchSettings())
        clock = Clock(self._settings.clock, self._settings.wall_clock)
        self._records = WatchRecords(self._settings.telemetry, clock)
        self._tasks = TaskPool(start, "watch cluster")
        self._kinds = ServedKinds(client, self._settings.pace)
        self._lock = threading.Lock()
        self._watches = Watches(WatchPlan())
        self.change(needs)

    def change(self, needs: ClusterNeeds) -> None:
        """Start new watches, and end those that are no longer needed; the others continue."""
        plan = plan_watches(needs)
        with self._lock:
            before = self._watches
            now = self._watches = Watches(
                plan,
                # If the parts of nodes and pods that are read have changed, their watches start again.
                _continue_watches(
                    before.nodes if plan.scheduling == before.plan.scheduling else {},
                    [plan.nodes] if plan.nodes else [],
                    partial(self._watch_nodes, plan),
                ),
                _continue_watches(before.autoscalers, plan.autoscalers.values(), self._watch_autoscalers),
                _continue_watches(before.counts, plan.watches_of_counts, self._watch_counted),
                _continue_watches(
                    before.pods if _reads_pods_alike(plan, before.plan) else {},
                    [plan.pods] if plan.pods else [],
                    partial(self._watch_pods, plan),
                ),
                _continue_watches(
                    before.pod_selectors,
                    plan.pod_selectors,
                    lambda which: self._watch_selectors(which, plan.pod_selectors[which]),
                ),
                _continue_watches(
                    before.scheduling, SCHEDULING_WATCHES if plan.scheduling else [], self._watch_scheduling
                ),
                _continue_watches(before.objects, plan.objects, self._watch_objects),
            )
            for running in before.running:
                if running not in now.running:
                    running.work.stop.set()
                    self._records.drop(running.record)

    def state(self, *, with_pods: bool = True) -> ClusterState:
        """Return the facts that are known now, and the reason for each unknown one.

        After each change, it takes a tenth of a second to list tens of thousands of pods. Callers that ask often should
        leave the pods out and use `placed_pods`.
        """
        self._tasks.start_missing()
        now = self._watches
        plan = now.plan
        state = ClusterState()
        found = ClusterState(
            nodes=nodes_in(now.nodes[NODES]) if plan.nodes else state.nodes,
            autoscalers=AutoscalersByNamespace(
                {
                    namespace: owners
                    for which in plan.autoscalers.values()
                    for namespace, owners in owners_in(now.autoscalers[which]).items()
                }
            ),
            counts={
                query: which if isinstance(which, Unknown) else count_in(now.counts[which], query.namespace)
                for query, which in plan.counts.items()
            },
            pods=pods_in(now.pods[PODS]) if plan.pods and with_pods else state.pods,
            pod_selectors=selectors_in(now.pod_selectors.values()) if plan.pod_selectors else state.pod_selectors,
            objects={kind: values_in(now.objects[kind]) for kind in plan.objects},
            problems=tuple(problems(now)),
            placement_problems=tuple(placement_problems(now)),
        )
        return with_watched(found, now.scheduling, refused_by_kind(now)) if plan.scheduling else found

    def placed_pods(self) -> Observed[PlacedPods] | Unknown:
        """Return the bound pods by place. This costs little after a change, unlike `ClusterState.pods`."""
        now = self._watches
        return placed_in(now.pods[PODS]) if now.plan.pods else Unknown("pods are not watched")

    def has_tried_lists(self) -> bool:
        """Return whether the first list of each watch is complete or has failed."""
        return all(running.reflector.tried.is_set() for running in self._watches.running)

    def await_first_lists(self, seconds: float) -> None:
        """Wait until the first list of each watch is complete or has failed, for at most this many seconds in all."""
        until = monotonic() + seconds
        for running in self._watches.running:
            running.reflector.tried.wait(max(0.0, until - monotonic()))

    def _watch_nodes(self, plan: WatchPlan, which: ListWatch) -> StoreWatch[NodeStore]:
        if plan.scheduling:
            store = node_store(self._changed, sized_node_of)
            return StoreWatch(self._start_watch(which, SizedNodeForm, store), store)
        store = node_store(self._changed)
        return StoreWatch(self._start_watch(which, NodeForm, store), store)

    def _watch_autoscalers(self, which: ListWatch) -> StoreWatch[AutoscalerStore]:
        store = autoscaler_store(self._changed)
        return StoreWatch(self._start_watch(which, AutoscalerForm, store, when_one_is_missing()), store)

    def _watch_counted(self, which: ListWatch) -> StoreWatch[CountStore]:
        if which.accept == WHOLE_OBJECTS:
            addresses = AddressStore(self._changed)
            return StoreWatch(self._start_watch(which, SliceForm, addresses), addresses)
        names = NameStore(self._changed)
        return StoreWatch(self._start_watch(which, NameForm, names), names)

    def _watch_pods(self, plan: WatchPlan, which: ListWatch) -> StoreWatch[PodStore]:
        convert = partial(scheduled_pod_of if plan.scheduling else pod_of, gpu_annotation=plan.gpu_annotation)
        form = SchedulingPodForm if plan.scheduling else PodForm
        store = PodStore(convert, self._changed, self._settings.wall_clock)
        return StoreWatch(self._start_watch(which, form, store), store)

    def _watch_selectors(self, which: ListWatch, kind: str) -> StoreWatch[SelectorStore]:
        store = selector_store(kind, self._changed)
        return StoreWatch(self._start_watch(which, SelectingForm, store), store)

    def _watch_scheduling(self, which: ListWatch) -> StoreWatch[SchedulingStore]:
        kind = SCHEDULING_WATCHES[which]
        store = scheduling_store(kind, self._changed)
        return StoreWatch(self._start_watch(which, kind.form, store), store)

    def _watch_objects(self, kind: ObjectKind) -> StoreWatch[ObjectStore]:
        record = self._records.record(f"{kind.resource}.{kind.group}" if kind.group else kind.resource, self._changed)
        settings = replace(self._settings, telemetry=record)
        reflector, store = object_watch(kind, self._kinds, self._client, settings, self._changed)
        work = Work(reflector.run)
        self._tasks.run(work)
        return StoreWatch(RunningWatch(reflector, record, work, kind.namespace or None), store)

    def _start_watch(
        self, which: ListWatch, form: type[F], store: Store[F], doubt: Doubt[F] | None = None
    ) -> RunningWatch:
        """Start a watch. By default, an empty list must be confirmed by a second one while objects are known."""
        record = self._records.record(which.resource.qualified, self._changed)
        settings = replace(self._settings, telemetry=record)
        if which.accept == WHOLE_OBJECTS and which.resource.plural not in _NUMEROUS:
            settings = replace(settings, page_size=min(settings.page_size, _PAGE_OF_WHOLE_OBJECTS))
        reflector = Reflector(self._client, which, form, store, settings, doubt=doubt or when_empty(store))
        work = Work(reflector.run)
        self._tasks.run(work)
        return RunningWatch(reflector, record, work, which.namespace)


def _continue_watches(
    before: Mapping[K, StoreWatch[S]], wanted: Iterable[K], start: Callable[[K], StoreWatch[S]]
) -> dict[K, StoreWatch[S]]:
    return {which: before.get(which) or start(which) for which in wanted}


def _reads_pods_alike(plan: WatchPlan, before: WatchPlan) -> bool:
    return (plan.gpu_annotation, plan.scheduling) == (before.gpu_annotation, before.scheduling)


def _often_heard(settings: WatchSettings) -> WatchSettings:
    shortest, longest = settings.window_seconds
    return replace(
        settings,
        window_seconds=(min(shortest, _WINDOW_SECONDS[0]), min(longest, _WINDOW_SECONDS[1])),
        silence_seconds=min(settings.silence_seconds, _SILENCE_SECONDS),
        healthy_seconds=min(settings.healthy_seconds, _HEALTHY_SECONDS),
    )
