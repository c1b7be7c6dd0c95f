"""Resizes that go through the template, or that are refused: classes of service, wrong lists, and quotas."""

from __future__ import annotations

from typing import Any

import pytest

from recommender.decisions.constraints.pauses import ANNOTATION
from recommender.outputs.pending_writes import RequestedSize
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.outputs.resized_server import (
    APPS,
    AUTOSCALERS,
    LIMIT_RANGES,
    PODS,
    QUOTAS,
    listed,
    pod,
    resize,
    server,
)

BARE: dict[str, Any] = {"resources": {}}
EXACT = {"resources": {part: {"cpu": "1", "memory": "1Gi"} for part in ("requests", "limits")}}


@pytest.mark.parametrize(
    ("template", "pods", "written"),
    [
        # Without requests, pods cannot get any in place.
        (BARE, {"a": BARE, "b": BARE}, {f"{APPS}/statefulsets/web"}),
        # One that was created before the template had requests keeps no other waiting.
        ({"resources": {"requests": {"cpu": "500m"}}}, {"a": BARE, "b": {}}, {f"{PODS}/b/resize"}),
        # Limits go with their requests, so that the class stays.
        (EXACT, {"a": EXACT}, {f"{PODS}/a/resize"}),
        ({}, {"a": {"resources": {"limits": {"cpu": "1"}}}}, {f"{PODS}/a/resize"}),
    ],
    ids=["BestEffort", "one old pod", "Guaranteed", "a limit alone"],
)
def test_pods_whose_qos_class_would_change_get_their_requests_through_the_template(
    template: dict[str, Any], pods: dict[str, dict[str, Any]], written: set[str]
) -> None:
    at = server("StatefulSet", *(pod(name, **changes) for name, changes in pods.items()))
    at.objects[f"{APPS}/statefulsets/web"]["spec"]["template"]["spec"] = pod("t", **template)["spec"]
    outcome = resize(at)
    assert (outcome.result, set(at.written)) == (ScaleResult.OK, written), outcome.message


WHOLE: dict[str, Any] = {part: {"cpu": "2", "memory": "2Gi"} for part in ("requests", "limits")}
SEEN: dict[str, Any] = {"containerStatuses": [{"name": "app", "resources": {}}]}


@pytest.mark.parametrize(
    ("spec", "status", "written"),
    [
        # The pod as a whole is Guaranteed, whatever its containers request.
        ({"resources": WHOLE}, SEEN | {"resources": WHOLE}, f"{PODS}/a/resize"),
        # Before Kubernetes 1.36, such a pod cannot be resized.
        ({"resources": WHOLE}, SEEN, f"{APPS}/statefulsets/web"),
        ({"resources": WHOLE}, {}, f"{PODS}/a/resize"),
        ({"os": {"name": "windows"}}, SEEN, f"{APPS}/statefulsets/web"),
        ({"os": {"name": "linux"}, "resources": WHOLE}, SEEN | {"resources": WHOLE}, f"{PODS}/a/resize"),
    ],
    ids=["whole pod", "whole pod on an old node", "not started", "Windows", "Linux"],
)
@pytest.mark.parametrize("container", [BARE, {}], ids=["bare", "with requests"])
def test_pods_that_the_api_server_does_not_resize_get_their_requests_through_the_template(
    container: dict[str, Any], spec: dict[str, Any], status: dict[str, Any], written: str
) -> None:
    of_whole = pod("a", **container)
    of_whole["spec"] |= spec
    of_whole["status"] |= status
    at = server("StatefulSet", of_whole)
    at.objects[f"{APPS}/statefulsets/web"]["spec"]["template"]["spec"] = of_whole["spec"]
    outcome = resize(at)
    assert (outcome.result, set(at.written)) == (ScaleResult.OK, {written}), outcome.message


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "template"])
@pytest.mark.parametrize(
    "answer", [{}, {"kind": "Status", "apiVersion": "v1"}, listed("Node")], ids=["empty", "status", "other"]
)
@pytest.mark.parametrize("path", [AUTOSCALERS, PODS, "/api/v1", LIMIT_RANGES, QUOTAS])
def test_an_answer_that_is_not_a_list_is_not_treated_as_empty(
    path: str, answer: dict[str, Any], *, in_place: bool
) -> None:
    at = server("StatefulSet", pod("a"), in_place=in_place)
    at.objects[path] = answer
    outcome = resize(at)
    is_read = path in {AUTOSCALERS, "/api/v1"} or in_place == (path == PODS)
    assert (outcome.result, bool(at.written)) == ((ScaleResult.ERROR, False) if is_read else (ScaleResult.OK, True)), (
        outcome.message
    )


LIMITED = {"metadata": {"name": "most"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "400m"}}]}}
FULL = {
    "metadata": {"name": "all"},
    "spec": {"hard": {"requests.cpu": "3"}},
    "status": {"used": {"requests.cpu": "3"}},
}


@pytest.mark.parametrize(
    ("path", "item", "wanted", "message"),
    [
        (LIMIT_RANGES, LIMITED, 500, "LimitRange most forbids"),
        (LIMIT_RANGES, LIMITED, 300, ""),
        (QUOTAS, FULL, 1500, "ResourceQuota all allows 3"),
        (QUOTAS, FULL, 500, ""),
    ],
)
def test_a_template_is_not_written_if_the_namespace_would_forbid_its_pods(
    path: str, item: dict[str, Any], wanted: int, message: str
) -> None:
    at = server("StatefulSet", in_place=False)
    at.objects[path]["items"] = [item]
    outcome = resize(at, "StatefulSet", RequestedSize("app", "cpu", wanted))
    assert outcome.result is (ScaleResult.REFUSED if message else ScaleResult.OK), outcome.message
    assert message in outcome.message
    assert bool(at.written) is not bool(message)


@pytest.mark.parametrize(
    ("kind", "spec", "status", "needed"),
    [
        ("StatefulSet", {}, {}, 3500),
        ("StatefulSet", {"replicas": 3}, {"readyReplicas": 3}, 4500),
        ("DaemonSet", {}, {"observedGeneration": 1, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3}, 4500),
    ],
)
def test_a_quota_counts_all_pods_that_a_new_template_creates(
    kind: str, spec: dict[str, int], status: dict[str, int], needed: int
) -> None:
    at = server(kind, in_place=False, status=status)
    at.objects[f"{APPS}/{kind.lower()}s/web"]["spec"] |= spec
    for allowed, expected in ((needed - 1, ScaleResult.REFUSED), (needed, ScaleResult.OK)):
        at.objects[QUOTAS]["items"] = [FULL | {"spec": {"hard": {"requests.cpu": f"{allowed}m"}}}]
        outcome = resize(at, kind, RequestedSize("app", "cpu", 1500))
        assert outcome.result is expected, outcome.message


@pytest.mark.parametrize(
    ("annotation", "wanted", "expected", "message"),
    [
        ("false", 500, ScaleResult.OK, ""),
        ("true", 500, ScaleResult.REFUSED, f"paused by the annotation {ANNOTATION}"),
        ("up", 500, ScaleResult.OK, ""),
        ("up", 1500, ScaleResult.UNCHANGED, ""),
        ("down", 500, ScaleResult.UNCHANGED, ""),
        ("down", 1500, ScaleResult.OK, ""),
        ("1970-01-01T00:16:40Z", 500, ScaleResult.OK, ""),
        ("1970-01-01T00:16:41Z", 500, ScaleResult.REFUSED, f"paused by the annotation {ANNOTATION}"),
        ("soon", 500, ScaleResult.REFUSED, f"paused by the annotation {ANNOTATION}, which cannot be read: "),
    ],
)
def test_a_pause_that_the_workload_has_since_the_decision_stops_its_direction(
    annotation: str, wanted: int, expected: ScaleResult, message: str
) -> None:
    at = server("StatefulSet", pod("a"))
    at.objects[f"{APPS}/statefulsets/web"]["metadata"]["annotations"] = {ANNOTATION: annotation}
    outcome = resize(at, "StatefulSet", RequestedSize("app", "cpu", wanted), wall=1000.0)
    assert outcome.result is expected, outcome.message
    assert outcome.message.startswith(message)
    assert bool(at.written) is (expected is ScaleResult.OK)
