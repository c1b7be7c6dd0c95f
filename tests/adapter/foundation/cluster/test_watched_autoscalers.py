"""HorizontalPodAutoscalers that cannot be used make owners unknown, and never count as absent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.hpas_by_namespace import EVERYWHERE
from adapter.foundation.cluster.values.state import ClusterNeeds, Observed, Unknown
from tests.adapter.foundation.cluster.test_files import WEB
from tests.adapter.foundation.cluster.watched_facts import NOW, put, watching
from tests.support.cluster_objects import Json, autoscaler_object
from tests.support.waiting import until

if TYPE_CHECKING:
    from adapter.foundation.cluster.watch.watch import ClusterWatch
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from tests.adapter.foundation.sources.kubernetes.conftest import Tasks
    from tests.support.fake_apiserver import FakeApiServer


def test_an_hpa_that_cannot_be_used_makes_the_owners_of_its_namespace_unknown(
    server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, autoscaler_object("odd", "shop", {}))
    put(server, autoscaler_object("web", "talk", WEB))
    watch = watching(client, tasks, ClusterNeeds(autoscaler_namespaces=frozenset({"shop", "talk"})))
    found = watch.state().autoscalers
    assert isinstance(found["shop"], Unknown)
    assert isinstance(found["talk"], Observed)
    server.remove("horizontalpodautoscalers", "shop", "odd")
    until(lambda: watch.state().autoscalers["shop"] == Observed((), NOW))


@pytest.mark.parametrize(
    "odd", [{}, {"minReplicas": "two", "scaleTargetRef": WEB}], ids=["without a target", "that cannot be decoded"]
)
def test_in_a_watch_of_all_namespaces_an_invalid_hpa_makes_only_its_own_namespace_unknown(
    odd: Json, server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    put(server, autoscaler_object("odd", "shop", {}) | {"spec": odd})
    put(server, autoscaler_object("web", "talk", WEB))
    watch = watching(client, tasks, ClusterNeeds(autoscaler_namespaces=frozenset({EVERYWHERE})))
    found = watch.state().autoscalers
    assert isinstance(found["shop"], Unknown)
    assert isinstance(found["talk"], Observed)
    assert [one.name for one in found["talk"].value] == ["web"]
    server.remove("horizontalpodautoscalers", "shop", "odd")
    until(lambda: watch.state().autoscalers["shop"] == Observed((), NOW))


@pytest.mark.parametrize("odd", [{}, {"minReplicas": "two"}], ids=["unusable", "that cannot be decoded"])
def test_an_hpa_that_becomes_invalid_never_counts_as_absent(
    odd: Json, server: FakeApiServer, client: KubernetesClient, tasks: Tasks
) -> None:
    watches: list[ClusterWatch] = []
    seen: list[object] = []
    put(server, autoscaler_object("web", "shop", WEB))
    needs = ClusterNeeds(autoscaler_namespaces=frozenset({EVERYWHERE}))
    watch = watching(client, tasks, needs, lambda: seen.extend(each.state().autoscalers["shop"] for each in watches))
    until(lambda: server.watching("horizontalpodautoscalers") == 1)
    watches.append(watch)
    put(server, autoscaler_object("web", "shop", WEB) | {"spec": odd})
    until(lambda: isinstance(watch.state().autoscalers["shop"], Unknown))
    put(server, autoscaler_object("web", "shop", WEB))
    until(lambda: isinstance(watch.state().autoscalers["shop"], Observed))
    assert seen
    assert not [found for found in seen if isinstance(found, Observed) and not found.value]
