"""The output `resize` with an API server that returns prepared answers."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ServerError,
    StatusError,
)
from adapter.foundation.sources.kubernetes.writing import Fence, Reply
from recommender.decisions.record import TargetReference
from recommender.outputs.resize import ResizeAttempt
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.wishes import RequestedSize, Resizing, Wish
from recommender.outputs.write_attempt import ScaleOutcome, SendingTerms

if TYPE_CHECKING:
    from collections.abc import Mapping

APPS = "/apis/apps/v1/namespaces/shop"
PODS = "/api/v1/namespaces/shop/pods"
LIMIT_RANGES = "/api/v1/namespaces/shop/limitranges"
QUOTAS = "/api/v1/namespaces/shop/resourcequotas"
AUTOSCALERS = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers"
HALF = RequestedSize("app", "cpu", 500)


@dataclass
class Server:
    """A server that has objects by path, and records what is written."""

    objects: dict[str, Any]
    refusals: dict[str, StatusError] = field(default_factory=dict)
    written: dict[str, dict[str, Any]] = field(default_factory=dict)

    def get(self, path: str, query: Mapping[str, str] | None = None, *, seconds: float | None = None) -> Reply:  # noqa: ARG002 - as the protocol has it
        if path not in self.objects:
            raise NotFoundError(f"GET {path}: not found", 404)
        return Reply(copy.deepcopy(self.objects[path]))

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:  # noqa: ARG002 - as the protocol has it
        if path in self.refusals:
            raise self.refusals[path]
        self.written[path] = dict(document)
        return dict(document)


def pod(name: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a container
    container = {"name": "app", "resources": {"requests": {"cpu": "1"}}} | changes
    return {
        "metadata": {"name": name, "ownerReferences": [{"controller": True, "uid": "w"}]},
        "spec": {"containers": [container]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def listed(kind: str, *items: dict[str, Any], api_version: str = "v1") -> dict[str, Any]:
    return {"kind": f"{kind}List", "apiVersion": api_version, "metadata": {}, "items": list(items)}


def server(kind: str = "StatefulSet", *pods: dict[str, Any], in_place: bool = True, **workload: Any) -> Server:  # noqa: ANN401 - parts of the object
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": pod("t")["spec"]}}
    document = {"kind": kind, "metadata": {"name": "web", "uid": "w", "generation": 1}, "spec": spec} | workload
    resources = [{"name": "pods"}, *([{"name": "pods/resize"}] if in_place else [])]
    return Server(
        {
            f"{APPS}/{kind.lower()}s/web": document,
            PODS: listed("Pod", *pods),
            "/api/v1": {"kind": "APIResourceList", "resources": resources},
            LIMIT_RANGES: listed("LimitRange"),
            QUOTAS: listed("ResourceQuota"),
        }
    )


def resize(at: Server, kind: str = "StatefulSet", *sizes: RequestedSize, wall: float = 0.0) -> ScaleOutcome:
    resizing = Resizing(sizes or (HALF,), 0.1, in_place=True, up=True, down=True, managers=())
    wish = Wish("sizes", TargetReference("apps/v1", kind, "shop", "web"), 0, 60.0, "why", resizing=resizing)
    attempt = ResizeAttempt(at, at, lambda group, name: find_resource(BUILT_IN, group, name), lambda: wall)
    return attempt(wish, SendingTerms(lambda: None, lambda: True, Fence(5.0, lambda _: True)))


@pytest.mark.parametrize(
    ("status", "strategy", "expected"),
    [
        ({"observedGeneration": 1, "updatedNumberScheduled": 3}, "RollingUpdate", ScaleResult.OK),
        ({"observedGeneration": 1, "updatedNumberScheduled": 2}, "RollingUpdate", ScaleResult.UNCHANGED),
        ({"observedGeneration": 1}, "RollingUpdate", ScaleResult.UNCHANGED),
        ({"observedGeneration": 1}, "OnDelete", ScaleResult.OK),
        ({"updatedNumberScheduled": 3}, "RollingUpdate", ScaleResult.UNCHANGED),
    ],
    ids=["rolled out", "under way", "just begun", "on delete", "not seen yet"],
)
def test_the_template_of_a_daemon_set_is_written_between_rollouts(
    status: dict[str, int], strategy: str, expected: ScaleResult
) -> None:
    at = server("DaemonSet", in_place=False, status={"desiredNumberScheduled": 3} | status)
    at.objects[f"{APPS}/daemonsets/web"]["spec"]["updateStrategy"] = {"type": strategy}
    outcome = resize(at, "DaemonSet")
    assert outcome.result is expected, outcome.message
    assert bool(at.written) == (expected is ScaleResult.OK)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ForbiddenError('pods "a" is forbidden: maximum cpu usage per Container is 400m', 403), ScaleResult.REFUSED),
        (StatusError("Pod QOS Class may not change", 422), ScaleResult.REFUSED),
        (ConflictError("the object has been modified", 409), ScaleResult.CONFLICT),
        (ServerError("etcd has no leader", 500), ScaleResult.ERROR),
    ],
    ids=["LimitRange", "class of service", "conflict", "server"],
)
def test_a_failed_resize_of_a_pod_does_not_affect_others(error: StatusError, expected: ScaleResult) -> None:
    at = server("StatefulSet", pod("a"), pod("b"))
    at.refusals[f"{PODS}/a/resize"] = error
    outcome = resize(at)
    assert (outcome.result, outcome.message) == (expected, str(error))
    assert at.written.keys() == {f"{PODS}/b/resize"}


RESTARTS = {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
ELSEWHERE = {"resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]}


def with_conditions(document: dict[str, Any], *true: str, **metadata: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of metadata
    document["metadata"] |= metadata
    status = document["status"] | {"conditions": [{"type": name, "status": "True"} for name in true]}
    return document | {"status": status | ({"observedGeneration": 1} if metadata else {})}


@pytest.mark.parametrize(
    ("pods", "written"),
    [
        ((pod("a", **RESTARTS), pod("b", **RESTARTS)), {"a"}),
        ((pod("a"), pod("b")), {"a", "b"}),
        ((pod("a", **ELSEWHERE), pod("b", **ELSEWHERE)), {"a", "b"}),
        ((with_conditions(pod("a", **RESTARTS)), pod("b", **RESTARTS)), {"a"}),
        ((pod("a", **RESTARTS), with_conditions(pod("b", **RESTARTS, resources={"requests": {"cpu": "500m"}}))), set()),
        ((pod("a", **RESTARTS), with_conditions(pod("b", **RESTARTS), "Ready", "PodResizeInProgress")), set()),
        ((pod("a", **RESTARTS), with_conditions(pod("b", **RESTARTS), "Ready", generation=2)), set()),
        ((pod("a", **RESTARTS), with_conditions(pod("b", **RESTARTS), "Ready", generation=1)), {"a"}),
        ((pod("a", **RESTARTS), with_conditions(pod("b", **RESTARTS), "Ready", "PodResizePending")), {"a"}),
    ],
    ids=[
        "one at a time", "no policy", "policy of another resource", "not ready anyway", "the former one is not ready",
        "the former one is being resized", "the kubelet has not seen it", "the kubelet has seen it", "deferred",
    ],
)  # fmt: skip
def test_containers_that_restart_when_resized_are_resized_one_pod_at_a_time(
    pods: tuple[dict[str, Any], ...], written: set[str]
) -> None:
    at = server("StatefulSet", *copy.deepcopy(pods))
    outcome = resize(at)
    assert outcome.result is (ScaleResult.OK if written else ScaleResult.UNCHANGED), outcome.message
    assert at.written.keys() == {f"{PODS}/{name}/resize" for name in written}


def pending(document: dict[str, Any], reason: str, status: str = "True", **generations: int) -> dict[str, Any]:
    condition = {"type": "PodResizePending", "status": status, "reason": reason, "message": "not enough capacity: cpu"}
    document["status"] |= {"conditions": [{"type": "Ready", "status": "True"}, condition]}
    if generations:
        document["metadata"] |= {"generation": generations["wanted"]}
        document["status"] |= {"observedGeneration": generations["seen"]}
    return document


HALF_A_CORE = {"resources": {"requests": {"cpu": "500m"}}}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ((pod("a", **HALF_A_CORE), pending(pod("b", **HALF_A_CORE), "Infeasible")), ScaleResult.REFUSED),
        ((pending(pod("b", **HALF_A_CORE), "Infeasible", wanted=2, seen=2),), ScaleResult.REFUSED),
        # The kubelet tries again when other pods have ended.
        ((pending(pod("b", **HALF_A_CORE), "Deferred"),), ScaleResult.UNCHANGED),
        # That was another request.
        ((pending(pod("b", **HALF_A_CORE), "Infeasible", wanted=2, seen=1),), ScaleResult.UNCHANGED),
        ((pending(pod("b", **HALF_A_CORE), "Infeasible", "False"),), ScaleResult.UNCHANGED),
        ((pending(pod("b"), "Infeasible"),), ScaleResult.OK),
    ],
    ids=["infeasible", "seen", "deferred", "not seen yet", "has ended", "of another size"],
)
def test_a_resize_that_the_kubelet_cannot_apply_is_refused(
    pods: tuple[dict[str, Any], ...], expected: ScaleResult
) -> None:
    outcome = resize(server("StatefulSet", *copy.deepcopy(pods)))
    assert outcome.result is expected, outcome.message
    assert ("pod b keeps its former size: not enough capacity: cpu" in outcome.message) is (
        expected is ScaleResult.REFUSED
    )


@pytest.mark.parametrize(
    ("refused", "good", "changes"),
    [(60, 60, {}), (250, 70, {}), (3, 4, RESTARTS)],
    ids=["more than are resized at once", "more than are tried at once", "one at a time"],
)
def test_refused_pods_do_not_block_others_forever(refused: int, good: int, changes: dict[str, Any]) -> None:
    names = [f"{number:03}" for number in range(refused + good)]
    at = server("StatefulSet", *(pod(name, **changes) for name in names))
    at.refusals = {f"{PODS}/{name}/resize": ForbiddenError("no", 403) for name in names[:refused]}
    wanted = {f"{PODS}/{name}/resize" for name in names[refused:]}
    turns = iter(range(100))
    while at.written.keys() != wanted:
        resize(at, wall=300.0 * next(turns))
        pods = at.objects[PODS]["items"]
        at.objects[PODS]["items"] = [at.written.get(f"{PODS}/{each['metadata']['name']}/resize", each) for each in pods]
    assert resize(at).result is ScaleResult.REFUSED


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
