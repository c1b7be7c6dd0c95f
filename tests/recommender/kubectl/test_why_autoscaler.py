"""`why hpa/NAME`: the values that the controller gets, what it does next, and why it does nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from adapter.foundation.hpa.documents import HpaDocumentError, pod_of, spec_of
from adapter.foundation.hpa.spec import AverageUtilization, ResourceMetric
from tests.recommender.kubectl import shop

if TYPE_CHECKING:
    from tests.recommender.kubectl.conftest import Plugin

QUICK = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "policies": [{"type": "Pods", "value": 100, "periodSeconds": 15}],
        "selectPolicy": "Max",
    },
    "scaleDown": {
        "stabilizationWindowSeconds": 0,
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
        "selectPolicy": "Max",
    },
}


@pytest.fixture
def web(plugin: Plugin) -> Plugin:
    shop.put_workload(plugin)
    shop.put_hpa(plugin, shop.pods_metric())
    return plugin


def next_of(plugin: Plugin) -> dict[str, Any]:
    found: dict[str, Any] = plugin.why("hpa/web", "-o", "json").document["next"]
    return found


def test_the_next_size_is_computed_as_by_the_hpa(web: Plugin) -> None:
    shop.put_connections(web, "150", "130")
    answered = web.why("hpa/web")
    assert (answered.status, answered.err) == (0, "")
    assert answered.out.startswith("hpa/web: The next sync scales from 2 to 3 replicas.\n")
    assert "Value: web-0 150, web-1 130." in answered.out
    assert "AbleToScale is True (ReadyForNewScale): all is well" in answered.out
    assert max(map(len, answered.out.splitlines())) <= 80
    assert "\x1b" not in answered.out


def test_metrics_are_queried_with_the_selectors_of_the_controller(web: Plugin) -> None:
    shop.put_hpa(web, shop.pods_metric(), shop.queue_metric())
    shop.put_connections(web, "100", "100")
    web.answer(shop.QUEUE, {"items": [{"value": "19", "timestamp": shop.now(), "metricLabels": {"queue": "mail"}}]})
    web.why("hpa/web")
    requests = [one for one in web.server.requests if one.path in {shop.CONNECTIONS, shop.QUEUE}]
    selectors = {one.path: one.query.get("labelSelector") for one in requests}
    assert selectors == {shop.CONNECTIONS: "app=web", shop.QUEUE: "queue=mail"}


def put_version(plugin: Plugin, minor: str) -> None:
    plugin.answer("/version", {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}"})


@pytest.mark.parametrize(
    ("minor", "sentence"),
    [("37", "It stays at 2 replicas: the metrics ask for this size"), ("38+", "The next sync scales from 2 to 4")],
)
def test_pods_that_have_succeeded_hold_the_size_before_kubernetes_1_38(web: Plugin, minor: str, sentence: str) -> None:
    put_version(web, minor)
    ended = [shop.pod(f"done-{number}", phase="Succeeded") for number in range(2)]
    web.answer(shop.PODS, {"items": [*(shop.pod(f"web-{number}") for number in range(2)), *ended]})
    shop.put_hpa(web, shop.pods_metric(), behavior=QUICK)
    shop.put_connections(web, "200", "200")
    answered = web.why("hpa/web")
    assert answered.status == 0
    said = " ".join(answered.out.split())
    assert sentence in said
    assert ("done-0, done-1 have succeeded" in said) is (minor == "37")


def test_a_version_that_cannot_be_read_is_named_where_it_matters(web: Plugin) -> None:
    web.forbid("/version")
    shop.put_connections(web, "150", "130")
    assert web.why("hpa/web").status == 0
    web.answer(shop.PODS, {"items": [shop.pod("web-0"), shop.pod("done-0", phase="Succeeded")]})
    missing = web.why("hpa/web", "-o", "json").document["missing"]
    assert missing == ["the version of Kubernetes: you lack the right to get /version: ask for a role that has it"]


@pytest.mark.parametrize(
    ("minor", "condition", "sentence"),
    [
        ("35", None, "The next sync scales from 0 to 3 replicas."),
        ("37", None, "It stays at 0 replicas: scaled to 0 by hand: autoscaling is off"),
        ("37", "False", "It stays at 0 replicas: scaled to 0 by hand: autoscaling is off"),
        ("37", "True", "The next sync scales from 0 to 3 replicas."),
    ],
)
def test_zero_replicas_grow_only_if_the_controller_made_them_zero(
    web: Plugin, minor: str, condition: str | None, sentence: str
) -> None:
    put_version(web, minor)
    shop.put_workload(web, 0)
    shop.put_hpa(web, shop.queue_metric(), minReplicas=0, behavior=QUICK)
    if condition is not None:
        _, hpa = web.server.answers[shop.HPA]
        web.answer(shop.HPA, hpa | {"status": {"conditions": [{"type": "ScaledToZero", "status": condition}]}})
    web.answer(shop.QUEUE, {"items": [{"value": "25", "timestamp": shop.now()}]})
    assert sentence in " ".join(web.why("hpa/web").out.split())


def test_pods_that_several_hpas_select_are_not_said_to_be_scaled(web: Plugin) -> None:
    shop.put_hpa(web, shop.pods_metric(), behavior=QUICK)
    shop.put_connections(web, "150", "150")
    message = "pods by selector app=web are controlled by multiple HPAs: [shop/web shop/old]"
    condition = {"type": "ScalingActive", "status": "False", "reason": "AmbiguousSelector", "message": message}
    _, hpa = web.server.answers[shop.HPA]
    web.answer(shop.HPA, hpa | {"status": {"conditions": [condition]}})
    answered = web.why("hpa/web")
    assert answered.status == 0
    assert f"hpa/web: It stays at 2 replicas: {message} (AmbiguousSelector)." in " ".join(answered.out.split())
    found = next_of(web)
    assert (found["replicas"], found["certain"], found["reason"]) == (2, True, "AmbiguousSelector")


def test_the_range_of_an_hpa_holds_even_if_several_select_its_pods(web: Plugin) -> None:
    condition = {"type": "ScalingActive", "status": "False", "reason": "AmbiguousSelector", "message": "several"}
    shop.put_hpa(web, shop.pods_metric(), minReplicas=3)
    shop.put_connections(web, "150", "150")
    _, hpa = web.server.answers[shop.HPA]
    web.answer(shop.HPA, hpa | {"status": {"conditions": [condition]}})
    assert "The next sync scales from 2 to 3 replicas" in web.why("hpa/web").out


@pytest.mark.parametrize("named", ["shop", "elsewhere"])
def test_a_metric_of_a_namespace_is_that_of_the_hpas_own_namespace(web: Plugin, named: str) -> None:
    shop.put_hpa(web, shop.namespace_metric(named), behavior=QUICK)
    web.answer(shop.NAMESPACE_REQUESTS, {"items": [{"value": "40", "timestamp": shop.now()}]})
    assert "The next sync scales from 2 to 4 replicas." in " ".join(web.why("hpa/web").out.split())
    web.forbid(shop.NAMESPACE_REQUESTS)
    said = " ".join(web.why("hpa/web").out.split())
    assert "you lack the right to get metrics.custom.metrics.k8s.io requests in shop" in said


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (("105", "100"), "It stays at 2 replicas: the metrics ask for this size"),
        (("900", "900"), "the metrics ask for 18, and maxReplicas is 10 (TooManyReplicas)"),
        (("10", "10"), "The next sync scales from 2 to 1 replica."),
    ],
    ids=["tolerance", "maximum", "down"],
)
def test_the_reason_for_the_size_is_shown(web: Plugin, values: tuple[str, ...], sentence: str) -> None:
    shop.put_hpa(web, shop.pods_metric(), behavior=QUICK)
    shop.put_connections(web, *values)
    assert sentence in " ".join(web.why("hpa/web").out.split())


@pytest.mark.parametrize(
    ("behavior", "values", "sentence"),
    [
        (
            {**QUICK, "scaleUp": {"selectPolicy": "Disabled"}},
            ("150", "150"),
            "It stays at 2 replicas: the metrics ask for 3, and behavior.scaleUp has selectPolicy Disabled",
        ),
        (
            {**QUICK, "scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Disabled"}},
            ("10", "10"),
            "It stays at 2 replicas: the metrics ask for 1, and behavior.scaleDown has selectPolicy Disabled",
        ),
        (
            {**QUICK, "scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}},
            ("500", "500"),
            "from 2 to 3 replicas; the metrics ask for 10, and the policies of behavior.scaleUp allow no more now",
        ),
        (None, ("900", "900"), "from 2 to 4 replicas; the metrics ask for 18, and without behavior one sync doubles"),
    ],
    ids=["up disabled", "down disabled", "one pod", "defaults"],
)
def test_the_limiting_behaviour_is_named_as_in_the_hpa(
    web: Plugin, behavior: object, values: tuple[str, ...], sentence: str
) -> None:
    shop.put_hpa(web, shop.pods_metric(), **({} if behavior is None else {"behavior": behavior}))
    shop.put_connections(web, *values)
    assert sentence in " ".join(web.why("hpa/web").out.split())


def test_a_failed_metric_that_prevents_scale_down_is_reported(web: Plugin) -> None:
    shop.put_hpa(web, shop.pods_metric(), shop.queue_metric())
    shop.put_connections(web, "10", "10")
    shown = " ".join(web.why("hpa/web").out.split())
    assert "It stays at 2 replicas: the others ask for 1, but nothing is made smaller while 1 of 2 metrics" in shown


def test_a_failed_metric_does_not_prevent_scale_up(web: Plugin) -> None:
    shop.put_hpa(web, shop.pods_metric(), shop.queue_metric(), behavior=QUICK)
    shop.put_connections(web, "150", "150")
    answered = web.why("hpa/web")
    assert "The next sync scales from 2 to 3 replicas." in " ".join(answered.out.split())
    assert answered.status == 1


def test_a_target_that_does_not_exist_is_reported_with_the_fix(web: Plugin) -> None:
    gone = {"kind": "Status", "reason": "NotFound", "message": 'deployments.apps "web" not found', "code": 404}
    web.answer(shop.SCALE, gone, 404)
    answered = web.why("hpa/web")
    assert answered.status == 1
    sentence = "its target Deployment web does not exist in shop, or has no scale: check spec.scaleTargetRef"
    assert sentence in " ".join(answered.out.split())


def test_an_api_that_is_not_served_is_reported_as_missing(web: Plugin) -> None:
    shop.put_hpa(web, shop.queue_metric(), shop.cpu_metric())
    missing = web.why("hpa/web", "-o", "json").document["missing"]
    assert [each.partition(": ")[2].partition(":")[0] for each in missing] == [
        "external.metrics.k8s.io is not served in this cluster",
        "metrics.k8s.io is not served in this cluster",
    ]


def test_a_size_that_depends_on_the_controllers_memory_is_not_reported_as_certain(web: Plugin) -> None:
    shop.put_connections(web, "10", "10")
    answered = web.why("hpa/web")
    assert "may hold that back for up to 300 s" in " ".join(answered.out.split())
    found = next_of(web)
    assert (found["replicas"], found["certain"], found["held_for_seconds"]) == (1, False, 300.0)


def test_a_recent_change_may_have_used_up_the_policies(web: Plugin) -> None:
    policies = [{"type": "Pods", "value": 1, "periodSeconds": 600}]
    limited = {**QUICK, "scaleUp": {**QUICK["scaleUp"], "policies": policies}}
    shop.put_hpa(web, shop.pods_metric(), behavior=limited)
    shop.put_connections(web, "150", "150")
    assert next_of(web)["certain"] is True
    _, hpa = web.server.answers[shop.HPA]
    web.answer(shop.HPA, hpa | {"status": {"lastScaleTime": shop.now()}})
    found = next_of(web)
    assert (found["replicas"], found["certain"], found["held_for_seconds"]) == (3, False, 600.0)


def test_a_metric_without_a_value_is_reported_with_exit_status_1(web: Plugin) -> None:
    message = "the server could not find the metric connections for pods: rules[2] does not serve it"
    web.answer(shop.CONNECTIONS, {"kind": "Status", "reason": "NotFound", "message": message, "code": 404}, 404)
    answered = web.why("hpa/web", "-o", "json")
    assert answered.status == 1
    assert message in answered.document["missing"][0]
    assert answered.document["next"]["reason"] == "FailedGetPodsMetric"
    assert "the metric connections failed: " in " ".join(web.why("hpa/web").out.split())


@pytest.mark.parametrize(
    ("path", "right"),
    [
        (shop.SCALE, "get deployments.apps/scale web in shop"),
        (shop.PODS, "list pods in shop"),
        (shop.CONNECTIONS, "get pods.custom.metrics.k8s.io/connections in shop"),
    ],
)
def test_a_missing_right_is_named(web: Plugin, path: str, right: str) -> None:
    shop.put_connections(web, "100", "100")
    web.forbid(path)
    answered = web.why("hpa/web")
    assert answered.status == 1
    assert f"you lack the right to {right}" in " ".join(answered.out.split())


def test_why_fails_if_the_hpa_cannot_be_read(web: Plugin) -> None:
    web.forbid(shop.HPA)
    answered = web.why("hpa/web")
    assert (answered.status, answered.out) == (2, "")
    assert "you lack the right to get horizontalpodautoscalers.autoscaling web in shop" in answered.err


def test_a_malformed_metric_does_not_hide_the_others(web: Plugin) -> None:
    shop.put_hpa(web, shop.pods_metric(), shop.queue_metric())
    shop.put_connections(web, "150", "150")
    web.answer(shop.QUEUE, {"items": [{"value": "many", "timestamp": shop.now()}]})
    answered = web.why("hpa/web", "-o", "json")
    assert answered.status == 1
    assert [one["error"] is None for one in answered.document["metrics"]] == [True, False]
    assert answered.document["next"]["replicas"] == 3


def test_cpu_is_compared_with_the_requests_of_the_pod_or_of_one_container(web: Plugin) -> None:
    shop.put_usage(web, main="900m", proxy="20m")
    shop.put_hpa(web, shop.cpu_metric(50), behavior=QUICK)
    assert next_of(web)["replicas"] == 4
    shop.put_hpa(web, shop.cpu_metric(50, "proxy"), behavior=QUICK)
    assert next_of(web)["replicas"] == 1


def test_json_and_yaml_are_the_same_document(web: Plugin) -> None:
    shop.put_connections(web, "150", "130")
    as_json, as_yaml = web.why("hpa/web", "-o", "json"), web.why("hpa/web", "-o", "yaml")
    ours, other = json.loads(as_json.out), yaml.safe_load(as_yaml.out)
    for document in (ours, other):
        for metric in document["metrics"]:
            metric["age_seconds"] = None
    assert ours == other
    facts = ["target", "next", "metrics", "conditions"]
    assert list(ours) == ["apiVersion", "kind", "object", "namespace", "answer", *facts, "missing"]


def test_the_namespace_of_the_context_is_used(web: Plugin) -> None:
    shop.put_connections(web, "100", "100")
    web.with_context_namespace("shop")
    assert web.run("why", "hpa/web").status == 0
    web.with_context_namespace("elsewhere")
    assert "/namespaces/elsewhere/" in web.run("why", "hpa/web").err


@pytest.mark.parametrize("subject", ["web", "hpa/", "hpa/a/b", "unknownkind/web"])
def test_an_invalid_object_reference_is_refused(web: Plugin, subject: str) -> None:
    assert web.why(subject).status == 2


def test_labels_and_messages_cannot_control_the_terminal(web: Plugin) -> None:
    shop.put_hpa(web, shop.queue_metric())
    labels = {"queue": "\x1b[2Jmail"}
    web.answer(shop.QUEUE, {"items": [{"value": "1", "timestamp": shop.now(), "metricLabels": labels}]})
    assert "\x1b" not in web.why("hpa/web").out


def test_requests_are_kept_by_container_and_summed_for_the_pod() -> None:
    found = pod_of(shop.pod("web-0")).requests_milli
    assert found == {"main/cpu": 1000, "proxy/cpu": 100, "cpu": 1100}
    lacking = shop.pod("web-0")
    lacking["spec"]["containers"][1]["resources"] = {}
    assert pod_of(lacking).requests_milli == {"main/cpu": 1000}


def test_a_pod_with_requests_of_its_own_is_counted_as_the_scheduler_counts_it() -> None:
    whole = shop.pod("web-0")
    whole["spec"] |= {"resources": {"requests": {"memory": "1Gi"}}, "overhead": {"cpu": "50m", "memory": "1Mi"}}
    whole["spec"]["containers"][1]["resources"] = {}
    whole["spec"]["initContainers"] = [{"name": "load", "resources": {"requests": {"cpu": "2"}}}]
    found = pod_of(whole).requests_milli
    assert found == {"main/cpu": 1000, "cpu": 2050, "memory": (1025 << 20) * 1000}
    whole["spec"]["resources"]["requests"]["cpu"] = "3"
    assert (pod_of(whole).requests_milli or {})["cpu"] == 3050


def test_an_hpa_is_read_and_malformed_ones_are_refused() -> None:
    document = {"spec": {"maxReplicas": 3, "metrics": [shop.cpu_metric(60, "main")]}}
    assert spec_of(document).metrics == (ResourceMetric("cpu", AverageUtilization(60), "main"),)
    boundless = {"scaleUp": {"tolerance": "1e400"}}
    for broken in (
        {},
        {"spec": {"maxReplicas": 3}},
        {"spec": {"maxReplicas": 3, "metrics": [{"type": "Other"}]}},
        {"spec": {"maxReplicas": 3, "metrics": [shop.cpu_metric(60, "main")], "behavior": boundless}},
    ):
        with pytest.raises(HpaDocumentError):
            spec_of(broken)
