"""While a resize in place is not done, a pod counts as kube-scheduler counts it (KEP-1287)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from adapter.foundation.cluster.facts.pods import pod_of
from adapter.foundation.cluster.facts.scheduling_pods import scheduled_pod_of
from adapter.foundation.cluster.forms.pods import PodForm
from adapter.foundation.cluster.forms.scheduling_pods import SchedulingPodForm
from tests.support.cluster_objects import Json, pod_object

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod

INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = INFEASIBLE | {"reason": "Deferred"}


def pod(content: Json) -> ClusterPod:
    return pod_of(msgspec.json.decode(msgspec.json.encode(content), type=PodForm))


def scheduled(content: Json) -> ClusterPod:
    return scheduled_pod_of(msgspec.json.decode(msgspec.json.encode(content), type=SchedulingPodForm))


def reporting(actual: object = None, given: object = None, name: str = "c") -> Json:
    resources = {} if actual is None else {"resources": {"requests": actual}}
    return {"name": name} | resources | ({} if given is None else {"allocatedResources": given})


def resized(*statuses: Any, condition: Json | None = None, **status: object) -> Json:  # noqa: ANN401 - also odd ones
    content = pod_object("web-1", node="a", requests={"cpu": "1"})
    content["status"] |= {"containerStatuses": list(statuses)} | status
    content["status"]["conditions"] += [condition] if condition else []
    return content


def with_inits(*inits: Json, statuses: list[Json]) -> Json:
    content = resized(initContainerStatuses=statuses)
    content["spec"]["initContainers"] = list(inits)
    return content


def an_init(**more: object) -> Json:
    return {"name": "i", "resources": {"requests": {"cpu": "2"}}} | more


ONE, TWO, HALF = {"cpu": "1"}, {"cpu": "2"}, {"cpu": "500m"}
RESIZES = {
    "without a status": (resized(), 1000),
    "a status that repeats the spec": (resized(reporting(ONE, ONE)), 1000),
    "the same amounts, written differently": (resized(reporting({"cpu": "1000m"}, {"cpu": 1})), 1000),
    "growth that has not begun": (resized(reporting(HALF, HALF)), 1000),
    "a shrinking that is allocated but not done": (resized(reporting(TWO, ONE)), 2000),
    "a shrinking that has not begun": (resized(reporting(TWO, TWO), condition=DEFERRED), 2000),
    "allocated more than it has yet": (resized(reporting(ONE, TWO)), 2000),
    "an infeasible growth": (resized(reporting(HALF, HALF), condition=INFEASIBLE), 500),
    "an infeasible growth of a part": (resized(reporting(HALF, {"cpu": "600m"}), condition=INFEASIBLE), 600),
    "an infeasible growth, before 1.33": (resized(reporting(HALF, HALF), resize="Infeasible"), 500),
    "a growth in progress, before 1.33": (resized(reporting(HALF, HALF), resize="InProgress"), 1000),
    "the condition comes before the older field": (
        resized(reporting(HALF, HALF), condition=DEFERRED, resize="Infeasible"),
        1000,
    ),
    "an infeasible growth without a status of the container": (resized(condition=INFEASIBLE), 1000),
    "an infeasible growth from no requests": (resized({"name": "c", "resources": {}}, condition=INFEASIBLE), None),
    "allocated resources alone": (resized(reporting(None, TWO)), 1000),
    "the status of a container that is not in the spec": (resized(reporting(TWO, TWO, "gone")), 1000),
    "a sidecar": (with_inits(an_init(restartPolicy="Always"), statuses=[reporting({"cpu": "3"}, name="i")]), 4000),
    "an init container that ends": (with_inits(an_init(), statuses=[reporting({"cpu": "3"}, name="i")]), 2000),
}


@pytest.mark.parametrize(("content", "milli"), RESIZES.values(), ids=RESIZES.keys())
@pytest.mark.parametrize("read", [pod, scheduled])
def test_requests_during_a_resize_are_what_the_scheduler_counts(read: Any, content: Json, milli: int | None) -> None:  # noqa: ANN401 - either reader
    assert read(content).resources.requests.get("cpu") == milli


def whole(actual: object, given: object = None, condition: Json | None = None, *statuses: Json) -> Json:
    """Return a pod with requests for the pod as a whole: one core, 64 MiB, and a resource that only containers have."""
    content = resized(*statuses, condition=condition)
    content["spec"]["resources"] = {"requests": {"cpu": "1", "memory": "64Mi", "example.com/a": "1"}}
    content["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    content["status"] |= {} if actual is None else {"resources": {"requests": actual}}
    content["status"] |= {} if given is None else {"allocatedResources": given}
    return content


WHOLE_RESIZES = {
    "without a status": (whole(None), 1000, 64),
    "a status that repeats the spec": (whole({"cpu": "1", "memory": "64Mi"}, {"cpu": "1", "memory": "64Mi"}), 1000, 64),
    "growth that has not begun": (whole({"cpu": "500m", "memory": "32Mi"}), 1000, 64),
    "a shrinking that is allocated but not done": (whole({"cpu": "2", "memory": "96Mi"}, {"cpu": "1"}), 2000, 96),
    "a shrinking that is not allocated": (whole({"cpu": "1"}, {"cpu": "3", "memory": "128Mi"}), 3000, 128),
    "an infeasible growth": (whole({"cpu": "500m", "memory": "32Mi"}, None, INFEASIBLE), 500, 32),
    "an infeasible growth of what was not there": (whole({"cpu": "500m"}, None, INFEASIBLE), 500, 0),
    "allocated resources alone": (whole(None, {"cpu": "3"}), 1000, 64),
    "a resource that the spec does not have": (whole({"cpu": "1", "hugepages-2Mi": "2Mi"}), 1000, 64),
    "a container that is resized too": (whole({"cpu": "1"}, None, None, reporting({"cpu": "5"}, name="c")), 1000, 64),
    "amounts that cannot be read": (whole({"cpu": "lots"}), 1000, 64),
    "resources that are a number": (whole(None) | {"status": whole(None)["status"] | {"resources": 7}}, 1000, 64),
    "null": (whole(None) | {"status": whole(None)["status"] | {"resources": None}}, 1000, 64),
}


@pytest.mark.parametrize(("content", "milli", "mebibytes"), WHOLE_RESIZES.values(), ids=WHOLE_RESIZES.keys())
@pytest.mark.parametrize("read", [pod, scheduled])
def test_pod_level_requests_during_a_resize_are_what_the_scheduler_counts(
    read: Any,  # noqa: ANN401 - either reader
    content: Json,
    milli: int,
    mebibytes: int,
) -> None:
    found = read(content).resources
    assert found.requests == {"cpu": milli, "memory": mebibytes << 20}
    assert found.non_zero_requests == found.requests


def test_pod_level_status_counts_only_with_pod_level_requests() -> None:
    content = resized(resources={"requests": {"cpu": "7"}}, allocatedResources={"cpu": "7"})
    assert pod(content).resources.requests == {"cpu": 1000}


ODD: dict[str, Json] = {
    "amounts that cannot be read": reporting({"cpu": "lots"}, TWO),
    "a negative amount": reporting({"cpu": "-1"}, TWO),
    "amounts that are a list": reporting([1], TWO),
    "an amount that is an object": reporting({"cpu": {}}, TWO),
    "an allocation that is a text": reporting(TWO, "2"),
    "resources that are a number": {"name": "c", "resources": 7, "allocatedResources": TWO},
    "null": {"name": "c", "resources": None, "allocatedResources": None},
    "more amounts than a container can have": reporting({f"example.com/{n}": "1" for n in range(2000)}),
    "a number of thousands of digits": reporting({"cpu": msgspec.Raw(b"1" * 5000)}),
    "deep nesting": {"name": "c", "resources": msgspec.Raw(b"[" * 600 + b"]" * 600)},
}


@pytest.mark.parametrize("status", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("condition", [None, INFEASIBLE])
def test_an_unreadable_container_status_is_ignored(status: Json, condition: Json | None) -> None:
    found = scheduled(resized(status, condition=condition))
    assert found.resources.requests == {"cpu": 1000}
    assert found.facts is not None
    assert found.facts.problem == ""


def test_pods_that_report_their_requests_share_resources_with_pods_that_do_not() -> None:
    assert pod(resized()).resources is pod(resized(reporting(ONE, ONE))).resources


def test_pods_of_one_controller_share_the_resources_of_the_same_resize() -> None:
    assert pod(resized(reporting(TWO, ONE))).resources is pod(resized(reporting(TWO, ONE))).resources


def test_a_bound_pod_with_an_unreadable_time_keeps_its_requests_during_a_resize() -> None:
    content = resized(reporting(TWO, TWO))
    content["metadata"]["creationTimestamp"] = "today"
    found = scheduled(content)
    assert found.facts is not None
    assert found.facts.problem
    assert found.resources.requests == {"cpu": 2000}
