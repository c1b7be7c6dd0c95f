"""A watched cluster on a stand-in for the API server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import ClusterNeeds, CountQuery, Observed
from adapter.foundation.cluster.watch.watch import ClusterWatch
from adapter.foundation.sources.kubernetes.lists.list_watch import WatchSettings
from adapter.foundation.time.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.values.state import ClusterState
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks
    from tests.support.cluster_objects import Json
    from tests.support.fake_apiserver import FakeApiServer

NOW = 1795327200.0
ALL_NODES = ClusterNeeds(nodes=True)
PODS = CountQuery("pods")
ENDPOINTS = CountQuery("endpoints")
PLURALS = {
    "Node": "nodes",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "EndpointSlice": "endpointslices",
    "Pod": "pods",
    "Service": "services",
    "Namespace": "namespaces",
}


class Changes:
    """A counter of the calls of `changed`."""

    def __init__(self) -> None:
        self.seen = 0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self.seen += 1


def settings(**named: object) -> WatchSettings:
    # Both clocks stand still.
    made = {
        "backoff": lambda: Backoff(longest_seconds=0.1),
        "refused_seconds": 0.0,
        "wall_clock": lambda: NOW,
        "clock": lambda: 0.0,
    }
    return WatchSettings(**(made | named))  # type: ignore[arg-type] # as each test names them


def put(server: FakeApiServer, content: Json) -> None:
    plural = PLURALS[content["kind"]]
    metadata = content["metadata"]
    root_scoped = plural in {"nodes", "namespaces"}
    namespace = "" if root_scoped else metadata.get("namespace", "default")
    rest = {key: value for key, value in content.items() if key not in {"apiVersion", "kind", "metadata"}}
    resource = next(one for one in server.resources if one.plural == plural)
    server.store.put(resource, namespace, metadata["name"], metadata.get("labels", {}), rest)


def names(state: ClusterState) -> list[str]:
    assert isinstance(state.nodes, Observed), state.nodes
    return [node.name for node in state.nodes.value]


def watching(
    client: KubernetesClient, tasks: Tasks, needs: ClusterNeeds, changed: Callable[[], None] | None = None
) -> ClusterWatch:
    watch = ClusterWatch(client, needs, tasks.start, settings(), changed or Changes())
    watch.await_first_lists(10.0)
    return watch
