from __future__ import annotations

from datetime import datetime
from statistics import median_high
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from recommender.kinds.cluster_size.future.headroom import (
    MOST_CHUNKS,
    headroom_at,
    headroom_of,
    headroom_pods,
    placeable,
)
from recommender.kinds.cluster_size.model.size_settings import HeadroomSchedule
from tests.recommender.kinds.cluster_size.builders import node, pod

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod

MIB = 1 << 20


def pods(*asked: tuple[int, int]) -> tuple[ClusterPod, ...]:
    return tuple(pod(f"p{number}", f"{cpu}m", f"{mib}Mi", node="n1") for number, (cpu, mib) in enumerate(asked))


def total(found: tuple[ClusterPod, ...], resource: str) -> int:
    return sum(one.resources.requests.get(resource, 0) for one in found)


def test_the_reserve_is_a_share_of_requests_in_chunks_of_a_typical_pod() -> None:
    found = headroom_pods(0.1, pods(*[(500, 512)] * 40))
    assert len(found) == 4
    assert [dict(one.resources.requests) for one in found] == [{"cpu": 500, "memory": 512 * MIB}] * 4
    assert len({(one.namespace, one.name) for one in found}) == 4
    assert len({one.controller for one in found}) == 1


@pytest.mark.parametrize(
    "nothing", [headroom_pods(0.0, pods((500, 512))), headroom_pods(0.5, ()), headroom_pods(0.5, pods((0, 0)))]
)
def test_nothing_is_reserved_without_requests_or_ratio(nothing: tuple[ClusterPod, ...]) -> None:
    assert nothing == ()


def test_ended_pods_need_no_reserve() -> None:
    assert headroom_pods(0.5, (pod("done", "4", phase="Succeeded"),)) == ()


@pytest.mark.parametrize(
    ("cpu", "memory", "counts"),
    [
        ("4", "8Gi", True),
        ("2", "16Gi", True),
        ("4", "9Gi", False),
        ("4001m", "1Gi", False),
        ("1", "17Gi", False),
        ("1e30", "", False),
    ],
)
def test_a_pod_that_no_node_can_hold_needs_no_reserve(cpu: str, memory: str, *, counts: bool) -> None:
    nodes = (node("small", "1", "4Gi"), node("compute", "4", "8Gi"), node("memory", "2", "16Gi"))
    asked = pod("asked", cpu, memory)
    assert placeable((asked,), nodes) == ((asked,) if counts else ())


def test_all_pods_count_if_no_nodes_are_known() -> None:
    asked = pods((10_000, 1))
    assert placeable(asked, ()) == asked


def test_pods_that_request_only_one_resource_reserve_only_that() -> None:
    found = headroom_pods(0.5, (pod("a", "1", ""), pod("b", "1", "")))
    assert [dict(one.resources.requests) for one in found] == [{"cpu": 1000}]


def test_a_huge_reserve_has_larger_chunks_instead_of_more() -> None:
    found = headroom_pods(100.0, pods(*[(10, 1)] * 100))
    assert len(found) == MOST_CHUNKS
    assert total(found, "cpu") >= 100 * 100 * 10


@examples(max_examples=40)
@given(
    st.floats(0.001, 3.0),
    st.lists(st.tuples(st.integers(0, 8000), st.integers(0, 4096)), min_size=1, max_size=30),
)
def test_the_reserve_is_never_too_small_and_chunks_do_not_exceed_a_typical_pod(
    ratio: float, asked: list[tuple[int, int]]
) -> None:
    existing = pods(*asked)
    found = headroom_pods(ratio, existing)
    for resource in ("cpu", "memory"):
        requested = total(existing, resource)
        assert total(found, resource) >= int(requested * ratio * (1 - 1e-6))
        assert total(found, resource) <= requested * ratio * (1 + 1e-6) + len(found) + 1
        positive = [one.resources.requests[resource] for one in existing if one.resources.requests[resource]]
        if positive and len(found) < MOST_CHUNKS:
            assert all(one.resources.requests.get(resource, 0) <= median_high(positive) for one in found)


@examples(max_examples=40)
@given(
    st.floats(0.001, 3.0),
    st.lists(st.tuples(st.integers(0, 8000), st.integers(0, 4096), st.integers(0, 5)), max_size=12),
)
def test_requests_with_counts_give_the_same_reserve_as_that_many_pods(
    ratio: float, asked: list[tuple[int, int, int]]
) -> None:
    counted = headroom_of(ratio, (({"cpu": cpu, "memory": memory}, count) for cpu, memory, count in asked))
    each = headroom_of(ratio, (({"cpu": cpu, "memory": memory}, 1) for cpu, memory, n in asked for _ in range(n)))
    assert counted == each


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


MORNING = HeadroomSchedule("0 7 * * mon-fri", "Europe/Berlin", 7200.0, 0.3)
SALE = HeadroomSchedule("0 6 23 11 *", "UTC", 86400.0, 0.5)


@pytest.mark.parametrize(
    ("moment", "ratio", "detail"),
    [
        ("2026-11-22T12:00:00Z", 0.1, "headroom 10%"),
        ("2026-11-24T06:00:00Z", 0.3, "headroom 30% by '0 7 * * mon-fri' (Europe/Berlin), until 2026-11-24T08:00:00Z"),
        ("2026-11-24T08:00:00Z", 0.1, "headroom 10%"),
        ("2026-11-23T06:30:00Z", 0.5, "headroom 50% by '0 6 23 11 *' (UTC), until 2026-11-24T06:00:00Z"),
    ],
)
def test_the_largest_reserve_in_force_is_used(moment: str, ratio: float, detail: str) -> None:
    wanted = headroom_at(0.1, (MORNING, SALE), seconds(moment))
    assert (wanted.ratio, wanted.detail) == (ratio, detail)


def test_a_schedule_never_makes_the_reserve_smaller() -> None:
    assert headroom_at(0.4, (MORNING,), seconds("2026-11-24T06:00:00Z")).ratio == 0.4
