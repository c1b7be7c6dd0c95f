from __future__ import annotations

from typing import Any

import pytest

from recommender.outputs.resize_quotas import limit_range_refusal, needs_room_first, quota_refusal


def container(requests: dict[str, str], limits: dict[str, str] | None = None) -> dict[str, Any]:
    return {"name": "app", "resources": {"requests": requests} | ({"limits": limits} if limits else {})}


def limit_range(**item: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the item
    return {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container"} | item]}}


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
    ],
)
def test_a_limit_range_forbids_what_admission_would(
    containers: list[dict[str, Any]], item: dict[str, Any], expected: str
) -> None:
    found = limit_range_refusal(containers, [limit_range(**item)])
    assert expected in found
    assert bool(found) is bool(expected)


@pytest.mark.parametrize(
    ("hard", "used", "needs_room", "is_refused"),
    [
        # From 1 to 2 cores of 3 pods: 3 more in the end.
        ({"requests.cpu": "6"}, {"requests.cpu": "3"}, False, False),
        ({"requests.cpu": "5"}, {"requests.cpu": "3"}, False, True),
        ({"cpu": "5"}, {"cpu": "3"}, False, True),
        ({"cpu": "5900m"}, {"cpu": "3"}, True, True),
        ({"limits.cpu": "1"}, {}, False, False),
        ({"pods": "3", "requests.storage": "1"}, {"pods": "3"}, False, False),
        ({"requests.cpu": "2"}, {}, False, True),
    ],
)
def test_a_quota_forbids_what_its_pods_would_need_together(
    hard: dict[str, str],
    used: dict[str, str],
    needs_room: bool,  # noqa: FBT001 - a column of the table
    is_refused: bool,  # noqa: FBT001 - likewise
) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"used": used}}
    before, after = [container({"cpu": "1"})], [container({"cpu": "2"})]
    assert bool(quota_refusal(before, after, 3, [quota], needs_room_first=needs_room)) is is_refused
    scoped = quota | {"spec": {"hard": hard, "scopes": ["BestEffort"]}}
    assert not quota_refusal(before, after, 3, [scoped], needs_room_first=needs_room)


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
    found = quota_refusal(
        [container({"cpu": "1"})], [container({"cpu": cores})], 3, [quota], needs_room_first=needs_room
    )
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
def test_a_rollout_creates_first_where_no_pod_may_be_unavailable(
    kind: str,
    strategy: dict[str, Any],
    pods: int,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    key = "strategy" if kind == "Deployment" else "updateStrategy"
    assert needs_room_first({"kind": kind, "spec": {key: strategy}}, pods) is expected
