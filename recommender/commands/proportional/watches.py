"""The watches of `proportional`: nodes, and the HPAs of one namespace."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.facts.counted_nodes import CountedNodeForm, counted_node_of
from adapter.foundation.cluster.forms.autoscalers import AutoscalerForm
from adapter.foundation.cluster.stores.value_stores import autoscaler_store, node_store
from adapter.foundation.cluster.values.state import ClusterState
from adapter.foundation.cluster.watch.doubted_lists import when_empty, when_one_is_missing
from adapter.foundation.cluster.watch.facts import (
    RunningWatch,
    StoreWatch,
    left_out,
    nodes_in,
    owners_in,
    unconfirmed_text,
)
from adapter.foundation.cluster.watch.last_contact import WatchRecords
from adapter.foundation.cluster.watch.task_pool import Work
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector
from adapter.foundation.time.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from adapter.foundation.service.runtime.tasks import Tasks
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchTelemetry
    from adapter.foundation.sources.kubernetes.lists.list_checks import Doubt

_SETTINGS: Final = WatchSettings(
    # A Node has 10 to 20 KiB, most of which is the list of its images.
    page_size=100,
    # Watches are reopened before their facts seem older than the minute after which these are not used.
    window_seconds=(20.0, 40.0),
    silence_seconds=45.0,
    healthy_seconds=10.0,
    # One process with two watches is no burden for an API server that recovers, and DNS waits for it.
    backoff=partial(Backoff, longest_seconds=5.0),
)
_REFUSED_WAIT_SECONDS: Final = 25.0
"""The wait after a refused list: HPAs usually may not be read, which is no reason to retry every other second."""
_NODES: Final = find_resource(BUILT_IN, "", "nodes")
_AUTOSCALERS: Final = find_resource(BUILT_IN, "autoscaling", "horizontalpodautoscalers")


class ProportionalWatches:
    """The watches of nodes and of the HPAs of one namespace. Thread-safe."""

    def __init__(
        self,
        client: KubernetesClient,
        namespace: str,
        labels: Collection[str],
        telemetry: WatchTelemetry,
        changed: Callable[[], None],
    ) -> None:
        """`labels` are the keys of the node labels that matter; `changed` is called when a fact changes."""
        self._client = client
        self._records = WatchRecords(telemetry)
        self._changed = changed
        nodes = node_store(changed, partial(counted_node_of, labels=labels))
        which = ListWatch(_NODES, WHOLE_OBJECTS)
        self._nodes = StoreWatch(self._watch(which, CountedNodeForm, nodes, when_empty(nodes)), nodes)
        owners = autoscaler_store(changed)
        which = ListWatch(_AUTOSCALERS, WHOLE_OBJECTS, namespace=namespace)
        self._owners = StoreWatch(self._watch(which, AutoscalerForm, owners, when_one_is_missing()), owners)

    def start(self, tasks: Tasks) -> None:
        """Start both watches."""
        for number, watch in enumerate(self._running_watches, 1):
            tasks.running(f"watch cluster {number}", watch.work.run, reads_only=True)

    def state(self) -> ClusterState:
        """Return the facts as they are known now."""
        return ClusterState(
            nodes=nodes_in(self._nodes),
            autoscalers=owners_in(self._owners),
            problems=(
                *self._nodes.store.problems,
                *left_out(self._nodes.running),
                *unconfirmed_text(self._nodes.running),
                *unconfirmed_text(self._owners.running),
            ),
        )

    def has_tried_lists(self) -> bool:
        """Return whether the first list of each watch has arrived or failed."""
        return all(watch.reflector.tried.is_set() for watch in self._running_watches)

    @property
    def _running_watches(self) -> tuple[RunningWatch, ...]:
        return self._nodes.running, self._owners.running

    def _watch(self, which: ListWatch, form: Any, store: Any, doubt: Doubt[Any]) -> RunningWatch:  # noqa: ANN401 - one type, twice
        record = self._records.record(which.resource.qualified, self._changed)
        wait = _REFUSED_WAIT_SECONDS if which.resource is _AUTOSCALERS else 0.0
        settings = replace(_SETTINGS, telemetry=record, refused_wait_seconds=wait)
        reflector = Reflector(self._client, which, form, store, settings, doubt=doubt)
        return RunningWatch(reflector, record, Work(reflector.run), which.namespace)
