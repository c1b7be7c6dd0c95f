"""`why pod/NAME`: what a pending pod waits for, and which metrics a running one has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.recommender.kubectl import shop

if TYPE_CHECKING:
    from tests.recommender.kubectl.conftest import Plugin

MESSAGE = "0/3 nodes are available: 3 Insufficient cpu."
CUSTOM = f"{shop.CUSTOM}/v1beta2"


def put_pending(plugin: Plugin, name: str) -> None:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": MESSAGE}
    plugin.answer(f"{shop.PODS}/{name}", shop.pod(name, node="", phase="Pending", conditions=[scheduled]))
    plugin.answer(shop.EVENTS, {"items": []})


def test_a_pending_pod_is_explained_by_the_scheduler_and_by_each_group(plugin: Plugin) -> None:
    put_pending(plugin, "web-9")
    shop.put_recommender(plugin, shop.cluster_size())
    answered = plugin.why("pod/web-9")
    assert (answered.status, answered.err) == (0, "")
    assert " ".join(answered.out.split()).startswith(f"pod/web-9 has no node: Unschedulable: {MESSAGE}")
    assert "pool-b: insufficient cpu" in answered.out
    assert "pool-a: 3 nodes, 3 recommended: at its maximum of 3" in answered.out


def test_a_pod_waits_for_a_node_that_is_being_added(plugin: Plugin) -> None:
    put_pending(plugin, "web-8")
    shop.put_recommender(plugin, shop.cluster_size())
    (found,) = plugin.why("pod/web-8", "-o", "json").document["cluster_sizes"]
    assert (found["waiting"], found["reason"], found["groups"]) == (True, None, {})


def test_without_the_recommender_the_scheduler_is_quoted_and_the_missing_right_is_named(plugin: Plugin) -> None:
    put_pending(plugin, "web-9")
    shop.put_recommender(plugin)
    plugin.forbid(shop.PAGE)
    answered = plugin.why("pod/web-9")
    assert answered.status == 1
    assert MESSAGE in answered.out
    assert "you lack the right to get pods/proxy in monitoring" in " ".join(answered.out.split())


def test_scheduling_gates_are_named(plugin: Plugin) -> None:
    gated = shop.pod("web-9", node="", phase="Pending", conditions=[])
    gated["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    plugin.answer(f"{shop.PODS}/web-9", gated)
    plugin.answer(shop.EVENTS, {"items": []})
    shop.put_recommender(plugin)
    assert "its scheduling gates are not removed: example.com/quota." in plugin.why("pod/web-9").out


def test_a_running_pod_shows_its_metrics(plugin: Plugin) -> None:
    plugin.answer(f"{shop.PODS}/web-0", shop.pod("web-0"))
    containers = [{"name": "main", "usage": {"cpu": "250m", "memory": "64Mi"}}]
    plugin.answer(f"{shop.USAGE}/web-0", {"timestamp": shop.now(), "window": "30s", "containers": containers})
    resources = [{"name": name} for name in ("pods/connections", "pods/absent", "services/hits", "namespaces/total")]
    plugin.answer(CUSTOM, {"resources": resources})
    values = {"items": [{"value": "93500m", "timestamp": shop.now()}]}
    plugin.answer(f"{CUSTOM}/namespaces/shop/pods/web-0/connections", values)
    answered = plugin.why("pod/web-0")
    assert (answered.status, answered.err) == (0, "")
    assert "main: cpu 250m, memory 64Mi" in answered.out
    assert "connections: 93500m" in answered.out


def test_apis_that_do_not_answer_are_reported(plugin: Plugin) -> None:
    plugin.answer(f"{shop.PODS}/web-0", shop.pod("web-0"))
    answered = plugin.why("pod/web-0", "-o", "json")
    assert answered.status == 1
    assert [reason.partition(":")[0] for reason in answered.document["missing"]] == ["CPU and memory", "custom metrics"]


@pytest.mark.parametrize(
    "item",
    [
        {"timestamp": "2026-01-01T00:00:00Z"},
        {"value": "1"},
        {"value": "1", "timestamp": "yesterday"},
        {"value": "1", "timestamp": 7},
        {},
        "3",
    ],
)
def test_a_malformed_metric_is_reported_and_hides_nothing_else(plugin: Plugin, item: object) -> None:
    plugin.answer(f"{shop.PODS}/web-0", shop.pod("web-0"))
    containers = [{"name": "main", "usage": {"cpu": "250m"}}]
    plugin.answer(f"{shop.USAGE}/web-0", {"timestamp": shop.now(), "containers": containers})
    plugin.answer(CUSTOM, {"resources": [{"name": "pods/connections"}]})
    plugin.answer(f"{CUSTOM}/namespaces/shop/pods/web-0/connections", {"items": [item]})
    answered = plugin.why("pod/web-0")
    assert answered.status == 1
    assert "main: cpu 250m" in answered.out
    assert "pods/connections: the answer of custom.metrics.k8s.io is not in the form of the API" in " ".join(
        answered.out.split()
    )


@pytest.mark.parametrize("found", [{"timestamp": "now"}, {"containers": ["main"]}, {"containers": [{"usage": "much"}]}])
def test_malformed_usage_is_reported_and_hides_nothing_else(plugin: Plugin, found: dict[str, object]) -> None:
    plugin.answer(f"{shop.PODS}/web-0", shop.pod("web-0"))
    plugin.answer(f"{shop.USAGE}/web-0", found)
    plugin.answer(CUSTOM, {"resources": [{"name": "pods/connections"}]})
    one = {"value": "7", "timestamp": shop.now()}
    plugin.answer(f"{CUSTOM}/namespaces/shop/pods/web-0/connections", {"items": [one]})
    answered = plugin.why("pod/web-0")
    assert answered.status == 1
    assert "connections: 7 (" in answered.out
    assert "the answer of metrics.k8s.io is not in the form of the API" in " ".join(answered.out.split())
