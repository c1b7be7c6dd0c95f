"""The output `resize` with an API server that returns prepared answers."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.objects.quantities import parse_quantity
from adapter.foundation.sources.kubernetes.errors import ConflictError, ForbiddenError, ServerError, StatusError
from recommender.outputs.pending_writes import RequestedSize
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.outputs.resized_server import APPS, PODS, Server, pod, resize, server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.sources.kubernetes.writing import Fence


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


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("status", {"phase": "Succeeded"}),
        ("status", {"phase": "Failed"}),
        ("metadata", {"deletionTimestamp": "2026-11-21T06:00:00Z"}),
    ],
)
def test_a_pod_that_has_ended_or_is_being_deleted_is_not_resized(part: str, change: dict[str, str]) -> None:
    gone = pod("b")
    gone[part] |= change
    at = server("StatefulSet", pod("a"), gone)
    assert resize(at).result is ScaleResult.OK
    assert at.written.keys() == {f"{PODS}/a/resize"}


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


GIB = {"resources": {part: {"cpu": "1", "memory": "1Gi"} for part in ("requests", "limits")}}
GROWS_AND_SHRINKS = (RequestedSize("app", "cpu", 1500), RequestedSize("app", "memory", 2**29))


@dataclass
class OldServer(Server):
    """A server of Kubernetes 1.33, which lowers no limit of memory unless the container restarts for it."""

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        [before] = [each for each in self.objects[PODS]["items"] if f"/{each['metadata']['name']}/" in path]
        for old, new in zip(before["spec"]["containers"], document["spec"]["containers"], strict=True):
            limits = [parse_quantity(each["resources"]["limits"]["memory"]) for each in (old, new)]
            restarts = {"resourceName": "memory", "restartPolicy": "RestartContainer"} in old.get("resizePolicy", ())
            if limits[1] < limits[0] and not restarts:
                raise StatusError("memory limits cannot be decreased unless resizePolicy is RestartContainer", 422)
        return super().replace(path, document, fence)


def stated(at: Server, name: str) -> list[dict[str, str]]:
    document = at.written[f"{PODS}/{name}/resize"]
    return [each["resources"]["limits"] for each in document["spec"]["containers"]]


def test_cpu_grows_where_the_limit_of_memory_cannot_shrink() -> None:
    at = OldServer(server("StatefulSet", pod("a", **GIB)).objects)
    outcome = resize(at, "StatefulSet", *GROWS_AND_SHRINKS)
    assert outcome.result is ScaleResult.OK, outcome.message
    assert stated(at, "a") == [{"cpu": "1500m", "memory": "1Gi"}]
    at.carry_out()
    outcome = resize(at, "StatefulSet", *GROWS_AND_SHRINKS)
    assert (outcome.result, "memory limits cannot be decreased" in outcome.message) == (ScaleResult.REFUSED, True)
    assert stated(at, "a") == [{"cpu": "1500m", "memory": "1Gi"}]


def test_memory_of_one_container_grows_where_the_limit_of_another_one_cannot_shrink() -> None:
    both = pod("a", **GIB)
    both["spec"]["containers"].append({"name": "proxy"} | GIB)
    at = OldServer(server("StatefulSet", both).objects)
    sizes = (RequestedSize("app", "memory", 2**29), RequestedSize("proxy", "memory", 2**31))
    outcome = resize(at, "StatefulSet", *sizes)
    assert outcome.result is ScaleResult.OK, outcome.message
    assert stated(at, "a") == [{"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "2Gi"}]


def test_a_limit_of_memory_shrinks_after_everything_else() -> None:
    at = server("StatefulSet", pod("a", **GIB))
    for memory in ("1Gi", "512Mi"):
        outcome = resize(at, "StatefulSet", *GROWS_AND_SHRINKS)
        assert outcome.result is ScaleResult.OK, outcome.message
        assert stated(at, "a") == [{"cpu": "1500m", "memory": memory}]
        at.carry_out()
    assert resize(at, "StatefulSet", *GROWS_AND_SHRINKS).result is ScaleResult.UNCHANGED


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("PodResizeInProgress", ScaleResult.UNCHANGED),
        ("PodResizePending", ScaleResult.UNCHANGED),
        ("Ready", ScaleResult.OK),
    ],
)
def test_a_limit_of_memory_waits_until_the_kubelet_has_done_the_rest(condition: str, expected: ScaleResult) -> None:
    both = pod("a", **GIB)
    both["spec"]["containers"].append({"name": "proxy"} | GIB)
    at = server("StatefulSet", with_conditions(both, condition))
    assert resize(at, "StatefulSet", RequestedSize("app", "memory", 2**29)).result is expected


def test_a_container_that_restarts_for_its_memory_is_resized_at_once() -> None:
    restarts = {"resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]}
    at = OldServer(server("StatefulSet", pod("a", **GIB, **restarts)).objects)
    assert resize(at, "StatefulSet", *GROWS_AND_SHRINKS).result is ScaleResult.OK
    assert stated(at, "a") == [{"cpu": "1500m", "memory": "512Mi"}]


BELOW_USE = "attempting to set container memory limit (536870912) below current usage (900000000)"


def below_use(document: dict[str, Any]) -> dict[str, Any]:
    """Return a pod whose kubelet cannot lower the memory from 1Gi: the container uses more than the new limit."""
    condition = {"type": "PodResizeInProgress", "status": "True", "reason": "Error", "message": BELOW_USE}
    document["status"] |= {
        "conditions": [{"type": "Ready", "status": "True"}, condition],
        "containerStatuses": [{"name": "app", **copy.deepcopy(GIB)}],
    }
    return document


HALF_A_GIB = {"resources": {part: {"cpu": "1", "memory": "512Mi"} for part in ("requests", "limits")}}


def test_a_resize_that_the_kubelet_fails_to_carry_out_is_refused() -> None:
    at = server("StatefulSet", below_use(pod("a", **HALF_A_GIB)))
    outcome = resize(at, "StatefulSet", RequestedSize("app", "memory", 2**29))
    assert (outcome.result, BELOW_USE in outcome.message) == (ScaleResult.REFUSED, True), outcome.message
    assert not at.written


@pytest.mark.parametrize(("reason", "seen", "memory"), [("Error", 2, "1Gi"), ("Error", 1, "512Mi"), ("", 2, "512Mi")])
def test_memory_that_the_kubelet_cannot_lower_does_not_keep_cpu_from_growing(
    reason: str, seen: int, memory: str
) -> None:
    # The kubelet carries out nothing of a pod while one of its limits of memory is below its use.
    document = below_use(pod("a", **HALF_A_GIB))
    document["metadata"]["generation"], document["status"]["observedGeneration"] = 2, seen
    document["status"]["conditions"][1]["reason"] = reason
    at = server("StatefulSet", document)
    outcome = resize(at, "StatefulSet", *GROWS_AND_SHRINKS)
    assert outcome.result is ScaleResult.OK, outcome.message
    assert stated(at, "a") == [{"cpu": "1500m", "memory": memory}]
