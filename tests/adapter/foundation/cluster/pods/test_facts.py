"""Facts of pods, and of the objects that select them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.pod_selectors import pod_selector_of
from adapter.foundation.cluster.facts.pods import pod_of
from adapter.foundation.cluster.forms.pods import PodForm, SelectingForm
from adapter.foundation.cluster.values.state import ControllerReference
from adapter.foundation.time.timestamps import seconds_of
from tests.support.cluster_objects import Json, pod_object, selecting_object

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod


def pod(content: Json, gpu_annotation: str = "") -> ClusterPod:
    return pod_of(msgspec.json.decode(msgspec.json.encode(content), type=PodForm), gpu_annotation)


def test_the_node_owner_and_times_of_a_pod_are_read() -> None:
    found = pod(
        pod_object(
            "web-1", node="a", labels={"app": "web"}, requests={"cpu": "100m"}, owner=("ReplicaSet", "web"), priority=7
        )
    )
    assert (found.namespace, found.name, found.uid, found.node) == ("shop", "web-1", "uid-web-1", "a")
    assert found.controller == ControllerReference("apps/v1", "ReplicaSet", "web", "uid-web")
    assert found.bound_at == seconds_of("2026-11-22T05:00:00Z")
    assert (found.ended_at, found.has_ended, found.is_terminating, found.priority) == (None, False, False, 7)
    assert found.resources.requests == {"cpu": 100}


def test_a_bound_pod_without_a_scheduled_condition_was_bound_at_its_creation() -> None:
    assert pod(pod_object("a", node="a", bound=None)).bound_at == seconds_of("2026-01-01T00:00:00Z")
    assert pod(pod_object("a")).bound_at is None


def test_a_pod_ends_with_its_last_container() -> None:
    content = pod_object("job", node="a", phase="Succeeded", ended="2026-11-22T05:30:00Z")
    earlier = {"name": "d", "state": {"terminated": {"finishedAt": "2026-11-22T05:10:00Z"}}}
    content["status"]["containerStatuses"].append(earlier)
    found = pod(content)
    assert found.has_ended
    assert found.ended_at == seconds_of("2026-11-22T05:30:00Z")


def test_only_the_annotation_that_is_needed_is_kept() -> None:
    content = pod_object("gpu", annotations={"gpus": "0:500", "large": "x" * 1000})
    assert pod(content, "gpus").gpu_allocation == "0:500"
    assert pod(content, "others").gpu_allocation == ""
    assert pod(content).gpu_allocation == ""


def test_pods_of_one_controller_share_labels_resources_and_owner() -> None:
    one, two = (
        pod(pod_object(name, labels={"app": "web"}, requests={"cpu": "1"}, owner=("ReplicaSet", "web")))
        for name in ("web-1", "web-2")
    )
    assert one.labels is two.labels
    assert one.resources is two.resources
    assert one.controller is two.controller


def test_requests_of_sidecars_and_of_the_pod_level_are_read() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "200m"}}}
    content = pod_object("a", requests={"cpu": "1"}, initContainers=[sidecar], overhead={"cpu": "50m"})
    assert pod(content).resources.requests == {"cpu": 1250}
    content["spec"]["resources"] = {"requests": {"cpu": 3}}
    assert pod(content).resources.requests == {"cpu": 3050}


PROBLEMS = {
    "Pod shop/a: spec.containers[c].resources.requests.cpu: 'four' is not a quantity": pod_object(
        "a", requests={"cpu": "four"}
    ),
    "Pod shop/a: status.conditions[PodScheduled].lastTransitionTime 'today' is not a time": pod_object(
        "a", node="n", bound="today"
    ),
    "Pod shop/a: status.containerStatuses.state.terminated.finishedAt 'now' is not a time": pod_object(
        "a", phase="Failed", ended="now"
    ),
}


@pytest.mark.parametrize(("message", "content"), PROBLEMS.items(), ids=PROBLEMS.keys())
def test_a_pod_that_cannot_be_read_is_refused_with_the_field(message: str, content: Json) -> None:
    with pytest.raises(FactError) as caught:
        pod(content)
    assert str(caught.value).startswith(message)


WEB = {"matchLabels": {"app": "web"}}
ODD = {
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["b", "a"]},
        {"key": "canary", "operator": "DoesNotExist"},
    ]
}
SELECTORS = {
    "a Service": (selecting_object("Service", "web", {"app": "web", "a": "b"}), "a=b,app=web"),
    "a Service without selector": (selecting_object("Service", "web", None), ""),
    "a ReplicationController": (
        selecting_object("ReplicationController", "web", {"app": "web"}, replicas=1),
        "app=web",
    ),
    "a ReplicaSet": (selecting_object("ReplicaSet", "web", WEB, replicas=2), "app=web"),
    "a StatefulSet of expressions": (selecting_object("StatefulSet", "web", ODD), "!canary,tier in (a,b)"),
    "a ReplicaSet of an earlier version": (selecting_object("ReplicaSet", "web", WEB, replicas=0), None),
}


@pytest.mark.parametrize(("content", "expected"), SELECTORS.values(), ids=SELECTORS.keys())
def test_the_pod_selector_of_each_kind_is_read(content: Json, expected: str | None) -> None:
    found = pod_selector_of(content["kind"], msgspec.json.decode(msgspec.json.encode(content), type=SelectingForm))
    assert (None if found is None else found.selector) == expected


@pytest.mark.parametrize(
    "selector",
    [{"matchExpressions": [{"key": "a", "operator": "Like"}]}, {"matchLabels": {"-": "a"}}, {"matchLabels": 1}],
)
def test_a_selector_that_cannot_be_read_is_named(selector: Json) -> None:
    content = selecting_object("ReplicaSet", "web", selector)
    with pytest.raises(FactError, match=r"ReplicaSet shop/web: spec.selector: "):
        pod_selector_of("ReplicaSet", msgspec.json.decode(msgspec.json.encode(content), type=SelectingForm))
