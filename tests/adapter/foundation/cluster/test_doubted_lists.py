"""After a list that has lost objects, nothing shrinks and no owner is forgotten until a second list agrees."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from adapter.foundation.cluster.forms.autoscalers import AutoscalerForm
from adapter.foundation.cluster.stores.value_stores import autoscaler_store
from adapter.foundation.cluster.values.state import ClusterNeeds, CountQuery, Observed, Unknown
from adapter.foundation.cluster.watch.doubted_lists import when_one_is_missing
from adapter.foundation.cluster.watch.watch import ClusterWatch
from adapter.foundation.sources.kubernetes.lists.list_checks import CONFIRM_SECONDS, Confirmation
from tests.adapter.foundation.cluster.test_files import WEB
from tests.adapter.foundation.cluster.watched_facts import put, settings
from tests.support.cluster_objects import autoscaler_object, node_object
from tests.support.fake_apiserver import Fault
from tests.support.waiting import until

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterState
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks
    from tests.support.fake_apiserver import FakeApiServer

SERVICES = CountQuery("services", "shop")


class WatchedCluster:
    def __init__(
        self,
        server: FakeApiServer,
        client: KubernetesClient,
        tasks: Tasks,
        needs: ClusterNeeds,
        first: dict[str, Any] | None = None,
    ) -> None:
        """Watch; `first` is what the first list is answered with instead."""
        self.server = server
        self.plural = "nodes" if needs.nodes else "services" if needs.counts else "horizontalpodautoscalers"
        self.now = 1000.0
        if first is not None:
            answer = first | {"metadata": {"resourceVersion": str(server.store.version)}}
            server.faults.append(Fault("list", "garbage", body=json.dumps(answer).encode()))
        self.watch = ClusterWatch(client, needs, tasks.start, settings(clock=lambda: self.now))
        self.watch.await_first_lists(10.0)

    @property
    def state(self) -> ClusterState:
        return self.watch.state()

    def relist(self, body: dict[str, Any] | None = None, seconds: float = 0.0) -> None:
        """Let all watches list again; if `body` is given, it is the answer instead."""
        until(lambda: self.server.watching(self.plural))
        self.now += seconds
        before = len(self.server.asked("list"))
        if body is not None:
            answer = body | {"metadata": {"resourceVersion": str(self.server.store.version)}}
            self.server.faults.append(Fault("list", "garbage", body=json.dumps(answer).encode()))
        self.server.expire_watches()
        until(lambda: len(self.server.asked("list")) > before and not self.server.faults)


def empty(kind: str, version: str = "v1") -> dict[str, Any]:
    return {"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": "9"}, "items": []}


def nodes(state: ClusterState) -> int:
    assert isinstance(state.nodes, Observed)
    return len(state.nodes.value)


def owners(state: ClusterState) -> list[str]:
    found = state.autoscalers["shop"]
    assert isinstance(found, Observed)
    return [one.name for one in found.value]


def test_one_empty_list_removes_no_node(server: FakeApiServer, client: KubernetesClient, tasks: Tasks) -> None:
    for name in "abc":
        put(server, node_object(name))
    cluster = WatchedCluster(server, client, tasks, ClusterNeeds(nodes=True))
    cluster.relist(empty("NodeList"))
    until(lambda: cluster.state.problems)
    assert nodes(cluster.state) == 3
    assert cluster.state.problems == ("3 nodes are not in the last list, and are kept until a second list agrees",)
    cluster.relist(empty("NodeList"), seconds=CONFIRM_SECONDS)
    until(lambda: nodes(cluster.state) == 0)
    assert not cluster.state.problems


def test_nodes_that_are_listed_again_clear_the_problem(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, node_object("a"))
    cluster = WatchedCluster(server, client, tasks, ClusterNeeds(nodes=True))
    cluster.relist(empty("NodeList"))
    until(lambda: cluster.state.problems)
    cluster.relist()
    until(lambda: not cluster.state.problems)
    assert nodes(cluster.state) == 1


@pytest.mark.parametrize("body", [empty("PodList"), empty("NodeList", "v2"), empty("List"), empty("")])
def test_a_list_of_another_kind_changes_nothing(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks, body: dict[str, Any]
) -> None:
    put(server, node_object("a"))
    cluster = WatchedCluster(server, client, tasks, ClusterNeeds(nodes=True))
    cluster.relist(body, seconds=CONFIRM_SECONDS)
    cluster.relist(body, seconds=CONFIRM_SECONDS)
    assert nodes(cluster.state) == 1


def test_a_cluster_without_nodes_has_none_after_its_first_list(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    cluster = WatchedCluster(server, client, tasks, ClusterNeeds(nodes=True))
    assert (nodes(cluster.state), cluster.state.problems) == (0, ())


class Lists:
    """Lists of HPAs that arrive at given times."""

    def __init__(self, *known: str) -> None:
        self._now = 0.0
        self._store = autoscaler_store(lambda: None)
        self._confirmation: Confirmation[AutoscalerForm] = Confirmation(when_one_is_missing(), lambda: self._now)
        self.put(*known)

    def put(self, *names: str) -> None:
        for name in names:
            self._store.put(hpa_form(name))

    def arrive(self, now: float, *names: str) -> list[str]:
        """Take a list in; return the names that are known after it."""
        self._now = now
        replacement = self._store.replacement()
        for name in names:
            replacement.put(hpa_form(name))
        if self._confirmation.believes(replacement, len(names)):
            replacement.commit()
        return [one.name for one in self._store.snapshot]


def hpa_form(name: str) -> AutoscalerForm:
    return msgspec.convert(autoscaler_object(name, "shop", WEB), AutoscalerForm)


def test_an_owner_that_disappears_later_is_kept_for_a_full_confirmation_period() -> None:
    lists = Lists("a", "b")
    assert lists.arrive(0.0, "b") == ["a", "b"]
    assert lists.arrive(CONFIRM_SECONDS - 1.0, "a") == ["a", "b"]
    assert lists.arrive(CONFIRM_SECONDS, "a") == ["a", "b"]
    assert lists.arrive(2 * CONFIRM_SECONDS, "a") == ["a"]


def test_after_an_empty_first_list_a_missing_owner_is_kept_for_a_full_confirmation_period() -> None:
    lists = Lists()
    assert lists.arrive(0.0) == []
    lists.put("a")
    assert lists.arrive(CONFIRM_SECONDS - 1.0, "b") == ["a", "b"]
    assert lists.arrive(CONFIRM_SECONDS, "b") == ["a", "b"]
    assert lists.arrive(2 * CONFIRM_SECONDS, "b") == ["b"]


def began_empty(state: ClusterState) -> bool:
    return isinstance(state.nodes, Observed) and state.nodes.began_empty


def test_an_empty_first_list_is_marked_until_a_second_one_agrees(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    cluster = WatchedCluster(server, client, tasks, ClusterNeeds(nodes=True))
    cluster.relist()
    assert began_empty(cluster.state), "too soon to be a second one"
    cluster.relist(seconds=CONFIRM_SECONDS)
    until(lambda: not began_empty(cluster.state))
    assert nodes(cluster.state) == 0


def test_an_empty_first_list_stays_marked_although_a_watch_adds_a_node(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    for name in "abc":
        put(server, node_object(name))
    cluster = WatchedCluster(server, client, tasks, ClusterNeeds(nodes=True), empty("NodeList"))
    assert (nodes(cluster.state), began_empty(cluster.state)) == (0, True)
    until(lambda: server.watching("nodes"))
    put(server, node_object("a", labels={"heartbeat": "1"}))
    until(lambda: nodes(cluster.state) == 1)
    assert began_empty(cluster.state)
    cluster.relist(empty("NodeList"), seconds=CONFIRM_SECONDS)
    until(lambda: cluster.state.problems)
    assert (nodes(cluster.state), began_empty(cluster.state)) == (1, True), "the node contradicts the list"
    cluster.relist()
    until(lambda: not began_empty(cluster.state))
    assert nodes(cluster.state) == 3


def test_a_first_list_of_another_kind_is_ignored(server: FakeApiServer, client: KubernetesClient, tasks: Tasks) -> None:
    put(server, node_object("a"))
    cluster = WatchedCluster(server, client, tasks, ClusterNeeds(nodes=True), empty("PodList"))
    assert isinstance(cluster.watch.state().nodes, Unknown)
    until(lambda: isinstance(cluster.watch.state().nodes, Observed))
    assert (nodes(cluster.state), began_empty(cluster.state)) == (1, False)


def test_an_owner_is_removed_after_two_lists_and_a_new_one_is_added_at_once(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    for name in ("one", "two"):
        put(server, autoscaler_object(name, "shop", WEB))
    cluster = WatchedCluster(server, client, tasks, ClusterNeeds(autoscaler_namespaces=frozenset({"shop"})))
    lacking = empty("HorizontalPodAutoscalerList", "autoscaling/v2")
    other = autoscaler_object("new", "shop", WEB)
    lacking["items"] = [other | {"metadata": other["metadata"] | {"resourceVersion": "9"}}]
    cluster.relist(lacking)
    until(lambda: owners(cluster.state) == ["new", "one", "two"])
    cluster.relist(lacking, seconds=CONFIRM_SECONDS)
    until(lambda: owners(cluster.state) == ["new"])


def test_a_deleted_owner_is_removed_at_once(server: FakeApiServer, client: KubernetesClient, tasks: Tasks) -> None:
    put(server, autoscaler_object("one", "shop", WEB))
    cluster = WatchedCluster(server, client, tasks, ClusterNeeds(autoscaler_namespaces=frozenset({"shop"})))
    server.remove("horizontalpodautoscalers", "shop", "one")
    until(lambda: not owners(cluster.state))


def test_one_empty_list_does_not_reduce_a_count_to_zero(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    for name in "ab":
        server.put("services", "shop", name)
    cluster = WatchedCluster(server, client, tasks, ClusterNeeds(counts=frozenset({SERVICES})))

    def count() -> int:
        found = cluster.state.counts[SERVICES]
        assert isinstance(found, Observed)
        return found.value

    cluster.relist(empty("PartialObjectMetadataList", "meta.k8s.io/v1"))
    until(lambda: cluster.state.problems)
    assert count() == 2
    cluster.relist(empty("PartialObjectMetadataList", "meta.k8s.io/v1"), seconds=CONFIRM_SECONDS)
    until(lambda: count() == 0)
