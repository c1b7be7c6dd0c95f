from __future__ import annotations

from typing import Any

import pytest

from recommender.outputs.resize_admission import limit_range_refusal, needs_room_first, quota_refusal, with_defaults


def container(requests: dict[str, str], limits: dict[str, str] | None = None) -> dict[str, Any]:
    return {"name": "app", "resources": {"requests": requests} | ({"limits": limits} if limits else {})}


def limit_range(**item: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the item
    return {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container"} | item]}}


def refusal_of_range(containers: list[dict[str, Any]], *inits: dict[str, Any], **item: Any) -> str:  # noqa: ANN401 - fields of the item
    ranges = [limit_range(**item)]
    spec = {"containers": containers} | ({"initContainers": list(inits)} if inits else {})
    return limit_range_refusal(with_defaults(spec, ranges), ranges)


def refusal_of_quota(
    before: list[dict[str, Any]],
    after: list[dict[str, Any]],
    quota: dict[str, Any],
    *ranges: dict[str, Any],
    needs_room: bool,
) -> str:
    old, new = (with_defaults({"containers": each}, ranges) for each in (before, after))
    return quota_refusal(old, new, 3, [quota], needs_room_first=needs_room)


CPU = container({"cpu": "500m"}, {"cpu": "1"})
MEMORY = container({"memory": "600Mi"})


@pytest.mark.parametrize(
    ("containers", "item", "expected"),
    [
        ([CPU], {"max": {"cpu": "2"}}, ""),
        ([CPU], {"max": {"cpu": "800m"}}, "container app would have a limit of 1 cpu, more than 800m"),
        ([CPU], {"min": {"cpu": "600m"}}, "a request of 500m cpu, less than 600m"),
        ([CPU], {"maxLimitRequestRatio": {"cpu": "2"}}, ""),
        ([CPU], {"maxLimitRequestRatio": {"cpu": "1.5"}}, "more than 1500m times as much"),
        # The default limit of a container without one, and the largest one where there is no default.
        ([MEMORY], {"default": {"memory": "512Mi"}}, "a request of 600Mi memory, more than its limit of 512Mi"),
        ([MEMORY], {"max": {"memory": "512Mi"}}, "more than 512Mi"),
        ([MEMORY], {"default": {"memory": "1Gi"}}, ""),
        # A pod is the sum of its containers.
        ([CPU, CPU], {"type": "Pod", "max": {"cpu": "2"}}, ""),
        ([CPU, CPU], {"type": "Pod", "max": {"cpu": "1500m"}}, "the pod would have a limit of 2 cpu"),
        ([CPU], {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, ""),
        ([{"name": "app"}], {"min": {"cpu": "1"}}, ""),
        # A container without a limit takes none of the others from the sum, and adds only its request.
        ([CPU, {"name": "b"}], {"type": "Pod", "max": {"cpu": "800m"}}, "the pod would have a limit of 1 cpu"),
        ([CPU, container({"cpu": "700m"})], {"type": "Pod", "max": {"cpu": "1200m"}}, ""),
        ([CPU, {"name": "b"}], {"default": {"cpu": "2"}, "max": {"cpu": "1"}}, "container b would have a request of 2"),
        # What is bounded must be stated. Containers get it from the LimitRange, but pods do not.
        ([MEMORY], {"type": "Pod", "max": {"memory": "1Gi"}}, "the pod would have no limit of memory"),
        ([MEMORY], {"type": "Pod", "min": {"cpu": "1m"}}, "the pod would have no request of cpu"),
        ([MEMORY], {"type": "Pod", "min": {"memory": "1Mi"}}, ""),
        ([MEMORY], {"maxLimitRequestRatio": {"memory": "2"}}, "container app would have no limit of memory"),
        ([CPU], {"maxLimitRequestRatio": {"memory": "2"}}, "container app would have no request of memory"),
        ([MEMORY], {"maxLimitRequestRatio": {"memory": "2"}, "default": {"memory": "1Gi"}}, ""),
    ],
)
def test_a_limit_range_forbids_what_admission_would_forbid(
    containers: list[dict[str, Any]], item: dict[str, Any], expected: str
) -> None:
    found = refusal_of_range(containers, **item)
    assert expected in found
    assert bool(found) is bool(expected)


def exact(cores: str) -> dict[str, Any]:
    return container({"cpu": cores}, {"cpu": cores})


SIDECAR = exact("300m") | {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("inits", "most", "expected"),
    [
        ([SIDECAR], "800m", ""),
        ([SIDECAR], "700m", "the pod would have a request of 800m cpu"),
        # Before the containers start, and beside the sidecars that were started before it.
        ([exact("600m")], "600m", ""),
        ([SIDECAR, exact("600m")], "800m", "the pod would have a request of 900m cpu"),
        ([exact("600m"), SIDECAR], "800m", ""),
    ],
)
def test_a_limit_range_counts_init_containers_and_sidecars(
    inits: list[dict[str, Any]], most: str, expected: str
) -> None:
    found = refusal_of_range([exact("500m")], *inits, type="Pod", max={"cpu": most})
    assert expected in found
    assert bool(found) is bool(expected)


def test_a_limit_range_does_not_ask_for_what_the_pod_as_a_whole_states() -> None:
    ranges = [limit_range(type="Pod", min={"cpu": "1"}, max={"cpu": "2"})]
    whole = {"resources": {"limits": {"cpu": "2"}}}
    bare = {"containers": [container({"memory": "1Gi"})]}
    assert not limit_range_refusal(with_defaults(bare | whole, ranges), ranges)
    assert limit_range_refusal(with_defaults(bare, ranges), ranges)


@pytest.mark.parametrize(
    ("item", "before", "cores", "is_refused"),
    [
        # The other container gets its request from the LimitRange: 3 pods of 1100m have 700m left of 4 cores.
        ({"defaultRequest": {"cpu": "100m"}}, {"cpu": "1"}, "2", True),
        ({"defaultRequest": {"cpu": "100m"}}, {"cpu": "1"}, "1200m", False),
        ({"default": {"cpu": "100m"}}, {"cpu": "1"}, "2", True),
        # So does the container that is resized: there is nothing more.
        ({"defaultRequest": {"cpu": "550m"}}, {}, "550m", False),
        ({"defaultRequest": {"cpu": "550m"}}, {}, "800m", True),
    ],
)
def test_a_quota_counts_what_a_limit_range_adds_to_pods(
    item: dict[str, Any],
    before: dict[str, str],
    cores: str,
    is_refused: bool,  # noqa: FBT001 - a column of the table
) -> None:
    quota = {"spec": {"hard": {"requests.cpu": "4"}}, "status": {"used": {"requests.cpu": "3300m"}}}
    old, new, other = container(before), container({"cpu": cores}), {"name": "other"}
    found = refusal_of_quota([old, other], [new, other], quota, limit_range(**item), needs_room=False)
    assert bool(found) is is_refused


def test_a_quota_counts_pod_level_resources_instead_of_those_of_containers() -> None:
    quota = {"spec": {"hard": {"requests.cpu": "4"}}, "status": {"used": {"requests.cpu": "4"}}}
    whole = {"resources": {"requests": {"cpu": "1"}}}
    old, new = ({"containers": [container({"cpu": cores})]} for cores in ("100m", "500m"))
    assert quota_refusal(old, new, 3, [quota], needs_room_first=False)
    assert not quota_refusal(old | whole, new | whole, 3, [quota], needs_room_first=False)


@pytest.mark.parametrize(
    ("hard", "used", "needs_room", "is_refused"),
    [
        # From 1 to 2 cores of 3 pods: 3 more in the end.
        ({"requests.cpu": "6"}, {"requests.cpu": "3"}, False, False),
        ({"requests.cpu": "5"}, {"requests.cpu": "3"}, False, True),
        ({"cpu": "5"}, {"cpu": "3"}, False, True),
        ({"cpu": "5900m"}, {"cpu": "3"}, True, True),
        ({"pods": "3", "requests.storage": "1"}, {"pods": "3"}, False, False),
        ({"requests.cpu": "2"}, {}, False, True),
    ],
)
def test_a_quota_forbids_requests_that_exceed_it_for_all_pods(
    hard: dict[str, str],
    used: dict[str, str],
    needs_room: bool,  # noqa: FBT001 - a column of the table
    is_refused: bool,  # noqa: FBT001 - likewise
) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"used": used}}
    before, after = [container({"cpu": "1"})], [container({"cpu": "2"})]
    assert bool(refusal_of_quota(before, after, quota, needs_room=needs_room)) is is_refused
    scoped = quota | {"spec": {"hard": hard, "scopes": ["BestEffort"]}}
    assert not refusal_of_quota(before, after, scoped, needs_room=needs_room)


@pytest.mark.parametrize(
    ("hard", "names"),
    [
        ({"limits.cpu": "9"}, "limits.cpu for container app, other"),
        (
            {"limits.cpu": "9", "pods": "9", "cpu": "20", "memory": "9Gi"},
            "limits.cpu for container app, other; memory for container app",
        ),
        ({"memory": "9Gi"}, "memory for container app"),
        ({"requests.cpu": "9", "requests.ephemeral-storage": "1Gi"}, ""),
    ],
)
def test_a_quota_forbids_containers_that_do_not_state_what_it_limits(hard: dict[str, str], names: str) -> None:
    other = container({"cpu": "1", "memory": "1Gi"}) | {"name": "other"}
    before, after = [container({"cpu": "1"}), other], [container({"cpu": "2"}), other]
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"used": {}}}
    found = refusal_of_quota(before, after, quota, needs_room=False)
    assert found == (f"its pods would not set {names}, which ResourceQuota q requires: set it" if names else "")
    # Such as the defaults of a LimitRange.
    limits = limit_range(default={"cpu": "3", "memory": "2Gi"})
    assert not refusal_of_quota(before, after, quota, limits, needs_room=False)
    scoped = quota | {"spec": {"hard": hard, "scopes": ["BestEffort"]}}
    assert not refusal_of_quota(before, after, scoped, needs_room=False)
    old, new = ({"containers": each} for each in (before, after))
    whole = {"resources": {"requests": {"cpu": "4"}}}
    assert not quota_refusal(old | whole, new | whole, 3, [quota], needs_room_first=False)
    assert not quota_refusal(old, new, 0, [quota], needs_room_first=False), "no pod is created"


@pytest.mark.parametrize(
    ("cores", "needs_room", "is_refused"),
    [("1100m", False, False), ("1100m", True, True), ("500m", False, False), ("500m", True, True)],
)
def test_a_rollout_that_creates_before_it_deletes_needs_room_beside_the_old_pods(
    cores: str,
    needs_room: bool,  # noqa: FBT001 - a column of the table
    is_refused: bool,  # noqa: FBT001 - likewise
) -> None:
    quota = {"spec": {"hard": {"cpu": "3400m"}}, "status": {"used": {"cpu": "3"}}}
    found = refusal_of_quota([container({"cpu": "1"})], [container({"cpu": cores})], quota, needs_room=needs_room)
    assert bool(found) is is_refused


@pytest.mark.parametrize(
    ("kind", "strategy", "pods", "expected"),
    [
        ("Deployment", {}, 3, True),
        ("Deployment", {}, 4, False),
        ("Deployment", {"type": "Recreate"}, 1, False),
        ("Deployment", {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}, 1, False),
        ("Deployment", {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}, 9, True),
        ("Deployment", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}, 3, False),
        ("DaemonSet", {}, 3, False),
        ("DaemonSet", {"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}, 3, True),
        ("StatefulSet", {}, 3, False),
    ],
)
def test_a_rollout_creates_first_if_no_pod_may_be_unavailable(
    kind: str,
    strategy: dict[str, Any],
    pods: int,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    key = "strategy" if kind == "Deployment" else "updateStrategy"
    assert needs_room_first({"kind": kind, "spec": {key: strategy}}, pods) is expected
