"""Optional kinds that a server or a gateway says it does not have, from a scripted API server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import ClusterNeeds, ObjectKind, Observed, Unknown
from adapter.foundation.cluster.watch.watch import ClusterWatch
from adapter.foundation.objects.resources import Resource
from tests.adapter.foundation.cluster.watched_facts import settings
from tests.support.fake_apiserver import Fault
from tests.support.waiting import until

if TYPE_CHECKING:
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks
    from tests.support.fake_apiserver import FakeApiServer


SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects", "scaledobject", "ScaledObject", namespaced=True)
OPTIONAL = ObjectKind("keda.sh", "scaledobjects", "ScaledObject", is_optional=True)


class Waits:
    """Waits whose long ones, between two look-ups of a kind, are recorded and end when the test says so."""

    def __init__(self) -> None:
        self.recorded: list[float] = []
        self._turns = threading.Semaphore(0)

    def __call__(self, stop: threading.Event, seconds: float) -> bool:
        if seconds < 20.0:
            return stop.wait(0.01)
        self.recorded.append(seconds)
        while not stop.is_set() and not self._turns.acquire(timeout=0.05):
            pass
        return stop.is_set()

    def end(self) -> None:
        self._turns.release()


@pytest.mark.parametrize("is_served", [True, False])
def test_objects_of_an_optional_kind_stay_known_until_discovery_lacks_the_kind(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks, *, is_served: bool
) -> None:
    server.define(SCALED_OBJECTS)
    server.store.put(SCALED_OBJECTS, "shop", "web", {})
    waits = Waits()
    watch = ClusterWatch(client, ClusterNeeds(objects=frozenset({OPTIONAL})), tasks.start, settings(wait=waits))
    until(lambda: server.watching("scaledobjects") == 1)
    known = watch.state().objects[OPTIONAL]
    assert isinstance(known, Observed)
    assert len(known.value) == 1

    # A gateway without a server may answer so, whatever is requested.
    server.faults += [Fault("watch", "status", code=404), Fault("discover", "status", code=404)]
    server.stop()
    server.start()
    for looks in (1, 2):
        until(lambda: len(waits.recorded) == looks)  # noqa: B023 - called at once
        assert watch.state().objects[OPTIONAL] == known
        if looks == 1:
            waits.end()
    assert waits.recorded == [30.0, 30.0]

    if is_served:
        server.store.put(SCALED_OBJECTS, "shop", "api", {})
        waits.end()
        until(lambda: isinstance(now := watch.state().objects[OPTIONAL], Observed) and len(now.value) == 2)
        return
    server.resources.remove(SCALED_OBJECTS)
    waits.end()
    until(lambda: len(waits.recorded) == 3)
    found = watch.state().objects[OPTIONAL]
    assert isinstance(found, Unknown)
    assert found.is_absent
    assert waits.recorded[-1] == 300.0


def test_an_optional_kind_whose_group_does_not_answer_is_not_absent(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    server.define(SCALED_OBJECTS)
    server.stale.add("keda.sh")
    waits = Waits()
    watch = ClusterWatch(client, ClusterNeeds(objects=frozenset({OPTIONAL})), tasks.start, settings(wait=waits))
    until(lambda: len(waits.recorded) == 1)
    found = watch.state().objects[OPTIONAL]
    assert isinstance(found, Unknown)
    assert not found.is_absent
    assert "keda.sh/v1alpha1" in found.reason
    assert waits.recorded == [30.0]


def test_a_kind_is_looked_up_soon_after_the_return_of_a_server_that_was_away_at_the_start(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    waits: list[float] = []

    def wait(stop: threading.Event, seconds: float) -> bool:
        waits.append(seconds)
        return stop.wait(0.01)

    server.stop()
    watch = ClusterWatch(client, ClusterNeeds(objects=frozenset({OPTIONAL})), tasks.start, settings(wait=wait))
    until(lambda: len(waits) >= 5)
    found = watch.state().objects[OPTIONAL]
    assert isinstance(found, Unknown)
    assert not found.is_absent
    assert max(waits) <= 10.0
    server.start()
    until(lambda: isinstance(now := watch.state().objects[OPTIONAL], Unknown) and now.is_absent)
