from __future__ import annotations

from typing import Any

import pytest

from recommender.outputs.namespace_limits import limit_range_refusal, quota_refusal


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
    ("hard", "used", "surges", "is_refused"),
    [
        # From 1 to 2 cores of 3 pods: 3 more in the end.
        ({"requests.cpu": "6"}, {"requests.cpu": "3"}, False, False),
        ({"requests.cpu": "5"}, {"requests.cpu": "3"}, False, True),
        ({"cpu": "5"}, {"cpu": "3"}, False, True),
        ({"cpu": "5900m"}, {"cpu": "3"}, True, True),
        ({"limits.cpu": "1"}, {}, False, False),
        ({"pods": "3", "requests.storage": "1"}, {"pods": "3"}, False, False),
        ({"requests.cpu": "5"}, {}, False, False),
    ],
)
def test_a_quota_forbids_what_its_pods_would_need_together(
    hard: dict[str, str],
    used: dict[str, str],
    surges: bool,  # noqa: FBT001 - a column of the table
    is_refused: bool,  # noqa: FBT001 - likewise
) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"used": used}}
    before, after = [container({"cpu": "1"})], [container({"cpu": "2"})]
    assert bool(quota_refusal(before, after, 3, [quota], surges=surges)) is is_refused
    scoped = quota | {"spec": {"hard": hard, "scopes": ["BestEffort"]}}
    assert not quota_refusal(before, after, 3, [scoped], surges=surges)


def test_a_first_pod_of_a_rollout_needs_room_beside_the_old_ones() -> None:
    quota = {"spec": {"hard": {"cpu": "4"}}, "status": {"used": {"cpu": "3"}}}
    before, after = [container({"cpu": "1"})], [container({"cpu": "1100m"})]
    assert not quota_refusal(before, after, 3, [quota], surges=False)
    assert quota_refusal(before, after, 3, [quota], surges=True)


def test_smaller_requests_need_no_room_in_a_quota_that_is_full() -> None:
    quota = {"spec": {"hard": {"cpu": "3"}}, "status": {"used": {"cpu": "3"}}}
    assert not quota_refusal([container({"cpu": "1"})], [container({"cpu": "500m"})], 3, [quota], surges=True)
